//! Segments sorted into parts, so that each part's connections can be followed by themselves: by another thread, or
//! simply many at once. What is *not* here: following them, and threads.

use super::{
    options::Options,
    seen::{Parts, Seen},
};
use crate::{
    Flags, Key, Segment, TooBig,
    table::{Tag, Tags},
};

/// How many parts there are, whoever follows them: what is found must not depend on that. One reader of packets keeps
/// three followers busy at most.
pub const PARTS: usize = 4;

/// A segment with what sorting found out about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) key: Key,
    pub(super) tag: Tag,
    /// Whether the capture cut its options.
    pub(super) options_cut: bool,
    /// Whether it has other options than timestamps: see [`Batch::rare`].
    pub(super) is_rare: bool,
    pub(super) seen: Seen,
}

/// Segments of one part's connections, in the order of the file.
#[derive(Clone, Debug)]
pub struct Batch {
    part: usize,
    most: usize,
    pub(super) notes: Vec<Note>,
    /// The options of those that have others than timestamps, in their order.
    rare: Vec<Options>,
    /// Messages, and how many of the segments were before each.
    pub(super) too_big: Vec<(usize, TooBig)>,
}

impl Batch {
    /// An empty one.
    fn new(part: usize, most: usize) -> Self {
        Self { part, most, notes: Vec::with_capacity(most), rare: Vec::new(), too_big: Vec::new() }
    }

    /// Another one like this, but empty.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(self.part, self.most)
    }

    /// Which part's it is.
    pub const fn part(&self) -> usize {
        self.part
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.too_big.is_empty()
    }

    /// Hands over what is in it, and goes on in the room of `used`.
    pub fn exchange(&mut self, mut used: Self) -> Self {
        used.clear();
        (used.part, used.most) = (self.part, self.most);
        core::mem::replace(self, used)
    }

    /// Takes everything out; the room stays.
    pub fn clear(&mut self) {
        self.notes.clear();
        self.rare.clear();
        self.too_big.clear();
    }

    /// The options of those notes that have others than timestamps.
    pub(super) fn rare(&self) -> impl Iterator<Item = &Options> {
        self.rare.iter()
    }

    fn is_full(&self) -> bool {
        self.notes.len() >= self.most || self.too_big.len() >= self.most
    }
}

/// The capture's own clock, by which connections are over: it only goes forward, and no more than a minute from one
/// segment to the next. Files that were merged, and packets with a wrong date, jump by years and back; a connection that
/// goes on must not be two because of that, and what is found must not depend on who looks when.
#[derive(Clone, Debug, Default)]
struct Clock {
    before_ns: Option<u64>,
    passed_ns: u64,
}

/// The longest step of it.
const LONGEST_STEP_NS: u64 = 60_000_000_000;

impl Clock {
    /// The time of a segment that was captured at `at_ns`, in seconds since the first one.
    #[inline]
    fn tick(&mut self, at_ns: u64) -> u32 {
        let step_ns = at_ns.saturating_sub(self.before_ns.replace(at_ns).unwrap_or(at_ns));
        self.passed_ns = self.passed_ns.saturating_add(step_ns.min(LONGEST_STEP_NS));
        u32::try_from(self.passed_ns / 1_000_000_000).unwrap_or(u32::MAX)
    }
}

/// Sorts segments into a batch for each part.
#[derive(Clone, Debug)]
pub struct Sorter {
    tags: Tags,
    clock: Clock,
    batches: [Batch; PARTS],
}

impl Sorter {
    /// Batches of at most `most` segments. `seed` must be one that the author of a capture can't foresee, and the same as
    /// that of the followers.
    pub fn new(seed: u64, most: usize) -> Self {
        Self {
            tags: Tags::new(seed),
            clock: Clock::default(),
            batches: core::array::from_fn(|part| Batch::new(part, most.max(1))),
        }
    }

    /// Sorts a segment in; answers the batch that is full now.
    #[inline]
    pub fn segment(&mut self, segment: &Segment<'_>) -> Option<&mut Batch> {
        let (key, sender) = Key::from_flow(&segment.flow);
        let (tag, ends) = self.tags.with_ends(&key);
        let batch = &mut self.batches[part(ends)];
        let mut timestamps = Options::timestamps_alone(segment.options);
        let is_rare = timestamps.is_none() && !segment.options.is_empty();
        if is_rare {
            let options = Options::walk(segment.options);
            timestamps = options.timestamps;
            batch.rare.push(options);
        }
        let network = &segment.network;
        let seen = Seen::new(Parts {
            at_ns: segment.at_ns,
            clock_s: self.clock.tick(segment.at_ns),
            number: segment.number,
            sender,
            seq: segment.seq,
            ack: segment.ack,
            timestamps,
            len: segment.payload_len,
            length: network.length,
            link: segment.link.0,
            window: segment.window,
            flags: segment.flags,
            id: network.id,
            hop_limit: network.hop_limit,
            ecn: network.ecn,
        });
        batch.notes.push(Note { key, tag, options_cut: segment.options_cut, is_rare, seen });
        batch.is_full().then_some(batch)
    }

    /// The same for a message about a packet that was too big.
    pub fn too_big(&mut self, notice: &TooBig) -> Option<&mut Batch> {
        let (key, _) = Key::from_flow(&notice.about);
        let batch = &mut self.batches[part(self.tags.with_ends(&key).1)];
        batch.too_big.push((batch.notes.len(), *notice));
        batch.is_full().then_some(batch)
    }

    /// All batches, however full.
    pub fn batches(&mut self) -> &mut [Batch; PARTS] {
        &mut self.batches
    }
}

/// Of the tag of a connection's ends: one that is tunnelled may be one with another that is not. The index of a table uses a tag's
/// lowest bits.
#[inline]
const fn part(Tag(tag): Tag) -> usize {
    (tag >> 30) as usize % PARTS
}

impl Note {
    /// Whether it opens a connection: a SYN that answers nothing.
    #[inline]
    pub(super) const fn opens(&self) -> bool {
        self.seen.flags.has(Flags::SYN) && !self.seen.flags.has(Flags::ACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_no_larger_than_it_was() {
        assert_eq!(size_of::<Note>(), 104);
    }

    #[test]
    fn the_clock_of_a_capture_takes_no_leaps() {
        let mut clock = Clock::default();
        let seconds = [1_000_000, 1_000_010, 1_000_005, 2_000_000, 1_000_006, 1_000_016];
        let ticks = seconds.map(|second: u64| clock.tick(second * 1_000_000_000));
        assert_eq!(ticks, [0, 10, 10, 70, 70, 80]);
    }
}
