//! Datagrams with the moment at which this program saw them: the kernel is not asked for its own.

use std::{
    io,
    net::UdpSocket,
    time::{SystemTime, UNIX_EPOCH},
};

#[expect(clippy::unnecessary_wraps, reason = "the signature of the system whose kernel is asked")]
pub(crate) fn enable(_: &UdpSocket) -> io::Result<()> {
    Ok(())
}

/// The length of the next datagram, and when it came, in nanoseconds since 1970.
pub(crate) fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
    let count = socket.recv(buffer)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok((count, now.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(0))))
}
