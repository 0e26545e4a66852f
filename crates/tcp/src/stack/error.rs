//! Why a call on the stack failed.

use crate::socket::{Endpoint, Failure};

/// Why a socket could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// All entries are in use: close sockets, or give the stack more.
    NoEntry,
    /// No ephemeral port towards that peer is free.
    NoPort,
    /// The port is in use, or the connection exists.
    InUse(Endpoint),
    /// This host has no address of the peer's family, or not the one asked for.
    NoAddress,
    /// The peer's address or port can't be a peer's: unspecified, multicast, broadcast, zero.
    BadPeer(Endpoint),
    /// A budget is out of range.
    Budget {
        /// Which one, by its name in [`Budgets`](crate::profile::Budgets).
        budget: &'static str,
        /// What was asked for.
        value: u16,
        /// The most that is possible here.
        most: u16,
    },
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoEntry => f.write_str("no free socket: close some, or give the stack more entries"),
            Self::NoPort => f.write_str("no free ephemeral port towards this peer"),
            Self::InUse(end) => write!(f, "{end} is in use"),
            Self::NoAddress => f.write_str("this host has no such address"),
            Self::BadPeer(end) => write!(f, "{end} can't be a peer"),
            Self::Budget { budget, value, most } => {
                write!(f, "the {budget} budget of {value} buffers is out of range: 1 to {most}")
            }
        }
    }
}

impl core::error::Error for OpenError {}

/// Why a call on a socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketError {
    /// The name's owner was closed.
    Gone,
    /// The connection ended badly.
    Failed(Failure),
    /// This end has closed its side.
    Closed,
    /// There is nothing to read yet.
    WouldBlock,
}

impl core::fmt::Display for SocketError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Gone => f.write_str("the socket was closed"),
            Self::Failed(Failure::Refused) => f.write_str("the peer refused the connection"),
            Self::Failed(Failure::Reset) => f.write_str("the peer reset the connection"),
            Self::Failed(Failure::TimedOut) => f.write_str("the peer no longer answers"),
            Self::Failed(Failure::Unreachable) => f.write_str("the peer can't be reached"),
            Self::Failed(Failure::Aborted) => f.write_str("the connection was aborted here"),
            Self::Closed => f.write_str("this end has closed its side of the connection"),
            Self::WouldBlock => f.write_str("nothing to read yet"),
        }
    }
}

impl core::error::Error for SocketError {}
