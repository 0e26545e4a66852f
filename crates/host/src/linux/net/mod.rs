//! Routes, links and addresses over a synchronous netlink socket.
//!
//! A [`Netlink`] belongs to the network namespace in which its thread was when it called [`Netlink::open`], and stays
//! there wherever the thread goes afterwards. What is *not* here: async, monitoring, and the `ip` binary.
//!
//! Read first: rtnetlink(7), and `Documentation/userspace-api/netlink/intro.rst` of the kernel.

mod address;
mod error;
mod link;
mod qdisc;
mod route;
mod socket;

pub use error::NetError;
pub use link::{LinkEntry, LinkNumber};
pub use qdisc::{OUR_QDISC_MAJOR, RootQdisc};
pub use route::{Destination, ParseDestinationError, RouteEntry, RouteSpec};
pub use socket::Netlink;
pub(crate) use socket::{Asking, Channel};

/// The metrics of a route, as netlink has them.
pub use netlink_packet_route::route::RouteMetric;
