//! Whether a token bucket on the path drops what is above its rate (Flach 2016). Whenever it drops, it is empty: what gets
//! through between one loss and the next passes at its rate, whatever the sender does, no queue stands, and before the first
//! loss more went through. What is *not* here: a queue that overflows, which holds a link at its rate, too, and makes what
//! comes next wait (`path`).

use crate::{
    Transfer,
    loss::Losses,
    path::Path,
    stats, thresholds,
    timeline::{Interval, Timeline},
    transfer::Drops,
};

/// The rate at which the bucket fills, in bit/s, where there is one. Inferred from packets only: elsewhere when something was
/// lost isn't known.
pub(crate) fn rate(transfer: &Transfer, timeline: &Timeline, path: &Path, losses: &Losses) -> Option<f64> {
    let drops = transfer.drops.as_ref()?;
    let base = timeline.base_rtt?;
    // A bucket drops all that is above its rate until the sender hears of it, where chance takes one.
    let in_bursts = losses.retransmits >= thresholds::POLICED_LEAST
        && losses.retransmits >= thresholds::POLICED_BURST_SEGMENTS * losses.episodes as f64;
    if !in_bursts {
        return None;
    }
    let rates = between(drops, base);
    // Less gets through where the bucket was full for a while.
    let rate = stats::quantile(rates.iter().copied(), thresholds::POLICED_QUANTILE).filter(|&rate| rate > 0.0)?;
    let near = |(figure, _): &&(f64, f64)| (figure - rate).abs() <= thresholds::AGREEMENT * rate;
    // A sender that has lost nothing for round trips may have sent less than the bucket would have let through.
    let counts =
        |pair: &&(f64, f64)| near(pair) || pair.0 > rate || pair.1 < thresholds::POLICED_APART_ROUND_TRIPS * base;
    let all: f64 = rates.iter().map(|(_, time)| time).sum();
    let time: f64 = rates.iter().filter(counts).map(|(_, time)| time).sum();
    let level: f64 = rates.iter().filter(near).map(|(_, time)| time).sum();
    // One pause between two losses is at its own rate, whatever that is.
    let is_level = rates.len() >= thresholds::LEAST_PEAKS
        && rates.iter().filter(near).count() > 1
        && level >= thresholds::POLICED_LEVEL * time
        && level >= thresholds::MOST_OF_INTERVAL * all;
    let bucket_us = burst(&timeline.intervals, drops, (rate, base)) * 8e6 / rate;
    let is_waiting = match drops.wait_us {
        Some(wait) => bucket_us < thresholds::POLICED_BY_WAIT * wait.get() as f64,
        None => is_queueing(&timeline.intervals, path),
    };
    // Whoever sends in bursts with pauses doesn't show the bucket. That nothing waits where the losses are tells as much, where
    // they come round trips apart: chance takes more from whoever has more on its way.
    let apart: f64 = rates
        .iter()
        .filter(near)
        .filter(|(_, time)| *time >= thresholds::POLICED_APART_ROUND_TRIPS * base)
        .map(|(_, time)| time)
        .sum();
    let queued = drops.wait_us.map(|wait| wait.get() as f64 * rate / 8e6);
    let is_unqueued = queued.is_some_and(|bytes| bytes < thresholds::POLICED_QUEUED_SEGMENTS * timeline.mss)
        && apart >= thresholds::MOST_OF_INTERVAL * time;
    let has_bucket = !is_waiting && bucket_us >= thresholds::POLICED_BUCKET_US;
    (is_level && (has_bucket || is_unqueued)).then_some(rate)
}

/// What got through between losses, as rates in bit/s, each with the time that it was taken over.
fn between(drops: &Drops, base: f64) -> Vec<(f64, f64)> {
    let least = (base * thresholds::POLICED_ROUND_TRIPS).max(thresholds::POLICED_LEAST_US);
    let mut rates = Vec::new();
    let mut points = drops.list.iter().map(|drop| (drop.at_us.get() as f64, drop.passed.get() as f64));
    let Some(mut last) = points.next() else { return rates };
    for point in points {
        let time = point.0 - last.0;
        if time >= least {
            rates.push(((point.1 - last.1).max(0.0) * 8e6 / time, time));
            last = point;
        }
    }
    rates
}

/// By how much more than `rate` allows arrived at most within some time before the first loss, in bytes; `base` is the empty
/// path's round trip.
fn burst(intervals: &[Interval], drops: &Drops, (rate, base): (f64, f64)) -> f64 {
    let first = drops.list.first().map_or(0, |drop| drop.at_us.get());
    let (mut most, mut now) = (0.0_f64, 0.0_f64);
    // What was on its way when the first was lost arrived before it, and beside the sender it is acknowledged up to a round trip
    // later.
    for interval in intervals.iter().take_while(|interval| interval.from_us as f64 <= first as f64 + base) {
        let delivered = interval.at.packets.map_or(0.0, |packets| packets.delivered.get() as f64);
        now = (now - rate * interval.len() / 8e6).max(0.0) + delivered;
        most = most.max(now - rate * interval.len() / 8e6);
    }
    most
}

/// A queue stood for a quarter of the time: an overflowing one is full before each loss.
fn is_queueing(intervals: &[Interval], path: &Path) -> bool {
    let time: f64 = intervals.iter().map(Interval::len).sum();
    let queued = |i: &&Interval| {
        i.rtt().is_some_and(|rtt| path.is_inflated(rtt, i.in_flight().unwrap_or(0.0), thresholds::QUEUE_FACTOR))
    };
    intervals.iter().filter(queued).map(Interval::len).sum::<f64>() >= 0.25 * time
}
