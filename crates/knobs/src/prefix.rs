//! The connections that settings for one destination are for: those whose other end is in a network that is not everything.

use core::net::IpAddr;

use fullpipe_units::Network;

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
        meant: Network,
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

/// Reads one destination, as a routing table has it: `10.0.0.0/24`, `10.0.0.1`.
///
/// # Errors
/// [`PrefixError`] for what a route to one destination can't have.
pub fn parse_destination(text: &str) -> Result<Network, PrefixError> {
    let given = || text.to_owned();
    if text == "default" {
        return Err(PrefixError::Everything { text: given() });
    }
    let network: Network = text.parse().map_err(|_| PrefixError::NoPrefix { text: given() })?;
    // What a network was read from begins with an address.
    let address = text.split('/').next().and_then(|address| address.parse().ok()).unwrap_or_else(|| network.address());
    match network.length() {
        0 => Err(PrefixError::Everything { text: given() }),
        _ if network.address() != address => Err(PrefixError::HostBits { text: given(), meant: network, address }),
        _ => Ok(network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_single_destination_is_refused_with_what_was_meant() {
        for text in ["10.0.0.0/24", "10.0.0.1", "2001:db8::/32", "2001:db8::1"] {
            assert_eq!(parse_destination(text).unwrap().to_string(), text);
        }
        for text in ["", "far.example", "10.0.0/24", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129"] {
            assert!(matches!(parse_destination(text), Err(PrefixError::NoPrefix { .. })), "{text}");
        }
        for text in ["default", "0.0.0.0/0", "::/0", "10.0.0.1/0"] {
            assert!(matches!(parse_destination(text), Err(PrefixError::Everything { .. })), "{text}");
        }
        let error = parse_destination("10.1.2.3/16").unwrap_err();
        assert!(error.to_string().contains("10.1.0.0/16 is the network, and 10.1.2.3 that one host"), "{error}");
    }
}
