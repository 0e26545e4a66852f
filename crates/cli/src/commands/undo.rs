//! `fullpipe undo`.

use fullpipe_host::{
    Entry, EntryKind, Journal, Outcome, RunId, RunRecord, RunState, SystemHost, UndoOptions, UndoReport, Which,
};
use fullpipe_report::{Standing, json, text};

use fullpipe_tune::Key;

use super::{Ended, journal, printed};
use crate::{args::UndoArgs, confirm::confirm, exit::Exit, failure::Failure, interrupt, output::Output};

pub(super) fn run(args: &UndoArgs, output: Output) -> Ended {
    let mut damaged = Exit::Ok;
    let report = match journal::look()? {
        // Nothing was ever changed: no folder is made to say so.
        None if args.run.is_none() => UndoReport::default(),
        _ => {
            let mut journal = journal::open_to_undo()?;
            let runs = chosen(args, &journal)?;
            if let Some(refused) = ask("undo", &journal, &runs, args.yes, output)? {
                return Ok(refused);
            }
            let mut report = put_back(&mut journal, &runs, args.force)?;
            if let Some(file) = &args.key_file {
                put_back_far(&mut journal, &Key::read(file)?, &mut report)?;
            }
            damaged = journal::exit_of(&journal, output);
            report
        }
    };
    let ended = show("undo", &report, output)?;
    if damaged == Exit::Ok && args.run.is_none() && report.entries.is_empty() {
        damaged = journal::exit_of_look("undo", None, output);
    }
    Ok(if ended == Exit::Ok { damaged } else { ended })
}

/// Puts back what `first` and every later run changed.
pub(super) fn back_to(first: RunId, yes: bool, output: Output) -> Ended {
    let mut journal = journal::open()?;
    let first = journal.run(first)?.id;
    let runs: Vec<RunId> = journal.outstanding()?.iter().map(|run| run.id).filter(|run| *run >= first).collect();
    if let Some(refused) = ask("reset", &journal, &runs, yes, output)? {
        return Ok(refused);
    }
    let report = put_back(&mut journal, &runs, false)?;
    show("reset", &report, output)
}

fn show(command: &str, report: &UndoReport, output: Output) -> Ended {
    printed(output.result(|| json::undo(command, report), |look| text::undo(report, journal::is_all(), look)))?;
    Ok(exit(report))
}

/// Shows the runs and asks, unless there is nothing to put back. Gives the exit code where nobody can be asked and the
/// list is all that there is to give.
fn ask(command: &str, journal: &Journal, runs: &[RunId], yes: bool, output: Output) -> Result<Option<Exit>, Failure> {
    if runs.is_empty() || yes {
        return Ok(None);
    }
    let outstanding = journal.outstanding()?;
    let affected: Vec<RunRecord> = outstanding.into_iter().filter(|run| runs.contains(&run.id)).collect();
    if output.is_json() {
        let failure = Failure::nobody_to_ask();
        let document = || json::undo_not_confirmed(command, &affected, &failure.problem());
        printed(output.result(document, |_| String::new()))?;
        return Ok(Some(failure.exit));
    }
    let affected: Vec<_> = affected.into_iter().map(Standing::recorded).collect();
    output.remark(&text::history(&affected, true, output.look()));
    confirm(output, yes, "Put back what was there before?").map(|()| None)
}

/// Which runs are meant, newest first.
fn chosen(args: &UndoArgs, journal: &Journal) -> Result<Vec<RunId>, Failure> {
    if let Some(number) = args.run {
        let run = RunId(i64::try_from(number).unwrap_or(i64::MAX));
        return Ok(vec![journal.run(run)?.id]);
    }
    let outstanding = journal.outstanding()?;
    let interrupted = outstanding.iter().any(|run| run.state != RunState::Kept);
    Ok(match () {
        () if args.all => outstanding.iter().map(|run| run.id).collect(),
        () if (interrupted || args.interrupted) && !args.last => {
            outstanding.iter().filter(|run| run.state != RunState::Kept).map(|run| run.id).collect()
        }
        () => outstanding.iter().take(1).map(|run| run.id).collect(),
    })
}

/// Undoes each run in the order given; one report over all of them.
fn put_back(journal: &mut Journal, runs: &[RunId], force: bool) -> Result<UndoReport, Failure> {
    let mut whole = UndoReport::default();
    for run in runs {
        let report = fullpipe_host::undo(&mut SystemHost::new(), journal, Which::Run(*run), UndoOptions { force })?;
        whole.entries.extend(report.entries);
        whole.unmarked = whole.unmarked.or(report.unmarked);
    }
    Ok(whole)
}

/// Has the far ends undo what is theirs in `report`.
fn put_back_far(journal: &mut Journal, key: &Key, report: &mut UndoReport) -> Result<(), Failure> {
    let cancel = interrupt::cancel_flag()?;
    for entry in report.entries.iter_mut().filter(|entry| matches!(entry.outcome, Outcome::AtFarEnd { .. })) {
        let Some(run) = entry.run else { continue };
        let Some(far) = journal.run(run)?.far() else { continue };
        entry.outcome = match fullpipe_tune::undo_far(&far, key.clone(), &cancel) {
            Ok(count) => {
                journal.far_is_undone(run)?;
                let was = journal.run(run)?.entries.iter().find(|entry| entry.kind == EntryKind::FarRun).map(before);
                if count == 0 { Outcome::AlreadyBack } else { Outcome::Restored { now: was } }
            }
            Err(error) => Outcome::Failed { why: error.to_string() },
        };
    }
    Ok(())
}

/// What was there before, on one line.
fn before(entry: &Entry) -> String {
    String::from_utf8_lossy(entry.before.as_deref().unwrap_or_default()).lines().collect::<Vec<_>>().join("; ")
}

/// The worst that happened decides.
fn exit(report: &UndoReport) -> Exit {
    let any = |matches: fn(&Outcome) -> bool| report.entries.iter().any(|entry| matches(&entry.outcome));
    if any(|outcome| matches!(outcome, Outcome::Failed { .. })) {
        Exit::SettingUnavailable
    } else if any(|outcome| matches!(outcome, Outcome::ChangedSince { .. })) {
        Exit::ChangedSince
    } else if report.unmarked.is_some() {
        Exit::JournalUnusable
    } else if report.is_complete() {
        Exit::Ok
    } else {
        Exit::NotAsExpected
    }
}
