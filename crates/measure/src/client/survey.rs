//! Several tests that answer one question together: which message size, how many streams, which segments.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use fullpipe_diagnose::SenderSample;
use fullpipe_units::{Bytes, Micros, Rate};
use serde::Serialize;

use super::Client;
use crate::{
    error::MeasureError,
    exchange::{self, Asked, ExchangeSpec, Latency},
    measurement::{Cpu, DirectionMeasurement, Measurement, PeerKind},
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
    /// The part of these messages that waited for a delayed acknowledgement, 0 to 1.
    pub split_delayed: Option<f64>,
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
    /// Segments retransmitted.
    #[serde(rename = "retransmissions")]
    pub retransmits: Option<u64>,
    /// The part of the time in which the sender had something to send and the receiver's window held it back, 0 to 1.
    pub window_share: Option<f64>,
    /// The same of the send buffer.
    pub buffer_share: Option<f64>,
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
    /// Segments retransmitted, both directions together.
    #[serde(rename = "retransmissions")]
    pub retransmits: Option<u64>,
}

/// What TCP makes of the path MTU in a direction, beside what probing found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TcpMtu {
    /// Which way the payload goes.
    pub direction: Direction,
    /// The path MTU that the sender's kernel believed in at the end; absent where its system does not tell.
    pub path_mtu: Option<u32>,
    /// The payload of its full segments at the end.
    pub mss: Option<u32>,
    /// Payload that arrived.
    pub bytes: Bytes,
}

/// Progress while tests run: how many are done, of how many.
pub(crate) type Done<'a> = &'a mut (dyn FnMut(usize, usize) + Send);

/// A row of a sweep as soon as it is complete, and how many there will be.
type RowDone<'a, Row> = &'a mut (dyn FnMut(&Row, usize) + Send);

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
        done: RowDone<'_, SizeRow>,
    ) -> Result<Vec<SizeRow>, MeasureError> {
        let mut rows = Vec::new();
        for &size in sizes {
            let [up, down] = [TestDirection::Up, TestDirection::Down].map(|direction| {
                let spec = TestSpec { block: size, direction, pings: 0, ..spec.clone() };
                self.run(&spec, cancel, &mut |_| ()).map(|measurement| side(&measurement, size))
            });
            let (up, down) = (up?, down?);
            let mut row = SizeRow { size, up, down, round_trip_us: None, split_us: None, split_delayed: None };
            if self.kind == PeerKind::Fullpipe && !cancel.load(Ordering::Relaxed) {
                let whole = Latency::from_times(&self.ask_with(size, false, cancel)?.times);
                let split = self.ask_with(size, true, cancel)?.times;
                row.round_trip_us = whole.map(|latency| latency.p50_us);
                row.split_us = Latency::from_times(&split).map(|latency| latency.p50_us);
                // The quickest of the whole messages waited for nothing.
                row.split_delayed = whole.filter(|_| !split.is_empty()).map(|whole| {
                    let quick = Duration::from_secs_f64(whole.min_us / 1e6);
                    exchange::delayed(&split, quick) as f64 / split.len() as f64
                });
            }
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            done(&row, sizes.len());
            rows.push(row);
        }
        Ok(rows)
    }

    fn ask_with(&self, size: Bytes, split: bool, cancel: &AtomicBool) -> Result<Asked, MeasureError> {
        // A delayed acknowledgement takes 40 ms on Linux and 200 ms elsewhere: enough of these for a median.
        let time = Duration::from_millis(if split { 1_000 } else { 300 });
        let spec = ExchangeSpec { request: size, split, nodelay: !split, time, ..ExchangeSpec::default() };
        super::exchange::run(self, &spec, cancel, &mut |_| ()).map(|(_, asked)| asked)
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
        done: RowDone<'_, StreamsRow>,
    ) -> Result<Vec<StreamsRow>, MeasureError> {
        let mut rows = Vec::new();
        for &streams in numbers {
            let [up, down] = [TestDirection::Up, TestDirection::Down].map(|direction| {
                let spec = TestSpec { streams, direction, pings: 0, ..spec.clone() };
                self.run(&spec, cancel, &mut |_| ())
            });
            let (up, down) = (up?, down?);
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let (up, down) = (up.directions.first(), down.directions.first());
            let row = StreamsRow {
                streams,
                up_bps: up.and_then(|up| up.rate_bps),
                down_bps: down.and_then(|down| down.rate_bps),
                retransmits: up.zip(down).and_then(|(up, down)| Some(up.retransmits? + down.retransmits?)),
            };
            done(&row, numbers.len());
            rows.push(row);
        }
        Ok(rows)
    }

    /// A little payload over a connection in each direction, and what its kernel makes of the path MTU.
    ///
    /// # Errors
    /// Those of [`Client::run`].
    pub fn tcp_mtu(&mut self, cancel: &AtomicBool) -> Result<Vec<TcpMtu>, MeasureError> {
        // Long enough for a loss to be repaired, or for none of the full segments to arrive.
        let round_trip = self.idle_rtt.map_or(Duration::ZERO, |rtt| rtt.p50_us.into());
        let time = Duration::from_millis(500) + round_trip * 6;
        let mut found = Vec::new();
        for direction in [Direction::Up, Direction::Down] {
            let spec = TestSpec {
                direction: direction.into(),
                length: Length::Time(time),
                block: Bytes::new(16_384),
                pace: Some(LITTLE),
                pings: 0,
                ..TestSpec::default()
            };
            let measurement = self.run(&spec, cancel, &mut |_| ())?;
            let measured = measurement.directions.first();
            let last = measured.and_then(|direction| direction.transfers.first()?.sender_samples.last());
            found.push(TcpMtu {
                direction,
                path_mtu: measured.and_then(|direction| direction.kernel_mtu),
                mss: last.and_then(|sample| sample.mss),
                bytes: measured.map_or(Bytes::ZERO, |direction| direction.bytes),
            });
        }
        Ok(found)
    }
}

/// Enough for full segments, and no load.
const LITTLE: Rate = Rate::from_bps(4_000_000);

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
        window_share: share(direction, |sample| sample.rwnd_limited_us),
        buffer_share: share(direction, |sample| sample.sndbuf_limited_us),
    }
}

/// A part of the senders' busy time, as their kernels tell.
fn share(direction: &DirectionMeasurement, of: impl Fn(&SenderSample) -> Option<Micros>) -> Option<f64> {
    let last = direction.transfers.iter().filter_map(|transfer| transfer.sender_samples.last());
    let (mut part, mut busy) = (0, 0);
    for sample in last {
        part += of(sample)?.get();
        busy += sample.busy_us?.get();
    }
    (busy > 0).then(|| part as f64 / busy as f64)
}
