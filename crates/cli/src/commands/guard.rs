//! `fullpipe guard`, which other commands start, and what a guardian that is gone left behind.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use fullpipe_host::{
    Journal, Outcome, SystemHost, UndoOptions, UndoReport, Which,
    guardian::{self, Bond},
    journal, undo,
};
use fullpipe_report::text;

use super::Ended;
use crate::{
    args::{Command, GuardArgs},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Output,
};

pub(super) fn run(args: &GuardArgs) -> Ended {
    let stop = interrupt::cancel_flag()?;
    let bond = if args.with_parent { Bond::Parent } else { Bond::Deadline };
    let ready = || {
        let mut stdout = io::stdout().lock();
        // Whoever started this and went away again has put nothing on trial.
        drop(writeln!(stdout, "ready").and_then(|()| stdout.flush()));
    };
    guardian::watch(&mut SystemHost::new(), &args.state_dir, &args.owner, bond, io::stdin(), ready, &stop)?;
    Ok(Exit::Ok)
}

/// This very program, which is its own guardian.
pub(super) fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::system("finding the own program", &error))
}

/// What was on trial when its process and its guardian were killed, or the power failed: a command that changes settings
/// takes it back first, any other names it. Where the journal can't be used, the command itself says so.
pub(super) fn see_to_leftovers(command: &Command, output: Output) {
    let changes = match command {
        Command::Apply(args) => !args.dry_run,
        Command::Undo(_) | Command::Tune(_) | Command::Reset(_) => true,
        Command::Serve(args) => args.allow_tune,
        Command::Guard(_) | Command::Key(_) | Command::Completions(_) | Command::Man(_) | Command::ExitCodes => return,
        Command::Lab(_) | Command::Stack(_) | Command::Demo(_) => return,
        _ => false,
    };
    let Ok(state_dir) = journal::state_dir() else { return };
    let Ok(Some(looked)) = Journal::look(&state_dir) else { return };
    let Ok(runs) = guardian::abandoned(&state_dir, &looked) else { return };
    drop(looked);
    if changes {
        guardian::sweep(&state_dir);
    }
    for run in runs {
        let number = run.id;
        if !changes {
            output.warning(&format!(
                "run {number} was left on trial by a process that is gone; `fullpipe undo {number}` takes it back\n"
            ));
            continue;
        }
        let taken_back = Journal::open_damaged(&state_dir).and_then(|mut journal| {
            let report = undo(&mut SystemHost::new(), &mut journal, Which::Run(number), UndoOptions::default())?;
            if !report.is_complete() {
                journal.end_trial(number)?;
            }
            Ok(report)
        });
        output.warning(&match taken_back {
            Ok(report) => {
                format!("run {number} was left on trial by a process that is gone: {}\n", became(&report))
            }
            Err(error) => format!("run {number} was left on trial by a process that is gone: {error}\n"),
        });
    }
}

/// What became of a run, in a few words.
fn became(report: &UndoReport) -> String {
    let gone = report.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Gone { .. })).count();
    // After a restart there is nothing to put back.
    let gone = if gone > 0 { format!(", {gone} gone by a restart or with a device") } else { String::new() };
    let hint = if report.is_complete() { "" } else { "; `fullpipe status` shows what is left" };
    format!("{} put back{gone}{hint}", text::restored(report))
}
