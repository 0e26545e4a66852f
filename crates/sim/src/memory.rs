//! The memory of a simulated host's stack.

use fullpipe_tcp::{
    pool::{Pool, PoolState, Slot},
    stack::{Entry, Storage},
};

/// Entries of a host: a listener and its connection, and one to spare.
const ENTRIES: usize = 3;

/// A pool whose size is known at run time. All payload is zeros, so that its buffers can lie in the same bytes: they stay in
/// the processor's cache, however large the window.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    state: PoolState,
    entries: Vec<Entry>,
}

impl Memory {
    pub(crate) fn new(buffers: u16, size: u16) -> Self {
        let mut state = PoolState::overlaid(buffers, size);
        state.set_reserve(2);
        Self {
            bytes: vec![0; usize::from(size)],
            slots: vec![Slot::EMPTY; usize::from(buffers)],
            state,
            entries: std::iter::repeat_with(|| Entry::FREE).take(ENTRIES).collect(),
        }
    }
}

impl Storage for Memory {
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]) {
        (Pool::new(&mut self.bytes, &mut self.slots, &mut self.state), &mut self.entries)
    }

    fn entries(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}
