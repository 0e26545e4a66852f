//! How long requests take while the path is full, against the same path idle.
//!
//! The figure for persons is round trips per minute, by the formula of draft-ietf-ippm-responsiveness for a test without
//! TLS: the mean of what new connections see, 60 s / ((TM(handshake) + TM(first request)) / 2), and of what those see that
//! carry the load, 60 s / TM(round trip), where TM is the mean without the longest twentieth.
//!
//! It departs from the draft in this: requests are single bytes and no HTTP; on the connections that carry the load the
//! round trip is the one that the sender's kernel measures (which the draft allows where requests can't be mixed into the
//! payload), so that what waits in the sender's own buffer is not in it; the number of these connections is fixed
//! instead of growing until the rate stands still. Whether the rate did stand still is reported.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use fullpipe_diagnose::Transfer;
use fullpipe_units::{Bytes, Micros, Rate};
use serde::Serialize;

use super::{Client, Done, exchange};
use crate::{
    error::MeasureError,
    exchange::{ExchangeReport, ExchangeSpec, Latency},
    measurement::DirectionMeasurement,
    spec::{Direction, Length, TestSpec},
};

/// Round trips without and with load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnderLoad {
    /// Connections that carry the load.
    pub streams: u32,
    /// Without load, on a connection that is kept.
    pub idle: Option<Latency>,
    /// The handshake of new connections without load.
    pub idle_connecting: Option<Latency>,
    /// The first request on these.
    pub idle_asking: Option<Latency>,
    /// Round trips per minute without load, as new connections see them.
    pub idle_per_minute: Option<f64>,
    /// With payload in each direction in turn.
    pub loaded: Vec<Loaded>,
}

/// Round trips beside payload in a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Which way the payload goes.
    pub direction: Direction,
    /// What it carried meanwhile.
    pub rate_bps: Option<Rate>,
    /// Whether that rate stood still, within a twentieth, while round trips were timed: only then the path was full for
    /// certain.
    pub steady: Option<bool>,
    /// Round trips on a connection that is kept, beside those with the payload.
    pub latency: Option<Latency>,
    /// The handshake of new connections.
    pub connecting: Option<Latency>,
    /// The first request on these.
    pub asking: Option<Latency>,
    /// RTT under load: of the segments with payload, as the sender's kernel smooths it, without the longest twentieth.
    pub own_rtt_us: Option<f64>,
    /// Round trips per minute, as new connections see them.
    pub foreign_per_minute: Option<f64>,
    /// The same, as the connections with the payload see them.
    pub own_per_minute: Option<f64>,
    /// The mean of both: the draft's responsiveness.
    pub per_minute: Option<f64>,
}

/// Time between two requests of a kind: both kinds together are the draft's 100 in a second.
const EVERY: Duration = Duration::from_millis(20);

/// The draft looks at the last four intervals, and takes deviations of up to 5 % for standing still.
const INTERVALS: u32 = 4;
const STILL: f64 = 0.05;

impl Client {
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
        let [kept, renewed] = self.ask_both_ways(time.min(Duration::from_secs(3)), cancel)?;
        let mut loaded = Vec::new();
        for (step, direction) in [(1, Direction::Up), (2, Direction::Down)] {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            done(step, STEPS);
            loaded.push(self.beside_load(spec, direction, time, cancel)?);
        }
        Ok(UnderLoad {
            streams: spec.streams,
            idle: kept.latency,
            idle_connecting: renewed.connecting,
            idle_asking: renewed.asking,
            idle_per_minute: foreign(&renewed),
            loaded,
        })
    }

    /// On a connection that is kept, and on a new one for each request.
    fn ask_both_ways(&self, time: Duration, cancel: &AtomicBool) -> Result<[ExchangeReport; 2], MeasureError> {
        let kept = ExchangeSpec { time, every: Some(EVERY), ..ExchangeSpec::default() };
        let renewed = ExchangeSpec { connect: true, ..kept };
        let ask = |spec| exchange::run(self, &spec, cancel, &mut |_| ()).map(|(report, _)| report);
        let lost = MeasureError::Closed { peer: self.peer, operation: "asking" };
        thread::scope(|scope| {
            let renewed = scope.spawn(|| ask(renewed));
            Ok([ask(kept)?, renewed.join().unwrap_or(Err(lost))?])
        })
    }

    fn beside_load(
        &mut self,
        spec: &TestSpec,
        direction: Direction,
        time: Duration,
        cancel: &AtomicBool,
    ) -> Result<Loaded, MeasureError> {
        // The queue on the way needs a while to fill; round trips begin after it and end before the payload.
        let lead = (time / 2).clamp(Duration::from_millis(200), Duration::from_secs(2));
        let tail = Duration::from_millis(300);
        let length = Length::Time(lead + time + tail);
        let spec = TestSpec { direction: direction.into(), length, pings: 0, ..spec.clone() };
        let other = Self::connect_as(&self.target, self.options, self.credentials.clone(), cancel)?;
        let (measured, asked) = thread::scope(|scope| {
            let load = scope.spawn(|| self.run(&spec, cancel, &mut |_| ()));
            thread::sleep(lead);
            let asked = other.ask_both_ways(time, cancel);
            (load.join(), asked)
        });
        other.bye();
        let lost = MeasureError::Closed { peer: self.peer, operation: "measuring under load" };
        let (measured, [kept, renewed]) = (measured.unwrap_or(Err(lost))?, asked?);
        Ok(loaded(direction, measured.directions.first(), (lead, time), (&kept, &renewed)))
    }
}

fn loaded(
    direction: Direction,
    measured: Option<&DirectionMeasurement>,
    (lead, time): (Duration, Duration),
    (kept, renewed): (&ExchangeReport, &ExchangeReport),
) -> Loaded {
    let own_rtt_us = measured.and_then(|measured| own_rtt(measured, (lead, lead + time)));
    let (foreign, own) = (foreign(renewed), own_rtt_us.map(per_minute));
    Loaded {
        direction,
        rate_bps: measured.and_then(|measured| measured.rate_bps),
        steady: measured.and_then(|measured| is_steady(measured, (lead, time))),
        latency: kept.latency,
        connecting: renewed.connecting,
        asking: renewed.asking,
        own_rtt_us,
        foreign_per_minute: foreign,
        own_per_minute: own,
        per_minute: foreign.zip(own).map(|(foreign, own)| f64::midpoint(foreign, own)),
    }
}

fn per_minute(us: f64) -> f64 {
    60e6 / us.max(0.1)
}

/// As new connections see it.
fn foreign(renewed: &ExchangeReport) -> Option<f64> {
    Some(per_minute(f64::midpoint(renewed.connecting?.trimmed_us, renewed.asking?.trimmed_us)))
}

/// The mean of what the senders' kernels smoothed in that time, without the longest twentieth.
fn own_rtt(measured: &DirectionMeasurement, (from, to): (Duration, Duration)) -> Option<f64> {
    let within = Micros::from(from)..=Micros::from(to);
    let samples = measured.transfers.iter().flat_map(|transfer| &transfer.sender_samples);
    let mut times: Vec<u64> = samples
        .filter(|sample| within.contains(&sample.at_us))
        .filter_map(|sample| Some(sample.rtt_us?.get()))
        .filter(|us| *us > 0)
        .collect();
    times.sort_unstable();
    times.truncate(times.len() - times.len() / 20);
    (!times.is_empty()).then(|| times.iter().sum::<u64>() as f64 / times.len() as f64)
}

/// Whether what was carried in each of a few intervals deviates little from their mean.
fn is_steady(measured: &DirectionMeasurement, (from, time): (Duration, Duration)) -> Option<bool> {
    let edges: Vec<u64> =
        (0..=INTERVALS).map(|index| carried(&measured.transfers, from + time * index / INTERVALS)).collect();
    let parts: Vec<f64> = edges.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / parts.len() as f64;
    (mean > 0.0).then(|| variance.sqrt() <= STILL * mean)
}

/// How much all connections together had carried at a moment.
fn carried(transfers: &[Transfer], at: Duration) -> u64 {
    let at = Micros::from(at);
    let of = |transfer: &Transfer| {
        let received = transfer.receiver_samples.iter().take_while(|sample| sample.at_us <= at).last();
        let acked = transfer.sender_samples.iter().take_while(|sample| sample.at_us <= at).last();
        received.map(|sample| sample.received).or_else(|| acked.map(|sample| sample.acked)).map_or(0, Bytes::get)
    };
    transfers.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use fullpipe_diagnose::{ReceiverSample, SenderSample};

    use super::*;

    fn latency(us: f64) -> Option<Latency> {
        Some(Latency { count: 1, trimmed_us: us, ..Latency::default() })
    }

    /// A sample each 100 ms with that round trip; `bytes` more in each.
    fn carrying(rtt_us: u64, bytes: impl Fn(u64) -> u64) -> DirectionMeasurement {
        let (mut transfer, mut sum) = (Transfer::default(), 0);
        for index in 0..=40 {
            let at_us = Micros::from_millis(index * 100);
            sum += bytes(index);
            transfer.sender_samples.push(SenderSample {
                at_us,
                rtt_us: Some(Micros::new(rtt_us)),
                ..SenderSample::default()
            });
            transfer.receiver_samples.push(ReceiverSample {
                at_us,
                received: Bytes::new(sum),
                ..ReceiverSample::default()
            });
        }
        DirectionMeasurement { transfers: vec![transfer], ..DirectionMeasurement::nothing(Direction::Up) }
    }

    fn under(rtt_us: u64, bytes: impl Fn(u64) -> u64) -> Loaded {
        let (connecting, asking) = (latency(20_000.0), latency(40_000.0));
        let renewed = ExchangeReport { connecting, asking, ..ExchangeReport::default() };
        let window = (Duration::from_secs(1), Duration::from_secs(2));
        let carrying = carrying(rtt_us, bytes);
        loaded(Direction::Up, Some(&carrying), window, (&ExchangeReport::default(), &renewed))
    }

    #[test]
    fn round_trips_per_minute_follow_the_draft() {
        // 60,000 / ((20 + 40) / 2) = 2,000 of others; 60,000 / 60 = 1,000 of the load itself.
        let loaded = under(60_000, |_| 100);
        assert_eq!(loaded.foreign_per_minute.map(f64::round), Some(2_000.0));
        assert_eq!(loaded.own_per_minute.map(f64::round), Some(1_000.0));
        assert_eq!(loaded.per_minute.map(f64::round), Some(1_500.0));
    }

    #[test]
    fn a_rate_that_still_grows_is_not_steady() {
        assert_eq!(under(1, |_| 100).steady, Some(true));
        assert_eq!(under(1, |index| index).steady, Some(false));
        assert_eq!(under(1, |_| 0).steady, None);
    }
}
