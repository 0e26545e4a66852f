//! Giving an interface an address.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage},
};

use super::{LinkNumber, NetError, Netlink, socket::Asking};

impl Netlink {
    /// Adds `address` with its network's prefix length to a link.
    ///
    /// IPv6 addresses are usable at once: duplicate address detection (RFC 4862, section 5.4) is left out with
    /// `IFA_F_NODAD`, which would keep them tentative for a second and more.
    pub fn add_address(&mut self, link: LinkNumber, address: IpAddr, prefix_length: u8) -> Result<(), NetError> {
        let mut message = AddressMessage::default();
        message.header.index = link.0;
        message.header.prefix_len = prefix_length;
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        let object = format!("address {address}/{prefix_length}");
        self.request(
            Asking { operation: "add", object: &object },
            NLM_F_CREATE | NLM_F_EXCL,
            RouteNetlinkMessage::NewAddress(message),
        )
    }
}
