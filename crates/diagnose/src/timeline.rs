//! The sender's samples as intervals with rates, cleaned of whatever a hostile or broken source may say.
//!
//! What is *not* here: what an interval means (`windows`, `path`, `loss`, `classify`).

use crate::{End, SenderSample, Transfer, stats, thresholds};

/// The time between two consecutive samples, with the state at its end.
#[derive(Clone, Debug)]
pub(crate) struct Interval<'t> {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
    /// Payload bytes acknowledged in it.
    pub(crate) acked: f64,
    /// Segments retransmitted in it.
    pub(crate) retransmits: f64,
    /// Retransmission timeouts in it.
    pub(crate) timeouts: u64,
    /// Duplicate SACKs in it.
    pub(crate) dsacks: f64,
    /// Segments from the receiver in it; `None` where they were not counted.
    pub(crate) heard: Option<f64>,
    /// The part of it for which the kernel's receive-window chronograph ran.
    pub(crate) rwnd_limited: f64,
    /// The part of it for which the kernel's send-buffer chronograph ran.
    pub(crate) sndbuf_limited: f64,
    /// Payload rate around it, averaged over two round trips to either side, in bit/s.
    pub(crate) rate: f64,
    /// The part of the same time in which a writer waited for room in the send buffer; `None` where the kernel doesn't count
    /// it.
    pub(crate) writer_waits: Option<f64>,
    /// The part of the time around it in which nothing arrived though something was in flight; `None` where only packets
    /// would tell.
    pub(crate) dry: Option<f64>,
    /// The sample at its end.
    pub(crate) at: &'t SenderSample,
}

impl Interval<'_> {
    pub(crate) fn len(&self) -> f64 {
        self.to_us.saturating_sub(self.from_us) as f64
    }

    pub(crate) fn rtt(&self) -> Option<f64> {
        self.at.rtt_us.map(|rtt| rtt.get() as f64).filter(|&rtt| rtt > 0.0)
    }

    pub(crate) fn in_flight(&self) -> Option<f64> {
        self.at.in_flight.map(|b| b.get() as f64)
    }

    /// What is in flight; by Little's law where it was not seen, over a round trip of `rtt` microseconds.
    pub(crate) fn in_flight_over(&self, rtt: f64) -> f64 {
        self.in_flight().unwrap_or(self.rate * rtt / 8e6)
    }

    pub(crate) fn offered(&self) -> Option<f64> {
        self.at.offered_window.map(|b| b.get() as f64)
    }

    pub(crate) fn cwnd(&self) -> Option<f64> {
        self.at.cwnd.map(|b| b.get() as f64)
    }

    pub(crate) fn not_sent(&self) -> Option<f64> {
        self.at.not_sent.map(|b| b.get() as f64)
    }
}

/// A sender's whole story.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<'t> {
    pub(crate) intervals: Vec<Interval<'t>>,
    /// Payload of a full segment.
    pub(crate) mss: f64,
    /// The smallest round trip seen by anyone, in microseconds.
    pub(crate) base_rtt: Option<f64>,
    /// The denominator of all shares: from the first sample, or the start, to the end.
    pub(crate) span_us: f64,
    /// The part of the samples, early and late ones, in which all that the send buffer held was in flight and as much as it may
    /// hold or more, so that the next write had to wait.
    pub(crate) over_full: f64,
    /// The part of the time, early and late, in which nothing was acknowledged and all that the send buffer held was in flight and as much
    /// as is left when Linux is about to wake its writer.
    pub(crate) at_wake_mark: f64,
    /// The least part of the time, of the second to the fourth quarter of the samples, in which all that the send buffer held was in flight and
    /// nearly as much as it may hold. An application that catches up after slow start fills it, too, but not in the last quarter.
    pub(crate) nearly_full: f64,
    /// Whether the send buffer is a large one, and what it held in the second half of the samples seldom fell far below the mark at which its
    /// writer is woken.
    pub(crate) is_kept_filled: bool,
}

impl<'t> Timeline<'t> {
    pub(crate) fn new(transfer: &'t Transfer) -> Self {
        let samples = in_order(&transfer.sender_samples);
        let mut intervals: Vec<Interval<'_>> = samples.windows(2).map(|pair| interval(pair[0], pair[1])).collect();
        let base_rtt = transfer.base_rtt().map(|rtt| rtt.get() as f64);
        average_rates(&mut intervals, base_rtt);
        average_dryness(&mut intervals, base_rtt);
        let seen: f64 = intervals.iter().map(Interval::len).sum();
        let mss = mss(transfer, &samples);
        let (early, late) = intervals.split_at(intervals.len() / 2);
        Self {
            mss,
            over_full: over_full(early, mss).min(over_full(late, mss)),
            at_wake_mark: at_wake_mark(early, mss).min(at_wake_mark(late, mss)),
            nearly_full: nearly_full(&intervals, mss),
            is_kept_filled: is_kept_filled(late),
            base_rtt,
            // Neither may exceed the other's part: shares of what was seen never add up to more than 1.
            span_us: seen.max(transfer.duration_us.get() as f64),
            intervals,
        }
    }

    /// Segment size of an interval, else of the transfer.
    pub(crate) fn mss_at(&self, interval: &Interval<'_>) -> f64 {
        interval.at.mss.filter(|&mss| mss > 0).map_or(self.mss, f64::from)
    }

    /// The median payload rate, in bit/s, of the stretches that end with an interval of `held` and are not shorter than
    /// `least_us`; `None` where there is none. The intervals of `held` are some of this timeline, in its order.
    pub(crate) fn median_over(&self, held: &[&Interval<'_>], least_us: f64) -> Option<f64> {
        let (mut first, mut acked) = (0, 0.0);
        let mut rates = Vec::with_capacity(held.len());
        for last in &self.intervals {
            acked += last.acked;
            let len = |first: &Interval<'_>| last.to_us.saturating_sub(first.from_us) as f64;
            while let [earliest, next, ..] = &self.intervals[first..]
                && len(next) >= least_us.max(1.0)
            {
                acked -= earliest.acked;
                first += 1;
            }
            let stretch = len(&self.intervals[first]);
            let is_held = held.binary_search_by_key(&last.to_us, |interval| interval.to_us).is_ok();
            if is_held && stretch >= least_us.max(1.0) {
                rates.push((acked * 8e6 / stretch, last.len()));
            }
        }
        stats::median(rates)
    }

    /// Whether packets tell of it, and not counters alone.
    pub(crate) fn has_packets(&self) -> bool {
        self.intervals.iter().any(|i| i.at.packets.is_some())
    }

    /// Whether samples come at least once in a round trip of the empty path.
    pub(crate) fn has_fine_samples(&self) -> bool {
        typical_len(&self.intervals).zip(self.base_rtt).is_some_and(|(typical, base)| typical <= base)
    }

    pub(crate) fn acked(&self) -> f64 {
        self.intervals.iter().map(|i| i.acked).sum()
    }
}

/// Samples whose time increases; later ones that step back are dropped.
fn in_order(samples: &[SenderSample]) -> Vec<&SenderSample> {
    let mut ordered: Vec<&SenderSample> = Vec::with_capacity(samples.len());
    for sample in samples {
        if ordered.last().is_none_or(|last| sample.at_us > last.at_us) {
            ordered.push(sample);
        }
    }
    ordered
}

fn interval<'t>(a: &SenderSample, b: &'t SenderSample) -> Interval<'t> {
    let (from_us, to_us) = (a.at_us.get(), b.at_us.get());
    let len = (to_us - from_us) as f64;
    let counted = |a: Option<u64>, b: Option<u64>| a.zip(b).map_or(0, |(a, b)| b.saturating_sub(a));
    let spent = |a: Option<fullpipe_units::Micros>, b: Option<fullpipe_units::Micros>| {
        (counted(a.map(|t| t.get()), b.map(|t| t.get())) as f64 / len).min(1.0)
    };
    Interval {
        from_us,
        to_us,
        acked: b.acked.get().saturating_sub(a.acked.get()) as f64,
        retransmits: counted(a.retransmits, b.retransmits) as f64,
        timeouts: counted(a.timeouts, b.timeouts),
        dsacks: counted(a.dsacks.map(u64::from), b.dsacks.map(u64::from)) as f64,
        heard: a.heard.zip(b.heard).map(|(a, b)| f64::from(b.saturating_sub(a))),
        rwnd_limited: spent(a.rwnd_limited_us, b.rwnd_limited_us),
        sndbuf_limited: spent(a.sndbuf_limited_us, b.sndbuf_limited_us),
        rate: 0.0,
        writer_waits: a.sndbuf_limited_us.and(b.sndbuf_limited_us).map(|_| 0.0),
        dry: None,
        at: b,
    }
}

/// Payload per time over all of these, in bit/s.
pub(crate) fn mean_rate(intervals: &[&Interval<'_>]) -> f64 {
    stats::fraction(intervals.iter().map(|i| i.acked * 8e6).sum(), intervals.iter().map(|i| i.len()).sum())
}

/// The median of a figure over these, by time; `None` where none has it.
pub(crate) fn median(intervals: &[&Interval<'_>], figure: impl Fn(&Interval<'_>) -> Option<f64>) -> Option<f64> {
    stats::median(intervals.iter().filter_map(|i| Some((figure(i)?, i.len()))))
}

/// The part of these, by time, at whose end everything written was in flight and cost as much as the buffer may hold.
fn over_full(intervals: &[Interval<'_>], mss: f64) -> f64 {
    part_sent(intervals, mss, |_, queued, buffer| queued >= buffer)
}

/// The part of these, by time, in which nothing was acknowledged while everything written was in flight and cost two thirds of the buffer, or
/// the little more that the last acknowledgements left.
fn at_wake_mark(intervals: &[Interval<'_>], mss: f64) -> f64 {
    part_sent(intervals, mss, |interval, queued, buffer| {
        let mark = thresholds::WAKE_MARK * buffer;
        let slack = thresholds::WAKE_SLACK.min(thresholds::WAKE_SLACK_PART * buffer);
        interval.acked <= 0.0 && (mark..=mark + slack).contains(&queued)
    })
}

/// The least part, by time, of the second to the fourth quarter of these, at whose end everything written was in flight and cost nearly as
/// much as the buffer may hold.
fn nearly_full(intervals: &[Interval<'_>], mss: f64) -> f64 {
    let quarters = intervals.chunks(intervals.len().div_ceil(4).max(1)).skip(1);
    quarters
        .map(|quarter| part_sent(quarter, mss, |_, queued, buffer| queued >= thresholds::NEARLY_FULL * buffer))
        .reduce(f64::min)
        .unwrap_or(0.0)
}

/// Whether the send buffer is a large one, and what it holds seldom much less than what a writer leaves there before it is woken.
fn is_kept_filled(intervals: &[Interval<'_>]) -> bool {
    let is_filled = |interval: &Interval<'_>| {
        send_memory(interval).is_some_and(|(queued, buffer)| {
            buffer >= thresholds::LARGE_BUFFER && queued >= thresholds::SEND_BUFFER_FULL * buffer
        })
    };
    part(intervals, is_filled) >= thresholds::KEPT_FILLED
}

/// The part of these, by time, at whose end everything written was in flight and `is_such` for what it cost and may cost.
fn part_sent(intervals: &[Interval<'_>], mss: f64, is_such: impl Fn(&Interval<'_>, f64, f64) -> bool) -> f64 {
    part(intervals, |interval| {
        interval.not_sent().is_some_and(|bytes| bytes < thresholds::WAITING_SEGMENTS * mss)
            && send_memory(interval).is_some_and(|(queued, buffer)| is_such(interval, queued, buffer))
    })
}

/// What the queued data costs of the send buffer, and the buffer's size, in bytes; `None` where that was not seen.
pub(crate) fn send_memory(interval: &Interval<'_>) -> Option<(f64, f64)> {
    let (queued, buffer) = interval.at.send_queued.zip(interval.at.send_buffer)?;
    Some((queued.get() as f64, buffer.get() as f64)).filter(|(_, buffer)| *buffer > 0.0)
}

/// The part of these, by time, that are such.
pub(crate) fn part(intervals: &[Interval<'_>], is_such: impl Fn(&Interval<'_>) -> bool) -> f64 {
    let time = |part: &mut dyn Iterator<Item = &Interval<'_>>| part.map(Interval::len).sum::<f64>();
    stats::fraction(time(&mut intervals.iter().filter(|i| is_such(i))), time(&mut intervals.iter()))
}

/// The median length of these, in microseconds; `None` where there are none.
fn typical_len(intervals: &[Interval<'_>]) -> Option<f64> {
    stats::median(intervals.iter().map(|i| (i.len(), 1.0)))
}

/// Averages rates and the writer's waiting over `HALF_WINDOW_ROUND_TRIPS` to either side, and over one and a half intervals
/// at least.
fn average_rates(intervals: &mut [Interval<'_>], base_rtt: Option<f64>) {
    let typical = typical_len(intervals).unwrap_or(0.0);
    let round_trips = thresholds::HALF_WINDOW_ROUND_TRIPS * base_rtt.unwrap_or(0.0);
    let half = round_trips.max(thresholds::LEAST_HALF_WINDOW_US).max(1.5 * typical);
    let (mut low, mut high) = (0, 0);
    let (mut bytes, mut waited) = (0.0, 0.0);
    for middle in 0..intervals.len() {
        let centre = (intervals[middle].from_us as f64 + intervals[middle].to_us as f64) / 2.0;
        while high < intervals.len() && (high <= middle || intervals[high].to_us as f64 <= centre + half) {
            bytes += intervals[high].acked;
            waited += intervals[high].sndbuf_limited * intervals[high].len();
            high += 1;
        }
        while low < middle && (intervals[low].from_us as f64) < centre - half {
            bytes -= intervals[low].acked;
            waited -= intervals[low].sndbuf_limited * intervals[low].len();
            low += 1;
        }
        let span = intervals[high - 1].to_us.saturating_sub(intervals[low].from_us) as f64;
        // The running sum may leave a rounding error below zero behind.
        let middle = &mut intervals[middle];
        middle.rate = stats::fraction(bytes.max(0.0) * 8e6, span);
        middle.writer_waits = middle.writer_waits.map(|_| stats::fraction(waited.max(0.0), span));
    }
}

/// Averages over `DRY_ROUND_TRIPS` to either side: a burst in each round trip leaves the link empty once in each.
fn average_dryness(intervals: &mut [Interval<'_>], base_rtt: Option<f64>) {
    let dry = |i: &Interval<'_>| i.at.packets.map(|packets| packets.dry_us.get() as f64);
    let Some(half) = base_rtt.map(|base| thresholds::DRY_ROUND_TRIPS * base) else { return };
    let (mut low, mut high) = (0, 0);
    let (mut time, mut all) = (0.0, 0.0);
    for middle in 0..intervals.len() {
        let (from, to) = (intervals[middle].from_us as f64 - half, intervals[middle].to_us as f64 + half);
        while high < intervals.len() && (high <= middle || intervals[high].to_us as f64 <= to) {
            time += dry(&intervals[high]).unwrap_or(0.0);
            all += intervals[high].len();
            high += 1;
        }
        while low < middle && (intervals[low].from_us as f64) < from {
            time -= dry(&intervals[low]).unwrap_or(0.0);
            all -= intervals[low].len();
            low += 1;
        }
        intervals[middle].dry = dry(&intervals[middle]).map(|_| stats::fraction(time.max(0.0), all).min(1.0));
    }
}

fn mss(transfer: &Transfer, samples: &[&SenderSample]) -> f64 {
    let sampled = samples.iter().rev().find_map(|s| s.mss.filter(|&mss| mss > 0)).map(f64::from);
    let announced = |end: &End| end.syn.and_then(|syn| syn.mss).filter(|&mss| mss > 0).map(f64::from);
    sampled.or_else(|| announced(&transfer.receiver)).unwrap_or(thresholds::ASSUMED_MSS)
}
