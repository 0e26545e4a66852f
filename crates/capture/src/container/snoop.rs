//! snoop (RFC 1761), Solaris' format. What is *not* here: Shomiti's and Network Associates' own link types in it.

use super::{HEAD, LONGEST, NotACapture, Step, u32_at};
use crate::{
    link::Link,
    problem::ProblemKind,
    segment::Sink,
    view::View,
    walk::{Decoder, Packet},
};

#[derive(Clone, Debug)]
pub(super) struct Snoop {
    link: Link,
    pub(super) is_damaged: bool,
}

impl Snoop {
    /// `None` where this is no snoop file, `Some(Ok(None))` where its header isn't there as a whole.
    pub(super) fn open(bytes: &[u8]) -> Option<Result<Option<(Self, usize)>, NotACapture>> {
        let magic = b"snoop\0\0\0";
        let there = bytes.len().min(magic.len());
        if bytes[..there] != magic[..there] {
            return None;
        }
        if bytes.len() < 16 {
            return Some(Ok(None));
        }
        match u32_at::<true>(bytes, 8) {
            // Version 2 is the RFC's; Shomiti's 3 and 4 have the same records.
            2..=4 => Some(Ok(Some((Self { link: Link::Snoop(u32_at::<true>(bytes, 12)), is_damaged: false }, 16)))),
            version => Some(Err(NotACapture::Version(version))),
        }
    }

    /// Records: length, captured length, length of the record, drops, seconds, microseconds, packet, padding.
    pub(super) fn read<S: Sink>(&mut self, bytes: &[u8], decoder: &mut Decoder, sink: &mut S) -> Step {
        if bytes.len() < 24 {
            return Step::Wait;
        }
        let [length, captured, whole] = [0, 4, 8].map(|at| u32_at::<true>(bytes, at));
        if captured > LONGEST || whole < captured.saturating_add(24) || whole > LONGEST + 4096 {
            self.is_damaged = true;
            decoder.problems.note(decoder.number(), ProblemKind::BadLength(whole));
            return Step::Took(0);
        }
        let head = (captured as usize).min(HEAD);
        let Some(packet) = bytes.get(24..24 + head) else { return Step::Wait };
        let [seconds, micros] = [16, 20].map(|at| u64::from(u32_at::<true>(bytes, at)));
        decoder.packet(
            Packet {
                at_ns: seconds * 1_000_000_000 + micros * 1000,
                link: self.link,
                interface: 0,
                is_big_endian: true,
                view: View::new(packet, length.max(captured)),
            },
            sink,
        );
        Step::Skip(u64::from(whole))
    }
}
