//! Data frames of wireless networks (IEEE 802.11), and the headers that drivers put before them. What is *not* here:
//! management and control frames, and decryption.

use crate::{
    problem::ProblemKind,
    segment::Sink,
    view::{View, Walked},
    walk::Walk,
};

/// The second byte of the frame control field.
mod flag {
    pub(super) const TO_AND_FROM: u8 = 0x03;
    pub(super) const PROTECTED: u8 = 0x40;
    pub(super) const ORDER: u8 = 0x80;
}

/// How a frame differs from one on the air.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    /// Its header is filled up to a multiple of four bytes.
    is_padded: bool,
    /// The two bytes of its control fields are exchanged.
    is_swapped: bool,
}

/// An LLC header with SNAP: nothing encrypted begins like this but by chance.
const SNAP: [u8; 3] = [0xAA, 0xAA, 0x03];

impl<S: Sink> Walk<'_, S> {
    /// <https://www.radiotap.org>: version, padding, length, then fields that a chain of bitmaps announces.
    pub(super) fn radiotap(&mut self, view: View<'_>) -> Walked {
        let length = usize::from(u16::from_le_bytes(view.array(2)?));
        if view.u8(0)? != 0 || length < 8 {
            return Err(ProblemKind::BadLink);
        }
        let present = u32::from_le_bytes(view.array(4)?);
        let mut at = 8;
        let mut last = present;
        while last & 1 << 31 != 0 {
            last = u32::from_le_bytes(view.array(at)?);
            at += 4;
        }
        // The flags come first, but for a time of 8 bytes.
        if present & 1 != 0 {
            at = at.next_multiple_of(8) + 8;
        }
        let is_padded = present & 2 != 0 && at < length && view.u8(at)? & 0x20 != 0;
        self.wifi_frame(view.skip(length)?, Kept { is_padded, ..Kept::default() })
    }

    /// The Prism driver's header: its length is the second word, in the byte order of who wrote it.
    pub(super) fn prism(&mut self, view: View<'_>) -> Walked {
        let length = u32::from_le_bytes(view.array(4)?);
        let length = if length > 0xFFFF { length.swap_bytes() } else { length };
        self.wifi(view.skip(length as usize)?)
    }

    /// The AVS header: version, length.
    pub(super) fn avs(&mut self, view: View<'_>) -> Walked {
        self.wifi(view.skip(view.u32(4)? as usize)?)
    }

    /// A frame as it goes over the air.
    pub(super) fn wifi(&mut self, view: View<'_>) -> Walked {
        self.wifi_frame(view, Kept::default())
    }

    /// One on its way between an access point and its controller. Cisco's write both control fields in the other byte order: then the version,
    /// which is 0, seems to be the direction, which isn't (Wireshark's "swap frame control").
    pub(crate) fn wifi_by_controller(&mut self, view: View<'_>) -> Walked {
        let is_swapped = view.u8(0)? & flag::TO_AND_FROM != 0;
        self.wifi_frame(view, Kept { is_swapped, ..Kept::default() })
    }

    fn wifi_frame(&mut self, view: View<'_>, kept: Kept) -> Walked {
        self.deeper()?;
        let field = |at| {
            let [one, other] = view.array(at)?;
            Ok(if kept.is_swapped { [other, one] } else { [one, other] })
        };
        let [control, flags] = field(0)?;
        let (is_data, is_null, is_qos) = (control & 0x0C == 0x08, control & 0x40 != 0, control & 0x80 != 0);
        if !is_data || is_null {
            return Ok(());
        }
        // Only the first fragment begins with LLC. (Frames without a sequence number, which are shorter, carry no data.)
        if field(22)?[0] & 0x0F != 0 {
            return Ok(());
        }
        self.stamp([u64::from_le_bytes(view.array(4)?), u64::from(u32::from_le_bytes(view.array(12)?))]);
        let mut length = if flags & flag::TO_AND_FROM == flag::TO_AND_FROM { 30 } else { 24 };
        let mut is_aggregate = false;
        if is_qos {
            is_aggregate = view.u8(length)? & 0x80 != 0;
            length += if flags & flag::ORDER != 0 { 6 } else { 2 };
        }
        if kept.is_padded {
            length = length.next_multiple_of(4);
        }
        let body = view.skip(length)?;
        // Drivers that decrypt leave the flag as it was.
        if flags & flag::PROTECTED != 0 && !body.bytes.starts_with(&SNAP) && !is_aggregate {
            return Err(ProblemKind::Encrypted);
        }
        if is_aggregate { self.aggregate(body, flags) } else { self.llc(body) }
    }

    /// Several frames in one (A-MSDU): destination, source, length, then LLC, padded to four bytes.
    fn aggregate(&mut self, mut rest: View<'_>, flags: u8) -> Walked {
        let stamp = self.stamp;
        while rest.len > 14 {
            let length = u32::from(rest.u16(12)?);
            let inner = rest.skip(14)?;
            if flags & flag::PROTECTED != 0 && !inner.bytes.starts_with(&SNAP) {
                return Err(ProblemKind::Encrypted);
            }
            self.stamp = stamp;
            self.llc(inner.first(length))?;
            let next = (14 + length as usize).next_multiple_of(4);
            if rest.len as usize <= next {
                break;
            }
            rest = rest.skip(next)?;
        }
        Ok(())
    }
}
