//! Retransmissions that were not needed, told by time: the acknowledgement came sooner than the copy can have arrived and
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

    /// A duplicate SACK came: whether it says what time had told.
    pub(super) const fn is_known_needless(&mut self) -> bool {
        let is_known = self.unreported > 0;
        self.unreported = self.unreported.saturating_sub(1);
        is_known
    }
}
