//! Packet captures: from the bytes of a file to the stories of its connections.
//!
//! Two halves meet in [`Segment`]: below it, containers, link layers, tunnels and fragments are taken apart; above it,
//! connections are followed and described as transfers that the judge understands. All of it is pure over bytes: what is
//! *not* here is opening, decompressing or waiting for a file.
#![forbid(unsafe_code)]

mod connection;
mod container;
mod filter;
mod fingerprint;
mod link;
mod net;
mod problem;
mod segment;
mod slab;
mod story;
mod table;
mod trace;
mod track;
mod view;
mod walk;

pub use connection::half::Counters;
pub use container::{NotACapture, Reader};
pub use filter::{Filter, Filtered, ParseFilterError};
pub use fingerprint::Platform;
pub use problem::{Problem, ProblemKind, Problems};
pub use segment::{Address, Endpoint, Flags, Flow, LinkStamp, Network, Segment, Sink, TooBig};
pub use story::{ClockSetBack, Handshake, Report, Reports, Side, Verdict};
pub use table::{Key, Sender, Slot, Table};
pub use trace::{Mark, Point, Trace, Tracer, Wanted};
pub use track::{Batch, Findings, Follower, Keep, PARTS, Sorter, Tracker};
pub use walk::Totals;
