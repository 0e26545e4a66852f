//! What a hop counted.

use core::time::Duration;

/// Counters of one queue. Packets, unless the name says otherwise; since the machine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Taken into the queue, among them those that were dropped from it later.
    pub enqueued: u64,
    /// Refused because the queue was full.
    pub dropped_full: u64,
    /// Dropped early by RED.
    pub dropped_red: u64,
    /// Dropped from the head by CoDel.
    pub dropped_codel: u64,
    /// Marked "congestion experienced" instead of dropped.
    pub marked: u64,
    /// The most packets that waited at one time. The one being serialised has left the queue.
    pub max_packets: u64,
    /// The most bytes that waited at one time.
    pub max_bytes: u64,
    /// Packets that left towards the link, the divisor of the mean wait.
    pub dequeued: u64,
    /// The sum of all times from arrival to the start of serialisation, for packets that were sent.
    pub total_wait: Duration,
    /// The longest such time.
    pub max_wait: Duration,
}

/// Counters of one hop in one direction. Packets, unless the name says otherwise; since the machine was made.
///
/// `arrived + duplicated = delivered + dropped() + inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopStats {
    /// Came in.
    pub arrived: u64,
    /// Went out at the far end, duplicates included.
    pub delivered: u64,
    /// Bytes of IP packets that went out at the far end.
    pub delivered_bytes: u64,
    /// Are queued, being serialised or on the wire now.
    pub inside: u64,
    /// The queue's own counters; zero where the hop has no rate and so no queue.
    pub queue: QueueStats,
    /// Lost on the wire.
    pub lost: u64,
    /// Larger than the MTU, answered with "too big".
    pub too_big: u64,
    /// Larger than the MTU, dropped without a word.
    pub black_holed: u64,
    /// Dropped by the policer.
    pub policed: u64,
    /// Acknowledgements that were left out because a later one says what they said.
    pub thinned: u64,
    /// Copies that were added.
    pub duplicated: u64,
    /// Taken out of order on purpose.
    pub reordered: u64,
}

impl HopStats {
    /// All packets that came in and will never come out, whatever the reason.
    pub fn dropped(&self) -> u64 {
        let queue = &self.queue;
        let in_queue = queue.dropped_full + queue.dropped_red + queue.dropped_codel;
        in_queue + self.lost + self.too_big + self.black_holed + self.policed + self.thinned
    }
}

impl QueueStats {
    /// The mean time from arrival to the start of serialisation; zero where nothing was sent.
    pub fn mean_wait(&self) -> Duration {
        let nanos = self.total_wait.as_nanos().checked_div(u128::from(self.dequeued)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
