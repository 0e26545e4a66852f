//! Packets that were captured twice (a mirrored port sees a packet come and go). What is *not* here: packets that were
//! sent twice, which have another IP identification.

use crate::{Flags, track::seen::Seen};

/// How many packets a copy may come behind its original.
const MOST: usize = 64;

/// A copy is dated within this time of its original; less than any retransmission timer.
pub(super) const LONGEST_NS: u64 = 200_000_000;

/// A copy of a SYN comes within this time.
const SOON_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug)]
struct Print {
    at_ns: u64,
    seq: u32,
    ack: u32,
    len: u32,
    link: u32,
    value: u32,
    flags: u16,
    id: u16,
    hop_limit: u8,
}

/// The last packets of one sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    prints: Vec<Print>,
    next: usize,
}

impl Copies {
    /// As new, with the room that the list had.
    pub(super) fn empty(&mut self) {
        self.prints.clear();
        self.next = 0;
    }

    /// Whether `seen` is a copy of a packet before; else it is noted. `is_old` where it carries nothing new, without
    /// which it can't be one. `trip_ns` is the shortest round trip, where it is known.
    #[inline]
    pub(crate) fn is_copy(&mut self, seen: &Seen, is_old: bool, trip_ns: u64) -> bool {
        let print = Print {
            at_ns: seen.at_ns,
            seq: seen.seq.get(),
            ack: seen.ack.get(),
            len: seen.len,
            link: seen.link,
            value: seen.value().unwrap_or(0),
            flags: seen.flags.0,
            id: seen.id().unwrap_or(0),
            hop_limit: seen.hop_limit,
        };
        if is_old && self.prints.iter().any(|earlier| print.is_copy_of(earlier, seen, trip_ns)) {
            return true;
        }
        if self.prints.len() < MOST {
            self.prints.push(print);
        } else {
            self.prints[self.next] = print;
            self.next = (self.next + 1) % MOST;
        }
        false
    }
}

impl Print {
    fn is_copy_of(&self, earlier: &Self, seen: &Seen, trip_ns: u64) -> bool {
        let gap_ns = self.at_ns.saturating_sub(earlier.at_ns);
        let same = (self.seq, self.ack, self.len, self.flags, self.value, self.id)
            == (earlier.seq, earlier.ack, earlier.len, earlier.flags, earlier.value, earlier.id);
        if !same || gap_ns > LONGEST_NS {
            return false;
        }
        // A new identification is what tells a retransmission; without one, the way that it took must be another, or it
        // came sooner than any answer could have asked for it.
        if self.id != 0 {
            return true;
        }
        let other_way = self.hop_limit != earlier.hop_limit || self.link != earlier.link;
        let elsewhere = other_way && seen.timestamps().is_some();
        // No system repeats a SYN as soon as this (RFC 6298, section 2: after a second).
        let soon_ns = if seen.flags.has(Flags::SYN) { SOON_NS.max(trip_ns / 2) } else { trip_ns / 2 };
        elsewhere || (gap_ns < soon_ns && (seen.len > 0 || seen.flags.has(Flags::SYN.with(Flags::FIN))))
    }
}
