//! Which route a connection takes, and how to write it down.

use core::net::IpAddr;

use fullpipe_units::Bytes;

use crate::{Address, Settings};

/// The `window` attributes that bound connections to `peer`: the one of its route, or all where the peer is not known.
pub(super) fn windows_towards(settings: &Settings, peer: Option<IpAddr>) -> Vec<(Address, Bytes)> {
    let all = settings.values.iter().filter_map(|(address, value)| match address {
        Address::Route { destination, attribute } if attribute == "window" => {
            let limit: u64 = value.as_deref()?.trim().parse().ok()?;
            // The kernel takes 0 for "no bound".
            (limit > 0).then_some((destination.as_str(), address.clone(), Bytes::new(limit)))
        }
        _ => None,
    });
    let all: Vec<_> = all.collect();
    let Some(peer) = peer else {
        return all.into_iter().map(|(_, address, limit)| (address, limit)).collect();
    };
    let known = settings.routes.iter().map(|route| route.destination.as_str());
    let best =
        known.chain(all.iter().map(|(destination, ..)| *destination)).filter_map(|route| covers(route, peer)).max();
    let in_use = |destination: &str| best.is_some() && covers(destination, peer) == best;
    all.into_iter().filter(|(to, ..)| in_use(to)).map(|(_, address, limit)| (address, limit)).collect()
}

/// The prefix length with which a route covers `peer`; `None` where it doesn't.
pub(super) fn covers(destination: &str, peer: IpAddr) -> Option<u32> {
    if destination == "default" {
        return Some(0);
    }
    let (network, length) = match destination.split_once('/') {
        Some((network, length)) => (network.parse::<IpAddr>().ok()?, Some(length.parse::<u32>().ok()?)),
        None => (destination.parse::<IpAddr>().ok()?, None),
    };
    let (network, peer, width) = match (network, peer) {
        (IpAddr::V4(network), IpAddr::V4(peer)) => (u128::from(u32::from(network)), u128::from(u32::from(peer)), 32),
        (IpAddr::V6(network), IpAddr::V6(peer)) => (u128::from(network), u128::from(peer), 128),
        _ => return None,
    };
    let length = length.unwrap_or(width);
    let host_bits = width.checked_sub(length)?;
    // A shift by the whole width is the default route, which covers everything.
    let same = network.checked_shr(host_bits).unwrap_or(0) == peer.checked_shr(host_bits).unwrap_or(0);
    same.then_some(length)
}

/// The command that gives a route its attribute back, with what else is known of the route, which `ip route change`
/// would drop otherwise.
pub(super) fn restore_command(settings: &Settings, destination: &str, attribute: &str, value: &str) -> String {
    let family = if destination.contains(':') { " -6" } else { "" };
    let mut command = format!("ip{family} route change {destination}");
    if let Some(route) = settings.routes.iter().find(|route| route.destination == destination) {
        if let Some(gateway) = &route.gateway {
            command.push_str(&format!(" via {gateway}"));
        }
        command.push_str(&format!(" dev {}", route.device));
    }
    for (address, other) in &settings.values {
        if let (Address::Route { destination: to, attribute: name }, Some(other)) = (address, other)
            && to == destination
            && name != attribute
        {
            command.push_str(&format!(" {name} {other}"));
        }
    }
    command.push_str(&format!(" {attribute} {value}"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Route;

    fn settings(windows: &[(&str, &str)], routes: &[&str]) -> Settings {
        let mut settings = Settings::default();
        for (destination, window) in windows {
            let address = Address::Route { destination: (*destination).to_owned(), attribute: "window".to_owned() };
            settings.values.insert(address, Some((*window).to_owned()));
        }
        let route =
            |to: &&str| Route { destination: (*to).to_owned(), device: "eth0".to_owned(), gateway: None, copy: None };
        settings.routes = routes.iter().map(route).collect();
        settings
    }

    fn limits(settings: &Settings, peer: &str) -> Vec<u64> {
        let peer = Some(peer.parse().unwrap());
        windows_towards(settings, peer).into_iter().map(|(_, limit)| limit.get()).collect()
    }

    #[test]
    fn the_most_specific_route_is_the_one_in_use() {
        let windows = [("default", "10000"), ("10.80.0.0/24", "64512")];
        let settings = settings(&windows, &["10.80.0.0/24", "10.80.0.9", "default"]);
        assert_eq!(limits(&settings, "10.80.0.2"), [64_512]);
        assert_eq!(limits(&settings, "192.0.2.1"), [10_000]);
        assert_eq!(limits(&settings, "10.80.0.9"), [] as [u64; 0]);
    }

    #[test]
    fn families_are_kept_apart() {
        let settings = settings(&[("2001:db8::/32", "20000"), ("10.0.0.0/8", "30000")], &[]);
        assert_eq!(limits(&settings, "2001:db8::1"), [20_000]);
        assert_eq!(limits(&settings, "10.1.1.1"), [30_000]);
    }

    #[test]
    fn an_unknown_peer_makes_every_bounded_route_count() {
        let settings = settings(&[("default", "10000"), ("10.80.0.0/24", "64512")], &[]);
        assert_eq!(windows_towards(&settings, None).len(), 2);
    }
}
