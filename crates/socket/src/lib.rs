//! Buffers of one socket that fit its path.
//!
//! An application that fixes its buffers at 64 KB gets 64 KB in each round trip, whatever the path carries. This library
//! reads the round-trip time and the MTU of the path from the kernel ([`Path`]), computes what the path needs, and then
//! does the least that gets it ([`Tuned`]): it leaves automatic sizing alone where that reaches far enough, takes back an
//! earlier `SO_RCVBUF` where the system allows it, sets a buffer where neither does, says which system setting bounds it,
//! and what 64 KB allow where a peer doesn't scale its window. [`Decision`] says what was done and why.
//!
//! ```
//! # use std::net::TcpListener;
//! # let listener = TcpListener::bind("127.0.0.1:0")?;
//! # let address = listener.local_addr()?;
//! use std::time::Duration;
//!
//! use fullpipe_socket::{Path, Tuned, Wish};
//! use socket2::{Domain, Socket, Type};
//!
//! let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
//! socket.set_recv_buffer_size(65_536)?; // what the application always did
//!
//! let path = Path::to(address, Duration::from_secs(3))?;
//! let mut tuned = Tuned::before_handshake(&socket, path, Wish::bulk("500M".parse()?))?;
//! socket.connect(&address.into())?;
//! println!("{}", tuned.look_again(&socket)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Linux, Windows, FreeBSD and macOS. What each system tells of a connection is in [`Info`], which `fullpipe measure` reads
//! too; the sizes themselves are `fullpipe_units::sizing`, which the planner uses for whole hosts.
//!
//! What is *not* here: settings of the system (`fullpipe plan` and `apply`), the choice of a congestion control, and
//! `Nagle`'s algorithm, which is the application's own affair.
//!
//! Read first: RFC 7323, section 2 (a window's scale is decided in the handshake), socket(7) and tcp(7) of Linux.
#![deny(unsafe_op_in_unsafe_fn)]

mod decision;
pub mod info;
mod limits;
mod memory;
mod path;
#[cfg(all(target_os = "linux", feature = "processes"))]
pub mod processes;
mod sys;
mod tuned;

pub use decision::{Decision, Kept, Short, Why};
pub use fullpipe_units::{Bytes, Micros, Rate, sizing::Goal};
pub use info::Info;
pub use limits::{Buffer, Limits};
pub use memory::{Fixed, Memory, unread};
pub use path::Path;
pub use tuned::{Tuned, Wish, WithoutScaling, connect};

/// A socket of any kind: `TcpStream`, `TcpListener`, `socket2::Socket`, and those of asynchronous runtimes.
#[cfg(unix)]
pub trait Handle: std::os::fd::AsFd {}
#[cfg(unix)]
impl<S: std::os::fd::AsFd> Handle for S {}

/// A socket of any kind: `TcpStream`, `TcpListener`, `socket2::Socket`, and those of asynchronous runtimes.
#[cfg(windows)]
pub trait Handle: std::os::windows::io::AsSocket {}
#[cfg(windows)]
impl<S: std::os::windows::io::AsSocket> Handle for S {}
