//! The calls that writers and readers of others make and that have no safe wrapper: options of sockets, and io_uring.
#![expect(
    unsafe_code,
    reason = "setsockopt with options that rustix lacks, and io_uring, which reads memory that it is shown"
)]

use std::{
    ffi::c_int,
    io,
    net::TcpStream,
    os::fd::{AsFd, AsRawFd},
};

use io_uring::{IoUring, opcode, types};

/// linux/tcp.h and asm-generic/socket.h, as numbers that every libc has.
const SO_ZEROCOPY: c_int = 60;
const SO_MAX_PACING_RATE: c_int = 47;
/// The same number in send(2).
pub(crate) const MSG_ZEROCOPY: u32 = 0x400_0000;
/// recv(2): read what the kernel says of earlier calls.
const MSG_ERRQUEUE: c_int = 0x2000;

fn set<T>(socket: impl AsFd, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which lives until the call returns.
    let result =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// At most so many bytes a second leave.
pub(crate) fn set_pacing(socket: impl AsFd, bytes_per_second: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE, bytes_per_second)
}

/// The window that is offered is never larger.
pub(crate) fn set_window_clamp(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Segments are never larger.
pub(crate) fn set_most_per_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// `MSG_ZEROCOPY` may be used.
pub(crate) fn allow_zerocopy(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, SO_ZEROCOPY, c_int::from(true))
}

/// Takes the notes of writes without a copy off their queue, where they count against the socket's memory.
pub(crate) fn forget_notes(socket: impl AsFd) {
    let mut space = [0_u64; 64];
    loop {
        // SAFETY: `msghdr` is plain data for which all zeroes is a value: no name, no parts.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = space.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&space);
        // SAFETY: the kernel writes at most `msg_controllen` bytes into `space`, which lives until the call returns.
        let read =
            unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if read < 0 {
            return;
        }
    }
}

/// A writer that puts its writes into a ring that it shares with the kernel, one at a time.
pub(crate) struct RingWriter {
    ring: IoUring,
}

impl RingWriter {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { ring: IoUring::new(4)? })
    }

    /// As send(2), blocking.
    pub(crate) fn send(&mut self, stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let entry = opcode::Send::new(types::Fd(stream.as_raw_fd()), bytes.as_ptr(), length).build();
        // SAFETY: `bytes` and the descriptor live until the entry's completion was seen below.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    result?;
                    break;
                }
            }
        }
        let done = self.ring.completion().next().ok_or_else(|| io::Error::other("the ring has no completion"))?;
        usize::try_from(done.result()).map_err(|_| io::Error::from_raw_os_error(-done.result()))
    }
}
