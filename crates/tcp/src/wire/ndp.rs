//! Neighbour solicitations and advertisements (RFC 4861, sections 4.3 and 4.4). What is *not* here: routers' messages,
//! redirects.

use core::net::{IpAddr, Ipv6Addr};

use super::{
    Malformed, Writer,
    ethernet::Mac,
    ip::{self, Addresses, Packet},
    set_be16,
};

/// The length of the whole packet that [`Message::write`] makes: IPv6 header, message, one option.
pub const LEN: usize = 40 + 24 + 8;

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// The option with the sender's hardware address, and that with the target's.
const SOURCE: u8 = 1;
const TARGET: u8 = 2;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who has `target`?
    Solicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// The asker's hardware address, absent while it looks for duplicates (RFC 4862, section 5.4.2).
        mac: Option<Mac>,
    },
    /// `target` is at a hardware address.
    Advertisement {
        /// The advertised address.
        target: Ipv6Addr,
        /// Its hardware address.
        mac: Option<Mac>,
        /// It answers a solicitation.
        solicited: bool,
        /// It replaces what was known.
        replaces: bool,
    },
}

impl Message {
    /// Reads `packet`; `None` where it is no such message.
    ///
    /// # Errors
    /// What sections 7.1.1 and 7.1.2 say must be dropped: from beyond the link, damaged, too short, with an option of no
    /// length, or about a group.
    pub fn parse(packet: &Packet<'_>) -> Result<Option<Self>, Malformed> {
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (packet.src, packet.dst) else { return Ok(None) };
        let data = packet.payload;
        let kind = match data.first() {
            Some(&kind @ (SOLICITATION | ADVERTISEMENT)) if packet.protocol == ip::ICMPV6 => kind,
            _ => return Ok(None),
        };
        let (fixed, options) = data.split_first_chunk::<24>().ok_or(Malformed::Truncated)?;
        let sum = Addresses { src: packet.src, dst: packet.dst }.pseudo_header(ip::ICMPV6, data.len() as u32);
        if !sum.bytes(data).is_valid() {
            return Err(Malformed::Checksum);
        }
        let target: &[u8; 16] = fixed.last_chunk().ok_or(Malformed::Truncated)?;
        let target = Ipv6Addr::from(*target);
        if packet.ttl != 255 || fixed[1] != 0 || target.is_multicast() {
            return Err(Malformed::Header);
        }
        let mac = option(options, if kind == SOLICITATION { SOURCE } else { TARGET })?;
        if kind == SOLICITATION {
            let wrong = src.is_unspecified() && (mac.is_some() || !is_solicited_node(dst));
            return if wrong { Err(Malformed::Header) } else { Ok(Some(Self::Solicitation { target, mac })) };
        }
        let (solicited, replaces) = (fixed[4] & 0x40 != 0, fixed[4] & 0x20 != 0);
        if dst.is_multicast() && solicited {
            return Err(Malformed::Header);
        }
        Ok(Some(Self::Advertisement { target, mac, solicited, replaces }))
    }

    /// Writes the whole packet into the front of `out` and returns its length.
    pub fn write(&self, out: &mut [u8], src: Ipv6Addr, dst: Ipv6Addr) -> usize {
        let addresses = Addresses { src: src.into(), dst: dst.into() };
        let (kind, flags, target, mac, option) = match *self {
            Self::Solicitation { target, mac } => (SOLICITATION, 0, target, mac, SOURCE),
            Self::Advertisement { target, mac, solicited, replaces } => {
                (ADVERTISEMENT, u8::from(solicited) << 6 | u8::from(replaces) << 5, target, mac, TARGET)
            }
        };
        let len = if mac.is_some() { 32 } else { 24 };
        let fields = ip::Fields { protocol: ip::ICMPV6, ttl: 255, ecn: ip::Ecn::NotEct, id: 0 };
        let start = addresses.write(out, fields, len);
        let Some(message) = out.get_mut(start..start + len) else { return 0 };
        let mut w = Writer::new(message);
        w.put(&[kind, 0, 0, 0, flags, 0, 0, 0]);
        w.put(&target.octets());
        if let Some(mac) = mac {
            w.put(&[option, 1]);
            w.put(&mac.0);
        }
        let sum = addresses.pseudo_header(ip::ICMPV6, len as u32).bytes(message).finish();
        set_be16(message, 2, sum);
        start + len
    }
}

/// The hardware address in the option `kind`; other options are skipped.
fn option(mut options: &[u8], kind: u8) -> Result<Option<Mac>, Malformed> {
    let mut found = None;
    while let [this, words, ..] = *options {
        let len = usize::from(words) * 8;
        // Section 4.6: a length of zero must not be.
        let (option, rest) = options.split_at_checked(len).filter(|_| len > 0).ok_or(Malformed::Option)?;
        if this == kind && len == 8 {
            found = option.last_chunk().map(|mac| Mac(*mac));
        }
        options = rest;
    }
    if options.is_empty() { Ok(found) } else { Err(Malformed::Option) }
}

/// RFC 4291, section 2.7.1: the group that an address's solicitations go to.
pub fn solicited_node(addr: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = addr.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from(b) << 8 | u16::from(c))
}

fn is_solicited_node(group: Ipv6Addr) -> bool {
    group.segments()[..6] == [0xff02, 0, 0, 0, 0, 1] && group.octets()[12] == 0xff
}
