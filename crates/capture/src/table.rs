//! Which connection a segment belongs to: from the ends of a flow, whichever way it goes, to what is kept of it. What is
//! *not* here: what that is, and time (see [`Table::scan`]).
//!
//! With 200,000 connections taking turns, nearly each look-up misses the cache, and what counts is how many lines of it
//! one touches: one of the index (8 bytes for each place), and those of the key (40 bytes) with its value behind it. And
//! it counts whether several misses are under way at once: see [`Table::touch_index`].
//!
//! ```
//! # use core::net::IpAddr;
//! # use fullpipe_capture::{Endpoint, Flow, Key, Sender, Table};
//! # let end = |text: &str, port| Endpoint { address: text.parse::<IpAddr>().unwrap().into(), port };
//! let flow = Flow { from: end("10.0.0.2", 80), to: end("10.0.0.1", 40000), outer: 0 };
//! let mut table: Table<u64> = Table::new(0x5EED);
//! for flow in [flow, flow.reversed()] {
//!     let (key, sender) = Key::from_flow(&flow);
//!     let (slot, is_new) = table.find_or_insert(&key);
//!     *table.value_mut(slot) += 1;
//! }
//! assert_eq!(table.slots().map(|slot| *table.value(slot)).collect::<Vec<_>>(), [2]);
//! ```

use crate::{
    segment::{Address, Endpoint, Flow},
    slab::Slab,
};

#[cfg(test)]
mod tests;

/// The ends of a flow without its direction: both directions of a connection have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u64; 5]);

/// Which of a key's ends sent a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The one with the smaller address, or with the smaller port of one address.
    #[default]
    Low,
    /// The other one.
    High,
}

impl Key {
    /// The key of a flow, and which of its ends is the sender.
    #[inline]
    pub const fn from_flow(flow: &Flow) -> (Self, Sender) {
        let (from, to) = (&flow.from, &flow.to);
        let low_first = from.address.0 < to.address.0 || (from.address.0 == to.address.0 && from.port <= to.port);
        let (low, high, sender) = if low_first { (from, to, Sender::Low) } else { (to, from, Sender::High) };
        let rest = ((low.port as u64) << 48) | ((high.port as u64) << 32) | flow.outer as u64;
        let (low, high) = (low.address.0, high.address.0);
        (Self([low as u64, high as u64, (low >> 64) as u64, (high >> 64) as u64, rest]), sender)
    }

    /// As `==`, which becomes a call of `memcmp`: 10 % of the time on a capture of headers.
    #[inline]
    const fn is(&self, other: &Self) -> bool {
        let (Self([a, b, c, d, e]), Self([f, g, h, i, j])) = (self, other);
        (*a ^ *f) | (*b ^ *g) | (*c ^ *h) | (*d ^ *i) | (*e ^ *j) == 0
    }

    /// The same without what carries it.
    #[inline]
    pub(crate) const fn ends(&self) -> Self {
        let Self([low, high, low_top, high_top, rest]) = *self;
        Self([low, high, low_top, high_top, rest >> 32 << 32])
    }

    /// Whether something carries it.
    #[inline]
    pub(crate) const fn is_tunnelled(&self) -> bool {
        self.0[4] as u32 != 0
    }

    /// The flow from the low end to the high end.
    pub fn flow(&self) -> Flow {
        let [low, high, low_top, high_top, rest] = self.0;
        let address = |top: u64, bottom: u64| Address(((top as u128) << 64) | bottom as u128);
        Flow {
            from: Endpoint { address: address(low_top, low), port: (rest >> 48) as u16 },
            to: Endpoint { address: address(high_top, high), port: (rest >> 32) as u16 },
            outer: rest as u32,
        }
    }
}

/// The number of a connection: dense, and used again after [`Table::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    pub(crate) const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number itself.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// 32 bits of a key's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) u32);

/// Makes tags from keys, with a secret, so that nobody can make a capture whose connections all fall into one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags([u64; 4]);

impl Tags {
    pub(crate) fn new(seed: u64) -> Self {
        // SplitMix64 (Steele, Lea, Flood 2014): four words that share no pattern with the seed.
        let mut state = seed;
        Self([(); 4].map(|()| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        }))
    }

    /// Multiply and fold, as wyhash and foldhash do: three multiplications, and without the seed no collision can be
    /// computed. It needs no more than that, since nobody sees a hash or the time of one look-up from outside.
    #[inline]
    pub(crate) fn of(&self, key: &Key) -> Tag {
        self.with_ends(key).0
    }

    /// The same, and that of the ends alone, whatever carries them.
    #[inline]
    pub(crate) fn with_ends(&self, key: &Key) -> (Tag, Tag) {
        let Key([low, high, low_top, high_top, rest]) = *key;
        let [a, b, c, d] = self.0;
        let bottom = fold(low ^ a, high ^ b);
        let top = fold(low_top ^ c, high_top ^ d);
        let ends = (fold(bottom ^ top.rotate_left(29) ^ (rest >> 32), a.rotate_left(32) ^ d) >> 16) as u32;
        let outer = (fold(u64::from(rest as u32) << 32, c) >> 16) as u32;
        (Tag(ends ^ outer), Tag(ends))
    }
}

/// A connection's key, and what is kept of it, which begins in the same line of the cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Place<T> {
    key: Key,
    value: T,
}

/// A map from keys to values: open addressing with linear probing, in which each place holds 32 bits of its key's hash
/// beside the slot, so that keys are only read where they (almost certainly) match, and growing reads none.
#[derive(Clone, Debug)]
pub struct Table<T = ()> {
    tags: Tags,
    /// `tag << 32 | slot + 1`, or 0 for a free place. A power of two long; a tag's home is its lowest bits.
    index: Vec<u64>,
    places: Slab<Place<T>>,
    /// What the place of a slot says is only true of the slots that are not in here.
    free: Vec<u32>,
    /// Which slots are in use, a bit for each.
    used: Vec<u64>,
    /// Where the scan goes on.
    scan: u32,
}

impl<T: Default> Table<T> {
    /// An empty table. `seed` must be one that the author of a capture can't foresee.
    pub fn new(seed: u64) -> Self {
        Self::with_tags(Tags::new(seed))
    }

    pub(crate) fn with_tags(tags: Tags) -> Self {
        Self { tags, index: vec![0; 16], places: Slab::default(), free: Vec::new(), used: Vec::new(), scan: 0 }
    }

    /// How many connections are in the table.
    pub const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of a connection that is known.
    #[inline]
    pub fn find(&self, key: &Key) -> Option<Slot> {
        self.probe(self.tags.of(key), key).ok()
    }

    /// The slot of a connection, and whether it was given out just now; then its value is the default.
    #[inline]
    pub fn find_or_insert(&mut self, key: &Key) -> (Slot, bool) {
        self.find_or_insert_tagged(self.tags.of(key), key)
    }

    /// The slot of a connection that is known, where its tag is known.
    #[inline]
    pub(crate) fn find_tagged(&self, tag: Tag, key: &Key) -> Option<Slot> {
        self.probe(tag, key).ok()
    }

    /// [`Table::find_or_insert`] where the tag is known.
    #[inline]
    pub(crate) fn find_or_insert_tagged(&mut self, tag: Tag, key: &Key) -> (Slot, bool) {
        match self.probe(tag, key) {
            Ok(slot) => (slot, false),
            Err(place) => (self.insert(place, tag, key), true),
        }
    }

    /// Reads where the look-up of a tag will begin. Whoever does this for many tags, then [`Table::touch_place`] for each
    /// of them, waits for memory once and not for each.
    #[inline]
    pub(crate) fn touch_index(&self, tag: Tag) -> u64 {
        self.index[tag.0 as usize & self.mask()]
    }

    /// What the first place with this tag holds, which is almost certainly that of its key; and something of that key.
    #[inline]
    pub(crate) fn touch_place(&self, tag: Tag) -> Option<(u64, &T)> {
        let mask = self.mask();
        let mut place = tag.0 as usize & mask;
        loop {
            let entry = self.index[place];
            if entry == 0 {
                return None;
            }
            if (entry >> 32) as u32 == tag.0 {
                return self.places.get((entry as u32).wrapping_sub(1)).map(|place| (place.key.0[0], &place.value));
            }
            place = (place + 1) & mask;
        }
    }

    /// The key of a slot that is in use.
    ///
    /// # Panics
    ///
    /// Where this table never gave that slot out.
    pub fn key(&self, slot: Slot) -> &Key {
        &self.place(slot).key
    }

    /// The value of a slot that is in use.
    ///
    /// # Panics
    ///
    /// Where this table never gave that slot out.
    #[inline]
    pub fn value(&self, slot: Slot) -> &T {
        &self.place(slot).value
    }

    /// The same, to be changed.
    ///
    /// # Panics
    ///
    /// Where this table never gave that slot out.
    #[inline]
    #[expect(clippy::expect_used, reason = "slots come from this table; another table's is a fault of the caller")]
    pub fn value_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.places.get_mut(slot.0).expect("a slot of this table").value
    }

    #[inline]
    #[expect(clippy::expect_used, reason = "slots come from this table; another table's is a fault of the caller")]
    fn place(&self, slot: Slot) -> &Place<T> {
        self.places.get(slot.0).expect("a slot of this table")
    }

    /// Forgets a connection: its slot is given out again. Nothing happens where the slot is free already.
    pub fn remove(&mut self, slot: Slot) {
        if !self.is_used(slot) {
            return;
        }
        let tag = self.tags.of(self.key(slot));
        let mask = self.mask();
        let mut place = tag.0 as usize & mask;
        while self.index[place] as u32 != slot.0 + 1 {
            place = (place + 1) & mask;
        }
        self.close_gap(place);
        self.used[slot.index() / 64] &= !(1 << (slot.index() % 64));
        self.free.push(slot.0);
        *self.value_mut(slot) = T::default();
    }

    /// All slots in use, in the order of their numbers.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.places.len() as u32).map(Slot).filter(|slot| self.is_used(*slot))
    }

    /// Looks at the next `steps` slots in turn, from the last one back to the first, and removes those of which
    /// `is_over` says so (it can tell the connection's story on that occasion).
    ///
    /// This is how idle connections age without a list that each packet would have to reorder: whoever calls this with
    /// two steps for each new connection has looked at every slot before the table can have doubled.
    pub fn scan(&mut self, steps: u32, mut is_over: impl FnMut(Slot, &Key, &mut T) -> bool) {
        for _ in 0..steps.min(self.places.len() as u32) {
            let slot = Slot(self.scan);
            self.scan = if slot.index() + 1 >= self.places.len() { 0 } else { slot.0 + 1 };
            if !self.is_used(slot) {
                continue;
            }
            let Some(place) = self.places.get_mut(slot.0) else { continue };
            if is_over(slot, &place.key, &mut place.value) {
                self.remove(slot);
            }
        }
    }

    #[inline]
    fn is_used(&self, slot: Slot) -> bool {
        self.used.get(slot.index() / 64).is_some_and(|word| word >> (slot.index() % 64) & 1 == 1)
    }

    #[inline]
    const fn mask(&self) -> usize {
        self.index.len() - 1
    }

    /// The slot that holds the key, else the place where it would go.
    #[inline]
    fn probe(&self, tag: Tag, key: &Key) -> Result<Slot, usize> {
        let mask = self.mask();
        let mut place = tag.0 as usize & mask;
        loop {
            let entry = self.index[place];
            if entry == 0 {
                return Err(place);
            }
            let slot = Slot((entry as u32).wrapping_sub(1));
            if (entry >> 32) as u32 == tag.0 && self.places.get(slot.0).is_some_and(|place| key.is(&place.key)) {
                return Ok(slot);
            }
            place = (place + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, place: usize, tag: Tag, key: &Key) -> Slot {
        let new = Place { key: *key, value: T::default() };
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.places.get_mut(slot) {
                    *place = new;
                }
                Slot(slot)
            }
            // 2^32 places would be 256 GB.
            None => Slot(self.places.push(new)),
        };
        if slot.index() / 64 >= self.used.len() {
            self.used.push(0);
        }
        self.used[slot.index() / 64] |= 1 << (slot.index() % 64);
        self.index[place] = (u64::from(tag.0) << 32) | u64::from(slot.0 + 1);
        // Beyond three quarters, linear probing looks at more than one line of the cache for what is not there.
        if self.len() * 4 > self.index.len() * 3 {
            self.grow();
        }
        slot
    }

    fn grow(&mut self) {
        let old = core::mem::take(&mut self.index);
        self.index = vec![0; old.len() * 2];
        let mask = self.mask();
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            let mut place = (entry >> 32) as usize & mask;
            while self.index[place] != 0 {
                place = (place + 1) & mask;
            }
            self.index[place] = entry;
        }
    }

    /// Takes out what is at `place` and moves back what was pushed on because of it, so that no marks of what is gone
    /// pile up.
    fn close_gap(&mut self, place: usize) {
        let mask = self.mask();
        let (mut gap, mut next) = (place, (place + 1) & mask);
        while self.index[next] != 0 {
            let home = (self.index[next] >> 32) as usize & mask;
            // It may move into the gap if that is not before its home, round the end.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(gap) & mask {
                self.index[gap] = self.index[next];
                gap = next;
            }
            next = (next + 1) & mask;
        }
        self.index[gap] = 0;
    }
}

/// Both halves of the product.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ (product >> 64) as u64
}
