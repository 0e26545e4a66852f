//! Memory on the heap, its dimensions chosen at run time: for hosts that have one, as simulators and tests do. Firmware takes
//! [`StackMemory`](crate::stack::StackMemory), whose dimensions are types.

use alloc::{vec, vec::Vec};

#[cfg(feature = "bbr")]
use crate::pool::Before;
use crate::{
    pool::{Pool, PoolState, Slot},
    stack::{Entry, Storage},
};

/// The largest pool: buffers are named by 16 bits, and one name means none.
pub const BUFFERS_MAX: u16 = u16::MAX - 1;

/// Packet buffers and socket entries. A host of few sockets may have these in place, in an array.
#[derive(Debug)]
#[repr(C)]
pub struct HeapStorage<E = Vec<Entry>> {
    state: PoolState,
    /// So many to spare.
    #[cfg(feature = "platforms")]
    at_once: u16,
    /// Of a pool whose buffers are overlaid no more of them than were ever taken, and some to spare.
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    #[cfg(feature = "bbr")]
    befores: Vec<Before>,
    /// Whether there is one for each slot.
    #[cfg(feature = "bbr")]
    remembers: bool,
    entries: E,
}

impl HeapStorage {
    /// Memory for `sockets` sockets, listeners included, and a pool of `buffers` buffers, at most [`BUFFERS_MAX`], each of
    /// `buffer_bytes`.
    pub fn new(sockets: u16, buffers: u16, buffer_bytes: u16) -> Self {
        let buffers = buffers.min(BUFFERS_MAX);
        Self {
            bytes: vec![0; usize::from(buffers) * usize::from(buffer_bytes)],
            slots: vec![Slot::EMPTY; usize::from(buffers)],
            #[cfg(feature = "platforms")]
            at_once: 0,
            state: PoolState::new(buffers),
            entries: (0..sockets).map(|_| Entry::FREE).collect(),
            #[cfg(feature = "bbr")]
            befores: vec![Before::NOTHING; usize::from(buffers)],
            #[cfg(feature = "bbr")]
            remembers: true,
        }
    }
}

impl<E: AsMut<[Entry]>> HeapStorage<E> {
    /// Memory for the sockets of `entries`, with all buffers in the same bytes: for payload of zeros alone, which then stays in the processor's cache,
    /// however large the window. `reserve` buffers are kept for what must leave; a call gets no more than `at_once` that were
    /// never taken. Congestion control by rates needs it [`remembering`](Self::remembering).
    #[cfg(feature = "platforms")]
    pub fn overlaid(entries: E, buffers: u16, buffer_bytes: u16, reserve: u16, at_once: u16) -> Self {
        let buffers = buffers.min(BUFFERS_MAX);
        let mut state = PoolState::overlaid(buffers, buffer_bytes);
        state.set_reserve(reserve);
        let slots = Vec::new();
        Self {
            state,
            at_once,
            entries,
            slots,
            bytes: vec![0; buffer_bytes.into()],
            #[cfg(feature = "bbr")]
            befores: Vec::new(),
            #[cfg(feature = "bbr")]
            remembers: false,
        }
    }

    /// Memory that remembers for each buffer what had been delivered when its data left, from the beginning on.
    #[cfg(all(feature = "platforms", feature = "bbr"))]
    #[must_use]
    pub fn remembering(self) -> Self {
        Self { remembers: true, ..self }
    }

    /// There are slots for whatever a call takes.
    #[cfg(feature = "platforms")]
    #[cold]
    fn grow(&mut self) {
        let at_once = usize::from(self.at_once);
        let reached = usize::from(self.state.untouched) + at_once + at_once / 2 + 1;
        // By a quarter at least: a large pool is not copied again and again.
        let reached = reached.max(self.slots.len() * 5 / 4).min(self.state.count.into());
        self.slots.reserve_exact(reached - self.slots.len());
        self.slots.resize(reached, Slot::EMPTY);
        #[cfg(feature = "bbr")]
        if self.remembers {
            self.befores.resize(self.slots.len(), Before::NOTHING);
        }
    }
}

impl<E: AsMut<[Entry]>> Storage for HeapStorage<E> {
    #[inline]
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]) {
        #[cfg(feature = "platforms")]
        if self.slots.len() < usize::from(self.state.untouched.saturating_add(self.at_once).min(self.state.count)) {
            self.grow();
        }
        let pool = Pool::new(&mut self.bytes, &mut self.slots, &mut self.state);
        #[cfg(feature = "bbr")]
        let pool = pool.remembering(&mut self.befores);
        (pool, self.entries.as_mut())
    }

    #[inline]
    fn entries(&mut self) -> &mut [Entry] {
        self.entries.as_mut()
    }
}

#[cfg(all(test, feature = "platforms"))]
mod tests {
    use super::*;
    use crate::pool::Purpose;

    #[test]
    fn an_overlaid_pool_gives_all_of_its_buffers() {
        let mut storage = HeapStorage::overlaid([Entry::FREE], 5_000, 100, 2, 10);
        let mut pool = storage.parts().0;
        let taken = std::iter::from_fn(|| pool.take(Purpose::Urgent)).count();
        assert!((10..100).contains(&taken), "{taken}");
        let rest = (0..6_000).filter(|_| storage.parts().0.take(Purpose::Urgent).is_some()).count();
        assert_eq!((taken + rest, storage.parts().0.count(), storage.parts().0.high_water()), (5_000, 5_000, 5_000));
    }
}
