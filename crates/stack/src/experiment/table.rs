//! The table of a scenario with a device: one transfer, or several, for each number of buffers.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use fullpipe_path::{DeviceSpec, Random, Roles, Scenario, Sweep};
use fullpipe_tcp::{
    profile::{Budgets, Profile},
    socket::SocketOptions,
};
use fullpipe_units::Micros;

use super::{
    trial::{self, Application, Outcome, Trial},
    undisturbed,
};
use crate::StackError;

/// From this round-trip time on, trials at the same time don't disturb each other's figures: a slow path leaves this
/// machine idle.
const UNHURRIED: Micros = Micros::from_millis(100);
const AT_ONCE: usize = 8;
/// Longer than any of these transfers.
const LIMIT: Duration = Duration::from_secs(300);

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of buffers.
    pub buffers: u16,
    /// Whether the device sent.
    pub sends: bool,
    /// What each run gave.
    pub runs: Vec<Outcome>,
    /// The published time in seconds.
    pub published: Option<f64>,
    /// Something of the scenario was fitted to the published time: the agreement is none of our doing.
    pub fitted: bool,
}

impl Row {
    /// The mean of all runs, in seconds.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().map(|run| run.seconds).sum::<f64>() / self.runs.len().max(1) as f64
    }

    /// How far that is from the published time, as a fraction of it.
    pub fn deviation(&self) -> Option<f64> {
        self.published.map(|published| self.seconds() / published - 1.0)
    }
}

/// Makes the table of `scenario`, in which `device` is an end; `ready` sees each line as it comes, and `stop` ends it.
///
/// # Errors
/// No lab can be made, a transfer fails, or it was stopped.
pub fn table(
    scenario: &Scenario,
    device: &DeviceSpec,
    ready: &(dyn Fn(&Row) + Sync),
    stop: &AtomicBool,
) -> Result<Vec<Row>, StackError> {
    let sends: &[bool] = match device.roles {
        Roles::Sends => &[true],
        Roles::Receives => &[false],
        Roles::Both => &[true, false],
    };
    let lines: Vec<(bool, u16)> =
        sends.iter().flat_map(|sends| device.buffers.iter().map(|buffers| (*sends, *buffers))).collect();
    let at_once = if scenario.path.rtt() >= UNHURRIED { AT_ONCE } else { 1 };
    let next = AtomicUsize::new(0);
    let workers = thread::scope(|scope| {
        let work = || {
            let mut made = Vec::new();
            while let Some((sends, buffers)) = lines.get(next.fetch_add(1, Relaxed)) {
                let row = line(scenario, device, (*sends, *buffers), stop)?;
                ready(&row);
                made.push(row);
            }
            Ok(made)
        };
        let started: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let joined = started.into_iter().map(|worker| worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        joined.collect::<Vec<Result<Vec<Row>, StackError>>>()
    });
    let mut rows = Vec::new();
    for made in workers {
        rows.extend(made?);
    }
    rows.sort_by_key(|row| (!row.sends, row.buffers));
    Ok(rows)
}

fn line(
    scenario: &Scenario,
    device: &DeviceSpec,
    (sends, buffers): (bool, u16),
    stop: &AtomicBool,
) -> Result<Row, StackError> {
    let trial = trial(device, sends, buffers);
    let seed = |run: u32| Random::seed_of(scenario.seed, &format!("run {run}"));
    let runs = (0..device.runs).map(|run| once(scenario, seed(run), &trial, stop)).collect::<Result<_, _>>()?;
    let published = sends.then(|| device.published.get(&buffers).copied()).flatten();
    let fitted = device.fitted.iter().any(|fit| fit.scenario == scenario.name && fit.buffers == buffers && sends);
    Ok(Row { buffers, sends, runs, published, fitted })
}

/// One run; the same again where this machine did not keep up with the path.
pub(super) fn once(scenario: &Scenario, seed: u64, trial: &Trial, stop: &AtomicBool) -> Result<Outcome, StackError> {
    undisturbed(|| trial::run(&scenario.path, seed, trial, stop), |outcome| outcome.valid)
}

pub(super) fn trial(device: &DeviceSpec, sends: bool, buffers: u16) -> Trial {
    let mut profile = Profile::NETBURNER;
    profile.budgets = match device.sweep {
        Sweep::All => Budgets::all(buffers),
        Sweep::OutOfOrder(others) => Budgets { out_of_order: buffers, ..Budgets::all(others) },
    };
    Trial {
        profile,
        options: SocketOptions::from_profile(&profile),
        per_packet: device.per_packet.into(),
        bytes: device.bytes.get(),
        sends,
        application: if device.waits { Application::Waits } else { Application::Streams },
        limit: LIMIT,
    }
}
