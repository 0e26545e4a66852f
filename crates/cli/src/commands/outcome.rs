//! How a run of the loop is shown, and the exit code that it has.

use fullpipe_report::{json, text};
use fullpipe_tune::Outcome;

use super::{Ended, printed};
use crate::{exit::Exit, output::Output};

/// What to do where tuning did nothing: `win10g-delack` gained only from a reset.
const RESET: &str = "nothing that was tried helped, and it is undone; settings of earlier attempts may be in the way: \
                     `fullpipe reset` on either host lists what differs from the system's own defaults before it asks \
                     (`fullpipe undo` takes it back); after it, and a restart where it says so, `fullpipe tune` applies \
                     and measures again";

/// Shows an outcome.
pub(super) fn show(command: &str, outcome: &Outcome, output: Output) -> Ended {
    printed(output.result(|| json::outcome(command, outcome), |look| text::outcome(outcome, look)))
}

/// Shows an outcome over a made path, whose exit code says whether all came out as expected.
#[cfg(target_os = "linux")]
pub(super) fn show_expected(command: &str, outcome: &Outcome, output: Output) -> Ended {
    show(command, outcome, output)?;
    Ok(if outcome.path_error.is_some_and(|error| !error.valid) {
        Exit::PathNotKept
    } else if outcome.as_expected() {
        Exit::Ok
    } else {
        Exit::NotAsExpected
    })
}

/// Shows an outcome of which something should stay in force; nothing to change is fine, nothing that helped is not.
pub(super) fn show_kept(command: &str, outcome: &Outcome, output: Output) -> Ended {
    let tried = !outcome.proofs.is_empty();
    let kept = outcome.proofs.iter().any(|proof| proof.kept);
    if !tried || kept {
        show(command, outcome, output)?;
        return Ok(Exit::Ok);
    }
    let mut advised = outcome.clone();
    advised.notes.push(RESET.to_owned());
    show(command, &advised, output)?;
    Ok(Exit::NotProven)
}
