//! How far apart segments come that were sent together: what the narrowest link takes for each. What is *not* here: what
//! that says of the sender (`half`) and of the link (`flight`).

use fullpipe_units::Rate;

/// Gaps between full segments, up to which it isn't known.
const LEAST: u32 = 16;

/// The figure is the lower third of the gaps: two segments in each round trip show it, and what passes a token bucket before it
/// is empty is less than a third of nearly all transfers.
const UP: u64 = 32;
const DOWN: u64 = 16;

/// What comes within this much of the usual time, in quarters, came right behind the one before.
const BEHIND_QUARTERS: u64 = 5;

/// A gap within this part of the figure is the link's own.
const OWN_PART: u64 = 8;

/// So many of the link's own gaps, half of all, show its rate ...
const LEAST_OWN: u64 = 100;

/// ... up to 1 Gbit/s: faster than that, a host may have taken several segments in at once (receive coalescing).
const LEAST_KIB_NS: u64 = 8_192;

/// The time that a KiB takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spacing {
    seen: u32,
    kib_ns: u64,
    /// Gaps since the figure is known; those that are the link's own, and their sum.
    counted: u64,
    own: u64,
    own_ns: u64,
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
        } else {
            self.counted += 1;
            if kib_ns.abs_diff(self.kib_ns) <= self.kib_ns / OWN_PART {
                self.own += 1;
                self.own_ns += kib_ns;
            }
            if kib_ns > self.kib_ns {
                self.kib_ns += self.kib_ns / UP + 1;
            } else {
                self.kib_ns -= self.kib_ns / DOWN;
            }
        }
    }

    /// The payload that the link would carry if it were never idle, where half of the gaps are its own.
    pub(super) fn link_rate(&self) -> Option<Rate> {
        let kib_ns = self.own_ns.checked_div(self.own)?;
        let is_clear = self.own >= LEAST_OWN && self.own >= self.counted / 2 && kib_ns >= LEAST_KIB_NS;
        is_clear.then(|| Rate::from_bps(1_024 * 8 * 1_000_000_000 / kib_ns))
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

    #[test]
    fn the_spacing_of_most_segments_is_the_links_rate_and_what_is_handed_over_at_once_is_none() {
        let mbps = |gaps_ms: &[u64]| spacing(gaps_ms).link_rate().map(|rate| rate.bps() / 1_000_000);
        // 1,000 B in a millisecond are 8 Mbit/s; how long the link is empty in between doesn't matter.
        assert_eq!([mbps(&[1]), mbps(&[1, 1, 1, 40])], [Some(8); 2]);
        assert_eq!(mbps(&[1, 2, 4, 8]), None, "no gap is more frequent than others");
        assert_eq!(mbps(&[0, 0, 0, 4]), None, "a card hands over four at a time");
    }
}
