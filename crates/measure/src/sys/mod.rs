//! What is asked of the kernel: the few socket calls of Linux that no safe wrapper offers, and `/proc`.
//!
//! What each system's kernel tells of a connection is read by `fullpipe_socket`. What else Linux is asked for here, another
//! system is not: there `sockopt` moves payload all the same, and what it can't read is reported as not seen. Not here:
//! anything that decides what the numbers mean.

pub(crate) mod cpu;
pub(crate) mod host;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
#[cfg(target_os = "linux")]
pub(crate) mod send_file;
#[cfg(not(target_os = "linux"))]
#[path = "send_file_elsewhere.rs"]
pub(crate) mod send_file;
#[cfg(target_os = "linux")]
pub(crate) mod sockopt;
#[cfg(not(target_os = "linux"))]
#[path = "sockopt_elsewhere.rs"]
pub(crate) mod sockopt;
#[cfg(target_os = "linux")]
pub(crate) mod splice;
pub(crate) mod traffic_class;
pub(crate) mod wait;
