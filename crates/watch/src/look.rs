//! One look at one connection, whatever the system that tells of it.
//!
//! Linux' answer ([`crate::wire::Reading`]) is read piece by piece, because there are tens of thousands of them each second;
//! the other systems' tables are short, and a row of theirs is read as a whole (`table_row.rs`). What a system does not tell is
//! absent, never zero.

use fullpipe_socket::{Fixed, Info, Memory};

use crate::wire::SocketId;

/// What a system tells of one TCP socket now.
pub(crate) trait Look {
    /// Which one.
    fn id(&self) -> SocketId;
    /// Of a listener: connections that wait to be accepted, and how many may.
    fn queue(&self) -> Option<[u32; 2]>;
    /// How often the segment that waits for its acknowledgement was sent again.
    fn backoffs(&self) -> u8;
    /// Received and not read; in bytes.
    fn unread(&self) -> u32;
    /// Written and not acknowledged; in bytes.
    fn waiting(&self) -> u32;
    /// The user that it belongs to.
    fn uid(&self) -> Option<u32>;
    /// What its owner is asked for by; 0 where it has none any more.
    fn handle(&self) -> u64;
    /// What the system tells of its TCP.
    fn info(&self) -> Info;
    /// Its buffers.
    fn memory(&self) -> Memory;
    /// Its congestion control, as the system names it.
    fn congestion(&self) -> Option<String>;
    /// Payload acknowledged and received so far; in bytes.
    fn moved(&self) -> Option<[u64; 2]>;
    /// Segments with payload sent so far, and those of them that were retransmissions.
    fn segments(&self) -> [u64; 2];
    /// Time since this end last sent and last received payload, in milliseconds; the largest number where the system does not say.
    fn quiet_ms(&self) -> [u32; 2];
    /// The smoothed round trip, in microseconds.
    fn rtt_us(&self) -> Option<u32>;
    /// Which buffers the application set, where that comes with the rest.
    fn fixed(&self) -> Option<Fixed>;
}
