//! What is captured: which handicap on which path, and what a judge may say about it. A table, not how it is made.

use std::collections::BTreeMap;

use fullpipe_lab::Side;
use fullpipe_path::{
    Direction, Headers, HopSpec, IpVersions, LossSpec, MtuSpec, OversizeVerdict, PathHop, PathSpec, PolicerSpec,
    ReorderBy, ReorderSpec,
};
use fullpipe_units::{Micros, Rate, bdp};
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
const P5M30: MadePath = path("5M-30ms", 5, 30);
const P10M20: MadePath = path("10M-20ms", 10, 20);
const P10M100: MadePath = path("10M-100ms", 10, 100);
const P20M10: MadePath = path("20M-10ms", 20, 10);
const P20M150: MadePath = path("20M-150ms", 20, 150);
const P30M60: MadePath = path("30M-60ms", 30, 60);
const P50M10: MadePath = path("50M-10ms", 50, 10);
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
/// Round trips no longer than a delayed acknowledgement: beyond, waiting for the path takes the larger part.
const QUICK: &[MadePath] = &[P5M30, P10M20, P20M10, P50M10, P50M40, P100M20];

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
    /// 16 KB every 130 ms.
    Idle,
    /// Two small writes, then a wait for the answer.
    Nagle,
    /// The application reads at a quarter of the path's rate.
    SlowReader,
    /// Packets above 1,400 bytes vanish.
    BlackHole,
    /// Two packets of a hundred arrive later.
    Reordering,
    /// A token bucket fills at two fifths of the link's rate.
    Policed,
    /// One segment at a time, the next when the one before was acknowledged.
    DelayedAck,
    /// Requests of three segments over a path that loses one packet in seven, and a sender that does not probe the tail.
    TailLoss,
    /// The first SYNs are lost.
    LostSyn,
    /// The first SYN-ACKs are lost.
    LostSynAck,
    /// A transfer that two segments begin.
    InitialWindow,
    /// The application stops reading after a second.
    StuckReader,
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
    case("policed", Handicap::Policed, ANY),
    case("delayed-ack", Handicap::DelayedAck, QUICK),
    case("tail-loss", Handicap::TailLoss, QUICK),
    case("lost-syn", Handicap::LostSyn, ANY),
    case("lost-syn-ack", Handicap::LostSynAck, ANY),
    case("initial-window", Handicap::InitialWindow, LARGER),
    case("stuck-reader", Handicap::StuckReader, ANY),
];

/// A limiter that is right, with the details that are; none of them means any.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Allowed {
    pub(crate) limiter: String,
    pub(crate) details: Vec<String>,
}

pub(crate) fn allow(limiter: &str, details: &[&str]) -> Allowed {
    Allowed { limiter: limiter.to_owned(), details: details.iter().map(|detail| (*detail).to_owned()).collect() }
}

/// Above this part of the path's payload rate the path was full, whatever else was in its way: what is missing went into
/// slow start and into repairs.
const FULL: f64 = 0.85;
/// Below it the path was not; in between either may be said.
const NOT_FULL: f64 = 0.7;

impl Handicap {
    /// What a judge may say, from the vantage of the data's sender or of its receiver, of the client or of the server,
    /// where the applications measured `fill` of the path's payload rate.
    pub(crate) fn allowed(self, fill: f64, at_sender: bool, at_client: bool) -> Vec<Allowed> {
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
            Self::Short | Self::InitialWindow => return vec![allow("congestion_window", &["slow_start"])],
            Self::Idle => return vec![allow("application", &[])],
            Self::Nagle => return vec![allow("ack_delay", &["nagle"])],
            Self::SlowReader => return vec![allow("receive_window", &["zero_window", "slow_reader"])],
            Self::StuckReader => return vec![allow("receive_window", &["zero_window"])],
            Self::Policed => return vec![allow("path", &["policed"])],
            Self::DelayedAck => return vec![allow("ack_delay", &["delayed_ack"])],
            Self::TailLoss => {
                // Between timeouts it is the window that they left small.
                let mut all = vec![allow("congestion_window", &["tail_loss", "rto", "loss"])];
                // A loss with nothing behind it leaves no trace at the receiver but the pause until it is retransmitted.
                let pause = ["application", "insufficient_evidence"].map(|limiter| allow(limiter, &[]));
                all.extend(pause.into_iter().filter(|_| !at_sender));
                return all;
            }
            Self::LostSyn | Self::LostSynAck => {
                let mut all = vec![allow("handshake", &[])];
                // A server never sees the SYNs that were lost on the way to it, and what follows the last is too short.
                all.extend((self == Self::LostSyn && !at_client).then(|| allow("insufficient_evidence", &[])));
                return all;
            }
            Self::BlackHole => {
                let mut all = vec![allow("segment_size", &["mtu_black_hole"])];
                // What never arrives can't be distinguished from what was never sent.
                all.extend((!at_sender).then(|| allow("insufficient_evidence", &[])));
                return all;
            }
            // Whether it cost anything shows in the rate; that it is no loss holds in any case.
            Self::Reordering => return vec![full, allow("reordering", &[])],
        };
        let mut all = Vec::new();
        all.extend((fill < FULL).then_some(held));
        all.extend((fill >= NOT_FULL).then_some(full));
        all
    }

    /// Settings of the sending host beyond large buffers.
    pub(crate) fn sender_settings(self) -> BTreeMap<String, String> {
        let settings: &[(&str, &str)] = match self {
            Self::InitialWindow => &[("route 10.80.0.0/24 initcwnd", "2")],
            // Neither tail-loss probes nor RACK (RFC 8985): as systems are that know three duplicates and a timer.
            Self::TailLoss => &[("net.ipv4.tcp_early_retrans", "0"), ("net.ipv4.tcp_recovery", "0")],
            _ => &[],
        };
        settings.iter().map(|(address, value)| ((*address).to_owned(), (*value).to_owned())).collect()
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
            Handicap::Policed => {
                let rate = Rate::from_bps(self.rate.bps() / 5 * 2);
                // A bucket of less than a round trip's worth drops what every sender's bursts are.
                let burst = bdp(rate, Micros::from_millis(250).max(Micros::new(2 * self.rtt.get())));
                forth.police = Some(PolicerSpec { rate, burst });
            }
            Handicap::TailLoss => forth.loss = Some(LossSpec::Bernoulli(0.15)),
            _ => {}
        }
        let (mut ab, mut ba) = match sender {
            Side::A => (forth, plain),
            Side::B => (plain, forth),
        };
        match handicap {
            // The client is a.
            Handicap::LostSyn => ab.loss = Some(LossSpec::Row { first: 0, count: 2 }),
            // The server repeats on its own account, and answers each repeated SYN.
            Handicap::LostSynAck => ba.loss = Some(LossSpec::Row { first: 0, count: 3 }),
            _ => {}
        }
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab, ba }] }
    }

    /// The most payload that the path carries, with timestamps.
    pub(crate) fn payload_rate(&self) -> Rate {
        let headers = Headers { ipv6: false, timestamps: true };
        self.spec(Handicap::None, Side::A).payload_rate(Direction::AToB, headers).unwrap_or(self.rate)
    }

    pub(crate) fn bdp_bytes(&self) -> usize {
        bdp(self.rate, self.rtt).get() as usize
    }

    pub(crate) fn rtt(&self) -> Micros {
        self.rtt
    }
}
