//! The packet-buffer pool: a fixed number of buffers of a fixed size, shared by all sockets and both directions.
//!
//! Taking and giving back are O(1). Buffers hold data only: headers are made when a segment leaves, so acknowledging
//! never needs a buffer, and a full pool can always be drained. Some buffers are a [reserve](PoolState::set_reserve)
//! that data to send and out-of-order data may not touch, so that connections at the in-order edge move on.
//!
//! The lists that a socket keeps (received, out of order, sent and waiting) are links inside the buffers' slots; this
//! module keeps those links, and what a list means is the socket's affair.

use fullpipe_units::{Instant, SeqNum};

#[cfg(feature = "bbr")]
pub use crate::send::Before;

/// The name of one buffer; [`NONE`] is none.
pub(crate) type BufferId = u16;
/// No buffer.
pub(crate) const NONE: BufferId = u16::MAX;

/// What a buffer is wanted for: the less urgent ones leave the reserve alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Data at the in-order edge, and resets: may take the last buffer.
    Urgent,
    /// Data to send, data out of order, echo replies.
    Normal,
}

/// What a socket remembers about the data in one buffer. Where lines of a cache are read, two of them fill one.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(target_pointer_width = "64", repr(align(32)))]
pub struct Slot {
    pub(crate) next: BufferId,
    pub(crate) prev: BufferId,
    /// Links of the order of transmission (RFC 8985).
    pub(crate) tx_next: BufferId,
    pub(crate) tx_prev: BufferId,
    /// Offset of the first byte still needed.
    pub(crate) start: u16,
    /// Offset after the last byte.
    pub(crate) end: u16,
    /// Offset after the last byte that was sent at least once.
    pub(crate) sent: u16,
    /// Offset after the last byte of the retransmission that is under way.
    pub(crate) resent: u16,
    /// The sequence number of the byte at offset zero.
    pub(crate) seq: SeqNum,
    pub(crate) mark: Mark,
    /// How often it was retransmitted; saturates.
    pub(crate) retransmits: u8,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
}

impl Slot {
    /// An empty slot.
    pub const EMPTY: Self = Self {
        next: NONE,
        prev: NONE,
        tx_next: NONE,
        tx_prev: NONE,
        start: 0,
        end: 0,
        sent: 0,
        resent: 0,
        seq: SeqNum::new(0),
        mark: Mark(0),
        retransmits: 0,
        sent_at: Instant::ZERO,
    };

    /// A slot that nobody has taken yet: all zeros.
    const UNTOUCHED: Self = Self { next: 0, prev: 0, tx_next: 0, tx_prev: 0, ..Self::EMPTY };

    /// The sequence number of the first byte still needed.
    pub(crate) fn first(&self) -> SeqNum {
        self.seq + u32::from(self.start)
    }

    /// The sequence number after the last byte.
    pub(crate) fn last(&self) -> SeqNum {
        self.seq + u32::from(self.end)
    }

    /// The number of bytes still needed.
    pub(crate) fn len(&self) -> u32 {
        u32::from(self.end - self.start)
    }

    /// The sequence number after the last byte sent.
    pub(crate) fn sent_end(&self) -> SeqNum {
        self.seq + u32::from(self.sent)
    }

    /// The number of bytes sent and still needed.
    pub(crate) fn sent_len(&self) -> u32 {
        u32::from(self.sent.saturating_sub(self.start))
    }
}

/// Marks on a buffer of the send queue. Those that only a feature asks for are no bits where it is compiled out: nothing has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    /// A write ended here: the segment that carries the last byte pushes.
    pub(crate) const PUSH: Self = Self(1);
    /// The peer has reported all of it by SACK.
    pub(crate) const SACKED: Self = Self(if cfg!(feature = "sack") { 2 } else { 0 });
    /// Deemed lost, not retransmitted since.
    pub(crate) const LOST: Self = Self(4);
    /// Retransmitted, and not deemed lost since.
    pub(crate) const RESENT: Self = Self(8);
    /// On the order-of-transmission list.
    pub(crate) const LISTED: Self = Self(if cfg!(feature = "sack") { 16 } else { 0 });
    /// A record ended here: nothing is appended.
    pub(crate) const END: Self = Self(32);
    /// Retransmitted because it was deemed lost: for the figures that Linux tells.
    pub(crate) const REPAIR: Self = Self(if cfg!(feature = "platforms") { 64 } else { 0 });

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing happened to the buffer since it was sent.
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & !(Self::PUSH.0 | Self::END.0) == Self::LISTED.0
    }

    pub(crate) const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) const fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

/// The pool's own counts.
#[derive(Clone, Copy, Debug)]
pub struct PoolState {
    /// The list of buffers that were given back: the one that was given back first is taken first, so that what is written, sent and
    /// acknowledged in order lies in order, as caches fetch it.
    free_head: BufferId,
    /// The last one of that list, where it has any.
    free_tail: BufferId,
    /// Buffers from here on were never taken: no list needs to be made at the start.
    pub(crate) untouched: u16,
    /// Of all buffers.
    pub(crate) count: u16,
    free: u16,
    least_free: u16,
    reserve: u16,
    refused: u32,
    /// Bytes that a buffer holds; zero until the first view of the memory.
    size: u16,
    /// From one buffer's first byte to the next one's.
    stride: u16,
}

impl PoolState {
    /// A pool of `count` free buffers, a sixteenth of them, at least two, in reserve.
    pub const fn new(count: u16) -> Self {
        let sixteenth = count / 16;
        let reserve = if sixteenth < 2 { 2 } else { sixteenth };
        Self {
            free_head: NONE,
            free_tail: NONE,
            untouched: 0,
            count,
            free: count,
            least_free: count,
            reserve,
            refused: 0,
            size: 0,
            stride: 0,
        }
    }

    /// A pool of `count` free buffers that all lie in the same `size` bytes: they keep lengths and sequence numbers, and hold
    /// these bytes whatever is written. For simulations, whose payload is the same byte throughout.
    #[cfg(feature = "platforms")]
    pub const fn overlaid(count: u16, size: u16) -> Self {
        Self { size, ..Self::new(count) }
    }

    /// Keeps `buffers` for [`Purpose::Urgent`].
    pub const fn set_reserve(&mut self, buffers: u16) {
        self.reserve = buffers;
    }
}

/// The memory of a pool of `N` buffers of `SIZE` bytes.
///
/// The defaults are a NetBurner's: 256 buffers of 1548 bytes. `N` is below 65,535. It is all zeros before its first use,
/// so that a static takes no room in a program's image.
#[derive(Debug)]
pub struct PoolMemory<const N: usize = 256, const SIZE: usize = 1548> {
    bytes: [[u8; SIZE]; N],
    slots: [Slot; N],
    #[cfg(feature = "bbr")]
    befores: [Before; N],
    state: Option<PoolState>,
}

impl<const N: usize, const SIZE: usize> PoolMemory<N, SIZE> {
    const FITS: () = assert!(N < NONE as usize && SIZE <= u16::MAX as usize && SIZE > 0, "pool dimensions");

    /// All buffers free.
    pub const fn new() -> Self {
        () = Self::FITS;
        Self {
            bytes: [[0; SIZE]; N],
            slots: [Slot::UNTOUCHED; N],
            #[cfg(feature = "bbr")]
            befores: [Before::NOTHING; N],
            state: None,
        }
    }

    /// The pool in this memory.
    pub fn pool(&mut self) -> Pool<'_> {
        let state = self.state.get_or_insert(const { PoolState::new(N as u16) });
        let pool = Pool::new(self.bytes.as_flattened_mut(), &mut self.slots, state);
        #[cfg(feature = "bbr")]
        let pool = pool.remembering(&mut self.befores);
        pool
    }
}

impl<const N: usize, const SIZE: usize> Default for PoolMemory<N, SIZE> {
    fn default() -> Self {
        Self::new()
    }
}

/// A pool, wherever its memory lies.
#[derive(Debug)]
pub struct Pool<'a> {
    bytes: &'a mut [u8],
    slots: &'a mut [Slot],
    #[cfg(feature = "bbr")]
    befores: &'a mut [Before],
    state: &'a mut PoolState,
    size: usize,
    stride: usize,
}

impl<'a> Pool<'a> {
    /// A pool in borrowed memory: `bytes` is split evenly among `slots`, and `state` is what
    /// [`PoolState::new`] made for that number, or what an earlier view of the same memory left.
    #[cfg_attr(feature = "platforms", inline)]
    pub fn new(bytes: &'a mut [u8], slots: &'a mut [Slot], state: &'a mut PoolState) -> Self {
        let even = || (bytes.len() / slots.len().max(1)).min(usize::from(u16::MAX));
        let (size, stride) = if cfg!(feature = "platforms") {
            if state.size == 0 {
                state.size = even() as u16;
                state.stride = state.size;
            }
            (usize::from(state.size), usize::from(state.stride))
        } else {
            // The compiler knows it.
            let size = even();
            (size, size)
        };
        Self {
            bytes,
            slots,
            #[cfg(feature = "bbr")]
            befores: &mut [],
            state,
            size,
            stride,
        }
    }

    /// The pool with one of `befores` for each buffer, which congestion control by rates asks for: for what is not there it gets no sample.
    #[cfg(feature = "bbr")]
    #[must_use]
    pub fn remembering(self, befores: &'a mut [Before]) -> Self {
        Self { befores, ..self }
    }

    /// From one buffer to the next.
    const fn stride(&self) -> usize {
        if cfg!(feature = "platforms") { self.stride } else { self.size }
    }

    /// The number of free buffers.
    pub const fn free_count(&self) -> u16 {
        self.state.free
    }

    /// The largest number of buffers that were in use at one time.
    pub const fn high_water(&self) -> u16 {
        self.count() - self.state.least_free
    }

    /// How often a buffer was asked for in vain.
    pub const fn refused(&self) -> u32 {
        self.state.refused
    }

    /// The number of buffers, free or not.
    pub const fn count(&self) -> u16 {
        self.state.count
    }

    /// The bytes that one buffer holds.
    pub const fn buffer_size(&self) -> usize {
        self.size
    }

    /// Whether a buffer for `purpose` is to be had.
    pub(crate) const fn has(&self, purpose: Purpose) -> bool {
        let kept = match purpose {
            Purpose::Urgent => 0,
            Purpose::Normal => self.state.reserve,
        };
        self.state.free > kept
    }

    /// Takes a buffer; its slot is empty.
    #[inline]
    pub(crate) fn take(&mut self, purpose: Purpose) -> Option<BufferId> {
        // Of an overlaid pool the next slots may have to be made first.
        let is_made = self.state.free_head != NONE || usize::from(self.state.untouched) < self.slots.len();
        if !self.has(purpose) || !is_made {
            self.state.refused = self.state.refused.saturating_add(1);
            return None;
        }
        let id = if self.state.free_head == NONE {
            let id = self.state.untouched;
            self.state.untouched += 1;
            id
        } else {
            let id = self.state.free_head;
            self.state.free_head = self.slots[usize::from(id)].next;
            id
        };
        self.state.free -= 1;
        self.state.least_free = self.state.least_free.min(self.state.free);
        self.slots[usize::from(id)] = Slot::EMPTY;
        Some(id)
    }

    /// Gives a buffer back. It must be on no list.
    #[inline]
    pub(crate) fn give(&mut self, id: BufferId) {
        self.slots[usize::from(id)].next = NONE;
        if self.state.free_head == NONE {
            self.state.free_head = id;
        } else {
            self.slots[usize::from(self.state.free_tail)].next = id;
        }
        self.state.free_tail = id;
        self.state.free += 1;
    }

    pub(crate) fn slot(&self, id: BufferId) -> &Slot {
        &self.slots[usize::from(id)]
    }

    pub(crate) fn slot_mut(&mut self, id: BufferId) -> &mut Slot {
        &mut self.slots[usize::from(id)]
    }

    /// Reads the slots of so many buffers from `id` on, and makes of them a sum that says nothing.
    #[cfg(feature = "platforms")]
    pub(crate) fn touch(&self, id: BufferId, buffers: u16) -> u32 {
        let from = usize::from(id).min(self.slots.len());
        let until = (from + usize::from(buffers)).min(self.slots.len());
        // Two of them fill a line of the cache.
        self.slots[from..until].iter().step_by(2).fold(0, |sum, slot| sum ^ u32::from(slot.end))
    }

    /// The same of those that are taken next, and of the one behind which others are given back.
    #[cfg(feature = "platforms")]
    pub(crate) fn touch_free(&self, buffers: u16) -> u32 {
        self.touch(self.state.free_head, buffers) ^ self.touch(self.state.free_tail, 1)
    }

    /// What had been delivered when the data in a buffer was last sent, where that is remembered.
    #[cfg(feature = "bbr")]
    pub(crate) fn before(&self, id: BufferId) -> Before {
        self.befores.get(usize::from(id)).copied().unwrap_or(Before::NOTHING)
    }

    #[cfg(feature = "bbr")]
    pub(crate) fn set_before(&mut self, id: BufferId, to: Before) {
        if let Some(before) = self.befores.get_mut(usize::from(id)) {
            *before = to;
        }
    }

    /// All bytes of a buffer.
    pub(crate) fn bytes(&self, id: BufferId) -> &[u8] {
        let at = usize::from(id) * self.stride();
        &self.bytes[at..at + self.size]
    }

    /// The bytes of a buffer that are still needed.
    #[inline]
    pub(crate) fn data(&self, id: BufferId) -> &[u8] {
        let slot = self.slot(id);
        &self.bytes(id)[usize::from(slot.start)..usize::from(slot.end)]
    }

    /// The bytes of a buffer that are still needed, to be changed in place.
    pub(crate) fn data_mut(&mut self, id: BufferId) -> &mut [u8] {
        let slot = &self.slots[usize::from(id)];
        let at = usize::from(id) * self.stride();
        &mut self.bytes[at + usize::from(slot.start)..at + usize::from(slot.end)]
    }

    /// Copies as much of `data` as fits behind what the buffer holds, up to `limit` bytes in it; returns how much.
    #[inline]
    pub(crate) fn append(&mut self, id: BufferId, data: &[u8], limit: usize) -> usize {
        let stride = self.stride();
        let slot = &mut self.slots[usize::from(id)];
        let end = usize::from(slot.end);
        let len = data.len().min(self.size.min(limit).saturating_sub(end));
        let at = usize::from(id) * stride + end;
        // Overlaid: what is there is what would be copied.
        if stride > 0 {
            self.bytes[at..at + len].copy_from_slice(&data[..len]);
        }
        slot.end += len as u16;
        len
    }

    /// Copies all that is needed of `from` behind what `id` holds, if it fits into `limit` bytes; whether it did.
    pub(crate) fn append_from(&mut self, id: BufferId, from: BufferId, limit: usize) -> bool {
        let (start, len) = (usize::from(self.slot(from).start), self.slot(from).len() as usize);
        let end = usize::from(self.slot(id).end);
        if id == from || end + len > limit.min(self.size) {
            return false;
        }
        let (to_at, from_at) = (usize::from(id) * self.stride(), usize::from(from) * self.stride());
        if to_at == from_at {
            // Overlaid: what is there is what would be copied.
            self.slot_mut(id).end += len as u16;
            return true;
        }
        let (low, high) = self.bytes.split_at_mut(to_at.max(from_at));
        let (to, data) = if to_at < from_at { (&mut low[to_at..], &high[..]) } else { (high, &low[from_at..]) };
        to[end..end + len].copy_from_slice(&data[start..start + len]);
        self.slot_mut(id).end += len as u16;
        true
    }

    /// Ends a view: the memory for shared reading.
    pub(crate) fn into_shared(self) -> SharedPool<'a> {
        SharedPool { bytes: self.bytes, slots: self.slots, stride: self.stride() }
    }
}

/// A pool that is only read, for a segment on its way out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedPool<'a> {
    bytes: &'a [u8],
    slots: &'a [Slot],
    stride: usize,
}

/// A run of bytes in one or more linked buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) first: BufferId,
    /// Offset of the first byte in the first buffer.
    pub(crate) offset: u16,
    pub(crate) len: u32,
}

impl Run {
    pub(crate) const EMPTY: Self = Self { first: NONE, offset: 0, len: 0 };
}

impl<'a> SharedPool<'a> {
    const fn stride(&self) -> usize {
        self.stride
    }

    /// The pieces of a run, in order.
    pub(crate) fn slices(self, run: Run) -> Slices<'a> {
        Slices { pool: self, run }
    }
}

/// The pieces of a segment's data, in order.
#[derive(Clone, Debug)]
pub struct Slices<'a> {
    pool: SharedPool<'a>,
    run: Run,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.run.len == 0 {
            return None;
        }
        let slot = self.pool.slots.get(usize::from(self.run.first))?;
        let at = usize::from(self.run.first) * self.pool.stride();
        let piece = self.pool.bytes.get(at + usize::from(self.run.offset)..at + usize::from(slot.end))?;
        let piece = piece.get(..self.run.len as usize).unwrap_or(piece);
        self.run.len -= piece.len() as u32;
        self.run.first = slot.next;
        // The next buffer's first byte: nothing has been taken off its front.
        self.run.offset = self.pool.slots.get(usize::from(slot.next)).map_or(0, |next| next.start);
        Some(piece)
    }
}

/// A list of buffers, linked through their slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) head: BufferId,
    pub(crate) tail: BufferId,
    pub(crate) count: u16,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, count: 0 };

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    #[inline]
    pub(crate) fn push_back(&mut self, pool: &mut Pool<'_>, id: BufferId) {
        self.insert_after(pool, self.tail, id);
    }

    /// Links `id` in behind `before`; in front of everything where `before` is [`NONE`].
    #[inline]
    pub(crate) fn insert_after(&mut self, pool: &mut Pool<'_>, before: BufferId, id: BufferId) {
        let next = if before == NONE { self.head } else { pool.slot(before).next };
        let slot = pool.slot_mut(id);
        (slot.prev, slot.next) = (before, next);
        if before == NONE {
            self.head = id;
        } else {
            pool.slot_mut(before).next = id;
        }
        if next == NONE {
            self.tail = id;
        } else {
            pool.slot_mut(next).prev = id;
        }
        self.count += 1;
    }

    /// Unlinks `id`, which must be on this list.
    #[inline]
    pub(crate) fn remove(&mut self, pool: &mut Pool<'_>, id: BufferId) {
        let (prev, next) = (pool.slot(id).prev, pool.slot(id).next);
        if prev == NONE {
            self.head = next;
        } else {
            pool.slot_mut(prev).next = next;
        }
        if next == NONE {
            self.tail = prev;
        } else {
            pool.slot_mut(next).prev = prev;
        }
        let slot = pool.slot_mut(id);
        (slot.prev, slot.next) = (NONE, NONE);
        self.count -= 1;
    }

    #[inline]
    pub(crate) fn pop_front(&mut self, pool: &mut Pool<'_>) -> Option<BufferId> {
        let id = self.head;
        if id == NONE {
            return None;
        }
        self.remove(pool, id);
        Some(id)
    }

    /// Gives all buffers back.
    pub(crate) fn clear(&mut self, pool: &mut Pool<'_>) {
        while let Some(id) = self.pop_front(pool) {
            pool.give(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_to_send_leaves_the_reserve_alone() {
        let mut memory = PoolMemory::<8, 16>::new();
        let mut pool = memory.pool();
        let taken: Vec<_> = std::iter::from_fn(|| pool.take(Purpose::Normal)).collect();
        assert_eq!((taken.len(), pool.free_count(), pool.refused()), (6, 2, 1));
        assert!(pool.take(Purpose::Urgent).is_some() && pool.take(Purpose::Urgent).is_some());
        assert!(pool.take(Purpose::Urgent).is_none());
        assert_eq!(pool.high_water(), 8);
    }

    #[test]
    fn the_buffer_that_was_given_back_first_is_taken_first() {
        let mut memory = PoolMemory::<4, 16>::new();
        let mut pool = memory.pool();
        let take = |pool: &mut Pool<'_>| pool.take(Purpose::Urgent).unwrap();
        let [a, b, c, d] = [(); 4].map(|()| take(&mut pool));
        for id in [c, a, d] {
            pool.give(id);
        }
        assert_eq!(take(&mut pool), c);
        pool.give(b);
        assert_eq!([(); 3].map(|()| take(&mut pool)), [a, d, b]);
        assert!(pool.take(Purpose::Urgent).is_none());
        pool.give(a);
        assert_eq!((take(&mut pool), pool.free_count()), (a, 0));
    }

    #[cfg(feature = "platforms")]
    #[test]
    fn overlaid_buffers_keep_lengths_of_their_own() {
        let (mut bytes, mut slots, mut state) = ([0; 16], [Slot::EMPTY; 8], PoolState::overlaid(8, 16));
        let mut pool = Pool::new(&mut bytes, &mut slots, &mut state);
        let (a, b) = (pool.take(Purpose::Normal).unwrap(), pool.take(Purpose::Normal).unwrap());
        assert_eq!((pool.append(a, &[0; 20], 16), pool.append(b, &[0; 5], 16)), (16, 5));
        assert_eq!((pool.data(a).len(), pool.data(b).len(), pool.buffer_size()), (16, 5, 16));
        let c = pool.take(Purpose::Normal).unwrap();
        assert!(pool.append_from(c, b, 16) && !pool.append_from(c, a, 16));
        assert_eq!((pool.data(c), pool.free_count()), (&[0; 5][..], 5));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push,
        InsertAfter(prop::sample::Index),
        Remove(prop::sample::Index),
        PopFront,
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Push),
            2 => any::<prop::sample::Index>().prop_map(Step::InsertAfter),
            2 => any::<prop::sample::Index>().prop_map(Step::Remove),
            2 => Just(Step::PopFront),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn lists_keep_their_order_and_no_buffer_is_lost(steps in prop::collection::vec(step(), 0..200)) {
            let mut memory = PoolMemory::<16, 4>::new();
            let mut pool = memory.pool();
            let mut queue = Queue::EMPTY;
            let mut model: VecDeque<BufferId> = VecDeque::new();
            for step in steps {
                match step {
                    Step::Push => if let Some(id) = pool.take(Purpose::Urgent) {
                        queue.push_back(&mut pool, id);
                        model.push_back(id);
                    },
                    Step::InsertAfter(at) => if let Some(id) = pool.take(Purpose::Normal) {
                        let at = at.index(model.len() + 1);
                        let before = at.checked_sub(1).map_or(NONE, |at| model[at]);
                        queue.insert_after(&mut pool, before, id);
                        model.insert(at, id);
                    },
                    Step::Remove(at) => if !model.is_empty() {
                        let id = model.remove(at.index(model.len())).unwrap();
                        queue.remove(&mut pool, id);
                        pool.give(id);
                    },
                    Step::PopFront => {
                        let id = queue.pop_front(&mut pool);
                        prop_assert_eq!(id, model.pop_front());
                        if let Some(id) = id { pool.give(id); }
                    }
                    Step::Clear => { queue.clear(&mut pool); model.clear(); }
                }
                let mut listed = Vec::new();
                let mut at = queue.head;
                while at != NONE { listed.push(at); at = pool.slot(at).next; }
                prop_assert_eq!(&listed, &Vec::from(model.clone()));
                prop_assert_eq!(usize::from(queue.count), model.len());
                prop_assert_eq!(usize::from(pool.free_count()), 16 - model.len());
            }
        }
    }
}
