//! The document of `read`.

use std::net::IpAddr;

use fullpipe_capture::{Report, Side};
use fullpipe_diagnose::{Diagnosis, Run};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{SCHEMA, diagnosis};
use crate::capture::{CaptureFile, CaptureList, CaptureProblem, Limited, advice, display_filter, endpoint};

/// What was found in captures: every connection that is to be shown, worst first, and what could not be read. Each is put into words when
/// the document is written: as values, all of them would take 50 kB each at once.
#[derive(Serialize)]
pub struct Captures<'a> {
    // In the order of the other documents' keys.
    command: &'a str,
    connection_count: u64,
    connections: Connections<'a>,
    files: Vec<Value>,
    limits: Vec<Value>,
    problem_count: u64,
    problems: Vec<Value>,
    schema: &'static str,
    seen_twice: usize,
    unlisted: Value,
}

impl<'a> Captures<'a> {
    /// The document of `command`.
    pub fn new(command: &'a str, list: &'a CaptureList) -> Self {
        let file = |file: &CaptureFile| {
            json!({
                "file": file.name, "vantage": file.place, "seconds": file.lasted.as_secs_f64(), "packets": file.packets, "bytes": file.bytes, "segments": file.segments,
            })
        };
        let limit = |limited: &Limited| {
            json!({
                "limiter": limited.limiter, "detail": limited.detail, "connections": limited.connections,
                "bytes": limited.payload,
            })
        };
        let problem = |problem: &CaptureProblem| json!({ "file": problem.file, "packet": problem.packet, "message": problem.message });
        Self {
            command,
            connection_count: list.connections.len() as u64 + list.unlisted,
            connections: Connections(list),
            files: list.files.iter().map(file).collect(),
            limits: list.limits().iter().map(limit).collect(),
            problem_count: list.problem_count,
            problems: list.problems.iter().map(problem).collect(),
            schema: SCHEMA,
            seen_twice: list.vantages.len(),
            unlisted: json!({ "connections": list.unlisted, "unanswered_syns": list.unanswered }),
        }
    }
}

struct Connections<'a>(&'a CaptureList);

impl Serialize for Connections<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(list) = self;
        serializer.collect_seq(list.connections.iter().take(list.shown).map(|report| connection(list, &report)))
    }
}

/// The whole document as one value.
pub fn captures(command: &str, list: &CaptureList) -> Value {
    serde_json::to_value(Captures::new(command, list)).expect("a document of values is one")
}

fn connection(list: &CaptureList, report: &Report) -> Value {
    let vantages = list
        .vantages_of(report.number)
        .map(|vantages| json!({ "near": vantages.near, "far": vantages.far, "agree": vantages.agree }));
    let main = report.main_side();
    let sum = |count: fn(&Side) -> u64| report.sides.iter().map(count).sum::<u64>();
    let scale = |side: &Side| side.syn.and_then(|syn| syn.window_scale);
    json!({
        "number": report.number,
        "a": endpoint(report.a),
        "b": endpoint(report.b),
        "display_filter": display_filter(report),
        "tunnel": report.outer,
        "first_packet": report.first_packet,
        "file": list.file_of(report.first_packet).map(|file| &file.name),
        "vantages": vantages,
        "started_ns": report.started_ns,
        "packets": report.packets(),
        "bytes": report.payload(),
        "ip_bytes": sum(|side| side.counters.ip_bytes),
        "seconds": report.lasted.as_secs_f64(),
        "rate_bps": main.rate,
        "rtt_us": report.rtt,
        "loaded_rtt_us": main.verdict.as_ref().and_then(|verdict| verdict.loaded_rtt),
        "retransmissions": sum(|side| side.counters.retransmissions),
        "out_of_order": sum(|side| side.counters.out_of_order),
        "copies": report.copies,
        "clock_set_back": report.clock_set_back.map(|back| json!({ "packet": back.packet, "by_us": back.by })),
        "mss": main.mss,
        "window_scale": { "a": scale(&report.sides[0]), "b": scale(&report.sides[1]) },
        "handshake": {
            "packets": report.handshake.packets,
            "syns": report.handshake.syns,
            "took_us": report.handshake.took,
            "simultaneous": report.handshake.simultaneous,
        },
        "direction": if report.main() == 0 { "a->b" } else { "b->a" },
        "diagnosis": judged(report, main),
        "sides": { "a": side(report, 0), "b": side(report, 1) },
        "advice": advice(report).iter().map(|advice| json!({
            "host": advice.host, "platform": advice.platform, "is_guess": advice.is_guess, "settings": advice.settings,
            "look_at": advice.look_at,
        })).collect::<Vec<_>>(),
    })
}

fn side(report: &Report, place: usize) -> Value {
    let side = &report.sides[place];
    let counters = &side.counters;
    let end = if place == 0 { report.a } else { report.b };
    json!({
        "address": IpAddr::from(end.address).to_string(),
        "port": end.port,
        "platform": side.platform.map(|platform| platform.catalogue),
        "syn": side.syn,
        "away_us": side.away,
        "packets": counters.packets,
        "data_packets": counters.data_packets,
        "bytes": counters.payload,
        "carried_bytes": counters.carried,
        "ip_bytes": counters.ip_bytes,
        "seconds": side.sending.as_secs_f64(),
        "rate_bps": side.rate,
        "mss": side.mss,
        "retransmissions": counters.retransmissions,
        "retransmitted_bytes": counters.retransmitted,
        "out_of_order": counters.out_of_order,
        "reordered": counters.reordered,
        "timeouts": counters.timeouts,
        "duplicate_acks": counters.duplicate_acks,
        "dsacks": counters.dsacks,
        "zero_windows": counters.zero_windows,
        "window_probes": counters.window_probes,
        "keep_alives": counters.keep_alives,
        "initial_window": counters.initial_window,
        "offered_to_it": counters.largest_window,
        "unseen_bytes": counters.unseen,
        "marked": counters.marked,
        "too_big": counters.too_big,
        "limiter": side.verdict.as_ref().map(|verdict| verdict.diagnosis.limiter),
        "timeline": side.verdict.iter().flat_map(|verdict| &verdict.runs).map(run).collect::<Vec<_>>(),
    })
}

fn run(run: &Run) -> Value {
    json!({ "from_us": run.from_us, "to_us": run.to_us, "limiter": run.limiter, "detail": run.detail })
}

fn judged(report: &Report, side: &Side) -> Value {
    side.verdict.as_ref().map_or_else(|| diagnosis(&too_little(report)), |verdict| diagnosis(&verdict.diagnosis))
}

/// The diagnosis of a connection that was not worth following.
pub fn too_little(report: &Report) -> Diagnosis {
    let segments = report.main_side().counters.data_packets;
    Diagnosis::insufficient(match segments {
        0 if report.handshake.packets[1].is_none() && report.handshake.syns > 0 => {
            format!("it was never answered: {} SYN and no SYN-ACK were seen", report.handshake.syns)
        }
        0 => "it carried no payload".to_owned(),
        _ => format!("only {segments} segments with payload were seen"),
    })
}
