//! A stack's memory on the heap, its dimensions chosen at run time.

use fullpipe_tcp::{
    pool::{Pool, PoolState, Slot},
    stack::{Entry, Storage},
};

/// The largest pool: buffers are named by 16 bits, and one name means none.
pub(crate) const BUFFERS_MAX: u16 = u16::MAX - 1;

/// Packet buffers and socket entries.
#[derive(Debug)]
pub struct HeapMemory {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    state: PoolState,
    entries: Vec<Entry>,
}

impl HeapMemory {
    /// Memory for `sockets` sockets and a pool of `buffers` buffers, each of `buffer_bytes`.
    pub fn new(sockets: u16, buffers: u16, buffer_bytes: u16) -> Self {
        let buffers = buffers.min(BUFFERS_MAX);
        let count = usize::from(buffers);
        Self {
            bytes: vec![0; count * usize::from(buffer_bytes)],
            slots: vec![Slot::EMPTY; count],
            state: PoolState::new(buffers),
            entries: (0..sockets).map(|_| Entry::FREE).collect(),
        }
    }
}

impl Storage for HeapMemory {
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]) {
        (Pool::new(&mut self.bytes, &mut self.slots, &mut self.state), &mut self.entries)
    }
}
