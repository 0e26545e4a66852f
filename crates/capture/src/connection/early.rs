//! Segments that were captured before the data that they acknowledge: two ports of a tap, or two queues of a card, are written to a
//! file in turn. Wireshark says "ACKed unseen segment" of them, and the data would read as needless retransmissions. They wait here
//! until the data have come, so that a connection sees causes before effects. What is *not* here: which data are missing (`half`);
//! those that the capture lacks look the same until something after them comes.

use std::collections::VecDeque;

use fullpipe_units::SeqNum;

use crate::{
    Flags,
    track::{options::Options, seen::Seen},
};

/// One direction is captured this much later than the other at the most; what is missing for longer is missing. (A guess: no source
/// gives a limit. Rings are emptied within a few milliseconds where packets are shown as they come.)
const LONGEST_NS: u64 = 10_000_000;

/// More don't wait: 10 ms hold as many acknowledgements at 1.2 Gbit/s, where each second segment is acknowledged.
const MOST: usize = 512;

/// Segments of one end, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Early {
    waiting: VecDeque<(Seen, Options)>,
}

impl Early {
    /// Whether none waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// As new, with the room that the list had.
    pub(super) fn empty(&mut self) {
        self.waiting.clear();
    }

    /// Whether a segment acknowledges and does nothing to the connection itself: others don't wait.
    #[inline]
    pub(super) const fn may_wait(seen: &Seen) -> bool {
        seen.flags.has(Flags::ACK) && !seen.flags.has(Flags::FIN.with(Flags::RST))
    }

    /// Up to where a segment says that data have arrived.
    #[inline]
    pub(super) fn edge(seen: &Seen, options: &Options) -> SeqNum {
        options.sack().iter().fold(seen.ack, |edge, (_, right)| edge.later(*right))
    }

    /// Has a segment wait.
    pub(super) fn push(&mut self, seen: &Seen, options: &Options) {
        self.waiting.push_back((*seen, *options));
    }

    /// Whether they are of the end that sent `seen`, which comes behind them.
    pub(super) fn are_before(&self, seen: &Seen) -> bool {
        self.waiting.front().is_some_and(|(first, _)| first.sender() == seen.sender())
    }

    /// The first one, if it can't wait any longer now that `seen` is next: for too long; for data that this passes over; or because this
    /// answers one of them. What waits for a hole to be filled (`has_come` says that all above it has) is not passed over by new data.
    pub(super) fn pop_before(&mut self, seen: &Seen, has_come: impl Fn(SeqNum) -> bool) -> Option<(Seen, Options)> {
        let takes_numbers = |early: &Seen| early.len > 0 || early.flags.has(Flags::SYN);
        let answers = seen.flags.has(Flags::ACK);
        let is_answered = |(early, _): &(Seen, Options)| answers && takes_numbers(early) && early.seq.before(seen.ack);
        let is_own = self.are_before(seen);
        let is_full = self.waiting.len() >= MOST;
        let is_late = is_full || if is_own { !Self::may_wait(seen) } else { self.waiting.iter().any(is_answered) };
        self.waiting.pop_front_if(|(first, options)| {
            let edge = Self::edge(first, options);
            let is_overdue = seen.at_ns.saturating_sub(first.at_ns) > LONGEST_NS;
            let is_passed = !is_own && seen.len > 0 && edge.at_or_before(seen.seq) && !has_come(edge);
            is_late || is_overdue || is_passed
        })
    }

    /// The first one.
    pub(super) fn first(&self) -> Option<(Seen, Options)> {
        self.waiting.front().copied()
    }

    /// The first one, which waits no longer.
    pub(super) fn pop(&mut self) -> Option<(Seen, Options)> {
        self.waiting.pop_front()
    }
}
