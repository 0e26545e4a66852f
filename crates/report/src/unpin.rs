//! What `unpin` did.

use fullpipe_units::{Bytes, Rate};

/// Sockets that were given back to automatic sizing, for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpinned {
    /// Its run in the journal.
    pub run: i64,
    /// Whose, as it was asked for.
    pub target: String,
    /// Calls for new sockets that were swallowed, of the send and of the receive buffer; `None` where that was not wanted.
    pub swallowed: Option<[u64; 2]>,
    /// The open ones.
    pub sockets: Vec<UnpinnedSocket>,
    /// What became of those at the end; `None` where another run had the journal, so that they are as they were.
    pub put_back: Option<PutBack>,
    /// The rate of all connections before.
    pub before: Option<Rate>,
    /// The rate of all connections in the last seconds; `None` where it ended too soon to say.
    pub after: Option<Rate>,
}

/// Open sockets at the end. Those that are in neither count are closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// They have their fixed buffers again.
    pub restored: usize,
    /// Their application set a buffer again meanwhile, which is left alone.
    pub set_again: usize,
}

/// An open socket that was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpinnedSocket {
    /// The process's name, as it chose it.
    pub process: String,
    /// Its number.
    pub pid: u32,
    /// The descriptor there.
    pub fd: u32,
    /// The send buffer that was set, as the kernel counts.
    pub send_buffer: Option<Bytes>,
    /// The receive buffer that was set.
    pub receive_buffer: Option<Bytes>,
    /// The largest window that the connection's window scale allows, where that was chosen for the small buffer.
    pub largest_window: Option<Bytes>,
}

impl Unpinned {
    /// How many times the rate before is the rate after.
    pub fn ratio(&self) -> Option<f64> {
        let (before, after) = self.before.zip(self.after)?;
        (before.bps() > 0).then(|| after.bps() as f64 / before.bps() as f64)
    }
}
