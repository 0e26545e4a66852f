//! Connections that wait for the link by which they leave their sender, or for any other one before the place of a capture. Their queue is
//! behind that place: no round trip shows it, and each of them looks like a late writer, a full buffer, or a beginning that lasts. What shows is
//! their sum: it is the same over times in which few flights fit, however many of them send. What connections send independently of each other
//! comes in flights, and what a processor serves isn't as even.
//! What is *not* here: a queue that round trips show (`full_link`).

use fullpipe_units::Rate;

use super::{
    BottleneckKind, Passage, SharedBottleneck, are_several, is_its_doing,
    sum::{Level, Span},
};
use crate::{Diagnosis, Limiter, stats, thresholds};

/// Where on the way a connection was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CapturePlace {
    /// From there to the sender and back, at least, in microseconds.
    pub to_sender_us: f64,
    /// From there to the receiver and back, at least, in microseconds.
    pub to_receiver_us: f64,
    /// This part of the round trips to the receiver showed a queue (0 to 1).
    pub queued: f64,
}

/// What left a sender, as the place of a capture saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Departures {
    /// When the first begins, in microseconds on the clock of all.
    begin_us: f64,
    /// How long each is, in microseconds.
    pub(super) every_us: f64,
    pub(super) seen: CapturePlace,
    /// In order of time: so many microseconds after `begin_us`, and how much payload left in the time from there on.
    list: Box<[(f32, f32)]>,
    /// How much left in all.
    bytes: f64,
}

impl Departures {
    pub(super) fn new(every_us: f64, seen: CapturePlace, list: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut list = list.peekable();
        let begin_us = list.peek().map_or(0.0, |(at_us, _)| *at_us);
        let list: Box<[_]> = list.map(|(at_us, bytes)| ((at_us - begin_us) as f32, bytes as f32)).collect();
        let bytes = list.iter().map(|(_, bytes)| f64::from(*bytes)).sum();
        Self { begin_us, every_us, seen, list, bytes }
    }

    /// How many moments of 32 bytes they take.
    pub(super) const fn moments(&self) -> usize {
        self.list.len() / 4
    }

    /// For how long something left, in microseconds.
    fn lasted(&self) -> f64 {
        self.list.last().map_or(0.0, |(at_us, _)| f64::from(*at_us) + self.every_us)
    }

    /// Whether it got what an equal part would be, or not much less: who sends little beside others doesn't wait for a link that these fill.
    pub(super) fn has_its_part(&self, equal: Rate) -> bool {
        let rate = stats::fraction(self.bytes, self.lasted()) * 8e6;
        rate >= thresholds::SHARED_PART_OF_EQUAL * equal.bps() as f64
    }

    /// How what leaves changes.
    fn turns(&self) -> impl Iterator<Item = Turn> {
        let ends = [(self.begin_us, 1.0), (self.begin_us + self.lasted(), -1.0)];
        let connection = ends.map(|(at_us, sending)| Turn { at_us, by: 0.0, sending });
        let leaves = self.list.iter().flat_map(|&(since_us, bytes)| {
            let (at_us, by) = (self.begin_us + f64::from(since_us), bytes / self.every_us as f32);
            [(at_us, by), (at_us + self.every_us, -by)].map(|(at_us, by)| Turn { at_us, by, sending: 0.0 })
        });
        connection.into_iter().chain(leaves).filter(|_| !self.list.is_empty())
    }
}

/// From a moment on, so much more leaves per microsecond, and so many more connections send. There may be millions of them.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at_us: f64,
    by: f32,
    sending: f32,
}

/// A time in which connections send.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    /// In microseconds.
    time: f64,
    left: f64,
    /// The same time once for each connection that was sending.
    sending: f64,
}

/// Whether a connection that the judge says this of may have waited for the link that it left its sender by.
pub(super) fn may_have_waited(passage: &Passage, alone: &Diagnosis) -> bool {
    let is_one = matches!(
        alone.limiter,
        Limiter::Application | Limiter::SendBuffer | Limiter::CongestionWindow | Limiter::InsufficientEvidence
    );
    is_one && !passage.departures.list.is_empty() && !is_its_doing(alone.limiter, alone.detail)
}

/// The link that all of these leave their sender by, if it was full for most of the time in which they sent; each with what the judge says of it
/// alone. That they have the sender in common is up to whoever asks.
pub fn own_link(all: &[(&Passage, &Diagnosis)]) -> Option<SharedBottleneck> {
    let bytes_of = |is_one: fn(&Passage, &Diagnosis) -> bool| {
        let such = all.iter().filter(|(passage, alone)| is_one(passage, alone));
        such.map(|(passage, _)| passage.departures.bytes).sum::<f64>()
    };
    let whole = bytes_of(|_, _| true);
    let are_waiting =
        are_several(all, may_have_waited) && bytes_of(may_have_waited) >= thresholds::OWN_LINK_WAITING * whole;
    if !are_waiting || !are_captured_beside_sender(all) || is_queue_behind(all) {
        return None;
    }
    let mut turns: Vec<Turn> = all.iter().flat_map(|(passage, _)| passage.departures.turns()).collect();
    turns.sort_unstable_by(|a, b| a.at_us.total_cmp(&b.at_us));
    let Busy { time, sending, .. } = busy_times(&turns, f64::MAX).pop()?;
    let mss = all.iter().map(|(passage, _)| passage.mss).fold(0.0, f64::max);
    let least = (thresholds::OWN_LINK_SEGMENTS * mss * stats::fraction(time, whole)).max(thresholds::OWN_LINK_US);
    // When what a long transfer sends left is not known as exactly as that.
    let every = stats::quantile(
        all.iter().map(|(passage, _)| (passage.departures.every_us, passage.departures.bytes)),
        thresholds::OWN_LINK_KNOWN,
    )?;
    if every * thresholds::OWN_LINK_FINER > least {
        return None;
    }
    let mut busy = busy_times(&turns, least);
    // Who has sent nothing for long had nothing to send.
    busy.retain(|busy| busy.time <= thresholds::SHARED_APART * least);
    let spans: Vec<Span> =
        busy.iter().map(|busy| Span { time: busy.time, passed: busy.left, uncertainty: 0.0 }).collect();
    let segments = thresholds::SHARED_SEGMENTS * mss;
    let level = Level::new(&spans, |span, rate| thresholds::SHARED_QUEUED_UNEVEN * rate * span.time + segments)?;
    let is_level =
        level.count >= thresholds::OWN_LINK_LEAST && level.rate > 0.0 && level.part >= thresholds::OWN_LINK_LEVEL;
    (is_level && !is_of_each(&busy, level.rate)).then(|| {
        let equal = level.rate * 8e6 / stats::fraction(sending, time).max(1.0);
        let kind = BottleneckKind::OwnLink { equal: Rate::from_bps(equal.round() as u64) };
        SharedBottleneck::new(level, all.len(), kind)
    })
}

/// Whether the place of the capture is nearer to their sender. It is the same for all, and what waits in the sender's queue makes the sender seem
/// far away: who waited least tells.
fn are_captured_beside_sender(all: &[(&Passage, &Diagnosis)]) -> bool {
    let least = |us: fn(&CapturePlace) -> f64| {
        let known = all.iter().map(|(passage, _)| &passage.departures).filter(|departures| !departures.list.is_empty());
        known.map(|departures| us(&departures.seen)).fold(f64::MAX, f64::min)
    };
    least(|seen| seen.to_sender_us) < least(|seen| seen.to_receiver_us)
}

/// Whether round trips show a queue for most of what was sent, behind the place of the capture.
fn is_queue_behind(all: &[(&Passage, &Diagnosis)]) -> bool {
    let each = all.iter().map(|(passage, _)| (passage.departures.seen.queued, passage.departures.bytes));
    stats::median(each).is_some_and(|queued| queued >= thresholds::SHARED_QUEUED)
}

/// Whether each connection sends at a rate of its own: then the sum follows how many of them send. That of a full link doesn't. Times in which
/// more or fewer than usual send tell, but not so few that they might leave the link idle.
fn is_of_each(busy: &[Busy], rate: f64) -> bool {
    let median =
        |of: &dyn Fn(&Busy) -> f64| stats::median(busy.iter().map(|busy| (of(busy), busy.time))).unwrap_or_default();
    let (usual, each) = (median(&|busy| busy.sending / busy.time), median(&|busy| busy.left / busy.sending));
    let tells = |busy: &&Busy| {
        let part = busy.sending / (busy.time * usual);
        part >= thresholds::OWN_LINK_FEW && (part - 1.0).abs() >= thresholds::OWN_LINK_OTHERS
    };
    let off = |expected: &dyn Fn(&Busy) -> f64| {
        let off = |busy: &Busy| ((busy.left - expected(busy)).abs() / busy.time, busy.time);
        stats::median(busy.iter().filter(tells).map(off)).unwrap_or_default()
    };
    busy.iter().filter(tells).count() < thresholds::OWN_LINK_TELLING
        || off(&|busy| rate * busy.time) > thresholds::OWN_LINK_STEADIER * off(&|busy| each * busy.sending)
}

/// The time in which connections send, in pieces of at least so many microseconds, but for the last one.
fn busy_times(turns: &[Turn], least: f64) -> Vec<Busy> {
    let (mut all, mut busy) = (Vec::new(), Busy::default());
    let (mut at_us, mut by, mut sending) = (0.0, 0.0, 0.0);
    for turn in turns {
        let time = turn.at_us - at_us;
        at_us = turn.at_us;
        // What is sent and lasts is known exactly, but for rounding.
        if time > 0.0 && sending >= 0.5 {
            busy.time += time;
            busy.left += by * time;
            busy.sending += sending * time;
            if busy.time >= least {
                all.push(std::mem::take(&mut busy));
            }
        }
        by += f64::from(turn.by);
        sending += f64::from(turn.sending);
    }
    if busy.time > 0.0 {
        all.push(busy);
    }
    all
}
