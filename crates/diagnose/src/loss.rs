//! Retransmissions: how many, whether they were needed, and whether they strike where a full queue would.

use core::ops::Range;

use crate::{
    Transfer, stats, thresholds,
    timeline::{Interval, Timeline},
};

/// The losses of a transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// Segments retransmitted.
    pub(crate) retransmits: f64,
    /// Whether others had been before the story begins: what is acknowledged then may have waited behind a loss, and comes at once.
    pub(crate) are_earlier: bool,
    /// Of all segments sent, the part that was retransmitted.
    pub(crate) ratio: f64,
    /// Retransmission timeouts.
    pub(crate) timeouts: u64,
    /// Separate loss events, at least a round trip apart.
    pub(crate) episodes: usize,
    /// Coefficient of variation of what was in flight when they struck.
    pub(crate) peak_variation: Option<f64>,
    /// Duplicate SACKs per retransmission.
    pub(crate) spurious: f64,
    /// When the first was lost, as far as packets show, or else sent again, in microseconds: the time in between waits for it. None
    /// where all that was sent again had been no loss.
    pub(crate) first_us: Option<u64>,
    /// Of the retransmissions, those that only asked whether the last segment had arrived, which it had.
    pub(crate) idle_probes: f64,
    /// Times that the sender noticed reordering.
    pub(crate) reorderings: u32,
}

impl Losses {
    pub(crate) fn new(transfer: &Transfer, timeline: &Timeline<'_>) -> Self {
        let intervals = &timeline.intervals;
        let retransmits: f64 = intervals.iter().map(|i| i.retransmits).sum();
        let dsacks: f64 = intervals.iter().map(|i| i.dsacks).sum();
        let probes: f64 = intervals.iter().filter_map(|i| i.at.packets).map(|packets| f64::from(packets.probes)).sum();
        let idle_probes = probes.min(dsacks).min(retransmits);
        let peaks = peaks(timeline);
        Self {
            retransmits,
            are_earlier: transfer
                .sender_samples
                .first()
                .is_some_and(|first| first.retransmits.is_some_and(|count| count > 0)),
            ratio: Self::ratio_in(&intervals.iter().collect::<Vec<_>>(), timeline),
            timeouts: intervals.iter().fold(0_u64, |sum, i| sum.saturating_add(i.timeouts)),
            episodes: peaks.len(),
            // The first ends slow start, which goes up to twice as far as the path holds.
            peak_variation: peaks
                .get(1..)
                .filter(|later| later.len() >= thresholds::LEAST_PEAKS)
                .or_else(|| Some(&peaks[..]).filter(|all| all.len() >= thresholds::LEAST_PEAKS))
                .and_then(stats::variation),
            spurious: stats::fraction(dsacks, retransmits),
            first_us: first_us(transfer, intervals).filter(|_| retransmits > idle_probes),
            idle_probes,
            reorderings: transfer.sender_samples.iter().filter_map(|s| s.reordering_seen).max().unwrap_or(0),
        }
    }

    /// The part of the segments sent in `intervals` that was retransmitted.
    pub(crate) fn ratio_in(intervals: &[&Interval<'_>], timeline: &Timeline<'_>) -> f64 {
        let retransmits: f64 = intervals.iter().map(|i| i.retransmits).sum();
        let acked: f64 = intervals.iter().map(|i| i.acked).sum();
        stats::fraction(retransmits, acked / timeline.mss + retransmits)
    }

    /// The part of the segments that was retransmitted after the first loss event: one that ends slow start takes many at a time and
    /// says nothing of what comes then. Where that is less than half of the time, it is the part of all.
    pub(crate) fn ratio_after_first(timeline: &Timeline<'_>) -> f64 {
        let intervals: Vec<&Interval<'_>> = timeline.intervals.iter().collect();
        let quiet_us = 2.0 * timeline.base_rtt.unwrap_or(0.0);
        let first = intervals.iter().position(|i| i.retransmits > 0.0);
        let mut over = first.unwrap_or(0);
        while let Some(more) = intervals[over..]
            .iter()
            .skip(1)
            .take_while(|i| i.from_us as f64 <= intervals[over].to_us as f64 + quiet_us)
            .position(|i| i.retransmits > 0.0)
        {
            over += more + 1;
        }
        let later = first.map_or(&intervals[..], |_| &intervals[over + 1..]);
        let is_most = later.iter().map(|i| i.len()).sum::<f64>() >= 0.5 * timeline.span_us;
        Self::ratio_in(if is_most { later } else { &intervals }, timeline)
    }

    /// The losses come at the same amount in flight again and again: a queue that overflows.
    pub(crate) fn are_repeatable(&self) -> bool {
        self.peak_variation.is_some_and(|variation| variation <= thresholds::REPEATABLE_PEAK)
    }

    /// For each interval, whether nothing was lost within the round trips over which pauses are counted: room that an
    /// acknowledgement makes is room then, whatever was lost long before.
    pub(crate) fn calm(&self, timeline: &Timeline<'_>) -> Vec<bool> {
        let intervals = &timeline.intervals;
        let reach = timeline.base_rtt.map_or(u64::MAX, |base| (thresholds::PAUSES_ROUND_TRIPS * base) as u64);
        let lost: Vec<&Interval<'_>> = intervals.iter().filter(|i| i.retransmits > 0.0).collect();
        let mut next = 0;
        let is_calm = |interval: &Interval<'_>| {
            while lost.get(next).is_some_and(|loss| loss.to_us.saturating_add(reach) <= interval.from_us) {
                next += 1;
            }
            lost.get(next).is_none_or(|loss| loss.from_us >= interval.to_us.saturating_add(reach))
        };
        intervals.iter().map(is_calm).collect()
    }

    /// Whether anything was lost, or late enough to count as lost.
    pub(crate) fn are_any(&self) -> bool {
        self.retransmits > self.idle_probes
    }

    /// Most retransmissions were not needed, and few of the others were: a timer that ran out too early, or one that repeats all
    /// that was in flight, makes needless ones behind real losses, too.
    pub(crate) fn are_reordering(&self) -> bool {
        // A late acknowledgement has a tail probed: nothing came out of order.
        let dsacks = self.spurious * self.retransmits - self.idle_probes;
        let others = self.retransmits - self.idle_probes;
        others >= thresholds::LEAST_SPURIOUS
            && stats::fraction(dsacks, others) >= thresholds::SPURIOUS
            && self.ratio * (1.0 - self.spurious) < thresholds::REORDERED_LOSS
    }
}

fn first_us(transfer: &Transfer, intervals: &[Interval<'_>]) -> Option<u64> {
    let repeated = intervals.iter().find(|i| i.retransmits > 0.0).map(|i| i.from_us)?;
    let lost = transfer.drops.as_ref().and_then(|drops| drops.list.first()).map(|drop| drop.at_us.get());
    Some(lost.map_or(repeated, |lost| lost.min(repeated)))
}

/// The loss events: for each, the intervals from the one in which the sender began to retransmit to the last one in which it did. From one
/// event to the next it did not for `quiet_us` microseconds.
pub(crate) fn events(intervals: &[Interval<'_>], quiet_us: f64) -> Vec<Range<usize>> {
    let mut events: Vec<Range<usize>> = Vec::new();
    for (index, interval) in intervals.iter().enumerate().filter(|(_, i)| i.retransmits > 0.0) {
        match events.last_mut() {
            Some(event) if (interval.from_us as f64) < intervals[event.end - 1].to_us as f64 + quiet_us => {
                event.end = index + 1;
            }
            _ => events.push(index..index + 1),
        }
    }
    events
}

/// What was in flight before each loss event.
fn peaks(timeline: &Timeline<'_>) -> Vec<f64> {
    let intervals = &timeline.intervals;
    let two_round_trips = 2.0 * timeline.base_rtt.unwrap_or(0.0);
    let peak = |event: Range<usize>| {
        let from = intervals[event.start].from_us as f64;
        let earlier = intervals[..=event.start].iter().rev();
        let before = earlier.take_while(|i| i.to_us as f64 + two_round_trips >= from);
        before.filter_map(Interval::in_flight).fold(0.0, f64::max)
    };
    events(intervals, two_round_trips).into_iter().map(peak).collect()
}
