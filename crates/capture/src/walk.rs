//! One packet on its way through its headers, from the link layer to TCP. Each layer is a method of [`Walk`] in its own
//! module (`link/`, `net/`), which hands what it carries to the next. What is *not* here: the layers.

use crate::{
    link::{self, Link},
    net::Fragments,
    problem::{ProblemKind, Problems},
    segment::{Address, LinkStamp, Sink},
    view::{View, Walked},
};

/// How many layers are followed: enough for VLANs, MPLS and a tunnel in a tunnel, and an end for what was made to have
/// none.
const DEEPEST: u8 = 24;

/// What was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All packets.
    pub packets: u64,
    /// Their bytes as sent.
    pub bytes: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// The time of the first packet, in nanoseconds since 1970; `None` where there is none.
    pub first_ns: Option<u64>,
    /// The latest time of any packet.
    pub last_ns: u64,
}

/// One packet as its container holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) at_ns: u64,
    pub(crate) link: Link,
    /// Which of the capture's interfaces it came from.
    pub(crate) interface: u32,
    /// Whether the machine that wrote the file has the big end first: some link layers are in its order.
    pub(crate) is_big_endian: bool,
    pub(crate) view: View<'a>,
}

/// What lasts from packet to packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    pub(crate) problems: Problems,
    pub(crate) totals: Totals,
    pub(crate) fragments: Fragments,
    /// The number of the last packet of the files before this one.
    pub(crate) before: u64,
}

impl Decoder {
    /// The number of the last packet.
    #[inline]
    pub(crate) const fn number(&self) -> u64 {
        self.before + self.totals.packets
    }

    /// Takes one packet apart and gives its segments to the sink.
    #[inline]
    pub(crate) fn packet<S: Sink>(&mut self, packet: Packet<'_>, sink: &mut S) {
        let totals = &mut self.totals;
        totals.packets += 1;
        totals.bytes += u64::from(packet.view.len);
        totals.first_ns.get_or_insert(packet.at_ns);
        totals.last_ns = totals.last_ns.max(packet.at_ns);
        let number = self.number();
        let stamp = LinkStamp(packet.interface);
        let mut walk = Walk { decoder: self, sink, number, at_ns: packet.at_ns, stamp, outer: 0, depth: 0 };
        if let Err(kind) = link::enter(&mut walk, &packet) {
            self.problems.note(number, kind);
        }
    }

    /// Gives out what was still waiting for its other fragments.
    pub(crate) fn finish<S: Sink>(&mut self, sink: &mut S) {
        for held in self.fragments.drain() {
            self.problems.note(held.number(), ProblemKind::FragmentsMissing);
            self.totals.segments += u64::from(held.emit(sink));
        }
    }
}

/// A packet's way.
pub(crate) struct Walk<'d, S> {
    pub(crate) decoder: &'d mut Decoder,
    pub(crate) sink: &'d mut S,
    pub(crate) number: u64,
    pub(crate) at_ns: u64,
    pub(crate) stamp: LinkStamp,
    /// As in [`crate::Flow`].
    pub(crate) outer: u32,
    depth: u8,
}

impl<S: Sink> Walk<'_, S> {
    /// Counts a layer.
    #[inline]
    pub(crate) const fn deeper(&mut self) -> Walked {
        self.depth += 1;
        if self.depth > DEEPEST { Err(ProblemKind::TooDeep) } else { Ok(()) }
    }

    /// Adds link addresses or numbers to the stamp.
    #[inline]
    pub(crate) fn stamp(&mut self, words: [u64; 2]) {
        let mixed = mix(u64::from(self.stamp.0) ^ words[0]) ^ words[1];
        self.stamp = LinkStamp((mix(mixed) >> 32) as u32);
    }

    /// Enters a tunnel between two ends; `key` is what tells it from other tunnels between them.
    pub(crate) fn enter_tunnel(&mut self, [a, b]: [Address; 2], key: u64) {
        // A sum, so that both directions have the same digest.
        let one = |Address(bits)| mix((bits >> 64) as u64 ^ mix(bits as u64));
        let ends = one(a).wrapping_add(one(b));
        let digest = mix(ends ^ mix(key ^ u64::from(self.outer))) >> 32;
        self.outer = (digest as u32).max(1);
    }
}

/// A 64-bit finaliser (MurmurHash3's): each bit of the input reaches each bit of the result.
#[inline]
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let value = (value ^ (value >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    value ^ (value >> 33)
}
