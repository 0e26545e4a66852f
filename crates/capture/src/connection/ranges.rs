//! A few disjoint ranges of 64-bit stream positions in order: the holes of a sequence space, or what was acknowledged
//! selectively. What is *not* here: why a range is there.

/// Most ranges that one set holds. A sender can't have more holes than segments under way; a capture that loses half of
/// its packets can, and then the lowest range gives way.
const MOST: usize = 2_048;

/// A set of ranges, each with a note on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges<T> {
    ranges: Vec<Range<T>>,
    /// Ranges that gave way.
    pub(crate) dropped: u64,
}

/// Positions from `from` up to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range<T> {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) note: T,
}

impl<T: Copy> Ranges<T> {
    pub(crate) const fn new() -> Self {
        Self { ranges: Vec::new(), dropped: 0 }
    }

    /// As new, with the room that the list had.
    pub(super) fn empty(&mut self) {
        self.ranges.clear();
        self.dropped = 0;
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Where the lowest one begins.
    pub(crate) fn first(&self) -> Option<u64> {
        self.ranges.first().map(|range| range.from)
    }

    /// Adds a range above all others.
    pub(crate) fn push(&mut self, from: u64, to: u64, note: T) {
        if self.ranges.len() >= MOST {
            self.ranges.remove(0);
            self.dropped += 1;
        }
        self.ranges.push(Range { from, to, note });
    }

    /// Takes `from..to` out; tells how many bytes of it were in the set, and the note of the first range hit.
    #[inline]
    pub(crate) fn take(&mut self, from: u64, to: u64) -> (u64, Option<T>) {
        // Of most connections, most of the time.
        if self.ranges.is_empty() { (0, None) } else { self.take_out(from, to) }
    }

    fn take_out(&mut self, from: u64, to: u64) -> (u64, Option<T>) {
        let start = self.ranges.partition_point(|range| range.to <= from);
        let (mut taken, mut note, mut at) = (0, None, start);
        while let Some(range) = self.ranges.get(at).copied().filter(|range| range.from < to) {
            let (low, high) = (range.from.max(from), range.to.min(to));
            taken += high - low;
            note = note.or(Some(range.note));
            match (range.from < low, high < range.to) {
                (false, false) => {
                    self.ranges.remove(at);
                }
                (true, false) => {
                    self.ranges[at].to = low;
                    at += 1;
                }
                (false, true) => {
                    self.ranges[at].from = high;
                    at += 1;
                }
                (true, true) => {
                    self.ranges[at].to = low;
                    if self.ranges.len() < MOST {
                        self.ranges.insert(at + 1, Range { from: high, ..range });
                    }
                    break;
                }
            }
        }
        (taken, note)
    }

    /// Adds `from..to`, joined with what touches it; tells how many bytes are new.
    pub(crate) fn add(&mut self, from: u64, to: u64, note: T) -> u64 {
        let start = self.ranges.partition_point(|range| range.to < from);
        let mut end = start;
        let (mut low, mut high, mut had) = (from, to, 0);
        while let Some(range) = self.ranges.get(end).filter(|range| range.from <= to) {
            had += range.to.min(to).saturating_sub(range.from.max(from));
            (low, high) = (low.min(range.from), high.max(range.to));
            end += 1;
        }
        self.ranges.splice(start..end, [Range { from: low, to: high, note }]);
        if self.ranges.len() > MOST {
            self.ranges.remove(0);
            self.dropped += 1;
        }
        (to - from).saturating_sub(had)
    }

    /// Whether one of them ends at `position`.
    pub(crate) fn ends_at(&self, position: u64) -> bool {
        self.ranges.binary_search_by_key(&position, |range| range.to).is_ok()
    }

    /// Forgets everything below `position`; tells how many bytes that were.
    #[inline]
    pub(crate) fn forget_below(&mut self, position: u64) -> u64 {
        if self.ranges.first().is_none_or(|range| range.from >= position) {
            return 0;
        }
        self.take_out(0, position).0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl<T> Ranges<T> {
        fn bytes(&self) -> u64 {
            self.ranges.iter().map(|range| range.to - range.from).sum()
        }
    }

    #[test]
    fn a_hole_is_filled_piece_by_piece() {
        let mut holes = Ranges::new();
        holes.push(10, 20, 'a');
        holes.push(30, 40, 'b');
        assert_eq!(holes.take(12, 14), (2, Some('a')));
        assert_eq!(holes.take(0, 35), (8 + 5, Some('a')));
        assert_eq!((holes.bytes(), holes.ranges.first().map(|r| (r.from, r.to))), (5, Some((35, 40))));
        assert_eq!(holes.forget_below(37), 2);
        assert_eq!(holes.take(0, 35), (0, None));
    }

    proptest! {
        #[test]
        fn adding_and_taking_count_as_a_plain_set_does(steps in proptest::collection::vec((any::<bool>(), 0u64..200, 1u64..20), 1..60)) {
            let mut ranges = Ranges::new();
            let mut plain = std::collections::BTreeSet::new();
            for (add, from, len) in steps {
                let to = from + len;
                let before = plain.len() as u64;
                if add {
                    plain.extend(from..to);
                    prop_assert_eq!(ranges.add(from, to, ()), plain.len() as u64 - before);
                } else {
                    plain.retain(|at| !(from..to).contains(at));
                    prop_assert_eq!(ranges.take(from, to).0, before - plain.len() as u64);
                }
                prop_assert_eq!(ranges.bytes(), plain.len() as u64);
            }
        }
    }
}
