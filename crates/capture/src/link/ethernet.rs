//! Ethernet and its like (802.3, FDDI, token ring, IP over Fibre Channel), LLC and SNAP, and what stands between an
//! Ethernet header and IP: VLAN and other tags, MPLS labels. What is *not* here: PPPoE's PPP (`ppp`).

use crate::{
    problem::ProblemKind,
    segment::Sink,
    view::{View, Walked},
    walk::Walk,
};

/// EtherTypes (IEEE's and IANA's lists), and the numbers of GRE that look like them.
pub(crate) mod ethertype {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ERSPAN_3: u16 = 0x22EB;
    pub(crate) const BRIDGED: u16 = 0x6558;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const IPV6: u16 = 0x86DD;
    pub(crate) const PPP: u16 = 0x880B;
    pub(crate) const WCCP: u16 = 0x883E;
    pub(crate) const MPLS: u16 = 0x8847;
    pub(crate) const MPLS_UPSTREAM: u16 = 0x8848;
    pub(crate) const PPPOE: u16 = 0x8864;
    pub(crate) const PROVIDER_VLAN: u16 = 0x88A8;
    pub(crate) const ERSPAN: u16 = 0x88BE;
    pub(crate) const BACKBONE_BRIDGE: u16 = 0x88E7;
    pub(crate) const VN_TAG: u16 = 0x8926;
    pub(crate) const PORT_EXTENSION: u16 = 0x893F;
    pub(crate) const OLD_VLANS: [u16; 3] = [0x9100, 0x9200, 0x9300];
    /// Below this, the field is the length of an 802.3 frame.
    pub(crate) const LOWEST: u16 = 0x0600;
}

impl<S: Sink> Walk<'_, S> {
    /// An Ethernet frame from its destination address on.
    #[inline]
    pub(crate) fn ethernet(&mut self, view: View<'_>) -> Walked {
        let header: [u8; 14] = view.array(0)?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = header;
        self.stamp([u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from(u32::from_le_bytes([i, j, k, l]))]);
        let carried = View { bytes: &view.bytes[14..], len: view.len - 14 };
        match u16::from_be_bytes([high, low]) {
            ethertype::IPV4 => self.ipv4(carried),
            other => self.ethertype(other, carried),
        }
    }

    /// What an EtherType names.
    pub(crate) fn ethertype(&mut self, carried: u16, view: View<'_>) -> Walked {
        match carried {
            ethertype::IPV4 => return self.ipv4(view),
            ethertype::IPV6 => return self.ipv6(view),
            _ => self.deeper()?,
        }
        match carried {
            ethertype::VLAN | ethertype::PROVIDER_VLAN => self.vlan(view),
            other if ethertype::OLD_VLANS.contains(&other) => self.vlan(view),
            ethertype::MPLS | ethertype::MPLS_UPSTREAM => self.mpls(view),
            ethertype::PPPOE => self.pppoe(view),
            ethertype::PPP => self.ppp(view),
            ethertype::BRIDGED => self.ethernet(view),
            // 802.1ah: a service tag of 4 bytes, then the customer's frame.
            ethertype::BACKBONE_BRIDGE => self.ethernet(view.skip(4)?),
            ethertype::VN_TAG => self.ethertype(view.u16(4)?, view.skip(6)?),
            // 802.1BR: a tag of 6 bytes.
            ethertype::PORT_EXTENSION => self.ethertype(view.u16(6)?, view.skip(8)?),
            length if length < ethertype::LOWEST => self.llc(view.first(u32::from(length))),
            _ => Ok(()),
        }
    }

    /// 802.1Q. Its number only tells copies of a packet apart, not connections: many captures have one direction of a
    /// connection tagged and the other not, or tagged otherwise.
    fn vlan(&mut self, view: View<'_>) -> Walked {
        let [tag_high, tag_low, high, low] = view.array(0)?;
        self.stamp([u64::from(u16::from_be_bytes([tag_high & 0xF, tag_low])), 0]);
        self.ethertype(u16::from_be_bytes([high, low]), view.skip(4)?)
    }

    /// A stack of labels (RFC 3032). What lies under it is nowhere said; its first four bits tell (RFC 4928).
    pub(crate) fn mpls(&mut self, mut view: View<'_>) -> Walked {
        loop {
            self.deeper()?;
            let is_last = view.u8(2)? & 1 == 1;
            view = view.skip(4)?;
            if is_last {
                break;
            }
        }
        match view.u8(0)? >> 4 {
            4 => self.ipv4(view),
            6 => self.ipv6(view),
            // A pseudowire's control word (RFC 4448, section 4.6).
            0 => self.ethernet(view.skip(4)?),
            _ => self.ethernet(view),
        }
    }

    /// LLC (802.2), with SNAP or without.
    pub(crate) fn llc(&mut self, view: View<'_>) -> Walked {
        match view.array(0) {
            Ok([0xAA, 0xAA, 0x03]) => {
                let [_, _, _, a, b, c, high, low] = view.array(0)?;
                match [a, b, c] {
                    // RFC 1042, and 802.1H's bridge tunnel.
                    [0, 0, 0] | [0, 0, 0xF8] => self.ethertype(u16::from_be_bytes([high, low]), view.skip(8)?),
                    // RFC 2684, section 5.2: bridged Ethernet over ATM, with its padding.
                    [0, 0x80, 0xC2] if [high, low] == [0, 1] || [high, low] == [0, 7] => {
                        self.deeper()?;
                        self.ethernet(view.skip(10)?)
                    }
                    _ => Ok(()),
                }
            }
            Ok([0x06, 0x06, 0x03]) => self.ip(view.skip(3)?),
            // ISO's own: a network layer identifier follows (RFC 2684, section 4).
            Ok([0xFE, 0xFE, 0x03]) => self.nlpid(view.skip(3)?),
            _ => Ok(()),
        }
    }

    /// A network layer protocol identifier (ISO/IEC TR 9577).
    pub(crate) fn nlpid(&mut self, view: View<'_>) -> Walked {
        match view.u8(0)? {
            0xCC => self.ipv4(view.skip(1)?),
            0x8E => self.ipv6(view.skip(1)?),
            0xCF => self.ppp(view.skip(1)?),
            0x80 if view.array(1)? == [0, 0, 0] => self.ethertype(view.u16(4)?, view.skip(6)?),
            _ => Ok(()),
        }
    }

    pub(super) fn fddi(&mut self, view: View<'_>) -> Walked {
        // Asynchronous LLC frames are 0x50 to 0x57.
        if view.u8(0)? & 0xF8 != 0x50 {
            return Ok(());
        }
        self.stamp([u64::from_le_bytes(view.array(1)?), u64::from(u32::from_le_bytes(view.array(9)?))]);
        self.llc(view.skip(13)?)
    }

    pub(super) fn token_ring(&mut self, view: View<'_>) -> Walked {
        // LLC frames have the frame type 01.
        if view.u8(1)? >> 6 != 1 {
            return Ok(());
        }
        self.stamp([u64::from_le_bytes(view.array(2)?), u64::from(u32::from_le_bytes(view.array(10)?))]);
        let has_route = view.u8(8)? & 0x80 != 0;
        let route = if has_route { usize::from(view.u8(14)? & 0x1F) } else { 0 };
        self.llc(view.skip(14 + route)?)
    }

    /// RFC 2625: two addresses of 8 bytes, then LLC.
    pub(super) fn fibre_channel(&mut self, view: View<'_>) -> Walked {
        self.stamp([u64::from_le_bytes(view.array(0)?), u64::from_le_bytes(view.array(8)?)]);
        self.llc(view.skip(16)?)
    }

    /// Ethernet with a switch's own tag of 4 bytes between the addresses and the type.
    pub(super) fn tagged_ethernet(&mut self, view: View<'_>) -> Walked {
        self.stamp([u64::from_le_bytes(view.array(0)?), u64::from(u32::from_le_bytes(view.array(8)?))]);
        match view.u16(16) {
            Ok(carried) => self.ethertype(carried, view.skip(18)?),
            Err(_) => Err(ProblemKind::HeadersCut),
        }
    }
}
