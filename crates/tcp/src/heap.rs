//! Memory on the heap, its dimensions chosen at run time: for hosts that have one, as simulators and tests do. Firmware takes
//! [`StackMemory`](crate::stack::StackMemory), whose dimensions are types.

use alloc::{vec, vec::Vec};

use crate::{
    pool::{Pool, PoolState, Slot},
    stack::{Entry, Storage},
};

/// The largest pool: buffers are named by 16 bits, and one name means none.
pub const BUFFERS_MAX: u16 = u16::MAX - 1;

/// Packet buffers and socket entries.
#[derive(Debug)]
pub struct HeapStorage {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    state: PoolState,
    entries: Vec<Entry>,
}

impl HeapStorage {
    /// Memory for `sockets` sockets, listeners included, and a pool of `buffers` buffers, at most [`BUFFERS_MAX`], each of
    /// `buffer_bytes`.
    pub fn new(sockets: u16, buffers: u16, buffer_bytes: u16) -> Self {
        let buffers = buffers.min(BUFFERS_MAX);
        Self::with_state(sockets, PoolState::new(buffers), usize::from(buffers) * usize::from(buffer_bytes), buffers)
    }

    /// The same with all buffers in the same bytes: for payload of zeros alone, which then stays in the processor's cache,
    /// however large the window. `reserve` buffers are kept for what must leave.
    #[cfg(feature = "platforms")]
    pub fn overlaid(sockets: u16, buffers: u16, buffer_bytes: u16, reserve: u16) -> Self {
        let buffers = buffers.min(BUFFERS_MAX);
        let mut state = PoolState::overlaid(buffers, buffer_bytes);
        state.set_reserve(reserve);
        Self::with_state(sockets, state, usize::from(buffer_bytes), buffers)
    }

    fn with_state(sockets: u16, state: PoolState, bytes: usize, buffers: u16) -> Self {
        Self {
            bytes: vec![0; bytes],
            slots: vec![Slot::EMPTY; usize::from(buffers)],
            state,
            entries: (0..sockets).map(|_| Entry::FREE).collect(),
        }
    }
}

impl Storage for HeapStorage {
    #[inline]
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]) {
        (Pool::new(&mut self.bytes, &mut self.slots, &mut self.state), &mut self.entries)
    }

    #[inline]
    fn entries(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}
