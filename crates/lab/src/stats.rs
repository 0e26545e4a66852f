//! How far the lab was from the path that it makes: planned against actual release of each segment.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Sub-buckets per power of two: a bucket is at most 1/16 wide, so a quantile is at most 6 % too high.
const SUB: u64 = 16;
/// Powers of two above the first [`SUB`] nanoseconds: the last bucket begins at 9 hours.
const BUCKETS: usize = (SUB as usize) * 42;

/// A histogram of spans in nanoseconds, written by one thread and read by others.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Box<[AtomicU64]>,
    max: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    counts: Box<[u64]>,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), max: AtomicU64::new(0) }
    }

    /// Counts one span. There is one writer, so that plain loads and stores suffice.
    pub(crate) fn record(&self, nanos: u64) {
        let count = &self.counts[bucket(nanos)];
        count.store(count.load(Relaxed) + 1, Relaxed);
        if nanos > self.max.load(Relaxed) {
            self.max.store(nanos, Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(), max: self.max.load(Relaxed) }
    }

    /// Forgets the largest span, the one figure that can't be subtracted.
    pub(crate) fn reset_max(&self) {
        self.max.store(0, Relaxed);
    }
}

impl Counts {
    pub(crate) fn zero() -> Self {
        Self { counts: vec![0; BUCKETS].into(), max: 0 }
    }

    /// What came since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts).map(|(now, then)| now.saturating_sub(*then));
        Self { counts: counts.collect(), max: self.max }
    }

    /// Both together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let counts = self.counts.iter().zip(&other.counts).map(|(one, two)| one + two);
        Self { counts: counts.collect(), max: self.max.max(other.max) }
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// How many spans are surely longer than `nanos`.
    pub(crate) fn longer_than(&self, nanos: u64) -> u64 {
        self.counts[bucket(nanos) + 1..].iter().sum()
    }

    /// The upper edge, in nanoseconds, of the bucket that holds the span below which `share` of all are; 0 for none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let rank = (self.total() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && *count > 0 {
                return upper_edge(index).min(self.max);
            }
        }
        0
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < SUB {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SUB.ilog2();
    let index = (u64::from(shift) + 1) * SUB + (nanos >> shift) - SUB;
    (index as usize).min(BUCKETS - 2)
}

fn upper_edge(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = index / SUB - 1;
    ((index % SUB + SUB + 1) << shift) - 1
}

/// How far the lab was from the path that it makes, over all segments since the start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PathError {
    /// Half of the segments left at most so long after their planned time, in microseconds (rounded up).
    #[serde(rename = "p50")]
    pub p50_us: u64,
    /// 99 of 100 segments left at most so long after their planned time, in microseconds (rounded up).
    #[serde(rename = "p99")]
    pub p99_us: u64,
    /// The latest segment, in microseconds (rounded up).
    #[serde(rename = "max")]
    pub max_us: u64,
    /// Segments released.
    pub released: u64,
    /// Segments released more than 200 us late.
    pub late: u64,
    /// Packets that the devices' own queues dropped because the lab did not read in time, or that the kernel refused.
    pub lost: u64,
}

/// Segments later than this count as late: the aim of the lab at 100 Mbit/s.
pub(crate) const LATE_US: u64 = 200;

/// The release error, without how many it is of.
impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p50_us, p99_us, max_us, .. } = self;
        write!(f, "release error p50 {p50_us} us, p99 {p99_us} us, max {max_us} us")
    }
}

impl PathError {
    pub(crate) fn from_counts(counts: &Counts, lost: u64) -> Self {
        let us = |nanos: u64| nanos.div_ceil(1_000);
        Self {
            p50_us: us(counts.quantile(0.5)),
            p99_us: us(counts.quantile(0.99)),
            max_us: us(counts.max()),
            released: counts.total(),
            late: counts.longer_than(LATE_US * 1_000),
            lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_at_most_a_sixteenth_too_high() {
        let histogram = Histogram::new();
        for us in 1..=1_000 {
            histogram.record(us * 1_000);
        }
        let counts = histogram.counts();
        assert_eq!(counts.total(), 1_000);
        for (share, exact) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let found = counts.quantile(share);
            assert!(found >= exact && found <= exact + exact / 16, "{share}: {found}");
        }
        assert_eq!(counts.max(), 1_000_000);
    }

    #[test]
    fn what_came_before_a_reset_is_not_counted() {
        let histogram = Histogram::new();
        histogram.record(5_000_000);
        let before = histogram.counts();
        histogram.reset_max();
        histogram.record(10);
        let error = PathError::from_counts(&histogram.counts().since(&before), 0);
        assert_eq!(error, PathError { p50_us: 1, p99_us: 1, max_us: 1, released: 1, late: 0, lost: 0 });
    }

    #[test]
    fn nothing_released_means_no_error() {
        assert_eq!(PathError::from_counts(&Counts::zero(), 0), PathError::default());
    }

    proptest! {
        #[test]
        fn a_span_lies_in_its_bucket(nanos in 0_u64..1 << 44) {
            let index = bucket(nanos);
            prop_assert!(nanos <= upper_edge(index));
            prop_assert!(index == 0 || nanos > upper_edge(index - 1));
        }
    }
}
