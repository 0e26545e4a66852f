//! The judge: one connection's story in, what limited it out.
//!
//! Every source of evidence (a live test, a host's own sockets, a capture, the simulator, our own engine) becomes a
//! [`Transfer`]; [`diagnose`] turns it into a [`Diagnosis`]; [`proof::compare`] says whether a change helped. All of it
//! is pure: no socket, file or clock. What is *not* here: which setting on which platform lifts a limiter (`knobs`).
#![forbid(unsafe_code)]

mod classify;
mod diagnosis;
mod guard;
mod loss;
mod opening;
mod packets;
mod path;
mod pauses;
mod policer;
pub mod proof;
mod receiver;
mod sentences;
mod shared;
mod stats;
mod streams;
mod thresholds;
mod timeline;
mod transfer;
mod verdict;
mod windows;

pub use diagnosis::{Alternative, Confidence, Detail, Diagnosis, Evidence, Limiter, Shares, limit_words, percent};
pub use shared::{BottleneckKind, CapturePlace, CommonEnd, Passage, SharedBottleneck, own_link, shared_bottleneck};
pub use streams::diagnose_streams;
pub use transfer::{
    Buffer, CongestionState, Drop, Drops, End, Opening, PacketSample, PathRate, ReceiverSample, RttSummary,
    SenderSample, Source, SynFacts, Transfer,
};
pub use verdict::{Run, diagnose, diagnose_with_runs, runs};
pub use windows::held_share;
