//! The documents about the journal.

use std::path::Path;

use fullpipe_host::{Entry, EntryKind, Left, Outcome, Run, RunState, UndoReport, UndoneEntry};
use serde_json::{Value, json};

use super::{document, with_problem};
use crate::{Problem, Reading, Standing, standing::lossy};

/// Every run, in the order given.
pub fn history(command: &str, runs: &[Standing]) -> Value {
    document(command, json!({ "runs": runs.iter().map(run).collect::<Vec<_>>() }))
}

/// What is in force, whether something of it was left behind by an interrupted run, and what undos left to others. `roots`: where
/// there may be more that only root sees.
pub fn status(command: &str, standing: &[Standing], left: &[Left], roots: Option<&Path>) -> Value {
    let runs: Vec<_> = standing.iter().map(run).collect();
    let interrupted = standing.iter().any(|standing| standing.run.state == RunState::Open);
    document(
        command,
        json!({
            "runs": runs,
            "left_behind": interrupted,
            "left": left.iter().map(of_others).collect::<Vec<_>>(),
            "root_only": roots.map(|folder| folder.display().to_string()),
        }),
    )
}

fn of_others(left: &Left) -> Value {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(lossy);
    let Left { run, entry, now } = left;
    let of = |kind| (entry.kind == kind).then_some(&entry.place);
    json!({
        "run": run,
        "kind": entry.kind,
        "knob": of(EntryKind::Setting),
        "file": of(EntryKind::File),
        "socket": of(EntryKind::Socket),
        "before": text(&entry.before),
        "intended": text(&entry.intended),
        "now": now.as_ref().ok().and_then(text),
        "problem": now.as_ref().err(),
        "claims_undo": left.claims_an_undo(),
    })
}

/// One run, beside what the host reads now.
pub fn show(command: &str, shown: &Standing) -> Value {
    document(command, json!({ "runs": [run(shown)] }))
}

/// A run that is kept from now on, and what somebody else made of its settings meanwhile.
pub fn confirmed(command: &str, kept: &Run, changed: &[String]) -> Value {
    let notes = kept.overridden.iter().map(ToString::to_string).chain(changed.iter().cloned());
    document(
        command,
        json!({
            "run": kept.id,
            "boot_files": kept.boot_files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "not_persisted": kept.not_persisted,
            "notes": notes.collect::<Vec<_>>(),
        }),
    )
}

/// What an undo did, or would do.
pub fn undo(command: &str, report: &UndoReport) -> Value {
    document(
        command,
        json!({
            "undone": report.entries.iter().map(undone).collect::<Vec<_>>(),
            "changes": report.entries.iter().filter_map(put_back).collect::<Vec<_>>(),
            "complete": report.is_complete(),
            "dry_run": report.dry_run,
            "journal_problem": report.unmarked.as_ref().map(ToString::to_string),
        }),
    )
}

/// What an undo would do, beside the error that nobody was there to agree to it.
pub fn undo_not_confirmed(command: &str, would: &UndoReport, problem: &Problem) -> Value {
    with_problem(undo(command, would), problem)
}

fn put_back(entry: &UndoneEntry) -> Option<Value> {
    let Outcome::Restored { was, now } = &entry.outcome else { return None };
    let of = |kind| (entry.kind == kind).then_some(&entry.place);
    Some(json!({
        "run": entry.run,
        "knob": of(EntryKind::Setting),
        "file": of(EntryKind::File),
        "far_run": of(EntryKind::FarRun),
        "program": of(EntryKind::Program),
        "socket": of(EntryKind::Socket),
        "from": was,
        "to": now,
    }))
}

fn run(standing: &Standing) -> Value {
    let Standing { run, readings, .. } = standing;
    let one = |(index, record): (usize, &Entry)| {
        let mut object = entry(record, readings.get(index));
        object["persisted"] = json!(standing.persists(record));
        object["not_lasting"] = json!(standing.not_lasting(record));
        object
    };
    let entries: Vec<_> = run.entries.iter().enumerate().map(one).collect();
    json!({
        "run": run.id,
        "started": run.started.to_string(),
        "command": run.command,
        "host": run.host,
        "state": run.state,
        "namespace": run.identity.namespace,
        "entries": entries,
    })
}

fn entry(entry: &Entry, reading: Option<&Reading>) -> Value {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(lossy);
    let (now, as_set, problem) = match reading {
        Some(Reading::AsSet) => (text(&entry.read_back), Some(true), None),
        Some(Reading::Other(now)) => (now.clone(), Some(false), None),
        Some(Reading::Unreadable(why)) => (None, None, Some(why)),
        Some(Reading::NotLooked) | None => (None, None, None),
    };
    json!({
        "kind": entry.kind,
        "knob": (entry.kind == EntryKind::Setting).then_some(&entry.place),
        "file": (entry.kind == EntryKind::File).then_some(&entry.place),
        "far_run": (entry.kind == EntryKind::FarRun).then_some(&entry.place),
        "program": (entry.kind == EntryKind::Program).then_some(&entry.place),
        "socket": (entry.kind == EntryKind::Socket).then_some(&entry.place),
        "before": text(&entry.before),
        "intended": text(&entry.intended),
        "read_back": text(&entry.read_back),
        "state": entry.state,
        "now": now,
        "as_set": as_set,
        "problem": problem,
    })
}

fn undone(entry: &UndoneEntry) -> Value {
    let mut object = json!({
        "run": entry.run,
        "kind": entry.kind,
        "place": entry.place,
        // The outcome's own spelling, also of those to come.
        "outcome": json!(entry.outcome)["outcome"],
        "now": null,
        "ours": null,
        "before": null,
        "by": null,
        "why": null,
    });
    match &entry.outcome {
        Outcome::Restored { now, .. } => object["now"] = json!(now),
        Outcome::Left { now, ours, before } => {
            object["now"] = json!(now);
            object["ours"] = json!(ours);
            object["before"] = json!(before);
        }
        Outcome::ChangedSince { now, ours, before, by } => {
            object["now"] = json!(now);
            object["ours"] = json!(ours);
            object["before"] = json!(before);
            object["by"] = json!(by);
        }
        Outcome::Gone { why } | Outcome::Failed { why } => object["why"] = json!(why),
        Outcome::AtFarEnd { server } => object["why"] = json!(format!("it is in force at {server}")),
        Outcome::Elsewhere { namespace } => object["why"] = json!(format!("it belongs to {namespace}")),
        _ => {}
    }
    object
}
