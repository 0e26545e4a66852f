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

/// What one message size costs and carries: medians of several rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeRow {
    /// The size of a message, which is of one write.
    pub size: Bytes,
    /// How many rounds measured it.
    pub rounds: u32,
    /// From here to the host.
    pub up: SizeSide,
    /// From the host to here.
    pub down: SizeSide,
    /// A message of this size and an answer of one byte, small writes leaving at once; absent with a foreign server.
    pub round_trip_us: Option<f64>,
    /// The lower quartile of the rounds; absent where there were too few to tell.
    pub round_trip_low_us: Option<f64>,
    /// The upper one.
    pub round_trip_high_us: Option<f64>,
    /// Of the quickest round.
    pub round_trip_min_us: Option<f64>,
    /// Of the slowest.
    pub round_trip_max_us: Option<f64>,
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
    /// The lower quartile of the rounds; absent where there were too few to tell.
    pub low_bps: Option<Rate>,
    /// The upper one.
    pub high_bps: Option<Rate>,
    /// Of the slowest round.
    pub min_bps: Option<Rate>,
    /// Of the fastest.
    pub max_bps: Option<Rate>,
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
    /// all but the size. The time of a test is divided over several rounds, each of which takes every size in turn, so that
    /// what changes meanwhile meets all sizes, and shows as a spread. `done` gets each round of each size; a caller that
    /// cancels gets what the complete ones found.
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
        if self.kind == PeerKind::Fullpipe && self.idle_rtt.is_none() {
            self.ping(PINGS)?;
        }
        let spec = TestSpec { length: self.of_round(spec.length), ..spec.clone() };
        let mut found: Vec<Vec<SizeRow>> = vec![Vec::new(); sizes.len()];
        'rounds: for round in 1..=ROUNDS {
            for (&size, rounds) in sizes.iter().zip(&mut found) {
                let row = self.one_size(&spec, size, round == ROUNDS, cancel)?;
                if cancel.load(Ordering::Relaxed) {
                    break 'rounds;
                }
                done(&row, sizes.len() * ROUNDS as usize);
                rounds.push(row);
            }
        }
        Ok(found.iter().filter_map(|rounds| SizeRow::of_rounds(rounds)).collect())
    }

    /// The part of a test's time that a round takes.
    fn of_round(&self, length: Length) -> Length {
        let Length::Time(time) = length else { return length };
        let slow_start = self.idle_rtt.map_or(Duration::ZERO, |rtt| Duration::from(rtt.p50_us) * ROUND_TRIPS);
        Length::Time((time / ROUNDS).max(slow_start.min(time)).max(Duration::from_millis(1)))
    }

    fn one_size(
        &mut self,
        spec: &TestSpec,
        size: Bytes,
        split: bool,
        cancel: &AtomicBool,
    ) -> Result<SizeRow, MeasureError> {
        let [up, down] = [TestDirection::Up, TestDirection::Down].map(|direction| {
            let spec = TestSpec { block: size, direction, pings: 0, ..spec.clone() };
            self.run(&spec, cancel, &mut |_| ()).map(|measurement| side(&measurement, size))
        });
        let mut row = SizeRow::of_round(size, up?, down?);
        if self.kind != PeerKind::Fullpipe || cancel.load(Ordering::Relaxed) {
            return Ok(row);
        }
        let whole = Latency::from_times(&self.ask_with(size, false, cancel)?.times);
        row.round_trip_us = whole.map(|latency| latency.p50_us);
        if split && !cancel.load(Ordering::Relaxed) {
            let times = self.ask_with(size, true, cancel)?.times;
            row.split_us = Latency::from_times(&times).map(|latency| latency.p50_us);
            row.split_delayed = whole.and_then(|whole| exchange::delayed_part(&times, whole.min_us));
        }
        Ok(row)
    }

    fn ask_with(&self, size: Bytes, split: bool, cancel: &AtomicBool) -> Result<Asked, MeasureError> {
        // A delayed acknowledgement takes 40 ms on Linux and 200 ms elsewhere: enough of these for a median.
        let time = Duration::from_millis(if split { 1_000 } else { 60 });
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

/// Enough to know a path's round trip without load.
pub(super) const PINGS: u32 = 3;

/// How often a sweep over message sizes measures each of them.
const ROUNDS: u32 = 5;

/// So many rounds tell something of the noise without their slowest and their fastest, which something else may have disturbed.
const ENOUGH: usize = 5;

/// A round lasts at least so many round trips, where the test is so long: slow start is a small part of it.
const ROUND_TRIPS: u32 = 20;

impl SizeRow {
    /// What one round found of a size.
    fn of_round(size: Bytes, up: SizeSide, down: SizeSide) -> Self {
        Self {
            size,
            rounds: 1,
            up,
            down,
            round_trip_us: None,
            round_trip_low_us: None,
            round_trip_high_us: None,
            round_trip_min_us: None,
            round_trip_max_us: None,
            split_us: None,
            split_delayed: None,
        }
    }

    /// The medians of all rounds of a size, and how far these were apart.
    fn of_rounds(rounds: &[Self]) -> Option<Self> {
        let of = |of: fn(&Self) -> Option<f64>| Spread::new(rounds.iter().filter_map(of));
        let side = |of: fn(&Self) -> &SizeSide| SizeSide::of_rounds(&rounds.iter().map(of).collect::<Vec<_>>());
        let trip = of(|round| round.round_trip_us);
        Some(Self {
            size: rounds.first()?.size,
            rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
            up: side(|round| &round.up),
            down: side(|round| &round.down),
            round_trip_us: trip.median,
            round_trip_low_us: trip.low,
            round_trip_high_us: trip.high,
            round_trip_min_us: trip.min,
            round_trip_max_us: trip.max,
            split_us: of(|round| round.split_us).median,
            split_delayed: of(|round| round.split_delayed).median,
        })
    }
}

impl SizeSide {
    fn of_rounds(rounds: &[&Self]) -> Self {
        let of = |of: fn(&Self) -> Option<f64>| Spread::new(rounds.iter().filter_map(|round| of(round)));
        let whole = |bps: Option<f64>| bps.map(|bps| Rate::from_bps(bps.round() as u64));
        let rate = of(|side| side.rate_bps.map(|rate| rate.bps() as f64));
        Self {
            rate_bps: whole(rate.median),
            low_bps: whole(rate.low),
            high_bps: whole(rate.high),
            min_bps: whole(rate.min),
            max_bps: whole(rate.max),
            messages_per_second: of(|side| side.messages_per_second).median,
            own_seconds_per_gb: of(|side| side.own_seconds_per_gb).median,
            far_seconds_per_gb: of(|side| side.far_seconds_per_gb).median,
            retransmits: rounds.iter().map(|side| side.retransmits).sum(),
            window_share: of(|side| side.window_share).median,
            buffer_share: of(|side| side.buffer_share).median,
        }
    }
}

/// A figure of several rounds.
struct Spread {
    median: Option<f64>,
    /// The quartiles, where there are enough rounds: of five the second and the fourth.
    low: Option<f64>,
    high: Option<f64>,
    /// The least and the most.
    min: Option<f64>,
    max: Option<f64>,
}

impl Spread {
    fn new(figures: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied();
        let (first, last) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
        let is_enough = sorted.len() >= ENOUGH;
        let quarter = sorted.len().saturating_sub(1) / 4;
        Self {
            median: at(first).zip(at(last)).map(|(first, last)| f64::midpoint(first, last)),
            low: at(quarter).filter(|_| is_enough),
            high: sorted.iter().rev().nth(quarter).copied().filter(|_| is_enough),
            min: sorted.first().copied().filter(|_| is_enough),
            max: sorted.last().copied().filter(|_| is_enough),
        }
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
        low_bps: None,
        high_bps: None,
        min_bps: None,
        max_bps: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn round(mbps: u64, trip_us: Option<f64>) -> SizeRow {
        let side = SizeSide {
            rate_bps: Some(Rate::from_bps(mbps * 1_000_000)),
            retransmits: Some(1),
            window_share: Some(0.5),
            ..SizeSide::default()
        };
        SizeRow { round_trip_us: trip_us, ..SizeRow::of_round(Bytes::new(4_096), side, SizeSide::default()) }
    }

    #[test]
    fn rounds_become_their_medians_and_quartiles_which_one_slow_round_does_not_move() {
        let rounds = [300, 100, 900, 200, 400].map(|mbps| round(mbps, Some(mbps as f64)));
        let row = SizeRow::of_rounds(&rounds).unwrap();
        let mbps = |rate: Option<Rate>| rate.map(|rate| rate.bps() / 1_000_000);
        assert_eq!([row.up.rate_bps, row.up.low_bps, row.up.high_bps].map(mbps), [Some(300), Some(200), Some(400)]);
        assert_eq!(
            (row.round_trip_us, row.round_trip_low_us, row.round_trip_high_us),
            (Some(300.0), Some(200.0), Some(400.0))
        );
        assert_eq!([row.up.min_bps, row.up.max_bps].map(mbps), [Some(100), Some(900)]);
        assert_eq!((row.round_trip_min_us, row.round_trip_max_us), (Some(100.0), Some(900.0)));
        assert_eq!((row.rounds, row.up.retransmits, row.down.rate_bps), (5, Some(5), None));
    }

    #[test]
    fn few_rounds_have_a_median_and_tell_nothing_of_the_noise() {
        let four = [100, 200, 300, 400].map(|mbps| round(mbps, None));
        assert_eq!(SizeRow::of_rounds(&four).unwrap().up.low_bps, None);
        let row = SizeRow::of_rounds(&[round(100, None), round(300, Some(7.0))]).unwrap();
        assert_eq!((row.up.rate_bps, row.up.low_bps), (Some(Rate::from_bps(200_000_000)), None));
        assert_eq!((row.round_trip_us, row.round_trip_low_us), (Some(7.0), None));
        assert_eq!(SizeRow::of_rounds(&[]), None);
    }
}
