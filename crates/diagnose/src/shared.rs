//! Several connections through one bottleneck. Alone, each of them seems to be held down by losses: what one gets through between two of them
//! depends on what the others send. All of them together are held at the bottleneck's rate from one loss to any other: whenever a policer drops,
//! its bucket is empty (Flach 2016), and whenever a link drops, its queue is full. Chance keeps no sum at a rate, however
//! many connections share it.
//! What is *not* here: one connection alone (`policer`, `path`), and which connections may have a bottleneck in common (whoever calls this).

use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    Confidence, Detail, Diagnosis, Drop, Evidence, Limiter, Run, SenderSample, Transfer, loss, policer, sentences,
    stats, thresholds, timeline::Timeline, verdict::push_joined,
};

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
    /// The round trip of the empty path, in microseconds.
    base_rtt: f64,
    mss: f64,
}

/// Until a moment so much had got through.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    /// On the clock that all transfers have in common, in microseconds.
    at_us: f64,
    passed: f64,
    is_loss: bool,
}

impl Passage {
    /// What `transfer` shows, whose first payload byte was sent at `began_us` on a clock that is the same for all. `None` where neither packets
    /// nor fine samples of a sender with SACK show what was lost when.
    pub fn new(transfer: &Transfer, began_us: u64) -> Option<Self> {
        let base_rtt = transfer.base_rtt()?.get() as f64;
        let has_packets = transfer.sender_samples.iter().any(|sample| sample.packets.is_some());
        let mut passage = if has_packets {
            Self::from_packets(transfer, base_rtt)?
        } else {
            Self::from_counters(transfer, base_rtt)?
        };
        thin_out(&mut passage.knots);
        passage.knots.iter_mut().for_each(|knot| knot.at_us += began_us as f64);
        (passage.knots.len() > 1).then_some(passage)
    }

    fn from_packets(transfer: &Transfer, base_rtt: f64) -> Option<Self> {
        let mss = transfer.sender_samples.iter().find_map(|sample| sample.mss)?;
        let drops = transfer.drops.as_ref();
        let mut sent = 0.0;
        let sample = |sample: &SenderSample| {
            sent += sample.packets?.sent.get() as f64;
            Some((sample.at_us.get() as f64, sent))
        };
        let sent: Vec<(f64, f64)> = transfer.sender_samples.iter().filter_map(sample).collect();
        let loss = |drop: &Drop| (drop.at_us.get() as f64, drop.passed.get() as f64);
        let mut losses: Vec<(f64, f64)> = drops.iter().flat_map(|drops| &drops.list).map(loss).collect();
        losses.dedup_by_key(|loss| loss.0);
        let wait_us = drops.and_then(|drops| drops.wait_us).map(|wait| wait.get() as f64);
        let is_whole = transfer.sender.syn.is_some() || transfer.receiver.syn.is_some();
        let knots = knots(&sent, &losses);
        Some(Self { knots, wait_us, is_counted: false, is_whole, base_rtt, mss: f64::from(mss) })
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
        let mut knots = vec![Knot { at_us: intervals.first()?.from_us as f64, passed: 0.0, is_loss: false }];
        let mut passed = 0.0;
        for (place, interval) in intervals.iter().enumerate() {
            if let Some(last) = knots.last_mut().filter(|_| begins.next_if_eq(&place).is_some()) {
                last.is_loss = true;
            }
            passed += interval.acked;
            knots.push(Knot { at_us: interval.to_us as f64, passed, is_loss: false });
        }
        let wait_us = policer::wait_before(intervals, &events, base_rtt);
        // The kernel has counted from the beginning on.
        Some(Self { knots, wait_us, is_counted: true, is_whole: true, base_rtt, mss: timeline.mss })
    }

    /// How many moments are remembered, of 24 bytes each.
    pub fn moments(&self) -> usize {
        self.knots.len()
    }

    /// What got through, in bytes.
    fn carried(&self) -> f64 {
        self.knots.last().map_or(0.0, |last| last.passed)
    }

    /// What gets through in a round trip, on average.
    fn flight(&self) -> f64 {
        let ends = self.knots.first().zip(self.knots.last());
        ends.map_or(0.0, |(first, last)| {
            stats::fraction((last.passed - first.passed) * self.base_rtt, last.at_us - first.at_us)
        })
    }
}

/// What had got through at each sample and at each loss. What had until a loss is known, and what was sent tells how it spreads over the time
/// between two of them.
fn knots(sent: &[(f64, f64)], losses: &[(f64, f64)]) -> Vec<Knot> {
    let sent_at = |at_us: f64| {
        let after = sent.partition_point(|sample| sample.0 <= at_us);
        match (after.checked_sub(1).map(|before| sent[before]), sent.get(after)) {
            (Some(before), Some(after)) => {
                before.1 + (after.1 - before.1) * stats::fraction(at_us - before.0, after.0 - before.0)
            }
            (Some(last), None) => last.1,
            (None, _) => 0.0,
        }
    };
    let losses: Vec<(f64, f64, f64)> = losses.iter().map(|&(at_us, passed)| (at_us, passed, sent_at(at_us))).collect();
    let mut samples = sent.iter().peekable();
    let mut knots = Vec::with_capacity(sent.len() + losses.len());
    let mut before: Option<(f64, f64, f64)> = None;
    for loss in losses.iter().copied().map(Some).chain([None]) {
        while let Some(&&(at_us, sent)) = samples.peek()
            && loss.is_none_or(|loss| at_us < loss.0)
        {
            samples.next();
            let passed = match (before, loss) {
                (Some(before), Some(loss)) => {
                    before.1 + (loss.1 - before.1) * stats::fraction(sent - before.2, loss.2 - before.2).clamp(0.0, 1.0)
                }
                (Some(before), None) => before.1 + (sent - before.2).max(0.0),
                (None, Some(loss)) => (loss.1 - (loss.2 - sent)).max(0.0),
                (None, None) => sent,
            };
            knots.push(Knot { at_us, passed, is_loss: false });
        }
        knots.extend(loss.map(|loss| Knot { at_us: loss.0, passed: loss.1, is_loss: true }));
        before = loss;
    }
    knots
}

/// Leaves out what lies between two others while nothing gets through.
fn thin_out(knots: &mut Vec<Knot>) {
    let mut kept: Vec<Knot> = Vec::with_capacity(knots.len());
    for knot in knots.drain(..) {
        let is_flat = |before: &Knot| before.passed >= knot.passed && !before.is_loss;
        if let [.., before, last] = &kept[..]
            && is_flat(last)
            && is_flat(before)
        {
            kept.pop();
        }
        kept.push(knot);
    }
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
}

/// What a bottleneck is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BottleneckKind {
    /// A link.
    Link {
        /// How much later than over the shortest way came what was sent right behind a loss.
        wait: Micros,
    },
    /// A bucket of tokens, which has no queue.
    Policer,
    /// One of the two: nothing came later behind a loss than at other times, but the connections began before they were seen, and a queue may have
    /// been full all the time.
    Either,
}

/// The bottleneck that all of these go through, if they lost what they lost to one; each with what the judge says of it alone. What they have
/// in common is up to whoever asks: the end that receives all of them, or the one that sends them.
pub fn shared_bottleneck(all: &[(&Passage, &Diagnosis)]) -> Option<SharedBottleneck> {
    let passages: Vec<&Passage> = all.iter().map(|(passage, _)| *passage).collect();
    let base = stats::median(passages.iter().map(|passage| (passage.base_rtt, 1.0)))?;
    if base <= 0.0 || !are_several(all) {
        return None;
    }
    let mss = passages.iter().map(|passage| passage.mss).fold(0.0, f64::max);
    let sum = Sum::new(&passages);
    let wait = stats::median(passages.iter().filter_map(|passage| Some((passage.wait_us?, passage.flight()))))?;
    let levels = Levels::new(&sum.losses, base, mss)?;
    let is_standing = wait >= thresholds::SHARED_STANDING * base;
    let even = levels.even();
    let level = even.or_else(|| levels.capped(equals(&passages)).filter(|_| is_standing))?;
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
    Some(SharedBottleneck {
        rate: Rate::from_bps((level.rate * 8e6).round() as u64),
        span: Micros::new(level.span.round() as u64),
        slack: Bytes::new(level.slack.round() as u64),
        connections: passages.len(),
        kind,
    })
}

/// How many connections that carry as much as each other would carry what these do, as unevenly as chance shares it out.
fn equals(passages: &[&Passage]) -> f64 {
    let carried = || passages.iter().map(|passage| passage.carried());
    stats::fraction(carried().sum::<f64>().powi(2), carried().map(|bytes| bytes.powi(2)).sum())
}

/// Two of them at least carry more than next to nothing beside the rest, lost something, and seem to be held by that or by the path: applications
/// that keep to a rate make a level sum, too.
fn are_several(all: &[(&Passage, &Diagnosis)]) -> bool {
    let whole: f64 = all.iter().map(|(passage, _)| passage.carried()).sum();
    // Of many, an equal part is little.
    let least = thresholds::SHARED_PART.min(thresholds::SHARED_PART_OF_EQUAL / all.len() as f64) * whole;
    let is_one = |(passage, diagnosis): &&(&Passage, &Diagnosis)| {
        passage.carried() >= least
            && passage.knots.iter().any(|knot| knot.is_loss)
            && is_its_doing(diagnosis.limiter, diagnosis.detail)
    };
    all.iter().filter(is_one).nth(1).is_some()
}

/// A loss of any connection, and what had got through of all of them until then.
#[derive(Clone, Copy, Debug)]
struct Loss {
    at_us: f64,
    passed: f64,
    /// How exactly that is known: what a connection has in flight is spread over a round trip, of each one for itself.
    uncertainty: f64,
}

/// What got through of all together.
#[derive(Debug, Default)]
struct Sum {
    /// When, and how much until then, up to the first loss.
    begin: Vec<(f64, f64)>,
    /// In order of time.
    losses: Vec<Loss>,
}

/// From a moment on, so much more gets through per microsecond.
#[derive(Clone, Copy, Debug)]
struct SlopeChange {
    at_us: f64,
    by: f64,
    uncertainty: f64,
    is_loss: bool,
}

impl Sum {
    fn new(passages: &[&Passage]) -> Self {
        let mut changes = Vec::with_capacity(passages.iter().map(|passage| 2 * passage.moments()).sum());
        for passage in passages {
            let uncertainty = passage.flight().max(thresholds::SHARED_SEGMENTS * passage.mss).powi(2);
            for pair in passage.knots.windows(2) {
                let (from, to) = (pair[0], pair[1]);
                if to.at_us > from.at_us {
                    let by = (to.passed - from.passed) / (to.at_us - from.at_us);
                    changes.push(SlopeChange { at_us: from.at_us, by, uncertainty, is_loss: from.is_loss });
                    changes.push(SlopeChange {
                        at_us: to.at_us,
                        by: -by,
                        uncertainty: -uncertainty,
                        is_loss: to.is_loss,
                    });
                }
            }
        }
        changes.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
        let mut sum = Self::default();
        let (mut at_us, mut passed, mut by, mut uncertainty) = (0.0, 0.0, 0.0, 0.0);
        for change in changes {
            passed += by * (change.at_us - at_us);
            at_us = change.at_us;
            by += change.by;
            // Until now, or from now on: it ends and begins at each of its moments.
            let most = f64::max(uncertainty, uncertainty + change.uncertainty);
            uncertainty += change.uncertainty;
            if change.is_loss && sum.losses.last().is_none_or(|last| last.at_us < at_us) {
                sum.losses.push(Loss { at_us, passed, uncertainty: f64::max(most, 0.0).sqrt() });
            }
            if sum.losses.is_empty() {
                sum.begin.push((at_us, passed));
            }
        }
        sum
    }

    /// By how much more than `rate` allows got through within some time before the first loss.
    fn burst(&self, rate: f64) -> f64 {
        let (mut most, mut now) = (0.0_f64, 0.0_f64);
        for pair in self.begin.windows(2) {
            let ((from_us, before), (to_us, after)) = (pair[0], pair[1]);
            now = (now + after - before - rate * (to_us - from_us)).max(0.0);
            most = most.max(now);
        }
        most
    }
}

/// What gets through between losses, as far as it is always the same.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// In bytes per microsecond.
    rate: f64,
    /// How many times between losses there are, and how long they are (median, in microseconds).
    count: usize,
    span: f64,
    /// In this part of their time what got through was the same.
    part: f64,
    /// In nine of ten, no more than so many bytes were missing or too many.
    slack: f64,
    /// In nine of ten, no more than this part of the rate was too much.
    crest: f64,
}

/// The same over short times and, where there are enough of them, over long ones: what chance adds up to grows with time, and how inexactly a
/// bottleneck's rate is known doesn't.
#[derive(Clone, Copy, Debug)]
struct Levels {
    short: Level,
    long: Option<Level>,
}

impl Levels {
    fn new(losses: &[Loss], base: f64, mss: f64) -> Option<Self> {
        let [short, long] =
            thresholds::SHARED_ROUND_TRIPS.map(|round_trips| Level::over(losses, round_trips * base, mss));
        let [least, least_long] = thresholds::SHARED_LEAST;
        let short = short.filter(|short| short.count >= least)?;
        Some(Self { short, long: long.filter(|long| long.count >= least_long) })
    }

    /// Whether something gets through over both times, and that holds over both.
    fn both(&self, holds: impl Fn(&Level) -> bool) -> bool {
        let holds = |level: &Level| level.rate > 0.0 && holds(level);
        holds(&self.short) && self.long.is_none_or(|long| holds(&long))
    }

    /// What gets through is always the same.
    fn even(&self) -> Option<Level> {
        self.both(|level| level.part >= thresholds::POLICED_LEVEL).then(|| self.long.unwrap_or(self.short))
    }

    /// What gets through is never more, of so many connections, and less when the queue has run empty behind the losses of many at once.
    fn capped(&self, connections: f64) -> Option<Level> {
        let known = (self.short.count as f64 / thresholds::SHARED_CREST_TIMES).min(1.0);
        let most = (known * thresholds::SHARED_CREST / connections.sqrt()).min(thresholds::SHARED_CREST_MOST);
        let is_capped = self.both(|level| level.crest <= most);
        is_capped.then_some(self.short)
    }
}

impl Level {
    /// From one loss to the next that is so much later.
    fn over(losses: &[Loss], least: f64, mss: f64) -> Option<Self> {
        let mut spans: Vec<Span> = Vec::new();
        let mut last = *losses.first()?;
        for loss in losses {
            let time = loss.at_us - last.at_us;
            if time >= least {
                // Who has lost nothing for long may have sent less than the bucket would have let through.
                if time <= thresholds::SHARED_APART * least {
                    spans.push(Span {
                        time,
                        passed: loss.passed - last.passed,
                        uncertainty: last.uncertainty.max(loss.uncertainty),
                    });
                }
                last = *loss;
            }
        }
        let rates = || spans.iter().map(|span| (span.passed / span.time, span.time));
        let rate = stats::median(rates())?;
        let off = |span: &Span| (span.passed - rate * span.time).abs();
        let is_level = |span: &&Span| {
            off(span) <= thresholds::SHARED_UNCERTAINTY * span.uncertainty + thresholds::SHARED_SEGMENTS * mss
        };
        let time = |of: &mut dyn Iterator<Item = &Span>| of.map(|span| span.time).sum::<f64>();
        Some(Self {
            rate,
            count: spans.len(),
            span: stats::median(spans.iter().map(|span| (span.time, 1.0)))?,
            part: stats::fraction(time(&mut spans.iter().filter(is_level)), time(&mut spans.iter())),
            slack: stats::quantile(spans.iter().map(|span| (off(span), 1.0)), 0.9)?,
            crest: stats::fraction(stats::quantile(rates(), 0.9)? - rate, rate),
        })
    }
}

/// From one loss to another one.
#[derive(Clone, Copy, Debug)]
struct Span {
    time: f64,
    passed: f64,
    uncertainty: f64,
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
    /// Puts the bottleneck in the place of what one of its connections seemed to be held by, where that was its losses or the path. `name` is
    /// that of the end that all of them have in common.
    pub fn explain(&self, diagnosis: &mut Diagnosis, runs: &mut Vec<Run>, end: CommonEnd, name: &str) {
        if !is_its_doing(diagnosis.limiter, diagnosis.detail) {
            return;
        }
        let detail = match self.kind {
            BottleneckKind::Link { .. } => Some(Detail::Saturated),
            BottleneckKind::Policer => Some(Detail::Policed),
            BottleneckKind::Either => None,
        };
        if diagnosis.limiter == Limiter::CongestionWindow {
            let by_loss = diagnosis.shares.remove(&Limiter::CongestionWindow).unwrap_or_default();
            let share = diagnosis.shares.entry(Limiter::Path).or_insert(0.0);
            *share += by_loss;
            diagnosis.share = *share;
            // How many were lost still holds, and when; that no queue formed was this connection's guess.
            let last = diagnosis.evidence.len().saturating_sub(1);
            diagnosis.evidence.drain(1.min(last)..last);
        }
        for run in std::mem::take(runs) {
            let is_its = is_its_doing(run.limiter, run.detail);
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
        let why = match kind {
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
            "{of_whom} carried {rate} together between losses (within {slack} of that in nine of ten spans of {span}), and {why}"
        )
    }

    fn action(&self, of_whom: &str) -> String {
        let rate = self.rate;
        match self.kind {
            BottleneckKind::Policer => format!(
                "no TCP setting raises a policed rate; pace these {of_whom} together just below {rate} to avoid the losses"
            ),
            BottleneckKind::Link { .. } => {
                format!("nothing to set: these {of_whom} fill the path together, and only a faster link would help")
            }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diagnose_streams;

    const MSS: f64 = 1_448.0;
    const BASE_US: f64 = 100_000.0;
    const SECONDS: f64 = 30.0;

    /// Numerical Recipes' generator: enough for jitter.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// What takes segments.
    #[derive(Clone, Copy, Debug)]
    enum Taker {
        /// A bucket of so many bytes that fills at so many bytes a microsecond.
        Bucket(f64, f64),
        /// Chance, with this probability.
        Chance(f64),
        /// A link of so many bytes a microsecond behind a queue of so many bytes.
        Link(f64, f64),
    }

    /// So many senders that add a segment in each round trip and halve at a loss, one round trip later.
    fn senders(count: usize, taker: Taker, seed: u64) -> Vec<Passage> {
        struct Sender {
            cwnd: f64,
            next: f64,
            halves_at: Option<f64>,
            passed: f64,
            knots: Vec<Knot>,
        }
        let mut random = Random(seed);
        let sender = |number| Sender {
            cwnd: 10.0,
            next: BASE_US * number as f64 / count as f64,
            halves_at: None,
            passed: 0.0,
            knots: Vec::new(),
        };
        let mut senders: Vec<Sender> = (0..count).map(sender).collect();
        let (mut tokens, mut at) = (if let Taker::Bucket(size, _) = taker { size } else { 0.0 }, 0.0);
        let mut queued = 0.0_f64;
        while at < SECONDS * 1e6 {
            let Some(sender) = senders.iter_mut().min_by(|a, b| a.next.total_cmp(&b.next)) else { break };
            if let Taker::Bucket(size, rate) = taker {
                tokens = (tokens + rate * (sender.next - at)).min(size);
            }
            if let Taker::Link(rate, _) = taker {
                queued = (queued - rate * (sender.next - at)).max(0.0);
            }
            at = sender.next;
            let is_lost = match taker {
                Taker::Bucket(..) => tokens < MSS,
                Taker::Chance(part) => random.unit() < part,
                Taker::Link(_, most) => queued + MSS > most,
            };
            sender.knots.push(Knot { at_us: at, passed: sender.passed, is_loss: is_lost });
            if is_lost {
                sender.halves_at = sender.halves_at.or(Some(at + BASE_US));
            } else {
                tokens -= MSS;
                queued += MSS;
                sender.passed += MSS;
            }
            if sender.halves_at.is_some_and(|halves| at >= halves) {
                sender.halves_at = None;
                sender.cwnd = (sender.cwnd / 2.0).max(2.0);
            }
            sender.cwnd += 1.0 / sender.cwnd;
            sender.next += BASE_US / sender.cwnd * (0.5 + random.unit());
        }
        let wait_us = if let Taker::Link(rate, most) = taker { most / rate } else { 300.0 };
        let passage = |sender: Sender| Passage {
            knots: sender.knots,
            wait_us: Some(wait_us),
            is_counted: false,
            is_whole: true,
            base_rtt: BASE_US,
            mss: MSS,
        };
        senders.into_iter().map(passage).collect()
    }

    fn found(passages: &[Passage]) -> Option<SharedBottleneck> {
        found_as(passages, (Limiter::CongestionWindow, Some(Detail::Loss)))
    }

    /// What is found where each of them alone seems to be held by that.
    fn found_as(passages: &[Passage], (limiter, detail): (Limiter, Option<Detail>)) -> Option<SharedBottleneck> {
        let alone = Diagnosis { limiter, detail, ..Diagnosis::insufficient(String::new()) };
        shared_bottleneck(&passages.iter().map(|passage| (passage, &alone)).collect::<Vec<_>>())
    }

    #[test]
    fn one_connection_shares_nothing_and_a_queue_is_no_bucket() {
        let mut passages = senders(4, Taker::Bucket(40e3, 0.4), 1);
        assert_eq!(found(&passages[..1]), None);
        assert_eq!(found(&[]), None);
        let known = found(&passages).unwrap();
        assert_eq!(known.connections, 4);
        assert!((known.rate.bps() as f64 / 3.2e6 - 1.0).abs() < 0.01, "{known:?}");
        assert_eq!(known.kind, BottleneckKind::Policer);
        assert_eq!(found_as(&passages, (Limiter::Path, None)), Some(known));
        assert_eq!(found_as(&passages, (Limiter::Application, None)), None);
        // What waits behind a loss stood in a full queue.
        passages.iter_mut().for_each(|passage| passage.wait_us = Some(60_000.0));
        assert_eq!(found(&passages).unwrap().kind, BottleneckKind::Link { wait: Micros::new(60_000) });
        passages.iter_mut().for_each(|passage| passage.wait_us = None);
        assert_eq!(found(&passages), None);
    }

    #[test]
    fn what_passes_between_two_losses_is_spread_as_it_was_sent() {
        let sent = [(0.0, 0.0), (10.0, 1_000.0), (20.0, 1_000.0), (30.0, 3_000.0), (40.0, 4_000.0)];
        let knots = knots(&sent, &[(15.0, 900.0), (30.0, 2_500.0)]);
        let seen: Vec<_> = knots.iter().map(|knot| (knot.at_us, knot.passed, knot.is_loss)).collect();
        let (sample, loss) = (false, true);
        assert_eq!(
            seen,
            [
                (0.0, 0.0, sample),
                (10.0, 900.0, sample),
                (15.0, 900.0, loss),
                (20.0, 900.0, sample),
                (30.0, 2_500.0, loss),
                (30.0, 2_500.0, sample),
                (40.0, 3_500.0, sample),
            ]
        );
    }

    /// The same as counters that are read ten times in a round trip.
    fn counted(passage: &Passage) -> Transfer {
        let sample = |number: u32| {
            let at_us = f64::from(number) * BASE_US / 10.0;
            let past = passage.knots.partition_point(|knot| knot.at_us <= at_us);
            let lost = passage.knots[..past].iter().filter(|knot| knot.is_loss).count();
            SenderSample {
                at_us: Micros::new(at_us as u64),
                acked: Bytes::new(past.checked_sub(1).map_or(0.0, |last| passage.knots[last].passed) as u64),
                retransmits: Some(lost as u64),
                mss: Some(MSS as u32),
                rtt_us: Some(Micros::new((BASE_US + passage.wait_us.unwrap_or(0.0)) as u64)),
                min_rtt_us: Some(Micros::new(BASE_US as u64)),
                in_flight: Some(Bytes::new(passage.flight() as u64)),
                ..SenderSample::default()
            }
        };
        let sender_samples: Vec<SenderSample> = (0..(SECONDS * 1e7 / BASE_US) as u32).map(sample).collect();
        let bytes = sender_samples.last().map_or(Bytes::ZERO, |last| last.acked);
        Transfer { bytes, duration_us: Micros::new((SECONDS * 1e6) as u64), sender_samples, ..Transfer::default() }
    }

    #[test]
    fn streams_of_one_test_are_judged_together() {
        let judged = |taker| {
            let transfers: Vec<Transfer> = senders(4, taker, 3).iter().map(counted).collect();
            diagnose_streams(&transfers)
        };
        let policed = judged(Taker::Bucket(80e3, 0.4));
        assert_eq!((policed.limiter, policed.detail), (Limiter::Path, Some(Detail::Policed)), "{policed:#?}");
        assert!(policed.evidence[1].text.starts_with("4 connections to the receiver carried 3.2"), "{policed:#?}");
        // Delayed acknowledgements lengthen round trips, too.
        let waits = |passage| counted(&Passage { wait_us: Some(20_000.0), ..passage });
        let delayed: Vec<Transfer> = senders(4, Taker::Bucket(80e3, 0.4), 3).into_iter().map(waits).collect();
        let delayed = diagnose_streams(&delayed);
        assert_ne!((delayed.limiter, delayed.detail), (Limiter::Path, Some(Detail::Saturated)), "{delayed:#?}");
        let lost = judged(Taker::Chance(0.01));
        assert_eq!((lost.limiter, lost.detail), (Limiter::CongestionWindow, Some(Detail::Loss)), "{lost:#?}");
    }

    /// Losses of sixteen senders, ten round trips apart, between which what 0.4 bytes a microsecond allow got through; in each third such time,
    /// it was this part of it.
    fn losses(third: f64) -> Vec<Loss> {
        let mut loss = Loss { at_us: 0.0, passed: 0.0, uncertainty: 4.0 * MSS };
        let times = (0..40).map(|number| {
            loss.at_us += 10.0 * BASE_US;
            loss.passed += 0.4 * 10.0 * BASE_US * if number % 3 == 0 { third } else { 1.0 };
            loss
        });
        times.collect()
    }

    #[test]
    fn a_full_link_never_carries_more() {
        let levels = |third| Levels::new(&losses(third), BASE_US, MSS).unwrap();
        assert!(levels(1.0).even().is_some_and(|level| level.crest == 0.0));
        // Its queue has run empty.
        let less = levels(0.9);
        assert!(
            less.even().is_none() && less.capped(16.0).is_some_and(|level| (level.rate - 0.4).abs() < 1e-9),
            "{less:?}"
        );
        assert!(levels(1.1).even().is_none() && levels(1.1).capped(16.0).is_none());
        // Of hundreds of senders chance makes a sum that is nearly level.
        assert!(levels(1.02).capped(16.0).is_some() && levels(1.02).capped(400.0).is_none());
        // Of fewer such times less is known.
        let few = Levels::new(&losses(1.02)[..11], BASE_US, MSS).unwrap();
        assert!(levels(1.02).capped(64.0).is_some() && few.capped(64.0).is_none());
    }

    #[test]
    fn a_capture_from_the_middle_does_not_tell_a_policer_from_a_queue_that_is_always_full() {
        // A bucket that is small shows no burst.
        let mut passages = senders(8, Taker::Bucket(6e3, 0.8), 1);
        assert_eq!(found(&passages).unwrap().kind, BottleneckKind::Policer);
        passages[3..].iter_mut().for_each(|passage| passage.is_whole = false);
        let bottleneck = found(&passages).unwrap();
        assert_eq!(bottleneck.kind, BottleneckKind::Either);
        let mut diagnosis = Diagnosis { limiter: Limiter::Path, ..Diagnosis::insufficient(String::new()) };
        bottleneck.explain(&mut diagnosis, &mut Vec::new(), CommonEnd::Receiver, "192.0.2.1");
        assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::Path, None));
        assert!(diagnosis.action.starts_with("capture the beginning of connections"), "{}", diagnosis.action);
        assert!(diagnosis.evidence[0].text.contains("8 connections to 192.0.2.1"), "{:?}", diagnosis.evidence);
    }

    #[test]
    fn of_many_each_carries_little() {
        let passages = senders(100, Taker::Bucket(4e6, 4.0), 1);
        assert!(found(&passages).is_some_and(|found| found.connections == 100));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Senders that are soon at its rate again after a loss: the bucket is never full for long.
        #[test]
        fn a_bucket_shows(count in 2_usize..40, seed in any::<u64>(), share in 0.02_f64..0.1, size in 1.0_f64..5.0) {
            let rate = share * count as f64;
            let bucket = found(&senders(count, Taker::Bucket(size * rate * BASE_US, rate), seed));
            prop_assert!(bucket.is_some_and(|found| found.kind == BottleneckKind::Policer && (found.rate.bps() as f64 / (rate * 8e6) - 1.0).abs() < 0.1), "{bucket:?}");
        }

        /// Its queue is full whenever it drops.
        #[test]
        fn a_link_shows(count in 12_usize..64, seed in any::<u64>(), share in 0.02_f64..0.1, queue in 0.1_f64..1.0) {
            let rate = share * count as f64;
            let link = found(&senders(count, Taker::Link(rate, queue * rate * BASE_US), seed));
            prop_assert!(link.is_some_and(|found| matches!(found.kind, BottleneckKind::Link { .. }) && (found.rate.bps() as f64 / (rate * 8e6) - 1.0).abs() < 0.05), "{link:?}");
        }

        /// ... also where chance delays look like a queue.
        #[test]
        fn chance_is_no_link(count in 2_usize..64, seed in any::<u64>(), chance in 0.001_f64..0.05) {
            let mut passages = senders(count, Taker::Chance(chance), seed);
            passages.iter_mut().for_each(|passage| passage.wait_us = Some(BASE_US / 2.0));
            prop_assert_eq!(found(&passages), None);
        }

        /// Many senders lose by chance so evenly that their sum is nearly level; it is not level enough.
        #[test]
        fn chance_is_no_bucket(count in 2_usize..40, seed in any::<u64>(), chance in 0.001_f64..0.05) {
            prop_assert_eq!(found(&senders(count, Taker::Chance(chance), seed)), None);
        }

        #[test]
        fn nothing_panics(passages in prop::collection::vec(
            (prop::collection::vec((0_u64..1_000_000, 0_u64..1_000_000, any::<bool>()), 0..60), prop::option::of(0.0..1e6_f64), 1.0..1e6_f64),
            0..5,
        )) {
            let passage = |(mut knots, wait_us, base_rtt): (Vec<(u64, u64, bool)>, Option<f64>, f64)| {
                knots.sort_unstable();
                let knot = |(at_us, passed, is_loss): (u64, u64, bool)| Knot { at_us: at_us as f64, passed: passed as f64, is_loss };
                Passage { knots: knots.into_iter().map(knot).collect(), wait_us, is_counted: false, is_whole: true, base_rtt, mss: MSS }
            };
            found(&passages.into_iter().map(passage).collect::<Vec<_>>());
        }
    }
}
