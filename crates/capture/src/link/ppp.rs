//! PPP in its framings, PPPoE, Cisco's HDLC and frame relay. What is *not* here: compressed or split PPP (multilink),
//! whose parts tell nothing alone.

use super::ethertype;
use crate::{
    problem::ProblemKind,
    segment::Sink,
    view::{View, Walked},
    walk::Walk,
};

impl<S: Sink> Walk<'_, S> {
    /// PPP with or without address and control (RFC 1662, section 3.1), and with a protocol field of one byte or two
    /// (RFC 1661, section 2); also Cisco's HDLC, which shares a link type with it.
    pub(crate) fn ppp(&mut self, view: View<'_>) -> Walked {
        match view.array(0)? {
            [0xFF, 0x03] => self.ppp_protocol(view.skip(2)?),
            [0x0F | 0x8F, 0x00] => self.cisco_hdlc(view),
            _ => self.ppp_protocol(view),
        }
    }

    fn ppp_protocol(&mut self, view: View<'_>) -> Walked {
        self.deeper()?;
        let first = view.u8(0)?;
        let (protocol, inner) =
            if first & 1 == 1 { (u16::from(first), view.skip(1)?) } else { (view.u16(0)?, view.skip(2)?) };
        match protocol {
            0x0021 => self.ipv4(inner),
            0x0057 => self.ipv6(inner),
            // RFC 3032, section 4.3.
            0x0281 | 0x0283 => self.mpls(inner),
            _ => Ok(()),
        }
    }

    /// As pppd writes it: the address tells the direction.
    pub(super) fn ppp_marked(&mut self, view: View<'_>) -> Walked {
        match view.u8(1)? {
            0x03 => self.ppp_protocol(view.skip(2)?),
            _ => self.ppp_protocol(view.skip(1)?),
        }
    }

    /// RFC 2516, section 4.
    pub(super) fn pppoe(&mut self, view: View<'_>) -> Walked {
        let [version, code, _, _, length @ ..] = view.array::<6>(0)?;
        if version != 0x11 {
            return Err(ProblemKind::BadLink);
        }
        if code != 0 {
            return Ok(());
        }
        self.ppp_protocol(view.skip(6)?.first(u32::from(u16::from_be_bytes(length))))
    }

    /// Address, control, EtherType.
    pub(super) fn cisco_hdlc(&mut self, view: View<'_>) -> Walked {
        match view.u16(2)? {
            ethertype::IPV4 => self.ipv4(view.skip(4)?),
            other => self.ethertype(other, view.skip(4)?),
        }
    }

    /// RFC 2427, section 3: an address of two bytes (or more, until one with its lowest bit set), then a control byte
    /// and a network layer identifier; Cisco's own has an EtherType there.
    pub(super) fn frame_relay(&mut self, view: View<'_>) -> Walked {
        let mut length = 1;
        while view.u8(length - 1)? & 1 == 0 {
            length += 1;
            if length > 4 {
                return Err(ProblemKind::BadLink);
            }
        }
        let inner = view.skip(length)?;
        match inner.u8(0)? {
            0x03 if inner.u8(1)? == 0 => self.nlpid(inner.skip(2)?),
            0x03 => self.nlpid(inner.skip(1)?),
            _ => self.ethertype(inner.u16(0)?, inner.skip(2)?),
        }
    }
}
