//! Whether a connection has done nothing yet but open its window, as counters tell: they begin with the connection, where a story of
//! looks begins with the first of these. What is *not* here: what packets show of it (`packets`).

use crate::{
    Limiter,
    classify::Label,
    thresholds,
    timeline::{Interval, Timeline},
};

/// All that was acknowledged so far took hardly more round trips than doubling from the initial window takes (RFC 6928), the window
/// grew by what was acknowledged, which it does only where it is used up (Linux: `tcp_is_cwnd_limited`), and nothing ended slow start.
pub(crate) fn is_all(timeline: &Timeline<'_>) -> bool {
    let (Some(last), Some(base)) = (timeline.intervals.last(), timeline.base_rtt) else { return false };
    let (Some(cwnd), Some(busy), Some(0)) = (last.cwnd(), last.at.busy_us, last.at.retransmits) else { return false };
    let initial = thresholds::INITIAL_SEGMENTS * timeline.mss;
    let acked = last.at.acked.get() as f64;
    let round_trips = busy.get() as f64 / base;
    let doublings = (acked / initial + 1.0).log2();
    last.at.packets.is_none()
        && last.at.ssthresh.is_none()
        && acked >= 2.0 * initial
        && cwnd - initial >= thresholds::OPENING_GROWN * acked
        && round_trips <= doublings + thresholds::OPENING_ROUND_TRIPS
}

/// Intervals before the silence at the end.
pub(crate) fn before_silence(intervals: &[Interval<'_>]) -> usize {
    let is_silent = |i: &&Interval<'_>| {
        i.acked <= 0.0 && i.in_flight() == Some(0.0) && i.not_sent().unwrap_or(0.0) <= 0.0 && i.at.packets.is_none()
    };
    intervals.len() - intervals.iter().rev().take_while(is_silent).count()
}

/// The labels that a verdict rests on.
pub(crate) fn judged(timeline: &Timeline<'_>, labels: &[Label]) -> usize {
    let end = before_silence(&timeline.intervals);
    let is_opening = labels[..end].iter().any(|label| label.limiter == Limiter::CongestionWindow);
    if is_all(timeline) && is_opening { end } else { labels.len() }
}
