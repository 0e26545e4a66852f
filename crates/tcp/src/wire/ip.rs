//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Malformed, Writer, be16, checksum::Checksum, set_be16};

/// The protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;
/// The longest IP header that this stack writes.
pub const MAX_HEADER: usize = 40;

/// The two ECN bits of the traffic class (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint 1.
    Ect1,
    /// ECN-capable transport, codepoint 0: what this stack sends.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// A received IP packet: the fields that a transport needs, and the transport's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// The protocol of `payload`, after IPv6 extension headers.
    pub protocol: u8,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Transport header and data; padding of the link layer is cut off.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads one packet of either version.
    ///
    /// # Errors
    /// See [`Malformed`]. An IPv4 header checksum that does not match is an error (RFC 1122, section 3.2.1.2).
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        match data.first().ok_or(Malformed::Truncated)? >> 4 {
            4 => Self::parse_v4(data),
            6 if cfg!(feature = "ipv6") => Self::parse_v6(data),
            _ => Err(Malformed::Header),
        }
    }

    fn parse_v4(data: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; 20] = data.first_chunk().ok_or(Malformed::Truncated)?;
        let header_len = usize::from(fixed[0] & 0xf) * 4;
        let total = usize::from(be16(fixed, 2)?);
        if header_len < 20 || total < header_len {
            return Err(Malformed::Header);
        }
        let header = data.get(..header_len).ok_or(Malformed::Truncated)?;
        let payload = data.get(header_len..total).ok_or(Malformed::Truncated)?;
        if !Checksum::new().header(header).is_valid() {
            return Err(Malformed::Checksum);
        }
        // More fragments, or an offset.
        if be16(fixed, 6)? & 0x3fff != 0 {
            return Err(Malformed::Fragment);
        }
        Ok(Self {
            src: v4_at(fixed, 12)?.into(),
            dst: v4_at(fixed, 16)?.into(),
            protocol: fixed[9],
            ecn: Ecn::from_bits(fixed[1]),
            ttl: fixed[8],
            payload,
        })
    }

    fn parse_v6(data: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; 40] = data.first_chunk().ok_or(Malformed::Truncated)?;
        let len = usize::from(be16(fixed, 4)?);
        let mut payload = data.get(40..40 + len).ok_or(Malformed::Truncated)?;
        let mut next = fixed[6];
        // Extension headers (RFC 8200, section 4). Each consumes at least 8 bytes, so the loop ends.
        loop {
            let skip = match next {
                // Hop-by-hop options, routing, destination options.
                0 | 43 | 60 => (usize::from(*payload.get(1).ok_or(Malformed::Truncated)?) + 1) * 8,
                // An atomic fragment is a whole packet (RFC 6946).
                44 if be16(payload, 2)? & 0xfff9 == 0 => 8,
                44 => return Err(Malformed::Fragment),
                _ => break,
            };
            next = *payload.first().ok_or(Malformed::Truncated)?;
            payload = payload.get(skip..).ok_or(Malformed::Truncated)?;
        }
        Ok(Self {
            src: v6_at(fixed, 8)?.into(),
            dst: v6_at(fixed, 24)?.into(),
            protocol: next,
            ecn: Ecn::from_bits(fixed[1] >> 4),
            ttl: fixed[7],
            payload,
        })
    }
}

/// Whether an address is IPv6; where that is compiled out, none is.
pub const fn is_v6(addr: IpAddr) -> bool {
    cfg!(feature = "ipv6") && addr.is_ipv6()
}

/// Whether two addresses are the same. Where IPv6 is compiled out, those of IPv4 are all there are.
#[inline]
pub fn is_same(a: IpAddr, b: IpAddr) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => a.to_bits() == b.to_bits(),
        _ => cfg!(feature = "ipv6") && a == b,
    }
}

fn v4_at(data: &[u8], at: usize) -> Result<Ipv4Addr, Malformed> {
    let bytes: &[u8; 4] = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Malformed::Truncated)?;
    Ok((*bytes).into())
}

fn v6_at(data: &[u8], at: usize) -> Result<Ipv6Addr, Malformed> {
    let bytes: &[u8; 16] = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Malformed::Truncated)?;
    Ok((*bytes).into())
}

/// The addresses of an IP header that a transport writes, for the header itself and for the pseudo-header.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Source.
    pub src: IpAddr,
    /// Destination; of the same version as `src`.
    pub dst: IpAddr,
}

impl Addresses {
    /// Whether both are IPv6.
    pub const fn is_v6(&self) -> bool {
        is_v6(self.dst)
    }

    /// The length of the IP header that [`write`](Self::write) makes.
    pub const fn header_len(&self) -> usize {
        if self.is_v6() { 40 } else { 20 }
    }

    /// The sum over the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1) for `len` transport bytes.
    pub fn pseudo_header(&self, protocol: u8, len: u32) -> Checksum {
        let sum = Checksum::new().word(u16::from(protocol)).word((len >> 16) as u16).word(len as u16);
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => sum.header(&src.octets()).header(&dst.octets()),
            (IpAddr::V6(src), IpAddr::V6(dst)) if cfg!(feature = "ipv6") => {
                sum.header(&src.octets()).header(&dst.octets())
            }
            _ => sum,
        }
    }

    /// Writes the IP header for `len` transport bytes into the front of `out` and returns its length.
    ///
    /// IPv4 packets carry DF, since segments never exceed the path MTU known (RFC 1191, section 3), and with it an
    /// identification that need not be unique (RFC 6864, section 4.1). A length beyond 65,535 belongs to a
    /// segment that the device splits; the field then holds what fits, as Linux does for its own offload.
    pub fn write(&self, out: &mut [u8], field: Fields, len: usize) -> usize {
        let mut w = Writer::new(out);
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                w.u8(0x45);
                w.u8(field.ecn as u8);
                w.u16(u16::try_from(20 + len).unwrap_or(u16::MAX));
                w.u16(field.id);
                w.u16(0x4000);
                w.u8(field.ttl);
                w.u8(field.protocol);
                w.u16(0);
                w.put(&src.octets());
                w.put(&dst.octets());
                let sum = Checksum::new().header(out.get(..20).unwrap_or(&[])).finish();
                set_be16(out, 10, sum);
                20
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) if cfg!(feature = "ipv6") => {
                w.u32(6 << 28 | (field.ecn as u32) << 20);
                w.u16(u16::try_from(len).unwrap_or(u16::MAX));
                w.u8(field.protocol);
                w.u8(field.ttl);
                w.put(&src.octets());
                w.put(&dst.octets());
                40
            }
            _ => 0,
        }
    }
}

/// What an IP header says beyond addresses and length.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// The protocol of the payload.
    pub protocol: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// IPv4 identification.
    pub id: u16,
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn addresses(v6: bool) -> Addresses {
        if v6 {
            Addresses { src: "fd00::1".parse().unwrap(), dst: "fd00::2".parse().unwrap() }
        } else {
            Addresses { src: "192.0.2.1".parse().unwrap(), dst: "192.0.2.2".parse().unwrap() }
        }
    }

    fn packet(v6: bool, payload: &[u8]) -> Vec<u8> {
        let mut out = std::vec![0; MAX_HEADER];
        let fields = Fields { protocol: TCP, ttl: 64, ecn: Ecn::Ect0, id: 7 };
        let len = addresses(v6).write(&mut out, fields, payload.len());
        out.truncate(len);
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn what_is_written_is_read_back() {
        for v6 in [false, true] {
            let mut bytes = packet(v6, b"hello");
            bytes.extend_from_slice(&[0; 9]); // Ethernet padding
            let packet = Packet::parse(&bytes).unwrap();
            assert_eq!((packet.src, packet.dst), (addresses(v6).src, addresses(v6).dst));
            assert_eq!((packet.protocol, packet.ecn, packet.ttl), (TCP, Ecn::Ect0, 64));
            assert_eq!(packet.payload, b"hello");
        }
    }

    #[test]
    fn a_damaged_ipv4_header_is_refused() {
        let mut bytes = packet(false, b"hello");
        bytes[8] ^= 1;
        assert_eq!(Packet::parse(&bytes).unwrap_err(), Malformed::Checksum);
    }

    #[test]
    fn fragments_are_refused_and_atomic_ones_are_whole_packets() {
        let mut v4 = packet(false, b"hello");
        v4[6] = 0x20; // more fragments
        v4[10..12].fill(0);
        let sum = Checksum::new().bytes(&v4[..20]).finish();
        set_be16(&mut v4, 10, sum);
        assert_eq!(Packet::parse(&v4).unwrap_err(), Malformed::Fragment);

        let mut v6 = packet(true, &[TCP, 0, 0, 0, 1, 2, 3, 4, 0xaa]);
        v6[6] = 44;
        assert_eq!(Packet::parse(&v6).unwrap().payload, [0xaa]);
        v6[43] = 1; // more fragments
        assert_eq!(Packet::parse(&v6).unwrap_err(), Malformed::Fragment);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut data: Vec<u8>, version in prop::sample::select(std::vec![4_u8, 6, 9])) {
            if let Some(first) = data.first_mut() {
                *first = version << 4 | (*first & 0xf);
            }
            if let Ok(packet) = Packet::parse(&data) {
                prop_assert!(packet.payload.len() < data.len());
            }
        }
    }
}
