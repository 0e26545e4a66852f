//! The connections that settings for one destination are for: those whose other end is in a prefix.

use core::{fmt, net::IpAddr, str::FromStr};

/// A network that is not everything, or one address. Its text is that of the routing table: `10.0.0.0/24`, `10.0.0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// A text that names no single destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// It is no prefix at all.
    #[error("`{text}` is no prefix; expected an address or a network, such as 192.0.2.7, 10.0.0.0/16 or 2001:db8::/32")]
    NoPrefix {
        /// What was given.
        text: String,
    },
    /// The address goes on after the prefix.
    #[error("`{text}` has bits beyond the length of its prefix; {meant} is the network, and {address} that one host")]
    HostBits {
        /// What was given.
        text: String,
        /// The network that it is in.
        meant: Prefix,
        /// The address.
        address: IpAddr,
    },
    /// It is the whole Internet.
    #[error(
        "`{text}` is every destination, which is what a default route is for; leave --destination out to tune the whole host"
    )]
    Everything {
        /// What was given.
        text: String,
    },
}

impl Prefix {
    /// A network by its address; `None` where bits go on after the prefix, or where it is everything.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let is_network = (1..=width(address)).contains(&length) && masked(address, length) == address;
        is_network.then_some(Self { address, length })
    }

    /// One host.
    pub fn host(address: IpAddr) -> Self {
        Self { address, length: width(address) }
    }

    /// The network's own address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether an address is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.length) == self.address
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let wrong = || PrefixError::NoPrefix { text: text.to_owned() };
        if text == "default" {
            return Err(PrefixError::Everything { text: text.to_owned() });
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length = length.unwrap_or_else(|| width(address));
        let network = masked(address, length);
        match length {
            _ if length > width(address) => Err(wrong()),
            0 => Err(PrefixError::Everything { text: text.to_owned() }),
            _ if network != address => {
                Err(PrefixError::HostBits { text: text.to_owned(), meant: Self { address: network, length }, address })
            }
            _ => Ok(Self { address, length }),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == width(self.address) {
            return self.address.fmt(f);
        }
        write!(f, "{}/{}", self.address, self.length)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    let other = u32::from(width(address).saturating_sub(length));
    match address {
        IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) & u32::MAX.checked_shl(other).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & u128::MAX.checked_shl(other).unwrap_or(0)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_reads_as_the_routing_table_shows_it_and_has_its_addresses() {
        for text in ["10.0.0.0/24", "10.0.0.1", "2001:db8::/32", "2001:db8::1"] {
            assert_eq!(of(text).to_string(), text);
        }
        assert_eq!(of("10.0.0.1/32"), Prefix::host("10.0.0.1".parse().unwrap()));
        let has = |prefix: &str, address: &str| of(prefix).has(address.parse().unwrap());
        assert!(has("10.0.0.0/24", "10.0.0.255") && !has("10.0.0.0/24", "10.0.1.0"));
        assert!(has("2001:db8::/32", "2001:db8:ffff::1") && !has("2001:db8::/32", "10.0.0.1"));
    }

    #[test]
    fn what_is_no_single_destination_is_refused_with_what_was_meant() {
        for text in ["", "far.example", "10.0.0/24", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129"] {
            assert!(matches!(text.parse::<Prefix>(), Err(PrefixError::NoPrefix { .. })), "{text}");
        }
        for text in ["default", "0.0.0.0/0", "::/0", "10.0.0.1/0"] {
            assert!(matches!(text.parse::<Prefix>(), Err(PrefixError::Everything { .. })), "{text}");
        }
        let error = "10.1.2.3/16".parse::<Prefix>().unwrap_err();
        assert!(error.to_string().contains("10.1.0.0/16 is the network, and 10.1.2.3 that one host"), "{error}");
    }
}
