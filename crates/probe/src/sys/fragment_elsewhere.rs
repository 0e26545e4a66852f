//! Datagrams that are never fragmented, and what the system believes of their path, on Windows, FreeBSD and macOS.
//!
//! Windows has Linux's options under numbers of its own (IP_MTU_DISCOVER with PROBE, IP_MTU), older versions IP_DONTFRAGMENT
//! alone; FreeBSD and macOS set DF with IP_DONTFRAG and don't tell a path MTU.
#![expect(unsafe_code, reason = "getsockopt and setsockopt with options that no safe wrapper offers")]

use std::{
    io,
    net::{IpAddr, UdpSocket},
};

/// The level of an option, its name, and the value that is wanted.
type Wanted = (i32, i32, i32);

#[cfg(windows)]
mod names {
    use windows_sys::Win32::Networking::WinSock as win;

    use super::Wanted;

    /// Each in turn until one is taken.
    pub(super) const V4: &[Wanted] =
        &[(win::IPPROTO_IP, win::IP_MTU_DISCOVER, win::IP_PMTUDISC_PROBE), (win::IPPROTO_IP, win::IP_DONTFRAGMENT, 1)];
    pub(super) const V6: &[Wanted] = &[
        (win::IPPROTO_IPV6, win::IPV6_MTU_DISCOVER, win::IP_PMTUDISC_PROBE),
        (win::IPPROTO_IPV6, win::IPV6_DONTFRAG, 1),
    ];
}

#[cfg(unix)]
mod names {
    use super::Wanted;

    pub(super) const V4: &[Wanted] = &[(libc::IPPROTO_IP, libc::IP_DONTFRAG, 1)];
    pub(super) const V6: &[Wanted] = &[(libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)];
}

/// Has every datagram sent with DF; `local` is what the socket is bound to.
pub(crate) fn never_fragment(socket: &UdpSocket, local: IpAddr) -> io::Result<()> {
    let wanted = if local.to_canonical().is_ipv4() { names::V4 } else { names::V6 };
    let mut result = Err(io::ErrorKind::Unsupported.into());
    for &option in wanted {
        result = set(socket, option);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// What the system believes, of a connected socket.
#[cfg(windows)]
pub(crate) fn path_mtu(socket: &UdpSocket, is_v4: bool) -> Option<u32> {
    use std::os::windows::io::AsRawSocket;

    use windows_sys::Win32::Networking::WinSock::{
        IP_MTU, IPPROTO_IP, IPPROTO_IPV6, IPV6_MTU, SOCKET, SOCKET_ERROR, getsockopt,
    };

    let (level, name) = if is_v4 { (IPPROTO_IP, IP_MTU) } else { (IPPROTO_IPV6, IPV6_MTU) };
    let (mut mtu, mut len) = (0u32, 4i32);
    // SAFETY: at most four bytes are written, to `mtu`, and the count to `len`.
    let result =
        unsafe { getsockopt(socket.as_raw_socket() as SOCKET, level, name, (&raw mut mtu).cast(), &raw mut len) };
    // All ones, and more than a packet can have, mean that it has none.
    (result != SOCKET_ERROR && len == 4 && (1..=65_535).contains(&mtu)).then_some(mtu)
}

/// Not reported.
#[cfg(unix)]
pub(crate) fn path_mtu(_: &UdpSocket, _: bool) -> Option<u32> {
    None
}

#[cfg(windows)]
fn set(socket: &UdpSocket, (level, name, value): Wanted) -> io::Result<()> {
    use std::os::windows::io::AsRawSocket;

    use windows_sys::Win32::Networking::WinSock::{SOCKET, SOCKET_ERROR, WSAGetLastError, setsockopt};

    // SAFETY: the four bytes of `value` are read, whose size is given.
    let result = unsafe { setsockopt(socket.as_raw_socket() as SOCKET, level, name, (&raw const value).cast(), 4) };
    if result == SOCKET_ERROR {
        // SAFETY: reads a number of this thread.
        return Err(io::Error::from_raw_os_error(unsafe { WSAGetLastError() }));
    }
    Ok(())
}

#[cfg(unix)]
fn set(socket: &UdpSocket, (level, name, value): Wanted) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: the four bytes of `value` are read, whose size is given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
