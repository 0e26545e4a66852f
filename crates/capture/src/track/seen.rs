//! A segment as its connection sees it: numbers of one size each, without references, so that writing one is all that the
//! thread which reads packets does, and nothing is copied until a connection looks at it. What is *not* here: what it
//! means, and SACK blocks and the options of a SYN, which few segments have (`options`).

use fullpipe_units::SeqNum;

use crate::{Flags, Sender};

/// The year 2116, in nanoseconds since 1970: later times are taken for this one, so that sums of times fit.
pub(crate) const LATEST_NS: u64 = 1 << 62;

/// One segment of a known connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) at_ns: u64,
    pub(crate) number: u64,
    /// On the capture's own clock (`batch`).
    pub(crate) clock_s: u32,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    timestamps: [u32; 2],
    pub(crate) len: u32,
    pub(crate) length: u32,
    pub(crate) link: u32,
    pub(crate) window: u16,
    pub(crate) flags: Flags,
    id: u16,
    pub(crate) hop_limit: u8,
    bits: u8,
}

/// Bits of a segment: ECN in the lowest two, then these.
mod bit {
    /// The high end sent it.
    pub(super) const HIGH: u8 = 4;
    pub(super) const ID: u8 = 8;
    pub(super) const TIMESTAMPS: u8 = 16;
}

/// What a [`Seen`] is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) at_ns: u64,
    pub(crate) clock_s: u32,
    pub(crate) number: u64,
    pub(crate) sender: Sender,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) timestamps: Option<[u32; 2]>,
    pub(crate) len: u32,
    pub(crate) length: u32,
    pub(crate) link: u32,
    pub(crate) window: u16,
    pub(crate) flags: Flags,
    pub(crate) id: Option<u16>,
    pub(crate) hop_limit: u8,
    pub(crate) ecn: u8,
}

impl Seen {
    #[inline]
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { at_ns, number, sender, seq, ack, timestamps, len, length, link, window, flags, .. } = parts;
        let set = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        Self {
            at_ns: at_ns.min(LATEST_NS),
            number,
            clock_s: parts.clock_s,
            seq,
            ack,
            timestamps: timestamps.unwrap_or_default(),
            len,
            length,
            link,
            window,
            flags,
            id: parts.id.unwrap_or(0),
            hop_limit: parts.hop_limit,
            bits: parts.ecn & 3
                | set(sender == Sender::High, bit::HIGH)
                | set(parts.id.is_some(), bit::ID)
                | set(timestamps.is_some(), bit::TIMESTAMPS),
        }
    }

    /// The same at another time.
    #[must_use]
    pub(crate) const fn at(self, at_ns: u64) -> Self {
        Self { at_ns, ..self }
    }

    #[inline]
    pub(crate) const fn sender(&self) -> Sender {
        if self.bits & bit::HIGH != 0 { Sender::High } else { Sender::Low }
    }

    /// Timestamp value and echo (RFC 7323, section 3.2).
    #[inline]
    pub(crate) const fn timestamps(&self) -> Option<[u32; 2]> {
        if self.bits & bit::TIMESTAMPS != 0 { Some(self.timestamps) } else { None }
    }

    /// The timestamp value, where there is one.
    #[inline]
    pub(crate) fn value(&self) -> Option<u32> {
        self.timestamps().map(|[value, _]| value)
    }

    /// The identification field of IPv4.
    #[inline]
    pub(crate) const fn id(&self) -> Option<u16> {
        if self.bits & bit::ID != 0 { Some(self.id) } else { None }
    }

    /// The two ECN bits (RFC 3168, section 5).
    #[inline]
    pub(crate) const fn ecn(&self) -> u8 {
        self.bits & 3
    }
}

#[cfg(test)]
impl Seen {
    /// The same with another identification.
    pub(crate) const fn with_id(self, id: u16) -> Self {
        Self { id, bits: self.bits | bit::ID, ..self }
    }
}
