//! What a capture shows in place of the sender's own counters: an amount in flight that never goes beyond the same
//! ceiling, and time in which nothing was under way. What is *not* here: windows and queues, which every source sees.

use fullpipe_units::Bytes;

use crate::{
    pauses::{Pauses, Sign},
    stats, thresholds,
    timeline::{self, Interval, Timeline},
    transfer::{PacketSample, Transfer},
};

/// Why the most in flight is the same in round trip after round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// A ceiling of the sender's own: a send buffer, a clamp.
    Ceiling,
    /// The application writes as much each time, and room goes by unused in between.
    Writes,
}

/// For each interval, why what was in flight stood at a level, if it did.
///
/// Nothing else makes the most in flight of one round trip equal to that of the next to within a segment: a congestion
/// window grows, and one that follows the path's rate probes it.
pub(crate) fn levels(timeline: &Timeline<'_>, write: Option<Bytes>, is_lossy: bool) -> Vec<Option<Level>> {
    let intervals = &timeline.intervals;
    let mut levels = vec![None; intervals.len()];
    let Some(base) = timeline.base_rtt else { return levels };
    let tops = tops(intervals, base);
    if let Some(most) = usual_top(timeline, &tops, base).filter(|_| !is_lossy) {
        let at = |top: f64| (top - most).abs() <= usual_slack(timeline, most);
        let span: Vec<&Interval<'_>> =
            intervals.iter().zip(&tops).filter(|(i, top)| at(**top) && has_room(i, most)).map(|(i, _)| i).collect();
        let level = why_flat(timeline, &span, base, write);
        for ((place, interval), top) in levels.iter_mut().zip(intervals).zip(&tops) {
            *place = level.filter(|_| at(*top) && has_room(interval, most));
        }
    }
    for flat in [thresholds::FLAT_LONG, thresholds::FLAT_SHORT] {
        mark_flat(timeline, &tops, (base, flat), write, &mut levels);
    }
    let mut before = 0.0_f64;
    for (level, (interval, top)) in levels.iter_mut().zip(intervals.iter().zip(&tops)) {
        // A buffer that held more before holds as much now.
        let is_less = *top < thresholds::CEILING_OF_EARLIER * before;
        *level = level.filter(|level| *level != Level::Ceiling || !is_less);
        before = before.max(peak(interval).unwrap_or(0.0));
    }
    // The ceiling is one while data moves; a pause of the application below it is not.
    for (level, interval) in levels.iter_mut().zip(intervals) {
        *level = level.filter(|_| !is_idle(interval));
    }
    levels
}

/// Marks the stretches of so many round trips in which the most in flight stays the same.
fn mark_flat(
    timeline: &Timeline<'_>,
    tops: &[f64],
    (base, flat): (f64, thresholds::Flat),
    write: Option<Bytes>,
    levels: &mut [Option<Level>],
) {
    let intervals = &timeline.intervals;
    let (mut from, mut to) = (0, 0);
    while from < intervals.len() {
        let start = intervals[from].from_us as f64;
        to = to.max(from);
        while to < intervals.len() && intervals[to].to_us as f64 <= start + flat.round_trips * base {
            to += 1;
        }
        let is_long = to > from && intervals[to - 1].to_us as f64 - start >= 0.93 * flat.round_trips * base;
        let is_known = levels[from..to].iter().all(Option::is_some);
        let is_level = || is_flat(timeline, &intervals[from..to], &tops[from..to], flat);
        if is_long && !is_known && is_level() && !is_step(timeline, tops, from..to) {
            let span: Vec<&Interval<'_>> = intervals[from..to].iter().collect();
            if let Some(level) = why_flat(timeline, &span, base, write) {
                levels[from..to].fill(Some(level));
            }
        }
        from += 1;
    }
}

/// What is in flight meets the same top in most round trips, early and late ones, with one pause in each or two, and the application's
/// writes show no size, or none that fits: a buffer that a late writer fills again does that, however its sender paces what it was
/// given, and so does an application whose pauses happen to be as long.
pub(crate) fn meets_one_top(transfer: &Transfer, timeline: &Timeline<'_>) -> bool {
    let intervals = &timeline.intervals;
    let Some(base) = timeline.base_rtt.filter(|_| largest_offer(timeline) > 0.0) else { return false };
    let pauses = Pauses::from_intervals(intervals).count() * base / timeline.span_us.max(1.0);
    let is_lossless = intervals.iter().all(|i| i.retransmits <= 0.0);
    let is_asked = asked(timeline) >= thresholds::LEAST_EXCHANGES;
    if !thresholds::ONE_TOP_PAUSES.contains(&pauses) || !is_lossless || is_asked || is_even(timeline) {
        return false;
    }
    let tops = tops(intervals, base);
    let fits = |top: f64| transfer.write.is_some_and(|write| (write.get() as f64) < top - usual_slack(timeline, top));
    usual_top(timeline, &tops, base).is_some_and(|top| !fits(top))
}

/// What is in flight at most in most round trips, early and late ones: something ends the flight there, however seldom it
/// goes beyond. What grows passes each level once.
fn usual_top(timeline: &Timeline<'_>, tops: &[f64], base: f64) -> Option<f64> {
    let intervals = &timeline.intervals;
    let mut each: Vec<(f64, f64)> = Vec::new();
    let mut next = 0.0;
    for (interval, &top) in intervals.iter().zip(tops) {
        if interval.from_us as f64 >= next && !is_idle(interval) {
            each.push((top, interval.from_us as f64));
            next = interval.from_us as f64 + base;
        }
    }
    let (first, last) = (each.first()?.1, each.last()?.1);
    let count = each.len();
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut low, mut best) = (0, 0..0);
    for high in 0..count {
        while each[high].0 - each[low].0 > usual_slack(timeline, each[high].0) {
            low += 1;
        }
        if high + 1 - low > best.len() {
            best = low..high + 1;
        }
    }
    let at = &each[best];
    let is_often = at.len() >= thresholds::MODE_ROUND_TRIPS && at.len() as f64 >= thresholds::MODE_SHARE * count as f64;
    let middle = f64::midpoint(first, last);
    let (early, late): (Vec<_>, Vec<_>) = at.iter().partition(|(_, from)| *from < middle);
    let is_spread = early.len() * 4 >= at.len() && late.len() * 4 >= at.len();
    // Congestion avoidance adds half a segment to a segment in each round trip.
    let typical = |part: &[&(f64, f64)]| stats::median(part.iter().map(|(top, _)| (*top, 1.0)));
    let grown = typical(&late).zip(typical(&early)).map_or(0.0, |(late, early)| late - early);
    let grows = grown >= thresholds::GROWING_SEGMENTS * timeline.mss * (count as f64 / 2.0);
    let most = at.last()?.0;
    (is_often && is_spread && !grows && most >= thresholds::LEAST_CEILING * timeline.mss).then_some(most)
}

/// By how much tops may differ that are the same.
fn slack(timeline: &Timeline<'_>, most: f64) -> f64 {
    let segments = (thresholds::FLAT_SEGMENTS * timeline.mss).min(thresholds::USUAL_SLACK * most);
    segments.max(thresholds::ONE_WRITE_SEGMENTS * timeline.mss).max(thresholds::FLAT * most)
}

/// ... of those that the flight meets now and then: where packets are charged by the memory that they take, a buffer holds
/// a little more or less each time.
fn usual_slack(timeline: &Timeline<'_>, most: f64) -> f64 {
    slack(timeline, most).max(thresholds::USUAL_SLACK * most)
}

/// The offered window would take more than a flight of `most`.
fn has_room(interval: &Interval<'_>, most: f64) -> bool {
    interval.offered().is_none_or(|window| most < thresholds::CAP_BELOW_WINDOW * window)
}

/// Why the most in flight is the same throughout `span`; `None` where that can't be determined.
fn why_flat(timeline: &Timeline<'_>, span: &[&Interval<'_>], base: f64, write: Option<Bytes>) -> Option<Level> {
    let pauses = Pauses::from_intervals(span.iter().copied());
    let round_trips = span.iter().map(|i| i.len()).sum::<f64>() / base;
    // A link that is just full, without a queue, looks like a buffer, but that it delivers all the time.
    let dry = timeline::median(span, |i| i.dry).unwrap_or(1.0);
    // Where round trips under load were not seen, what is in flight was computed from the rate: level is what is.
    let is_seen = span.iter().any(|i| i.rtt().is_some());
    match pauses.sign(round_trips) {
        Some(Sign::Buffer) => return Some(Level::Ceiling),
        Some(Sign::Application) => return Some(Level::Writes),
        Some(Sign::Window | Sign::Unclear) if dry < thresholds::NEVER_FULL => return None,
        Some(Sign::Window | Sign::Unclear) => return Some(Level::Ceiling),
        None if is_even(timeline) => return Some(Level::Writes),
        None => {}
    }
    // A sender that never pauses is clocked by acknowledgements, or it paces, or its application does.
    match pauses.is_clocked() {
        Some(false) => Some(Level::Writes),
        _ if !is_fed(span) || is_one_write(timeline, span, write) => Some(Level::Writes),
        clocked if dry < thresholds::NEVER_FULL && (clocked.is_none() || !is_seen) => None,
        _ => Some(Level::Ceiling),
    }
}

/// What is in flight on average, of the most within a round trip to either side, in the intervals that `is_of` names; with the time
/// that they take.
pub(crate) fn filled(timeline: &Timeline<'_>, is_of: impl Fn(usize, &Interval<'_>) -> bool) -> (f64, f64) {
    let intervals = &timeline.intervals;
    let base = timeline.base_rtt.unwrap_or(0.0);
    let (mut mean, mut most, mut time) = (0.0, 0.0, 0.0);
    for (index, interval) in intervals.iter().enumerate().filter(|(index, interval)| is_of(*index, interval)) {
        mean += interval.in_flight().unwrap_or(0.0) * interval.len();
        most += top(intervals, index, base) * interval.len();
        time += interval.len();
    }
    (stats::fraction(mean, most), time)
}

/// For each interval, the most in flight within a round trip to either side.
fn tops(intervals: &[Interval<'_>], base: f64) -> Vec<f64> {
    (0..intervals.len()).map(|index| top(intervals, index, base)).collect()
}

/// The most in flight within a round trip to either side of an interval.
fn top(intervals: &[Interval<'_>], index: usize, base: f64) -> f64 {
    let (from, to) = (intervals[index].from_us as f64 - base, intervals[index].to_us as f64 + base);
    let before = intervals[..index].iter().rev().take_while(|i| i.to_us as f64 > from);
    let after = intervals[index..].iter().take_while(|i| (i.from_us as f64) < to);
    before.chain(after).filter_map(peak).fold(0.0, f64::max)
}

/// A step of a staircase: a congestion window that gains a segment in several round trips stays level for as long, and its flight moves by
/// the two segments of one acknowledgement. Before and after it, it was and is the next step.
fn is_step(timeline: &Timeline<'_>, tops: &[f64], span: core::ops::Range<usize>) -> bool {
    let intervals = &timeline.intervals;
    let level = tops[span.clone()].iter().copied().fold(0.0, f64::max);
    let is_same = |top: f64| (top - level).abs() <= thresholds::ONE_WRITE_SEGMENTS * timeline.mss;
    let below = (0..span.start).rev().find(|&at| !is_same(tops[at]));
    let above = (span.end..tops.len()).find(|&at| !is_same(tops[at]));
    let is_next = |rise: f64| {
        (thresholds::ONE_WRITE_SEGMENTS * timeline.mss..=thresholds::STEP_SEGMENTS * timeline.mss).contains(&rise)
    };
    let is_calm = |from: usize, to: usize| intervals[from..=to].iter().all(|i| i.retransmits <= 0.0);
    below.zip(above).is_some_and(|(below, above)| {
        is_next(level - tops[below]) && is_next(tops[above] - level) && is_calm(below, above)
    })
}

fn is_flat(timeline: &Timeline<'_>, span: &[Interval<'_>], tops: &[f64], flat: thresholds::Flat) -> bool {
    let most = tops.iter().copied().fold(0.0, f64::max);
    let least = tops.iter().copied().fold(f64::MAX, f64::min);
    let slack = if flat.is_exact { thresholds::ONE_WRITE_SEGMENTS * timeline.mss } else { slack(timeline, most) };
    if most - least > slack {
        return false;
    }
    let offered = stats::median(span.iter().filter_map(|i| Some((i.offered()?, i.len()))));
    let has_room = offered.is_none_or(|window| most < thresholds::CAP_BELOW_WINDOW * window);
    let lost = span.iter().any(|i| i.retransmits > 0.0);
    // Where round trips under load were not seen, what is in flight was computed from the empty path's.
    let seen = span.iter().any(|i| i.rtt().is_some());
    seen && most >= thresholds::LEAST_CEILING * timeline.mss && has_room && !lost
}

/// No more than a segment was ever in flight: there was no more to send, whatever would have taken it, because no
/// congestion window is smaller (RFC 5681, section 3.1). Where a capture stands away from the sender, two may seem to be
/// for a moment.
pub(crate) fn is_short(interval: &Interval<'_>, mss: f64) -> bool {
    let one =
        |most: f64| most <= mss || most <= 2.0 * mss && interval.in_flight().is_some_and(|mean| mean <= 1.1 * mss);
    peak(interval).is_some_and(one) && interval.timeouts == 0 && interval.retransmits <= 0.0
}

/// Most of the payload left while no acknowledgement made room for it, and nothing was lost.
pub(crate) fn is_unprompted(timeline: &Timeline<'_>) -> bool {
    let sum = |bytes: fn(&PacketSample) -> u64| -> f64 {
        timeline.intervals.iter().filter_map(|i| i.at.packets.as_ref()).map(|packets| bytes(packets) as f64).sum()
    };
    let lost = timeline.intervals.iter().any(|i| i.retransmits > 0.0);
    let seen = timeline.intervals.iter().any(|i| i.rtt().is_some());
    // A sender that paces its start sends unprompted too, until its window has opened.
    let long = timeline.base_rtt.is_some_and(|base| timeline.span_us >= thresholds::FLAT_ROUND_TRIPS * base);
    seen && long && !lost && sum(|p| p.unprompted.get()) >= thresholds::UNPROMPTED * sum(|p| p.sent.get()).max(1.0)
}

/// Nearly as much left in each two round trips as in any other, and no queue formed: the sender kept to a rate of its own.
/// What acknowledgements clock comes in bursts, and a sender that looks for the path's rate goes beyond it now and then.
pub(crate) fn is_even(timeline: &Timeline<'_>) -> bool {
    let intervals = &timeline.intervals;
    let Some(base) = timeline.base_rtt else { return false };
    let opening = intervals.iter().take_while(|i| (i.to_us as f64) < thresholds::EVEN_FROM * timeline.span_us).count();
    let closing = intervals.iter().rev().take_while(|i| (i.acked) == 0.0).count() + 1;
    let held = intervals.get(opening..intervals.len().saturating_sub(closing)).unwrap_or_default();
    let typical = stats::median(held.iter().map(|i| (i.len(), 1.0))).unwrap_or(base);
    let many = (2.0 * base / typical.max(1.0)).round().max(1.0) as usize;
    let sent = |i: &Interval<'_>| i.at.packets.map_or(0.0, |packets| packets.sent.get() as f64);
    let sums: Vec<f64> = held.windows(many).map(|part| part.iter().map(sent).sum()).collect();
    let Some(usual) = stats::median(sums.iter().map(|&sum| (sum, 1.0))) else { return false };
    let slack = (thresholds::EVEN_SLACK * usual).max(2.0 * timeline.mss);
    let near = sums.iter().filter(|&&sum| (sum - usual).abs() <= slack).count();
    // Full segments take a little longer than those of the handshake, all of them.
    let rtt = |part| stats::quantile(held.iter().filter_map(|i| Some((i.rtt()?, i.len()))), part);
    let Some((low, high)) = rtt(1.0 - thresholds::PROBING_QUANTILE).zip(rtt(thresholds::PROBING_QUANTILE)) else {
        return false;
    };
    let moves = high - low > ((thresholds::QUEUE_FACTOR_LEAST - 1.0) * base).max(thresholds::LEAST_QUEUE_US);
    let is_queueing = moves || low >= thresholds::QUEUE_FACTOR_WINDOW * base;
    let is_long =
        timeline.span_us >= thresholds::FLAT_ROUND_TRIPS * base && usual >= thresholds::EVEN_LEAST * timeline.mss;
    let lost = intervals.iter().any(|i| i.retransmits > 0.0);
    let dry = stats::median(held.iter().filter_map(|i| Some((i.dry?, i.len())))).unwrap_or(1.0);
    is_long
        && !lost
        && dry < thresholds::NEVER_FULL
        && near as f64 >= thresholds::EVEN_SHARE * sums.len() as f64
        && !is_queueing
}

/// What was carried needs the smaller part of what usually is in flight at most: the rate times the round trip (Little's law). The path
/// was empty for most of the time.
pub(crate) fn is_half_empty(held: &[&Interval<'_>], base: Option<f64>) -> bool {
    let most = timeline::median(held, peak);
    let rtt = timeline::median(held, |i| i.rtt()).or(base);
    let needs = rtt.map(|rtt| timeline::mean_rate(held) * rtt / 8e6);
    needs.zip(most).is_some_and(|(needs, most)| needs < thresholds::HALF_EMPTY * most)
}

/// Nothing was in flight for most of the interval.
pub(crate) fn is_idle(interval: &Interval<'_>) -> bool {
    part(interval, |packets| packets.idle_us.get()) >= thresholds::MOST_OF_INTERVAL
}

/// Most of what was sent followed messages of the receiver's application, which asked the sender's for more: a window of
/// their own (SSH: RFC 4254, section 5.2; HTTP/2: RFC 9113, section 5.2).
pub(crate) fn is_credited(timeline: &Timeline<'_>) -> bool {
    let sum = |figure: fn(&PacketSample) -> f64| -> f64 {
        timeline.intervals.iter().filter_map(|i| i.at.packets.as_ref()).map(figure).sum()
    };
    let share = sum(|p| p.credited.get() as f64) / sum(|p| p.sent.get() as f64).max(1.0);
    let credits = sum(|p| f64::from(p.credits));
    let chance = credits * thresholds::CREDIT_US / timeline.span_us.max(1.0);
    credits >= thresholds::LEAST_CREDITS
        && share >= thresholds::CREDITED
        && share >= thresholds::CREDITED_BY_CHANCE * chance
}

/// Everything had been acknowledged for a good part of the time: a buffer that is full is never empty, and one write that fills it
/// follows the acknowledgement that emptied it at once. Beside the receiver, where a sender's pauses don't show otherwise.
pub(crate) fn is_emptied(timeline: &Timeline<'_>) -> bool {
    let idle = time_of(timeline, |packets| packets.idle_us.get());
    idle >= thresholds::EMPTIED * timeline.span_us && !Pauses::from_intervals(&timeline.intervals).are_shown()
}

/// Everything had been acknowledged at some moment of every fourth interval.
pub(crate) fn is_often_empty(intervals: &[&Interval<'_>]) -> bool {
    intervals.iter().filter(|i| part(i, |packets| packets.idle_us.get()) > 0.0).count() * 4 >= intervals.len()
}

/// What is in flight at most is what the application writes at a time: a pace that fits the round trip leaves no pause.
fn is_one_write(timeline: &Timeline<'_>, span: &[&Interval<'_>], write: Option<Bytes>) -> bool {
    let most = span.iter().filter_map(|i| peak(i)).fold(0.0, f64::max);
    write.is_some_and(|write| (most - write.get() as f64).abs() <= thresholds::ONE_WRITE_SEGMENTS * timeline.mss)
}

/// The sender used room as soon as it had it, and always had something under way.
fn is_fed(span: &[&Interval<'_>]) -> bool {
    let all = span.iter().map(|i| i.len()).sum::<f64>();
    let time = |time: fn(&PacketSample) -> u64| span.iter().map(|i| part(i, time) * i.len()).sum::<f64>();
    let most = span.iter().filter_map(|i| peak(i)).fold(0.0, f64::max);
    let mean = stats::fraction(span.iter().filter_map(|i| Some(i.in_flight()? * i.len())).sum(), all);
    // A writer is woken when a third of its buffer is free, at the latest.
    mean >= thresholds::SEND_BUFFER_FULL * most
        && time(|packets| packets.starved_us.get()) < thresholds::FLAT_STARVED * all
        && time(|packets| packets.idle_us.get()) < thresholds::FLAT_IDLE * all
}

/// The timer ran out for the last segments of a flight.
pub(crate) fn is_tail(interval: &Interval<'_>) -> bool {
    interval.at.packets.is_some_and(|packets| packets.tails > 0)
}

/// Each round trip carried clearly more than the one before, from what the sender began with, and nothing was lost: a window
/// that opens, however short the transfer was. The last round trip carries what is left.
pub(crate) fn is_opening(transfer: &Transfer, timeline: &Timeline<'_>) -> bool {
    let begun = transfer.opening.and_then(|opening| opening.initial_window).map(|bytes| bytes.get() as f64);
    let (Some(begun), Some(base)) = (begun, timeline.base_rtt) else { return false };
    let most = timeline.intervals.iter().filter_map(peak).fold(0.0, f64::max);
    let lost = timeline.intervals.iter().any(|i| i.retransmits > 0.0);
    let doublings = (most / begun.max(1.0)).log2();
    let round_trips = timeline.span_us / base;
    let is_steep =
        most >= thresholds::OPENING_FACTOR * begun && doublings + thresholds::OPENING_ROUND_TRIPS >= round_trips;
    begun >= 2.0 * timeline.mss && is_steep && !lost && most < thresholds::WINDOW_USED * largest_offer(timeline)
}

fn largest_offer(timeline: &Timeline<'_>) -> f64 {
    timeline.intervals.iter().filter_map(Interval::offered).fold(0.0, f64::max)
}

/// For most of the interval everything had been sent and acknowledged, and the receiver had not asked for more.
pub(crate) fn is_asked(interval: &Interval<'_>) -> bool {
    part(interval, |packets| packets.asked_us.get()) >= thresholds::MOST_OF_INTERVAL
}

/// That was most of the transfer's time.
pub(crate) fn is_mostly_asked(timeline: &Timeline<'_>) -> bool {
    time_of(timeline, |packets| packets.asked_us.get()) >= thresholds::MOST_OF_INTERVAL * timeline.span_us
}

/// The mean of what one acknowledgement acknowledges that makes room; where only counters tell, of what any does.
pub(crate) fn acked_at_once(timeline: &Timeline<'_>) -> Option<f64> {
    let count = |i: &Interval<'_>| i.at.packets.as_ref().map_or(i.heard, |packets| Some(f64::from(packets.prompts)));
    let seen = timeline.intervals.iter().filter_map(|i| Some((i.acked, count(i)?)));
    let (acked, prompts) = seen.fold((0.0, 0.0), |(acked, all), (bytes, prompts)| (acked + bytes, all + prompts));
    (prompts > 0.0).then(|| acked / prompts)
}

/// Whether the receiver acknowledges at least about every second full segment (RFC 5681, section 4.2), on arrival.
pub(crate) fn acks_in_pairs(timeline: &Timeline<'_>) -> bool {
    acked_at_once(timeline).is_some_and(|bytes| bytes <= thresholds::PAIR_SEGMENTS * timeline.mss)
}

/// What it costs that the receiver asks for each piece when it has the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    /// The part of the time in which the path was empty, ...
    pub(crate) dry: f64,
    /// ... and the part of it in which it had to be: from the last byte of an answer to the first of the next takes a round trip,
    /// wherever one looks.
    pub(crate) waited: f64,
}

impl Answers {
    /// Where packets show more than a few of them.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Option<Self> {
        let asked = asked(timeline);
        let base = timeline.base_rtt.filter(|_| asked >= thresholds::LEAST_EXCHANGES)?;
        let dry = time_of(timeline, |packets| packets.dry_us.get());
        let span = timeline.span_us.max(1.0);
        Some(Self { dry: dry / span, waited: (asked as f64 * base / span).min(1.0) })
    }

    /// That is most of the time that the path was empty.
    pub(crate) fn is_most(self) -> bool {
        self.waited >= thresholds::MOST_OF_INTERVAL * self.dry && self.is_seen()
    }

    /// It is worth naming.
    pub(crate) fn is_much(self) -> bool {
        self.waited >= thresholds::ASKED_SHARE && self.is_seen()
    }

    /// Requests that are sent before the answers to earlier ones are there leave the path no gap of a round trip.
    fn is_seen(self) -> bool {
        self.waited <= (1.0 + thresholds::AGREEMENT) * self.dry
    }
}

/// The application writes as much at a time as ever, as long after the write before as ever, more than once in a round trip and not
/// when an acknowledgement makes room: a timer wakes it. A writer that waits for its buffer is woken by what leaves it, which is as
/// even only where each write is all that the buffer takes.
pub(crate) fn is_timed(transfer: &Transfer, timeline: &Timeline<'_>) -> bool {
    let every = transfer.write_every_us.zip(timeline.base_rtt);
    every.is_some_and(|(every, base)| every.get() as f64 <= thresholds::TIMED_ROUND_TRIP * base)
        && Pauses::from_intervals(&timeline.intervals).are_written()
}

/// One write in each round trip, which is all that is in flight: it left when the one before had been acknowledged, or a timer wakes
/// its application after just that time. The next request of a receiver tells by itself.
pub(crate) fn is_one_write_each_trip(transfer: &Transfer, timeline: &Timeline<'_>) -> bool {
    let trips = transfer.write_every_us.zip(timeline.base_rtt).map(|(every, base)| every.get() as f64 / base.max(1.0));
    let span: Vec<&Interval<'_>> = timeline.intervals.iter().filter(|i| !is_idle(i)).collect();
    let usual = timeline::median(&span, peak).unwrap_or(0.0);
    let is_all =
        transfer.write.is_some_and(|write| usual - write.get() as f64 <= thresholds::SLACK_SEGMENTS * timeline.mss);
    trips.is_some_and(|trips| thresholds::ONE_WRITE_TRIPS.contains(&trips))
        && is_all
        && asked(timeline) < thresholds::LEAST_EXCHANGES
}

/// The first interval of those before `end` since which what was in flight didn't grow any more as a window does that opens: slow
/// start doubles it in each round trip, or takes four of them for that where it has become careful (RFC 9406). `end` where that was
/// only just before.
pub(crate) fn opened(timeline: &Timeline<'_>, end: usize) -> usize {
    let intervals = &timeline.intervals;
    let Some(base) = timeline.base_rtt.filter(|_| timeline.has_packets()) else { return end };
    let reach = thresholds::LEAST_ROUND_TRIPS * base;
    let mut first = end;
    let mut after = end;
    while let Some(earlier) = first.checked_sub(1) {
        while after > earlier && intervals[after].from_us as f64 > intervals[earlier].from_us as f64 + reach {
            after -= 1;
        }
        if top(intervals, after, base) > thresholds::OPENING_SLOWEST * top(intervals, earlier, base) {
            break;
        }
        first = earlier;
    }
    // For a few round trips any window stays.
    let stayed_us = intervals[end].from_us.saturating_sub(intervals[first].from_us) as f64;
    if stayed_us >= thresholds::FLAT_SHORT.round_trips * base { first } else { end }
}

/// How often the receiver asked for more when everything had been sent and acknowledged.
pub(crate) fn asked(timeline: &Timeline<'_>) -> u64 {
    timeline.intervals.iter().filter_map(|i| i.at.packets.as_ref()).map(|packets| u64::from(packets.asked)).sum()
}

/// Room was left unused for most of the interval.
pub(crate) fn is_starved(interval: &Interval<'_>) -> bool {
    part(interval, |packets| packets.starved_us.get()) >= thresholds::MOST_OF_INTERVAL
}

/// The offered window was closed for most of the interval.
pub(crate) fn is_closed(interval: &Interval<'_>) -> bool {
    part(interval, |packets| packets.closed_us.get()) >= thresholds::MOST_OF_INTERVAL
}

/// The offered window was used up for most of the time in which anything was in flight.
pub(crate) fn is_held(interval: &Interval<'_>) -> Option<bool> {
    let packets = interval.at.packets?;
    let busy = interval.len() - packets.idle_us.get() as f64;
    Some(packets.held_us.get() as f64 >= thresholds::MOST_OF_INTERVAL * busy && packets.held_us.get() > 0)
}

/// The part of an interval that writes waited for delayed acknowledgements: against Nagle's algorithm, and otherwise.
pub(crate) fn ack_delays(interval: &Interval<'_>) -> (f64, f64) {
    (part(interval, |packets| packets.nagle_us.get()), part(interval, |packets| packets.delayed_us.get()))
}

/// How often a write waited for a delayed acknowledgement.
pub(crate) fn ack_delay_count(timeline: &Timeline<'_>) -> u64 {
    let packets = timeline.intervals.iter().filter_map(|i| i.at.packets.as_ref());
    packets.map(|packets| u64::from(packets.nagle) + u64::from(packets.delayed)).sum()
}

/// The most that was in flight.
pub(crate) fn peak(interval: &Interval<'_>) -> Option<f64> {
    interval.at.packets.map(|packets| packets.peak.get() as f64)
}

/// A time that packets tell, summed over all intervals, in microseconds.
fn time_of(timeline: &Timeline<'_>, time: impl Fn(&PacketSample) -> u64) -> f64 {
    timeline.intervals.iter().map(|i| part(i, &time) * i.len()).sum()
}

fn part(interval: &Interval<'_>, time: impl Fn(&PacketSample) -> u64) -> f64 {
    interval.at.packets.as_ref().map_or(0.0, |packets| stats::fraction(time(packets) as f64, interval.len()))
}
