//! `fullpipe check` and `fullpipe tune`.

use std::{num::NonZeroU32, time::Duration};

use fullpipe_diagnose::{Limiter, proof::Criteria};
use fullpipe_host::journal;
use fullpipe_measure::Direction;
use fullpipe_report::text;
use fullpipe_tune::{Destination, Expectation, FarOptions, Key, Lengths, PlanOptions, TuneOptions};
use fullpipe_units::Rate;

use super::{Ended, guard, outcome};
use crate::{
    args::{CheckArgs, TestArgs, TuneArgs, Which},
    confirm::{self, confirm},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Output,
    progress::Progress,
};

pub(super) fn check(args: &CheckArgs, output: Output) -> Ended {
    args.page.check()?;
    let options = far_options(&args.test, PlanOptions::default())?;
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new("check", output);
    let result = fullpipe_tune::check(&options, &cancel, &mut progress);
    progress.finish();
    let mut result = result?;
    let directions = result.before.iter().map(|one| (one.name.as_str(), one.rate_bps, one.diagnosis.limiter));
    result.expectations = gates(directions, args.min_rate, &args.fail_on);
    let is_passed = result.expectations.iter().all(|gate| gate.met);
    outcome::show("check", &result, output, &args.page)?;
    Ok(if is_passed { Exit::Ok } else { Exit::NotAsExpected })
}

pub(super) fn tune(args: &TuneArgs, output: Output) -> Ended {
    // Nobody shall wait for a measurement only to hear that --yes is missing.
    confirm::possible(output, args.yes)?;
    args.page.check()?;
    if args.destination.is_some() {
        one_destination()?;
    }
    let usual = PlanOptions::default();
    let plan_options = PlanOptions {
        rate: args.rate,
        connections: args.connections.map_or(usual.connections, NonZeroU32::get),
        memory_bound: args.memory,
        allow_override: args.allow_override,
    };
    let options = TuneOptions {
        far: far_options(&args.test, plan_options)?,
        key: args.key_file.as_deref().map(Key::read).transpose()?,
        persist: args.persist,
        confirm_within: args.confirm_within,
        state_dir: journal::state_dir()?,
        guard: Some(guard::program()?),
        criteria: Criteria::default(),
        destination: args.destination.map(|prefix| Destination { prefix, metrics: args.route.clone() }),
    };
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new("tune", output);
    let line = progress.line();
    let mut refused = None;
    let result = fullpipe_tune::tune(
        &options,
        &mut |plan| {
            let answer = line.suspend(|| {
                if !args.yes {
                    output.remark(&text::plan(plan, output.look()));
                }
                confirm(output, args.yes, "Try these changes, and keep only what helps?")
            });
            answer.map_err(|failure| refused = Some(failure)).is_ok()
        },
        &cancel,
        &mut progress,
    );
    progress.finish();
    match refused {
        Some(failure) => Err(failure),
        None => outcome::show_kept("tune", &result?, output, &args.page),
    }
}

/// Whether settings for one destination can be tried at all: known before anything is measured.
#[cfg(target_os = "linux")]
fn one_destination() -> Result<(), Failure> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::new(Exit::NoPermission, "routes are changed for --destination, which takes root; run it with sudo"))
}

#[cfg(not(target_os = "linux"))]
fn one_destination() -> Result<(), Failure> {
    Err(Failure::new(Exit::Unsupported, "--destination takes Linux, whose routes carry what TCP goes by"))
}

/// The gates, of each direction, and whether it passed.
fn gates<'d>(
    directions: impl Iterator<Item = (&'d str, Rate, Limiter)>,
    min_rate: Option<Rate>,
    fail_on: &[Limiter],
) -> Vec<Expectation> {
    let refused = fail_on.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut gates = Vec::new();
    for (direction, rate, limiter) in directions {
        let mut gate = |expected: String, found: String, met: bool| {
            gates.push(Expectation { direction: direction.to_owned(), expected, found, met });
        };
        if let Some(least) = min_rate {
            gate(format!("at least {least} (--min-rate)"), rate.to_string(), rate >= least);
        }
        if !fail_on.is_empty() {
            gate(format!("not limited by {refused} (--fail-on)"), limiter.to_string(), !fail_on.contains(&limiter));
        }
    }
    gates
}

fn far_options(test: &TestArgs, plan_options: PlanOptions) -> Result<FarOptions, Failure> {
    Ok(FarOptions {
        target: test.host.parse()?,
        directions: match test.direction {
            Which::Up => vec![Direction::Up],
            Which::Down => vec![Direction::Down],
            Which::Both => vec![Direction::Up, Direction::Down],
        },
        streams: test.streams.into(),
        congestion_control: test.congestion.clone(),
        lengths: test.seconds.map(|seconds| Lengths {
            omit: test.omit.map_or(Duration::from_secs(1), Duration::from),
            measure: seconds.into(),
        }),
        plan_options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_missed_by_a_low_rate_or_a_named_limiter() {
        let rate = Rate::from_bps(6_400_000);
        let check =
            |min_rate, fail_on: &[_]| gates([("a->b", rate, Limiter::ReceiveWindow)].into_iter(), min_rate, fail_on);
        assert!(check(None, &[]).is_empty());
        assert!(check(Some(rate), &[Limiter::Path]).iter().all(|gate| gate.met));
        let missed = check(Some(Rate::from_bps(80_000_000)), &[Limiter::Path, Limiter::ReceiveWindow]);
        let shown = missed.iter().map(|gate| (gate.expected.as_str(), gate.found.as_str(), gate.met));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                ("at least 80.0 Mbit/s (--min-rate)", "6.40 Mbit/s", false),
                ("not limited by path, receive window (--fail-on)", "receive window", false),
            ]
        );
    }
}
