//! Segments sorted into parts, so that each part's connections can be followed by themselves: by another thread, or
//! simply many at once. What is *not* here: following them, and threads.

use fullpipe_units::SeqNum;

use super::{
    options::Options,
    seen::{LATEST_NS, Seen},
};
use crate::{
    Flags, Key, Segment, Sender, TooBig,
    table::{Tag, Tags},
};

/// How many parts there are, whoever follows them: what is found must not depend on that. One reader of packets keeps
/// three followers busy at most.
pub const PARTS: usize = 4;

/// A segment with what sorting found out about it. Numbers of one size each: the thread that reads packets writes little
/// else, and structures in structures would be copied in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) key: Key,
    at_ns: u64,
    number: u64,
    pub(super) tag: Tag,
    seq: u32,
    ack: u32,
    timestamps: [u32; 2],
    len: u32,
    length: u32,
    link: u32,
    window: u16,
    pub(super) flags: Flags,
    id: u16,
    hop_limit: u8,
    bits: u8,
}

/// Bits of a note: ECN in the lowest two, then these.
mod bit {
    /// The high end sent it.
    pub(super) const HIGH: u8 = 4;
    pub(super) const ID: u8 = 8;
    pub(super) const TIMESTAMPS: u8 = 16;
    pub(super) const OPTIONS_CUT: u8 = 32;
    /// It has other options than timestamps.
    pub(super) const RARE: u8 = 64;
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

    /// The options that [`Note::seen`] asks for.
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
        let timestamps = Options::timestamps_alone(segment.options);
        let network = &segment.network;
        let set = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let is_rare = timestamps.is_none() && !segment.options.is_empty();
        batch.notes.push(Note {
            key,
            at_ns: segment.at_ns,
            number: segment.number,
            tag,
            seq: segment.seq.get(),
            ack: segment.ack.get(),
            timestamps: timestamps.unwrap_or_default(),
            len: segment.payload_len,
            length: network.length,
            link: segment.link.0,
            window: segment.window,
            flags: segment.flags,
            id: network.id.unwrap_or(0),
            hop_limit: network.hop_limit,
            bits: network.ecn & 3
                | set(sender == Sender::High, bit::HIGH)
                | set(network.id.is_some(), bit::ID)
                | set(timestamps.is_some(), bit::TIMESTAMPS)
                | set(segment.options_cut, bit::OPTIONS_CUT)
                | set(is_rare, bit::RARE),
        });
        if is_rare {
            batch.rare.push(Options::walk(segment.options));
        }
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
    const fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    pub(super) const fn options_cut(&self) -> bool {
        self.has(bit::OPTIONS_CUT)
    }

    /// Whether it opens a connection: a SYN that answers nothing.
    pub(super) const fn opens(&self) -> bool {
        self.flags.has(Flags::SYN) && !self.flags.has(Flags::ACK)
    }

    /// The segment; `rare` are the options of those that have others than timestamps, from this one on.
    #[inline]
    pub(super) fn seen<'a>(&self, rare: &mut impl Iterator<Item = &'a Options>) -> Seen {
        let options = if self.has(bit::RARE) {
            rare.next().copied().unwrap_or_default()
        } else {
            let [value, echo] = self.timestamps;
            Options { timestamps: self.has(bit::TIMESTAMPS).then_some((value, echo)), ..Options::default() }
        };
        Seen {
            number: self.number,
            at_ns: self.at_ns.min(LATEST_NS),
            sender: if self.has(bit::HIGH) { Sender::High } else { Sender::Low },
            seq: SeqNum::new(self.seq),
            ack: SeqNum::new(self.ack),
            flags: self.flags,
            window: self.window,
            len: self.len,
            length: self.length,
            id: self.has(bit::ID).then_some(self.id),
            hop_limit: self.hop_limit,
            ecn: self.bits & 3,
            link: self.link,
            options,
        }
    }
}
