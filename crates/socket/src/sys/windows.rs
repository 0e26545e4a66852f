//! `WSAIoctl` and `ioctlsocket`.
#![expect(unsafe_code, reason = "SIO_TCP_INFO and FIONREAD, which no safe wrapper offers")]

use std::{
    io,
    os::windows::{io::AsRawSocket, process::CommandExt},
    ptr,
};

use windows_sys::Win32::Networking::WinSock::{
    FIONREAD, SIO_TCP_INFO, SOCKET, SOCKET_ERROR, WSAGetLastError, WSAIoctl, ioctlsocket,
};

use crate::Handle;

fn raw_socket(socket: &impl Handle) -> SOCKET {
    socket.as_socket().as_raw_socket() as SOCKET
}

fn last_error() -> io::Error {
    // SAFETY: reads a number of this thread.
    io::Error::from_raw_os_error(unsafe { WSAGetLastError() })
}

/// `SIO_TCP_INFO`: `TCP_INFO_v1`, else `TCP_INFO_v0` where the system knows no other. Returns how many bytes it filled.
pub(crate) fn tcp_info(socket: &impl Handle, raw: &mut [u8]) -> io::Result<usize> {
    tcp_info_version(socket, 1, raw).or_else(|_| tcp_info_version(socket, 0, raw))
}

fn tcp_info_version(socket: &impl Handle, version: u32, raw: &mut [u8]) -> io::Result<usize> {
    let size = u32::try_from(raw.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut len = 0u32;
    // SAFETY: the input is four bytes and the output `size`, as passed; the count goes to `len`; nothing is overlapped, so
    // that the call is over when it returns.
    let result = unsafe {
        WSAIoctl(
            raw_socket(socket),
            SIO_TCP_INFO,
            (&raw const version).cast(),
            4,
            raw.as_mut_ptr().cast(),
            size,
            &raw mut len,
            ptr::null_mut(),
            None,
        )
    };
    if result == SOCKET_ERROR {
        return Err(last_error());
    }
    Ok(usize::try_from(len).unwrap_or(0).min(raw.len()))
}

/// Received and not yet read by the application.
pub(crate) fn unread(socket: &impl Handle) -> io::Result<u64> {
    let mut number = 0u32;
    // SAFETY: FIONREAD writes one u32, to `number`.
    let result = unsafe { ioctlsocket(raw_socket(socket), FIONREAD, &raw mut number) };
    if result == SOCKET_ERROR { Err(last_error()) } else { Ok(number.into()) }
}

/// What `netsh interface tcp show global` prints; `None` where it can't be run. No window opens, and no other program of
/// that name is run than the system's own.
pub(crate) fn show_global() -> Option<String> {
    /// CREATE_NO_WINDOW of CreateProcess.
    const NO_WINDOW: u32 = 0x0800_0000;
    let root = std::env::var_os("SystemRoot")?;
    let program = std::path::Path::new(&root).join(r"System32\netsh.exe");
    let mut command = std::process::Command::new(program);
    command.args(["interface", "tcp", "show", "global"]).stdin(std::process::Stdio::null()).creation_flags(NO_WINDOW);
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
