//! `fullpipe undo`.

use fullpipe_host::{Journal, Outcome, RunId, RunRecord, RunState, SystemHost, UndoOptions, UndoReport, Which};
use fullpipe_report::{json, text};

use super::{Ended, journal, printed};
use crate::{args::UndoArgs, confirm::confirm, exit::Exit, failure::Failure, output::Output};

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
            let report = put_back(&mut journal, &runs, args.force)?;
            damaged = journal::exit_of(&journal, output);
            report
        }
    };
    let ended = show("undo", &report, output)?;
    if damaged == Exit::Ok && args.run.is_none() && report.entries.is_empty() {
        damaged = journal::exit_of_look(None, output);
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
    printed(output.result(|| json::undo(command, report), |look| text::undo(report, look)))?;
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
    output.remark(&text::history(&affected, output.look()));
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
