//! "Packet too big" and "fragmentation needed" (RFC 1191, RFC 8201): which segment they are about. What is *not* here:
//! all other messages.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullpipe_units::SeqNum;

use super::protocol;
use crate::{
    segment::{Address, Endpoint, Flow, Sink, TooBig},
    view::{View, Walked},
    walk::Walk,
};

impl<S: Sink> Walk<'_, S> {
    /// ICMP for IPv4: type 3, code 4, with the next hop's MTU in bytes 6 and 7 (RFC 1191, section 4).
    pub(super) fn icmp(&mut self, view: View<'_>) -> Walked {
        if let Ok([3, 4, _, _, _, _, high, low]) = view.array(0) {
            self.too_big(u32::from(u16::from_be_bytes([high, low])), view.skip(8)?);
        }
        Ok(())
    }

    /// ICMPv6: type 2, with the next hop's MTU in bytes 4 to 7 (RFC 4443, section 3.2).
    pub(super) fn icmpv6(&mut self, view: View<'_>) -> Walked {
        if let Ok([2, _, _, _, mtu @ ..]) = view.array::<8>(0) {
            self.too_big(u32::from_be_bytes(mtu), view.skip(8)?);
        }
        Ok(())
    }

    fn too_big(&mut self, mtu: u32, quoted: View<'_>) {
        let Some((flow, seq)) = quoted_segment(quoted, self.outer) else { return };
        let mtu = (mtu != 0).then_some(mtu);
        self.sink.too_big(&TooBig { number: self.number, at_ns: self.at_ns, about: flow, seq, mtu });
    }
}

/// The flow and sequence number of the packet that a message quotes: its IP header and at least 8 bytes more.
fn quoted_segment(view: View<'_>, outer: u32) -> Option<(Flow, SeqNum)> {
    let (from, to, tcp): (IpAddr, IpAddr, View<'_>) = match view.u8(0).ok()? >> 4 {
        4 => {
            let first_fragment = view.u16(6).ok()? & 0x1FFF == 0;
            let is_tcp = view.u8(9).ok()? == protocol::TCP;
            let header_len = usize::from(view.u8(0).ok()? & 0xF) * 4;
            let (from, to) = (view.array::<4>(12).ok()?, view.array::<4>(16).ok()?);
            let tcp = (is_tcp && first_fragment).then(|| view.skip(header_len).ok())??;
            (Ipv4Addr::from(from).into(), Ipv4Addr::from(to).into(), tcp)
        }
        6 if view.u8(6).ok()? == protocol::TCP => {
            let (from, to) = (view.array::<16>(8).ok()?, view.array::<16>(24).ok()?);
            (Ipv6Addr::from(from).into(), Ipv6Addr::from(to).into(), view.skip(40).ok()?)
        }
        _ => return None,
    };
    let from = Endpoint { address: Address::from(from), port: tcp.u16(0).ok()? };
    let to = Endpoint { address: Address::from(to), port: tcp.u16(2).ok()? };
    Some((Flow { from, to, outer }, SeqNum::new(tcp.u32(4).ok()?)))
}
