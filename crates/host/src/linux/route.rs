//! The attributes of routes as settings: text here, metrics in netlink.

use std::collections::HashMap;

use fullpipe_knobs::{Address, Route, Settings};

use super::{
    net::{Destination, LinkNumber, NetError, Netlink, RouteEntry, RouteMetric, RouteSpec},
    network, unknown,
};
use crate::{
    HostError, ROUTE_ATTRIBUTES,
    made::{MADE, Made},
    value::{feature_bits, millis},
};

pub(super) fn collect(settings: &mut Settings) -> Result<(), HostError> {
    let mut net = Netlink::open()?;
    let devices: HashMap<LinkNumber, String> = net.links()?.into_iter().map(|link| (link.number, link.name)).collect();
    for route in net.routes()? {
        let destination = route.destination().to_string();
        let device = route.link().and_then(|number| devices.get(&number)).cloned().unwrap_or_default();
        for (attribute, value) in ROUTE_ATTRIBUTES.iter().zip(texts(&route)) {
            let address = Address::Route { destination: destination.clone(), attribute: (*attribute).to_owned() };
            // Of several routes to one destination the first one is in force.
            settings.values.entry(address).or_insert(value);
        }
        settings.routes.push(Route {
            destination,
            gateway: route.gateway().map(|gateway| gateway.to_string()),
            copy: Some(&route).filter(|route| route.is_plain()).map(|route| whole(route, &device)),
            device,
        });
    }
    Ok(())
}

/// The route in one line, as [`MADE`] has it.
fn whole(route: &RouteEntry, device: &str) -> String {
    let made = Made {
        gateway: route.gateway(),
        device: device.to_owned(),
        source: route.source(),
        onlink: route.is_onlink(),
        metrics: texts(route)
            .take(ROUTE_ATTRIBUTES.len())
            .enumerate()
            .filter_map(|(place, text)| Some((place, text?)))
            .collect(),
    };
    made.to_string()
}

/// What a route reads that no line makes.
const OTHER: &str = "otherwise (several next hops, a nexthop object, or one that expires)";

fn read_made(net: &mut Netlink, destination: Destination) -> Result<Option<String>, NetError> {
    let route = match net.route(destination) {
        Ok(route) => route,
        Err(NetError::NoSuchRoute { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(number) = route.link().filter(|_| route.is_plain()) else { return Ok(Some(OTHER.to_owned())) };
    let device = net.links()?.into_iter().find(|link| link.number == number).map(|link| link.name);
    Ok(Some(whole(&route, &device.unwrap_or_default())))
}

/// Makes the route, or removes the one that is in force.
fn write_made(net: &mut Netlink, destination: Destination, made: Option<&Made>) -> Result<(), NetError> {
    let Some(made) = made else {
        let route = net.route(destination)?;
        return net.remove_route(&route);
    };
    let mut kinds = made.metrics.iter().filter_map(|(place, value)| Some((u16::try_from(place + FIRST).ok()?, value)));
    let metrics = kinds.try_fold(Vec::new(), |metrics, (kind, value)| changed(&metrics, kind, Some(value)));
    let spec = RouteSpec {
        destination,
        link: net.link(&made.device)?.number,
        gateway: made.gateway,
        source: made.source,
        onlink: made.onlink,
        metrics: metrics.unwrap_or_default(),
    };
    net.add_route(&spec)
}

fn made(address: &Address, value: &str) -> Result<Made, HostError> {
    value.parse().map_err(|expected: &str| HostError::InvalidValue {
        address: address.clone(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    })
}

fn parse_destination(address: &Address, destination: &str) -> Result<Destination, HostError> {
    destination.parse().map_err(|error| unknown(address, &format!("{error}")))
}

pub(super) fn read(address: &Address, destination: &str, attribute: &str) -> Result<Option<String>, HostError> {
    if attribute == MADE {
        let destination = parse_destination(address, destination)?;
        return Netlink::open()
            .and_then(|mut net| read_made(&mut net, destination))
            .map_err(|source| network("read", address, source));
    }
    let (destination, kind) = parse(address, destination, attribute)?;
    let route = Netlink::open()
        .and_then(|mut net| net.route(destination))
        .map_err(|source| network("read", address, source))?;
    Ok(text(route.metrics(), kind))
}

pub(super) fn writable(address: &Address, destination: &str, attribute: &str) -> Result<(), HostError> {
    if attribute == MADE {
        return match read(address, destination, attribute)? {
            None => Ok(()),
            Some(_) => Err(HostError::ReadOnly {
                address: address.clone(),
                why: "where there is a route to exactly this destination already; set that one's attributes",
            }),
        };
    }
    let (destination, _) = parse(address, destination, attribute)?;
    Netlink::open()
        .and_then(|mut net| net.route(destination))
        .and_then(|route| route.check_replaceable())
        .map_err(|source| network("write", address, source))
}

pub(super) fn write(
    address: &Address,
    destination: &str,
    attribute: &str,
    value: Option<&str>,
) -> Result<(), HostError> {
    let failed = |source| network("write", address, source);
    if attribute == MADE {
        let destination = parse_destination(address, destination)?;
        let made = value.map(|value| made(address, value)).transpose()?;
        return Netlink::open().and_then(|mut net| write_made(&mut net, destination, made.as_ref())).map_err(failed);
    }
    let (destination, kind) = parse(address, destination, attribute)?;
    let mut net = Netlink::open().map_err(failed)?;
    let present = net.route(destination).map_err(failed)?;
    let metrics = changed(present.metrics(), kind, value).ok_or_else(|| HostError::InvalidValue {
        address: address.clone(),
        value: value.unwrap_or_default().to_owned(),
        expected: "a value that fits the metric".to_owned(),
    })?;
    net.replace_metrics(destination, metrics).map_err(failed)
}

fn parse(address: &Address, destination: &str, attribute: &str) -> Result<(Destination, u16), HostError> {
    let destination = parse_destination(address, destination)?;
    let place = ROUTE_ATTRIBUTES.iter().position(|name| *name == attribute);
    let kind = place.and_then(|place| u16::try_from(place + FIRST).ok());
    let kind =
        kind.ok_or_else(|| unknown(address, &format!("a route's attributes are {}", ROUTE_ATTRIBUTES.join(", "))))?;
    Ok((destination, kind))
}

/// `RTAX_MTU`, the first metric; [`ROUTE_ATTRIBUTES`] counts on from it.
const FIRST: usize = 2;

fn texts(route: &RouteEntry) -> impl Iterator<Item = Option<String>> + '_ {
    (2u16..).map(|kind| text(route.metrics(), kind))
}

/// The metric of this kind as text.
fn text(metrics: &[RouteMetric], kind: u16) -> Option<String> {
    let value = metrics.iter().find(|metric| number(metric) == kind).and_then(show)?;
    let locked = locks(metrics) & (1 << kind) != 0;
    Some(if locked { format!("lock {value}") } else { value })
}

/// The metrics with this one set or absent, all others as they are; `None` where the text is no value.
fn changed(metrics: &[RouteMetric], kind: u16, value: Option<&str>) -> Option<Vec<RouteMetric>> {
    let (lock, value) = match value.map(|value| (value, value.strip_prefix("lock "))) {
        Some((_, Some(rest))) => (true, Some(rest)),
        Some((value, None)) => (false, Some(value)),
        None => (false, None),
    };
    let locks = if lock { locks(metrics) | 1 << kind } else { locks(metrics) & !(1 << kind) };
    let mut changed: Vec<_> = metrics
        .iter()
        .filter(|metric| number(metric) != kind && !matches!(metric, RouteMetric::Lock(_)))
        .cloned()
        .collect();
    if let Some(value) = value {
        changed.push(make(kind, value)?);
    }
    if locks != 0 {
        changed.push(RouteMetric::Lock(locks));
    }
    changed.sort_by_key(number);
    Some(changed)
}

/// Which metrics are pinned: bit n for the metric of number n.
fn locks(metrics: &[RouteMetric]) -> u32 {
    metrics.iter().find_map(|metric| if let RouteMetric::Lock(bits) = metric { Some(*bits) } else { None }).unwrap_or(0)
}

/// `RTAX_*`.
fn number(metric: &RouteMetric) -> u16 {
    netlink_packet_core::Nla::kind(metric)
}

/// The kernel keeps a smoothed RTT in eighths of a millisecond and its variance in quarters (tcp_metrics, ip-route(8)).
const RTT_SCALE: u32 = 8;
const RTTVAR_SCALE: u32 = 4;

fn show(metric: &RouteMetric) -> Option<String> {
    Some(match metric {
        RouteMetric::Rtt(value) => format!("{}ms", value / RTT_SCALE),
        RouteMetric::RttVar(value) => format!("{}ms", value / RTTVAR_SCALE),
        RouteMetric::RtoMin(value) => format!("{value}ms"),
        RouteMetric::Features(crate::value::FEATURE_ECN) => "ecn".to_owned(),
        RouteMetric::Features(bits) => format!("0x{bits:x}"),
        RouteMetric::CcAlgo(name) => name.clone(),
        RouteMetric::Mtu(value)
        | RouteMetric::Window(value)
        | RouteMetric::SsThresh(value)
        | RouteMetric::Cwnd(value)
        | RouteMetric::Advmss(value)
        | RouteMetric::Reordering(value)
        | RouteMetric::Hoplimit(value)
        | RouteMetric::InitCwnd(value)
        | RouteMetric::InitRwnd(value)
        | RouteMetric::QuickAck(value)
        | RouteMetric::FastopenNoCookie(value) => value.to_string(),
        _ => return None,
    })
}

fn make(kind: u16, value: &str) -> Option<RouteMetric> {
    let name = *ROUTE_ATTRIBUTES.get(usize::from(kind).checked_sub(FIRST)?)?;
    let plain = || value.parse::<u32>().ok();
    Some(match name {
        "mtu" => RouteMetric::Mtu(plain()?),
        "window" => RouteMetric::Window(plain()?),
        "rtt" => RouteMetric::Rtt(millis(value)?.checked_mul(RTT_SCALE)?),
        "rttvar" => RouteMetric::RttVar(millis(value)?.checked_mul(RTTVAR_SCALE)?),
        "ssthresh" => RouteMetric::SsThresh(plain()?),
        "cwnd" => RouteMetric::Cwnd(plain()?),
        "advmss" => RouteMetric::Advmss(plain()?),
        "reordering" => RouteMetric::Reordering(plain()?),
        "hoplimit" => RouteMetric::Hoplimit(plain()?),
        "initcwnd" => RouteMetric::InitCwnd(plain()?),
        "features" => RouteMetric::Features(feature_bits(value)?),
        "rto_min" => RouteMetric::RtoMin(millis(value)?),
        "initrwnd" => RouteMetric::InitRwnd(plain()?),
        "quickack" => RouteMetric::QuickAck(plain()?),
        "congctl" => RouteMetric::CcAlgo(value.to_owned()),
        "fastopen_no_cookie" => RouteMetric::FastopenNoCookie(plain()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_makes_the_metric_of_its_number() {
        for (place, name) in ROUTE_ATTRIBUTES.iter().enumerate() {
            let kind = u16::try_from(place + FIRST).expect("small");
            let value = match *name {
                "congctl" => "reno",
                "features" => "ecn",
                "rto_min" | "rtt" | "rttvar" => "200ms",
                _ => "7",
            };
            let metrics = changed(&[], kind, Some(value)).expect("a metric");
            assert_eq!(metrics.iter().map(number).collect::<Vec<_>>(), [kind], "{name}");
            assert_eq!(text(&metrics, kind).as_deref(), Some(value), "{name}");
            let pinned = format!("lock {value}");
            let metrics = changed(&metrics, kind, Some(&pinned)).expect("a metric");
            assert_eq!(text(&metrics, kind).as_deref(), Some(pinned.as_str()), "{name}");
            assert_eq!(changed(&metrics, kind, None), Some(Vec::new()), "{name}");
        }
    }

    #[test]
    fn other_metrics_and_locks_stay() {
        let before = [RouteMetric::Lock(1 << 2), RouteMetric::Mtu(1400), RouteMetric::InitCwnd(20)];
        let during = changed(&before, 3, Some("lock 65000")).expect("metrics");
        assert_eq!(text(&during, 2).as_deref(), Some("lock 1400"));
        assert_eq!(changed(&during, 3, None).as_deref(), Some(&before[..]));
    }
}
