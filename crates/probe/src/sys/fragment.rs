//! Datagrams that are never fragmented, and what Linux believes of their path.

use std::{
    io,
    net::{IpAddr, UdpSocket},
};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

/// Has every datagram sent with DF, whatever the kernel believes of the path; `local` is what the socket is bound to.
pub(crate) fn never_fragment(socket: &UdpSocket, local: IpAddr) -> io::Result<()> {
    let is_mapped = matches!(local, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    if local.is_ipv6() {
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?;
    }
    // A mapped address is served by IPv4 underneath.
    if local.is_ipv4() || is_mapped {
        sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?;
    }
    Ok(())
}

/// What the kernel believes, of a connected socket.
pub(crate) fn path_mtu(socket: &UdpSocket, is_v4: bool) -> Option<u32> {
    if is_v4 { sockopt::ip_mtu(socket).ok() } else { sockopt::ipv6_mtu(socket).ok() }
}
