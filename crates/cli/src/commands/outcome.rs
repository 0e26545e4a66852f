//! How a run of the loop is shown, and the exit code that it has.

use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_report::{charts_of_outcome, json, text};
use fullpipe_tune::Outcome;

use super::{Ended, forecast};
use crate::{exit::Exit, output::Output, page::PageArgs};

/// What to do where tuning did nothing: `win10g-delack` gained only from a reset.
const RESET: &str = "nothing that was tried helped, and it is undone; settings of earlier attempts may be in the way: \
                     `fullpipe reset` on either host lists what differs from the system's own defaults before it asks \
                     (`fullpipe undo` takes it back); after it, and a restart where it says so, `fullpipe tune` applies \
                     and measures again";

/// Shows an outcome, its proofs beside what the simulator expects of the changes.
pub(super) fn show(command: &str, outcome: &Outcome, output: Output, page: &PageArgs) -> Ended {
    let predicted;
    let outcome = if outcome.proofs.is_empty() {
        outcome
    } else {
        let mut beside = outcome.clone();
        forecast::beside_proofs(&mut beside);
        predicted = beside;
        &predicted
    };
    page.result(
        output,
        || json::outcome(command, outcome),
        || charts_of_outcome(outcome),
        |look| text::outcome(outcome, look),
    )?;
    Ok(Exit::Ok)
}

/// Shows an outcome over an emulated path, whose exit code says whether all came out as expected.
#[cfg(target_os = "linux")]
pub(super) fn show_expected(command: &str, outcome: &Outcome, output: Output, page: &PageArgs) -> Ended {
    show(command, outcome, output, page)?;
    Ok(if outcome.as_expected() {
        Exit::Ok
    } else if outcome.path_error.is_some_and(|error| !error.valid) {
        Exit::PathNotKept
    } else {
        Exit::NotAsExpected
    })
}

/// Shows an outcome of which something should stay in force; nothing to change is fine, nothing that helped is not.
pub(super) fn show_kept(command: &str, outcome: &Outcome, output: Output, page: &PageArgs) -> Ended {
    if !is_in_vain(outcome) {
        show(command, outcome, output, page)?;
        return Ok(if is_left_alone(outcome) {
            Exit::NothingTried
        } else if is_gone_at_boot(outcome) {
            Exit::NotLasting
        } else {
            Exit::Ok
        });
    }
    let mut advised = outcome.clone();
    advised.notes.push(RESET.to_owned());
    show(command, &advised, output, page)?;
    Ok(Exit::NotProven)
}

/// Whether a setting limits a direction, and nothing was tried.
fn is_left_alone(outcome: &Outcome) -> bool {
    // Nothing that can be set makes an application read sooner.
    let is_set = |limiter, detail| match limiter {
        Limiter::ReceiveWindow => !matches!(detail, Some(Detail::ZeroWindow | Detail::SlowReader)),
        limiter => limiter == Limiter::SendBuffer,
    };
    let judged = || outcome.before.iter().map(|direction| &direction.diagnosis);
    outcome.proofs.is_empty() && judged().any(|judged| is_set(judged.limiter, judged.detail))
}

/// Whether something of what was kept is gone after a reboot although it was to last.
fn is_gone_at_boot(outcome: &Outcome) -> bool {
    outcome.kept.iter().any(|run| !run.until_reboot.is_empty())
}

/// Whether something was tried, and none of it was kept.
fn is_in_vain(outcome: &Outcome) -> bool {
    !outcome.proofs.is_empty() && !outcome.proofs.iter().any(|proof| proof.kept)
}

#[cfg(test)]
mod tests {
    use fullpipe_diagnose::proof::{Decision, Pair, compare};
    use fullpipe_tune::DirectionProof;
    use fullpipe_units::Rate;

    use super::*;

    /// Two directions of which the first `kept` were kept.
    fn tried(kept: usize) -> Outcome {
        let rate = Rate::from_bps(6_400_000);
        let proof = compare(&[Pair { before: rate, after: rate }; 4], 1.05);
        let proof_of = |place: usize| DirectionProof {
            direction: ["a->b", "b->a"][place].to_owned(),
            knobs: Vec::new(),
            proof,
            decision: Decision::NotShown,
            helped: place < kept,
            kept: place < kept,
            predicted: None,
        };
        Outcome { proofs: vec![proof_of(0), proof_of(1)], ..Outcome::default() }
    }

    #[test]
    fn a_reset_is_offered_where_all_that_was_tried_was_in_vain() {
        assert!(is_in_vain(&tried(0)));
        assert!(!is_in_vain(&tried(1)), "one direction gained");
        assert!(!is_in_vain(&Outcome::default()), "there was nothing to try");
    }
}
