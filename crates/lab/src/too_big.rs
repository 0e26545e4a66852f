//! What a router answers to a packet that does not fit into its next link.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{
    checksum,
    frame::{put_word, word},
};

/// The router that answers: addresses in the networks of the path (`IPV4_NETWORK`, `IPV6_NETWORK`) that no host has.
const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 254);
const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, 0xfffe);

/// An ICMP error should be as long as possible without exceeding 576 bytes (RFC 1812, section 4.3.2.3) ...
const ICMP_MAX: usize = 576;
/// ... and an ICMPv6 error 1280 bytes (RFC 4443, section 2.4 (c)).
const ICMPV6_MAX: usize = 1_280;

/// "Fragmentation needed" (RFC 1191, section 4) or "packet too big" (RFC 4443, section 3.2) for `original`, a whole
/// packet from its IP header on. `None` where no answer may be sent.
pub(crate) fn answer(original: &[u8], mtu: u32) -> Option<Vec<u8>> {
    match original.first()? >> 4 {
        4 if original.len() >= 20 => fragmentation_needed(original, mtu),
        6 if original.len() >= 40 => packet_too_big(original, mtu),
        _ => None,
    }
}

/// Whether a router may cut this packet into fragments: IPv4 without "don't fragment".
pub(crate) fn may_fragment(packet: &[u8]) -> bool {
    packet.len() >= 20 && packet[0] >> 4 == 4 && packet[6] & 0x40 == 0
}

fn fragmentation_needed(original: &[u8], mtu: u32) -> Option<Vec<u8>> {
    const PROTOCOL_ICMP: u8 = 1;
    let header_len = usize::from(original[0] & 0x0f) * 4;
    let is_first_fragment = word(original, 6) & 0x1fff == 0;
    let is_icmp_error =
        original[9] == PROTOCOL_ICMP && original.get(header_len).is_none_or(|kind| !matches!(kind, 0 | 8 | 13 | 14));
    // RFC 1122, section 3.2.2: none about an ICMP error, none about a later fragment.
    if may_fragment(original) || is_icmp_error || !is_first_fragment {
        return None;
    }
    let quoted = &original[..original.len().min(ICMP_MAX - 28)];
    let mut packet = vec![0; 28];
    packet.extend_from_slice(quoted);
    let total = packet.len() as u16;

    packet[0] = 0x45;
    // RFC 1812, section 4.3.2.5: precedence "internetwork control".
    packet[1] = 0xc0;
    put_word(&mut packet, 2, total);
    packet[8] = 64;
    packet[9] = PROTOCOL_ICMP;
    packet[12..16].copy_from_slice(&ROUTER_V4.octets());
    packet[16..20].copy_from_slice(&original[12..16]);
    let sum = checksum::complement(&packet[..20]);
    put_word(&mut packet, 10, sum);

    // Destination unreachable, fragmentation needed and DF set.
    packet[20] = 3;
    packet[21] = 4;
    put_word(&mut packet, 26, u16::try_from(mtu).unwrap_or(u16::MAX));
    let sum = checksum::complement(&packet[20..]);
    put_word(&mut packet, 22, sum);
    Some(packet)
}

fn packet_too_big(original: &[u8], mtu: u32) -> Option<Vec<u8>> {
    const NEXT_HEADER_ICMPV6: u8 = 58;
    // RFC 4443, section 2.4 (e.1): none about an ICMPv6 error, whose types are below 128.
    if original[6] == NEXT_HEADER_ICMPV6 && original.get(40).is_none_or(|kind| *kind < 128) {
        return None;
    }
    let quoted = &original[..original.len().min(ICMPV6_MAX - 48)];
    let mut packet = vec![0; 48];
    packet.extend_from_slice(quoted);
    let payload_len = (packet.len() - 40) as u16;

    packet[0] = 0x60;
    put_word(&mut packet, 4, payload_len);
    packet[6] = NEXT_HEADER_ICMPV6;
    packet[7] = 64;
    packet[8..24].copy_from_slice(&ROUTER_V6.octets());
    packet[24..40].copy_from_slice(&original[8..24]);

    packet[40] = 2;
    packet[44..48].copy_from_slice(&mtu.to_be_bytes());
    // The pseudo header (RFC 8200, section 8.1): both addresses, the length and the next header.
    let pseudo = checksum::add(u64::from(payload_len) + u64::from(NEXT_HEADER_ICMPV6), &packet[8..40]);
    let sum = !checksum::fold(checksum::add(pseudo, &packet[40..]));
    put_word(&mut packet, 42, sum);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_v4(dont_fragment: bool) -> Vec<u8> {
        let mut packet = vec![0; 1_500];
        packet[0] = 0x45;
        put_word(&mut packet, 2, 1_500);
        packet[6] = if dont_fragment { 0x40 } else { 0 };
        packet[9] = 6;
        packet[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 19, 0, 1]);
        packet
    }

    #[test]
    fn the_answer_goes_to_the_sender_and_quotes_what_did_not_fit() {
        let original = tcp_v4(true);
        let answer = answer(&original, 1_400).unwrap();
        assert_eq!(answer.len(), ICMP_MAX);
        assert_eq!(&answer[16..20], &[198, 18, 0, 1]);
        assert_eq!((answer[20], answer[21], word(&answer, 26)), (3, 4, 1_400));
        assert_eq!(&answer[28..], &original[..ICMP_MAX - 28]);
        assert_eq!(checksum::complement(&answer[..20]), 0);
        assert_eq!(checksum::complement(&answer[20..]), 0);
    }

    #[test]
    fn ipv6_is_told_the_mtu() {
        let mut original = vec![0; 1_500];
        original[0] = 0x60;
        original[6] = 6;
        original[8..24].copy_from_slice(&[1; 16]);
        let answer = answer(&original, 1_300).unwrap();
        assert_eq!(answer.len(), ICMPV6_MAX);
        assert_eq!(&answer[24..40], &[1; 16]);
        assert_eq!(answer[40], 2);
        assert_eq!(u32::from_be_bytes([answer[44], answer[45], answer[46], answer[47]]), 1_300);
    }

    #[test]
    fn nothing_is_said_where_nothing_may_be_said() {
        assert_eq!(answer(&tcp_v4(false), 1_400), None, "it may be fragmented");
        let mut error = tcp_v4(true);
        error[9] = 1;
        error[20] = 3;
        assert_eq!(answer(&error, 1_400), None, "no error about an error");
        let mut later = tcp_v4(true);
        later[7] = 1;
        assert_eq!(answer(&later, 1_400), None, "not the first fragment");
        assert_eq!(answer(&[], 1_400), None);
    }
}
