//! `getsockopt`, `setsockopt`, `ioctl` and `sysctlbyname`.
#![expect(unsafe_code, reason = "socket options and sysctls that no safe wrapper offers")]

use std::{io, os::fd::AsRawFd};

use crate::Handle;

/// What the kernel says of a connection: `TCP_INFO`, on macOS `TCP_CONNECTION_INFO`. Returns how many bytes it filled.
pub(crate) fn tcp_info(socket: &impl Handle, raw: &mut [u8]) -> io::Result<usize> {
    #[cfg(target_vendor = "apple")]
    const NAME: libc::c_int = libc::TCP_CONNECTION_INFO;
    #[cfg(not(target_vendor = "apple"))]
    const NAME: libc::c_int = libc::TCP_INFO;
    read_option(socket, (libc::IPPROTO_TCP, NAME), raw)
}

/// The counters of `SO_MEMINFO`, in the order of include/uapi/linux/sock_diag.h (Linux 4.12).
#[cfg(target_os = "linux")]
pub(crate) fn mem_info(socket: &impl Handle) -> io::Result<[u32; 9]> {
    const SO_MEMINFO: libc::c_int = 55;
    let mut raw = [0u8; 36];
    let len = read_option(socket, (libc::SOL_SOCKET, SO_MEMINFO), &mut raw)?;
    if len < raw.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut words = [0; 9];
    for (word, bytes) in words.iter_mut().zip(raw.as_chunks::<4>().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    Ok(words)
}

/// `SO_BUF_LOCK` (Linux 5.15; missing from `libc`, include/uapi/asm-generic/socket.h).
#[cfg(target_os = "linux")]
const SO_BUF_LOCK: libc::c_int = 72;

/// The bits of `SO_BUF_LOCK`: 1 for a send buffer that a call set, 2 for a receive buffer.
#[cfg(target_os = "linux")]
pub(crate) fn buffer_locks(socket: &impl Handle) -> io::Result<i32> {
    let mut raw = [0u8; 4];
    match read_option(socket, (libc::SOL_SOCKET, SO_BUF_LOCK), &mut raw)? {
        4 => Ok(i32::from_ne_bytes(raw)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sets these bits: what they don't name, the kernel sizes again.
#[cfg(target_os = "linux")]
pub(crate) fn set_buffer_locks(socket: &impl Handle, locks: i32) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads the four bytes of `locks`, whose size is given.
    let result = unsafe { libc::setsockopt(descriptor, libc::SOL_SOCKET, SO_BUF_LOCK, (&raw const locks).cast(), 4) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Received and not yet read by the application.
pub(crate) fn unread(socket: &impl Handle) -> io::Result<u64> {
    ioctl_number(socket, libc::FIONREAD)
}

/// Bytes in the send buffer, under way or not.
#[cfg(target_os = "freebsd")]
pub(crate) fn queued(socket: &impl Handle) -> io::Result<u64> {
    /// `_IOR('f', 119, int)` of sys/filio.h; missing from `libc`.
    const FIONWRITE: libc::c_ulong = 0x4004_6677;
    ioctl_number(socket, FIONWRITE)
}

#[cfg(target_os = "linux")]
type Request = libc::Ioctl;
#[cfg(not(target_os = "linux"))]
type Request = libc::c_ulong;

fn ioctl_number(socket: &impl Handle, request: Request) -> io::Result<u64> {
    let mut number: libc::c_int = 0;
    // SAFETY: both requests write one int, to `number`.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), request, &raw mut number) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    u64::try_from(number).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// A sysctl that is a number of four or eight bytes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sysctl(name: &std::ffi::CStr) -> Option<u64> {
    let mut raw = [0u8; 8];
    let mut len = raw.len();
    // SAFETY: the name ends with a zero; the kernel writes at most `len` bytes, the size of `raw`, and the count to `len`.
    let result =
        unsafe { libc::sysctlbyname(name.as_ptr(), raw.as_mut_ptr().cast(), &raw mut len, std::ptr::null_mut(), 0) };
    match (result, len) {
        (0, 4) => raw.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes))),
        (0, 8) => Some(u64::from_ne_bytes(raw)),
        _ => None,
    }
}

fn read_option(socket: &impl Handle, (level, name): (libc::c_int, libc::c_int), raw: &mut [u8]) -> io::Result<usize> {
    let mut len = libc::socklen_t::try_from(raw.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `raw`, and the count to `len`.
    let result =
        unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, raw.as_mut_ptr().cast(), &raw mut len) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(len).unwrap_or(0).min(raw.len()))
}
