//! The one text form of each value, and when two texts mean the same.
//!
//! Pure, and the same for every kind of host. What is *not* here: ranges, which the system itself knows best.

use std::collections::BTreeSet;

use fullpipe_knobs::{Address, planner::destination::BUFFER_OPTIONS};

use crate::{
    HostError,
    made::{self, Made},
    windows::{EXPECTED, RegistryData},
};

/// The attributes of a route that bound TCP, in the kernel's order (`RTAX_*`, linux/rtnetlink.h).
pub const ROUTE_ATTRIBUTES: [&str; 16] = [
    "mtu",
    "window",
    "rtt",
    "rttvar",
    "ssthresh",
    "cwnd",
    "advmss",
    "reordering",
    "hoplimit",
    "initcwnd",
    "features",
    "rto_min",
    "initrwnd",
    "quickack",
    "congctl",
    "fastopen_no_cookie",
];

/// `RTAX_FEATURE_ECN`, the one feature with a name of its own.
pub(crate) const FEATURE_ECN: u32 = 1;

/// The canonical text of `value` for `address`; `None` where the text means "absent", as 0 does for a route's metric.
pub fn canonical(address: &Address, value: &str) -> Result<Option<String>, HostError> {
    // The kernel shows tabs between numbers and a line end after them; a second line is no part of any value.
    let strange = |c: char| c.is_control() && c != '\t';
    if !matches!(address, Address::Registry { .. }) && value.trim().contains(strange) {
        return Err(invalid(address, value, "one line without control characters"));
    }
    let text = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match address {
        Address::Route { attribute, .. } if attribute == made::MADE => {
            let made: Made = text.parse().map_err(|expected| invalid(address, value, expected))?;
            Ok(Some(made.to_string()))
        }
        Address::Route { attribute, .. } => {
            route_value(attribute, &text).map_err(|expected| invalid(address, value, expected))
        }
        Address::Destination { option, .. } => {
            destination_value(option, &text).map_err(|expected| invalid(address, value, expected))
        }
        Address::Registry { .. } => {
            let data: RegistryData = value.parse().map_err(|_| invalid(address, value, EXPECTED))?;
            Ok(Some(data.to_string()))
        }
        Address::Link { property, .. } => {
            link_value(property, text).map(Some).map_err(|expected| invalid(address, value, expected))
        }
        _ => Ok(Some(text)),
    }
}

/// Whether two values of `address` mean the same: blanks, number bases, units and the order of sets don't count.
pub fn same_value(address: &Address, a: Option<&str>, b: Option<&str>) -> bool {
    let form = |value: Option<&str>| match value {
        Some(text) => canonical(address, text).unwrap_or_else(|_| Some(text.to_owned())),
        None => None,
    };
    match (form(a), form(b)) {
        (Some(a), Some(b)) => a == b || same_words(address, &a, &b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn same_words(address: &Address, a: &str, b: &str) -> bool {
    match address {
        Address::Sysctl(_) => same_sysctl(address, a, b),
        Address::Named { kind, .. } if kind == "transportfilter" => same_set(a, b),
        // PowerShell and netsh write the same words in different cases, and take them in any.
        Address::Netsh { .. } | Address::TcpSetting { .. } | Address::Named { .. } => a.eq_ignore_ascii_case(b),
        _ => false,
    }
}

fn same_sysctl(address: &Address, a: &str, b: &str) -> bool {
    // The kernel lists the algorithms in the order in which they were registered, whatever order was written.
    if matches!(address, Address::Sysctl(name) if name == "net.ipv4.tcp_allowed_congestion_control") {
        return same_set(a, b);
    }
    let numbers = |text: &str| text.split(' ').map(number).collect::<Option<Vec<_>>>();
    numbers(a).is_some_and(|a| Some(a) == numbers(b))
}

fn same_set(a: &str, b: &str) -> bool {
    a.split(' ').collect::<BTreeSet<_>>() == b.split(' ').collect::<BTreeSet<_>>()
}

/// A number as a sysctl takes it: decimal or hexadecimal with `0x`.
fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The kernel counts double, in a signed number of 32 bits.
const LARGEST_BUFFER: u32 = 0x3fff_ffff;

/// Err tells what was expected; 0 is what is not there.
fn destination_value(option: &str, text: &str) -> Result<Option<String>, &'static str> {
    if BUFFER_OPTIONS.iter().all(|known| known.name != option) {
        return Err("SO_RCVBUF or SO_SNDBUF");
    }
    match text.parse::<u32>() {
        Ok(0) => Ok(None),
        Ok(size) if size <= LARGEST_BUFFER => Ok(Some(size.to_string())),
        _ => Err("bytes, at most 1073741823"),
    }
}

/// Err tells what was expected.
pub(crate) fn route_value(attribute: &str, text: &str) -> Result<Option<String>, &'static str> {
    let (lock, text) = match text.strip_prefix("lock ") {
        Some(rest) => ("lock ", rest),
        None => ("", text),
    };
    let value = match attribute {
        "congctl" => {
            let name = !text.is_empty() && text.len() < 16 && !text.contains(char::is_whitespace);
            if !name {
                return Err("the name of a congestion control algorithm, at most 15 characters");
            }
            Some(text.to_owned())
        }
        "features" => match feature_bits(text).ok_or("`ecn`, or the bits as a number such as 0x1")? {
            0 => None,
            FEATURE_ECN => Some("ecn".to_owned()),
            bits => Some(format!("0x{bits:x}")),
        },
        "rto_min" | "rtt" | "rttvar" => match millis(text).ok_or("a time such as 200ms or 0.2s")? {
            0 => None,
            ms => Some(format!("{ms}ms")),
        },
        _ => match text.parse::<u32>().map_err(|_| "a whole number, with `lock` before it to pin it")? {
            0 => None,
            number => Some(number.to_string()),
        },
    };
    Ok(value.map(|value| format!("{lock}{value}")))
}

/// The feature bits of a canonical or a written text.
pub(crate) fn feature_bits(text: &str) -> Option<u32> {
    match text {
        "ecn" => Some(FEATURE_ECN),
        _ => u32::try_from(number(text)?).ok(),
    }
}

/// Milliseconds of `200ms`, `0.2s` or a bare number of milliseconds, as ip-route(8) takes them.
pub(crate) fn millis(text: &str) -> Option<u32> {
    if let Some(ms) = text.strip_suffix("ms") {
        return ms.parse().ok();
    }
    let Some(seconds) = text.strip_suffix('s') else { return text.parse().ok() };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let fraction: u32 = format!("{fraction:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(fraction)
}

fn link_value(property: &str, text: String) -> Result<String, &'static str> {
    match property.split_once(' ') {
        Some(("offload", _)) if text.is_empty() => Err("`on`, `off`, or the names of the features to leave on"),
        Some(("offload", _)) => Ok(text),
        None if property == "qdisc" => {
            let name = !text.is_empty() && text.len() < 16 && !text.contains(' ');
            if name { Ok(text) } else { Err("the kind of a queueing discipline, at most 15 characters") }
        }
        _ => text.parse::<u32>().map(|number| number.to_string()).map_err(|_| "a whole number"),
    }
}

fn invalid(address: &Address, value: &str, expected: &str) -> HostError {
    HostError::InvalidValue { address: address.clone(), value: value.to_owned(), expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().expect("an address")
    }

    #[test]
    fn blanks_bases_and_units_do_not_count() {
        let rmem = address("net.ipv4.tcp_rmem");
        assert!(same_value(&rmem, Some("4096\t131072  6291456\n"), Some("4096 131072 6291456")));
        assert!(!same_value(&rmem, Some("4096 131072 6291456"), Some("4096 131072 6291457")));
        assert!(same_value(&address("net.ipv4.tcp_fastopen"), Some("0x403"), Some("1027")));
        let rto = address("route default rto_min");
        assert!(same_value(&rto, Some("0.25s"), Some("250ms")) && same_value(&rto, Some("250"), Some("250ms")));
    }

    #[test]
    fn a_value_is_one_line() {
        let sack = address("net.ipv4.tcp_sack");
        assert_eq!(canonical(&sack, "1\n").expect("as /proc shows it").as_deref(), Some("1"));
        for value in ["1\nkernel.core_pattern = |/tmp/x", "1\r2", "1\x1b[2J", "1\0"] {
            canonical(&sack, value).expect_err(value);
            assert!(!same_value(&sack, Some(value), Some("1")), "{value:?}");
        }
    }

    #[test]
    fn a_set_of_algorithms_has_no_order() {
        let allowed = address("net.ipv4.tcp_allowed_congestion_control");
        assert!(same_value(&allowed, Some("cubic reno"), Some("reno cubic")));
        assert!(!same_value(&allowed, Some("cubic"), Some("reno cubic")));
    }

    #[test]
    fn zero_means_absent_for_a_metric_and_not_for_a_sysctl() {
        assert!(same_value(&address("route default window"), Some("0"), None));
        assert!(!same_value(&address("net.ipv4.tcp_ecn"), Some("0"), None));
    }

    #[test]
    fn the_type_of_a_registry_value_counts_and_its_base_does_not() {
        let window = address(r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize");
        assert!(same_value(&window, Some("0xFFFF"), Some("65535")));
        assert!(!same_value(&window, Some("\"65535\""), Some("65535")), "a text is no number");
        assert!(same_value(&address("netsh tcp global autotuninglevel"), Some("Normal"), Some("normal")));
    }

    #[test]
    fn an_absent_value_is_not_an_empty_one() {
        assert!(!same_value(&address("net.ipv4.ip_local_reserved_ports"), Some(""), None));
    }

    #[test]
    fn values_of_the_wrong_form_are_refused() {
        for (place, value) in [
            ("route default window", "many"),
            ("route default window", "-1"),
            ("route default window", "4294967296"),
            ("route default rto_min", "0.2001s"),
            ("route default rto_min", "s"),
            ("route default congctl", ""),
            ("route default features", "ecm"),
            ("link eth0 mtu", "1.5k"),
            ("link eth0 qdisc", "two words"),
            ("link eth0 offload tso", " "),
        ] {
            let error = canonical(&address(place), value).expect_err(value);
            assert!(matches!(error, HostError::InvalidValue { .. }), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_canonical_value_is_its_own_canonical_form(attribute in 0..ROUTE_ATTRIBUTES.len(), text in "(lock )?[a-z0-9.]{0,8}(ms|s)?") {
            let address = Address::Route { destination: "default".into(), attribute: ROUTE_ATTRIBUTES[attribute].into() };
            if let Ok(Some(once)) = canonical(&address, &text) {
                let twice = canonical(&address, &once).expect("canonical");
                proptest::prop_assert_eq!(twice, Some(once));
            }
        }
    }
}
