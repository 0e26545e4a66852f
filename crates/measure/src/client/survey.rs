//! Several tests that answer one question together: which message size, how many streams, how much load on the latency.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use fullpipe_units::{Bytes, Rate};
use serde::Serialize;

use super::Client;
use crate::{
    error::MeasureError,
    exchange::{ExchangeReport, ExchangeSpec, Latency},
    measurement::{Cpu, Measurement, PeerKind},
    spec::{Direction, Length, TestDirection, TestSpec},
};

/// What one message size costs and carries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeRow {
    /// The size of a message, which is of one write.
    pub size: Bytes,
    /// From here to the host.
    pub up: SizeSide,
    /// From the host to here.
    pub down: SizeSide,
    /// A message of this size and an answer of one byte, small writes leaving at once; absent with a foreign server.
    pub round_trip_us: Option<f64>,
    /// The same where the message is written in two halves and Nagle's algorithm is on: the second half waits for the
    /// acknowledgement of the first, and that for the delay of the receiver's.
    pub split_us: Option<f64>,
}

/// One direction of a [`SizeRow`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeSide {
    /// Payload rate, as the receiver counted.
    pub rate_bps: Option<Rate>,
    /// Messages in a second.
    pub messages_per_second: Option<f64>,
    /// Processor seconds of this end's process per 10^9 B.
    pub own_seconds_per_gb: Option<f64>,
    /// Of the far end's.
    pub far_seconds_per_gb: Option<f64>,
    /// Segments sent again.
    pub retransmits: Option<u64>,
}

/// What so many streams carry together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamsRow {
    /// How many.
    pub streams: u32,
    /// From here to the host, together.
    pub up_bps: Option<Rate>,
    /// From the host to here, together.
    pub down_bps: Option<Rate>,
    /// Segments sent again, both directions together.
    pub retransmits: Option<u64>,
}

/// Round trips beside payload in a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Which way the payload goes.
    pub direction: Direction,
    /// What it carried meanwhile.
    pub rate_bps: Option<Rate>,
    /// The round trips, on a connection of their own.
    pub latency: Option<Latency>,
    /// How many of these go one after another into a minute.
    pub per_minute: Option<f64>,
}

/// Round trips without and with load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnderLoad {
    /// Without.
    pub idle: Option<Latency>,
    /// How many of these go one after another into a minute.
    pub idle_per_minute: Option<f64>,
    /// With payload in each direction in turn.
    pub loaded: Vec<Loaded>,
}

/// What is told while tests run: how many are done, of how many.
pub(crate) type Done<'a> = &'a mut (dyn FnMut(usize, usize) + Send);

impl Client {
    /// Runs a test of each direction with every message size; round trips, too, where the server is ours. `spec` gives
    /// all but the size. A caller that cancels gets the rows that are complete.
    ///
    /// # Errors
    /// Those of [`Client::run`].
    pub fn sizes(
        &mut self,
        spec: &TestSpec,
        sizes: &[Bytes],
        cancel: &AtomicBool,
        done: Done<'_>,
    ) -> Result<Vec<SizeRow>, MeasureError> {
        let mut rows = Vec::new();
        for (index, &size) in sizes.iter().enumerate() {
            done(index, sizes.len());
            let [up, down] = [TestDirection::Up, TestDirection::Down].map(|direction| {
                let spec = TestSpec { block: size, direction, pings: 0, ..spec.clone() };
                self.run(&spec, cancel, &mut |_| ()).map(|measurement| side(&measurement, size))
            });
            let (up, down) = (up?, down?);
            let mut row = SizeRow { size, up, down, round_trip_us: None, split_us: None };
            if self.kind == PeerKind::Fullpipe && !cancel.load(Ordering::Relaxed) {
                row.round_trip_us = self.median(size, false, cancel)?;
                row.split_us = self.median(size, true, cancel)?;
            }
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn median(&mut self, size: Bytes, split: bool, cancel: &AtomicBool) -> Result<Option<f64>, MeasureError> {
        // A delayed acknowledgement takes 40 ms on Linux and 200 ms elsewhere: enough of these for a median.
        let time = Duration::from_millis(if split { 1_000 } else { 300 });
        let spec = ExchangeSpec { request: size, split, nodelay: !split, time, ..ExchangeSpec::default() };
        Ok(self.exchange(&spec, cancel, &mut |_| ())?.latency.map(|latency| latency.p50_us))
    }

    /// Runs a test of each direction with every number of streams: more that carry more than one say that one is limited
    /// by itself and not by the path. A caller that cancels gets the rows that are complete.
    ///
    /// # Errors
    /// Those of [`Client::run`].
    pub fn sweep_streams(
        &mut self,
        spec: &TestSpec,
        numbers: &[u32],
        cancel: &AtomicBool,
        done: Done<'_>,
    ) -> Result<Vec<StreamsRow>, MeasureError> {
        let mut rows = Vec::new();
        for (index, &streams) in numbers.iter().enumerate() {
            done(index, numbers.len());
            let [up, down] = [TestDirection::Up, TestDirection::Down].map(|direction| {
                let spec = TestSpec { streams, direction, pings: 0, ..spec.clone() };
                self.run(&spec, cancel, &mut |_| ())
            });
            let (up, down) = (up?, down?);
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let (up, down) = (up.directions.first(), down.directions.first());
            rows.push(StreamsRow {
                streams,
                up_bps: up.and_then(|up| up.rate_bps),
                down_bps: down.and_then(|down| down.rate_bps),
                retransmits: up.zip(down).and_then(|(up, down)| Some(up.retransmits? + down.retransmits?)),
            });
        }
        Ok(rows)
    }

    /// Times round trips alone and beside payload in each direction, on connections of their own.
    ///
    /// # Errors
    /// [`MeasureError::NeedsFullpipe`] with a foreign server; otherwise those of [`Client::run`].
    pub fn under_load(
        &mut self,
        spec: &TestSpec,
        cancel: &AtomicBool,
        done: Done<'_>,
    ) -> Result<UnderLoad, MeasureError> {
        const STEPS: usize = 3;
        done(0, STEPS);
        let time = match spec.length {
            Length::Time(time) => time,
            Length::Bytes(_) => Duration::from_secs(5),
        };
        let idle_spec = ExchangeSpec { time: time.min(Duration::from_secs(3)), ..ExchangeSpec::default() };
        let idle = self.exchange(&idle_spec, cancel, &mut |_| ())?.latency;
        let mut loaded = Vec::new();
        for (step, direction) in [(1, Direction::Up), (2, Direction::Down)] {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            done(step, STEPS);
            let (measurement, asked) = self.beside_load(spec, direction, time, cancel)?;
            let latency = asked.latency;
            loaded.push(Loaded {
                direction,
                rate_bps: measurement.directions.first().and_then(|direction| direction.rate_bps),
                latency,
                per_minute: latency.map(|latency| latency.per_minute()),
            });
        }
        Ok(UnderLoad { idle, idle_per_minute: idle.map(|idle| idle.per_minute()), loaded })
    }

    fn beside_load(
        &mut self,
        spec: &TestSpec,
        direction: Direction,
        time: Duration,
        cancel: &AtomicBool,
    ) -> Result<(Measurement, ExchangeReport), MeasureError> {
        // The queue on the way needs a moment to build up; the round trips begin after it and end before the payload.
        let lead = (time / 5).min(Duration::from_secs(1));
        let direction = match direction {
            Direction::Up => TestDirection::Up,
            Direction::Down => TestDirection::Down,
        };
        let spec = TestSpec { direction, length: Length::Time(time + lead * 2), pings: 0, ..spec.clone() };
        let mut other = Self::connect_as(&self.target, self.options, self.credentials.clone(), cancel)?;
        let (measured, asked) = thread::scope(|scope| {
            let load = scope.spawn(|| self.run(&spec, cancel, &mut |_| ()));
            thread::sleep(lead);
            let asking = ExchangeSpec { time, ..ExchangeSpec::default() };
            let asked = other.exchange(&asking, cancel, &mut |_| ());
            (load.join(), asked)
        });
        other.bye();
        let lost = MeasureError::Closed { peer: self.peer, operation: "measuring under load" };
        Ok((measured.unwrap_or(Err(lost))?, asked?))
    }
}

fn side(measurement: &Measurement, size: Bytes) -> SizeSide {
    let Some(direction) = measurement.directions.first() else { return SizeSide::default() };
    let gigabytes = direction.bytes.get() as f64 / 1e9;
    let per_gb = |cpu: &Cpu| (gigabytes > 0.0).then(|| cpu.percent() / 100.0 * direction.seconds / gigabytes);
    SizeSide {
        rate_bps: direction.rate_bps,
        messages_per_second: direction.rate_bps.map(|rate| rate.bps() as f64 / 8.0 / size.get().max(1) as f64),
        own_seconds_per_gb: per_gb(&measurement.own_cpu),
        far_seconds_per_gb: measurement.far_cpu.as_ref().and_then(per_gb),
        retransmits: direction.retransmits,
    }
}
