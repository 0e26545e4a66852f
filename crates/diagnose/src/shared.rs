//! Several connections through one bottleneck. Alone, each of them seems to be held down by losses: what one gets through between two of them
//! depends on what the others send. All of them together are held at the bottleneck's rate from one loss to any other: whenever a policer drops,
//! its bucket is empty (Flach 2016), and whenever a link drops, its queue is full. Chance keeps no sum at a rate, however
//! many connections share it.
//! And while a queue stands, its link carries what it can, whatever each connection gets of that.
//! What is *not* here: one connection alone (`policer`, `path`), and which connections may have a bottleneck in common (whoever calls this).

use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    Alternative, Confidence, Detail, Diagnosis, Drop, Evidence, Limiter, Run, SenderSample, Transfer, loss, policer,
    sentences, stats, thresholds, timeline::Timeline, verdict::push_joined,
};

mod departures;
mod sum;
#[cfg(test)]
mod tests;

pub use departures::{CapturePlace, own_link};
use departures::{Departures, may_have_waited};
use sum::{Level, Levels, Span, Sum};

/// What of a transfer got through when, and when something of it was lost: all that its bottleneck shows beside those of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// In order of time.
    knots: Vec<Knot>,
    /// How much later than over the shortest way came what was sent right behind a loss, in microseconds (median).
    wait_us: Option<f64>,
    /// ... as far as counters tell: a smoothed round trip, which acknowledgements that are delayed lengthen as a queue does.
    is_counted: bool,
    /// Whether it was seen from its beginning on, when the path may have been empty: a queue that is always full shows no wait.
    is_whole: bool,
    /// Whether it was captured beside its receiver, where what made the sender send doesn't show behind a queue that others' segments stand in.
    is_beside_receiver: bool,
    /// The round trip of the empty path, in microseconds.
    base_rtt: f64,
    /// The same, as others between the same ends saw it, too.
    empty_rtt: f64,
    mss: f64,
    /// When it left its sender.
    departures: Departures,
}

/// Until a moment so much had got through.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    /// On the clock that all transfers have in common, in microseconds.
    at_us: f64,
    passed: f64,
    /// What of that had arrived.
    arrived: f64,
    is_loss: bool,
    /// The round trip, in microseconds; 0 where it is not known.
    rtt_us: f32,
}

impl Passage {
    /// What `transfer` shows, whose first payload byte was sent at `began_us` on a clock that is the same for all. `None` where neither packets
    /// nor fine samples of a sender with SACK show what was lost when.
    pub fn new(transfer: &Transfer, began_us: u64) -> Option<Self> {
        Self::seen(transfer, began_us, false)
    }

    /// The same of a transfer that was captured beside its receiver: what passed there had arrived.
    pub fn beside_receiver(transfer: &Transfer, began_us: u64) -> Option<Self> {
        Self::seen(transfer, began_us, true)
    }

    fn seen(transfer: &Transfer, began_us: u64, is_beside_receiver: bool) -> Option<Self> {
        let base_rtt = transfer.base_rtt()?.get() as f64;
        let has_packets = transfer.sender_samples.iter().any(|sample| sample.packets.is_some());
        let mut passage = if has_packets {
            Self::from_packets(transfer, base_rtt, is_beside_receiver)?
        } else {
            Self::from_counters(transfer, base_rtt)?
        };
        thin_out(&mut passage.knots);
        passage.knots.iter_mut().for_each(|knot| knot.at_us += began_us as f64);
        (passage.knots.len() > 1).then_some(passage)
    }

    fn from_packets(transfer: &Transfer, base_rtt: f64, is_beside_receiver: bool) -> Option<Self> {
        let mss = transfer.sender_samples.iter().find_map(|sample| sample.mss)?;
        let drops = transfer.drops.as_ref();
        let (mut sent, mut arrived) = (0.0, 0.0);
        let handshake =
            transfer.opening.filter(|opening| opening.syn_retransmissions + opening.syn_ack_retransmissions == 0);
        let handshake = handshake.map(|opening| opening.took_us.get() as f64);
        let sample = |sample: &SenderSample| {
            sent += sample.packets?.sent.get() as f64;
            // What is acknowledged selectively may be acknowledged late: an acknowledgement has room for three blocks.
            arrived = if is_beside_receiver { sent } else { arrived + sample.packets?.delivered.get() as f64 };
            let at_us = sample.at_us.get() as f64;
            let rtt = sample
                .rtt_us
                .map(|rtt| rtt.get() as f64)
                .or_else(|| handshake.filter(|took| at_us <= thresholds::SHARED_HANDSHAKE * took));
            Some(Sent { at_us, bytes: sent, arrived, rtt_us: rtt.unwrap_or(0.0) as f32 })
        };
        let sent: Vec<Sent> = transfer.sender_samples.iter().filter_map(sample).collect();
        let loss = |drop: &Drop| (drop.at_us.get() as f64, drop.passed.get() as f64);
        let mut losses: Vec<(f64, f64)> = drops.iter().flat_map(|drops| &drops.list).map(loss).collect();
        losses.dedup_by_key(|loss| loss.0);
        let wait_us = drops.and_then(|drops| drops.wait_us).map(|wait| wait.get() as f64);
        let is_whole = transfer.sender.syn.is_some() || transfer.receiver.syn.is_some();
        let knots = knots(&sent, &losses);
        let mss = f64::from(mss);
        Some(Self {
            knots,
            wait_us,
            is_counted: false,
            is_whole,
            is_beside_receiver,
            base_rtt,
            empty_rtt: base_rtt,
            mss,
            departures: Departures::default(),
        })
    }

    /// What had been acknowledged when the sender began to retransmit had got through when it lost that, and as far as that is behind, it is for
    /// all senders.
    fn from_counters(transfer: &Transfer, base_rtt: f64) -> Option<Self> {
        let timeline = Timeline::new(transfer);
        if !policer::can_show_in_counters(transfer, &timeline) || !timeline.has_fine_samples() {
            return None;
        }
        let intervals = &timeline.intervals;
        let events = loss::events(intervals, base_rtt);
        let mut begins = events.iter().map(|event| event.start).peekable();
        let first = intervals.first()?;
        let mut knots =
            vec![Knot { at_us: first.from_us as f64, passed: 0.0, arrived: 0.0, is_loss: false, rtt_us: 0.0 }];
        let mut passed = 0.0;
        for (place, interval) in intervals.iter().enumerate() {
            if let Some(last) = knots.last_mut().filter(|_| begins.next_if_eq(&place).is_some()) {
                last.is_loss = true;
            }
            passed += interval.acked;
            // What a smoothed round trip is longer by need be no queue.
            knots.push(Knot { at_us: interval.to_us as f64, passed, arrived: passed, is_loss: false, rtt_us: 0.0 });
        }
        let wait_us = policer::wait_before(intervals, &events, base_rtt);
        // The kernel has counted from the beginning on.
        let mss = timeline.mss;
        Some(Self {
            knots,
            wait_us,
            is_counted: true,
            is_whole: true,
            is_beside_receiver: false,
            base_rtt,
            empty_rtt: base_rtt,
            mss,
            departures: Departures::default(),
        })
    }

    /// The same where more arrived after the last sample: until a moment (in microseconds on the clock of all) so much. Behind a queue, the
    /// last flight takes longer than over the empty path.
    #[must_use]
    pub fn with_rest(mut self, rest: impl Iterator<Item = (u64, u64)>) -> Self {
        for (at_us, bytes) in rest {
            if let Some(&last) = self.knots.last().filter(|last| (at_us as f64) > last.at_us) {
                let arrived = last.arrived + bytes as f64;
                self.knots.push(Knot { at_us: at_us as f64, arrived, is_loss: false, ..last });
            }
        }
        self
    }

    /// The same with what left the sender, as the place of a capture saw it: from moments on (in microseconds on the clock of all) in the next
    /// `every_us` so much.
    #[must_use]
    pub fn with_departures(
        mut self,
        every_us: f64,
        seen: CapturePlace,
        list: impl Iterator<Item = (f64, f64)>,
    ) -> Self {
        self.departures = Departures::new(every_us, seen, list);
        self
    }

    /// The shortest round trip that was seen, in microseconds.
    pub const fn base_rtt(&self) -> f64 {
        self.base_rtt
    }

    /// The same between ends whose shortest round trip is known from others, too, in microseconds. Who begins behind a queue that stands may
    /// see no other one.
    pub const fn set_empty_rtt(&mut self, empty_rtt: f64) {
        self.empty_rtt = empty_rtt;
    }

    /// How much longer than over the empty path round trips were, each with the time for which it holds.
    fn queues(&self) -> impl Iterator<Item = (f64, f64)> {
        self.knots.windows(2).map(|pair| (self.queued_us(&pair[1]), pair[1].at_us - pair[0].at_us))
    }

    /// How much longer than over the empty path round trips were until a moment.
    fn queued_us(&self, until: &Knot) -> f64 {
        (f64::from(until.rtt_us) - self.empty_rtt).max(0.0)
    }

    /// Whether it lasted for few of its round trips.
    fn is_short(&self) -> bool {
        let queued = stats::median(self.queues()).unwrap_or_default();
        self.lasted() <= thresholds::SHARED_SHORT * (self.empty_rtt + queued)
    }

    /// How long it lasted, in microseconds.
    fn lasted(&self) -> f64 {
        self.knots.first().zip(self.knots.last()).map_or(0.0, |(first, last)| last.at_us - first.at_us)
    }

    /// Whether something of it was lost.
    pub fn has_losses(&self) -> bool {
        self.knots.iter().any(|knot| knot.is_loss)
    }

    /// How many moments are remembered, of 32 bytes each.
    pub fn moments(&self) -> usize {
        self.knots.len() + self.departures.moments()
    }

    /// What got through, in bytes.
    fn carried(&self) -> f64 {
        self.knots.last().map_or(0.0, |last| last.passed)
    }

    /// Whether a queue stood before it until a moment.
    fn is_queued(&self, until: &Knot) -> bool {
        shows_queue(self.queued_us(until), self.empty_rtt)
    }

    /// Whether as much arrives from one round trip to the next while a queue stands, as of a sender that acknowledgements clock. What an
    /// application writes in pieces comes in bursts.
    fn is_clocked(&self) -> bool {
        let sum = Sum::new(&[self], self.empty_rtt);
        let slack = |span: &Span, rate: f64| thresholds::SHARED_QUEUED_UNEVEN * rate * span.time + self.mss;
        Level::over(&sum.queued, thresholds::SHARED_ROUND_TRIPS[0] * self.empty_rtt, slack)
            .is_some_and(|level| level.rate > 0.0 && level.part >= thresholds::SHARED_CLOCKED)
    }

    /// What gets through in a round trip, on average.
    fn flight(&self) -> f64 {
        let ends = self.knots.first().zip(self.knots.last());
        ends.map_or(0.0, |(first, last)| {
            stats::fraction((last.passed - first.passed) * self.base_rtt, last.at_us - first.at_us)
        })
    }
}

/// Until a moment so much had been sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_us: f64,
    bytes: f64,
    arrived: f64,
    rtt_us: f32,
}

impl Sent {
    const fn knot(self, passed: f64, is_loss: bool) -> Knot {
        Knot { at_us: self.at_us, passed, arrived: self.arrived, is_loss, rtt_us: self.rtt_us }
    }
}

/// What had got through at each sample and at each loss. What had until a loss is known, and what was sent tells how it spreads over the time
/// between two of them.
fn knots(samples: &[Sent], losses: &[(f64, f64)]) -> Vec<Knot> {
    let losses: Vec<(f64, Sent)> = losses.iter().map(|&(at_us, passed)| (passed, sent_at(samples, at_us))).collect();
    let mut knots = Vec::with_capacity(samples.len() + losses.len());
    let mut samples = samples.iter().peekable();
    let mut before: Option<(f64, Sent)> = None;
    for loss in losses.iter().copied().map(Some).chain([None]) {
        while let Some(sample) = samples.next_if(|sample| loss.is_none_or(|loss| sample.at_us < loss.1.at_us)) {
            let sent = sample.bytes;
            let passed = match (before, loss) {
                (Some(before), Some(loss)) => {
                    let part = stats::fraction(sent - before.1.bytes, loss.1.bytes - before.1.bytes).clamp(0.0, 1.0);
                    before.0 + (loss.0 - before.0) * part
                }
                (Some(before), None) => before.0 + (sent - before.1.bytes).max(0.0),
                (None, Some(loss)) => (loss.0 - (loss.1.bytes - sent)).max(0.0),
                (None, None) => sent,
            };
            knots.push(sample.knot(passed, false));
        }
        knots.extend(loss.map(|(passed, sent)| sent.knot(passed, true)));
        before = loss;
    }
    knots
}

/// What had been sent until a moment between two samples.
fn sent_at(samples: &[Sent], at_us: f64) -> Sent {
    let after = samples.partition_point(|sample| sample.at_us <= at_us);
    match (after.checked_sub(1).map(|before| samples[before]), samples.get(after)) {
        (Some(before), Some(&after)) => {
            let part = stats::fraction(at_us - before.at_us, after.at_us - before.at_us);
            let between = |before: f64, after: f64| before + (after - before) * part;
            let (bytes, arrived) = (between(before.bytes, after.bytes), between(before.arrived, after.arrived));
            Sent { at_us, bytes, arrived, rtt_us: after.rtt_us }
        }
        (Some(last), None) => Sent { at_us, ..last },
        (None, _) => Sent { at_us, bytes: 0.0, arrived: 0.0, rtt_us: 0.0 },
    }
}

/// Leaves out what lies between two others while nothing gets through.
fn thin_out(knots: &mut Vec<Knot>) {
    let mut kept: Vec<Knot> = Vec::with_capacity(knots.len());
    for knot in knots.drain(..) {
        let is_flat = |before: &Knot| before.passed >= knot.passed && before.arrived >= knot.arrived && !before.is_loss;
        if let [.., before, last] = &kept[..]
            && is_flat(last)
            && is_flat(before)
        {
            kept.pop();
        }
        kept.push(knot);
    }
    // Thousands of passages may wait for the others of a capture.
    kept.shrink_to_fit();
    *knots = kept;
}

/// A bottleneck that several connections share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedBottleneck {
    /// The payload that it lets through, of all of them together.
    pub rate: Rate,
    /// Over so much time, from one loss to another one, ...
    pub span: Micros,
    /// ... so much more or less got through at the most (in nine of ten such times).
    pub slack: Bytes,
    /// How many connections there are.
    pub connections: usize,
    /// A link or a policer.
    pub kind: BottleneckKind,
    /// Whether most of what it carries is of connections that last for few round trips, so that their beginning seems to hold each of them.
    pub are_short: bool,
}

/// What a bottleneck is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BottleneckKind {
    /// A link.
    Link {
        /// How much later than over the shortest way came what was sent right behind a loss.
        wait: Micros,
    },
    /// A link whose queue never ran empty meanwhile.
    Queue {
        /// By so much longer than over the empty path were round trips.
        wait: Micros,
    },
    /// A bucket of tokens, which has no queue.
    Policer,
    /// The sender's own link, or what else is before the place of a capture: its queue shows in no round trip.
    OwnLink {
        /// An equal part of what it carries, of as many connections as send at once.
        equal: Rate,
    },
    /// One of the two: nothing came later behind a loss than at other times, but the connections began before they were seen, and a queue may have
    /// been full all the time.
    Either,
}

/// The bottleneck that all of these go through, if they lost what they lost to one, or stood in its queue; each with what the judge says of it
/// alone. What they have in common is up to whoever asks: the end that receives all of them, or the one that sends them.
pub fn shared_bottleneck(all: &[(&Passage, &Diagnosis)]) -> Option<SharedBottleneck> {
    let is_lossy =
        |passage: &Passage, alone: &Diagnosis| passage.has_losses() && is_its_doing(alone.limiter, alone.detail);
    let are_short = are_mostly_short(all);
    let queued = |passage: &Passage, alone: &Diagnosis| may_be_queued(passage, alone, are_short);
    let (are_lossy, are_queued) = (are_several(all, is_lossy), are_several(all, queued));
    let passages: Vec<&Passage> = all.iter().map(|(passage, _)| *passage).collect();
    let [base, empty] = [|passage: &Passage| passage.base_rtt, |passage: &Passage| passage.empty_rtt]
        .map(|rtt| stats::median(passages.iter().map(|passage| (rtt(passage), 1.0))).unwrap_or_default());
    if base <= 0.0 || empty <= 0.0 || !are_lossy && !are_queued {
        return None;
    }
    let sum = Sum::new(&passages, empty);
    let full_link = if are_queued { full_link(&passages, &sum, empty, are_short) } else { None };
    let full_link = full_link.map(|bottleneck| SharedBottleneck { are_short, ..bottleneck });
    full_link.or_else(|| if are_lossy { by_losses(&passages, &sum, base) } else { None })
}

/// The link that all of these fill: its queue stood before all of them for most of the time, and meanwhile it carried the same from any moment
/// to any other.
fn full_link(passages: &[&Passage], sum: &Sum, base: f64, are_short: bool) -> Option<SharedBottleneck> {
    let mss = passages.iter().map(|passage| passage.mss).fold(0.0, f64::max);
    // Of many senders a sum is nearly level by chance: of those that send at once.
    let whole = passages.len() as f64;
    let at_once = (passages.iter().map(|passage| passage.lasted()).sum::<f64>() / sum.time).clamp(1.0, whole);
    let equals = equals(passages) * at_once / whole;
    let uneven = (thresholds::SHARED_CREST / equals.sqrt()).min(thresholds::SHARED_QUEUED_UNEVEN);
    let uneven = if are_short { thresholds::SHARED_QUEUED_UNEVEN } else { uneven };
    let segments = thresholds::SHARED_SEGMENTS * mss * at_once.sqrt();
    let slack = |span: &Span, rate: f64| uneven * rate * span.time + segments;
    let level = |round_trips: f64| {
        let level = Level::over(&sum.queued, round_trips * base, slack)?;
        let is_level = level.count >= thresholds::SHARED_LEAST[0] && level.part >= thresholds::POLICED_LEVEL;
        (is_level && level.rate > 0.0).then_some(level)
    };
    // Of many short ones, each of which ends in a flight that is acknowledged late, less is known over short times.
    let long = if are_short { level(thresholds::SHARED_SHORT) } else { None };
    let level = level(thresholds::SHARED_QUEUED_ROUND_TRIPS).or(long)?;
    let least = if are_short { thresholds::SHARED_QUEUED_TIME_SHORT } else { thresholds::SHARED_QUEUED_TIME };
    let is_full = sum.queued_time >= least * sum.time;
    let queued = |passage: &&Passage| stats::median(passage.queues());
    let wait = stats::median(passages.iter().filter_map(|passage| Some((queued(passage)?, passage.flight()))))?;
    (is_full && shows_queue(wait, base)).then(|| {
        SharedBottleneck::new(level, passages.len(), BottleneckKind::Queue { wait: Micros::new(wait.round() as u64) })
    })
}

/// Whether a round trip that is so much longer than over the empty path shows a queue.
fn shows_queue(wait: f64, base: f64) -> bool {
    wait >= ((thresholds::QUEUE_FACTOR - 1.0) * base).max(thresholds::SHARED_STANDING_US)
}

/// What took all that they lost.
fn by_losses(passages: &[&Passage], sum: &Sum, base: f64) -> Option<SharedBottleneck> {
    let mss = passages.iter().map(|passage| passage.mss).fold(0.0, f64::max);
    let wait = stats::median(passages.iter().filter_map(|passage| Some((passage.wait_us?, passage.flight()))))?;
    let levels = Levels::new(&sum.losses, base, mss)?;
    let is_standing = wait >= thresholds::SHARED_STANDING * base;
    let even = levels.even();
    let level = even.or_else(|| levels.capped(equals(passages)).filter(|_| is_standing))?;
    let queued = wait * level.rate;
    let bucket = sum.burst(level.rate);
    let is_bucket = bucket >= level.rate * thresholds::POLICED_BUCKET_US.max(thresholds::POLICED_BY_WAIT * wait)
        && bucket >= thresholds::POLICED_BUCKET_SEGMENTS * mss * passages.len() as f64;
    let is_policer = is_bucket || queued < thresholds::SHARED_QUEUED_SEGMENTS * mss;
    let is_queue = queued >= thresholds::POLICED_QUEUED_SEGMENTS * mss && wait >= thresholds::SHARED_QUEUE_US;
    // What counters know of a queue, each connection shows by itself.
    let is_known =
        if is_policer { even.is_some() } else { is_queue && !passages.iter().any(|passage| passage.is_counted) };
    if !is_known {
        return None;
    }
    let are_whole = 2 * passages.iter().filter(|passage| passage.is_whole).count() >= passages.len();
    let kind = if !is_policer {
        BottleneckKind::Link { wait: Micros::new(wait.round() as u64) }
    } else if is_bucket || are_whole {
        BottleneckKind::Policer
    } else {
        BottleneckKind::Either
    };
    Some(SharedBottleneck::new(level, passages.len(), kind))
}

/// Whether most of what gets through is of connections that last for few round trips.
fn are_mostly_short(all: &[(&Passage, &Diagnosis)]) -> bool {
    let carried = |is_counted: fn(&Passage) -> bool| {
        all.iter().filter(|(passage, _)| is_counted(passage)).map(|(passage, _)| passage.carried()).sum::<f64>()
    };
    2.0 * carried(Passage::is_short) >= carried(|_| true)
}

/// How many connections that carry as much as each other would carry what these do, as unevenly as chance shares it out.
fn equals(passages: &[&Passage]) -> f64 {
    let carried = || passages.iter().map(|passage| passage.carried());
    stats::fraction(carried().sum::<f64>().powi(2), carried().map(|bytes| bytes.powi(2)).sum())
}

/// Two of them at least carry more than next to nothing beside the rest, and `may_be` held by a bottleneck: applications that keep to a rate make
/// a level sum, too.
fn are_several(all: &[(&Passage, &Diagnosis)], may_be: impl Fn(&Passage, &Diagnosis) -> bool) -> bool {
    let whole: f64 = all.iter().map(|(passage, _)| passage.carried()).sum();
    // Of many, an equal part is little.
    let least = thresholds::SHARED_PART.min(thresholds::SHARED_PART_OF_EQUAL / all.len() as f64) * whole;
    let is_one =
        |(passage, diagnosis): &&(&Passage, &Diagnosis)| passage.carried() >= least && may_be(passage, diagnosis);
    all.iter().filter(is_one).nth(1).is_some()
}

/// The end that connections through one bottleneck have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonEnd {
    /// It sends all that goes through it.
    Sender,
    /// It receives it.
    Receiver,
}

impl SharedBottleneck {
    fn new(level: Level, connections: usize, kind: BottleneckKind) -> Self {
        Self {
            rate: Rate::from_bps((level.rate * 8e6).round() as u64),
            span: Micros::new(level.span.round() as u64),
            slack: Bytes::new(level.slack.round() as u64),
            connections,
            kind,
            are_short: false,
        }
    }

    /// Whether it may be what holds a connection of which the judge says this.
    fn may_hold(&self, passage: &Passage, alone: &Diagnosis) -> bool {
        match self.kind {
            BottleneckKind::Queue { .. } => may_be_queued(passage, alone, self.are_short),
            BottleneckKind::OwnLink { equal } => {
                may_have_waited(passage, alone) && passage.departures.has_its_part(equal)
            }
            _ => is_its_doing(alone.limiter, alone.detail),
        }
    }

    /// Puts the bottleneck in the place of what one of its connections seemed to be held by, where it may be what holds it. `passage` is that of
    /// the connection, `name` that of the end that all of them have in common.
    pub fn explain(
        &self,
        passage: &Passage,
        diagnosis: &mut Diagnosis,
        runs: &mut Vec<Run>,
        end: CommonEnd,
        name: &str,
    ) {
        if !self.may_hold(passage, diagnosis) {
            return;
        }
        let alone = (diagnosis.limiter, diagnosis.detail);
        let detail = match self.kind {
            BottleneckKind::Link { .. } | BottleneckKind::Queue { .. } | BottleneckKind::OwnLink { .. } => {
                Some(Detail::Saturated)
            }
            BottleneckKind::Policer => Some(Detail::Policed),
            BottleneckKind::Either => None,
        };
        if diagnosis.limiter != Limiter::Path {
            let part = diagnosis.shares.remove(&diagnosis.limiter).unwrap_or_default();
            let share = diagnosis.shares.entry(Limiter::Path).or_insert(0.0);
            *share += part;
            diagnosis.share = *share;
            // How many were lost still holds, and when; that no queue formed, a buffer was full, or nothing was in its way, was this connection's
            // guess.
            let last = diagnosis.evidence.len().saturating_sub(1);
            let is_opening = diagnosis.detail == Some(Detail::SlowStart);
            let kept = usize::from(diagnosis.limiter == Limiter::CongestionWindow && !is_opening);
            diagnosis.evidence.drain(kept.min(last)..last);
        }
        for run in std::mem::take(runs) {
            let is_its = is_its_doing(run.limiter, run.detail) || (run.limiter, run.detail) == alone;
            push_joined(runs, if is_its { Run { limiter: Limiter::Path, detail, ..run } } else { run });
        }
        let time = diagnosis.evidence.last().and_then(|last| last.from_us.zip(last.to_us));
        let packets = diagnosis.evidence.last().and_then(|last| last.packets);
        if let Some((last, time)) = diagnosis.evidence.last_mut().zip(time) {
            last.text = sentences::when("the path", diagnosis.share, time);
        }
        let (from_us, to_us) = time.unzip();
        let of_whom = self.of_whom(end, name);
        diagnosis.evidence.insert(0, Evidence { text: self.reason(&of_whom), from_us, to_us, packets });
        if (diagnosis.limiter, diagnosis.detail) != (Limiter::Path, detail) {
            diagnosis.confidence = Confidence::Medium;
        }
        (diagnosis.limiter, diagnosis.detail) = (Limiter::Path, detail);
        diagnosis.attainable_bps = Some(self.rate);
        diagnosis.or.clear();
        if alone.0 == Limiter::Application {
            let decided_by = match self.kind {
                BottleneckKind::OwnLink { .. } => "the sender's queue (tc -s qdisc) and how busy its processors are",
                _ => "a capture beside the sender, which shows what it waited for",
            };
            let decided_by = decided_by.to_owned();
            diagnosis.or.push(Alternative { limiter: Limiter::Application, decided_by });
        }
        diagnosis.action = self.action(&of_whom);
    }

    fn of_whom(&self, end: CommonEnd, name: &str) -> String {
        let way = match end {
            CommonEnd::Sender => "from",
            CommonEnd::Receiver => "to",
        };
        format!("{} connections {way} {name}", self.connections)
    }

    fn reason(&self, of_whom: &str) -> String {
        let Self { rate, span, slack, kind, .. } = self;
        let when = match kind {
            BottleneckKind::Queue { .. } => "while a queue stood",
            BottleneckKind::OwnLink { .. } => "however many of them were sending",
            _ => "between losses",
        };
        let why = match kind {
            BottleneckKind::Queue { wait } => {
                format!("round trips were {wait} longer than over the empty path: they fill a link that they share")
            }
            BottleneckKind::OwnLink { .. } => "round trips show no queue: they fill their sender's own link".to_owned(),
            BottleneckKind::Policer => "nothing queued: they share a policer".to_owned(),
            BottleneckKind::Link { wait } => {
                format!("segments behind a loss had queued for {wait}: they fill a link that they share")
            }
            BottleneckKind::Either => {
                "most of them began before the capture, so that a link whose queue is always full can't be told \
                                       from a policer"
                    .to_owned()
            }
        };
        format!(
            "{of_whom} carried {rate} together {when} (within {slack} of that in nine of ten spans of {span}), and {why}"
        )
    }

    fn action(&self, of_whom: &str) -> String {
        let rate = self.rate;
        match self.kind {
            BottleneckKind::Policer => format!(
                "no TCP setting raises a policed rate; pace these {of_whom} together just below {rate} to avoid the losses"
            ),
            BottleneckKind::Link { .. } | BottleneckKind::Queue { .. } => {
                format!("nothing to set: these {of_whom} fill the path together, and only a faster link would help")
            }
            BottleneckKind::OwnLink { .. } => format!(
                "check the sender's own link, up to where this was captured (the speed that its card negotiated, a shaper, a virtual machine's \
                 limit): no TCP setting makes these {of_whom} faster together than {rate}"
            ),
            BottleneckKind::Either => format!(
                "capture the beginning of connections, too, to tell a full link from a policer; either way no TCP setting makes \
                 these {of_whom} faster together than {rate}"
            ),
        }
    }
}

/// What a bottleneck makes of connections that share it, as it seems for one of them.
const fn is_its_doing(limiter: Limiter, detail: Option<Detail>) -> bool {
    matches!(
        (limiter, detail),
        (Limiter::CongestionWindow, Some(Detail::Loss | Detail::Rto | Detail::TailLoss)) | (Limiter::Path, _)
    )
}

/// ... and what the queue of a link that others fill, too, can make of one: a flight that it doesn't let grow looks like a full buffer, and
/// beside the receiver gaps in which others' segments came look like a late writer's. An application that the judge is sure of is one, and
/// so is one whose data comes in bursts and loses nothing. What counters know of round trips shows no queue. Where short ones fill the link
/// (`are_short`), each of them seems to be held by its beginning; beside others that fill it, it is.
fn may_be_queued(passage: &Passage, alone: &Diagnosis, are_short: bool) -> bool {
    let is_one_of_short = || are_short && passage.is_short();
    match alone.limiter {
        _ if passage.is_counted => false,
        Limiter::SendBuffer => true,
        Limiter::InsufficientEvidence => is_one_of_short(),
        Limiter::CongestionWindow if alone.detail == Some(Detail::SlowStart) => is_one_of_short(),
        Limiter::CongestionWindow => alone.detail.is_none() || is_its_doing(alone.limiter, alone.detail),
        Limiter::Application if !passage.is_beside_receiver || alone.confidence == Confidence::High => false,
        Limiter::Application if alone.detail.is_none() => {
            passage.has_losses() || passage.is_clocked() || is_one_of_short()
        }
        Limiter::Application => is_one_of_short(),
        _ => is_its_doing(alone.limiter, alone.detail),
    }
}
