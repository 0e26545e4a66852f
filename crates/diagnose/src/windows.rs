//! Offered window and send buffer: is one of them used up, and why is it no larger?
//!
//! What is *not* here: whether the path is full meanwhile (`path`), which overrules both.

use core::ops::Range;

use crate::{
    Detail, End, ReceiverSample, Transfer,
    loss::Losses,
    packets,
    path::Path,
    stats, thresholds,
    timeline::{self, Interval, Timeline},
};

/// What holds data back at one moment, before the path is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holding {
    /// The receiver closed its window.
    ClosedWindow,
    /// The offered window is used up.
    OfferedWindow,
    /// The send buffer is full, and all that it holds is in flight.
    SendBuffer,
    /// The application wrote no more; `idle` where nothing at all was outstanding or moved.
    Supply { idle: bool },
    /// None of these: congestion control, pacing, the network interface.
    Network,
}

/// Decides what held data back in `interval`.
pub(crate) fn holding(timeline: &Timeline<'_>, interval: &Interval<'_>) -> Holding {
    let mss = timeline.mss_at(interval);
    let in_flight = interval.in_flight();
    if is_closed(interval, mss) {
        Holding::ClosedWindow
    } else if packets::is_idle(interval) {
        Holding::Supply { idle: true }
    } else if packets::is_asked(interval) {
        Holding::Supply { idle: false }
    } else if in_flight == Some(0.0) && interval.not_sent().unwrap_or(0.0) <= 0.0 {
        Holding::Supply { idle: interval.acked <= 0.0 }
    } else if is_window_used(interval, mss) {
        Holding::OfferedWindow
    } else if packets::is_short(interval, mss) {
        Holding::Supply { idle: false }
    } else if is_supply_short(interval, mss) {
        if is_send_buffer_full(timeline, interval) { Holding::SendBuffer } else { Holding::Supply { idle: false } }
    } else if interval.sndbuf_limited >= thresholds::CHRONOGRAPH {
        // The kernel counts only while a full buffer is all that holds the sender; what waits at the end of the interval came
        // after.
        Holding::SendBuffer
    } else {
        Holding::Network
    }
}

/// Where counters show that Nagle's algorithm held data back until a delayed acknowledgement came: less than a segment in
/// flight and less than another one written behind it, room for both, and nothing acknowledged for longer than the path takes
/// by a delayed-ACK timer. Packets show more (`packets::ack_delays`).
pub(crate) fn held_back(timeline: &Timeline<'_>) -> Vec<Range<usize>> {
    let Some(base) = timeline.base_rtt else { return Vec::new() };
    let intervals = &timeline.intervals;
    let waits = |interval: &Interval<'_>| {
        let mss = timeline.mss_at(interval);
        let small = |bytes: Option<f64>| bytes.is_some_and(|bytes| bytes > 0.0 && bytes < mss);
        let room = interval.cwnd().zip(interval.offered()).map_or(0.0, |(cwnd, offered)| cwnd.min(offered));
        interval.at.packets.is_none()
            && small(interval.in_flight())
            && small(interval.not_sent())
            && room >= 2.0 * mss
            && interval.timeouts == 0
            && interval.retransmits <= 0.0
    };
    let mut found = Vec::new();
    let mut from = 0;
    while from < intervals.len() {
        let wait = intervals[from..].iter().enumerate();
        let to = from + wait.take_while(|(place, i)| waits(i) && (*place == 0 || i.acked <= 0.0)).count();
        if to > from {
            let us = intervals[to - 1].to_us.saturating_sub(intervals[from].from_us) as f64;
            if thresholds::ACK_DELAY_US.contains(&(us - base)) {
                found.push(from..to);
            }
        }
        from = to.max(from + 1);
    }
    found
}

/// The part of the transfer's time, 0 to 1, in which a window, a buffer or the supply of data was used up, whatever the
/// path did meanwhile.
///
/// A window that is sent in bursts queues behind itself at a slow link, and the round trip grows as it does before a full
/// one. Where this share is large, a verdict of [`Limiter::Path`](crate::Limiter::Path) from one connection alone is open
/// to doubt until several together were measured.
pub fn held_share(transfer: &Transfer) -> f64 {
    let timeline = Timeline::new(transfer);
    let held = |interval: &&Interval<'_>| !matches!(holding(&timeline, interval), Holding::Network);
    let time: f64 = timeline.intervals.iter().filter(held).map(Interval::len).sum();
    stats::fraction(time, timeline.span_us)
}

/// Less than a segment is offered, and not because nearly a window is in flight already. A sender with more to send keeps it back then
/// (RFC 9293, section 3.8.6.2.1).
fn is_closed(interval: &Interval<'_>, mss: f64) -> bool {
    if interval.at.packets.is_some() {
        return packets::is_closed(interval);
    }
    let waiting = interval.not_sent().unwrap_or(f64::MAX);
    let is_kept_back =
        |window: f64| window < mss.min(500.0) || window < mss.min(waiting) && interval.in_flight() == Some(0.0);
    waiting > 0.0 && interval.offered().is_some_and(is_kept_back)
}

fn is_window_used(interval: &Interval<'_>, mss: f64) -> bool {
    if let Some(held) = packets::is_held(interval) {
        return held;
    }
    let Some(window) = interval.offered() else { return interval.rwnd_limited >= thresholds::CHRONOGRAPH };
    let Some(in_flight) = interval.in_flight() else { return interval.rwnd_limited >= thresholds::CHRONOGRAPH };
    let slack = (thresholds::SLACK_SEGMENTS * mss).max((1.0 - thresholds::WINDOW_USED) * window);
    let slack = slack.min((thresholds::SLACK_OF_WINDOW * window).max(mss));
    in_flight > 0.0 && window - in_flight <= slack
}

/// Nothing waits to be sent, or all that was written is well below what congestion control and receiver would take.
fn is_supply_short(interval: &Interval<'_>, mss: f64) -> bool {
    let (Some(in_flight), Some(not_sent)) = (interval.in_flight(), interval.not_sent()) else {
        return interval.sndbuf_limited >= thresholds::CHRONOGRAPH;
    };
    if not_sent < thresholds::WAITING_SEGMENTS * mss {
        return true;
    }
    let limit = match (interval.cwnd(), interval.offered()) {
        (Some(cwnd), Some(offered)) => cwnd.min(offered),
        // Without the congestion window there is no telling whether it would take more.
        (Some(cwnd), None) => cwnd,
        (None, _) => return false,
    };
    let supply = in_flight + not_sent;
    supply < thresholds::SUPPLY_SHORT * limit && limit - supply >= thresholds::SLACK_SEGMENTS * mss
}

/// A buffer that holds two thirds and more lets a writer wait that found it full before, and no other: an automatic buffer is
/// often no larger than what an application keeps on its way. Where the kernel counts the waiting, no waiting decides, but where
/// the buffer is full again and again, or a large one stays between full and where its writer is woken: the kernel doesn't count while the
/// congestion window is used up as well, or while the writer waits for bursts of acknowledgements.
fn is_send_buffer_full(timeline: &Timeline<'_>, interval: &Interval<'_>) -> bool {
    let by_memory =
        timeline::send_memory(interval).is_some_and(|(queued, buffer)| queued >= thresholds::SEND_BUFFER_FULL * buffer);
    let waits = interval.writer_waits.is_none_or(|share| share >= thresholds::WRITER_WAITS)
        || timeline.over_full >= thresholds::OVER_FULL
        || timeline.is_kept_filled
            && (timeline.nearly_full >= thresholds::NEARLY_FULL_AT_TIMES
                || timeline.at_wake_mark >= thresholds::AT_WAKE_MARK);
    by_memory && waits || interval.sndbuf_limited >= thresholds::CHRONOGRAPH
}

/// Whether acknowledgements wait until the application has read: what is in flight, a window all the time, takes clearly longer than the
/// path does to be acknowledged (Little's law), and no queue is why, for the path runs dry meanwhile; where only counters tell, for one
/// acknowledgement is of a good part of the window. A receiver acknowledges every second full segment at once otherwise (RFC 5681,
/// section 4.2).
pub(crate) fn is_read_late(timeline: &Timeline<'_>, offer: &Offer, losses: &Losses, path: &Path) -> bool {
    let is_held = |i: &&Interval<'_>| is_window_used(i, timeline.mss_at(i));
    let (mut time, mut flight, mut acked, mut dry) = (0.0, 0.0, 0.0, None);
    for interval in timeline.intervals.iter().filter(is_held) {
        time += interval.len();
        flight += interval.in_flight().unwrap_or(0.0) * interval.len();
        acked += interval.acked;
        dry = interval.dry.map(|part| dry.unwrap_or(0.0) + part * interval.len()).or(dry);
    }
    let at_once = packets::acked_at_once(timeline).unwrap_or(0.0);
    let is_whole = at_once >= (thresholds::READ_AT_ONCE * offer.largest).max(thresholds::LEAST_CEILING * timeline.mss);
    let (factor, late_us) =
        if is_whole { thresholds::READ_LATE_WHOLE } else { (thresholds::QUEUE_FACTOR, thresholds::READ_LATE_US) };
    let took_us = flight / acked.max(1.0);
    let is_late = path.base_rtt.is_some_and(|base| took_us >= factor * base && took_us - base >= late_us);
    let is_large = offer.largest >= thresholds::LEAST_CEILING * timeline.mss;
    let is_empty = dry.map_or(is_whole, |dry| dry >= thresholds::DRY * time) && !path.acks_in_pairs;
    time >= thresholds::CLEAR_SHARE * timeline.span_us
        && is_late
        && is_large
        && is_empty
        && losses.ratio * (1.0 - losses.spurious) < thresholds::STARVED_LOSS
        && matches!(offer.detail(), Some(Detail::WindowCeiling | Detail::ScaleZero))
}

/// What the two SYNs allow the receiver to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// Both ends sent the option; the receiver's shift (at most 14, RFC 7323 section 2.3).
    Shift(u8),
    /// The receiver left the option out.
    ReceiverOmits,
    /// The sender left the option out, so that the receiver must not scale.
    SenderOmits,
    /// At least one SYN was not seen.
    Unknown,
}

impl Scaling {
    pub(crate) fn from_transfer(transfer: &Transfer) -> Self {
        let shift = |end: &End| end.syn.map(|syn| syn.window_scale);
        match (shift(&transfer.receiver), shift(&transfer.sender)) {
            // An answer without the option follows from a question without it (RFC 7323, section 2.2).
            (Some(None), Some(None)) if transfer.sender.opened == Some(true) => Self::SenderOmits,
            (Some(None), _) => Self::ReceiverOmits,
            (_, Some(None)) => Self::SenderOmits,
            // A receiver that sent the option did so because of the sender's: RFC 7323, section 2.2. Only a receiver
            // that opened the connection may have sent it in vain, and then the sender's SYN-ACK tells.
            (Some(Some(shift)), _) => Self::Shift(shift.min(14)),
            (None, _) => Self::Unknown,
        }
    }

    /// The largest window that can be offered at all.
    pub(crate) fn ceiling(self) -> Option<u64> {
        match self {
            Self::Shift(shift) => Some(65_535 << shift),
            Self::ReceiverOmits | Self::SenderOmits => Some(65_535),
            Self::Unknown => None,
        }
    }

    /// The words for a sentence.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Shift(shift) => format!("scale option present, shift {shift}"),
            Self::ReceiverOmits => "the receiver sent no scale option".into(),
            Self::SenderOmits => "the sender sent no scale option, which keeps the receiver from scaling".into(),
            Self::Unknown => "the SYN packets were not seen".into(),
        }
    }
}

/// The receiver's window over the transfer.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The largest window offered.
    pub(crate) largest: f64,
    pub(crate) scaling: Scaling,
    /// Whether the window was closed at some time.
    pub(crate) closed: bool,
    /// Whether it was still closed at the end.
    pub(crate) closed_at_end: bool,
    /// The part of the receiver's samples in which unread data filled its window; `None` where that was not seen.
    pub(crate) unread_share: Option<f64>,
    /// Whether it was larger before, and used up since: data that isn't read takes the rest of it.
    shrank: bool,
    /// Whether the receiving application set its buffer.
    pub(crate) pinned: Option<bool>,
}

impl Offer {
    pub(crate) fn new(transfer: &Transfer, timeline: &Timeline<'_>) -> Self {
        let by_sender = timeline.intervals.iter().filter_map(Interval::offered);
        let by_receiver = transfer.receiver_samples.iter().filter_map(|s| s.offered_window).map(|b| b.get() as f64);
        // The sender's view counts: only what reached it limits it.
        let largest = by_sender.reduce(f64::max).or_else(|| by_receiver.reduce(f64::max)).unwrap_or(0.0);
        let closed = |i: &Interval<'_>| is_closed(i, timeline.mss_at(i));
        Self {
            largest,
            scaling: Scaling::from_transfer(transfer),
            closed: timeline.intervals.iter().any(closed),
            closed_at_end: timeline.intervals.last().is_some_and(closed),
            unread_share: unread_share(&transfer.receiver_samples, largest),
            shrank: shrank(timeline),
            pinned: transfer.receiver.receive_buffer.map(|buffer| buffer.pinned),
        }
    }

    /// Whether the receiving application is behind the network.
    pub(crate) fn is_slow_reader(&self) -> bool {
        self.shrank || self.unread_share.is_some_and(|share| share >= thresholds::CLEAR_SHARE)
    }

    /// Whether it is far smaller than the header could say without scaling.
    pub(crate) fn is_small(&self) -> bool {
        self.largest < thresholds::UNSCALED_FULL * 65_535.0
    }

    /// Why the window is no larger.
    pub(crate) fn detail(&self) -> Option<Detail> {
        // Far below, it is a small buffer that made the shift 0 suffice, and a larger shift alone would change nothing.
        let unscaled = self.largest <= 65_535.0 && !self.is_small();
        if self.closed_at_end {
            return Some(Detail::ZeroWindow);
        }
        let is_filling = self.unread_share.is_some_and(|share| share >= thresholds::FILLING);
        if self.closed || self.is_slow_reader() || is_filling {
            return Some(Detail::SlowReader);
        }
        match self.scaling {
            Scaling::ReceiverOmits | Scaling::SenderOmits => return Some(Detail::ScalingAbsent),
            Scaling::Shift(0) if unscaled => return Some(Detail::ScaleZero),
            Scaling::Shift(_) | Scaling::Unknown => {}
        }
        if self.pinned == Some(true) {
            return Some(Detail::PinnedByApplication);
        }
        Some(Detail::WindowCeiling)
    }

    /// Whether the largest window is the largest that the header can say.
    pub(crate) fn at_ceiling(&self) -> bool {
        self.scaling.ceiling().is_some_and(|most| self.largest >= thresholds::WINDOW_CEILING * most as f64)
    }
}

/// Whether counters show that the window was used up for most of the time, and smaller than it had been before. Packets tell of
/// data that isn't read ([`unread_share`]).
fn shrank(timeline: &Timeline<'_>) -> bool {
    if timeline.has_packets() {
        return false;
    }
    let mut largest = 0.0_f64;
    let mut used = 0.0;
    for interval in &timeline.intervals {
        let Some(window) = interval.offered() else { continue };
        largest = largest.max(window);
        if window <= thresholds::SHRUNK * largest && is_window_used(interval, timeline.mss_at(interval)) {
            used += interval.len();
        }
    }
    used >= thresholds::CLEAR_SHARE * timeline.span_us
}

fn unread_share(samples: &[ReceiverSample], largest: f64) -> Option<f64> {
    let unread: Vec<f64> = samples.iter().filter_map(|s| s.unread).map(|b| b.get() as f64).collect();
    if unread.is_empty() || largest <= 0.0 {
        return None;
    }
    let behind = unread.iter().filter(|&&bytes| bytes >= thresholds::UNREAD * largest).count();
    Some(behind as f64 / unread.len() as f64)
}
