//! The file as it is written. Cross-checks and defaults are in `lower`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::values::{Count, Either, Probability, QueueText, RateAboveZero, Setting, Size, Span};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) schema: Spanned<i64>,
    pub(super) name: Spanned<String>,
    pub(super) summary: String,
    pub(super) published: Option<String>,
    pub(super) source: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) path: Path,
    #[serde(default)]
    pub(super) a: Host,
    #[serde(default)]
    pub(super) b: Host,
    pub(super) test: Option<Test>,
    pub(super) expect: Option<Spanned<BTreeMap<Spanned<String>, Spanned<Expect>>>>,
    pub(super) device: Option<Device>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub(super) bytes: Size,
    pub(super) per_packet: Option<Span>,
    #[serde(default)]
    pub(super) waits: bool,
    pub(super) buffers: Spanned<Vec<Count<1, 1_000>>>,
    /// The other budgets, where the one for data out of order is swept.
    pub(super) receive: Option<Count<1, 1_000>>,
    pub(super) runs: Option<Count<1, 100>>,
    #[serde(default)]
    pub(super) role: Role,
    #[serde(default)]
    pub(super) published: BTreeMap<Spanned<String>, f64>,
    pub(super) tolerance: Option<Probability>,
    #[serde(default)]
    pub(super) fitted: Vec<Fit>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Sends,
    Receives,
    #[default]
    Both,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fit {
    pub(super) quantity: Quantity,
    pub(super) buffers: Count<1, 1_000>,
    pub(super) scenario: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Quantity {
    PerPacket,
    Rtt,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Path {
    pub(super) mtu: Spanned<u32>,
    #[serde(default)]
    pub(super) ip: Ip,
    pub(super) hops: Spanned<Vec<Hop>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ip {
    #[default]
    V4,
    V6,
    Both,
}

/// The fields of [`Leg`] once more: `flatten` would switch the refusal of unknown fields off.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hop {
    pub(super) name: Option<String>,
    rate: Option<RateAboveZero>,
    trace: Option<Spanned<String>>,
    overhead: Option<Count<0, 1_000>>,
    queue: Option<Spanned<Queue>>,
    delay: Option<Span>,
    jitter: Option<Spanned<Jitter>>,
    loss: Option<Spanned<Loss>>,
    reorder: Option<Spanned<Reorder>>,
    duplicate: Option<Probability>,
    mtu: Option<Spanned<Mtu>>,
    police: Option<Spanned<Police>>,
    shape: Option<Spanned<Police>>,
    thin_acks: Option<Thin>,
    aggregate: Option<Aggregate>,
    #[serde(default)]
    ab: Leg,
    #[serde(default)]
    ba: Leg,
}

/// One direction of a hop. What it leaves out is that of the hop.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Leg {
    pub(super) rate: Option<RateAboveZero>,
    pub(super) trace: Option<Spanned<String>>,
    pub(super) overhead: Option<Count<0, 1_000>>,
    pub(super) queue: Option<Spanned<Queue>>,
    pub(super) delay: Option<Span>,
    pub(super) jitter: Option<Spanned<Jitter>>,
    pub(super) loss: Option<Spanned<Loss>>,
    pub(super) reorder: Option<Spanned<Reorder>>,
    pub(super) duplicate: Option<Probability>,
    pub(super) mtu: Option<Spanned<Mtu>>,
    pub(super) police: Option<Spanned<Police>>,
    pub(super) shape: Option<Spanned<Police>>,
    pub(super) thin_acks: Option<Thin>,
    pub(super) aggregate: Option<Aggregate>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thin {
    pub(super) every: Count<1, 1_000>,
    pub(super) hold: Option<Span>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Aggregate {
    pub(super) packets: Count<1, 1_000>,
    pub(super) hold: Option<Span>,
}

impl Hop {
    /// The two directions, each field its own or the hop's.
    pub(super) fn legs(self) -> (Leg, Leg) {
        let common = Leg {
            rate: self.rate,
            trace: self.trace,
            overhead: self.overhead,
            queue: self.queue,
            delay: self.delay,
            jitter: self.jitter,
            loss: self.loss,
            reorder: self.reorder,
            duplicate: self.duplicate,
            mtu: self.mtu,
            police: self.police,
            shape: self.shape,
            thin_acks: self.thin_acks,
            aggregate: self.aggregate,
        };
        (self.ab.or(common.clone()), self.ba.or(common))
    }
}

impl Leg {
    fn or(self, common: Self) -> Self {
        Self {
            // A direction's own rate, of either kind, takes the place of both.
            rate: if self.trace.is_some() { self.rate } else { self.rate.or(common.rate) },
            trace: if self.rate.is_some() { self.trace } else { self.trace.or(common.trace) },
            overhead: self.overhead.or(common.overhead),
            queue: self.queue.or(common.queue),
            delay: self.delay.or(common.delay),
            jitter: self.jitter.or(common.jitter),
            loss: self.loss.or(common.loss),
            reorder: self.reorder.or(common.reorder),
            duplicate: self.duplicate.or(common.duplicate),
            mtu: self.mtu.or(common.mtu),
            police: self.police.or(common.police),
            shape: self.shape.or(common.shape),
            thin_acks: self.thin_acks.or(common.thin_acks),
            aggregate: self.aggregate.or(common.aggregate),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Police {
    pub(super) rate: RateAboveZero,
    pub(super) burst: Size,
}

pub(super) type Queue = Either<QueueText, QueueTable>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueTable {
    pub(super) packets: Option<Count<1, 10_000_000>>,
    pub(super) bytes: Option<Size>,
    pub(super) bdp: Option<f64>,
    pub(super) at_least: Option<Count<1, 1_000_000>>,
    pub(super) time: Option<Span>,
    pub(super) red: Option<Spanned<Red>>,
    pub(super) codel: Option<Spanned<CoDel>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Red {
    pub(super) min: Option<Probability>,
    pub(super) max: Option<Probability>,
    pub(super) probability: Option<Probability>,
    pub(super) weight: Option<Probability>,
    #[serde(default)]
    pub(super) ecn: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoDel {
    pub(super) target: Option<Span>,
    pub(super) interval: Option<Span>,
    #[serde(default)]
    pub(super) ecn: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jitter {
    pub(super) uniform: Option<Span>,
    pub(super) normal: Option<Span>,
    pub(super) keep_order: Option<bool>,
}

pub(super) type Loss = Either<Probability, GilbertElliott>;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GilbertElliott {
    pub(super) p: Probability,
    pub(super) r: Probability,
    pub(super) good: Option<Probability>,
    pub(super) bad: Option<Probability>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reorder {
    pub(super) probability: Probability,
    pub(super) later: Option<Span>,
    pub(super) earlier: Option<Span>,
    pub(super) gap: Option<Count<1, 10_000>>,
    pub(super) hold: Option<Span>,
}

pub(super) type Mtu = Either<u32, MtuTable>;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MtuTable {
    pub(super) bytes: u32,
    #[serde(default)]
    pub(super) oversize: Oversize,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Oversize {
    #[default]
    TooBig,
    Silent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub(super) imitates: Option<String>,
    #[serde(default)]
    pub(super) settings: BTreeMap<String, Setting>,
    #[serde(default)]
    pub(super) application: Application,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Application {
    pub(super) rcvbuf: Option<Size>,
    pub(super) sndbuf: Option<Size>,
    pub(super) congestion: Option<String>,
    pub(super) max_pacing_rate: Option<RateAboveZero>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    pub(super) seconds: Count<1, 3_600>,
    pub(super) omit: Option<Count<0, 60>>,
    pub(super) streams: Option<Count<1, 128>>,
    pub(super) congestion: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    pub(super) limiter: Spanned<String>,
    pub(super) detail: Option<Spanned<String>>,
    pub(super) rate: Option<RateAboveZero>,
    pub(super) tolerance: Option<Probability>,
    pub(super) after: Option<Probability>,
    #[serde(default)]
    pub(super) no_change: bool,
}
