//! Sockets of other processes (Linux 5.6 and later).

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::fstat,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

/// A descriptor of one's own for the socket with this inode, which is descriptor `fd` of process `pid`; `None` where it is gone,
/// or the number is another file's by now. See pidfd_getfd(2).
///
/// # Errors
///
/// Without the right to (`PTRACE_MODE_ATTACH_REALCREDS`), or where the kernel can't.
pub fn take(pid: u32, fd: u32, inode: u32) -> io::Result<Option<OwnedFd>> {
    let number = |number: u32| i32::try_from(number).ok();
    let Some((pid, fd)) = number(pid).and_then(Pid::from_raw).zip(number(fd)) else { return Ok(None) };
    let taken =
        pidfd_open(pid, PidfdFlags::empty()).and_then(|process| pidfd_getfd(process, fd, PidfdGetfdFlags::empty()));
    match taken {
        Ok(taken) => Ok(fstat(&taken).is_ok_and(|stat| stat.st_ino == u64::from(inode)).then_some(taken)),
        Err(rustix::io::Errno::SRCH | rustix::io::Errno::BADF) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
