//! A rate that changes over time, as somebody recorded it: cellular and Wi-Fi links.
//!
//! Two forms are read. In Mahimahi's, each line is a millisecond at which the link delivers one packet of 1,504 bytes
//! (mm-link(1)); a line that is there five times delivers five. In the other, each line is a time and the rate from then on
//! (`1.5s 12M`). Both begin anew after their end: Mahimahi's is its last line, the other's is a line `TIME end`, without
//! which the last rate stays.
//!
//! A trace's clock begins with the first packet that reaches its link.

use std::{fmt, str::FromStr, sync::Arc};

use fullpipe_units::{Instant, Micros, Rate};

/// What one line of Mahimahi's form delivers, in bits.
const OPPORTUNITY_BITS: u64 = 1_504 * 8;
const MILLISECOND: u64 = 1_000_000;
/// No recording is longer than a day or has more lines.
const LONGEST_NANOS: u64 = 86_400_000_000_000;
const MOST_LINES: usize = 10_000_000;

/// A rate from some moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Nanoseconds since the trace began.
    from: u64,
    bps: u64,
}

/// A recorded rate. Cloning it copies nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// The first begins at zero.
    steps: Arc<[Step]>,
    /// After so many nanoseconds it begins anew.
    period: Option<u64>,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TraceError {
    /// From 1.
    pub line: usize,
    /// What is wrong with it, and what is expected.
    pub message: String,
}

impl TraceError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// A line that says something, without what follows a `#`.
struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
}

impl FromStr for RateTrace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let lines: Vec<Line<'_>> = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.split('#').next().unwrap_or_default()))
            .map(|(number, line)| Line { number, words: line.split_whitespace().collect() })
            .filter(|line| !line.words.is_empty())
            .collect();
        let Some(first) = lines.first() else {
            return Err(TraceError::new(1, "a trace without a line carries nothing"));
        };
        if lines.len() > MOST_LINES {
            return Err(TraceError::new(MOST_LINES + 1, "a trace has at most 10,000,000 lines"));
        }
        if first.words.len() == 1 { opportunities(&lines) } else { steps(&lines) }
    }
}

/// Mahimahi's form.
fn opportunities(lines: &[Line<'_>]) -> Result<RateTrace, TraceError> {
    let mut steps: Vec<Step> = Vec::new();
    let mut end = 0_u64;
    for line in lines {
        let [word] = line.words.as_slice() else {
            return Err(TraceError::new(
                line.number,
                "expected one number, a time in milliseconds, as in the lines above",
            ));
        };
        let ms: u64 = word.parse().map_err(|_| {
            TraceError::new(line.number, format!("`{}` is no whole number of milliseconds", word.escape_debug()))
        })?;
        if ms < end {
            return Err(TraceError::new(line.number, format!("{ms} ms is before the {end} ms of the line above")));
        }
        if ms > LONGEST_NANOS / MILLISECOND {
            return Err(TraceError::new(line.number, format!("{ms} ms is longer than a day")));
        }
        end = ms;
        // What is delivered by this moment; a packet at 0 counts for the first millisecond.
        let from = ms.saturating_sub(1) * MILLISECOND;
        let step = OPPORTUNITY_BITS * 1_000;
        match steps.last_mut() {
            Some(last) if last.from == from => last.bps += step,
            _ => steps.push(Step { from, bps: step }),
        }
    }
    finish_opportunities(steps, end, lines)
}

/// Puts the rests between the milliseconds in which something is delivered.
fn finish_opportunities(busy: Vec<Step>, end: u64, lines: &[Line<'_>]) -> Result<RateTrace, TraceError> {
    let last = lines.last().map_or(1, |line| line.number);
    if end == 0 {
        return Err(TraceError::new(last, "a trace that ends at 0 ms has no length"));
    }
    let mut steps: Vec<Step> = Vec::with_capacity(busy.len());
    let mut covered = 0;
    for step in busy.into_iter().filter(|step| step.bps > 0) {
        if step.from > covered {
            steps.push(Step { from: covered, bps: 0 });
        }
        covered = step.from + MILLISECOND;
        match steps.last() {
            Some(before) if before.bps == step.bps => {}
            _ => steps.push(step),
        }
    }
    Ok(RateTrace { steps: steps.into(), period: Some(end * MILLISECOND) })
}

/// Lines of a time and a rate.
fn steps(lines: &[Line<'_>]) -> Result<RateTrace, TraceError> {
    let mut steps: Vec<Step> = Vec::new();
    let mut period = None;
    for line in lines {
        let wrong = |message: String| TraceError::new(line.number, message);
        if period.is_some() {
            return Err(wrong("nothing may follow the `end` of a trace".to_owned()));
        }
        let [time, rate] = line.words.as_slice() else {
            return Err(wrong("expected a time and a rate, such as `1.5s 12M`, or a time and `end`".to_owned()));
        };
        let from = nanos(time)
            .ok_or_else(|| wrong(format!("`{}` is no time; give one such as 1.5s or 200ms", time.escape_debug())))?;
        if from > LONGEST_NANOS {
            return Err(wrong(format!("{time} is longer than a day")));
        }
        match steps.last() {
            None if from > 0 => return Err(wrong("the first line gives the rate at time 0".to_owned())),
            Some(before) if from <= before.from => {
                return Err(wrong(format!("{time} is not after the time of the line above")));
            }
            _ => {}
        }
        if *rate == "end" {
            if steps.is_empty() {
                return Err(wrong("a trace that ends at once carries nothing".to_owned()));
            }
            period = Some(from);
            continue;
        }
        let bps = if *rate == "0" {
            0
        } else {
            rate.parse::<Rate>().map_err(|error| wrong(format!("`{}` is no rate: {error}", rate.escape_debug())))?.bps()
        };
        steps.push(Step { from, bps });
    }
    let last = lines.last().map_or(1, |line| line.number);
    let carries = match period {
        Some(_) => steps.iter().any(|step| step.bps > 0),
        None => steps.last().is_some_and(|step| step.bps > 0),
    };
    if !carries {
        return Err(TraceError::new(
            last,
            "the rate is zero for ever; end the trace with a rate above zero, or with `end`",
        ));
    }
    Ok(RateTrace { steps: steps.into(), period })
}

/// A time, with a unit or in seconds.
fn nanos(word: &str) -> Option<u64> {
    if let Ok(seconds) = word.parse::<f64>() {
        return (0.0..=1e9).contains(&seconds).then_some((seconds * 1e9) as u64);
    }
    word.parse::<Micros>().ok()?.get().checked_mul(1_000)
}

impl fmt::Display for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a recorded rate, {} on average", self.mean())
    }
}

impl RateTrace {
    /// The mean rate: of one round where it begins anew, else the last.
    pub fn mean(&self) -> Rate {
        let Some(period) = self.period else {
            return Rate::from_bps(self.steps.last().map_or(0, |step| step.bps));
        };
        let bits = self.work_within(period);
        Rate::from_bps(u64::try_from(bits / u128::from(period.max(1))).unwrap_or(u64::MAX))
    }

    /// Bits times 10^9 that fit into the first `nanos` of a round.
    fn work_within(&self, nanos: u64) -> u128 {
        let ends = self.steps.iter().skip(1).map(|step| step.from).chain([u64::MAX]);
        let spans = self.steps.iter().zip(ends).take_while(|(step, _)| step.from < nanos);
        spans.map(|(step, end)| u128::from(step.bps) * u128::from(end.min(nanos) - step.from)).sum()
    }

    /// Bits times 10^9 that fit between the beginning and `nanos`.
    fn work_until(&self, nanos: u64) -> u128 {
        match self.period {
            Some(period) => u128::from(nanos / period) * self.work_within(period) + self.work_within(nanos % period),
            None => self.work_within(nanos),
        }
    }

    /// Bits that the link can carry from one moment to another of its own clock, which began at `origin`.
    pub fn bits_between(&self, origin: Instant, from: Instant, to: Instant) -> f64 {
        let at = |moment: Instant| self.work_until(moment.since(origin).as_nanos() as u64);
        at(to).saturating_sub(at(from)) as f64 / 1e9
    }
}

/// Serialises packets at the rate of a trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceClock {
    trace: RateTrace,
    origin: Option<Instant>,
    /// When the round began that `step` belongs to.
    round: u64,
    step: usize,
    /// Work, in bits times 10^9, that was done of the next packet by the nanosecond that the last one ended in.
    credit: u128,
    /// When the last packet ended.
    last: u64,
}

impl TraceClock {
    pub(crate) const fn new(trace: RateTrace) -> Self {
        Self { trace, origin: None, round: 0, step: 0, credit: 0, last: 0 }
    }

    /// When a packet of `bytes` that begins at `start` has left.
    pub(crate) fn ends(&mut self, start: Instant, bytes: u64) -> Instant {
        let origin = *self.origin.get_or_insert(start);
        let mut at = start.since(origin).as_nanos() as u64;
        let mut work = u128::from(bytes) * 8_000_000_000;
        if at == self.last {
            work = work.saturating_sub(self.credit);
        }
        loop {
            let (bps, end) = self.seek(at);
            let room = u128::from(bps) * u128::from(end - at);
            if room >= work && bps > 0 {
                let took = work.div_ceil(bps.into());
                self.credit = took * u128::from(bps) - work;
                // `took` is at most what is left of the step.
                self.last = at + took as u64;
                return Instant::from_nanos(origin.as_nanos().saturating_add(self.last));
            }
            work -= room;
            if end == u64::MAX {
                // Never: a last rate of zero is refused when the trace is read.
                return Instant::FAR_FUTURE;
            }
            at = end;
        }
    }

    /// The rate at `at`, which never runs backwards, and until when it stands.
    fn seek(&mut self, at: u64) -> (u64, u64) {
        let steps = &self.trace.steps;
        if let Some(period) = self.trace.period
            && at >= self.round + period
        {
            self.round = at - at % period;
            self.step = 0;
        }
        let within = at - self.round;
        while steps.get(self.step + 1).is_some_and(|next| next.from <= within) {
            self.step += 1;
        }
        let next = steps.get(self.step + 1).map(|next| next.from);
        let last = self.trace.period.map_or(u64::MAX, |period| self.round + period);
        (steps.get(self.step).map_or(0, |step| step.bps), next.map_or(last, |next| (self.round + next).min(last)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(text: &str) -> RateTrace {
        text.parse().unwrap()
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(7_000_000_000 + us * 1_000)
    }

    #[test]
    fn mahimahis_lines_are_packets_at_milliseconds() {
        // One packet a millisecond is 12.032 Mbit/s; three in the second millisecond, none in the fourth and fifth.
        let trace = trace("1\n2\n2\n2\n3\n6\n");
        assert_eq!(trace.mean(), Rate::from_bps(6 * 1_504 * 8 * 1_000 / 6));
        let mut clock = TraceClock::new(trace);
        let mut start = at(0);
        let mut ends = Vec::new();
        for _ in 0..8 {
            start = clock.ends(start, 1_504);
            ends.push((start.as_nanos() - at(0).as_nanos()) / 1_000);
        }
        assert_eq!(ends, [1_000, 1_333, 1_666, 2_000, 3_000, 6_000, 7_000, 7_333]);
    }

    #[test]
    fn a_time_and_a_rate_stand_until_the_next_line() {
        let mut clock = TraceClock::new(trace("0 8M # a byte a microsecond\n10ms 80M\n20ms 0\n1s 8M\n"));
        assert_eq!(clock.ends(at(0), 1_000), at(1_000));
        assert_eq!(clock.ends(at(9_500), 1_000), at(10_050));
        // Half of it leaves before the outage.
        assert_eq!(clock.ends(at(19_950), 1_000), at(1_000_500));
    }

    #[test]
    fn what_ends_begins_anew() {
        let trace = trace("0 8M\n1s 16M\n2s end\n");
        assert_eq!(trace.mean(), Rate::from_bps(12_000_000));
        let mut clock = TraceClock::new(trace.clone());
        assert_eq!(clock.ends(at(0), 1_000), at(1_000));
        assert_eq!(clock.ends(at(5_500_000), 1_000), at(5_500_500));
        let bits = trace.bits_between(at(0), at(500_000), at(4_500_000));
        assert!((bits - (4e6 + 16e6 + 8e6 + 16e6 + 4e6)).abs() < 1.0, "{bits}");
    }

    #[test]
    fn a_broken_trace_is_refused_with_its_line() {
        let refused = |text: &str| text.parse::<RateTrace>().unwrap_err();
        for (text, line, says) in [
            ("", 1, "carries nothing"),
            ("# only\n", 1, "carries nothing"),
            ("1\nx\n", 2, "no whole number"),
            ("5\n4\n", 2, "before"),
            ("1\n2 3\n", 2, "one number"),
            ("0\n0\n", 2, "no length"),
            ("99999999999\n", 1, "a day"),
            ("1s 5M\n", 1, "time 0"),
            ("0 5M\n0 6M\n", 2, "not after"),
            ("0 5M\n1s\n", 2, "a time and a rate"),
            ("0 5M\n1s fast\n", 2, "no rate"),
            ("0 5M\nsoon 6M\n", 2, "no time"),
            ("0 5M\n1s 0\n", 2, "zero for ever"),
            ("0 0\n1s end\n", 2, "zero for ever"),
            ("0 5M\n1s end\n2s 1M\n", 3, "nothing may follow"),
            ("0 end\n", 1, "at once"),
        ] {
            let error = refused(text);
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.message.contains(says), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn packets_back_to_back_take_what_the_trace_carries(
            rates in prop::collection::vec(0_u64..2_000_000_000, 1..20),
            sizes in prop::collection::vec(40_u64..9_000, 1..200),
        ) {
            let mut text = String::from("0 1k\n");
            for (at, rate) in rates.iter().enumerate() {
                text.push_str(&format!("{}ms {rate}\n", at + 1));
            }
            text.push_str(&format!("{}ms end\n", rates.len() + 1));
            let trace: RateTrace = text.parse().unwrap();
            let mut clock = TraceClock::new(trace.clone());
            let mut end = at(0);
            for size in &sizes {
                end = clock.ends(end, *size);
            }
            let bits = sizes.iter().sum::<u64>() as f64 * 8.0;
            let carried = trace.bits_between(at(0), at(0), end);
            // A nanosecond at 2 Gbit/s is 2 bits.
            prop_assert!((carried - bits).abs() <= 2.0 + bits * 1e-12, "{carried} {bits}");
        }
    }
}
