//! The properties of interfaces as settings.

use fullpipe_knobs::{Address, Link, Settings};
use netlink_packet_route::link::LinkAttribute;

use super::{
    ethtool::{Ethtool, Ring},
    net::{LinkEntry, NetError, Netlink},
    network, unknown,
};
use crate::HostError;

const PLAIN: [&str; 6] =
    ["mtu", "txqueuelen", "gso_max_size", "gso_ipv4_max_size", "gro_max_size", "gro_ipv4_max_size"];
/// The offloads that bear on TCP and that [`collect`] reads; `read` and `write` take any feature's name.
const OFFLOADS: [&str; 7] = ["tso", "gso", "gro", "lro", "rx", "tx", "sg"];

pub(super) fn collect(settings: &mut Settings) -> Result<(), HostError> {
    let mut net = Netlink::open()?;
    // Without ethtool's family everything else is still worth knowing.
    let mut ethtool = Ethtool::open().ok();
    for link in net.links()? {
        let mut put = |property: String, value: Option<String>| {
            settings.values.insert(Address::Link { device: link.name.clone(), property }, value);
        };
        for property in PLAIN {
            put(property.to_owned(), plain(&link, property).map(|number| number.to_string()));
        }
        put("qdisc".to_owned(), Some(link.qdisc.clone()));
        if let Some(ethtool) = &mut ethtool {
            if let Ok(features) = ethtool.features(&link.name) {
                for offload in OFFLOADS {
                    put(format!("offload {offload}"), features.text(offload));
                }
            }
            for (name, ring) in [("ring rx", Ring::Receive), ("ring tx", Ring::Transmit)] {
                let length = ethtool.ring(&link.name, ring).ok().flatten();
                put(name.to_owned(), length.map(|length| length.to_string()));
            }
        }
        settings.links.push(Link {
            device: link.name.clone(),
            speed_bps: ethtool.as_mut().and_then(|ethtool| ethtool.speed_bps(&link.name)),
            mtu: Some(link.mtu),
        });
    }
    Ok(())
}

pub(super) fn read(address: &Address, device: &str, property: &str) -> Result<Option<String>, HostError> {
    let failed = |source| network("read", address, source);
    let mut net = Netlink::open().map_err(failed)?;
    let link = net.link(device).map_err(failed)?;
    match parse(address, property)? {
        Property::Plain(name) => Ok(plain(&link, name).map(|number| number.to_string())),
        Property::Qdisc => {
            let root = net.root_qdisc(link.number).map_err(failed)?;
            Ok(Some(root.map_or(link.qdisc, |qdisc| qdisc.kind)))
        }
        Property::Offload(offload) => {
            let features = Ethtool::open().and_then(|mut ethtool| ethtool.features(device)).map_err(failed)?;
            Ok(features.text(offload))
        }
        Property::Ring(ring) => {
            let length = Ethtool::open().and_then(|mut ethtool| ethtool.ring(device, ring)).map_err(failed)?;
            Ok(length.map(|length| length.to_string()))
        }
    }
}

pub(super) fn write(address: &Address, device: &str, property: &str, value: &str) -> Result<(), HostError> {
    let number = || {
        value.parse::<u32>().map_err(|_| HostError::InvalidValue {
            address: address.clone(),
            value: value.to_owned(),
            expected: "a whole number".to_owned(),
        })
    };
    let outcome = match parse(address, property)? {
        Property::Plain(name) => {
            let attribute = attribute(name, number()?);
            Netlink::open().and_then(|mut net| net.set_attribute("configure", device, attribute))
        }
        Property::Qdisc => Netlink::open().and_then(|mut net| net.set_root_qdisc(device, Some(value))),
        Property::Offload(offload) => set_offload(address, device, offload, value)?,
        Property::Ring(ring) => {
            let descriptors = number()?;
            Ethtool::open().and_then(|mut ethtool| ethtool.set_ring(device, ring, descriptors))
        }
    };
    outcome.map_err(|source| network("write", address, source))
}

fn set_offload(address: &Address, device: &str, offload: &str, value: &str) -> Result<Result<(), NetError>, HostError> {
    if read(address, device, &format!("offload {offload}"))?.is_none() {
        return Err(HostError::ReadOnly { address: address.clone(), why: "because the device can't do it" });
    }
    Ok(Ethtool::open().and_then(|mut ethtool| ethtool.set_offload(device, offload, value)))
}

enum Property<'a> {
    Plain(&'a str),
    Qdisc,
    Offload(&'a str),
    Ring(Ring),
}

fn parse<'a>(address: &Address, property: &'a str) -> Result<Property<'a>, HostError> {
    match property {
        "qdisc" => Ok(Property::Qdisc),
        "ring rx" => Ok(Property::Ring(Ring::Receive)),
        "ring tx" => Ok(Property::Ring(Ring::Transmit)),
        name if PLAIN.contains(&name) => Ok(Property::Plain(name)),
        _ => match property.strip_prefix("offload ") {
            Some(offload) if !offload.is_empty() && !offload.contains(' ') => Ok(Property::Offload(offload)),
            _ => Err(unknown(
                address,
                "a link's properties are mtu, txqueuelen, qdisc, gso_max_size, gso_ipv4_max_size, gro_max_size, \
                 gro_ipv4_max_size, `offload` with a feature, `ring rx` and `ring tx`",
            )),
        },
    }
}

fn plain(link: &LinkEntry, property: &str) -> Option<u32> {
    match property {
        "mtu" => Some(link.mtu),
        "txqueuelen" => Some(link.txqueuelen),
        "gso_max_size" => link.gso_max_size,
        "gso_ipv4_max_size" => link.gso_ipv4_max_size,
        "gro_max_size" => link.gro_max_size,
        "gro_ipv4_max_size" => link.gro_ipv4_max_size,
        _ => None,
    }
}

fn attribute(property: &str, value: u32) -> LinkAttribute {
    match property {
        "txqueuelen" => LinkAttribute::TxQueueLen(value),
        "gso_max_size" => LinkAttribute::GsoMaxSize(value),
        "gso_ipv4_max_size" => LinkAttribute::GsoIpv4MaxSize(value),
        "gro_max_size" => LinkAttribute::GroMaxSize(value),
        "gro_ipv4_max_size" => LinkAttribute::GroIpv4MaxSize(value),
        _ => LinkAttribute::Mtu(value),
    }
}
