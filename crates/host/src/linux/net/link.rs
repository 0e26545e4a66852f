//! Network interfaces.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage},
};

use super::{NetError, Netlink, socket::Asking};

/// The number by which the kernel knows an interface in one namespace (`ifindex`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkNumber(pub u32);

/// One interface, as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEntry {
    /// Its number.
    pub number: LinkNumber,
    /// Its name.
    pub name: String,
    /// Administratively up (`IFF_UP`).
    pub up: bool,
    /// The loopback interface.
    pub loopback: bool,
    /// Largest IP packet, in bytes.
    pub mtu: u32,
    /// Length of the transmit queue, in packets.
    pub txqueuelen: u32,
    /// The kind of the root queueing discipline: `noqueue`, `fq_codel`, `mq`.
    pub qdisc: String,
    /// Largest segmentation-offload packet for IPv6 and the rest, in bytes.
    pub gso_max_size: Option<u32>,
    /// Largest segmentation-offload packet for IPv4, in bytes (Linux 6.3 and later).
    pub gso_ipv4_max_size: Option<u32>,
    /// Largest packet that receive offload builds for IPv6 and the rest, in bytes.
    pub gro_max_size: Option<u32>,
    /// Largest packet that receive offload builds for IPv4, in bytes (Linux 6.3 and later).
    pub gro_ipv4_max_size: Option<u32>,
}

impl Netlink {
    /// All interfaces of this namespace.
    pub fn links(&mut self) -> Result<Vec<LinkEntry>, NetError> {
        let asking = Asking { operation: "list", object: "the links" };
        let answers = self.dump(asking, RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(message) => Some(entry(message)),
                _ => None,
            })
            .collect())
    }

    /// The interface of this name.
    pub fn link(&mut self, device: &str) -> Result<LinkEntry, NetError> {
        self.links()?
            .into_iter()
            .find(|link| link.name == device)
            .ok_or_else(|| NetError::NoSuchLink { device: device.to_owned() })
    }

    /// Takes an interface up.
    pub fn set_up(&mut self, device: &str) -> Result<(), NetError> {
        let mut message = self.message_for(device)?;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.set_link("take up", device, message)
    }

    /// Sets the MTU, in bytes.
    pub fn set_mtu(&mut self, device: &str, mtu: u32) -> Result<(), NetError> {
        self.set_attribute("set the mtu of", device, LinkAttribute::Mtu(mtu))
    }

    /// Sets the length of the transmit queue, in packets.
    pub fn set_txqueuelen(&mut self, device: &str, packets: u32) -> Result<(), NetError> {
        self.set_attribute("set the txqueuelen of", device, LinkAttribute::TxQueueLen(packets))
    }

    /// Sets any one attribute of an interface.
    pub(crate) fn set_attribute(
        &mut self,
        operation: &'static str,
        device: &str,
        attribute: LinkAttribute,
    ) -> Result<(), NetError> {
        let mut message = self.message_for(device)?;
        message.attributes.push(attribute);
        self.set_link(operation, device, message)
    }

    /// Makes a pair of virtual Ethernet interfaces in this namespace.
    pub fn create_veth(&mut self, [device, peer]: [&str; 2]) -> Result<(), NetError> {
        let mut far_end = LinkMessage::default();
        far_end.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        let data = LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far_end)));
        self.create(device, vec![LinkInfo::Kind(InfoKind::Veth), data])
    }

    /// Makes an interface that swallows what it is given.
    pub fn create_dummy(&mut self, device: &str) -> Result<(), NetError> {
        self.create(device, vec![LinkInfo::Kind(InfoKind::Dummy)])
    }

    fn create(&mut self, device: &str, info: Vec<LinkInfo>) -> Result<(), NetError> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(device.to_owned()), LinkAttribute::LinkInfo(info)];
        let object = format!("link {device}");
        let asking = Asking { operation: "create", object: &object };
        self.request(asking, NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewLink(message))
    }

    fn message_for(&mut self, device: &str) -> Result<LinkMessage, NetError> {
        let mut message = LinkMessage::default();
        message.header.index = self.link(device)?.number.0;
        Ok(message)
    }

    fn set_link(&mut self, operation: &'static str, device: &str, message: LinkMessage) -> Result<(), NetError> {
        let object = format!("link {device}");
        self.request(Asking { operation, object: &object }, 0, RouteNetlinkMessage::SetLink(message))
    }
}

fn entry(message: LinkMessage) -> LinkEntry {
    let mut link = LinkEntry {
        number: LinkNumber(message.header.index),
        name: String::new(),
        up: message.header.flags.contains(LinkFlags::Up),
        loopback: message.header.flags.contains(LinkFlags::Loopback),
        mtu: 0,
        txqueuelen: 0,
        qdisc: String::new(),
        gso_max_size: None,
        gso_ipv4_max_size: None,
        gro_max_size: None,
        gro_ipv4_max_size: None,
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::TxQueueLen(packets) => link.txqueuelen = packets,
            LinkAttribute::Qdisc(kind) => link.qdisc = kind,
            LinkAttribute::GsoMaxSize(size) => link.gso_max_size = Some(size),
            LinkAttribute::GsoIpv4MaxSize(size) => link.gso_ipv4_max_size = Some(size),
            LinkAttribute::GroMaxSize(size) => link.gro_max_size = Some(size),
            LinkAttribute::GroIpv4MaxSize(size) => link.gro_ipv4_max_size = Some(size),
            _ => {}
        }
    }
    link
}
