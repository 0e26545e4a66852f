//! The type of service of IPv4 and the traffic class of IPv6 (RFC 2474), which are one byte and two socket options.

use std::io;

use socket2::SockRef;

/// Marks the packets of a socket. A socket of IPv6 takes both options, and each for packets of its own family, so that
/// one that is taken is enough.
pub(crate) fn mark(socket: &SockRef<'_>, byte: u32) -> io::Result<()> {
    let v4 = socket.set_tos_v4(byte);
    mark_v6(socket, byte).or(v4)
}

#[cfg(unix)]
fn mark_v6(socket: &SockRef<'_>, byte: u32) -> io::Result<()> {
    socket.set_tclass_v6(byte)
}

/// Windows leaves the traffic class to its policies.
#[cfg(not(unix))]
fn mark_v6(_: &SockRef<'_>, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
