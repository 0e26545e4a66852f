//! Datagrams with the moment at which the kernel received them: a program that wakes up late changes nothing.
#![expect(unsafe_code, reason = "setsockopt and recvmsg with what no safe wrapper offers")]

use std::{
    io, mem,
    net::UdpSocket,
    os::fd::AsRawFd,
    ptr,
    time::{SystemTime, UNIX_EPOCH},
};

/// Asks the kernel to report with each datagram when it came.
pub(crate) fn enable(socket: &UdpSocket) -> io::Result<()> {
    let yes: libc::c_int = 1;
    // Of four bytes on every system.
    const { assert!(size_of::<libc::c_int>() == 4) };
    // SAFETY: the kernel reads the four bytes of `yes`, whose size is given.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, (&raw const yes).cast(), 4)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The length of the next datagram, and when it came, in nanoseconds since 1970.
pub(crate) fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
    // Aligned as control messages must be, and longer than the one that is expected.
    let mut control = [0u64; 16];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all fields are integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // A number of its own, because its type differs between C libraries.
    const { assert!(size_of::<[u64; 16]>() == 128) };
    message.msg_controllen = 128;
    // SAFETY: the message points to one buffer and one control buffer, which outlive the call, with their true lengths.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    Ok((count, stamp(&message).unwrap_or_else(now)))
}

fn stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled the control buffer and set its length; the macros stay within it.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: not null, hence a header within the control buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
            // SAFETY: this kind of message carries a timespec (socket(7)); it need not be aligned.
            let time: libc::timespec = unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
            let seconds = u64::try_from(time.tv_sec).ok()?;
            return seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?);
        }
        // SAFETY: as for the first one.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    #[test]
    fn the_kernel_reports_when_a_datagram_came() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable(&receiver).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut buffer = [0u8; 64];
        let at_once = (0..200).any(|_| {
            let before = now();
            sender.send_to(b"payload", receiver.local_addr().unwrap()).unwrap();
            let sent = now();
            let (count, came) = recv(&receiver, &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"payload");
            assert!(before <= came, "{before} {came}");
            // The kernel begins to look at its clock a moment after it was asked to.
            thread::sleep(Duration::from_millis(5));
            came <= sent
        });
        // Loopback delivers within the call that sends.
        assert!(at_once, "the stamp was when this program read it");
    }
}
