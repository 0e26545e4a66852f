//! The socket options that only Linux is asked for, on another system: what is to be read is not there, what is to be set is
//! refused or left to the system.
//!
//! Windows, FreeBSD and macOS each have calls of their own for some of this; none of them is used.

use std::{
    cell::RefCell,
    io::{self, Read},
    net::TcpStream,
};

pub(crate) fn save_syn<S>(_: S) -> io::Result<()> {
    unsupported()
}

pub(crate) fn saved_syn<S>(_: S) -> io::Result<Vec<u8>> {
    unsupported()
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
