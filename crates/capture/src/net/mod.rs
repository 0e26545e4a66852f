//! The network layer and what it carries: IP, fragments, tunnels, TCP, and messages about packets that were too big.
//! What is *not* here: what a segment means to its connection.

mod fragments;
mod icmp;
mod ip;
mod tcp;
mod tunnel;

pub(crate) use fragments::Fragments;
pub(crate) use ip::Datagram;

/// Protocol numbers (IANA, "Protocol Numbers").
mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ICMP: u8 = 1;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const ICMPV6: u8 = 58;
    pub(super) const DESTINATION: u8 = 60;
    pub(super) const ETHERIP: u8 = 97;
    pub(super) const MOBILITY: u8 = 135;
    pub(super) const MPLS: u8 = 137;
    pub(super) const HIP: u8 = 139;
    pub(super) const SHIM6: u8 = 140;
    pub(super) const ETHERNET: u8 = 143;
}
