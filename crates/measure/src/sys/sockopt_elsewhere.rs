//! The socket options of a system whose kernel is not asked: what is to be read is not there, what is to be set is refused
//! or left to the system.
//!
//! Windows, FreeBSD and macOS each have calls of their own for some of this; none of them is used.

use std::{
    cell::RefCell,
    io::{self, Read},
    net::{IpAddr, TcpStream, UdpSocket},
};

/// What a socket's buffers hold and cost now, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemInfo {
    pub(crate) receive_buffer: u32,
    pub(crate) send_buffer: u32,
    pub(crate) send_queued: u32,
}

/// Which of a socket's buffers the application has set itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pinned {
    pub(crate) send: bool,
    pub(crate) receive: bool,
}

pub(crate) fn mem_info<S>(_: S) -> io::Result<MemInfo> {
    unsupported()
}

pub(crate) fn pinned_buffers<S>(_: S) -> Option<Pinned> {
    None
}

pub(crate) fn tcp_info<S>(_: S, _: &mut [u8]) -> io::Result<usize> {
    unsupported()
}

pub(crate) fn save_syn<S>(_: S) -> io::Result<()> {
    unsupported()
}

pub(crate) fn saved_syn<S>(_: S) -> io::Result<Vec<u8>> {
    unsupported()
}

/// Received and not yet read by the application.
pub(crate) fn unread<S>(_: S) -> Option<u64> {
    None
}

pub(crate) fn congestion<S>(_: S) -> Option<String> {
    None
}

pub(crate) fn set_congestion<S>(_: S, _: &str) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_max_pacing_rate<S>(_: S, _: u32) -> io::Result<()> {
    unsupported()
}

/// Segments stay as large as the system makes them: on a path that swallows large ones the control connection may then
/// stand still, which its deadlines tell.
pub(crate) fn set_max_segment<S>(_: S, _: u16) -> io::Result<()> {
    Ok(())
}

/// The system's own patience counts.
pub(crate) fn set_user_timeout<S>(_: S, _: u32) -> io::Result<()> {
    Ok(())
}

/// The path MTU is not probed from here.
pub(crate) fn never_fragment(_: &UdpSocket, _: IpAddr) -> io::Result<()> {
    unsupported()
}

pub(crate) fn path_mtu(_: &UdpSocket, _: bool) -> Option<u32> {
    None
}

/// Takes up to `len` bytes, but not more than a megabyte, off the receive queue; waits for the first of them. Zero means
/// that the peer closed.
pub(crate) fn discard(stream: &TcpStream, len: usize) -> io::Result<usize> {
    thread_local! {
        static WASTE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    const LARGEST: usize = 1 << 20;
    WASTE.with_borrow_mut(|waste| {
        waste.resize(len.min(LARGEST), 0);
        let mut stream = stream;
        stream.read(waste)
    })
}

/// The same.
pub(crate) fn discard_available(stream: &TcpStream, len: usize) -> io::Result<usize> {
    discard(stream, len)
}

/// Whether `accept` failed for that connection only; what the system calls otherwise ends the server.
pub(crate) fn is_of_one_connection(_: &io::Error) -> bool {
    false
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}
