//! Ethernet II headers (IEEE 802.3, RFC 894, RFC 2464). What is *not* here: VLAN tags, 802.2 headers.

use core::net::{IpAddr, Ipv6Addr};

use super::{Malformed, be16};

/// The length of the header.
pub const HEADER: usize = 14;
/// The type of IPv4.
pub const IPV4: u16 = 0x0800;
/// The type of ARP.
pub const ARP: u16 = 0x0806;
/// The type of IPv6.
pub const IPV6: u16 = 0x86dd;

/// A hardware address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Every station.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether it can be one station's.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }

    /// RFC 2464, section 7: where packets for an IPv6 group go.
    pub const fn of_group(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Whom it is for.
    pub dst: Mac,
    /// Who sent it.
    pub src: Mac,
    /// What it carries.
    pub ether_type: u16,
    /// The packet, perhaps padded.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// A frame shorter than its header.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (head, payload) = data.split_first_chunk::<HEADER>().ok_or(Malformed::Truncated)?;
        let mac =
            |at: usize| head.get(at..).and_then(|rest| rest.first_chunk()).map_or_else(Mac::default, |mac| Mac(*mac));
        Ok(Self { dst: mac(0), src: mac(6), ether_type: be16(head, 12)?, payload })
    }
}

/// A header.
pub fn header(dst: Mac, src: Mac, ether_type: u16) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..6].copy_from_slice(&dst.0);
    out[6..12].copy_from_slice(&src.0);
    out[12..].copy_from_slice(&ether_type.to_be_bytes());
    out
}

/// The type of packets between addresses of this version.
pub const fn type_of(addr: IpAddr) -> u16 {
    if addr.is_ipv6() { IPV6 } else { IPV4 }
}
