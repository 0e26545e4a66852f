//! One connection's story, whatever observed it.
//!
//! Everything that a source may not know is an `Option`: absent means "not seen", never "zero". Counters are
//! cumulative since the connection began; times of samples are since the transfer's first payload byte, on the clock of
//! the end that took them.

use fullpipe_units::{Bytes, Micros, Rate};
use serde::{Deserialize, Serialize};

/// One direction of one connection: a sender, a receiver, and what passed between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Where the evidence comes from.
    pub source: Source,
    /// The end that sent the payload.
    pub sender: End,
    /// The end that received it.
    pub receiver: End,
    /// Payload bytes that the receiver counted (where only the sender was seen: bytes acknowledged).
    pub bytes: Bytes,
    /// From the first payload byte to the last.
    pub duration_us: Micros,
    /// The round-trip time before any load.
    pub idle_rtt: Option<RttSummary>,
    /// The largest IP packet that passes unfragmented in this direction, in bytes.
    pub path_mtu: Option<u32>,
    /// The payload of segments that vanished until smaller ones took their place, where packets show that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_size: Option<u32>,
    /// Whether packets show that a full-size segment got through: what stalls later doesn't do so for its size.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub full_size_passed: bool,
    /// What was lost on the way, where packets show when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<Drops>,
    /// How the connection was set up, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Opening>,
    /// What the sender's application writes at a time, where that shows and is nearly always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Bytes>,
    /// ... and how long after one write the next comes, where that is, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_every_us: Option<Micros>,
    /// The payload rate of the narrowest link, from the spacing of full segments that were sent together (packet pairs), where half of
    /// all gaps are the same. Only a capture beside the receiver shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_rate: Option<Rate>,
    /// What the path itself was seen to carry, from a measurement other than this transfer.
    pub path_rate: Option<PathRate>,
    /// The sender's side of the timeline, oldest first.
    pub sender_samples: Vec<SenderSample>,
    /// The receiver's side of the timeline, oldest first.
    pub receiver_samples: Vec<ReceiverSample>,
    /// What this source could not see, in words for the report.
    pub blind: Vec<String>,
}

/// Where a story comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A live test with `TCP_INFO` of both ends.
    #[default]
    Live,
    /// A live test in which only our own end could be read (a foreign peer).
    LiveOneEnd,
    /// The host's own sockets.
    Watch,
    /// A packet capture.
    Capture,
    /// The simulator.
    Simulation,
}

/// What is known of one end of the connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// What to call it in a sentence: a host name, an address, or `a` and `b` in the lab.
    pub name: String,
    /// The platform in catalogue spelling (`linux-6.18`, `windows-2012`), where known.
    pub platform: Option<String>,
    /// What this end's SYN or SYN-ACK said.
    pub syn: Option<SynFacts>,
    /// Whether this end sent the SYN. The other end's SYN-ACK carries the window-scale option only where the SYN did
    /// (RFC 7323, section 2.2), so that an option missing from both was left out by the end that opened.
    #[serde(default)]
    pub opened: Option<bool>,
    /// Its congestion control, as the kernel names it.
    pub congestion_control: Option<String>,
    /// Its send buffer.
    pub send_buffer: Option<Buffer>,
    /// Its receive buffer.
    pub receive_buffer: Option<Buffer>,
    /// How busy the busiest processor of this end was during the transfer, 0 to 1.
    pub cpu_busy: Option<f64>,
}

/// What a SYN or SYN-ACK offered (RFC 9293 section 3.2; RFC 7323; RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SynFacts {
    /// The maximum segment size option, in bytes.
    pub mss: Option<u16>,
    /// The shift of the window-scale option: `Some(0)` is the option with shift 0, `None` no option.
    pub window_scale: Option<u8>,
    /// SACK-permitted.
    pub sack_permitted: bool,
    /// The timestamps option.
    pub timestamps: bool,
    /// The window field of the SYN itself, which is never scaled, in bytes.
    pub window: Option<u16>,
}

/// One buffer of a socket, as the kernel accounts for it (payload plus its own overhead).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The largest size that it had during the transfer.
    pub largest: Bytes,
    /// Whether the application set it (`SO_RCVBUF`, `SO_SNDBUF`), which switches automatic sizing off.
    pub pinned: bool,
}

/// What the path took, inferred from packets that were retransmitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Payload that was lost.
    pub bytes: Bytes,
    /// How much later than over the shortest way segments right behind a loss arrived (median): a queue that overflows is
    /// full then. `None` where neither selective acknowledgements nor timestamps tell.
    pub wait_us: Option<Micros>,
    /// The losses in the order in which they happened.
    pub list: Vec<Drop>,
}

/// One loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drop {
    /// When, since the transfer's first payload byte.
    pub at_us: Micros,
    /// Payload that got through until then, repeats included.
    pub passed: Bytes,
}

/// How a connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// From the first SYN to the acknowledgement of the SYN-ACK.
    pub took_us: Micros,
    /// From there to the first payload.
    #[serde(default)]
    pub silent_us: Micros,
    /// SYN packets beyond the first.
    pub syn_retransmissions: u32,
    /// SYN-ACK packets beyond the first.
    pub syn_ack_retransmissions: u32,
    /// Payload that the sender sent before any of it was acknowledged.
    pub initial_window: Option<Bytes>,
    /// The numbers of the first SYN and of the last packet of the handshake.
    pub packets: Option<[u64; 2]>,
}

/// A summary of round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RttSummary {
    /// The smallest.
    pub min_us: Micros,
    /// The median.
    pub p50_us: Micros,
    /// How many were taken.
    pub count: u32,
}

/// What the path carries, measured separately from the transfer that is judged (many streams at once, or paced trains).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRate {
    /// Payload rate.
    pub rate_bps: Rate,
    /// True where the measurement was itself limited by its ends, so that the path may carry more.
    pub lower_bound: bool,
}

/// The sender at one moment. Byte counts are payload; `cwnd` and `ssthresh` are in bytes (segments times MSS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderSample {
    /// Since the transfer began.
    pub at_us: Micros,
    /// Payload acknowledged (`tcpi_bytes_acked`).
    pub acked: Bytes,
    /// Sent and not yet acknowledged.
    pub in_flight: Option<Bytes>,
    /// Written by the application and not yet sent (`tcpi_notsent_bytes`).
    pub not_sent: Option<Bytes>,
    /// The window that the peer offers, scaled (`tcpi_snd_wnd`).
    pub offered_window: Option<Bytes>,
    /// Congestion window.
    pub cwnd: Option<Bytes>,
    /// Slow-start threshold; `None` while it is still infinite.
    pub ssthresh: Option<Bytes>,
    /// Largest payload of one segment in this direction (`tcpi_snd_mss`).
    pub mss: Option<u32>,
    /// Smoothed round-trip time.
    pub rtt_us: Option<Micros>,
    /// The round-trip time's mean deviation (`tcpi_rttvar`; RFC 6298: RTTVAR).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_var_us: Option<Micros>,
    /// The path MTU that the kernel believes in (`tcpi_pmtu`); bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u32>,
    /// Smallest round-trip time in the kernel's window (`tcpi_min_rtt`).
    pub min_rtt_us: Option<Micros>,
    /// Segments retransmitted so far.
    #[serde(rename = "retransmissions", alias = "retransmits")]
    pub retransmits: Option<u64>,
    /// Payload bytes retransmitted so far.
    pub retransmitted: Option<Bytes>,
    /// Retransmission timeouts so far.
    pub timeouts: Option<u64>,
    /// Of these, those since anything was acknowledged last (sock_diag's `idiag_retrans` on Linux); unlike the count of all not cumulative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoffs: Option<u8>,
    /// Segments that the sender currently believes lost.
    pub lost: Option<u32>,
    /// Times that the sender found its segments reordered (`tcpi_reord_seen`).
    pub reordering_seen: Option<u32>,
    /// Duplicate SACKs received: retransmissions that were not needed.
    pub dsacks: Option<u32>,
    /// Segments that came from the receiver so far, acknowledgements among them.
    pub heard: Option<u32>,
    /// Acknowledged segments that carried a congestion mark (`tcpi_delivered_ce`).
    pub delivered_ce: Option<u32>,
    /// The kernel's delivery-rate estimate.
    pub delivery_rate_bps: Option<Rate>,
    /// Whether that estimate was taken while the application had nothing to send.
    pub delivery_app_limited: Option<bool>,
    /// The rate at which the sender paces; `None` where it does not pace or was not seen.
    pub pacing_rate_bps: Option<Rate>,
    /// The most that its application lets it pace to (`SO_MAX_PACING_RATE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pacing_rate_bps: Option<Rate>,
    /// The state of loss recovery.
    pub congestion_state: Option<CongestionState>,
    /// Time with data outstanding so far (`tcpi_busy_time`).
    pub busy_us: Option<Micros>,
    /// Of that, time limited by the receive window. Undercounts under BBR: evidence, not truth.
    pub rwnd_limited_us: Option<Micros>,
    /// Of that, time limited by the send buffer. Undercounts too.
    pub sndbuf_limited_us: Option<Micros>,
    /// The send buffer's size now (`SK_MEMINFO_SNDBUF`).
    pub send_buffer: Option<Bytes>,
    /// What the queued data costs of that buffer (`SK_MEMINFO_WMEM_QUEUED`).
    pub send_queued: Option<Bytes>,
    /// What packets show of the time since the sample before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketSample>,
}

/// What only packets show of the time between two samples; unlike the counters of a [`SenderSample`], not cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketSample {
    /// Most in flight at once; the sample's own `in_flight` is the mean while anything was.
    pub peak: Bytes,
    /// Time with the offered window used up.
    pub held_us: Micros,
    /// Time with the offered window closed.
    pub closed_us: Micros,
    /// Time with nothing in flight.
    pub idle_us: Micros,
    /// Payload that became known to have arrived, by selective acknowledgements too.
    #[serde(default)]
    pub delivered: Bytes,
    /// Payload sent, repeats included.
    pub sent: Bytes,
    /// Of that, sent while something was in flight and no acknowledgement had just made room.
    pub unprompted: Bytes,
    /// Of that, sent within about half a millisecond after an acknowledgement that made room.
    #[serde(default)]
    pub prompted: Bytes,
    /// Of that, what arrived right behind other data, so that when it was sent doesn't show.
    #[serde(default)]
    pub hidden: Bytes,
    /// Acknowledgements that made room.
    #[serde(default)]
    pub prompts: u32,
    /// Of what was sent, the part that left within a millisecond after a message of the receiver's application.
    #[serde(default)]
    pub credited: Bytes,
    /// Messages of the receiver's application while something was in flight.
    #[serde(default)]
    pub credits: u32,
    /// Time in which acknowledgements had made room for more, for a good part of a round trip, and nothing was sent.
    pub starved_us: Micros,
    /// Pauses of the sender that ended with the first acknowledgement to make room: a window was used up.
    #[serde(default)]
    pub clocked: u32,
    /// Pauses that ended with a later acknowledgement: a writer that waits for its send buffer is woken when a part of it
    /// is free (Linux: a third, `sk_stream_is_writeable`), and not before.
    #[serde(default)]
    pub woken: u32,
    /// Pauses that ended without one: the application wrote.
    #[serde(default)]
    pub written: u32,
    /// Requests of the receiver that came when everything had been sent and acknowledged.
    #[serde(default)]
    pub asked: u32,
    /// Time in which everything had been sent and acknowledged before the receiver asked for more.
    #[serde(default)]
    pub asked_us: Micros,
    /// Time in which nothing arrived at the receiver though something was in flight: a full link delivers all the time.
    #[serde(default)]
    pub dry_us: Micros,
    /// Writes that waited, smaller than a segment, until the one before was acknowledged, which the receiver delayed.
    pub nagle: u32,
    /// How long they waited.
    pub nagle_us: Micros,
    /// Other segments that waited for an acknowledgement which the receiver delayed.
    pub delayed: u32,
    /// How long they waited.
    pub delayed_us: Micros,
    /// Timeouts of the last segments of a flight: fewer than three followed, which is what a duplicate-ACK count needs.
    #[serde(default)]
    pub tails: u32,
    /// Last segments of a flight that were sent again before a timer ran out and without a duplicate acknowledgement: probes of
    /// a tail loss (RFC 8985, section 7), which are needless where acknowledgements are late.
    #[serde(default)]
    pub probes: u32,
    /// The number of the first packet with payload.
    pub first: Option<u64>,
    /// The number of the last packet with payload.
    pub last: Option<u64>,
}

/// The state of the sender's loss recovery (Linux: `tcpi_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionState {
    /// Nothing suspicious.
    Open,
    /// Duplicate ACKs or SACKs, not yet judged a loss.
    Disorder,
    /// Reducing after an ECN mark.
    CwndReduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The receiver at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverSample {
    /// Since the transfer began.
    pub at_us: Micros,
    /// Payload received in order (`tcpi_bytes_received`).
    pub received: Bytes,
    /// The window that this end offers (`tcpi_rcv_wnd`, Linux 6.2 and newer).
    pub offered_window: Option<Bytes>,
    /// Received in order and not yet read by the application.
    pub unread: Option<Bytes>,
    /// Segments received out of order so far (`tcpi_rcv_ooopack`).
    pub out_of_order: Option<u32>,
    /// The receive buffer's size now (`SK_MEMINFO_RCVBUF`).
    pub receive_buffer: Option<Bytes>,
    /// What autotuning believes the application reads in a round trip (`tcpi_rcv_space`).
    pub receive_space: Option<Bytes>,
}

impl Transfer {
    /// The round trip of the empty path: the shortest that was seen before the transfer or during it.
    pub fn base_rtt(&self) -> Option<Micros> {
        let idle = self.idle_rtt.map(|rtt| rtt.min_us);
        let sampled = self.sender_samples.iter().flat_map(|s| [s.min_rtt_us, s.rtt_us]).flatten();
        // The kernel reports an unknown minimum as all ones.
        idle.into_iter().chain(sampled).filter(|rtt| (1..u64::from(u32::MAX)).contains(&rtt.get())).min()
    }

    /// Payload rate over the whole transfer; `None` where it took no time.
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_bytes(self.bytes, self.duration_us)
    }

    /// Whether a SYN of either end was seen without SACK-permitted (RFC 2018, section 2).
    pub fn lacks_sack(&self) -> bool {
        [self.sender.syn, self.receiver.syn].into_iter().flatten().any(|syn| !syn.sack_permitted)
    }

    /// Segments retransmitted in the whole transfer; `None` where the sender was not seen.
    pub fn retransmits(&self) -> Option<u64> {
        let first = self.sender_samples.first()?.retransmits?;
        let last = self.sender_samples.last()?.retransmits?;
        Some(last.saturating_sub(first))
    }
}
