//! What is captured: which handicap on which path, and what a judge may say about it. A table, not how it is made.

use std::collections::BTreeMap;

use fullpipe_lab::Side;
use fullpipe_path::{
    Direction, Headers, HopSpec, IpVersions, LossSpec, MtuSpec, OversizeVerdict, PathHop, PathSpec, ReorderBy,
    ReorderSpec,
};
use fullpipe_units::{Micros, Rate};
use serde::{Deserialize, Serialize};

/// A path of one hop, the same both ways, with a queue of one bandwidth-delay product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadePath {
    pub(crate) name: &'static str,
    rate: Rate,
    rtt: Micros,
}

const fn path(name: &'static str, mbps: u64, rtt_ms: u64) -> MadePath {
    MadePath { name, rate: Rate::from_bps(mbps * 1_000_000), rtt: Micros::from_millis(rtt_ms) }
}

const P2M230: MadePath = path("2M-230ms", 2, 230);
const P10M20: MadePath = path("10M-20ms", 10, 20);
const P10M100: MadePath = path("10M-100ms", 10, 100);
const P20M10: MadePath = path("20M-10ms", 20, 10);
const P20M150: MadePath = path("20M-150ms", 20, 150);
const P30M60: MadePath = path("30M-60ms", 30, 60);
const P50M100: MadePath = path("50M-100ms", 50, 100);
const P50M40: MadePath = path("50M-40ms", 50, 40);
const P100M20: MadePath = path("100M-20ms", 100, 20);
const P100M80: MadePath = path("100M-80ms", 100, 80);

/// From 25 KB to 1 MB of bandwidth-delay product.
const ANY: &[MadePath] = &[P2M230, P10M20, P10M100, P50M40, P100M20, P100M80];
/// A window of 65,535 bytes fills at most half of each.
const LARGE: &[MadePath] = &[P10M100, P20M150, P30M60, P50M40, P100M20, P100M80];
/// 225 KB and more: four flights of slow start fill none of them.
const LARGER: &[MadePath] = &[P20M150, P30M60, P50M40, P50M100, P100M20, P100M80];
/// The same window fills these.
const SMALL: &[MadePath] = &[P10M20, P20M10];
/// Round trips that don't hide a delayed acknowledgement of 40 ms.
const INTERACTIVE: &[MadePath] = &[P10M20, P20M10, P10M100, P50M40, P100M20, P100M80];

/// What keeps the transfer from filling the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handicap {
    /// Nothing.
    None,
    /// `SO_RCVBUF`, as a part of the bandwidth-delay product.
    ReceiveBuffer,
    /// A route window: the option is there, with shift 0.
    ScaleZero,
    /// The receiver's kernel leaves the option out.
    ScalingAbsent,
    /// `SO_SNDBUF`, as a part of the bandwidth-delay product.
    SendBuffer,
    /// One packet of a hundred is lost.
    Loss,
    /// Four round trips' worth of data.
    Short,
    /// 16 KB every 100 ms.
    Idle,
    /// Two small writes, then a wait for the answer.
    Nagle,
    /// The application reads at a quarter of the path's rate.
    SlowReader,
    /// Packets above 1,400 bytes vanish.
    BlackHole,
    /// Two packets of a hundred arrive later.
    Reordering,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) handicap: Handicap,
    pub(crate) paths: &'static [MadePath],
}

const fn case(name: &'static str, handicap: Handicap, paths: &'static [MadePath]) -> Case {
    Case { name, handicap, paths }
}

pub(crate) const CASES: &[Case] = &[
    case("clean", Handicap::None, ANY),
    case("receive-buffer", Handicap::ReceiveBuffer, LARGE),
    case("scale-zero", Handicap::ScaleZero, LARGE),
    case("scaling-absent", Handicap::ScalingAbsent, LARGE),
    // Windows that could be larger, and wouldn't help: the path is full.
    case("clean-scale-zero", Handicap::ScaleZero, SMALL),
    case("clean-scaling-absent", Handicap::ScalingAbsent, SMALL),
    case("send-buffer", Handicap::SendBuffer, LARGE),
    case("loss", Handicap::Loss, ANY),
    case("short", Handicap::Short, LARGER),
    case("idle", Handicap::Idle, LARGE),
    case("nagle", Handicap::Nagle, INTERACTIVE),
    case("slow-reader", Handicap::SlowReader, ANY),
    case("black-hole", Handicap::BlackHole, ANY),
    case("reordering", Handicap::Reordering, ANY),
];

/// A limiter that is right, with the details that are; none of them means any.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Allowed {
    pub(crate) limiter: String,
    pub(crate) details: Vec<String>,
}

fn allow(limiter: &str, details: &[&str]) -> Allowed {
    Allowed { limiter: limiter.to_owned(), details: details.iter().map(|detail| (*detail).to_owned()).collect() }
}

/// Above this part of the path's payload rate the path was full, whatever else was in its way: what is missing went into
/// slow start and into repairs.
const FULL: f64 = 0.85;
/// Below it the path was not; in between either may be said.
const NOT_FULL: f64 = 0.7;

impl Handicap {
    /// What a judge may say, from the vantage of the data's sender or of its receiver, where the applications measured
    /// `fill` of the path's payload rate.
    pub(crate) fn allowed(self, fill: f64, at_sender: bool) -> Vec<Allowed> {
        let full = allow("path", &[]);
        let held = match self {
            Self::None => return vec![full],
            Self::ReceiveBuffer => {
                // A buffer of 64 KB or less makes Linux offer shift 0: where it fills 65,535 B, both names are right.
                allow("receive_window", &["window_ceiling", "pinned_by_application", "scale_zero"])
            }
            Self::ScaleZero => allow("receive_window", &["scale_zero"]),
            Self::ScalingAbsent => allow("receive_window", &["scaling_absent"]),
            Self::SendBuffer => allow("send_buffer", &["buffer_cap", "pinned_by_application"]),
            Self::Loss => allow("congestion_window", &["loss", "rto", "tail_loss"]),
            Self::Short => return vec![allow("congestion_window", &["slow_start"])],
            Self::Idle => return vec![allow("application", &[])],
            Self::Nagle => return vec![allow("ack_delay", &["nagle"])],
            Self::SlowReader => return vec![allow("receive_window", &["zero_window", "slow_reader"])],
            Self::BlackHole => {
                let mut all = vec![allow("segment_size", &["mtu_black_hole"])];
                // What never arrives can't be told from what was never sent.
                all.extend((!at_sender).then(|| allow("insufficient_evidence", &[])));
                return all;
            }
            // Whether it cost anything is told by the rate; that it is no loss holds in any case.
            Self::Reordering => return vec![full, allow("reordering", &[])],
        };
        let mut all = Vec::new();
        all.extend((fill < FULL).then_some(held));
        all.extend((fill >= NOT_FULL).then_some(full));
        all
    }

    /// Settings of the receiving host beyond large buffers.
    pub(crate) fn receiver_settings(self) -> BTreeMap<String, String> {
        let setting = match self {
            Self::ScaleZero => ("route 10.80.0.0/24 window", "64512"),
            Self::ScalingAbsent => ("net.ipv4.tcp_window_scaling", "0"),
            _ => return BTreeMap::new(),
        };
        BTreeMap::from([(setting.0.to_owned(), setting.1.to_owned())])
    }
}

impl MadePath {
    pub(crate) fn spec(&self, handicap: Handicap, sender: Side) -> PathSpec {
        let plain = HopSpec { rate: Some(self.rate), delay: Micros::new(self.rtt.get() / 2), ..HopSpec::default() };
        let mut forth = plain.clone();
        match handicap {
            Handicap::Loss => forth.loss = Some(LossSpec::Bernoulli(0.01)),
            Handicap::BlackHole => forth.mtu = Some(MtuSpec { bytes: 1_400, oversize: OversizeVerdict::Silent }),
            Handicap::Reordering => {
                let by = ReorderBy::Later(Micros::new(self.rtt.get() / 8));
                forth.reorder = Some(ReorderSpec { probability: 0.02, by });
            }
            _ => {}
        }
        let (ab, ba) = match sender {
            Side::A => (forth, plain),
            Side::B => (plain, forth),
        };
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab, ba }] }
    }

    /// The most payload that the path carries, with timestamps.
    pub(crate) fn payload_rate(&self) -> Rate {
        let headers = Headers { ipv6: false, timestamps: true };
        self.spec(Handicap::None, Side::A).payload_rate(Direction::AToB, headers).unwrap_or(self.rate)
    }

    pub(crate) fn bdp_bytes(&self) -> usize {
        fullpipe_units::bdp(self.rate, self.rtt).get() as usize
    }

    pub(crate) fn rtt(&self) -> Micros {
        self.rtt
    }
}
