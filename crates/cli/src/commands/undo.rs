//! `fullpipe undo`.

use fullpipe_host::{
    Entry, EntryKind, Journal, JournalError, Outcome, RunId, RunRecord, RunState, SystemHost, UndoOptions, UndoReport,
    Which, undo,
};
use fullpipe_report::{Standing, json, text};

use fullpipe_tune::Key;

use super::{Ended, journal, printed};
use crate::{args::UndoArgs, confirm::confirm, exit::Exit, failure::Failure, interrupt, output::Output};

pub(super) fn run(args: &UndoArgs, output: Output) -> Ended {
    let options = UndoOptions { force: args.force, leave_changed: args.leave_changed, dry_run: args.dry_run };
    let mut damaged = Exit::Ok;
    let report = match (journal::look()?, args.runs.first()) {
        // Nothing was ever changed: no folder is made to say so.
        (None, None) => UndoReport { dry_run: args.dry_run, ..UndoReport::default() },
        (None, Some(run)) if args.dry_run => return Err(JournalError::NoSuchRun { run: numbered(*run) }.into()),
        (seen, _) => {
            let mut journal = match seen {
                Some(seen) if args.dry_run => seen,
                _ => journal::open_to_undo()?,
            };
            let runs = chosen(args, &journal)?;
            if let Some(refused) = ask("undo", &mut journal, &runs, args.yes, options, output)? {
                return Ok(refused);
            }
            let mut report = undo(&mut SystemHost::new(), &mut journal, Which::Runs(&runs), options)?;
            if let Some(file) = &args.key_file {
                put_back_far(&mut journal, &Key::read(file)?, &mut report)?;
            }
            damaged = journal::exit_of(&journal, output);
            report
        }
    };
    let ended = show("undo", &report, output)?;
    if damaged == Exit::Ok && args.runs.is_empty() && report.entries.is_empty() {
        damaged = journal::exit_of_look("undo", None, output);
    }
    Ok(if ended == Exit::Ok { damaged } else { ended })
}

/// Puts back what `first` and every later run changed.
pub(super) fn back_to(first: RunId, yes: bool, output: Output) -> Ended {
    let mut journal = journal::open()?;
    let first = journal.run(first)?.id;
    let runs: Vec<RunId> = journal.outstanding()?.iter().map(|run| run.id).filter(|run| *run >= first).collect();
    let options = UndoOptions::default();
    if let Some(refused) = ask("reset", &mut journal, &runs, yes, options, output)? {
        return Ok(refused);
    }
    let report = undo(&mut SystemHost::new(), &mut journal, Which::Runs(&runs), options)?;
    show("reset", &report, output)
}

fn show(command: &str, report: &UndoReport, output: Output) -> Ended {
    printed(output.result(|| json::undo(command, report), |look| text::undo(report, journal::is_all(), look)))?;
    Ok(exit(report))
}

/// Shows the runs, with what would be left alone, and asks, unless there is nothing to put back or nothing is to be changed.
/// Gives the exit code where nobody can be asked and the list is all that there is to give.
fn ask(
    command: &str,
    journal: &mut Journal,
    runs: &[RunId],
    yes: bool,
    options: UndoOptions,
    output: Output,
) -> Result<Option<Exit>, Failure> {
    if runs.is_empty() || yes || options.dry_run {
        return Ok(None);
    }
    let would = UndoOptions { dry_run: true, ..options };
    let would = undo(&mut SystemHost::new(), journal, Which::Runs(runs), would)?;
    if output.is_json() {
        let failure = Failure::nobody_to_ask();
        let document = || json::undo_not_confirmed(command, &would, &failure.problem());
        printed(output.result(document, |_| String::new()))?;
        return Ok(Some(failure.exit));
    }
    let outstanding = journal.outstanding()?;
    let affected: Vec<RunRecord> = outstanding.into_iter().filter(|run| runs.contains(&run.id)).collect();
    let affected: Vec<_> = affected.into_iter().map(Standing::recorded).collect();
    output.remark(&text::history(&affected, true, output.look()));
    if !would.is_complete() {
        output.remark(&text::undo(&would, true, output.look()));
    }
    confirm(output, yes, "Put back what was there before?").map(|()| None)
}

fn numbered(run: u64) -> RunId {
    RunId(i64::try_from(run).unwrap_or(i64::MAX))
}

/// Which runs are meant.
fn chosen(args: &UndoArgs, journal: &Journal) -> Result<Vec<RunId>, Failure> {
    if !args.runs.is_empty() {
        return args.runs.iter().map(|number| Ok(journal.run(numbered(*number))?.id)).collect();
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

/// Has the far ends undo what is theirs in `report`.
fn put_back_far(journal: &mut Journal, key: &Key, report: &mut UndoReport) -> Result<(), Failure> {
    let cancel = interrupt::cancel_flag()?;
    for entry in report.entries.iter_mut().filter(|entry| matches!(entry.outcome, Outcome::AtFarEnd { .. })) {
        let Some(run) = entry.run else { continue };
        let Some(far) = journal.run(run)?.far() else { continue };
        entry.outcome = match fullpipe_tune::undo_far(&far, key.clone(), &cancel) {
            Ok(count) => {
                journal.far_is_undone(run)?;
                let entries = journal.run(run)?.entries;
                let changed = entries.iter().find(|entry| entry.kind == EntryKind::FarRun);
                match changed {
                    _ if count == 0 => Outcome::AlreadyBack,
                    Some(Entry { before, intended, .. }) => Outcome::Restored {
                        was: Some(one_line(intended.as_ref())),
                        now: Some(one_line(before.as_ref())),
                    },
                    None => Outcome::Restored { was: None, now: None },
                }
            }
            Err(error) => Outcome::Failed { why: error.to_string() },
        };
    }
    Ok(())
}

/// What a far run says of its settings, on one line.
fn one_line(text: Option<&Vec<u8>>) -> String {
    let text = text.map(Vec::as_slice).unwrap_or_default();
    String::from_utf8_lossy(text).lines().collect::<Vec<_>>().join("; ")
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
