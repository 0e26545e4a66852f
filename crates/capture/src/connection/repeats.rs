//! Retransmissions that were not needed, recognised by time: the acknowledgement came sooner than the copy can have arrived and
//! been answered (the idea of RFC 3522, without its option). What is *not* here: duplicate SACKs, which tell the same.

/// Retransmissions that await their acknowledgement; more of them are not looked at.
const MOST: usize = 8;

/// An acknowledgement sooner than this part of the shortest round trip, in tenths, is of the original.
const SOONER_TENTHS: u64 = 8;

/// The last few retransmissions of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    /// Where each ends, and when it was sent.
    awaited: [(u64, u64); MOST],
    count: usize,
    /// Known to be needless, with no duplicate SACK for it yet.
    pub(super) unreported: u32,
}

impl Repeats {
    pub(super) fn add(&mut self, end: u64, at_ns: u64) {
        if let Some(free) = self.awaited.get_mut(self.count) {
            *free = (end, at_ns);
            self.count += 1;
        }
    }

    /// How many of those that `ack` covers were acknowledged too soon, the shortest round trip to the receiver being
    /// `least_ns`.
    #[inline]
    pub(super) fn needless(&mut self, ack: u64, now_ns: u64, least_ns: u64) -> u32 {
        if self.count == 0 { 0 } else { self.settle(ack, now_ns, least_ns) }
    }

    #[cold]
    fn settle(&mut self, ack: u64, now_ns: u64, least_ns: u64) -> u32 {
        let (mut needless, mut left) = (0, 0);
        for index in 0..self.count {
            let (end, at_ns) = self.awaited[index];
            if end > ack {
                self.awaited[left] = (end, at_ns);
                left += 1;
            } else if now_ns.saturating_sub(at_ns) < least_ns / 10 * SOONER_TENTHS {
                needless += 1;
            }
        }
        self.count = left;
        needless
    }

    /// A duplicate SACK came: whether it agrees with what time showed.
    pub(super) const fn is_known_needless(&mut self) -> bool {
        let is_known = self.unreported > 0;
        self.unreported = self.unreported.saturating_sub(1);
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP_NS: u64 = 40_000_000;

    #[test]
    fn an_acknowledgement_sooner_than_a_round_trip_is_of_the_original() {
        let mut repeats = Repeats::default();
        repeats.add(1_000, 0);
        repeats.add(2_000, 0);
        assert_eq!(repeats.needless(999, 5_000_000, TRIP_NS), 0, "it covers neither");
        assert_eq!(repeats.needless(1_000, 5_000_000, TRIP_NS), 1);
        assert_eq!(repeats.needless(2_000, TRIP_NS, TRIP_NS), 0, "the copy had the time to arrive");
        assert_eq!(repeats.count, 0);
    }

    #[test]
    fn more_than_there_is_room_for_are_not_looked_at() {
        let mut repeats = Repeats::default();
        (0..20).for_each(|end| repeats.add(end, 0));
        assert_eq!(repeats.needless(20, 1, TRIP_NS), MOST as u32);
    }

    #[test]
    fn a_duplicate_sack_confirms_what_time_told_and_counts_once() {
        let mut repeats = Repeats { unreported: 1, ..Repeats::default() };
        assert!(repeats.is_known_needless());
        assert!(!repeats.is_known_needless());
    }
}
