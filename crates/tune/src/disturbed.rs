//! Measurements over an emulated path during which this machine was busy: how often they are repeated, and what is
//! said of those that were disturbed each time. What is *not* here: when a path counts as not kept (`fullpipe_lab`).

use std::time::Duration;

use fullpipe_lab::PathError;

use crate::outcome::PathErrorSummary;

/// One measurement is made no more often than this.
const MOST_ATTEMPTS: u32 = 4;

/// ... and all of them together are repeated no more often than this: a demonstration has about 20, and shall take no more
/// than twice as long.
const MOST_REPEATS: u32 = 16;

/// What became of the measurements of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbances {
    measured: u32,
    repeated: u32,
    /// Accepted although disturbed.
    accepted: u32,
    worst: PathError,
    /// By how much the rate of one of those may be off, as a part.
    off: f64,
}

impl Disturbances {
    /// Whether a measurement that was disturbed at its `attempt`th time, counted from 1, is made again.
    pub(crate) fn repeat(&mut self, attempt: u32) -> bool {
        let again = attempt < MOST_ATTEMPTS && self.repeated < MOST_REPEATS;
        self.repeated += u32::from(again);
        again
    }

    /// A measurement was not disturbed.
    pub(crate) fn kept(&mut self, error: PathError) {
        self.measured += 1;
        self.worst.p50_us = self.worst.p50_us.max(error.p50_us);
        self.worst.p99_us = self.worst.p99_us.max(error.p99_us);
        self.worst.max_us = self.worst.max_us.max(error.max_us);
    }

    /// A measurement of that length was disturbed, and is taken all the same.
    pub(crate) fn accepted(&mut self, error: PathError, length: Duration) {
        self.kept(error);
        self.accepted += 1;
        // Nothing moves while the lab stands still, and a window is filled again after it.
        let stood_us = 2 * error.max_us + error.p99_us;
        self.off = self.off.max(stood_us as f64 / length.as_micros().max(1) as f64);
    }

    /// The worst of what was taken, each figure by itself.
    pub(crate) fn path_error(&self) -> PathErrorSummary {
        let PathError { p50_us, p99_us, max_us, .. } = self.worst;
        PathErrorSummary { p50_us, p99_us, max_us, valid: self.accepted == 0 }
    }

    /// What the reader must know of it.
    pub(crate) fn note(&self) -> Option<String> {
        let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        match (self.repeated, self.accepted) {
            (0, 0) => None,
            (repeated, 0) => Some(format!(
                "this machine was busy: measurements were repeated {}, and those that count were not \
                 disturbed",
                times(repeated)
            )),
            (repeated, accepted) => Some(format!(
                "this machine was too busy: {accepted} of {} measurements were disturbed although they were repeated ({}); \
                 their rates may be off by {:.0} %",
                self.measured,
                times(repeated),
                (self.off * 100.0).ceil().min(100.0)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_repeated_a_few_times_and_all_of_them_not_without_end() {
        let mut found = Disturbances::default();
        assert_eq!((1..=5).map(|attempt| found.repeat(attempt)).collect::<Vec<_>>(), [true, true, true, false, false]);
        let all = (0..100).filter(|_| found.repeat(1)).count();
        assert_eq!(all as u32, MOST_REPEATS - 3);
    }

    #[test]
    fn what_was_disturbed_each_time_is_said_with_how_exact_it_is() {
        let mut found = Disturbances::default();
        found.kept(PathError { p50_us: 20, p99_us: 90, max_us: 400, ..PathError::default() });
        assert!(found.path_error().valid && found.note().is_none());
        assert!(found.repeat(1));
        assert!(found.note().is_some_and(|note| note.contains("repeated once") && note.contains("not disturbed")));
        let error = PathError { p50_us: 30, p99_us: 8_000, max_us: 121_000, ..PathError::default() };
        found.accepted(error, Duration::from_secs(5));
        let summary = found.path_error();
        assert_eq!((summary.p50_us, summary.p99_us, summary.max_us, summary.valid), (30, 8_000, 121_000, false));
        assert!(
            found.note().is_some_and(|note| note.contains("1 of 2") && note.contains("off by 5 %")),
            "{:?}",
            found.note()
        );
    }
}
