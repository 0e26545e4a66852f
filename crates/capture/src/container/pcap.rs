//! pcap (draft-ietf-opsawg-pcap) in both byte orders, and its variants: nanoseconds, Kuznetsov's, AIX', Ixia's, and the
//! exchanged lengths of versions before 2.4. What is *not* here: variants that only a guess at the records could tell.

use super::{HEAD, LONGEST, NotACapture, Step, u32_at};
use crate::{
    link::Link,
    problem::ProblemKind,
    segment::Sink,
    view::View,
    walk::{Decoder, Packet},
};

/// What each record begins with: seconds, their fraction, and the two lengths.
const SHORTEST: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Pcap {
    is_big_endian: bool,
    link: Link,
    /// Nanoseconds in one unit of a time's fraction.
    fraction_ns: u64,
    /// The length of a record's header.
    record: usize,
    /// Whether the two lengths may stand in the other order.
    may_be_exchanged: bool,
    pub(super) is_damaged: bool,
}

impl Pcap {
    /// `None` where this is no pcap file, `Some(Ok(None))` where its header isn't there as a whole.
    pub(super) fn open(bytes: &[u8]) -> Option<Result<Option<(Self, usize)>, NotACapture>> {
        let magic: [u8; 4] = *bytes.first_chunk()?;
        // (fraction, length of the file's header, of a record's)
        let shape = |magic: u32| match magic {
            0xA1B2_C3D4 => Some((1000, 24, 16)),
            // Nanoseconds; the other one is Navtel's.
            0xA1B2_3C4D | 0xA12B_3C4D => Some((1, 24, 16)),
            // Kuznetsov's: interface, protocol and packet type in each record.
            0xA1B2_CD34 => Some((1000, 24, 24)),
            // Ixia's hardware and software: the length of all records after the header.
            0x1C00_01AC => Some((1, 28, 16)),
            0x1C00_01AB => Some((1000, 28, 16)),
            _ => None,
        };
        let (is_big_endian, (fraction_ns, header, record)) = match shape(u32::from_be_bytes(magic)) {
            Some(shape) => (true, shape),
            None => (false, shape(u32::from_le_bytes(magic))?),
        };
        if bytes.len() < header {
            return Some(Ok(None));
        }
        let word = if is_big_endian { u32_at::<true> } else { u32_at::<false> };
        let version = word(bytes, 4);
        let (major, minor) =
            if is_big_endian { (version >> 16, version & 0xFFFF) } else { (version & 0xFFFF, version >> 16) };
        // 543.0 is what DG/UX wrote.
        if major != 2 && major != 543 {
            return Some(Err(NotACapture::Version(major)));
        }
        // The upper bits tell the length of a checksum after each frame.
        let link = word(bytes, 20) & 0xFFFF;
        // AIX writes the numbers of RFC 1573 in version 2.2, and nanoseconds.
        let aix = match link {
            6 => Some(1),
            9 => Some(6),
            15 => Some(10),
            24 => Some(0),
            _ => None,
        };
        let aix = aix.filter(|_| (major, minor) == (2, 2));
        let pcap = Self {
            is_big_endian,
            link: Link::Tcpdump(aix.unwrap_or(link)),
            fraction_ns: if aix.is_some() { 1 } else { fraction_ns },
            record,
            may_be_exchanged: major != 2 || minor < 4,
            is_damaged: false,
        };
        Some(Ok(Some((pcap, header))))
    }

    pub(super) fn read<S: Sink>(&mut self, bytes: &[u8], decoder: &mut Decoder, sink: &mut S) -> Step {
        if self.is_big_endian {
            self.records::<true, S>(bytes, decoder, sink)
        } else {
            self.records::<false, S>(bytes, decoder, sink)
        }
    }

    fn records<const BIG: bool, S: Sink>(&mut self, bytes: &[u8], decoder: &mut Decoder, sink: &mut S) -> Step {
        let mut rest = bytes;
        while let Some(header) = rest.first_chunk::<SHORTEST>()
            && rest.len() >= self.record
        {
            let (mut captured, mut length) = (u32_at::<BIG>(header, 8), u32_at::<BIG>(header, 12));
            if self.may_be_exchanged && captured > length {
                core::mem::swap(&mut captured, &mut length);
            }
            if captured > LONGEST {
                self.is_damaged = true;
                decoder.problems.note(decoder.number(), ProblemKind::BadLength(captured));
                break;
            }
            let whole = self.record + captured as usize;
            if rest.len() < whole.min(self.record + HEAD) {
                break;
            }
            let head = &rest[self.record..whole.min(self.record + HEAD)];
            let fraction = u64::from(u32_at::<BIG>(header, 4)) * self.fraction_ns;
            decoder.packet(
                Packet {
                    at_ns: u64::from(u32_at::<BIG>(header, 0)) * 1_000_000_000 + fraction,
                    link: self.link,
                    interface: if self.record == 24 { u32_at::<BIG>(rest, 16) } else { 0 },
                    is_big_endian: BIG,
                    view: View::new(head, length.max(captured)),
                },
                sink,
            );
            if rest.len() < whole {
                return Step::Skip((bytes.len() - rest.len() + whole) as u64);
            }
            rest = &rest[whole..];
        }
        match bytes.len() - rest.len() {
            0 => Step::Wait,
            taken => Step::Took(taken),
        }
    }
}
