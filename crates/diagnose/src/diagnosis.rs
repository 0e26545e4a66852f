//! What the judge says.

use std::{collections::BTreeMap, fmt};

use fullpipe_units::Rate;
use serde::{Deserialize, Serialize};

use crate::{Source, Transfer};

/// What bounds a connection in an interval. One closed list for every source of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The sending application had nothing to send.
    Application,
    /// The window that the receiver offers.
    ReceiveWindow,
    /// The sender's own buffer.
    SendBuffer,
    /// Congestion control: slow start or loss recovery.
    CongestionWindow,
    /// The path is full.
    Path,
    /// Delayed acknowledgements, alone or against Nagle's algorithm.
    AckDelay,
    /// Segments smaller than the path could take, or a black hole for larger ones.
    SegmentSize,
    /// Reordering that is taken for loss.
    Reordering,
    /// Setting the connection up.
    Handshake,
    /// A processor of one end.
    Cpu,
    /// Too little was seen to say. Only ever a verdict, never a share.
    InsufficientEvidence,
}

/// How exactly the limiter acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Detail {
    /// An end left the window-scale option out, so that no window exceeds 65,535 B (RFC 7323, section 2.2).
    ScalingAbsent,
    /// The receiver's window-scale option has shift 0, with the same effect.
    ScaleZero,
    /// The offered window stands at its highest possible or configured value.
    WindowCeiling,
    /// The receiver closed its window.
    ZeroWindow,
    /// The receiving application reads more slowly than data arrives.
    SlowReader,
    /// The send buffer can't hold a bandwidth-delay product.
    BufferCap,
    /// The transfer ended, or spent most of its time, before the window had opened.
    SlowStart,
    /// The congestion window is held down by lost segments.
    Loss,
    /// Retransmission timeouts.
    Rto,
    /// Losses at the end of a flight, which only a timer repairs.
    TailLoss,
    /// Nagle's algorithm waits for an acknowledgement that is itself delayed.
    Nagle,
    /// The receiver's delayed-ACK timer.
    DelayedAck,
    /// Large packets vanish without a word.
    MtuBlackHole,
    /// Segments are far smaller than the path's MTU.
    SmallMss,
    /// Loss at a fixed rate without queueing: a policer.
    Policed,
    /// The bottleneck link is busy all the time.
    Saturated,
    /// Nothing was outstanding.
    Idle,
    /// The application set the buffer itself, which switched automatic sizing off.
    PinnedByApplication,
}

/// How sure the judge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// One line of evidence, or a short one.
    Low,
    /// The definition holds; a second line of evidence is missing.
    Medium,
    /// The definition holds and the arithmetic agrees with what was measured.
    High,
}

/// Fractions of the connection's time per limiter; they add up to at most 1.
pub type Shares = BTreeMap<Limiter, f64>;

/// A fraction from 0 to 1 as a whole number of percent, never rounded up to all or down to nothing.
pub fn percent(fraction: f64) -> String {
    if fraction > 0.0 && fraction < 0.01 {
        "< 1 %".to_owned()
    } else if fraction > 0.99 && fraction < 1.0 {
        "99 %".to_owned()
    } else {
        format!("{:.0} %", fraction * 100.0)
    }
}

/// One reason for the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// A whole sentence with its figures and arithmetic.
    pub text: String,
    /// When it was seen, in microseconds since the transfer began: first and last moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_us: Option<u64>,
    /// See `from_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_us: Option<u64>,
    /// Where a capture shows it: the numbers of the first and the last packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<[u64; 2]>,
}

/// A limiter that looks like the verdict's to what was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// The limiter.
    pub limiter: Limiter,
    /// What would tell which of the two it is, as a sentence.
    pub decided_by: String,
}

/// The judgement of one transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The limiter that the verdict names.
    pub limiter: Limiter,
    /// How it acts, where that could be determined.
    pub detail: Option<Detail>,
    /// The fraction of time for which it was the limit, 0 to 1.
    pub share: f64,
    /// The payload rate to expect without it; absent where nothing shows what the path carries.
    pub attainable_bps: Option<Rate>,
    /// How sure this is.
    pub confidence: Confidence,
    /// What else explains what was seen, where nothing that was seen tells the two apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<Alternative>,
    /// All limiters and their fractions of time.
    pub shares: Shares,
    /// Why, most important first.
    pub evidence: Vec<Evidence>,
    /// What could not be seen, and what that leaves open.
    pub blind: Vec<String>,
    /// The one thing to do, as a sentence.
    pub action: String,
}

impl Diagnosis {
    /// Too little was seen to say anything, for this reason.
    pub fn insufficient(reason: String) -> Self {
        let nothing = Transfer { source: Source::Capture, ..Transfer::default() };
        // What is blind of a transfer that was not looked at is not known.
        Self { blind: Vec::new(), ..crate::sentences::insufficient(&nothing, Shares::new(), reason) }
    }
}

impl Limiter {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Application,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::CongestionWindow,
        Self::Path,
        Self::AckDelay,
        Self::SegmentSize,
        Self::Reordering,
        Self::Handshake,
        Self::Cpu,
        Self::InsufficientEvidence,
    ];

    /// The word in JSON: `receive_window`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive_window",
            Self::SendBuffer => "send_buffer",
            Self::CongestionWindow => "congestion_window",
            Self::Path => "path",
            Self::AckDelay => "ack_delay",
            Self::SegmentSize => "segment_size",
            Self::Reordering => "reordering",
            Self::Handshake => "handshake",
            Self::Cpu => "cpu",
            Self::InsufficientEvidence => "insufficient_evidence",
        }
    }

    /// The word for a person: `receive window`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::CongestionWindow => "congestion window",
            Self::Path => "path",
            Self::AckDelay => "ACK delay",
            Self::SegmentSize => "segment size",
            Self::Reordering => "reordering",
            Self::Handshake => "handshake",
            Self::Cpu => "CPU",
            Self::InsufficientEvidence => "not enough evidence",
        }
    }
}

impl Detail {
    /// What it means, for a person: `window scaling absent`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ScalingAbsent => "window scaling absent",
            Self::ScaleZero => "window-scale shift 0",
            Self::WindowCeiling => "at its ceiling",
            Self::ZeroWindow => "closed by the receiver",
            Self::SlowReader => "the receiving application reads slowly",
            Self::BufferCap => "smaller than the path needs",
            Self::SlowStart => "slow start",
            Self::Loss => "held down by loss",
            Self::Rto => "retransmission timeouts",
            Self::TailLoss => "tail loss",
            Self::Nagle => "Nagle's algorithm against delayed ACK",
            Self::DelayedAck => "delayed ACK",
            Self::MtuBlackHole => "MTU black hole",
            Self::SmallMss => "small MSS",
            Self::Policed => "policed",
            Self::Saturated => "saturated",
            Self::Idle => "idle",
            Self::PinnedByApplication => "pinned by application",
        }
    }
}

/// A limiter with how it acts: `receive window (window-scale shift 0)`.
pub fn limit_words(limiter: Limiter, detail: Option<Detail>) -> String {
    detail.map_or_else(|| limiter.words().to_owned(), |detail| format!("{} ({})", limiter.words(), detail.words()))
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
