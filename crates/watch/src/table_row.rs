//! A row of a system's table that is read as a whole: Windows, FreeBSD and macOS.

use fullpipe_socket::{Fixed, Info, Memory};

use crate::{look::Look, wire::SocketId};

/// A row of a system's table, with all that it tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRow {
    pub(crate) id: SocketId,
    pub(crate) queue: Option<[u32; 2]>,
    pub(crate) backoffs: u8,
    pub(crate) unread: u32,
    pub(crate) waiting: u32,
    pub(crate) uid: Option<u32>,
    pub(crate) handle: u64,
    pub(crate) info: Info,
    pub(crate) memory: Memory,
    pub(crate) congestion: Option<String>,
    pub(crate) segments: [u64; 2],
    /// Time since it last received anything, in milliseconds.
    pub(crate) received_before_ms: Option<u32>,
    pub(crate) fixed: Option<Fixed>,
}

impl TableRow {
    /// Of which no more is known yet.
    pub(crate) fn new(id: SocketId, handle: u64) -> Self {
        Self {
            id,
            queue: None,
            backoffs: 0,
            unread: 0,
            waiting: 0,
            uid: None,
            handle,
            info: Info::default(),
            memory: Memory::default(),
            congestion: None,
            segments: [0; 2],
            received_before_ms: None,
            fixed: None,
        }
    }
}

impl Look for TableRow {
    fn id(&self) -> SocketId {
        self.id
    }

    fn queue(&self) -> Option<[u32; 2]> {
        self.queue
    }

    fn backoffs(&self) -> u8 {
        self.backoffs
    }

    fn unread(&self) -> u32 {
        self.unread
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn uid(&self) -> Option<u32> {
        self.uid
    }

    fn handle(&self) -> u64 {
        self.handle
    }

    fn info(&self) -> Info {
        self.info
    }

    fn memory(&self) -> Memory {
        self.memory
    }

    fn congestion(&self) -> Option<String> {
        self.congestion.clone()
    }

    fn moved(&self) -> Option<[u64; 2]> {
        Some([self.info.bytes_acked?, self.info.bytes_received?])
    }

    fn segments(&self) -> [u64; 2] {
        self.segments
    }

    fn quiet_ms(&self) -> [u32; 2] {
        [u32::MAX, self.received_before_ms.unwrap_or(u32::MAX)]
    }

    fn rtt_us(&self) -> Option<u32> {
        self.info.rtt.and_then(|rtt| u32::try_from(rtt.get()).ok())
    }

    fn fixed(&self) -> Option<Fixed> {
        self.fixed
    }
}
