//! A segment as its connection sees it, and the few bytes that are kept of it until it is known whether the connection is
//! worth following. What is *not* here: what it means.

use fullpipe_units::SeqNum;

use super::options::Options;
use crate::{Flags, Segment, Sender};

/// The year 2116, in nanoseconds since 1970: later times are taken for this one, so that sums of times fit.
const LATEST_NS: u64 = 1 << 62;

/// One segment of a known connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) at_ns: u64,
    pub(crate) sender: Sender,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) len: u32,
    pub(crate) length: u32,
    pub(crate) id: Option<u16>,
    pub(crate) hop_limit: u8,
    pub(crate) ecn: u8,
    pub(crate) link: u32,
    pub(crate) options: Options,
}

impl Seen {
    #[inline]
    pub(crate) fn of(segment: &Segment<'_>, sender: Sender, options: Options) -> Self {
        Self {
            number: segment.number,
            at_ns: segment.at_ns.min(LATEST_NS),
            sender,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            len: segment.payload_len,
            length: segment.network.length,
            id: segment.network.id,
            hop_limit: segment.network.hop_limit,
            ecn: segment.network.ecn,
            link: segment.link.0,
            options,
        }
    }
}

/// What is kept of a segment: everything but SACK blocks and the options of a SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    at_ns: u64,
    number: u64,
    seq: u32,
    ack: u32,
    len: u32,
    length: u32,
    link: u32,
    timestamps: [u32; 2],
    window: u16,
    flags: u16,
    id: u16,
    hop_limit: u8,
    /// ECN in the lowest two bits, then: sent by the high end, has an identification, has timestamps.
    bits: u8,
}

impl Kept {
    pub(crate) fn of(seen: &Seen) -> Self {
        let (value, echo) = seen.options.timestamps.unwrap_or_default();
        let bit = |set: bool, place: u8| u8::from(set) << place;
        Self {
            at_ns: seen.at_ns,
            number: seen.number,
            seq: seen.seq.get(),
            ack: seen.ack.get(),
            len: seen.len,
            length: seen.length,
            link: seen.link,
            timestamps: [value, echo],
            window: seen.window,
            flags: seen.flags.0,
            id: seen.id.unwrap_or(0),
            hop_limit: seen.hop_limit,
            bits: (seen.ecn & 3)
                | bit(seen.sender == Sender::High, 2)
                | bit(seen.id.is_some(), 3)
                | bit(seen.options.timestamps.is_some(), 4),
        }
    }

    pub(crate) fn is_syn(&self) -> bool {
        Flags(self.flags).has(Flags::SYN)
    }

    pub(crate) fn seen(&self) -> Seen {
        let has = |place: u8| self.bits >> place & 1 == 1;
        Seen {
            number: self.number,
            at_ns: self.at_ns,
            sender: if has(2) { Sender::High } else { Sender::Low },
            seq: SeqNum::new(self.seq),
            ack: SeqNum::new(self.ack),
            flags: Flags(self.flags),
            window: self.window,
            len: self.len,
            length: self.length,
            id: has(3).then_some(self.id),
            hop_limit: self.hop_limit,
            ecn: self.bits & 3,
            link: self.link,
            options: Options {
                timestamps: has(4).then_some((self.timestamps[0], self.timestamps[1])),
                ..Options::default()
            },
        }
    }
}
