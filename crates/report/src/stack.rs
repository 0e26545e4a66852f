//! What the engine did on a real interface, ready to be shown.

use std::net::SocketAddr;

use fullpipe_units::Micros;

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
    /// Data segments retransmitted.
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
    /// The rate of its slowest link; bit/s; absent where no link has one.
    pub rate_bps: Option<u64>,
    /// The part of all packets that it loses at random, each way.
    pub loss: f64,
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
    /// For a device that a user described: which count to set.
    pub advice: Option<DeviceAdvice>,
}

/// Which counts of buffers to set on a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceAdvice {
    /// The count for what is written and for what is unacknowledged; absent where the pool is too small for any.
    pub sends: Option<u16>,
    /// The count for what is received; absent as above.
    pub receives: Option<u16>,
    /// For how many connections at the same time.
    pub connections: u16,
    /// Buffers of the pool.
    pub pool: u64,
    /// Memory of each; B.
    pub buffer_bytes: u64,
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
    /// Data segments that the device retransmitted, all runs.
    pub retransmits: u32,
    /// Bytes out of order that the device dropped for want of buffers, all runs.
    pub early_dropped: u64,
    /// The published time; s.
    pub published_s: Option<f64>,
    /// How far the time is from it, as a fraction of it.
    pub deviation: Option<f64>,
    /// Something was fitted to this published time.
    pub fitted: bool,
    /// Whether the emulated path kept its promises in all runs.
    pub valid: bool,
    /// For a device that a user described: buffers of the pool that all its connections can hold.
    pub held: Option<u64>,
    /// Buffers that their lists ask for, more than there are or not.
    pub asked: Option<u64>,
}

impl DeviceTable {
    /// Whether every prediction is as near to its published figure as it shall be.
    pub fn as_expected(&self) -> bool {
        let off = |row: &DeviceRow| !row.fitted && row.deviation.is_some_and(|off| off.abs() > self.tolerance);
        !self.rows.iter().any(off)
    }
}

/// The presets beside each other, over one path.
#[derive(Clone, Debug, Default)]
pub struct PresetTable {
    /// The scenario.
    pub scenario: String,
    /// The policy's name.
    pub profile: &'static str,
    /// The path's round-trip time; us.
    pub rtt_us: u64,
    /// A message, a request, an answer, a piece, a write in bulk; B.
    pub message_bytes: u64,
    /// How many messages, and how many requests.
    pub messages: u32,
    /// From one message to the next; us.
    pub gap_us: u64,
    /// How many pieces.
    pub pieces: u32,
    /// From one piece to the next; us.
    pub piece_gap_us: u64,
    /// Payload in bulk; B.
    pub bulk_bytes: u64,
    /// What each preset did with each kind of work.
    pub rows: Vec<PresetRow>,
}

/// What one preset did with one kind of work.
#[derive(Clone, Debug)]
pub struct PresetRow {
    /// `messages`, `requests`, `pieces` or `bulk`.
    pub work: &'static str,
    /// `default`, `low_latency` or `bulk`.
    pub preset: &'static str,
    /// From the first write to the last arrival; s.
    pub seconds: f64,
    /// Payload that the engine wrote.
    pub bytes: u64,
    /// How long a message took to arrive, or a request to be answered; nothing for pieces and bulk.
    pub latency: Option<PresetLatency>,
    /// Data segments of the engine.
    pub data_segments: u64,
    /// Acknowledgements without data: the engine's.
    pub acks: u64,
    /// Acknowledgements without data: the kernel's.
    pub peer_acks: u64,
    /// IP packets, both ways; B.
    pub wire_bytes: u64,
    /// Data segments retransmitted.
    pub retransmits: u32,
    /// Whether the emulated path kept its promises.
    pub valid: bool,
}

/// Of the messages of a row.
#[derive(Clone, Copy, Debug)]
pub struct PresetLatency {
    /// Half of them took no longer; us.
    pub p50_us: u64,
    /// 99 of 100 took no longer; us.
    pub p99_us: u64,
}

/// When to use a preset, by the figures of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetAdvice {
    /// Which.
    pub preset: &'static str,
    /// When and why, or why not.
    pub text: String,
}

/// What is gained has to be more than the figures move from run to run.
const GAIN: f64 = 1.2;

impl PresetTable {
    /// Whether the emulated path kept its promises in every row.
    pub fn is_valid(&self) -> bool {
        self.rows.iter().all(|row| row.valid)
    }

    /// When to use which preset, and why, as the figures have it.
    pub fn advice(&self) -> Vec<PresetAdvice> {
        [self.on_low_latency(), self.on_bulk(), self.on_default()].into_iter().flatten().collect()
    }

    fn row(&self, work: &str, preset: &str) -> Option<&PresetRow> {
        self.rows.iter().find(|row| row.work == work && row.preset == preset)
    }

    fn p50_us(&self, work: &str, preset: &str) -> Option<u64> {
        self.row(work, preset)?.latency.map(|latency| latency.p50_us)
    }

    fn on_low_latency(&self) -> Option<PresetAdvice> {
        let (quick, usual) = (self.p50_us("requests", "low_latency")?, self.p50_us("requests", "default")?);
        let (many, few) =
            (self.row("messages", "low_latency")?.data_segments, self.row("messages", "default")?.data_segments);
        let [quick_time, usual_time] = [quick, usual].map(Micros::new);
        let text = if usual as f64 > quick as f64 * GAIN {
            format!(
                "where somebody waits for each answer: half of the requests took at most {quick_time} instead of \
                 {usual_time}, because a small write does not wait for the acknowledgement of the one before, which the \
                 peer delays; the price is a segment for each write, {many} instead of {few} for the messages"
            )
        } else {
            format!("gains nothing here: half of the requests took at most {quick_time}, and {usual_time} by default")
        };
        Some(PresetAdvice { preset: "low_latency", text })
    }

    fn on_bulk(&self) -> Option<PresetAdvice> {
        let (bulk, quick) = (self.row("pieces", "bulk")?, self.row("pieces", "low_latency")?);
        let [time, usual_time] = [self.row("bulk", "bulk")?, self.row("bulk", "default")?].map(|row| row.seconds);
        let held = Micros::new(self.p50_us("requests", "bulk")?);
        let segments = if quick.data_segments as f64 > bulk.data_segments as f64 * GAIN {
            format!(
                "where much is sent and nobody waits for a piece of it: the pieces left in {} data segments, {} B on the \
                 wire with all acknowledgements, instead of {} and {} with low_latency, because only full segments leave",
                bulk.data_segments, bulk.wire_bytes, quick.data_segments, quick.wire_bytes,
            )
        } else {
            format!(
                "saves no segments here: {} for the pieces instead of {} with low_latency",
                bulk.data_segments, quick.data_segments
            )
        };
        let text = format!(
            "{segments}; its buffers made the bulk take {time:.2} s instead of {usual_time:.2} s by default; never for a \
             dialogue, because it holds the last piece back: half of the requests took up to {held}"
        );
        Some(PresetAdvice { preset: "bulk", text })
    }

    fn on_default(&self) -> Option<PresetAdvice> {
        let segments = |work, preset| self.row(work, preset).map(|row| row.data_segments);
        let text = format!(
            "where a connection does both: no message waits longer than a round trip with the peer's delay of its \
             acknowledgement, and those of one round trip share a segment: {} for the messages instead of {} with \
             low_latency, {} for the pieces instead of {}",
            segments("messages", "default")?,
            segments("messages", "low_latency")?,
            segments("pieces", "default")?,
            segments("pieces", "low_latency")?,
        );
        Some(PresetAdvice { preset: "default", text })
    }
}
