//! The system calls, and the only `unsafe` code of this crate: options of a socket that no safe wrapper offers (`socket2`
//! and `rustix` have none of `TCP_INFO`, `SO_MEMINFO`, `SO_BUF_LOCK`, `SIO_TCP_INFO` and `sysctlbyname`).
//!
//! Each function hands bytes or a number on as they are. What they mean is in `info`, `memory` and `limits`.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
