//! Whether a token bucket on the path drops what is above its rate (Flach 2016): losses come in bursts, what arrives
//! meanwhile arrives at one rate, no queue stands, and before the first of them more went through. What is *not* here: a
//! queue that overflows, which holds a link at its rate and lengthens the round trip (`path`).

use crate::{
    loss::Losses,
    path::Path,
    stats, thresholds,
    timeline::{Interval, Timeline},
};

/// The rate at which the bucket fills, in bit/s, where there is one. Told from packets only: elsewhere what arrived while
/// a hole stood open is not known.
pub(crate) fn rate(timeline: &Timeline, path: &Path, losses: &Losses) -> Option<f64> {
    let base = timeline.base_rtt?;
    let bursts = losses.retransmits >= thresholds::POLICED_LEAST
        && losses.retransmits >= thresholds::POLICED_BURST_SEGMENTS * losses.episodes as f64;
    if !bursts {
        return None;
    }
    let intervals = &timeline.intervals;
    // A burst of them: one alone may be chance.
    let first = intervals.iter().position(|i| i.retransmits >= 2.0)?;
    let (before, after) = intervals.split_at(first + 1);
    let losing = |i: &&Interval| i.retransmits > 0.0;
    // What is sent again was lost a round trip before; what comes around it passed the bucket while that was empty.
    let rates: Vec<(f64, f64)> =
        after.iter().filter(losing).filter_map(|i| Some((arrived(after, i, base)?, i.len()))).collect();
    let rate = stats::median(rates.iter().copied()).filter(|&rate| rate > 0.0)?;
    let time: f64 = rates.iter().map(|(_, time)| time).sum();
    let near = |(figure, _): &&(f64, f64)| (figure - rate).abs() <= thresholds::AGREEMENT * rate;
    let level: f64 = rates.iter().filter(near).map(|(_, time)| time).sum();
    let burst = before.iter().filter_map(|i| arrived_before(before, i, base)).fold(0.0, f64::max);
    let is_level = level >= thresholds::POLICED_LEVEL * time;
    let is_fast_before = burst >= thresholds::POLICED_BURST * rate;
    // A bucket of a round trip's worth lets no more through than that before it is empty.
    let is_massive = losses.retransmits >= thresholds::POLICED_MASS * losses.episodes as f64;
    if is_queueing(after, path) {
        return None;
    }
    if is_level && is_fast_before {
        return Some(rate);
    }
    let each = before_losses(intervals, base);
    let rate = stats::median(each.iter().map(|&rate| (rate, 1.0))).filter(|&rate| rate > 0.0)?;
    let near = each.iter().filter(|&&figure| (figure - rate).abs() <= thresholds::POLICED_SPREAD * rate).count();
    let is_steady =
        each.len() >= thresholds::LEAST_PEAKS && near as f64 >= thresholds::POLICED_LEVEL * each.len() as f64;
    (is_steady && is_massive).then_some(rate)
}

/// What arrived per time in the round trips before each loss event but the first, in bit/s: what empties a bucket.
fn before_losses(intervals: &[Interval], base: f64) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut quiet_until = 0.0;
    for (index, interval) in intervals.iter().enumerate().filter(|(_, i)| i.retransmits > 0.0) {
        if interval.from_us as f64 >= quiet_until {
            let from = interval.from_us as f64 - thresholds::POLICED_ROUND_TRIPS * base;
            let before = intervals[..index].iter().rev().take_while(|i| i.from_us as f64 >= from);
            rates.extend(rate_of(before).filter(|_| from > 0.0 && quiet_until > 0.0));
        }
        quiet_until = interval.to_us as f64 + 2.0 * base;
    }
    rates
}

/// The rate of what arrived within a round trip to either side.
fn arrived(intervals: &[Interval], around: &Interval, base: f64) -> Option<f64> {
    let (from, to) = (around.from_us as f64 - base, around.to_us as f64 + base);
    rate_of(intervals.iter().filter(|i| i.from_us as f64 >= from && i.to_us as f64 <= to))
}

/// The rate of what arrived within at least a round trip up to the end of an interval.
fn arrived_before(intervals: &[Interval], last: &Interval, base: f64) -> Option<f64> {
    let from = last.to_us.checked_sub(base as u64)?;
    rate_of(intervals.iter().filter(|i| i.to_us > from && i.to_us <= last.to_us))
}

fn rate_of<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Option<f64> {
    let (mut bytes, mut time) = (0.0, 0.0);
    for interval in intervals {
        bytes += interval.at.packets?.delivered.get() as f64;
        time += interval.len();
    }
    (time > 0.0).then(|| bytes * 8e6 / time)
}

/// A queue stood for a quarter of the time: an overflowing one is full before each loss.
fn is_queueing(intervals: &[Interval], path: &Path) -> bool {
    let time: f64 = intervals.iter().map(Interval::len).sum();
    let queued = |i: &&Interval| {
        i.rtt().is_some_and(|rtt| path.is_inflated(rtt, i.in_flight().unwrap_or(0.0), thresholds::QUEUE_FACTOR))
    };
    intervals.iter().filter(queued).map(Interval::len).sum::<f64>() >= 0.25 * time
}
