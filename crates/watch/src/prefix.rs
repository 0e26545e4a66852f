//! A network: an address, and how many of its first bits count.

use std::{fmt, net::IpAddr, str::FromStr};

use thiserror::Error;

/// A network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// What is no network.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected an address or a network, such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct PrefixError;

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| PrefixError)?;
        let bits = bits.map_or_else(|| Ok(width(address)), str::parse).map_err(|_| PrefixError)?;
        if bits > width(address) { Err(PrefixError) } else { Ok(Self::of(address, bits)) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Prefix {
    /// The network of `bits` that `address` is in.
    pub fn of(address: IpAddr, bits: u8) -> Self {
        let bits = bits.min(width(address));
        let address = match address {
            IpAddr::V4(v4) => {
                IpAddr::V4((u32::from(v4) & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)).into())
            }
            IpAddr::V6(v6) => {
                IpAddr::V6((u128::from(v6) & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)).into())
            }
        };
        Self { address, bits }
    }

    /// How many bits count.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether an address is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && Self::of(address, self.bits) == *self
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_its_network_whatever_bits_follow() {
        for (text, shown) in [
            ("192.0.2.77/24", "192.0.2.0/24"),
            ("192.0.2.77", "192.0.2.77/32"),
            ("192.0.2.77/0", "0.0.0.0/0"),
            ("2001:db8:1:2::3/48", "2001:db8:1::/48"),
            ("2001:db8::/0", "::/0"),
        ] {
            let prefix: Prefix = text.parse().unwrap();
            assert_eq!(prefix.to_string(), shown);
            assert!(prefix.has(text.split('/').next().unwrap().parse().unwrap()), "{text}");
        }
        let all: Prefix = "0.0.0.0/0".parse().unwrap();
        assert!(!all.has("::1".parse().unwrap()), "another family");
        for text in ["", "x", "192.0.2.0/33", "::/129", "192.0.2.0/-1", "192.0.2.0/"] {
            assert_eq!(text.parse::<Prefix>(), Err(PrefixError), "{text}");
        }
    }
}
