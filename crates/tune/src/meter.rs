//! Whatever can run a measurement between two ends: the lab's pair, or this host and a far one.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use fullpipe_diagnose::RttSummary;
use fullpipe_measure::{Client, Measurement, Phase, Progress, TestSpec};
use fullpipe_units::Micros;

use crate::{
    error::TuneError,
    event::{Event, Observer},
};

/// Measures between two ends.
pub(crate) trait Meter {
    /// Round trips before any load, and the path MTU where the far end helps to find it.
    fn prepare(&mut self) -> Result<Option<RttSummary>, TuneError>;
    /// Runs one test.
    fn measure(&mut self, spec: &TestSpec, observer: &mut dyn Observer) -> Result<Measurement, TuneError>;
}

/// Measures from this thread's host to the server of a client.
pub(crate) struct ClientMeter<'c> {
    pub(crate) client: &'c Mutex<Client>,
    pub(crate) cancel: &'c AtomicBool,
}

impl Meter for ClientMeter<'_> {
    fn prepare(&mut self) -> Result<Option<RttSummary>, TuneError> {
        prepare(&mut self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn measure(&mut self, spec: &TestSpec, observer: &mut dyn Observer) -> Result<Measurement, TuneError> {
        run(&mut self.client.lock().unwrap_or_else(PoisonError::into_inner), spec, self.cancel, observer)
    }
}

/// Idle round trips and path MTU; a foreign iperf3 server helps with neither.
pub(crate) fn prepare(client: &mut Client) -> Result<Option<RttSummary>, TuneError> {
    if client.hello().is_none() {
        return Ok(None);
    }
    let rtt = client.ping(PINGS)?;
    // A path on which probes vanish is measured all the same; the client keeps what it found.
    drop(client.probe_mtu());
    Ok(Some(rtt))
}

/// Round trips without load: enough for a median, few enough for a path of half a second.
const PINGS: u32 = 10;

/// One test, with its progress reported.
pub(crate) fn run(
    client: &mut Client,
    spec: &TestSpec,
    cancel: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Measurement, TuneError> {
    let mut tell = |progress: Progress| {
        let rate = progress.up_bps.or(progress.down_bps);
        if let (Phase::Omitted | Phase::Running, Some(rate)) = (progress.phase, rate) {
            observer.on(Event::Tick { elapsed: Micros::from(progress.elapsed), rate, rtt: progress.rtt_us });
        }
    };
    let measured = client.run(spec, cancel, &mut tell)?;
    if cancel.load(Relaxed) { Err(TuneError::Interrupted) } else { Ok(measured) }
}

/// How long a test takes, and how much of its beginning is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Left out of the steady rate: the slow start.
    pub omit: Duration,
    /// Measured after that.
    pub measure: Duration,
}

impl Lengths {
    /// Long enough for a path of this round-trip time: the slow start doubles each round trip and is over, losses of
    /// its last step included, after about twenty; what is measured covers fifty more.
    pub fn for_rtt(rtt: Micros) -> Self {
        let rtt = Duration::from(rtt);
        let within = |rounds: u32, least: u64, most: u64| {
            (rtt * rounds).clamp(Duration::from_millis(least), Duration::from_millis(most))
        };
        Self { omit: within(20, 1_000, 6_000), measure: within(50, 3_000, 15_000) }
    }

    /// The shorter test of which a proof takes many.
    pub fn shortened(self) -> Self {
        Self { omit: self.omit, measure: self.measure.mul_f64(0.6).max(Duration::from_millis(1_500)) }
    }

    /// Both parts together.
    pub(crate) fn whole(self) -> Duration {
        self.omit + self.measure
    }
}
