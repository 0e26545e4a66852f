//! The table of a scenario with a device: one transfer, or several, for each number of buffers.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use fullpipe_path::{DeviceSpec, Fitted, Random, Roles, Scenario, Sweep};
use fullpipe_tcp::{
    profile::{Budgets, Profile},
    socket::SocketOptions,
};
use fullpipe_units::Micros;

use super::trial::{self, Application, Outcome, Trial};
use crate::StackError;

/// From this round-trip time on, trials at the same time don't disturb each other's figures: a slow path leaves this
/// machine idle.
const UNHURRIED: Micros = Micros::from_millis(100);
const AT_ONCE: usize = 8;
/// Longer than any of these transfers.
const LIMIT: Duration = Duration::from_secs(300);
/// Steps of a fit; each one leaves a tenth of the error at the most.
const FIT_STEPS: usize = 4;

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

/// Makes the table of `scenario`, in which `device` is an end; `ready` sees each line as it comes.
///
/// # Errors
/// No lab can be made, or a transfer fails.
pub fn table(scenario: &Scenario, device: &DeviceSpec, ready: &(dyn Fn(&Row) + Sync)) -> Result<Vec<Row>, StackError> {
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
                let row = line(scenario, device, *sends, *buffers)?;
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

fn line(scenario: &Scenario, device: &DeviceSpec, sends: bool, buffers: u16) -> Result<Row, StackError> {
    let trial = trial(device, sends, buffers);
    let seed = |run: u32| Random::seed_of(scenario.seed, &format!("run {run}"));
    let runs = (0..device.runs).map(|run| trial::run(&scenario.path, seed(run), &trial)).collect::<Result<_, _>>()?;
    let published = sends.then(|| device.published.get(&buffers).copied()).flatten();
    let fitted = device.fitted.iter().any(|fit| fit.scenario == scenario.name && fit.buffers == buffers && sends);
    Ok(Row { buffers, sends, runs, published, fitted })
}

fn trial(device: &DeviceSpec, sends: bool, buffers: u16) -> Trial {
    let mut profile = Profile::NETBURNER;
    profile.budgets = match device.sweep {
        Sweep::All => Budgets::all(buffers),
        Sweep::OutOfOrder(others) => Budgets { out_of_order: buffers, ..Budgets::all(others) },
    };
    Trial {
        profile,
        options: SocketOptions::of(&profile),
        per_packet: device.per_packet.into(),
        bytes: device.bytes.get(),
        sends,
        application: if device.waits { Application::Waits } else { Application::Streams },
        limit: LIMIT,
    }
}

/// What a fit found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Which quantity.
    pub quantity: Fitted,
    /// Its value in microseconds.
    pub us: f64,
    /// The time that it gives.
    pub seconds: f64,
    /// The time that it was to give.
    pub published: f64,
}

/// Fits anew what `scenario` says was fitted to its own published times, and puts it into the scenario.
///
/// # Errors
/// As [`table`].
pub fn fit(scenario: &mut Scenario) -> Result<Vec<Found>, StackError> {
    let Some(mut device) = scenario.device.clone() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for fit in device.fitted.clone() {
        let Some(published) = device.published.get(&fit.buffers).copied() else { continue };
        if fit.scenario != scenario.name {
            continue;
        }
        let mut best: Option<Found> = None;
        for _ in 0..FIT_STEPS {
            let us = match fit.quantity {
                Fitted::PerPacket => device.per_packet.get(),
                Fitted::Rtt => scenario.path.rtt().get(),
            };
            let outcome = trial::run(&scenario.path, scenario.seed, &trial(&device, true, fit.buffers))?;
            let found = Found { quantity: fit.quantity, us: us as f64, seconds: outcome.seconds, published };
            let off = |found: &Found| (found.seconds - found.published).abs();
            if best.is_none_or(|best| off(&found) < off(&best)) {
                best = Some(found);
            }
            let counts = outcome.counts;
            let too_long_us = (outcome.seconds - published) * 1e6;
            match fit.quantity {
                Fitted::PerPacket => {
                    let packets = f64::from(counts.segments_sent + counts.segments_received);
                    device.per_packet = shifted(device.per_packet, -too_long_us / packets);
                }
                Fitted::Rtt => {
                    let rounds = f64::from(counts.segments_sent) / f64::from(fit.buffers);
                    stretch(scenario, -too_long_us / rounds);
                }
            }
        }
        if let Some(found) = best {
            match fit.quantity {
                Fitted::PerPacket => device.per_packet = Micros::new(found.us as u64),
                Fitted::Rtt => {
                    let now = scenario.path.rtt().get() as f64;
                    stretch(scenario, found.us - now);
                }
            }
            all.push(found);
        }
    }
    scenario.device = Some(device);
    Ok(all)
}

fn shifted(span: Micros, by_us: f64) -> Micros {
    Micros::new((span.get() as f64 + by_us).round().max(1.0) as u64)
}

/// Changes the round-trip time, half of it each way, at the first hop.
fn stretch(scenario: &mut Scenario, by_us: f64) {
    if let Some(hop) = scenario.path.hops.first_mut() {
        hop.ab.delay = shifted(hop.ab.delay, by_us / 2.0);
        hop.ba.delay = shifted(hop.ba.delay, by_us / 2.0);
    }
}
