//! The JSON documents. Their keys, types and units are listed in [`crate::schema`]; keys keep their names.
//!
//! Every key of a document is always there; `null` means "not known" or "does not apply".

mod iperf3;
mod journal;
mod measured;
mod mesh;
mod seen;
mod settings;
mod share;
mod sim;
mod stack;
mod unpin;
mod watch;

use std::net::SocketAddr;

use fullpipe_knobs::{
    Change, Plan,
    reading::{Merged, SettingRow},
};
use fullpipe_path::{self as path, Scenario};
use fullpipe_tune::{Difference, Direction, DirectionProof, HostSettings, Outcome};
use serde_json::{Map, Value, json};

use crate::{Problem, SettingsList};

pub use fullpipe_page::json::{Captures, SCHEMA, captures, to_line, to_string, word, write};
pub(crate) use fullpipe_page::json::{diagnosis, document, too_little};
pub use iperf3::iperf3;
pub use journal::{confirmed, history, show, status, undo, undo_not_confirmed};
pub use measured::{comparison, kept_sizes, measured, sizes_of, survey};
pub use mesh::{mesh, mesh_history};
pub use seen::{SeenEnd, SeenError, SeenTransfer, read_seen};
pub use settings::{
    NoPlan, ReadPlan, applied, dry_run, findings, not_confirmed, plan, read_plan, sarif_log, settings, verified,
};
pub use share::share;
pub use sim::{reference, sim, what_if};
pub use stack::{device_table, preset_table, stack_run};
pub use unpin::unpinned;
pub use watch::{recording, watch};

/// The schema before it. It differs in no key that a plan has.
const SCHEMA_BEFORE: &str = "fullpipe/1";

/// The end of a measurement that is this machine.
const OWN_END: &str = "this host";

/// What `check`, `tune`, `demo` and `lab run` found and did. `command` is the name of the command.
pub fn outcome(command: &str, outcome: &Outcome) -> Value {
    let scenario = outcome.scenario.as_ref();
    let ends = Ends::new(outcome);
    let proofs: Vec<_> = outcome.proofs.iter().map(|one| proof(one, &ends)).collect();
    let error = outcome.path_error;
    let is_expected = scenario.is_some() || !outcome.expectations.is_empty();
    document(
        command,
        json!({
            "scenario": scenario.map(|s| &s.name),
            "scenario_facts": scenario.map(|s| json!({
                "summary": s.summary, "imitations": s.imitations, "published": s.published,
            })),
            "ends": { "a": ends.a, "b": ends.b },
            "transfers": outcome.before.iter().map(|one| transfer(one, &ends)).collect::<Vec<_>>(),
            "hosts": outcome.hosts.iter().map(host).collect::<Vec<_>>(),
            "plan": plan_object(&outcome.plan),
            "proof": proofs.first(),
            "proofs": proofs,
            "kept": outcome.kept,
            "transfers_after": outcome.after.iter().map(|one| transfer(one, &ends)).collect::<Vec<_>>(),
            "restored": outcome.restored.iter().map(|host| json!({
                "host": host.host, "compared": host.compared,
                "differences": host.differences.iter().map(difference).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "path_error_us": error.map(|e| json!({ "p50": e.p50_us, "p99": e.p99_us, "max": e.max_us })),
            "path_valid": error.map(|e| e.valid),
            "expectations": outcome.expectations,
            "as_expected": is_expected.then(|| outcome.as_expected()),
            "notes": outcome.notes,
        }),
    )
}

/// An error, with the schema around it.
pub fn problem(command: &str, problem: &Problem) -> Value {
    document(command, json!({ "error": problem }))
}

/// An error of a run that had found something before it failed: what it had found, and the error.
pub fn with_problem(mut document: Value, problem: &Problem) -> Value {
    document["error"] = json!(problem);
    document
}

/// The scenarios that come with the program.
pub fn scenarios(command: &str, scenarios: &[Scenario]) -> Value {
    let list: Vec<_> = scenarios
        .iter()
        .map(|scenario| {
            let rate = |direction| scenario.path.bottleneck(direction);
            json!({
                "name": scenario.name,
                "summary": scenario.summary,
                "published": scenario.published,
                "source": scenario.source,
                "imitates": { "a": scenario.a.imitates, "b": scenario.b.imitates },
                "rate_bps": { "a->b": rate(path::Direction::AToB), "b->a": rate(path::Direction::BToA) },
                "rtt_us": scenario.path.rtt(),
            })
        })
        .collect();
    document(command, json!({ "scenarios": list }))
}

/// Where a server listens since `time` (RFC 3339), and the link to open where it is one for browsers: an event, too.
pub fn listening(command: &str, time: &str, address: SocketAddr, url: Option<&str>) -> Value {
    let mut object = json!({
        "time": time,
        "level": "info",
        "event": "listening",
        "address": address.ip().to_string(),
        "port": address.port(),
    });
    if let Some(url) = url {
        object["url"] = url.into();
    }
    document(command, object)
}

/// Something that happened while a command runs.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The command.
    pub command: &'a str,
    /// How bad it is: `error`, `warning`, `info`, `debug` or `trace`.
    pub level: &'a str,
    /// What happened, as a word; `log` for what a part of the program logs.
    pub kind: &'a str,
    /// What happened, as a sentence.
    pub text: &'a str,
    /// The client, at a server.
    pub peer: Option<&'a str>,
    /// The part of the program that logs it.
    pub target: Option<&'a str>,
    /// What it logs besides.
    pub fields: &'a Map<String, Value>,
}

/// Something that happened while a command runs, with its time as RFC 3339 has it.
pub fn event(event: &Event<'_>, time: &str) -> Value {
    document(
        event.command,
        json!({
            "time": time,
            "level": event.level,
            "event": event.kind,
            "text": event.text,
            "peer": event.peer,
            "target": event.target,
            "fields": event.fields,
        }),
    )
}

/// A step of a command that goes on, with its time as RFC 3339 has it.
pub fn progress(command: &str, time: &str, progress: &Value) -> Value {
    document(command, json!({ "time": time, "progress": progress }))
}

/// A page of text that is another program's input: a completion script, a manual page.
pub fn page(command: &str, page: &str) -> Value {
    document(command, json!({ "text": page }))
}

/// The names of both ends of a run of the loop.
struct Ends {
    a: String,
    b: String,
}

impl Ends {
    fn new(outcome: &Outcome) -> Self {
        let [a, b] = outcome.ends.clone().unwrap_or_else(|| ["a", "b"].map(str::to_owned));
        Self { a, b }
    }

    /// `a->b` or `b->a`, whatever the ends are called.
    fn direction<'a>(&self, name: &'a str) -> &'a str {
        match name.split_once("->") {
            Some((from, to)) if from == self.a && to == self.b => "a->b",
            Some((from, to)) if from == self.b && to == self.a => "b->a",
            _ => name,
        }
    }
}

fn transfer(direction: &Direction, ends: &Ends) -> Value {
    json!({
        "direction": ends.direction(&direction.name),
        "rate_bps": direction.rate_bps,
        "steady_bps": direction.steady_bps,
        "rtt_us": direction.rtt_us,
        "loaded_rtt_us": direction.loaded_rtt_us,
        "bytes": direction.bytes,
        "seconds": direction.duration_us.as_secs_f64(),
        "retransmissions": direction.retransmits,
        "congestion_control": direction.congestion_control,
        "diagnosis": diagnosis(&direction.diagnosis),
        "seen": seen::seen(direction),
    })
}

/// How a host is set: what differs from the defaults of its version.
fn host(host: &HostSettings) -> Value {
    let merged = Merged { settings: host.settings.clone(), ..Merged::default() };
    let mut list = SettingsList::new(&merged, &[], false);
    let compared = list.rows.iter().filter(|row| list.is_default(row).is_some()).count();
    list.only_changed();
    let changed = |row: &SettingRow| {
        json!({
            "knob": row.described.knob,
            "value": row.described.value,
            "default": row.described.default,
            "meaning": row.described.meaning,
            "note": row.note,
        })
    };
    json!({
        "host": host.host,
        "platform": merged.settings.platform.to_string(),
        "compared": compared,
        "not_default": list.rows.iter().map(changed).collect::<Vec<_>>(),
    })
}

fn plan_object(plan: &Plan) -> Value {
    json!({ "changes": plan.changes.iter().map(change).collect::<Vec<_>>(), "notes": plan.notes })
}

fn change(change: &Change) -> Value {
    json!({
        "host": change.host,
        "knob": change.knob,
        "from": change.from,
        "to": change.to,
        "reason": change.reason,
        "arithmetic": change.arithmetic,
        "memory_worst_case": change.memory_worst_case,
        "takes_effect": change.takes_effect,
        "undo": change.undo,
        "source": change.source,
    })
}

fn proof(proof: &DirectionProof, ends: &Ends) -> Value {
    json!({
        "direction": ends.direction(&proof.direction),
        "before_bps": proof.proof.before_bps,
        "after_bps": proof.proof.after_bps,
        "ratio": proof.proof.ratio,
        "ratio_low": proof.proof.ratio_low,
        "ratio_high": proof.proof.ratio_high,
        "pairs": proof.proof.pairs,
        "decision": proof.decision,
        "helped": proof.helped,
        "kept": proof.kept,
        "knobs": proof.knobs,
        "predicted_before_bps": proof.predicted.map(|predicted| predicted.before_bps),
        "predicted_after_bps": proof.predicted.map(|predicted| predicted.after_bps),
        "predicted_ratio": proof.predicted.map(|predicted| predicted.ratio()),
    })
}

pub(crate) fn difference(difference: &Difference) -> Value {
    json!({ "knob": difference.knob, "before": difference.before, "now": difference.now })
}
