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
    fn of(part: usize, most: usize) -> Self {
        Self { part, most, notes: Vec::with_capacity(most), rare: Vec::new(), too_big: Vec::new() }
    }

    /// Another one like this, but empty.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::of(self.part, self.most)
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

/// Sorts segments into a batch for each part.
#[derive(Clone, Debug)]
pub struct Sorter {
    tags: Tags,
    batches: [Batch; PARTS],
}

impl Sorter {
    /// Batches of at most `most` segments. `seed` must be one that the author of a capture can't foresee, and the same as
    /// that of the followers.
    pub fn new(seed: u64, most: usize) -> Self {
        Self { tags: Tags::new(seed), batches: core::array::from_fn(|part| Batch::of(part, most.max(1))) }
    }

    /// Sorts a segment in; answers the batch that is full now.
    #[inline]
    pub fn segment(&mut self, segment: &Segment<'_>) -> Option<&mut Batch> {
        let (key, sender) = Key::of(&segment.flow);
        let tag = self.tags.of(&key);
        let batch = &mut self.batches[part(tag)];
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
        let (key, _) = Key::of(&notice.about);
        let batch = &mut self.batches[part(self.tags.of(&key))];
        batch.too_big.push((batch.notes.len(), *notice));
        batch.is_full().then_some(batch)
    }

    /// All batches, however full.
    pub fn batches(&mut self) -> &mut [Batch; PARTS] {
        &mut self.batches
    }
}

/// The index of a table uses a tag's lowest bits.
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
