//! What operating systems put in place of a link layer's own header: Linux' "cooked" captures, loopback, the logs of
//! firewalls. What is *not* here: link layers that go over a wire.

use super::ethertype;
use crate::{
    problem::ProblemKind,
    segment::Sink,
    view::{View, Walked},
    walk::Walk,
};

impl<S: Sink> Walk<'_, S> {
    /// Linux' first: type, device type, address length, address of 8 bytes, protocol.
    pub(super) fn cooked(&mut self, view: View<'_>) -> Walked {
        let header: [u8; 16] = view.array(0)?;
        let [p0, p1, d0, d1, _, _, address @ .., high, low] = header;
        self.stamp([u64::from_le_bytes(address), u64::from(u16::from_be_bytes([p0, p1]))]);
        self.cooked_protocol(u16::from_be_bytes([d0, d1]), u16::from_be_bytes([high, low]), view.skip(16)?)
    }

    /// Linux' second: protocol, interface, device type, packet type, address length, address of 8 bytes.
    pub(super) fn cooked_2(&mut self, view: View<'_>) -> Walked {
        let header: [u8; 20] = view.array(0)?;
        let [high, low, _, _, i0, i1, i2, i3, d0, d1, packet_type, _, address @ ..] = header;
        let interface = u64::from(u32::from_be_bytes([i0, i1, i2, i3]));
        self.stamp([u64::from_le_bytes(address), interface << 8 | u64::from(packet_type)]);
        self.cooked_protocol(u16::from_be_bytes([d0, d1]), u16::from_be_bytes([high, low]), view.skip(20)?)
    }

    fn cooked_protocol(&mut self, device: u16, protocol: u16, view: View<'_>) -> Walked {
        match (device, protocol) {
            // ARPHRD_IEEE80211_RADIOTAP, ARPHRD_IEEE80211.
            (803, _) => self.radiotap(view),
            (801, _) => self.wifi(view),
            // ARPHRD_NETLINK: the protocol is netlink's own.
            (824, _) => Ok(()),
            // LINUX_SLL_P_802_2.
            (_, 4) => self.llc(view),
            // The other numbers below those of Ethernet are not of frames that carry IP.
            (_, small) if small < ethertype::LOWEST => Ok(()),
            (_, protocol) => self.ethertype(protocol, view),
        }
    }

    /// BSD's loopback: the address family, in the byte order of who wrote it (or of the network: `DLT_LOOP`).
    pub(super) fn loopback(&mut self, view: View<'_>) -> Walked {
        let family = u32::from_le_bytes(view.array(0)?);
        // No family has a number beyond 16 bits, so that the byte order tells itself.
        let family = if family > 0xFFFF { family.swap_bytes() } else { family };
        self.family(family, view.skip(4)?)
    }

    /// OpenBSD's IPsec interface: family, SPI, flags.
    pub(super) fn encapsulated(&mut self, view: View<'_>) -> Walked {
        let family = u32::from_le_bytes(view.array(0)?);
        let family = if family > 0xFFFF { family.swap_bytes() } else { family };
        self.family(family, view.skip(12)?)
    }

    /// The log of OpenBSD's packet filter: length, family, ...; the length is without padding.
    pub(super) fn firewall_log(&mut self, view: View<'_>) -> Walked {
        let length = usize::from(view.u8(0)?).next_multiple_of(4);
        self.family(u32::from(view.u8(1)?), view.skip(length)?)
    }

    /// The log of Linux' netfilter: family, version, group, then attributes in the byte order of who wrote it.
    pub(super) fn netfilter_log(&mut self, view: View<'_>, is_big_endian: bool) -> Walked {
        const PAYLOAD: u16 = 9;
        let u16_at = |view: View<'_>, at| {
            view.array(at).map(if is_big_endian { u16::from_be_bytes } else { u16::from_le_bytes })
        };
        let mut rest = view.skip(4)?;
        while rest.len >= 4 {
            let (length, kind) = (u16_at(rest, 0)?, u16_at(rest, 2)?);
            if length < 4 {
                return Err(ProblemKind::BadLink);
            }
            // The upper two bits are flags of netlink's.
            if kind & 0x3FFF == PAYLOAD {
                return self.ip(rest.first(u32::from(length)).skip(4)?);
            }
            rest = rest.skip(usize::from(length).next_multiple_of(4))?;
        }
        Ok(())
    }

    /// AF_INET is 2 everywhere; AF_INET6 is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on
    /// macOS.
    fn family(&mut self, family: u32, view: View<'_>) -> Walked {
        match family {
            2 => self.ipv4(view),
            10 | 23 | 24 | 28 | 30 => self.ipv6(view),
            _ => Ok(()),
        }
    }
}
