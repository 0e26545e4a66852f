//! What carries other packets: IP in IP, EtherIP, GRE, VXLAN, Geneve, GTP-U, CAPWAP, MPLS over IP or UDP, TZSP. What is *not* here: encrypted
//! tunnels, of which nothing can be seen.
//!
//! What tells tunnels between the same two hosts apart goes into the digest, but only where both directions have the
//! same: neither UDP's source port (a hash of the inner flow), nor labels, call numbers and tunnel endpoint identifiers,
//! which each end chooses for what it receives, nor GRE's key, which mirrored ports of virtual switches choose by direction,
//! nor the network identifiers of VXLAN and Geneve: where both ends route, that of the network that a packet is for is taken
//! (asymmetric IRB, RFC 9135).

use super::{Datagram, protocol};
use crate::{
    link::ethertype,
    problem::ProblemKind,
    segment::Sink,
    view::{View, Walked},
    walk::Walk,
};

/// The UDP ports that tunnels go to (IANA's register; 8472 is what Linux had for VXLAN before there was one).
mod port {
    pub(super) const GTP_U: u16 = 2152;
    pub(super) const GRE: u16 = 4754;
    pub(super) const VXLAN: u16 = 4789;
    pub(super) const VXLAN_GPE: u16 = 4790;
    pub(super) const CAPWAP: u16 = 5247;
    pub(super) const GENEVE: u16 = 6081;
    pub(super) const MPLS: u16 = 6635;
    pub(super) const VXLAN_LINUX: u16 = 8472;
    /// Not registered (0x9090).
    pub(super) const TZSP: u16 = 37_008;
}

impl<S: Sink> Walk<'_, S> {
    pub(super) fn tunnel(&mut self, next: u8, view: View<'_>, datagram: &Datagram) -> Walked {
        match next {
            protocol::UDP => self.udp(view, datagram),
            protocol::GRE => self.gre(view, datagram),
            protocol::IPV4 | protocol::IPV6 | protocol::MPLS | protocol::ETHERIP | protocol::ETHERNET => {
                self.deeper()?;
                self.enter_tunnel(datagram.ends(), u64::from(next));
                match next {
                    protocol::IPV4 => self.ipv4(view),
                    protocol::IPV6 => self.ipv6(view),
                    protocol::MPLS => self.mpls(view),
                    // RFC 3378, section 3: a header of 2 bytes.
                    protocol::ETHERIP => self.ethernet(view.skip(2)?),
                    // RFC 8986, section 10.1.
                    _ => self.ethernet(view),
                }
            }
            _ => Ok(()),
        }
    }

    fn udp(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        // A datagram that was cut here is none of ours, as far as anybody can tell.
        let (Ok(port), Ok(rest)) = (view.u16(2), view.skip(8)) else { return Ok(()) };
        // A controller answers from that port.
        let port = if view.u16(0) == Ok(port::CAPWAP) { port::CAPWAP } else { port };
        match port {
            port::VXLAN | port::VXLAN_LINUX | port::VXLAN_GPE => self.vxlan(port, rest, datagram),
            port::GENEVE => self.geneve(rest, datagram),
            port::GTP_U => self.gtp_u(rest, datagram),
            port::TZSP => self.tzsp(rest, datagram),
            // RFC 8086.
            port::GRE => self.gre(rest, datagram),
            port::CAPWAP => self.capwap(rest, datagram),
            port::MPLS => {
                self.enter_tunnel(datagram.ends(), u64::from(port));
                self.mpls(rest)
            }
            _ => Ok(()),
        }
    }

    /// RFC 7348, section 5; the generic protocol extension is draft-ietf-nvo3-vxlan-gpe, section 3.
    fn vxlan(&mut self, port: u16, view: View<'_>, datagram: &Datagram) -> Walked {
        let Ok([flags, _, _, next, ..]) = view.array::<8>(0) else { return Ok(()) };
        // "I" says that there is a network identifier: without it, this is something else on that port.
        if flags & 0x08 == 0 {
            return Ok(());
        }
        self.enter_tunnel(datagram.ends(), u64::from(port::VXLAN));
        let inner = view.skip(8)?;
        match next {
            // "P" says that the next protocol is given.
            1 if port == port::VXLAN_GPE && flags & 0x04 != 0 => self.ipv4(inner),
            2 if port == port::VXLAN_GPE && flags & 0x04 != 0 => self.ipv6(inner),
            _ => self.ethernet(inner),
        }
    }

    /// RFC 8926, section 3.
    fn geneve(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        let Ok([options, _, high, low, ..]) = view.array::<8>(0) else { return Ok(()) };
        if options >> 6 != 0 {
            return Ok(());
        }
        self.enter_tunnel(datagram.ends(), u64::from(port::GENEVE));
        let inner = view.skip(8 + usize::from(options & 0x3F) * 4)?;
        self.ethertype(u16::from_be_bytes([high, low]), inner)
    }

    /// 3GPP TS 29.281, section 5.1.
    fn gtp_u(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        let Ok([flags, 255, ..]) = view.array::<8>(0) else { return Ok(()) };
        // Version 1, protocol type GTP.
        if flags >> 4 != 3 {
            return Ok(());
        }
        let mut length = 8;
        if flags & 0x07 != 0 {
            length = 12;
            while view.u8(length - 1)? != 0 {
                length += usize::from(view.u8(length)?).max(1) * 4;
            }
        }
        self.enter_tunnel(datagram.ends(), u64::from(port::GTP_U));
        self.ip(view.skip(length)?)
    }

    /// What wireless access points exchange with their controllers (RFC 5415, section 4.3), unless it is encrypted (DTLS) or a fragment.
    fn capwap(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        let Ok([0, length, binding, flags, ..]) = view.array::<8>(0) else { return Ok(()) };
        // "F" says that it is a part, and "K" that it only keeps the channel alive.
        if flags & 0x88 != 0 {
            return Ok(());
        }
        self.enter_tunnel(datagram.ends(), u64::from(port::CAPWAP));
        let inner = view.skip(usize::from(length >> 3) * 4)?;
        match (binding & 1, binding >> 1 & 0x1F) {
            // "T" says that the frame is that of the wireless binding: 1 is IEEE 802.11.
            (1, 1) => self.wifi_by_controller(inner),
            (1, _) => Ok(()),
            _ => self.ethernet(inner),
        }
    }

    /// TaZmen Sniffer Protocol, in which MikroTik's routers send what they capture: version 1, a type (0 and 1 have a packet), the
    /// protocol, and fields up to one that ends them (application note AN001 of Network Chemistry; Wireshark's `packet-tzsp.c`).
    fn tzsp(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        let Ok([1, 0 | 1, 0, 1]) = view.array::<4>(0) else { return Ok(()) };
        let mut length = 4;
        loop {
            length += match view.u8(length)? {
                0 => 1,
                1 => break,
                _ => 2 + usize::from(view.u8(length + 1)?),
            };
        }
        self.enter_tunnel(datagram.ends(), u64::from(port::TZSP));
        self.ethernet(view.skip(length + 1)?)
    }

    /// RFC 2784 with the key and sequence number of RFC 2890; version 1 is that of PPTP (RFC 2637, section 4.1).
    fn gre(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        self.deeper()?;
        let (flags, carried) = (view.u16(0)?, view.u16(2)?);
        let (has_checksum, has_key) = (flags & 0xC000 != 0, flags & 0x2000 != 0);
        let (has_sequence, has_ack) = (flags & 0x1000 != 0, flags & 0x0080 != 0);
        let words = |has: bool| if has { 4 } else { 0 };
        let key_at = 4 + words(has_checksum);
        match flags & 7 {
            0 => {
                self.enter_tunnel(datagram.ends(), u64::from(protocol::GRE) << 32);
                let inner = view.skip(key_at + words(has_key) + words(has_sequence))?;
                match carried {
                    ethertype::ERSPAN => self.ethernet(inner.skip(if has_sequence { 8 } else { 0 })?),
                    ethertype::ERSPAN_3 => {
                        let has_more = inner.u8(11)? & 1 != 0;
                        self.ethernet(inner.skip(if has_more { 20 } else { 12 })?)
                    }
                    // A router hands a web cache what it caught, from version 2 on behind a header of its own (WCCP; Wireshark's `packet-gre.c`).
                    ethertype::WCCP => self.ip(inner.skip(if inner.u8(0)? >> 4 == 4 { 0 } else { 4 })?),
                    // Between Aruba's access points and controllers; the number says for which queue.
                    0x8200..=0x8370 if carried & 0xF == 0 => self.wifi_by_controller(inner),
                    _ => self.ethertype(carried, inner),
                }
            }
            1 => {
                self.enter_tunnel(datagram.ends(), u64::from(protocol::GRE) << 33);
                let length = 8 + words(has_sequence) + words(has_ack);
                // One that carries nothing only acknowledges.
                if has_sequence { self.ppp(view.skip(length)?) } else { Ok(()) }
            }
            _ => Err(ProblemKind::BadIp),
        }
    }
}
