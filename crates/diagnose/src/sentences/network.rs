//! Evidence where the network holds the sender back: a full path, losses, an opening window, segments that are too
//! small or too large.

use fullpipe_units::{Rate, window_limited_rate};

use super::{bytes, measured, micros, percent, spare_path};
use crate::{Detail, classify::Case, packets, stats, thresholds, timeline::Interval, verdict::Ruling};

pub(super) fn path(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(known_rate(case, ruling));
    let queue = queue(case, ruling);
    if ruling.detail == Some(Detail::Policed) {
        // Cable modems hold a rate with a bucket and keep a queue in front of it.
        let by = if queue.is_some() {
            "whatever was sent: a bucket of tokens behind a queue"
        } else {
            "without a queue: a policer"
        };
        texts.push(format!(
            "{} of all segments were lost at a level rate of {}, {by}",
            per_cent_lost(case),
            measured(ruling)
        ));
    }
    texts.extend(queue);
    texts.extend(plateau(case, ruling));
    if case.losses.retransmits > 0.0 && ruling.detail != Some(Detail::Policed) {
        texts.push(format!("{}: what a full queue drops", retransmitted(case)));
    }
    texts
}

fn known_rate(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let known = case.path.known.filter(|&known| ruling.rate + case.path.others >= thresholds::PATH_NOT_FULL * known)?;
    // The median: acknowledgements that jump when a hole is repaired count what was delivered before.
    let typical = ruling.median(|i| Some(i.rate)).unwrap_or(ruling.rate);
    let part = percent((typical + case.path.others) / known);
    let (known, measured) = (Rate::from_bps(known as u64), Rate::from_bps(typical as u64));
    Some(if case.path.others > 0.0 {
        let others = Rate::from_bps(case.path.others as u64);
        format!("the path carries {known}; this stream used {measured} and the others {others}, together {part} of it")
    } else {
        format!("the path carries {known}; measured {measured}, {part} of it")
    })
}

/// What is in flight beyond the path's own product stands in its queue.
fn queue(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let (rtt, base) = ruling.rtt.zip(case.path.base_rtt)?;
    if rtt - base < ((thresholds::QUEUE_FACTOR_WINDOW - 1.0) * base).max(thresholds::LEAST_QUEUE_US) {
        return None;
    }
    let queued = ruling.rate * (rtt - base) / 8e6;
    // A segment and the one that its acknowledgement waits for are no queue in front of a policer.
    if ruling.detail == Some(Detail::Policed) && queued < thresholds::POLICED_QUEUED_SEGMENTS * case.timeline.mss {
        return None;
    }
    let queued = bytes(queued);
    let rate = measured(ruling);
    let times = times(rtt / base);
    let (rtt, base, delay) = (micros(rtt), micros(base), micros(rtt - base));
    Some(format!(
        "the round trip took {rtt} where the empty path takes {base}{times}: {rate} x {delay} / 8 = {queued} \
         queued at the bottleneck"
    ))
}

/// How often one thing is another. Of what differs by hundreds, as on a path within one machine, that says nothing.
fn times(factor: f64) -> String {
    match factor {
        factor if factor < 10.0 => format!(" (x {factor:.2})"),
        factor if factor < 100.0 => format!(" (x {factor:.0})"),
        _ => String::new(),
    }
}

fn plateau(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let time: f64 = ruling.intervals.iter().map(|i| i.len()).sum();
    let level: f64 = ruling.intervals.iter().filter(|i| case.path.at_plateau(i)).map(|i| i.len()).sum();
    let share = stats::fraction(level, time);
    let pacing = ruling.median(|i| i.at.pacing_rate_bps.map(|r| r.bps() as f64)).filter(|_| case.is_model_based());
    let pacing = pacing.map(|bps| format!(", and the sender paced itself at {}", Rate::from_bps(bps as u64)));
    let typical = ruling.median(|i| Some(i.rate))?;
    (share >= thresholds::STEADY_SHARE).then(|| {
        format!(
            "the rate stayed at its plateau, {} (median), for {} of that time{}",
            Rate::from_bps(typical as u64),
            percent(share),
            pacing.unwrap_or_default()
        )
    })
}

pub(super) fn congestion(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    match ruling.detail {
        Some(Detail::SlowStart) => texts.extend(opening(case, ruling)),
        Some(Detail::Rto | Detail::TailLoss) => texts.push(format!(
            "{}: nothing but the timer noticed what was lost{}",
            timeouts(case.losses.timeouts),
            if ruling.detail == Some(Detail::TailLoss) { ", because nothing was sent after it" } else { "" }
        )),
        _ if ruling.limiter == crate::Limiter::Reordering => texts.push(format!(
            "{:.0} segments were retransmitted and {} of them came back as duplicates: they were late, not lost \
             (the sender noticed reordering {} times)",
            case.losses.retransmits,
            percent(case.losses.spurious.min(1.0)),
            case.losses.reorderings
        )),
        _ => texts.extend(random_loss(case, ruling)),
    }
    if let Some((rtt, base)) = ruling.rtt.zip(case.path.base_rtt).filter(|_| ruling.detail == Some(Detail::Loss)) {
        texts.push(format!(
            "the round trip took {} (at least {}): the losses struck before a queue could form",
            micros(rtt),
            micros(base)
        ));
    }
    texts.extend(spare_path(case, ruling));
    texts
}

fn opening(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let ends = ruling.intervals.iter().find(|i| i.rate > 0.0).zip(ruling.intervals.last());
    let Some((first, last)) = ends else { return Vec::new() };
    let (from, to) = (Rate::from_bps(first.rate as u64), Rate::from_bps(last.rate as u64));
    let seen = |i: &Interval<'_>| i.cwnd().is_some();
    let what = if seen(first) && seen(last) { "the congestion window was" } else { "what was in flight was" };
    let most = ruling.intervals.iter().filter_map(|i| packets::peak(i)).fold(0.0, f64::max);
    let sizes = match first.cwnd().zip(last.cwnd()) {
        Some((first, last)) => format!("from {} to {}, ", bytes(first), bytes(last)),
        None => format!("up to {}, ", bytes(most)),
    };
    let growth =
        format!("{what} still growing, {sizes}and the rate with it, from {from} to {to}; nothing else was in its way");
    std::iter::once(growth).chain(initial_window(case)).collect()
}

/// What the sender began with, against the ten segments of RFC 6928.
fn initial_window(case: &Case<'_>) -> Option<String> {
    let begun = case.transfer.opening.and_then(|opening| opening.initial_window)?;
    let segments = (begun.get() as f64 / case.timeline.mss).ceil();
    let allowed = thresholds::INITIAL_SEGMENTS;
    let verdict = if segments < allowed { format!("; RFC 6928 allows {allowed:.0}") } else { String::new() };
    Some(format!("it began with {begun} before the first acknowledgement: {segments:.0} segments{verdict}"))
}

/// What losses allow: `1.22 x MSS / (RTT x sqrt p)` (Mathis 1997) for a sender of the Reno family; CUBIC stays near it
/// where round trips are short or losses frequent (RFC 9438, section 4.3).
fn random_loss(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let rtt = micros(ruling.rtt?);
    if case.losses.ratio <= 0.0 {
        let cwnd = bytes(ruling.median(|i| i.cwnd())?);
        let rate = window_limited_rate(cwnd, rtt).unwrap_or_default();
        return Some(format!("the congestion window allowed {cwnd}: {cwnd} x 8 / {rtt} = {rate}"));
    }
    let count = retransmitted(case);
    if case.is_model_based() {
        return Some(format!("{count}; measured {}", measured(ruling)));
    }
    let segments = 1.22 / case.losses.ratio.sqrt();
    let bound = window_limited_rate(bytes(segments * case.timeline.mss), rtt).unwrap_or_default();
    Some(format!(
        "{count}; 1.22 x {} x 8 / ({rtt} x sqrt({:.5})) = {bound}, measured {}",
        bytes(case.timeline.mss),
        case.losses.ratio,
        measured(ruling)
    ))
}

pub(super) fn segment_size(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let mtu = case.transfer.path_mtu.map(|mtu| format!("; the path takes packets of up to {mtu} B"));
    let (mtu, mss) = (mtu.unwrap_or_default(), bytes(case.timeline.mss));
    if ruling.detail != Some(Detail::MtuBlackHole) {
        return vec![format!("a segment carried at most {mss}{mtu}")];
    }
    let largest = case.timeline.intervals.iter().map(|i| case.timeline.mss_at(i)).fold(0.0, f64::max);
    let largest = bytes(largest);
    vec![format!(
        "segments of {largest} were retransmitted after {} and never acknowledged at that size{mtu}; {} got through",
        timeouts(case.losses.timeouts),
        bytes(case.timeline.acked())
    )]
}

fn timeouts(count: u64) -> String {
    if count == 1 { "a retransmission timeout".into() } else { format!("{count} retransmission timeouts") }
}

/// How many segments were retransmitted, and in how many loss events.
fn retransmitted(case: &Case<'_>) -> String {
    let (segments, events) = (case.losses.retransmits.round() as u64, case.losses.episodes);
    let (noun, verb) = if segments == 1 { ("segment", "was") } else { ("segments", "were") };
    let loss = if events == 1 { "loss event" } else { "loss events" };
    format!("{segments} {noun} ({}) {verb} retransmitted in {events} {loss}", per_cent_lost(case))
}

fn per_cent_lost(case: &Case<'_>) -> String {
    format!("{:.2} %", case.losses.ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_is_told_as_long_as_it_says_something() {
        assert_eq!([1.5, 12.34, 907.83].map(times), [" (x 1.50)", " (x 12)", ""]);
    }
}
