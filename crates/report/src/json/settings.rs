//! The documents about settings, plans for a platform, what was applied, and findings.

use fullpipe_host::{
    Applied, BootFile,
    windows::connections::{End, Observed},
};
use fullpipe_knobs::{
    Address, Goal, Plan,
    lint::{Finding, Level, sarif},
    reading::{Contradiction, SettingRow},
    verify::Verified,
};
use serde_json::{Value, json};

use super::{change, document, to_string, with_problem};
use crate::{AppliedPlan, ForecastRow, PlatformPlan, Problem, SettingsList, changes::file_diff};

fn forecast_row(row: &ForecastRow) -> Value {
    json!({
        "role": if row.direction == "receives" { "receiver" } else { "sender" },
        "before_bps": row.before.rate,
        "before_limiter": row.before.limiter,
        "after_bps": row.after.rate,
        "after_limiter": row.after.limiter,
    })
}

/// The settings of one machine.
pub fn settings(command: &str, list: &SettingsList<'_>) -> Value {
    let remarks = list.readings.iter().flat_map(|reading| {
        reading.remarks.iter().map(|remark| {
            json!({
                "file": reading.file,
                "line": remark.place.line,
                "column": remark.place.column,
                "kind": remark.kind,
                "message": remark.message,
            })
        })
    });
    document(
        command,
        json!({
            "platform": list.merged.settings.platform.to_string(),
            "settings": list.rows.iter().map(|one| row(list, one)).collect::<Vec<_>>(),
            "hidden": list.hidden,
            "files": list.readings.iter().map(|reading| json!({
                "file": reading.file, "format": reading.format, "others": reading.others,
            })).collect::<Vec<_>>(),
            "remarks": remarks.collect::<Vec<_>>(),
            "contradictions": list.contradictions().iter().map(contradiction).collect::<Vec<_>>(),
            "tuning_level": list.connections.and_then(|connections| connections.level.as_deref()),
            "connections": list.connections.iter().flat_map(|connections| &connections.observed).map(connection)
                .collect::<Vec<_>>(),
        }),
    )
}

fn connection(one: &Observed) -> Value {
    let end = |end: &End| json!({ "largest": end.largest, "pinned": end.pinned, "why": end.why });
    let verdict = one.verdict.as_ref().ok();
    json!({
        "local": one.connection.local.to_string(),
        "remote": one.connection.remote.to_string(),
        "pid": one.connection.pid,
        "program": one.program,
        "receive": verdict.map(|verdict| end(&verdict.receive)),
        "send": verdict.map(|verdict| end(&verdict.send)),
        "problem": one.verdict.as_ref().err().map(ToString::to_string),
    })
}

fn row(list: &SettingsList<'_>, row: &SettingRow) -> Value {
    json!({
        "knob": row.described.knob,
        "value": row.described.value,
        "default": row.described.default,
        "is_default": list.is_default(row),
        "honoured": row.described.honoured,
        "meaning": row.described.meaning,
        "unit": row.unit,
        "note": row.note,
        "file": row.file,
        "line": row.place.map(|place| place.line),
        "column": row.place.map(|place| place.column),
    })
}

fn contradiction(found: &Contradiction) -> Value {
    let place = |value: &Option<String>, (file, place): &(String, fullpipe_knobs::reading::Place)| json!({ "value": value, "file": file, "line": place.line, "column": place.column });
    json!({
        "knob": found.knob,
        "taken": place(&found.taken, &found.taken_from),
        "left": place(&found.left, &found.left_from),
        "message": found.message,
    })
}

/// A plan for a platform: also the file that `apply` takes.
pub fn plan(command: &str, answer: &PlatformPlan<'_>) -> Value {
    let request = answer.request;
    let files = answer.written.map(|(export, _)| {
        let file = |file: &fullpipe_knobs::export::ExportFile| {
            json!({ "name": file.name, "what": file.what, "bytes": file.contents.len() })
        };
        export.files.iter().map(file).collect::<Vec<_>>()
    });
    let left_out = answer.written.map(|(export, _)| {
        export.left_out.iter().map(|left| json!({ "knob": left.knob, "why": left.why })).collect::<Vec<_>>()
    });
    document(
        command,
        json!({
            "platform": request.platform.to_string(),
            "rate_bps": answer.has_path.then_some(request.rate),
            "rtt_us": answer.has_path.then_some(request.rtt),
            "goal": match request.goal { Goal::Bulk => "bulk", Goal::Interactive => "interactive" },
            "mtu": request.packets.segment().inner,
            "mss": request.packets.segment().mss(),
            "from_settings": request.settings.is_some(),
            "changes": answer.plan.changes.iter().enumerate().map(|(place, planned)| {
                let mut object = change(planned);
                object["from_known"] = answer.knows_before(planned).into();
                let forecast = answer.forecast.and_then(|forecast| forecast.changes.get(place));
                object["prediction"] = forecast.map_or(Value::Null, |forecast| json!({
                    "directions": forecast.rows.iter().map(forecast_row).collect::<Vec<_>>(),
                    "not_predicted": forecast.not_predicted,
                }));
                object
            }).collect::<Vec<_>>(),
            "prediction": answer.forecast.map(|forecast| json!({
                "directions": forecast.whole.iter().map(forecast_row).collect::<Vec<_>>(),
                "notes": forecast.notes,
            })),
            "notes": answer.plan.notes,
            "folder": answer.written.map(|(_, folder)| folder),
            "files": files.unwrap_or_default(),
            "left_out": left_out.unwrap_or_default(),
        }),
    )
}

fn changes(plan: &Plan) -> Vec<Value> {
    plan.changes.iter().map(change).collect()
}

/// What `apply` or `reset` did.
pub fn applied(command: &str, done: &AppliedPlan<'_>) -> Value {
    let one = |applied: &Applied| {
        json!({
            "knob": applied.address,
            "before": applied.before,
            "wanted": applied.wanted,
            "now": applied.now,
            "unchanged": applied.unchanged(),
            "clamped": applied.clamped(),
            "takes_effect": applied.takes_effect,
            "needs_restart": applied.needs_restart(),
            "at_start": applied.at_start,
        })
    };
    document(
        command,
        json!({
            "run": done.run.id,
            "changes": changes(done.plan),
            "notes": done.plan.notes,
            "applied": done.run.applied.iter().map(one).collect::<Vec<_>>(),
            "restart_needed": done.needs_restart(),
            "boot_files": done.run.boot_files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "not_persisted": done.run.not_persisted,
            "waiting": done.run.waiting,
            "confirm_within_s": done.confirm_within.filter(|_| done.run.id.is_some()).map(|within| within.as_secs()),
        }),
    )
}

/// What would be changed.
pub fn dry_run(command: &str, plan: &Plan, files: &[BootFile]) -> Value {
    let file = |file: &BootFile| {
        let lines = |wanted: char| {
            let lines = file_diff(file).into_iter().filter(move |(mark, _)| *mark == wanted);
            lines.map(|(_, line)| line).collect::<Vec<_>>()
        };
        json!({ "path": file.path.display().to_string(), "removed": lines('-'), "added": lines('+') })
    };
    document(
        command,
        json!({
            "dry_run": true,
            "changes": changes(plan),
            "notes": plan.notes,
            "files": files.iter().map(file).collect::<Vec<_>>(),
        }),
    )
}

/// What is to be said of recipes.
pub fn findings(command: &str, files: &[(String, Vec<Finding>)]) -> Value {
    let count = |level: Level| files.iter().flat_map(|(_, all)| all).filter(|finding| finding.level == level).count();
    let of_file = |(file, findings): &(String, Vec<Finding>)| {
        let row = |finding: &Finding| {
            json!({
                "file": file,
                "line": finding.line,
                "level": finding.level,
                "rule": finding.rule,
                "message": finding.message,
                "fix": finding.fix,
                "knob": finding.knob,
                "platform": finding.platform,
                "text": finding.text,
            })
        };
        findings.iter().map(row).collect::<Vec<_>>()
    };
    document(
        command,
        json!({
            "findings": files.iter().flat_map(of_file).collect::<Vec<_>>(),
            "errors": count(Level::Error),
            "warnings": count(Level::Warning),
            "notes": count(Level::Note),
            "fine": count(Level::Ok),
        }),
    )
}

/// What a machine took of a plan.
pub fn verified(command: &str, verified: &[Verified], unread: &[String]) -> Value {
    document(command, json!({ "verified": verified, "unread": unread }))
}

/// The findings as a SARIF 2.1.0 log.
pub fn sarif_log(files: &[(String, Vec<Finding>)]) -> String {
    let files: Vec<_> = files.iter().map(|(name, findings)| (name.as_str(), findings.as_slice())).collect();
    let log = serde_json::to_value(sarif(&files)).expect("a log is made of texts and numbers");
    to_string(&log)
}

/// Changes that nobody was there to agree to: the error, and what would have been changed.
pub fn not_confirmed(command: &str, plan: &Plan, problem: &Problem) -> Value {
    with_problem(document(command, json!({ "changes": changes(plan), "notes": plan.notes })), problem)
}

/// A plan out of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPlan {
    /// The plan.
    pub plan: Plan,
    /// The settings of which it did not know what is there.
    pub unread: Vec<Address>,
}

/// A file that is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPlan {
    /// What is wrong, with its place where it has one.
    pub problem: String,
}

/// Reads the plan out of a document of `plan`, `check`, `tune`, `demo` or `lab run`.
///
/// # Errors
///
/// Where the text is no JSON, is no document of ours, or has a change that is none.
pub fn read_plan(text: &str) -> Result<ReadPlan, NoPlan> {
    let wrong = |problem: String| NoPlan { problem };
    let document: Value = serde_json::from_str(text).map_err(|error| wrong(format!("no JSON: {error}")))?;
    if document["schema"] != super::SCHEMA && document["schema"] != super::SCHEMA_BEFORE {
        return Err(wrong(format!("its `schema` is not \"{}\"", super::SCHEMA)));
    }
    if let Some(error) = document["error"]["message"].as_str() {
        return Err(wrong(format!("it holds an error, not a plan: {error}")));
    }
    let (list, notes) = match &document["plan"] {
        Value::Object(plan) => (plan.get("changes"), plan.get("notes")),
        _ => (document.get("changes"), document.get("notes")),
    };
    let Some(Value::Array(list)) = list else {
        return Err(wrong("it has neither `changes` nor `plan.changes`".to_owned()));
    };
    let unread = list.iter().filter(|change| change["from_known"] == false);
    let unread = unread.filter_map(|change| change["knob"].as_str()?.parse().ok()).collect();
    let changes = (1..).zip(list).map(|(number, change)| {
        serde_json::from_value::<fullpipe_knobs::Change>(change.clone())
            .map_err(|error| wrong(format!("change {number} can't be read: {error}")))
    });
    let notes = notes.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Ok(ReadPlan { plan: Plan { changes: changes.collect::<Result<_, _>>()?, notes: notes.collect() }, unread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, sample};

    #[test]
    fn the_plan_of_a_measurement_is_read_back() {
        let outcome = sample::tuned();
        let text = to_string(&json::outcome("check", &outcome));
        assert_eq!(read_plan(&text), Ok(ReadPlan { plan: outcome.plan, unread: Vec::new() }));
    }

    #[test]
    fn what_is_no_plan_is_refused_with_what_is_wrong() {
        for (text, says) in [
            ("{", "no JSON: EOF"),
            ("[]", "schema"),
            (r#"{"schema":"fullpipe/1","command":"status"}"#, "neither"),
            (r#"{"schema":"fullpipe/1","error":{"message":"gone"}}"#, "gone"),
            (r#"{"schema":"fullpipe/1","changes":[{"host":"a"}]}"#, "change 1"),
            (r#"{"schema":"fullpipe/1","changes":[{"host":"a","knob":"two words"}]}"#, "two words"),
        ] {
            let problem = read_plan(text).unwrap_err().problem;
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }
}
