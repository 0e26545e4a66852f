//! For how long each limiter held a connection, with hindsight: while the judge still has the looks at a moment, what it said of
//! that moment before doesn't count, and what ends after the last byte has moved is no part of a transfer. What is *not* here: how
//! a look is judged (`fullpipe-diagnose`), and what a counter that never goes back adds up (`meter`).

use std::{collections::BTreeMap, ops::Range};

use fullpipe_diagnose::{Detail, Limiter, Run};
use fullpipe_units::Micros;

/// Seconds by limiter.
pub(crate) type Seconds = BTreeMap<Limiter, f64>;

/// One connection's account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Of the time that no story tells of any more.
    settled: Seconds,
    /// What the judge said last, on the watch's clock.
    seen: Vec<Run>,
}

impl Account {
    /// What the judge says now of the story that began at `start`: it replaces what it said of this time before.
    pub(crate) fn judged(&mut self, start: Micros, runs: &[Run]) {
        self.settle(start.get());
        let moved = |run: &Run| Run {
            from_us: run.from_us.saturating_add(start.get()),
            to_us: run.to_us.saturating_add(start.get()),
            ..*run
        };
        self.seen = runs.iter().map(moved).collect();
    }

    /// There is no story any more.
    pub(crate) fn over(&mut self) {
        self.settle(u64::MAX);
    }

    /// For how long each limiter has held so far.
    pub(crate) fn seconds(&self) -> Seconds {
        let mut all = self.settled.clone();
        add(&mut all, without_end(&self.seen), &(0..u64::MAX));
        all
    }

    /// What was said of the time before `until` stays.
    fn settle(&mut self, until: u64) {
        add(&mut self.settled, without_end(&self.seen), &(0..until));
        self.seen.clear();
    }
}

/// Without the silence at the end: only when more data comes does it become a pause of the application.
fn without_end(runs: &[Run]) -> &[Run] {
    let is_silence = |run: &Run| run.limiter == Limiter::Application && run.detail == Some(Detail::Idle);
    let silent = runs.iter().rev().take_while(|run| is_silence(run)).count();
    &runs[..runs.len() - silent]
}

/// Adds the parts of `runs` that lie in `time`.
pub(crate) fn add(seconds: &mut Seconds, runs: &[Run], time: &Range<u64>) {
    for run in runs {
        let (from, to) = (run.from_us.max(time.start), run.to_us.min(time.end));
        if to > from {
            *seconds.entry(run.limiter).or_default() += (to - from) as f64 / 1e6;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(from_us: u64, to_us: u64, limiter: Limiter, detail: Option<Detail>) -> Run {
        Run { from_us, to_us, limiter, detail }
    }

    #[test]
    fn what_is_judged_again_counts_as_it_was_judged_last() {
        let mut account = Account::default();
        account.judged(Micros::ZERO, &[run(0, 2_000_000, Limiter::CongestionWindow, Some(Detail::Loss))]);
        account.judged(Micros::ZERO, &[run(0, 3_000_000, Limiter::Path, Some(Detail::Policed))]);
        assert_eq!(account.seconds(), Seconds::from([(Limiter::Path, 3.0)]));
        // The first second is out of the story's reach by now.
        account.judged(Micros::new(1_000_000), &[run(0, 3_000_000, Limiter::SendBuffer, None)]);
        assert_eq!(account.seconds(), Seconds::from([(Limiter::Path, 1.0), (Limiter::SendBuffer, 3.0)]));
        account.over();
        assert_eq!(account.seconds(), Seconds::from([(Limiter::Path, 1.0), (Limiter::SendBuffer, 3.0)]));
    }

    #[test]
    fn silence_counts_when_more_data_comes_and_not_at_the_end() {
        let path = run(0, 1_000_000, Limiter::Path, Some(Detail::Saturated));
        let silence = run(1_000_000, 3_000_000, Limiter::Application, Some(Detail::Idle));
        let mut account = Account::default();
        account.judged(Micros::ZERO, &[path, silence]);
        assert_eq!(account.seconds(), Seconds::from([(Limiter::Path, 1.0)]));
        account.judged(Micros::ZERO, &[path, silence, run(3_000_000, 4_000_000, Limiter::Path, None)]);
        assert_eq!(account.seconds(), Seconds::from([(Limiter::Path, 2.0), (Limiter::Application, 2.0)]));
        account.judged(Micros::new(500_000), &[run(0, 500_000, Limiter::Path, None), silence]);
        account.over();
        assert_eq!(account.seconds(), Seconds::from([(Limiter::Path, 1.0)]));
    }
}
