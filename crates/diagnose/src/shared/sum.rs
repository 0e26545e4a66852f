//! What gets through of several connections together, and over which times it is always the same.

use super::Passage;
use crate::{stats, thresholds};

/// A moment, as that of a loss of any connection, and what had got through of all of them until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at_us: f64,
    pub(super) passed: f64,
    /// How exactly that is known: what a connection has in flight is spread over a round trip, of each one for itself.
    pub(super) uncertainty: f64,
}

/// What got through of all together.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// When, and how much until then, up to the first loss.
    pub(super) begin: Vec<(f64, f64)>,
    /// In order of time.
    pub(super) losses: Vec<Moment>,
    /// Where a queue stood before all of them, a round trip of the empty path apart, and what had arrived.
    pub(super) queued: Vec<Moment>,
    /// The time in which something was under way, and what of it had a queue before all of them, in microseconds.
    pub(super) time: f64,
    pub(super) queued_time: f64,
}

/// From a moment on, so much more gets through per microsecond.
#[derive(Clone, Copy, Debug)]
struct SlopeChange {
    at_us: f64,
    by: f64,
    arrives_by: f64,
    uncertainty: f64,
    is_loss: bool,
    /// What is in flight, and what of it has a queue before it.
    flight: [f64; 2],
}

impl SlopeChange {
    /// Those of all passages, in order of time.
    fn all(passages: &[&Passage]) -> Vec<Self> {
        let mut changes = Vec::with_capacity(passages.iter().map(|passage| 2 * passage.knots.len()).sum());
        for passage in passages {
            let flight = passage.flight().max(thresholds::SHARED_SEGMENTS * passage.mss);
            let uncertainty = flight.powi(2);
            for pair in passage.knots.windows(2) {
                let (from, to) = (pair[0], pair[1]);
                if to.at_us > from.at_us {
                    let time = to.at_us - from.at_us;
                    let (by, arrives_by) = ((to.passed - from.passed) / time, (to.arrived - from.arrived) / time);
                    let flight = [flight, if passage.is_queued(&to) { flight } else { 0.0 }];
                    let is_loss = from.is_loss;
                    changes.push(Self { at_us: from.at_us, by, arrives_by, uncertainty, is_loss, flight });
                    changes.push(Self {
                        at_us: to.at_us,
                        by: -by,
                        arrives_by: -arrives_by,
                        uncertainty: -uncertainty,
                        is_loss: to.is_loss,
                        flight: flight.map(|flight| -flight),
                    });
                }
            }
        }
        changes.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
        changes
    }
}

impl Sum {
    /// `base` is the round trip of the empty path.
    pub(super) fn new(passages: &[&Passage], base: f64) -> Self {
        let mut sum = Self::default();
        let (mut at_us, mut passed, mut by, mut uncertainty) = (0.0, 0.0, 0.0, 0.0);
        let [mut arrived, mut arrives_by, mut flight, mut queued] = [0.0; 4];
        for change in SlopeChange::all(passages) {
            let time = change.at_us - at_us;
            passed += by * time;
            arrived += arrives_by * time;
            at_us = change.at_us;
            // Of a connection that is over, rounding leaves less than a byte.
            if time > 0.0 && flight >= 1.0 {
                sum.time += time;
                if queued >= thresholds::SHARED_QUEUED * flight {
                    sum.queued_time += time;
                    if sum.queued.last().is_none_or(|last| at_us - last.at_us >= base) {
                        sum.queued.push(Moment { at_us, passed: arrived, uncertainty: 0.0 });
                    }
                }
            }
            flight += change.flight[0];
            queued += change.flight[1];
            by += change.by;
            arrives_by += change.arrives_by;
            // Until now, or from now on: it ends and begins at each of its moments.
            let most = f64::max(uncertainty, uncertainty + change.uncertainty);
            uncertainty += change.uncertainty;
            if change.is_loss && sum.losses.last().is_none_or(|last| last.at_us < at_us) {
                sum.losses.push(Moment { at_us, passed, uncertainty: f64::max(most, 0.0).sqrt() });
            }
            if sum.losses.is_empty() {
                sum.begin.push((at_us, passed));
            }
        }
        sum
    }

    /// By how much more than `rate` allows got through within some time before the first loss.
    pub(super) fn burst(&self, rate: f64) -> f64 {
        let (mut most, mut now) = (0.0_f64, 0.0_f64);
        for pair in self.begin.windows(2) {
            let ((from_us, before), (to_us, after)) = (pair[0], pair[1]);
            now = (now + after - before - rate * (to_us - from_us)).max(0.0);
            most = most.max(now);
        }
        most
    }
}

/// What gets through from one moment to another, as far as it is always the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// In bytes per microsecond.
    pub(super) rate: f64,
    /// How many times there are, and how long they are (median, in microseconds).
    pub(super) count: usize,
    pub(super) span: f64,
    /// In this part of their time what got through was the same.
    pub(super) part: f64,
    /// In nine of ten, no more than so many bytes were missing or too many.
    pub(super) slack: f64,
    /// In nine of ten, no more than this part of the rate was too much.
    pub(super) crest: f64,
}

/// The same over short times and, where there are enough of them, over long ones: what chance adds up to grows with time, and how inexactly a
/// bottleneck's rate is known doesn't.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    short: Level,
    long: Option<Level>,
}

impl Levels {
    pub(super) fn new(losses: &[Moment], base: f64, mss: f64) -> Option<Self> {
        let slack =
            |span: &Span, _: f64| thresholds::SHARED_UNCERTAINTY * span.uncertainty + thresholds::SHARED_SEGMENTS * mss;
        let [short, long] =
            thresholds::SHARED_ROUND_TRIPS.map(|round_trips| Level::over(losses, round_trips * base, slack));
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
    pub(super) fn even(&self) -> Option<Level> {
        self.both(|level| level.part >= thresholds::POLICED_LEVEL).then(|| self.long.unwrap_or(self.short))
    }

    /// What gets through is never more, of so many connections, and less when the queue has run empty behind the losses of many at once.
    pub(super) fn capped(&self, connections: f64) -> Option<Level> {
        let known = (self.short.count as f64 / thresholds::SHARED_CREST_TIMES).min(1.0);
        let most = (known * thresholds::SHARED_CREST / connections.sqrt()).min(thresholds::SHARED_CREST_MOST);
        let is_capped = self.both(|level| level.crest <= most);
        is_capped.then_some(self.short)
    }
}

impl Level {
    /// From one moment to the next that is so much later; what gets through at a rate (in bytes per microsecond) is the same where it is to
    /// within `slack`.
    pub(super) fn over(moments: &[Moment], least: f64, slack: impl Fn(&Span, f64) -> f64) -> Option<Self> {
        let mut spans: Vec<Span> = Vec::new();
        let mut last = *moments.first()?;
        for moment in moments {
            let time = moment.at_us - last.at_us;
            if time >= least {
                // Who has lost nothing for long may have sent less than the bucket would have let through.
                if time <= thresholds::SHARED_APART * least {
                    spans.push(Span {
                        time,
                        passed: moment.passed - last.passed,
                        uncertainty: last.uncertainty.max(moment.uncertainty),
                    });
                }
                last = *moment;
            }
        }
        Self::new(&spans, slack)
    }

    /// The same over these spans.
    pub(super) fn new(spans: &[Span], slack: impl Fn(&Span, f64) -> f64) -> Option<Self> {
        let rates = || spans.iter().map(|span| (span.passed / span.time, span.time));
        let rate = stats::median(rates())?;
        let off = |span: &Span| (span.passed - rate * span.time).abs();
        let is_level = |span: &&Span| off(span) <= slack(span, rate);
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

/// From one moment to another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) time: f64,
    pub(super) passed: f64,
    pub(super) uncertainty: f64,
}
