//! `fullpipe confirm`.

use fullpipe_host::{Journal, JournalError, RunId, SystemHost, confirm};
use fullpipe_report::{json, text};

use super::{Ended, journal, printed};
use crate::{args::ConfirmArgs, exit::Exit, failure::Failure, output::Output};

pub(super) fn run(args: &ConfirmArgs, output: Output) -> Ended {
    // Nothing was ever changed: no folder is made to say so.
    if journal::look()?.is_none() {
        return Err(JournalError::NoTrial.into());
    }
    let mut journal = journal::open()?;
    let run = chosen(args, &journal)?;
    let kept = confirm(&mut SystemHost::new(), &mut journal, run)?;
    printed(output.result(|| json::confirmed("confirm", &kept), |look| text::confirmed(&kept, look)))
}

fn chosen(args: &ConfirmArgs, journal: &Journal) -> Result<RunId, Failure> {
    if let Some(number) = args.run {
        return Ok(RunId(i64::try_from(number).unwrap_or(i64::MAX)));
    }
    let runs: Vec<RunId> = journal.on_trial()?.iter().map(|run| run.id).collect();
    match runs.as_slice() {
        [run] => Ok(*run),
        [] => Err(JournalError::NoTrial.into()),
        several => {
            let names = several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let message = format!("runs {names} are on trial; name the one to keep");
            Err(Failure::new(Exit::Usage, &message))
        }
    }
}
