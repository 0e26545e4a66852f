//! How far apart segments come that were sent together: what the narrowest link takes for each. What is *not* here: what
//! that says of the sender (`half`) and of the link (`flight`).

/// Gaps between full segments, up to which it isn't known.
const LEAST: u32 = 16;

/// The figure is the lower third of the gaps: two segments in each round trip show it, and what passes a token bucket before it
/// is empty is less than a third of nearly all transfers.
const UP: u64 = 32;
const DOWN: u64 = 16;

/// What comes within this much of the usual time, in quarters, came right behind the one before.
const BEHIND_QUARTERS: u64 = 5;

/// The time that a KiB takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spacing {
    seen: u32,
    kib_ns: u64,
}

impl Spacing {
    /// A full segment of `len` bytes came `gap_ns` after the one before it.
    #[inline]
    pub(super) fn on(&mut self, gap_ns: u64, len: u64) {
        let kib_ns = gap_ns.saturating_mul(1_024) / len.max(1);
        if self.seen < LEAST {
            self.seen += 1;
            // The first pairs are the initial window, sent at once: the shortest of them is nearest.
            self.kib_ns = if self.seen == 1 { kib_ns } else { self.kib_ns.min(kib_ns) }.max(1);
        } else if kib_ns > self.kib_ns {
            self.kib_ns += self.kib_ns / UP + 1;
        } else {
            self.kib_ns -= self.kib_ns / DOWN;
        }
    }

    /// What `len` bytes take; nothing where that isn't known.
    #[inline]
    pub(super) const fn takes_ns(&self, len: u64) -> u64 {
        if self.seen < LEAST { 0 } else { self.kib_ns.saturating_mul(len) / 1_024 }
    }

    /// Whether `len` bytes that came `gap_ns` after those before came right behind them, and may have waited for them.
    #[inline]
    pub(super) const fn is_behind(&self, gap_ns: u64, len: u64) -> bool {
        self.seen >= LEAST && gap_ns <= self.takes_ns(len).saturating_mul(BEHIND_QUARTERS) / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 1,000 B with these gaps in ms, again and again.
    fn spacing(gaps_ms: &[u64]) -> Spacing {
        let mut spacing = Spacing::default();
        (0..300).for_each(|turn| spacing.on(gaps_ms[turn % gaps_ms.len()] * 1_000_000, 1_000));
        spacing
    }

    #[test]
    fn two_segments_in_each_round_trip_show_what_one_of_them_takes() {
        for gaps_ms in [&[1, 80][..], &[1, 1, 1, 40], &[1]] {
            let takes_us = spacing(gaps_ms).takes_ns(1_000) / 1_000;
            assert!((900..=1_100).contains(&takes_us), "{gaps_ms:?}: {takes_us} us");
        }
    }

    #[test]
    fn what_comes_as_soon_as_it_can_is_behind_what_came_before() {
        let spacing = spacing(&[1, 80]);
        assert!(spacing.is_behind(1_050_000, 1_000) && !spacing.is_behind(2_000_000, 1_000));
        assert!(!Spacing::default().is_behind(0, 1_000), "nothing is known yet");
    }
}
