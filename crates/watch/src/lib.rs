//! This host's own TCP connections, looked at as they are, and judged: no packet is sent and nothing is changed.
//!
//! Linux' `sock_diag` tells of every connection what `TCP_INFO` tells of one's own ([`wire`]); Windows has statistics of each
//! connection (ESTATS), FreeBSD and macOS a table that sysctl(3) reads. A [`Watcher`] looks once in each
//! interval, and more often at the few that are busy, keeps a short story of those, and gives it to the judge that `check`
//! uses ([`fullpipe_diagnose::diagnose`]): there is no second one here. What comes out is a [`Frame`] for each interval,
//! which is also what a recording holds.
//!
//! What is over between two looks only BPF tells of (`fullpipe-bpf`, Linux), and only a [`Meter`] is given it.
//!
//! What is *not* here: how a frame looks on a terminal (`fullpipe-report`); and any change of a socket, but that [`unpin`] gives
//! one back to automatic sizing, and that on Windows a connection's statistics are kept while it is watched.
//!
//! Read first: sock_diag(7), tcp(7), and include/uapi/linux/inet_diag.h of the kernel.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "control groups, and a few settings that bound buffers, are Linux' own")
)]

mod account;
mod filter;
mod frame;
#[cfg(any(target_os = "freebsd", test))]
mod freebsd;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod look;
#[cfg(any(target_os = "macos", test))]
mod macos;
mod meter;
mod notes;
mod owner;
pub mod record;
mod source;
mod story;
mod table;
#[cfg(any(windows, target_os = "freebsd", target_os = "macos", test))]
mod table_row;
#[cfg(any(target_os = "freebsd", target_os = "macos", test))]
mod tables;
mod watcher;
#[cfg(any(windows, test))]
mod windows;
pub mod wire;

#[cfg(target_os = "linux")]
mod diag;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
pub mod unpin;

pub use filter::{Filter, FilterError};
pub use frame::{Frame, Listener, MOST_RECORDED, Row, Sort};
#[cfg(feature = "otlp")]
pub use meter::Resource;
pub use meter::{Destinations, Exposition, MOST_NAMES, MOST_PAIRS, MOST_SERIES, Meter};
pub use notes::{Note, Subject};
pub use owner::Owner;
pub use watcher::{WatchError, Watcher};
