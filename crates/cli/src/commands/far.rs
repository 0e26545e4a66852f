//! `fullpipe check` and `fullpipe tune`.

use std::{num::NonZeroU32, time::Duration};

use fullpipe_diagnose::proof::Criteria;
use fullpipe_host::journal;
use fullpipe_measure::Direction;
use fullpipe_report::text;
use fullpipe_tune::{FarOptions, Key, Lengths, TuneOptions, Wishes};

use super::{Ended, guard, outcome};
use crate::{
    args::{CheckArgs, TestArgs, TuneArgs, Which},
    confirm::{self, confirm},
    failure::Failure,
    interrupt,
    output::Output,
    progress::Progress,
};

pub(super) fn check(args: &CheckArgs, output: Output) -> Ended {
    let options = far_options(&args.test, Wishes::default())?;
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new(output);
    let result = fullpipe_tune::check(&options, &cancel, &mut progress);
    progress.finish();
    outcome::show("check", &result?, output)
}

pub(super) fn tune(args: &TuneArgs, output: Output) -> Ended {
    // Nobody shall wait for a measurement only to hear that --yes is missing.
    confirm::possible(output, args.yes)?;
    let usual = Wishes::default();
    let wishes = Wishes {
        rate: args.rate,
        connections: args.connections.map_or(usual.connections, NonZeroU32::get),
        memory_bound: args.memory,
        allow_override: args.allow_override,
    };
    let options = TuneOptions {
        far: far_options(&args.test, wishes)?,
        key: args.key_file.as_deref().map(Key::read).transpose()?,
        persist: args.persist,
        confirm_within: args.confirm_within,
        state_dir: journal::state_dir()?,
        guard: Some(guard::program()?),
        criteria: Criteria::default(),
    };
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new(output);
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
        None => outcome::show_kept("tune", &result?, output),
    }
}

fn far_options(test: &TestArgs, wishes: Wishes) -> Result<FarOptions, Failure> {
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
        wishes,
    })
}
