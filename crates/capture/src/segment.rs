//! One TCP segment as it was captured: what the reader of packets hands to whoever follows connections. What is *not*
//! here: what a segment means to its connection.

use core::net::IpAddr;

use fullpipe_units::SeqNum;
pub use fullpipe_units::TcpFlags as Flags;

/// An address without its family: IPv4 is mapped into IPv6 (RFC 4291, section 2.5.5.2), so that keys have one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u128);

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: Address,
    /// The port.
    pub port: u16,
}

/// Who sent to whom, and within which tunnel or virtual network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The sender.
    pub from: Endpoint,
    /// The addressee.
    pub to: Endpoint,
    /// What carried it: 0 where nothing did, else a digest of the outer addresses and tunnel keys, the same in both
    /// directions. VLAN numbers are in [`LinkStamp`] instead: many captures have only one direction tagged.
    pub outer: u32,
}

/// What the IP header said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The identification field of IPv4; `None` for IPv6.
    pub id: Option<u16>,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// The two ECN bits (RFC 3168, section 5): 3 is "congestion experienced".
    pub ecn: u8,
    /// "Don't fragment"; always true for IPv6.
    pub dont_fragment: bool,
    /// The length of the whole IP packet in bytes, headers included, as sent (also where the capture cut it, and for
    /// lengths beyond 65,535 that offloads and jumbograms have).
    pub length: u32,
}

/// What tells two captures of one packet apart: a digest of link addresses, VLAN numbers and the interface, 0 where
/// there is none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStamp(pub u32);

/// One TCP segment, as captured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment<'a> {
    /// Its packet's number in the capture, from 1, as Wireshark shows it.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970 (or since an epoch of its own, where the file has none).
    pub at_ns: u64,
    /// Who to whom.
    pub flow: Flow,
    /// What its IP header said.
    pub network: Network,
    /// What its frame's link layer said.
    pub link: LinkStamp,
    /// Sequence number of the first payload byte (of the SYN, where there is one).
    pub seq: SeqNum,
    /// Acknowledgement number; meaningless without [`Flags::ACK`].
    pub ack: SeqNum,
    /// The flags.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Payload bytes as sent, whatever of them was captured.
    pub payload_len: u32,
    /// The option bytes that were captured.
    pub options: &'a [u8],
    /// Whether the capture cut options off.
    pub options_cut: bool,
}

/// A router or host said that a packet was too big (RFC 1191, RFC 8201).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// The number of the packet that said it.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The flow of the packet that it is about.
    pub about: Flow,
    /// The sequence number of that packet.
    pub seq: SeqNum,
    /// The next hop's MTU in bytes; `None` where the message left it at 0.
    pub mtu: Option<u32>,
}

/// Takes what a capture holds, in the order of the file.
pub trait Sink {
    /// One TCP segment.
    fn segment(&mut self, segment: &Segment<'_>);

    /// One message about a packet that was too big.
    fn too_big(&mut self, notice: &TooBig);
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self(u128::from(v4.to_ipv6_mapped())),
            IpAddr::V6(v6) => Self(u128::from(v6)),
        }
    }
}

impl From<Address> for IpAddr {
    fn from(Address(bits): Address) -> Self {
        Self::V6(bits.into()).to_canonical()
    }
}

impl Flow {
    /// The same flow seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, outer: self.outer }
    }
}
