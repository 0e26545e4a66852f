//! What is asked of the system beyond what the standard library offers: that datagrams are never fragmented, what is
//! believed of the path, and when a datagram came. Where a system has no call for it, the other file says what happens then.

#[cfg(target_os = "linux")]
pub(crate) mod fragment;
#[cfg(not(target_os = "linux"))]
#[path = "fragment_elsewhere.rs"]
pub(crate) mod fragment;
#[cfg(target_os = "linux")]
pub(crate) mod stamp;
#[cfg(not(target_os = "linux"))]
#[path = "stamp_elsewhere.rs"]
pub(crate) mod stamp;

use std::io;

use rustix::io::Errno;

/// Whether a datagram was too long for the interface, or for a link on the way as ICMP reported.
pub(crate) fn is_too_big(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}
