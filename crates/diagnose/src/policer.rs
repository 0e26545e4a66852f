//! Whether a token bucket on the path drops what is above its rate (Flach 2016). Whenever it drops, it is empty: what gets
//! through between one loss and the next passes at its rate, whatever the sender does, no queue stands, and before the first
//! loss more went through. What is *not* here: a queue that overflows, which holds a link at its rate, too, and makes what
//! comes next wait (`path`).

use core::ops::Range;
use std::borrow::Cow;

use fullpipe_units::{Bytes, Micros};

use crate::{
    Drop, Transfer,
    loss::{self, Losses},
    packets::{self, Answers},
    path::Path,
    stats, thresholds,
    timeline::{self, Interval, Timeline},
};

/// The rate at which the bucket fills, in bit/s, where there is one.
pub(crate) fn rate(
    transfer: &Transfer,
    timeline: &Timeline<'_>,
    path: &Path,
    losses: &Losses,
    answers: Option<Answers>,
) -> Option<f64> {
    let base = timeline.base_rtt?;
    // A bucket drops all that is above its rate until the sender hears of it, where chance takes one. A slow one drops little at a time:
    // counters tell that from chance event by event.
    let least = if timeline.has_packets() { thresholds::POLICED_BURST_SEGMENTS } else { thresholds::POLICED_AT_ONCE };
    let in_bursts =
        losses.retransmits >= thresholds::POLICED_LEAST && losses.retransmits >= least * losses.episodes as f64;
    // What comes late is repeated in bursts, too; and while a sender waits to be asked, a bucket fills up again: what gets through then is
    // no rate of it.
    let waits = answers.is_some_and(Answers::is_much);
    if !in_bursts || waits || losses.are_reordering() {
        return None;
    }
    let drops = Drops::new(transfer, timeline, losses, base)?;
    // A sender hears of losses a round trip later, and repeats what was lost meanwhile: where that comes in batches, only what gets
    // through in whole round trips is level.
    let rests = rests(&timeline.intervals, base);
    thresholds::POLICED_ROUND_TRIPS.into_iter().find_map(|round_trips| {
        let mut rates = between(&drops, &rests, (base, round_trips));
        rates.extend(learned(&timeline.intervals, &drops, &rates, base));
        let level = Level::new(rates, drops.least_rates, base)?;
        has_bucket(&level, &drops, timeline, path).then_some(level.rate)
    })
}

/// Whether counters are all there is and can tell of a policer. Without SACK a sender retransmits what was not lost, and what is acknowledged
/// stands still while one hole is open: reordered packets count like those that a policer drops.
pub(crate) fn can_show_in_counters(transfer: &Transfer, timeline: &Timeline<'_>) -> bool {
    !timeline.has_packets() && !transfer.lacks_sack()
}

/// By how much the round trip was above `base` just before the losses, in microseconds (median): what waited where they struck.
pub(crate) fn wait_before(intervals: &[Interval<'_>], events: &[Range<usize>], base: f64) -> Option<f64> {
    let wait = |event: &Range<usize>| {
        let from = intervals[event.start].from_us as f64;
        let before = intervals[..event.start].iter().rev().take_while(|i| i.to_us as f64 + base >= from);
        before.filter_map(Interval::rtt).reduce(f64::max).map(|rtt| (rtt - base, 1.0))
    };
    stats::median(events.iter().filter_map(wait))
}

/// The losses, and what waited where they struck.
#[derive(Debug)]
struct Drops<'a> {
    list: Cow<'a, [Drop]>,
    /// How much later than over the shortest way what is near a loss arrived, in microseconds (median); `None` where nothing tells.
    wait_us: Option<f64>,
    /// How many rates between two of them have to agree.
    least_rates: usize,
    /// What is acknowledged up to this time had got through before the first of them, in microseconds; `None` where others struck before
    /// the story begins.
    first_us: Option<f64>,
}

impl<'a> Drops<'a> {
    /// As packets show them, one by one, or as counters tell of them.
    fn new(transfer: &'a Transfer, timeline: &Timeline<'_>, losses: &Losses, base: f64) -> Option<Self> {
        if can_show_in_counters(transfer, timeline) {
            return Self::from_counters(timeline, losses, base);
        }
        let drops = transfer.drops.as_ref()?;
        let wait_us = drops.wait_us.map(|wait| wait.get() as f64);
        // What was on its way when the first was lost arrived before it, and beside the sender it is acknowledged up to a round trip later.
        let first_us = Some(drops.list.first().map_or(0.0, |drop| drop.at_us.get() as f64) + base);
        Some(Self { list: Cow::Borrowed(&drops.list), wait_us, least_rates: thresholds::LEAST_PEAKS, first_us })
    }

    /// One for each loss event: what had been acknowledged when the sender began to retransmit is what had got through when the first
    /// segment of it was lost. `None` where most events are one segment, which chance takes, or where samples are too rare to tell one
    /// event from the next.
    fn from_counters(timeline: &Timeline<'_>, losses: &Losses, base: f64) -> Option<Self> {
        if !timeline.has_fine_samples() {
            return None;
        }
        let intervals = &timeline.intervals;
        let events = loss::events(intervals, base);
        let retransmits = |event: &Range<usize>| intervals[event.clone()].iter().map(|i| i.retransmits).sum();
        let at_once = stats::median(events.iter().map(|event| (retransmits(event), 1.0)))?;
        if at_once < thresholds::POLICED_AT_ONCE {
            return None;
        }
        let wait_us = wait_before(intervals, &events, base);
        let (mut counted, mut passed) = (0, 0.0);
        let drop = |event: &Range<usize>| {
            passed += intervals[counted..event.start].iter().map(|i| i.acked).sum::<f64>();
            counted = event.start;
            Drop { at_us: Micros::new(intervals[counted].from_us), passed: Bytes::new(passed as u64) }
        };
        let list: Cow<'_, [Drop]> = events.iter().map(drop).collect();
        // Who retransmits has heard of all that had got through.
        let first_us = list.first().filter(|_| !losses.are_earlier).map(|drop| drop.at_us.get() as f64);
        Some(Self { list, wait_us, least_rates: thresholds::POLICED_LEAST_EVENTS, first_us })
    }
}

/// What got through between losses, where it is level.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// In bit/s.
    rate: f64,
    /// How long it was at that rate, in stretches of several round trips without a loss.
    apart: f64,
    /// Of how much time that is.
    time: f64,
}

impl Level {
    fn new(rates: Vec<(f64, f64)>, least: usize, base: f64) -> Option<Self> {
        // Less gets through where the bucket was full for a while.
        let rate = stats::quantile(rates.iter().copied(), thresholds::POLICED_QUANTILE).filter(|&rate| rate > 0.0)?;
        let within = |part: f64| rates.iter().filter(move |(figure, _)| (figure - rate).abs() <= part * rate).copied();
        let near: Vec<(f64, f64)> = within(thresholds::AGREEMENT).collect();
        let time = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>();
        let (all, level) = (time(&mut rates.iter().map(|pair| pair.1)), time(&mut near.iter().map(|pair| pair.1)));
        // A sender that has lost nothing for round trips may have sent less than the bucket would have let through.
        let is_apart = |time: f64| time >= thresholds::POLICED_APART_ROUND_TRIPS * base;
        let below = |pair: &&(f64, f64)| pair.0 < (1.0 - thresholds::AGREEMENT) * rate && is_apart(pair.1);
        let counted = all - time(&mut rates.iter().filter(below).map(|pair| pair.1));
        // One pause between two losses is at its own rate, whatever that is. Many at one and the same are no chance.
        let is_same = within(thresholds::POLICED_SAME).count() >= thresholds::POLICED_SAME_LEAST;
        let is_level = rates.len() >= least
            && near.len() > 1
            && level >= thresholds::POLICED_LEVEL * counted
            && (is_same || level >= thresholds::MOST_OF_INTERVAL * all);
        let apart = time(&mut near.iter().map(|pair| pair.1).filter(|&time| is_apart(time)));
        is_level.then_some(Self { rate, apart, time: counted })
    }
}

/// More than that went through before the first loss, or nothing waits where the losses are.
fn has_bucket(level: &Level, drops: &Drops<'_>, timeline: &Timeline<'_>, path: &Path) -> bool {
    let bucket = burst(&timeline.intervals, drops, level.rate);
    let bucket_us = bucket * 8e6 / level.rate;
    let is_bucket =
        bucket_us >= thresholds::POLICED_BUCKET_US && bucket >= thresholds::POLICED_BUCKET_SEGMENTS * timeline.mss;
    let is_waiting = match drops.wait_us {
        Some(wait) => bucket_us < thresholds::POLICED_BY_WAIT * wait,
        None => is_queueing(&timeline.intervals, path),
    };
    // Whoever sends in bursts with pauses doesn't show the bucket. That nothing waits where the losses are tells as much, where
    // they come round trips apart: chance takes more from whoever has more on its way.
    let queued = drops.wait_us.map(|wait| wait * level.rate / 8e6);
    let is_unqueued = queued.is_some_and(|bytes| bytes < thresholds::POLICED_QUEUED_SEGMENTS * timeline.mss)
        && level.apart >= thresholds::MOST_OF_INTERVAL * level.time;
    !is_waiting && is_bucket || is_unqueued
}

/// What got through between losses that lie so many round trips of `base` apart, as rates in bit/s, each with the time that it was
/// taken over. While a sender has nothing to send for a round trip, a bucket fills up: what got through over such a time is no rate of it,
/// and where that is nearly all of the time, none is known.
fn between(drops: &Drops<'_>, rests: &[(f64, f64)], (base, round_trips): (f64, f64)) -> Vec<(f64, f64)> {
    let least = (base * round_trips).max(thresholds::POLICED_LEAST_US);
    let (mut rates, mut counted, mut left_out) = (Vec::new(), 0.0, 0.0);
    let mut points = drops.list.iter().map(|drop| (drop.at_us.get() as f64, drop.passed.get() as f64));
    let Some(mut last) = points.next() else { return rates };
    for point in points {
        let time = point.0 - last.0;
        if time >= least {
            let rested: f64 = rests.iter().map(|(from, to)| (to.min(point.0) - from.max(last.0)).max(0.0)).sum();
            if rested > 0.0 {
                left_out += time - rested;
            } else {
                counted += time;
                rates.push(((point.1 - last.1).max(0.0) * 8e6 / time, time));
            }
            last = point;
        }
    }
    if left_out > thresholds::POLICED_LEFT_OUT * counted {
        rates.clear();
    }
    rates
}

/// When the sender had nothing to send for a round trip and longer: from when and until when, in order.
fn rests(intervals: &[Interval<'_>], base: f64) -> Vec<(f64, f64)> {
    let is_at_rest = |i: &Interval<'_>| packets::is_idle(i) || packets::is_asked(i);
    let mut rests: Vec<(f64, f64)> = Vec::new();
    for interval in intervals.iter().filter(|i| is_at_rest(i)) {
        let (from, to) = (interval.from_us as f64, interval.to_us as f64);
        match rests.last_mut() {
            Some((_, end)) if *end >= from => *end = to,
            _ => rests.push((from, to)),
        }
    }
    rests.retain(|(from, to)| to - from >= base);
    rests
}

/// The rate of a sender that lost much at one rate and keeps to that rate from then on, evenly and without a loss: it has learned what
/// the bucket lets through (BBR: `bbr_lt_bw_sampling`). Nobody else slows to it.
fn learned(intervals: &[Interval<'_>], drops: &Drops<'_>, rates: &[(f64, f64)], base: f64) -> Option<(f64, f64)> {
    let from = drops.list.last()?.at_us.get() as f64 + 2.0 * thresholds::HALF_WINDOW_ROUND_TRIPS * base;
    let to = intervals.last()?.to_us as f64 - 2.0 * thresholds::HALF_WINDOW_ROUND_TRIPS * base;
    let later: Vec<&Interval<'_>> =
        intervals.iter().filter(|i| i.from_us as f64 >= from && i.to_us as f64 <= to).collect();
    let time: f64 = later.iter().map(|i| i.len()).sum();
    let rate = stats::median(later.iter().map(|i| (i.rate, i.len())))?;
    let even = later.iter().filter(|i| (i.rate - rate).abs() <= thresholds::EVEN_SLACK * rate).count();
    let near = |(figure, _): &&(f64, f64)| (figure - rate).abs() <= thresholds::AGREEMENT * rate;
    let sum = |of: &mut dyn Iterator<Item = &(f64, f64)>| of.map(|(_, time)| time).sum::<f64>();
    let is_learned = sum(&mut rates.iter().filter(near)) >= thresholds::MOST_OF_INTERVAL * sum(&mut rates.iter());
    let is_even = even as f64 >= thresholds::EVEN_SHARE * later.len() as f64;
    (time >= thresholds::FLAT_ROUND_TRIPS * base && is_even && is_learned && rate > 0.0).then_some((rate, time))
}

/// By how much more than `rate` allows arrived at most within some time before the first loss, in bytes.
fn burst(intervals: &[Interval<'_>], drops: &Drops<'_>, rate: f64) -> f64 {
    let (mut most, mut now) = (0.0_f64, 0.0_f64);
    for interval in intervals.iter().take_while(|i| drops.first_us.is_some_and(|first| i.from_us as f64 <= first)) {
        let delivered = interval.at.packets.map_or(interval.acked, |packets| packets.delivered.get() as f64);
        now = (now - rate * interval.len() / 8e6).max(0.0) + delivered;
        most = most.max(now - rate * interval.len() / 8e6);
    }
    most
}

/// A queue stood for a quarter of the time: an overflowing one is full before each loss.
fn is_queueing(intervals: &[Interval<'_>], path: &Path) -> bool {
    timeline::part(intervals, |i| {
        i.rtt().is_some_and(|rtt| path.is_inflated(rtt, i.in_flight().unwrap_or(0.0), thresholds::QUEUE_FACTOR))
    }) >= 0.25
}
