//! pcapng (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces with their own link types and clocks,
//! and blocks of packets, old and new. What is *not* here: names, statistics, comments and secrets, which are skipped.

use super::{HEAD, LONGEST, Step, u16_at, u32_at};
use crate::{
    link::Link,
    problem::ProblemKind,
    segment::Sink,
    view::View,
    walk::{Decoder, Packet},
};

/// Block types (section 11.1 of the draft).
mod block {
    pub(super) const SECTION: u32 = 0x0A0D_0D0A;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const OLD_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const PACKET: u32 = 6;
}

/// How many interfaces of a section are kept: 3 MB, and far beyond any machine.
const INTERFACES: usize = 65_536;

/// No block that is looked at as a whole is longer; others are skipped, however long they are.
const LONGEST_HEADER: usize = HEAD;

/// Whether a section begins here.
pub(super) fn is_section(bytes: &[u8]) -> bool {
    bytes.starts_with(&block::SECTION.to_be_bytes())
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    /// 0 means that nothing is cut.
    snap_len: u32,
    clock: Clock,
    offset_s: i64,
}

/// How many nanoseconds a unit of an interface's clock has.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// So many.
    Times(u64),
    /// One by so many.
    Divided(u64),
    /// A second by two to this power.
    Binary(u32),
}

impl Clock {
    /// The option `if_tsresol`: a negative power of ten, or of two where the highest bit is set.
    const fn new(resolution: u8) -> Self {
        match resolution {
            0..=9 => Self::Times(10_u64.pow(9 - resolution as u32)),
            // Beyond 10^-28 a whole time is less than a nanosecond.
            10..=28 => Self::Divided(10_u64.pow(resolution as u32 - 9)),
            29..=127 => Self::Divided(u64::MAX),
            _ => Self::Binary((resolution & 0x7F) as u32),
        }
    }

    #[inline]
    const fn ns(self, units: u64) -> u64 {
        match self {
            Self::Times(factor) => units.saturating_mul(factor),
            Self::Divided(divisor) => units / divisor,
            Self::Binary(power) => {
                let ns = (units as u128 * 1_000_000_000) >> power;
                if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 }
            }
        }
    }
}

impl Interface {
    #[inline]
    fn at_ns(&self, high: u32, low: u32) -> u64 {
        let ns = self.clock.ns(u64::from(high) << 32 | u64::from(low));
        if self.offset_s == 0 {
            return ns;
        }
        let shifted = i128::from(ns) + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pcapng {
    is_big_endian: bool,
    /// Those of the current section.
    interfaces: Vec<Interface>,
    /// The time of the last packet, for those that have none.
    last_ns: u64,
    pub(super) is_damaged: bool,
}

/// A packet as its block holds it.
struct Found {
    interface: u32,
    at_ns: Option<u64>,
    /// Where its bytes begin in the block.
    at: usize,
    captured: u32,
    length: u32,
}

impl Pcapng {
    pub(super) fn read<S: Sink>(&mut self, bytes: &[u8], decoder: &mut Decoder, sink: &mut S) -> Step {
        if is_section(bytes) {
            return self.section(bytes, decoder);
        }
        if self.is_big_endian {
            self.blocks::<true, S>(bytes, decoder, sink)
        } else {
            self.blocks::<false, S>(bytes, decoder, sink)
        }
    }

    /// A section's header: its byte order is that of the magic number in it.
    fn section(&mut self, bytes: &[u8], decoder: &mut Decoder) -> Step {
        if bytes.len() < 12 {
            return Step::Wait;
        }
        match u32_at::<true>(bytes, 8) {
            0x1A2B_3C4D => self.is_big_endian = true,
            0x4D3C_2B1A => self.is_big_endian = false,
            other => return self.damaged(other, decoder),
        }
        let length = if self.is_big_endian { u32_at::<true>(bytes, 4) } else { u32_at::<false>(bytes, 4) };
        if length < 28 || length % 4 != 0 {
            return self.damaged(length, decoder);
        }
        self.interfaces.clear();
        Step::Skip(u64::from(length))
    }

    fn blocks<const BIG: bool, S: Sink>(&mut self, bytes: &[u8], decoder: &mut Decoder, sink: &mut S) -> Step {
        let mut rest = bytes;
        let taken = |rest: &[u8]| bytes.len() - rest.len();
        while rest.len() >= 12 && !is_section(rest) {
            let (kind, length) = (u32_at::<BIG>(rest, 0), u32_at::<BIG>(rest, 4));
            if length < 12 || length % 4 != 0 {
                return self.damaged(length, decoder);
            }
            let whole = length as usize;
            let head = match kind {
                block::PACKET | block::OLD_PACKET | block::SIMPLE_PACKET => whole.min(32 + HEAD),
                block::INTERFACE => whole.min(LONGEST_HEADER),
                _ => 12,
            };
            if rest.len() < head {
                break;
            }
            match kind {
                block::INTERFACE => self.interface::<BIG>(&rest[..head], decoder),
                block::PACKET | block::OLD_PACKET | block::SIMPLE_PACKET => {
                    match self.packet_block::<BIG>(kind, &rest[..head], whole) {
                        Some(found) => self.packet::<BIG, S>(&found, &rest[..head], decoder, sink),
                        None => return self.damaged(length, decoder),
                    }
                }
                _ => {}
            }
            if rest.len() < whole {
                return Step::Skip((taken(rest) + whole) as u64);
            }
            rest = &rest[whole..];
        }
        match taken(rest) {
            0 => Step::Wait,
            taken => Step::Took(taken),
        }
    }

    /// Section 4.2: link type, reserved, snapshot length, options.
    fn interface<const BIG: bool>(&mut self, block: &[u8], decoder: &mut Decoder) {
        if self.interfaces.len() >= INTERFACES || block.len() < 20 {
            decoder.problems.note(decoder.number(), ProblemKind::TooManyInterfaces);
            return;
        }
        let mut interface = Interface {
            link: u32::from(u16_at::<BIG>(block, 8)),
            snap_len: u32_at::<BIG>(block, 12),
            clock: Clock::new(6),
            offset_s: 0,
        };
        let mut options = &block[16..block.len() - 4];
        while options.len() >= 4 {
            let (code, length) = (u16_at::<BIG>(options, 0), usize::from(u16_at::<BIG>(options, 2)));
            let Some(value) = options.get(4..4 + length) else { break };
            match (code, value) {
                (0, _) => break,
                (9, [resolution, ..]) => interface.clock = Clock::new(*resolution),
                (14, [_, _, _, _, _, _, _, _]) => {
                    let (first, second) = (u64::from(u32_at::<BIG>(value, 0)), u64::from(u32_at::<BIG>(value, 4)));
                    interface.offset_s = if BIG { first << 32 | second } else { second << 32 | first }.cast_signed();
                }
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
    }

    /// Where the packet lies in a block, of which `head` is there and `whole` is the length; `None` where the lengths
    /// contradict each other.
    #[inline]
    fn packet_block<const BIG: bool>(&self, kind: u32, head: &[u8], whole: usize) -> Option<Found> {
        let found = match kind {
            block::SIMPLE_PACKET if head.len() >= 16 => {
                let length = u32_at::<BIG>(head, 8);
                let snap_len = self.interfaces.first().map_or(0, |interface| interface.snap_len);
                let snap_len = if snap_len == 0 { u32::MAX } else { snap_len };
                let captured = length.min(snap_len).min(whole as u32 - 16);
                Found { interface: 0, at_ns: None, at: 12, captured, length }
            }
            block::PACKET | block::OLD_PACKET if head.len() >= 32 => {
                // The old one has a count of drops in the upper half of the word.
                let interface = match kind {
                    block::PACKET => u32_at::<BIG>(head, 8),
                    _ => u32::from(u16_at::<BIG>(head, 8)),
                };
                let (high, low) = (u32_at::<BIG>(head, 12), u32_at::<BIG>(head, 16));
                let at_ns = self.interfaces.get(interface as usize).map(|interface| interface.at_ns(high, low));
                let (captured, length) = (u32_at::<BIG>(head, 20), u32_at::<BIG>(head, 24));
                Found { interface, at_ns, at: 28, captured, length }
            }
            _ => return None,
        };
        // The block's own length stands once more after the packet.
        (found.captured <= LONGEST && found.at + found.captured as usize + 4 <= whole).then_some(found)
    }

    #[inline]
    fn packet<const BIG: bool, S: Sink>(&mut self, found: &Found, head: &[u8], decoder: &mut Decoder, sink: &mut S) {
        let number = decoder.number() + 1;
        let Some(interface) = self.interfaces.get(found.interface as usize) else {
            decoder.totals.packets += 1;
            decoder.problems.note(number, ProblemKind::UnknownInterface(found.interface));
            return;
        };
        let at_ns = found.at_ns.unwrap_or_else(|| {
            decoder.problems.note(number, ProblemKind::NoTime);
            self.last_ns
        });
        self.last_ns = at_ns;
        let end = (found.at + found.captured as usize).min(head.len());
        decoder.packet(
            Packet {
                at_ns,
                link: Link::Tcpdump(interface.link),
                interface: found.interface,
                is_big_endian: BIG,
                view: View::new(&head[found.at..end], found.length.max(found.captured)),
            },
            sink,
        );
    }

    fn damaged(&mut self, length: u32, decoder: &mut Decoder) -> Step {
        self.is_damaged = true;
        decoder.problems.note(decoder.number(), ProblemKind::BadLength(length));
        Step::Took(0)
    }
}
