//! The parameters of a hop in one direction, already checked for sense by whoever made them.

use std::str::FromStr;

use fullpipe_units::{Bytes, Micros, Rate};

use crate::RateTrace;

/// One hop in one direction. The default is a wire that changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HopSpec {
    /// The link's rate, counted on IP length plus `overhead`; `None` serialises in no time and has no queue.
    pub rate: Option<Rate>,
    /// How the link's rate changes over time; `rate` then is its mean.
    pub trace: Option<RateTrace>,
    /// Bytes that the link adds to each packet: 38 on Ethernet with preamble and gap, 0 to count IP bytes alone.
    pub overhead: u32,
    /// What waits for the link.
    pub queue: QueueSpec,
    /// Propagation delay.
    pub delay: Micros,
    /// Variation of the delay.
    pub jitter: Option<JitterSpec>,
    /// Loss on the wire, after serialisation: a lost packet has used its share of the link.
    pub loss: Option<LossSpec>,
    /// Packets taken out of order.
    pub reorder: Option<ReorderSpec>,
    /// The probability of a second copy, 0 to 1.
    pub duplicate: f64,
    /// The largest packet, where the hop checks it.
    pub mtu: Option<MtuSpec>,
    /// A rate that is enforced by dropping, before the queue.
    pub police: Option<PolicerSpec>,
    /// A rate below the link's that is enforced by delaying: what finds too few tokens waits in the queue.
    pub shape: Option<PolicerSpec>,
    /// Acknowledgements of which only the last of several passes, before the queue.
    pub thin_acks: Option<ThinSpec>,
    /// Packets that enter the queue in bunches.
    pub aggregate: Option<AggregateSpec>,
}

/// Packets held back until there are enough of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateSpec {
    /// So many leave together, at least 1.
    pub packets: u32,
    /// The longest that the first of them waits for the others.
    pub hold: Micros,
}

/// Acknowledgements of which only the last of several passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinSpec {
    /// One of so many of a connection, at least 1.
    pub every: u32,
    /// The longest that the first of them waits for the others.
    pub hold: Micros,
}

impl HopSpec {
    /// What empties the queue in the long run: the link, or the slower shaper before it.
    pub fn drain(&self) -> Option<Rate> {
        let link = self.rate?;
        Some(self.shape.map_or(link, |shape| shape.rate.min(link)))
    }
}

/// A token bucket: of a policer, or of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerSpec {
    /// How fast it fills: counted on IP length by a policer, with the link's overhead by a shaper.
    pub rate: Rate,
    /// What it holds when full, at least one packet.
    pub burst: Bytes,
}

/// The limit of a queue and how it drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSpec {
    /// How much may wait.
    pub size: QueueSize,
    /// Who is dropped or marked, and when.
    pub discipline: Discipline,
}

impl Default for QueueSpec {
    /// One bandwidth-delay product, at least 64 packets, drop-tail.
    fn default() -> Self {
        Self { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, discipline: Discipline::DropTail }
    }
}

/// How much may wait for a link, not counting the packet that is being serialised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSize {
    /// So many packets of any size.
    Packets(u32),
    /// So many bytes of IP packets.
    Bytes(Bytes),
    /// A multiple of the hop's rate times the path's round-trip time, in bytes.
    Bdp {
        /// The multiple, above 0.
        multiple: f64,
        /// Full-size packets that always fit.
        at_least: u32,
    },
    /// So long as the link needs this time to empty it, in bytes; always room for one full-size packet.
    Time(Micros),
}

/// A text that is no size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 1bdp, 100p, 64k or 20ms")]
pub struct NoQueueSize;

impl FromStr for QueueSize {
    type Err = NoQueueSize;

    /// `1bdp` (up to 1,000, at least 4 packets), `100p`, `64k`, `20ms`; none of them zero.
    fn from_str(text: &str) -> Result<Self, NoQueueSize> {
        let text = text.trim();
        let size = if let Some(multiple) = text.strip_suffix("bdp") {
            let multiple: f64 = multiple.trim().parse().map_err(|_| NoQueueSize)?;
            (multiple > 0.0 && multiple <= 1_000.0).then_some(Self::Bdp { multiple, at_least: 4 })
        } else if let Some(packets) = text.strip_suffix('p') {
            let packets: u32 = packets.trim().parse().map_err(|_| NoQueueSize)?;
            (1..=10_000_000).contains(&packets).then_some(Self::Packets(packets))
        } else if let Ok(bytes) = text.parse::<Bytes>() {
            (bytes > Bytes::ZERO).then_some(Self::Bytes(bytes))
        } else {
            text.parse().ok().filter(|time| *time > Micros::ZERO).map(Self::Time)
        };
        size.ok_or(NoQueueSize)
    }
}

/// How a queue chooses what to drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Arrivals that do not fit.
    DropTail,
    /// Random early detection.
    Red(RedSpec),
    /// Controlled delay.
    CoDel(CoDelSpec),
}

/// Random early detection (Floyd and Jacobson, 1993), "gentle" above the upper threshold (Floyd, 2000).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpec {
    /// Below this part of the limit (0 to 1) nothing is dropped.
    pub min: f64,
    /// At this part of the limit, above `min`, packets are dropped with `probability`; from twice this on, all.
    pub max: f64,
    /// See `max`; above 0, at most 1.
    pub probability: f64,
    /// The weight of each arrival in the average queue, above 0, at most 1.
    pub weight: f64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for RedSpec {
    fn default() -> Self {
        // Floyd's recommended values (1997): weight 0.002, probability 0.1, upper threshold three times the lower.
        Self { min: 1.0 / 6.0, max: 0.5, probability: 0.1, weight: 0.002, ecn: false }
    }
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelSpec {
    /// Acceptable standing delay.
    pub target: Micros,
    /// How long the delay must stand: about the largest round-trip time.
    pub interval: Micros,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelSpec {
    fn default() -> Self {
        // RFC 8289, section 4.2 and 4.3: 5 ms and 100 ms.
        Self { target: Micros::from_millis(5), interval: Micros::from_millis(100), ecn: false }
    }
}

/// Variation of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterSpec {
    /// How the variation is distributed.
    pub spread: Spread,
    /// Whether a packet waits for the one before it. Without, jitter reorders.
    pub keep_order: bool,
}

/// The distribution of a jitter around the delay. The sum is never below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform from `delay - this` to `delay + this`.
    Uniform(Micros),
    /// Normal with this standard deviation, cut off at four of them.
    Normal(Micros),
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossSpec {
    /// Each packet alone, with this probability.
    Bernoulli(f64),
    /// Two states (Gilbert 1960, Elliott 1963), with a transition drawn per packet.
    GilbertElliott {
        /// The probability to go from good to bad.
        p: f64,
        /// The probability to go from bad to good; `1 / r` packets is a mean burst.
        r: f64,
        /// The loss probability in the good state.
        good: f64,
        /// The loss probability in the bad state.
        bad: f64,
    },
    /// So many packets in a row, and no others.
    Row {
        /// The number of the first of them, counted from 0.
        first: u64,
        /// How many.
        count: u64,
    },
}

impl LossSpec {
    /// The fraction of packets lost in the long run.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Bernoulli(probability) => probability,
            // The chain starts in the good state and never leaves it.
            Self::GilbertElliott { p, good, .. } if p <= 0.0 => good,
            Self::GilbertElliott { p, r, good, bad } => (r * good + p * bad) / (p + r),
            Self::Row { .. } => 0.0,
        }
    }
}

/// Packets taken out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderSpec {
    /// The probability for each packet, 0 to 1.
    pub probability: f64,
    /// Where to.
    pub by: ReorderBy,
}

/// How a packet is taken out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorderBy {
    /// It arrives this much later, overtaken by what follows within that time.
    Later(Micros),
    /// It arrives this much earlier (at the earliest, at once), overtaking what is still under way.
    Earlier(Micros),
    /// It arrives right after so many packets that follow it, or after `hold` at the latest.
    Gap {
        /// Packets that overtake it, at least 1.
        packets: u32,
        /// The longest wait for them.
        hold: Micros,
    },
}

/// The largest packet that a hop passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuSpec {
    /// In bytes of IP packet.
    pub bytes: u32,
    /// What happens to larger ones.
    pub oversize: OversizeVerdict,
}

/// What happens to a packet that is larger than an MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OversizeVerdict {
    /// The sender is notified (ICMP).
    TooBig,
    /// It vanishes: a black hole (RFC 2923, section 2.1).
    Silent,
}
