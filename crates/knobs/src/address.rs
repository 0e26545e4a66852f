//! Where a setting lives on a machine.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Where one setting lives. Its text form is what users, plans and the journal see: `net.ipv4.tcp_rmem`,
/// `route 10.0.0.0/24 window`, `link eth0 mtu`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Address {
    /// A sysctl by its dotted name.
    Sysctl(String),
    /// One attribute of one route.
    Route {
        /// The destination as the routing table shows it: `10.0.0.0/24`, `default`, `2001:db8::/32`.
        destination: String,
        /// `window`, `initcwnd`, `initrwnd`, `congctl`, `mtu`, `advmss`, `quickack`, `rto_min`, ...
        attribute: String,
    },
    /// An option of every socket whose other end is at one destination: `destination 10.7.0.0/16 SO_RCVBUF`.
    Destination {
        /// Where the other end is, as the routing table shows it: `10.7.0.0/16`, `2001:db8::1`.
        destination: String,
        /// `SO_RCVBUF`, `SO_SNDBUF`: bytes, as setsockopt(2) takes them.
        option: String,
    },
    /// One property of one network interface.
    Link {
        /// The interface's name.
        device: String,
        /// `mtu`, `qdisc`, `txqueuelen`, `gso_max_size`, `offload tso`, `ring rx`, ...
        property: String,
    },
    /// A socket option, which only the application can set: `socket SO_RCVBUF`. The catalogue speaks of it; no host
    /// reads or writes it.
    Socket(String),
    /// A value of the Windows registry: `registry HKLM\SYSTEM\...\Parameters\TcpWindowSize`.
    Registry {
        /// The key with its short root: `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`.
        key: String,
        /// The value's name.
        value: String,
    },
    /// A parameter of Windows' netsh: `netsh tcp global autotuninglevel`.
    Netsh {
        /// Where it lives: `tcp global`, `tcp heuristics`, `tcp supplemental internet`, `winsock`.
        context: String,
        /// The parameter.
        parameter: String,
    },
    /// A parameter of a Windows TCP template (Get-NetTCPSetting): `tcpsetting Internet MinRtoMs`.
    TcpSetting {
        /// The template: `Internet`, `DatacenterCustom`.
        template: String,
        /// The parameter.
        parameter: String,
    },
    /// A setting of a kind that has one name only: `netoffload ReceiveSideScaling`, `call SetSocketRxBuffers`.
    Named {
        /// `netoffload` (Windows' global offloads), `adapter` (an offload of one adapter), `transportfilter` (which template a connection gets), `call` (a
        /// function of a device's library), `build` (fixed when a device's program is built).
        kind: String,
        /// Its name.
        name: String,
    },
}

/// The kinds of [`Address::Named`].
const NAMED: [&str; 5] = ["netoffload", "adapter", "transportfilter", "call", "build"];

/// The properties of an interface that are recognised from the end of an address.
const LINK_ENDS: [&str; 7] = ["mtu", "*JumboPacket", "*RSS", "*RscIPv4", "*RscIPv6", "*LsoV2IPv4", "*LsoV2IPv6"];

/// A text that names no place for a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not the name of a setting; expected a form such as `net.ipv4.tcp_rmem`, `route 10.0.0.0/24 window` or `link eth0 mtu`"
)]
pub struct ParseAddressError {
    /// What was given.
    pub text: String,
}

impl Address {
    /// A sysctl by its dotted name.
    pub fn sysctl(name: &str) -> Self {
        Self::Sysctl(name.to_owned())
    }

    /// A parameter of netsh by its context: `tcp global`, `autotuninglevel`.
    pub fn netsh(context: &str, parameter: &str) -> Self {
        Self::Netsh { context: context.to_owned(), parameter: parameter.to_owned() }
    }

    /// A parameter of a TCP template: `Internet`, `MinRtoMs`.
    pub fn tcp_setting(template: &str, parameter: &str) -> Self {
        Self::TcpSetting { template: template.to_owned(), parameter: parameter.to_owned() }
    }

    /// The address after a first word that tells its kind; `None` where the word is none or the rest is malformed.
    fn of_kind(kind: &str, rest: &str) -> Option<Self> {
        let pair = |text: &str, separator: char| {
            let (first, last) = text.rsplit_once(separator)?;
            (!first.is_empty() && !last.is_empty()).then(|| (first.to_owned(), last.to_owned()))
        };
        match kind {
            // Windows' names of interfaces have spaces.
            "link" => LINK_ENDS.iter().find_map(|property| {
                let device = rest.strip_suffix(property)?.strip_suffix(' ')?;
                (!device.is_empty()).then(|| Self::Link { device: device.to_owned(), property: (*property).to_owned() })
            }),
            "registry" => pair(rest, '\\').map(|(key, value)| Self::Registry { key, value }),
            "netsh" => pair(rest, ' ').map(|(context, parameter)| Self::Netsh { context, parameter }),
            "tcpsetting" => pair(rest, ' ').map(|(template, parameter)| Self::TcpSetting { template, parameter }),
            _ if NAMED.contains(&kind) && !rest.is_empty() => {
                Some(Self::Named { kind: kind.to_owned(), name: rest.to_owned() })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(name) => f.write_str(name),
            Self::Route { destination, attribute } => write!(f, "route {destination} {attribute}"),
            Self::Destination { destination, option } => write!(f, "destination {destination} {option}"),
            Self::Link { device, property } => write!(f, "link {device} {property}"),
            Self::Socket(option) => write!(f, "socket {option}"),
            Self::Registry { key, value } => write!(f, "registry {key}\\{value}"),
            Self::Netsh { context, parameter } => write!(f, "netsh {context} {parameter}"),
            Self::TcpSetting { template, parameter } => write!(f, "tcpsetting {template} {parameter}"),
            Self::Named { kind, name } => write!(f, "{kind} {name}"),
        }
    }
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let wrong = || ParseAddressError { text: text.to_owned() };
        if let Some((kind, rest)) = text.split_once(' ')
            && let Some(address) = Self::of_kind(kind, rest)
        {
            return Ok(address);
        }
        let mut words = text.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("route"), Some(destination), Some(attribute)) if !attribute.is_empty() => {
                Ok(Self::Route { destination: destination.to_owned(), attribute: attribute.to_owned() })
            }
            (Some("destination"), Some(destination), Some(option)) if !option.is_empty() => {
                Ok(Self::Destination { destination: destination.to_owned(), option: option.to_owned() })
            }
            (Some("link"), Some(device), Some(property)) if !property.is_empty() => {
                Ok(Self::Link { device: device.to_owned(), property: property.to_owned() })
            }
            (Some("socket"), Some(option), None) if !option.is_empty() => Ok(Self::Socket(option.to_owned())),
            (Some(name), None, None)
                if name.contains('.')
                    && !name.contains("..")
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b)) =>
            {
                Ok(Self::Sysctl(name.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = ParseAddressError;

    fn try_from(text: String) -> Result<Self, ParseAddressError> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_kind_comes_back_from_its_text() {
        for text in [
            "net.ipv4.tcp_rmem",
            "route 10.80.0.0/24 window",
            "destination 10.80.0.0/24 SO_RCVBUF",
            "link eth0 offload tso",
            "link eth0 mtu",
            "link Ethernet 2 mtu",
            "link vEthernet (LAN) *JumboPacket",
            "socket SO_RCVBUF",
            r"registry HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\X\NetworkThrottlingIndex",
            "netsh tcp global autotuninglevel",
            "tcpsetting InternetCustom MinRtoMs",
            "netoffload ReceiveSideScaling",
            "call SetSocketRxBuffers",
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_text_that_names_no_place_is_refused() {
        for text in ["", "tcp_rmem", "route default", "registry Tcpip", "netsh autotuninglevel", "a..b", "net.ipv4 x"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(text in "(route|destination|link|socket|registry|netsh|tcpsetting|call)? ?[a-z.\\\\ ]{0,20}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
