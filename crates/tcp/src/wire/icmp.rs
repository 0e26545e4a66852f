//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and the errors that a TCP connection must hear of.

use core::net::IpAddr;

use fullpipe_units::SeqNum;

#[cfg(feature = "platforms")]
use super::udp;
use super::{Malformed, be16, be32, checksum::Checksum, ip};

/// What an ICMP message says to this stack.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// An echo request; the whole message, to be sent back with another type.
    EchoRequest(&'a [u8]),
    /// An error about a TCP segment that this host sent.
    Error(Error),
    /// Anything else.
    Other,
}

/// What an error says about the path or the peer (RFC 9293, section 3.9.2.2; RFC 5927).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The packet exceeds the next hop's MTU; the MTU where the message tells it, else 0.
    TooBig(u32),
    /// Network or host unreachable, source route failed, time exceeded: soft errors.
    Soft,
    /// Administratively prohibited (codes 9, 10 and 13): soft, or hard for some.
    Prohibited,
    /// Protocol or port unreachable: hard errors.
    Hard,
}

/// An ICMP error about one of this host's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What happened to it.
    pub reason: Reason,
    /// Who had sent the segment: this host.
    pub src: IpAddr,
    /// Whom the segment was for.
    pub dst: IpAddr,
    /// The segment's source port.
    pub src_port: u16,
    /// The segment's destination port.
    pub dst_port: u16,
    /// The ports of the UDP datagram that the segment was in, its source's first.
    #[cfg(feature = "platforms")]
    pub udp_ports: Option<(u16, u16)>,
    /// The segment's sequence number, by which a forged error is distinguished from a true one (RFC 5927, section 4.1).
    pub seq: SeqNum,
}

impl<'a> Message<'a> {
    /// Reads the payload of `packet`, whose protocol is [`ip::ICMP`] or [`ip::ICMPV6`].
    ///
    /// # Errors
    /// A message that is too short or damaged.
    pub fn parse(packet: &ip::Packet<'a>) -> Result<Self, Malformed> {
        let data = packet.payload;
        let len = u32::try_from(data.len()).map_err(|_| Malformed::Header)?;
        let head: &[u8; 8] = data.first_chunk().ok_or(Malformed::Truncated)?;
        let v6 = packet.protocol == ip::ICMPV6;
        let sum = if v6 {
            ip::Addresses { src: packet.src, dst: packet.dst }.pseudo_header(ip::ICMPV6, len)
        } else {
            Checksum::new()
        };
        if !sum.bytes(data).is_valid() {
            return Err(Malformed::Checksum);
        }
        let reason = match (v6, head[0], head[1]) {
            (false, 8, 0) | (true, 128, 0) => return Ok(Self::EchoRequest(data)),
            // Fragmentation needed: the MTU is in the low half (RFC 1191, section 4), absent from old routers.
            (false, 3, 4) => Reason::TooBig(u32::from(be16(head, 6)?)),
            (true, 2, _) => Reason::TooBig(be32(head, 4)?),
            (false, 3, 2 | 3) | (true, 1, 1 | 4) => Reason::Hard,
            (false, 3, 9 | 10 | 13) => Reason::Prohibited,
            (false, 3 | 11, _) | (true, 1 | 3, _) => Reason::Soft,
            _ => return Ok(Self::Other),
        };
        Ok(Self::quoted(reason, data.get(8..).unwrap_or(&[])).map_or(Self::Other, Self::Error))
    }

    /// The segment that an error quotes. It is cut short by design, so the lengths inside it prove nothing.
    fn quoted(reason: Reason, quote: &[u8]) -> Option<Error> {
        let (src, dst, protocol, tcp): (IpAddr, IpAddr, u8, &[u8]) = match quote.first()? >> 4 {
            4 => {
                let fixed: &[u8; 20] = quote.first_chunk()?;
                // Only the first fragment holds the ports.
                let first_fragment = be16(fixed, 6).ok()? & 0x1fff == 0;
                if !first_fragment {
                    return None;
                }
                let src: [u8; 4] = *fixed[12..].first_chunk()?;
                let dst: [u8; 4] = *fixed[16..].first_chunk()?;
                (src.into(), dst.into(), fixed[9], quote.get(usize::from(fixed[0] & 0xf) * 4..)?)
            }
            6 if cfg!(feature = "ipv6") => {
                let fixed: &[u8; 40] = quote.first_chunk()?;
                let src: [u8; 16] = *fixed[8..].first_chunk()?;
                let dst: [u8; 16] = *fixed[24..].first_chunk()?;
                (src.into(), dst.into(), fixed[6], quote.get(40..)?)
            }
            _ => return None,
        };
        #[cfg(feature = "platforms")]
        let (protocol, tcp, udp_ports) = if protocol == udp::PROTOCOL {
            let ports = (be16(tcp, 0).ok()?, be16(tcp, 2).ok()?);
            (ip::TCP, tcp.get(udp::HEADER..)?, Some(ports))
        } else {
            (protocol, tcp, None)
        };
        if protocol != ip::TCP {
            return None;
        }
        Some(Error {
            reason,
            src,
            dst,
            src_port: be16(tcp, 0).ok()?,
            dst_port: be16(tcp, 2).ok()?,
            #[cfg(feature = "platforms")]
            udp_ports,
            seq: SeqNum::new(be32(tcp, 4).ok()?),
        })
    }
}

/// Turns the echo request in `message` into the reply (RFC 792; RFC 4443, section 4.2); `addresses` are the reply's.
pub fn make_echo_reply(message: &mut [u8], addresses: &ip::Addresses) {
    let v6 = addresses.is_v6();
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let Some(head) = message.first_chunk_mut::<4>() else { return };
    *head = [if v6 { 129 } else { 0 }, 0, 0, 0];
    let sum = if v6 { addresses.pseudo_header(ip::ICMPV6, len) } else { Checksum::new() };
    let sum = sum.bytes(message).finish();
    super::set_be16(message, 2, sum);
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn packet(protocol: u8, payload: &[u8]) -> ip::Packet<'_> {
        let (src, dst): (IpAddr, IpAddr) = if protocol == ip::ICMPV6 {
            ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
        } else {
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap())
        };
        ip::Packet { src, dst, protocol, ecn: ip::Ecn::NotEct, ttl: 64, payload }
    }

    #[test]
    fn an_echo_request_becomes_a_valid_reply() {
        let mut request = std::vec![8, 0, 0, 0, 1, 2, 3, 4, b'x'];
        let sum = Checksum::new().bytes(&request).finish();
        super::super::set_be16(&mut request, 2, sum);
        assert!(matches!(Message::parse(&packet(ip::ICMP, &request)), Ok(Message::EchoRequest(_))));
        let p = packet(ip::ICMP, &[]);
        make_echo_reply(&mut request, &ip::Addresses { src: p.dst, dst: p.src });
        assert_eq!(request[0], 0);
        assert!(Checksum::new().bytes(&request).is_valid());
    }

    #[test]
    fn fragmentation_needed_names_the_segment_and_the_mtu() {
        let quote = ip::Addresses { src: "192.0.2.2".parse().unwrap(), dst: "192.0.2.1".parse().unwrap() };
        let mut message = std::vec![3, 4, 0, 0, 0, 0, 5, 0];
        let mut head = [0; 20];
        quote.write(&mut head, ip::Fields { protocol: ip::TCP, ttl: 1, ecn: ip::Ecn::NotEct, id: 0 }, 1480);
        message.extend_from_slice(&head);
        message.extend_from_slice(&[0x1f, 0x90, 0, 80, 0, 0, 0, 9]);
        let sum = Checksum::new().bytes(&message).finish();
        super::super::set_be16(&mut message, 2, sum);
        let Ok(Message::Error(error)) = Message::parse(&packet(ip::ICMP, &message)) else { panic!("not an error") };
        assert_eq!(error.reason, Reason::TooBig(1280));
        assert_eq!((error.src_port, error.dst_port, error.seq), (8080, 80, SeqNum::new(9)));
        assert_eq!((error.src, error.dst), (quote.src, quote.dst));
    }

    proptest! {
        #[test]
        fn any_message_is_read_or_refused(kind in 0_u8..16, code in 0_u8..6, mut data: Vec<u8>) {
            // The checksum is made to fit, so that the quote's reader is reached.
            data.splice(0..0, [kind, code, 0, 0]);
            let sum = Checksum::new().bytes(&data).finish();
            super::super::set_be16(&mut data, 2, sum);
            let _read_or_refused = Message::parse(&packet(ip::ICMP, &data)).is_ok();
            let _read_or_refused = Message::parse(&packet(ip::ICMPV6, &data)).is_ok();
        }
    }
}
