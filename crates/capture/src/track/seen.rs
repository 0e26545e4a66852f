//! A segment as its connection sees it. What is *not* here: what it means.

use fullpipe_units::SeqNum;

use super::options::Options;
use crate::{Flags, Sender};

/// The year 2116, in nanoseconds since 1970: later times are taken for this one, so that sums of times fit.
pub(crate) const LATEST_NS: u64 = 1 << 62;

/// One segment of a known connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) at_ns: u64,
    pub(crate) sender: Sender,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) len: u32,
    pub(crate) length: u32,
    pub(crate) id: Option<u16>,
    pub(crate) hop_limit: u8,
    pub(crate) ecn: u8,
    pub(crate) link: u32,
    pub(crate) options: Options,
}
