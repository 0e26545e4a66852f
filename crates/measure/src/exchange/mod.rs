//! Request and response: how long an answer takes, how many there are in a second, and what setting a connection up
//! costs.
//!
//! On the wire it is a test like any other, until TEST_RUNNING; from there on the client writes requests of one size and
//! reads responses of another, and the server the other way round. Only our own server can (a real one would take the
//! requests for payload), so that the parameters that ask for it travel under our key.

mod answer;
mod ask;

use std::time::Duration;

use fullpipe_units::Bytes;
use hdrhistogram::Histogram;
use serde::Serialize;

pub(crate) use self::{
    answer::{Answering, Answers},
    ask::{Asked, ask},
};
use crate::{error::MeasureError, measurement::Cpu, wire::MAX_STREAMS};

/// A request or a response is at most so long.
const LONGEST: u64 = 16 << 20;

/// What two ends that answer each other say, as the parameters tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) request: u32,
    pub(crate) response: u32,
    /// The server asks its kernel again and again instead of sleeping.
    pub(crate) spin: bool,
    /// Each request comes on a connection of its own.
    pub(crate) connect: bool,
}

impl Pattern {
    pub(crate) fn is_possible(self) -> bool {
        let possible = |bytes: u32| (1..=LONGEST).contains(&u64::from(bytes));
        possible(self.request) && possible(self.response)
    }
}

/// What to ask, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeSpec {
    /// The size of a request.
    pub request: Bytes,
    /// The size of a response.
    pub response: Bytes,
    /// Connections that ask at the same time, each waiting for its own answers.
    pub streams: u32,
    /// For how long.
    pub time: Duration,
    /// Write a request in two halves, as an application does that writes a header and then its data: the second half
    /// waits for the acknowledgement of the first where Nagle's algorithm is on.
    pub split: bool,
    /// Small writes leave at once (`TCP_NODELAY`), on both ends.
    pub nodelay: bool,
    /// Ask the kernel again and again instead of sleeping, on both ends.
    pub spin: bool,
    /// Open a connection for each request.
    pub connect: bool,
    /// From the beginning of a request to that of the next one, where the answer does not take longer; as soon as the
    /// answer is there where it is absent.
    pub every: Option<Duration>,
}

impl Default for ExchangeSpec {
    /// One byte each way for two seconds.
    fn default() -> Self {
        Self {
            request: Bytes::new(1),
            response: Bytes::new(1),
            streams: 1,
            time: Duration::from_secs(2),
            split: false,
            nodelay: true,
            spin: false,
            connect: false,
            every: None,
        }
    }
}

impl ExchangeSpec {
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        let refuse = |field, value: String, reason| Err(MeasureError::BadSpec { field, value, reason });
        for (field, bytes) in [("the request", self.request), ("the response", self.response)] {
            if !(1..=LONGEST).contains(&bytes.get()) {
                return refuse(field, bytes.to_string(), "1 B to 16 MiB are possible");
            }
        }
        if self.split && self.request.get() < 2 {
            return refuse("the request", self.request.to_string(), "two halves take 2 B or more");
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return refuse("the number of streams", self.streams.to_string(), "1 to 128 are possible");
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&self.time) {
            return refuse("the duration", format!("{} s", self.time.as_secs_f64()), "1 ms to a day are possible");
        }
        Ok(())
    }

    pub(crate) fn pattern(&self) -> Pattern {
        let bytes = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        Pattern { request: bytes(self.request), response: bytes(self.response), spin: self.spin, connect: self.connect }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExchangeReport {
    /// The size of a request.
    pub request: Bytes,
    /// The size of a response.
    pub response: Bytes,
    /// Connections that asked at the same time.
    pub streams: u32,
    /// Whether requests were written in two halves.
    pub split: bool,
    /// Whether small writes left at once.
    pub nodelay: bool,
    /// Whether both ends asked their kernels again and again instead of sleeping: a program that sleeps also waits for
    /// its processor to wake up.
    pub spin: bool,
    /// Requests that were answered.
    pub transactions: u64,
    /// For how long they were asked.
    pub seconds: f64,
    /// Answers in a second.
    pub per_second: f64,
    /// From the first byte of a request to the last of its response.
    pub latency: Option<Latency>,
    /// The median of the same requests written at once; only where they are written in two halves under Nagle's algorithm.
    pub at_once_us: Option<f64>,
    /// The part of the requests in two halves that waited for a delayed acknowledgement, 0 to 1.
    pub delayed: Option<f64>,
    /// Of the handshake of each connection, where each request had its own.
    pub connecting: Option<Latency>,
    /// Of the request alone, after that handshake.
    pub asking: Option<Latency>,
    /// The processor that this end ran on at the end, and the far end, where the systems tell.
    pub own_processor: Option<u32>,
    /// See above.
    pub far_processor: Option<u32>,
    /// Processor time of this end's process.
    pub own_cpu: Cpu,
    /// Processor time of the far end's process.
    pub far_cpu: Option<Cpu>,
    /// The caller stopped it before its time.
    pub cancelled: bool,
}

/// How long something took, in microseconds: percentiles of all that was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How often it was timed.
    pub count: u64,
    /// The shortest.
    pub min_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// The mean without the longest twentieth.
    pub trimmed_us: f64,
    /// Half took longer.
    pub p50_us: f64,
    /// A tenth took longer.
    pub p90_us: f64,
    /// One of a hundred took longer.
    pub p99_us: f64,
    /// One of a thousand took longer.
    pub p99_9_us: f64,
    /// One of ten thousand took longer.
    pub p99_99_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latency {
    /// `None` where nothing was timed.
    pub(crate) fn from_times(times: &Times) -> Option<Self> {
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        (!times.is_empty()).then(|| Self {
            count: times.len(),
            min_us: times.min() as f64 / 1e3,
            mean_us: times.mean() / 1e3,
            trimmed_us: trimmed_mean(times) / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            p99_99_us: at(0.9999),
            max_us: times.max() as f64 / 1e3,
        })
    }
}

/// No acknowledgement is delayed by less: Linux waits 40 ms at the least (`TCP_DELACK_MIN`), other systems 200 ms (RFC
/// 1122, section 4.2.3.2, allows 500 ms), and timers may be early by a tick of up to 10 ms.
pub const DELAYED: Duration = Duration::from_millis(30);

/// How many were longer than `quick` by [`DELAYED`] or more.
pub(crate) fn delayed(times: &Times, quick: Duration) -> u64 {
    let from = u64::try_from((quick + DELAYED).as_nanos()).unwrap_or(LONGEST_NS);
    times.count_between(from.min(LONGEST_NS), LONGEST_NS)
}

/// The part of them that waited for a delayed acknowledgement, where `least_us` is what it takes without one.
pub(crate) fn delayed_part(times: &Times, least_us: f64) -> Option<f64> {
    let quick = Duration::from_secs_f64(least_us / 1e6);
    (!times.is_empty()).then(|| delayed(times, quick) as f64 / times.len() as f64)
}

/// Of the shortest 95 %.
fn trimmed_mean(times: &Times) -> f64 {
    let keep = times.len() - times.len() / 20;
    let (mut kept, mut sum) = (0, 0.0);
    for step in times.iter_recorded() {
        let count = step.count_at_value().min(keep - kept);
        sum += times.median_equivalent(step.value_iterated_to()) as f64 * count as f64;
        kept += count;
        if kept == keep {
            break;
        }
    }
    sum / kept.max(1) as f64
}

/// Nanoseconds, to a thousandth of each.
pub(crate) type Times = Histogram<u64>;

/// The longest time that is resolved; longer ones count as this.
const LONGEST_NS: u64 = 100_000_000_000;

pub(crate) fn no_times() -> Times {
    // Three digits and these bounds are within what the crate takes; with the fallback it grows by itself.
    Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| Histogram::new(1).expect("one digit is possible"))
}

pub(crate) fn note(times: &mut Times, took: Duration) {
    times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(LONGEST_NS).clamp(1, LONGEST_NS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut times = no_times();
        for us in 1..=10_000 {
            note(&mut times, Duration::from_micros(us));
        }
        let latency = Latency::from_times(&times).unwrap();
        assert_eq!(latency.count, 10_000);
        for (found, expected) in [(latency.p50_us, 5e3), (latency.p99_us, 9.9e3), (latency.p99_99_us, 9.999e3)] {
            assert!((found / expected - 1.0).abs() < 0.002, "{latency:?}");
        }
        // The mean of 1 to 9,500.
        assert!((latency.trimmed_us / 4_750.5 - 1.0).abs() < 0.002, "{latency:?}");
        assert_eq!(Latency::from_times(&no_times()), None);
    }

    #[test]
    fn the_longest_twentieth_is_trimmed() {
        let mut times = no_times();
        (0..95).for_each(|_| note(&mut times, Duration::from_micros(10)));
        (0..5).for_each(|_| note(&mut times, Duration::from_secs(1)));
        let latency = Latency::from_times(&times).unwrap();
        assert!((latency.trimmed_us / 10.0 - 1.0).abs() < 0.002, "{latency:?}");
        assert_eq!(delayed(&times, Duration::from_micros(10)), 5);
        assert_eq!(delayed(&times, Duration::from_secs(1)), 0);
        assert_eq!(delayed(&no_times(), Duration::ZERO), 0);
    }

    #[test]
    fn times_out_of_range_count_as_the_nearest() {
        let mut times = no_times();
        note(&mut times, Duration::ZERO);
        note(&mut times, Duration::MAX);
        assert_eq!(times.len(), 2);
    }
}
