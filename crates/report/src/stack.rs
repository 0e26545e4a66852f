//! What the engine did on a real interface, ready to be shown.

use std::net::SocketAddr;

/// What `stack serve`, `connect` and `echo` did.
#[derive(Clone, Debug, Default)]
pub struct StackRun {
    /// The scenario whose path it ran over.
    pub scenario: Option<String>,
    /// The policy's name.
    pub profile: &'static str,
    /// Whether it sent super-packets.
    pub offload: bool,
    /// One connection each, in the order of their ends.
    pub connections: Vec<StackConnection>,
    /// The pool at the end: all buffers, free ones, the most that were in use at a time.
    pub pool: StackPool,
}

/// One connection of the engine.
#[derive(Clone, Debug)]
pub struct StackConnection {
    /// The other end.
    pub peer: SocketAddr,
    /// Payload sent; B.
    pub sent: u64,
    /// Payload received; B.
    pub received: u64,
    /// How long it took; s.
    pub seconds: f64,
    /// Payload of the busier direction by time; bit/s.
    pub rate_bps: u64,
    /// Segments sent, of any kind.
    pub segments_sent: u32,
    /// Segments received, of any kind.
    pub segments_received: u32,
    /// Data segments sent again.
    pub retransmits: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Smoothed round-trip time; us.
    pub rtt_us: Option<u32>,
    /// Data bytes of a full segment.
    pub mss: Option<u32>,
    /// Why it ended early.
    pub failure: Option<String>,
}

/// A pool of packet buffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct StackPool {
    /// All.
    pub buffers: u16,
    /// Free at the end.
    pub free: u16,
    /// The most that were in use at one time.
    pub most_used: u16,
}

/// The table of a device over its buffers.
#[derive(Clone, Debug, Default)]
pub struct DeviceTable {
    /// The scenario.
    pub scenario: String,
    /// One sentence.
    pub summary: String,
    /// What was published, as a quotation.
    pub published: Option<String>,
    /// Payload of each transfer; B.
    pub bytes: u64,
    /// The device's time per packet; us.
    pub per_packet_us: u64,
    /// The path's round-trip time; us.
    pub rtt_us: u64,
    /// Whether the application waits for each set of buffers.
    pub waits: bool,
    /// Which budget was swept: `all`, `out_of_order`.
    pub sweep: &'static str,
    /// What was fitted to published figures, a sentence each.
    pub fitted: Vec<String>,
    /// How far from a published figure a prediction may be, as a fraction.
    pub tolerance: f64,
    /// The lines.
    pub rows: Vec<DeviceRow>,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct DeviceRow {
    /// The number of buffers.
    pub buffers: u16,
    /// `sends` or `receives`.
    pub role: &'static str,
    /// The time of a transfer, the mean of all runs; s.
    pub seconds: f64,
    /// Runs.
    pub runs: usize,
    /// Payload by time; bit/s.
    pub rate_bps: u64,
    /// Data segments that the device sent again, all runs.
    pub retransmits: u32,
    /// Bytes out of order that the device dropped for want of buffers, all runs.
    pub early_dropped: u64,
    /// The published time; s.
    pub published_s: Option<f64>,
    /// How far the time is from it, as a fraction of it.
    pub deviation: Option<f64>,
    /// Something was fitted to this published time.
    pub fitted: bool,
    /// Whether the made path kept its promises in all runs.
    pub valid: bool,
}

impl DeviceTable {
    /// Whether every prediction is as near to its published figure as it shall be.
    pub fn as_expected(&self) -> bool {
        let off = |row: &DeviceRow| !row.fitted && row.deviation.is_some_and(|off| off.abs() > self.tolerance);
        !self.rows.iter().any(off)
    }
}
