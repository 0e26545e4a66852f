//! Raw socket options, and a receive that throws the payload away in the kernel.
#![expect(unsafe_code, reason = "getsockopt, setsockopt and recv with options that no safe wrapper offers")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    ptr,
};

use rustix::net::sockopt;

const SO_MAX_PACING_RATE: libc::c_int = 47;

/// Asks the kernel to keep the SYN of each connection that this listener accepts.
pub(crate) fn save_syn(listener: impl AsFd) -> io::Result<()> {
    set_int(listener, (libc::IPPROTO_TCP, libc::TCP_SAVE_SYN), 1)
}

/// The network and TCP headers of the SYN that opened an accepted connection. Reading frees it in the kernel.
pub(crate) fn saved_syn(socket: impl AsFd) -> io::Result<Vec<u8>> {
    let mut raw = [0u8; 256];
    let len = read_option(socket, (libc::IPPROTO_TCP, libc::TCP_SAVED_SYN), &mut raw)?;
    Ok(raw.get(..len).unwrap_or_default().to_vec())
}

/// Limits the rate at which the kernel paces this socket, in bytes per second.
pub(crate) fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u32) -> io::Result<()> {
    set_int(socket, (libc::SOL_SOCKET, SO_MAX_PACING_RATE), bytes_per_second.cast_signed())
}

/// Limits the size of the segments that this socket sends.
pub(crate) fn set_max_segment(socket: impl AsFd, mss: u16) -> io::Result<()> {
    set_int(socket, (libc::IPPROTO_TCP, libc::TCP_MAXSEG), i32::from(mss))
}

/// The congestion control of a socket.
pub(crate) fn congestion(socket: impl AsFd) -> Option<String> {
    sockopt::tcp_congestion(socket).ok()
}

pub(crate) fn set_congestion(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(socket, name)?)
}

/// Gives up a connection whose peer has acknowledged nothing for so many milliseconds (RFC 5482).
pub(crate) fn set_user_timeout(socket: impl AsFd, millis: u32) -> io::Result<()> {
    Ok(sockopt::set_tcp_user_timeout(socket, millis)?)
}

/// Whether `accept` failed with an error of that connection only, one that the standard library has no name for
/// (accept(2)).
pub(crate) fn is_of_one_connection(error: &io::Error) -> bool {
    let network = [libc::EPROTO, libc::ENETDOWN, libc::EHOSTDOWN, libc::ENONET, libc::EOPNOTSUPP, libc::EPERM];
    error.raw_os_error().is_some_and(|code| network.contains(&code))
}

/// Takes up to `len` bytes off the receive queue and discards them in the kernel; waits until all are there, the
/// socket's receive timeout passes or the peer closes. Zero means that the peer closed.
pub(crate) fn discard(socket: impl AsFd, len: usize) -> io::Result<usize> {
    discard_with(socket, len, libc::MSG_WAITALL)
}

/// The same, but returns as soon as there is anything.
pub(crate) fn discard_available(socket: impl AsFd, len: usize) -> io::Result<usize> {
    discard_with(socket, len, 0)
}

/// The same, but never waits: an error of the kind that is a pause where nothing is there.
pub(crate) fn discard_now(socket: impl AsFd, len: usize) -> io::Result<usize> {
    discard_with(socket, len, libc::MSG_DONTWAIT)
}

/// Has the kernel wake a reader only once so many bytes are there, and lend the connection twice that as its buffer
/// (`SO_RCVLOWAT`, Linux 4.18).
pub(crate) fn set_receive_mark(socket: impl AsFd, bytes: i32) -> io::Result<()> {
    set_int(socket, (libc::SOL_SOCKET, libc::SO_RCVLOWAT), bytes)
}

fn discard_with(socket: impl AsFd, len: usize, flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket never writes to the buffer (tcp(7)), so that a null pointer is never followed.
    let count = unsafe { libc::recv(socket.as_fd().as_raw_fd(), ptr::null_mut(), len, libc::MSG_TRUNC | flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Level and name of a socket option.
type OptionName = (libc::c_int, libc::c_int);

fn read_option(socket: impl AsFd, (level, name): OptionName, raw: &mut [u8]) -> io::Result<usize> {
    let mut len = libc::socklen_t::try_from(raw.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `raw`, and the count to `len`.
    let result =
        unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, raw.as_mut_ptr().cast(), &raw mut len) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(len).unwrap_or(0).min(raw.len()))
}

fn set_int(socket: impl AsFd, (level, name): OptionName, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads the four bytes of `value`, whose size is given.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), 4) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
