//! A network of addresses.

use core::{fmt, net::IpAddr, str::FromStr};

/// A network in CIDR notation (RFC 4632, section 3.1; RFC 4291, section 2.3), or one address. The bits beyond its length
/// are zeros.
///
/// Its text is that of a routing table: `10.0.0.0/24`, and `10.0.0.1` for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// A text that is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseNetworkError;

impl fmt::Display for ParseNetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an address or a network, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32")
    }
}

impl core::error::Error for ParseNetworkError {}

impl Network {
    /// The network of `length` bits that `address` is in; of all of its bits where that is more.
    pub fn new(address: IpAddr, length: u8) -> Self {
        let length = length.min(width(address));
        let other = u32::from(width(address) - length);
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) & u32::MAX.checked_shl(other).unwrap_or(0)).into()),
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & u128::MAX.checked_shl(other).unwrap_or(0)).into()),
        };
        Self { address, length }
    }

    /// One address.
    pub fn host(address: IpAddr) -> Self {
        Self { address, length: width(address) }
    }

    /// The network's own address: its first.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits its addresses share.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether an address is in it. An IPv4 address that is mapped into IPv6 (RFC 4291, section 2.5.5.2), as a socket for both
    /// shows it, counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && Self::new(address, self.length) == *self
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| ParseNetworkError)?;
        let length = length.map_or_else(|| Ok(width(address)), str::parse).map_err(|_| ParseNetworkError)?;
        if length > width(address) { Err(ParseNetworkError) } else { Ok(Self::new(address, length)) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        if self.length == width(self.address) { Ok(()) } else { write!(f, "/{}", self.length) }
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        for (text, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
        ] {
            let parsed = network(text);
            assert!(parsed.contains(inside.parse().unwrap()), "{text} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{text} {outside}");
        }
    }

    #[test]
    fn it_is_the_same_whatever_bits_follow_and_reads_as_a_routing_table_has_it() {
        for (text, shown) in [
            ("192.0.2.77/24", "192.0.2.0/24"),
            ("192.0.2.77", "192.0.2.77"),
            ("192.0.2.77/32", "192.0.2.77"),
            ("192.0.2.77/0", "0.0.0.0/0"),
            ("2001:db8:1:2::3/48", "2001:db8:1::/48"),
            ("2001:db8::/0", "::/0"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(network(text).to_string(), shown);
        }
        assert_eq!(Network::host("10.0.0.1".parse().unwrap()), network("10.0.0.1/32"));
        assert_eq!(Network::new("10.0.0.1".parse().unwrap(), 200), network("10.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "x",
            "192.0.2.0/33",
            "::/129",
            "far.example",
            "192.0.2.0/",
            "192.0.2.0/-1",
            "192.0.2/24",
            "192.0.2.0/256",
        ] {
            assert_eq!(text.parse::<Network>(), Err(ParseNetworkError), "{text}");
        }
    }
}
