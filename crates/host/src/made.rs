//! A route of its own for one destination, as text: `via 10.0.0.1 dev eth0 src 10.0.0.7 mtu lock 1400 initcwnd 40`.
//!
//! It is the value of `route PREFIX made`, which is absent where the main table has no route to exactly that destination.
//! Pure: what the kernel has is in `linux::route`.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::value::{ROUTE_ATTRIBUTES, route_value};

/// The name of that attribute.
pub(crate) use fullpipe_knobs::planner::destination::MADE;

/// What such a value must look like.
pub(crate) const FORM: &str =
    "a next hop and metrics, such as `via 10.0.0.1 dev eth0 src 10.0.0.7 mtu lock 1400 initcwnd 40`";

/// A route, without its destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// The router; `None` where the destination is on the link.
    pub(crate) gateway: Option<IpAddr>,
    /// The interface.
    pub(crate) device: String,
    /// The preferred source address.
    pub(crate) source: Option<IpAddr>,
    /// The router is taken to be on the link, whatever the addresses say.
    pub(crate) onlink: bool,
    /// Places in [`ROUTE_ATTRIBUTES`] with their values, in that order.
    pub(crate) metrics: Vec<(usize, String)>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(gateway) = self.gateway {
            write!(f, "via {gateway} ")?;
        }
        write!(f, "dev {}", self.device)?;
        if let Some(source) = self.source {
            write!(f, " src {source}")?;
        }
        if self.onlink {
            f.write_str(" onlink")?;
        }
        self.metrics
            .iter()
            .filter_map(|(place, value)| Some((ROUTE_ATTRIBUTES.get(*place)?, value)))
            .try_for_each(|(name, value)| write!(f, " {name} {value}"))
    }
}

impl FromStr for Made {
    /// What was expected.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut made = Self::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            if word == "onlink" {
                made.onlink = true;
                continue;
            }
            let value = words.next().ok_or(FORM)?;
            let address = || value.parse().map_err(|_| FORM);
            match word {
                "via" => made.gateway = Some(address()?),
                "src" => made.source = Some(address()?),
                "dev" => value.clone_into(&mut made.device),
                name => {
                    let place = ROUTE_ATTRIBUTES.iter().position(|known| *known == name).ok_or(FORM)?;
                    let text =
                        if value == "lock" { format!("lock {}", words.next().ok_or(FORM)?) } else { value.to_owned() };
                    // Of two, the last one counts, and one that means absent is left out.
                    made.metrics.retain(|(known, _)| *known != place);
                    made.metrics.extend(route_value(name, &text)?.map(|value| (place, value)));
                }
            }
        }
        made.metrics.sort();
        if made.device.is_empty() { Err(FORM) } else { Ok(made) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_read_as_it_is_written_and_has_one_form() {
        for text in [
            "dev eth0",
            "via 10.0.0.1 dev eth0 src 10.0.0.7 onlink mtu lock 1400 initcwnd 40 rto_min 300ms congctl bbr",
            "via fe80::1 dev eth0 window 65536",
        ] {
            assert_eq!(text.parse::<Made>().map(|made| made.to_string()), Ok(text.to_owned()));
        }
        let jumbled: Made =
            "initcwnd 40 dev eth0 initcwnd 20 mtu 0  via 10.0.0.1 rto_min 0.3s".parse().expect("a route");
        assert_eq!(jumbled.to_string(), "via 10.0.0.1 dev eth0 initcwnd 20 rto_min 300ms");
    }

    #[test]
    fn what_is_no_route_is_refused() {
        for text in [
            "",
            "via 10.0.0.1",
            "dev",
            "dev eth0 via nowhere",
            "dev eth0 initcwnd",
            "dev eth0 initcwnd many",
            "dev eth0 x 1",
        ] {
            assert!(text.parse::<Made>().is_err(), "{text}");
        }
    }
}
