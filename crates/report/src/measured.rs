//! What `measure` found, cut into intervals: the form from which text, JSON and CSV are made.

use fullpipe_diagnose::{ReceiverSample, SenderSample, Transfer};
use fullpipe_measure::{DatagramSample, Direction, DirectionMeasurement, Measurement, TestSpec};
use fullpipe_units::{Bytes, Micros, Rate};

/// The most intervals that are shown of a test, however short they were asked for.
const MOST_INTERVALS: usize = 10_000;

/// A test and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The far end, as the user named it.
    pub host: &'a str,
    /// What was asked.
    pub spec: &'a TestSpec,
    /// What came of it.
    pub measurement: &'a Measurement,
    /// Whether JSON shall have every sample.
    pub series: bool,
}

/// What one connection, or all of a direction, carried in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
    /// Within the time that does not count.
    pub(crate) omitted: bool,
    pub(crate) bytes: u64,
    pub(crate) retransmits: Option<u64>,
    pub(crate) rtt_us: Option<Micros>,
    pub(crate) rtt_var_us: Option<Micros>,
    pub(crate) path_mtu: Option<u32>,
    pub(crate) cwnd: Option<Bytes>,
    pub(crate) window: Option<Bytes>,
    /// Of datagrams: those that arrived, or were sent where the receiver does not tell.
    pub(crate) packets: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) out_of_order: Option<u64>,
    pub(crate) jitter_us: Option<f64>,
}

impl Interval {
    pub(crate) fn rate(&self) -> Option<Rate> {
        Rate::from_bytes(Bytes::new(self.bytes), Micros::new(self.to_us.saturating_sub(self.from_us)))
    }

    /// Of two connections at the same time; round trip and windows are those of the first.
    fn and(self, other: &Self) -> Self {
        Self {
            from_us: self.from_us.min(other.from_us),
            to_us: self.to_us.max(other.to_us),
            bytes: self.bytes.saturating_add(other.bytes),
            retransmits: self.retransmits.zip(other.retransmits).map(|(a, b)| a.saturating_add(b)),
            ..self
        }
    }
}

/// `up` or `down`.
pub(crate) fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

/// Of all connections of a direction together.
pub(crate) fn intervals(direction: &DirectionMeasurement, every: Micros) -> Vec<Interval> {
    if !direction.datagram_series.is_empty() {
        return of_datagrams(&direction.datagram_series, direction.omitted_us, every);
    }
    let mut all: Vec<Interval> = Vec::new();
    for transfer in &direction.transfers {
        for (index, interval) in of_transfer(transfer, direction.omitted_us, every).iter().enumerate() {
            match all.get_mut(index) {
                Some(sum) => *sum = sum.and(interval),
                None => all.push(*interval),
            }
        }
    }
    all
}

/// Of one connection: what arrived, or was acknowledged where the receiver was not seen.
pub(crate) fn of_transfer(transfer: &Transfer, omitted: Micros, every: Micros) -> Vec<Interval> {
    // Samples are no finer than a hundredth of a second.
    let spans = spans(transfer.duration_us, omitted, every.max(Micros::from_millis(10)));
    let points = points(transfer);
    spans
        .into_iter()
        .map(|(from_us, to_us)| {
            let sender = last_before(&transfer.sender_samples, to_us);
            let retransmits = |at| last_before(&transfer.sender_samples, at).and_then(|sample| sample.retransmits);
            Interval {
                from_us,
                to_us,
                omitted: from_us < omitted.get(),
                bytes: carried(&points, to_us).saturating_sub(carried(&points, from_us)),
                retransmits: retransmits(to_us).map(|now| now.saturating_sub(retransmits(from_us).unwrap_or(0))),
                rtt_us: sender.and_then(|sample| sample.rtt_us),
                rtt_var_us: sender.and_then(|sample| sample.rtt_var_us),
                path_mtu: sender.and_then(|sample| sample.path_mtu),
                cwnd: sender.and_then(|sample| sample.cwnd),
                window: sender.and_then(|sample| sample.offered_window),
                ..Interval::default()
            }
        })
        .collect()
}

/// Of datagrams, all streams together.
fn of_datagrams(series: &[DatagramSample], omitted: Micros, every: Micros) -> Vec<Interval> {
    // Samples are no finer than a tenth of a second.
    let end = series.last().map_or(Micros::ZERO, |last| last.at_us);
    let points = |of: fn(&DatagramSample) -> Option<u64>| -> Option<Vec<(u64, u64)>> {
        series.iter().map(|sample| Some((sample.at_us.get(), of(sample)?))).collect()
    };
    let (bytes, packets) = (points(|sample| Some(sample.bytes)), points(|sample| Some(sample.packets)));
    let (lost, out_of_order) = (points(|sample| sample.lost), points(|sample| sample.out_of_order));
    let grown = |points: &Option<Vec<(u64, u64)>>, (from_us, to_us): (u64, u64)| {
        let points = points.as_deref()?;
        Some(carried(points, to_us).saturating_sub(carried(points, from_us)))
    };
    spans(end, omitted, every.max(Micros::from_millis(100)))
        .into_iter()
        .map(|(from_us, to_us)| {
            let span = (from_us, to_us);
            let last = series.partition_point(|sample| sample.at_us.get() <= to_us).checked_sub(1);
            Interval {
                from_us,
                to_us,
                omitted: from_us < omitted.get(),
                bytes: grown(&bytes, span).unwrap_or(0),
                packets: grown(&packets, span),
                lost: grown(&lost, span),
                out_of_order: grown(&out_of_order, span),
                jitter_us: last.and_then(|index| series.get(index)?.jitter_us),
                ..Interval::default()
            }
        })
        .collect()
}

/// From the beginning to the end, each as long as asked for, or longer where they would be too many; they begin anew where the
/// omitted time ends.
fn spans(end: Micros, omitted: Micros, every: Micros) -> Vec<(u64, u64)> {
    let (end, cut) = (end.get(), omitted.get().min(end.get()));
    let every = every.get().max(end / MOST_INTERVALS as u64);
    let part = |from: u64, to: u64| {
        let starts = (0..).map(move |index| from + index * every).take_while(move |at| *at < to);
        starts.map(move |at| (at, (at + every).min(to)))
    };
    part(0, cut).chain(part(cut, end)).collect()
}

/// How much had been carried when.
fn points(transfer: &Transfer) -> Vec<(u64, u64)> {
    let read = |s: &ReceiverSample| s.received.get() - s.unread.map_or(0, Bytes::get).min(s.received.get());
    let mut points: Vec<(u64, u64)> = if transfer.receiver_samples.is_empty() {
        transfer.sender_samples.iter().map(|s| (s.at_us.get(), s.acked.get())).collect()
    } else {
        transfer.receiver_samples.iter().map(|s| (s.at_us.get(), read(s))).collect()
    };
    points.retain(|(at, _)| *at <= transfer.duration_us.get());
    points.push((transfer.duration_us.get(), transfer.bytes.get()));
    points
}

/// Between two points as if at an even rate.
fn carried(points: &[(u64, u64)], at: u64) -> u64 {
    let after = points.partition_point(|(time, _)| *time < at);
    let before = after.checked_sub(1).and_then(|index| points.get(index)).copied().unwrap_or((0, 0));
    let Some(&next) = points.get(after) else { return before.1 };
    let share = at.saturating_sub(before.0) as f64 / next.0.saturating_sub(before.0).max(1) as f64;
    before.1 + (next.1.saturating_sub(before.1) as f64 * share.min(1.0)) as u64
}

fn last_before(samples: &[SenderSample], at_us: u64) -> Option<&SenderSample> {
    let after = samples.partition_point(|sample| sample.at_us.get() <= at_us);
    samples.get(after.checked_sub(1)?)
}

/// What the senders sent, as far as it was acknowledged; what arrived, where no sender was seen.
pub(crate) fn sent(direction: &DirectionMeasurement) -> u64 {
    if direction.counted.is_empty() {
        return direction.bytes.get();
    }
    direction.counted.iter().map(|counted| counted.sent.get()).fold(0, u64::saturating_add)
}

/// Processor seconds of a process per gigabyte that was carried, both directions together.
pub(crate) fn seconds_per_gb(percent: f64, measured: &Measured<'_>) -> Option<f64> {
    let measurement = measured.measurement;
    // Neither the bytes nor the processor time of the omitted time count.
    let longest = measurement.directions.iter().map(|direction| direction.seconds).max_by(f64::total_cmp)?;
    let bytes: u64 = measurement.directions.iter().map(|direction| direction.bytes.get()).sum();
    (bytes > 0).then(|| percent / 100.0 * longest / (bytes as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(points: &[(u64, u64)]) -> Transfer {
        let sample = |&(at, received): &(u64, u64)| ReceiverSample {
            at_us: Micros::new(at),
            received: Bytes::new(received),
            ..ReceiverSample::default()
        };
        let (end, bytes) = *points.last().unwrap();
        Transfer {
            duration_us: Micros::new(end),
            bytes: Bytes::new(bytes),
            receiver_samples: points.iter().map(sample).collect(),
            ..Transfer::default()
        }
    }

    #[test]
    fn intervals_share_what_was_carried_and_leave_nothing_out() {
        let transfer = transfer(&[(0, 0), (500_000, 1_000), (1_500_000, 3_000), (2_200_000, 4_000)]);
        let intervals = of_transfer(&transfer, Micros::ZERO, Micros::from_secs(1));
        let bytes: Vec<u64> = intervals.iter().map(|interval| interval.bytes).collect();
        assert_eq!(bytes, [2_000, 1_714, 286]);
        assert_eq!(
            intervals.iter().map(|interval| interval.to_us).collect::<Vec<_>>(),
            [1_000_000, 2_000_000, 2_200_000]
        );
    }

    #[test]
    fn intervals_begin_anew_where_the_omitted_time_ends() {
        let transfer = transfer(&[(0, 0), (3_000_000, 3_000)]);
        let intervals = of_transfer(&transfer, Micros::from_millis(1_500), Micros::from_secs(1));
        let found: Vec<_> = intervals.iter().map(|i| (i.from_us, i.to_us, i.bytes, i.omitted)).collect();
        let counted = [(1_500_000, 2_500_000, 1_000, false), (2_500_000, 3_000_000, 500, false)];
        assert_eq!(found, [[(0, 1_000_000, 1_000, true), (1_000_000, 1_500_000, 500, true)], counted].concat());
    }

    #[test]
    fn datagrams_are_counted_by_interval() {
        let sample = |at_ms: u64, packets: u64, lost: u64| DatagramSample {
            at_us: Micros::from_millis(at_ms),
            packets,
            bytes: packets * 100,
            lost: Some(lost),
            jitter_us: Some(at_ms as f64),
            ..DatagramSample::default()
        };
        let series = [sample(0, 0, 0), sample(900, 90, 1), sample(1_100, 110, 3), sample(1_500, 150, 3)];
        let found: Vec<_> = of_datagrams(&series, Micros::ZERO, Micros::from_secs(1))
            .iter()
            .map(|i| (i.to_us, i.packets, i.bytes, i.lost, i.out_of_order, i.jitter_us))
            .collect();
        let first = (1_000_000, Some(100), 10_000, Some(2), None, Some(900.0));
        assert_eq!(found, [first, (1_500_000, Some(50), 5_000, Some(1), None, Some(1_500.0))]);
    }

    #[test]
    fn a_test_without_samples_is_one_even_flow() {
        let transfer = Transfer { duration_us: Micros::from_secs(2), bytes: Bytes::new(200), ..Transfer::default() };
        let bytes: Vec<u64> =
            of_transfer(&transfer, Micros::ZERO, Micros::from_secs(1)).iter().map(|i| i.bytes).collect();
        assert_eq!(bytes, [100, 100]);
        assert_eq!(of_transfer(&Transfer::default(), Micros::ZERO, Micros::from_secs(1)), []);
    }
}
