//! A TCP/IP engine: a stack that firmware could run, and the engine inside the simulator.
//!
//! `no_std`, no heap, no `unsafe`; time and randomness are arguments, and nothing here knows a socket of the
//! operating system, a file or a clock. Memory is given by the caller ([`stack::Storage`]): a
//! [pool](pool::PoolMemory) of packet buffers, shared by all connections and both directions, and the sockets'
//! entries. Each socket has budgets in buffers ([`profile::Budgets`]); the offered window follows the receive budget.
//!
//! One host behind one device is a [`stack::Stack`]:
//!
//! ```
//! use fullpipe_tcp::{SecretKey, socket::{Endpoint, SocketOptions}, stack::{Config, Device, Stack, StackMemory}};
//! use fullpipe_units::Instant;
//!
//! let key = SecretKey([0; 16]); // drawn at random in earnest
//! let config = Config::new("192.0.2.1".parse().unwrap(), Device::plain(1500), key);
//! let options = SocketOptions::from_profile(&config.profile);
//! let mut stack = Stack::new(StackMemory::<4>::new(), config);
//! let now = Instant::ZERO;
//! let peer = Endpoint::new("192.0.2.2".parse().unwrap(), 80);
//! let socket = stack.connect(now, None, peer, options).unwrap();
//! let syn = stack.poll_transmit(now).unwrap();
//! assert_eq!(syn.headers()[0], 0x45);
//! # drop(socket);
//! ```
//!
//! A device that carries Ethernet frames has a [`link::Link`] in between, which finds the neighbours.
//!
//! Features, all on by default, leave out what an application does without: `ipv6`; `sack` (RFC 2018, with RACK-TLP and
//! DSACK); `cubic`; `bbr` (with pacing); `counts` (what a socket and a stack have counted); `timestamps` (and PAWS); `ecn`; `fast-open`; `cookies`
//! (SYN cookies); `keepalive` (and reaping by age); `large-tables` (many sockets are found as fast as few); `path-search`
//! (larger segments are searched for: RFC 4821); `platforms` (the profiles of other systems, and receive buffers that grow).
//! Without all of them it is TCP with window scaling, NewReno, delayed acknowledgements, Nagle, the user timeout, zero-window
//! probes, path-MTU discovery and the defences of RFC 5961.
//!
//! One more, off by default, adds memory on the heap for hosts that have one: `alloc` (`heap::HeapStorage`).
//!
//! What platforms do differently is data: [`profile::Profile`]. What the RFCs ask for and this engine does not do
//! is in [`refusals`]. Read first: RFC 9293; then [`socket`] for the state machine, `send` and `recv` for its
//! two halves.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod congestion;
mod divide;
#[cfg(feature = "fast-open")]
pub mod fast_open;
mod hash;
#[cfg(feature = "alloc")]
pub mod heap;
pub mod link;
pub mod pool;
pub mod profile;
mod recv;
pub mod refusals;
mod rtt;
mod send;
pub mod socket;
pub mod stack;
mod tally;
mod time;
pub mod wire;

pub use hash::SecretKey;

/// Built for a small device, whose flash is counted: rules that save only time, or that only simulations ask for, are left out.
pub(crate) const IS_DEVICE: bool = cfg!(all(target_pointer_width = "32", not(target_family = "wasm")));
