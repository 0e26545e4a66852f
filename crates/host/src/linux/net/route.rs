//! Routes of the main table, with the metrics that bound TCP.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{
        RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
        RouteType,
    },
};

use super::{LinkNumber, NetError, Netlink, socket::Asking};

/// Where a route leads: `default` (IPv4), `::/0`, `10.0.0.0/24`, and a host without its prefix length, `10.0.0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// The network.
    pub address: IpAddr,
    /// The length of its prefix, in bits.
    pub prefix_length: u8,
}

/// A text that is no destination of a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no destination of a route; expected a form such as `10.0.0.0/24`, `2001:db8::/32` or `default`")]
pub struct ParseDestinationError {
    /// What was given.
    pub text: String,
}

/// A route to add to the main table.
#[derive(Clone, Debug)]
pub struct RouteSpec {
    /// Where it leads.
    pub destination: Destination,
    /// Over which interface.
    pub link: LinkNumber,
    /// Over which router; `None` where the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The source address preferred for it.
    pub source: Option<IpAddr>,
    /// Whether the router is taken to be on the link, whatever the addresses say.
    pub onlink: bool,
    /// The metrics, in any order.
    pub metrics: Vec<RouteMetric>,
}

/// A route of the main table as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    message: RouteMessage,
}

impl RouteEntry {
    /// Where it leads.
    pub fn destination(&self) -> Destination {
        let unspecified = match self.message.header.address_family {
            AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let address = self.find(|attribute| match attribute {
            RouteAttribute::Destination(address) => ip(address),
            _ => None,
        });
        Destination {
            address: address.unwrap_or(unspecified),
            prefix_length: self.message.header.destination_prefix_length,
        }
    }

    /// The interface; `None` for a route over several or to nowhere.
    pub fn link(&self) -> Option<LinkNumber> {
        self.find(|attribute| match attribute {
            RouteAttribute::Oif(number) => Some(LinkNumber(*number)),
            _ => None,
        })
    }

    /// The router.
    pub fn gateway(&self) -> Option<IpAddr> {
        self.find(|attribute| match attribute {
            RouteAttribute::Gateway(address) => ip(address),
            _ => None,
        })
    }

    /// The source address preferred for it.
    pub fn source(&self) -> Option<IpAddr> {
        self.find(|attribute| match attribute {
            RouteAttribute::PrefSource(address) => ip(address),
            _ => None,
        })
    }

    /// Whether its router is taken to be on the link, whatever the addresses say.
    pub fn is_onlink(&self) -> bool {
        self.message.header.flags.contains(RouteFlags::Onlink)
    }

    /// Whether another route may lead over the same next hop, which then has to be one that stays: one interface, and a
    /// router of the same family.
    pub(crate) fn is_plain(&self) -> bool {
        let has_other_router = self.has(|attribute| matches!(attribute, RouteAttribute::Via(_)));
        self.link().is_some() && !has_other_router && self.check_replaceable().is_ok()
    }

    /// The priority among routes to the same destination: the lowest is in force.
    pub fn priority(&self) -> u32 {
        self.find(|attribute| match attribute {
            RouteAttribute::Priority(priority) => Some(*priority),
            _ => None,
        })
        .unwrap_or(0)
    }

    /// The metrics that are set.
    pub fn metrics(&self) -> &[RouteMetric] {
        self.find(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics.as_slice()),
            _ => None,
        })
        .unwrap_or_default()
    }

    /// Everything that the kernel reported, to compare before and after.
    pub fn message(&self) -> &RouteMessage {
        &self.message
    }

    fn find<'a, T>(&'a self, pick: impl FnMut(&'a RouteAttribute) -> Option<T>) -> Option<T> {
        self.message.attributes.iter().find_map(pick)
    }

    fn has(&self, wanted: impl Fn(&RouteAttribute) -> bool) -> bool {
        self.message.attributes.iter().any(wanted)
    }

    /// Says why the metrics of this route can't be changed on their own.
    pub(crate) fn check_replaceable(&self) -> Result<(), NetError> {
        self.with_metrics(Vec::new()).map(drop)
    }

    /// The request that puts this same route with other metrics in its place.
    fn with_metrics(&self, metrics: Vec<RouteMetric>) -> Result<RouteMessage, NetError> {
        let unsupported = |why| Err(NetError::UnsupportedRoute { destination: self.destination().to_string(), why });
        if self.has(|attribute| matches!(attribute, RouteAttribute::MultiPath(_))) {
            return unsupported("it has several next hops; change it with ip-route(8)");
        }
        if self.has(|attribute| matches!(attribute, RouteAttribute::NhId(_))) {
            return unsupported("it uses a nexthop object; change it with ip-route(8)");
        }
        if self.has(|attribute| matches!(attribute, RouteAttribute::CacheInfo(cache) if cache.expires != 0)) {
            return unsupported("it expires (a router announced it), and its lifetime could not be kept");
        }
        let mut message = self.message.clone();
        // The other flags tell a state (link down, offloaded), which a request may not carry.
        message.header.flags &= RouteFlags::Onlink | RouteFlags::Pervasive;
        message
            .attributes
            .retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(_) | RouteAttribute::Metrics(_)));
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        Ok(message)
    }
}

impl Netlink {
    /// The unicast routes of the main table, IPv4 and IPv6: most specific first, then by priority.
    pub fn routes(&mut self) -> Result<Vec<RouteEntry>, NetError> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let asking = Asking { operation: "list", object: "the routes" };
            let answers = match self.dump(asking, RouteNetlinkMessage::GetRoute(message)) {
                // A kernel without IPv6 knows no such routes.
                Err(error) if family == AddressFamily::Inet6 && error.errno() == Some(libc::EOPNOTSUPP) => Vec::new(),
                answers => answers?,
            };
            routes.extend(answers.into_iter().filter_map(|answer| match answer {
                RouteNetlinkMessage::NewRoute(message) => Some(RouteEntry { message }),
                _ => None,
            }));
        }
        routes.retain(|route| {
            let header = &route.message.header;
            header.kind == RouteType::Unicast
                && header.address_family != AddressFamily::Unspec
                && header.table == RouteHeader::RT_TABLE_MAIN
                && !header.flags.contains(RouteFlags::Cloned)
        });
        // Stable: among equals the kernel's order says which one is in force.
        routes.sort_by_key(|route| (std::cmp::Reverse(route.destination().prefix_length), route.priority()));
        Ok(routes)
    }

    /// The route in force to exactly this destination: that of the lowest priority value.
    pub fn route(&mut self, destination: Destination) -> Result<RouteEntry, NetError> {
        self.routes()?
            .into_iter()
            .find(|route| route.destination() == destination && route.message.header.tos == 0)
            .ok_or_else(|| NetError::NoSuchRoute { destination: destination.to_string() })
    }

    /// Adds a route to the main table.
    pub fn add_route(&mut self, spec: &RouteSpec) -> Result<(), NetError> {
        let mut message = RouteMessage::default();
        message.header.address_family = spec.destination.family();
        message.header.destination_prefix_length = spec.destination.prefix_length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.scope = if spec.gateway.is_some() { RouteScope::Universe } else { RouteScope::Link };
        if spec.onlink {
            message.header.flags |= RouteFlags::Onlink;
        }
        message.attributes.push(RouteAttribute::Oif(spec.link.0));
        if spec.destination.prefix_length > 0 {
            message.attributes.push(RouteAttribute::Destination(spec.destination.address.into()));
        }
        message.attributes.extend(spec.gateway.map(|address| RouteAttribute::Gateway(address.into())));
        message.attributes.extend(spec.source.map(|address| RouteAttribute::PrefSource(address.into())));
        if !spec.metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(spec.metrics.clone()));
        }
        let object = format!("route {}", spec.destination);
        self.request(
            Asking { operation: "add", object: &object },
            NLM_F_CREATE | NLM_F_EXCL,
            RouteNetlinkMessage::NewRoute(message),
        )
    }

    /// Removes this route and no other one to its destination.
    pub fn remove_route(&mut self, route: &RouteEntry) -> Result<(), NetError> {
        let mut message = route.with_metrics(Vec::new())?;
        message.header.flags = RouteFlags::empty();
        let object = format!("route {}", route.destination());
        self.request(Asking { operation: "remove", object: &object }, 0, RouteNetlinkMessage::DelRoute(message))
    }

    /// Gives the route in force to `destination` these metrics and no others; the rest of it stays as it is, and no
    /// moment without the route passes.
    pub fn replace_metrics(&mut self, destination: Destination, metrics: Vec<RouteMetric>) -> Result<(), NetError> {
        let message = self.route(destination)?.with_metrics(metrics)?;
        let object = format!("route {destination}");
        self.request(
            Asking { operation: "replace the metrics of", object: &object },
            NLM_F_REPLACE,
            RouteNetlinkMessage::NewRoute(message),
        )
    }
}

impl Destination {
    /// Everything, for IPv4.
    pub const DEFAULT_V4: Self = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix_length: 0 };

    fn family(self) -> AddressFamily {
        match self.address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        }
    }

    fn host_length(address: IpAddr) -> u8 {
        if address.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::DEFAULT_V4 {
            f.write_str("default")
        } else if self.prefix_length == Self::host_length(self.address) {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.prefix_length)
        }
    }
}

impl FromStr for Destination {
    type Err = ParseDestinationError;

    fn from_str(text: &str) -> Result<Self, ParseDestinationError> {
        let wrong = || ParseDestinationError { text: text.to_owned() };
        if text == "default" {
            return Ok(Self::DEFAULT_V4);
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = Self::host_length(address);
        let prefix_length = length.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        if prefix_length > longest {
            return Err(wrong());
        }
        Ok(Self { address, prefix_length })
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_reads_as_the_routing_table_shows_it() {
        for text in ["default", "::/0", "10.0.0.0/24", "10.0.0.1", "2001:db8::/32", "2001:db8::1"] {
            assert_eq!(text.parse::<Destination>().map(|d| d.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("0.0.0.0/0".parse(), Ok(Destination::DEFAULT_V4));
        assert_eq!("10.0.0.1/32".parse::<Destination>().map(|d| d.to_string()), Ok("10.0.0.1".to_owned()));
    }

    #[test]
    fn what_is_no_destination_is_refused() {
        for text in ["", "default/0", "10.0.0.0/33", "::/129", "10.0.0/24", "10.0.0.0/", "10.0.0.0/-1", "eth0"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
