//! The addresses of interfaces.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope},
};

use super::{LinkNumber, NetError, Netlink, socket::Asking};

impl Netlink {
    /// The addresses of this namespace that other machines can reach it by, as far as it knows: those of interfaces other than
    /// loopback, of the scopes site and global (a link-local address needs the name of an interface beside it), in the order of
    /// the kernel.
    ///
    /// # Errors
    /// [`NetError`] where the kernel doesn't answer.
    pub fn reachable_addresses(&mut self) -> Result<Vec<IpAddr>, NetError> {
        let asking = Asking { operation: "list", object: "the addresses" };
        let answers = self.dump(asking, RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
        let address = |answer| {
            let RouteNetlinkMessage::NewAddress(message) = answer else { return None };
            let is_wide = matches!(message.header.scope, AddressScope::Universe | AddressScope::Site);
            let mut local = None;
            for attribute in message.attributes.iter().filter(|_| is_wide) {
                match attribute {
                    // At the end of a point-to-point link `Address` is the other end's.
                    AddressAttribute::Local(own) => local = Some(*own),
                    AddressAttribute::Address(own) => local = local.or(Some(*own)),
                    _ => {}
                }
            }
            local
        };
        Ok(answers.into_iter().filter_map(address).collect())
    }

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
