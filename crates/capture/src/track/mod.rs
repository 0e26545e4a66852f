//! From segments to connections: sorts them into parts, and follows the connections of each part. What is *not* here: what
//! happens within a connection (`connection`).

mod batch;
mod entry;
mod follower;
mod journal;
pub(crate) mod listed;
pub(crate) mod options;
pub(crate) mod seen;
mod ways;

#[cfg(test)]
mod tests;

pub use batch::{Batch, PARTS, Sorter};
pub use follower::Follower;

use crate::{Segment, Sink, TooBig, story::Reports};

/// Segments in a batch: four of them fit into the second-level cache beside everything else.
const BATCH: usize = 64;

/// Follows the connections of a capture, in the thread that reads it.
///
/// It does itself what can also be shared out: a [`Sorter`] in one thread, each [`Follower`] in any, and what they found
/// joined by [`Findings::join`].
#[derive(Debug)]
pub struct Tracker {
    sorter: Sorter,
    followers: [Follower; PARTS],
}

/// What is to be kept of the stories.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// The transfers that were judged, sample by sample, of every connection that was worth following.
    pub transfers: bool,
}

/// What a capture held.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The connections, in the order of their first packets.
    pub connections: Reports,
    /// Connections without payload that are not among them, because there were too many.
    pub unlisted: u64,
    /// Of these, SYNs that nobody answered, summed up while too many connections were open.
    pub unanswered: u64,
    /// TCP segments.
    pub segments: u64,
}

impl Findings {
    /// What the followers of all parts found, as one.
    pub fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: Vec<Self> = parts.into_iter().collect();
        let mut whole = Self::default();
        whole.connections.reserve(parts.iter().map(|part| part.connections.len()).sum());
        for part in parts {
            whole.connections.append(part.connections);
            whole.unlisted += part.unlisted;
            whole.unanswered += part.unanswered;
            whole.segments += part.segments;
        }
        whole.connections.number();
        whole
    }
}

impl Tracker {
    /// Nothing seen yet. `seed` must be one that the author of a capture can't foresee (see [`crate::Table::new`]).
    pub fn new(seed: u64, keep: Keep) -> Self {
        Self { sorter: Sorter::new(seed, BATCH), followers: core::array::from_fn(|_| Follower::new(seed, keep)) }
    }

    /// The stories of all connections.
    pub fn finish(mut self) -> Findings {
        for (batch, follower) in self.sorter.batches().iter().zip(&mut self.followers) {
            follower.follow(batch);
        }
        Findings::join(self.followers.map(Follower::finish))
    }
}

impl Sink for Tracker {
    #[inline]
    fn segment(&mut self, segment: &Segment<'_>) {
        if let Some(batch) = self.sorter.segment(segment) {
            self.followers[batch.part() % PARTS].follow(batch);
            batch.clear();
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        if let Some(batch) = self.sorter.too_big(notice) {
            self.followers[batch.part() % PARTS].follow(batch);
            batch.clear();
        }
    }
}
