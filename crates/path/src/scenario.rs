//! A situation: a path, its two ends, a test and what must come out.
//!
//! A scenario is data. Settings are text in the form that `fullpipe-knobs` gives its addresses, limiters and details
//! are the names that the JSON of a diagnosis uses; this room only checks that they can be meant.

mod error;
mod library;
mod lower;
mod raw;
mod values;

use std::{collections::BTreeMap, fmt, str::FromStr};

use core::net::{Ipv4Addr, Ipv6Addr};

use fullpipe_units::{Bytes, Micros, Rate};

pub use self::error::ScenarioError;
use crate::{OneWay, PathSpec, Random};

/// The TUN device that each end sees the path through.
pub const DEVICE: &str = "path0";
/// The IPv4 network of the path, whose route carries route metrics such as `window`.
pub const IPV4_NETWORK: &str = "10.80.0.0/24";
/// The IPv6 network of the path.
pub const IPV6_NETWORK: &str = "fd80::/64";
/// The limiters that a scenario may expect, as the JSON of a diagnosis names them.
pub const LIMITERS: &[&str] = &[
    "application",
    "receive_window",
    "send_buffer",
    "congestion_window",
    "path",
    "ack_delay",
    "segment_size",
    "reordering",
    "handshake",
    "cpu",
    "insufficient_evidence",
];
/// The details that a scenario may expect, as the JSON of a diagnosis names them.
pub const DETAILS: &[&str] = &[
    "scaling_absent",
    "scale_zero",
    "window_ceiling",
    "zero_window",
    "slow_reader",
    "buffer_cap",
    "slow_start",
    "loss",
    "rto",
    "tail_loss",
    "nagle",
    "delayed_ack",
    "mtu_black_hole",
    "small_mss",
    "policed",
    "saturated",
    "idle",
    "pinned_by_application",
];

/// One end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Host `a`, by convention the client.
    A,
    /// Host `b`, by convention the server.
    B,
}

/// One direction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From `a` to `b`.
    AToB,
    /// From `b` to `a`.
    BToA,
}

/// A situation that somebody met, or a control in which nothing is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name: `wan-80ms`.
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// The figures that were published about it. Quoted beside results, never used as one.
    pub published: Option<String>,
    /// Where they were published.
    pub source: Option<String>,
    /// Feeds every random element of the path.
    pub seed: u64,
    /// What lies between the ends.
    pub path: PathSpec,
    /// Host `a`.
    pub a: HostSpec,
    /// Host `b`.
    pub b: HostSpec,
    /// How to measure.
    pub test: TestSpec,
    /// What must come out, for each direction that is measured; nothing where a device is an end.
    pub expect: BTreeMap<Direction, ExpectSpec>,
    /// The small device that host `a` stands for. The TCP engine plays it, and a table over its buffers is what is
    /// measured.
    pub device: Option<DeviceSpec>,
}

/// A small device as host `a`, and the table that is made with it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Payload of each transfer.
    pub bytes: Bytes,
    /// How long it is busy with each packet, in or out.
    pub per_packet: Micros,
    /// Whether its application waits for the acknowledgement of each full set of buffers that it wrote.
    pub waits: bool,
    /// The numbers of buffers that are tried.
    pub buffers: Vec<u16>,
    /// Which budgets they are.
    pub sweep: Sweep,
    /// Runs of each, with other losses.
    pub runs: u32,
    /// Whether it sends, receives, or both in turn.
    pub roles: Roles,
    /// Published seconds, by the number of buffers.
    pub published: BTreeMap<u16, f64>,
    /// How far from the published figures a prediction may be, as a fraction of them.
    pub tolerance: f64,
    /// What of this file was fitted to a published figure, and is no prediction.
    pub fitted: Vec<FitSpec>,
}

/// Which budgets a table sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// All four.
    All,
    /// The one for data out of order; the others have this many.
    OutOfOrder(u16),
}

/// What a device does in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roles {
    /// It sends.
    Sends,
    /// It receives.
    Receives,
    /// One after the other.
    Both,
}

/// One quantity that was fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitSpec {
    /// Which.
    pub quantity: Fitted,
    /// To the published time with this many buffers.
    pub buffers: u16,
    /// Of this scenario.
    pub scenario: String,
}

/// What can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitted {
    /// The device's time per packet.
    PerPacket,
    /// The path's round-trip time.
    Rtt,
}

/// One end: a Linux host, perhaps one that imitates another system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// The system that the settings imitate. Where this is set, a report must say that it is an imitation.
    pub imitates: Option<String>,
    /// Settings to make before anything is measured: address (`net.ipv4.tcp_rmem`, `route 10.80.0.0/24 window`) to
    /// value.
    pub settings: BTreeMap<String, String>,
    /// What the measuring program on this host does itself.
    pub application: ApplicationSpec,
}

/// What the measuring program sets on its sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationSpec {
    /// `SO_RCVBUF` as passed to `setsockopt` (Linux doubles it).
    pub rcvbuf: Option<Bytes>,
    /// `SO_SNDBUF` as passed to `setsockopt` (Linux doubles it).
    pub sndbuf: Option<Bytes>,
    /// `TCP_CONGESTION`, which goes before the test's choice.
    pub congestion: Option<String>,
    /// `SO_MAX_PACING_RATE`. Above the path's rate it slows nothing, but makes the kernel pace.
    pub max_pacing_rate: Option<Rate>,
}

/// How to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSpec {
    /// Seconds measured, after `omit`.
    pub seconds: u32,
    /// Seconds at the start that are left out of the rate (slow start), on top of `seconds`.
    pub omit: u32,
    /// Parallel connections.
    pub streams: u32,
    /// Congestion control of senders that don't choose their own.
    pub congestion: String,
}

/// What must come out in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectSpec {
    /// One of [`LIMITERS`].
    pub limiter: String,
    /// One of [`DETAILS`].
    pub detail: Option<String>,
    /// The payload rate before anything is changed.
    pub rate: Option<Rate>,
    /// How far from `rate` a measurement may be, as a fraction of it.
    pub tolerance: f64,
    /// What tuning leads to.
    pub after: After,
}

/// What a plan must achieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// At least this fraction of the path's payload rate.
    Fraction(f64),
    /// Nothing: no change may be proposed.
    NoChange,
}

impl Scenario {
    /// The scenario that comes with the program under `name`.
    pub fn named(name: &str) -> Result<Self, ScenarioError> {
        let text = library::text(name)
            .ok_or_else(|| ScenarioError::Unknown { name: name.to_owned(), known: Self::names() })?;
        Self::parse(&text, name)
    }

    /// One that is nothing but a path: nothing is set on its hosts, and nothing is expected.
    pub fn of_path(name: &str, path: PathSpec) -> Self {
        Self {
            name: name.to_owned(),
            summary: String::new(),
            published: None,
            source: None,
            seed: 1,
            path,
            a: HostSpec::default(),
            b: HostSpec::default(),
            test: TestSpec { seconds: 10, omit: 2, streams: 1, congestion: "cubic".to_owned() },
            expect: BTreeMap::new(),
            device: None,
        }
    }

    /// The names of all scenarios that come with the program.
    pub fn names() -> Vec<String> {
        library::names()
    }

    /// The text of a scenario that comes with the program: a start for an own one.
    pub fn text(name: &str) -> Option<String> {
        library::text(name)
    }

    /// Reads a scenario that names no other file. `origin` names the text in errors, such as the file that it came from.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, origin, &|_| Err("nothing says where files are here".to_owned()))
    }

    /// As [`parse`](Self::parse); `reads` gives the text of a file that the scenario names, such as a trace.
    ///
    /// # Errors
    /// As `parse`, and what `reads` says.
    pub fn parse_with(
        text: &str,
        origin: &str,
        reads: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ScenarioError> {
        let raw: raw::Scenario = toml::from_str(text)
            .map_err(|e| ScenarioError::at(origin, text, e.span().unwrap_or_default(), e.message()))?;
        lower::scenario(raw, reads).map_err(|problem| ScenarioError::at(origin, text, problem.span, &problem.message))
    }

    /// The machine that carries `direction`. Both directions of a path are independent of each other.
    pub fn one_way<T: Clone>(&self, direction: Direction) -> OneWay<T> {
        let seed = Random::seed_of(self.seed, direction.as_str());
        OneWay::new(&self.path.hops(direction), self.path.rtt(), self.path.path_mtu(), seed)
    }

    /// One of the two hosts.
    pub fn host(&self, side: Side) -> &HostSpec {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

impl Side {
    /// Both ends.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// `a` or `b`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// Its address on the path, in [`IPV4_NETWORK`].
    pub const fn ipv4(self) -> Ipv4Addr {
        match self {
            Self::A => Ipv4Addr::new(10, 80, 0, 1),
            Self::B => Ipv4Addr::new(10, 80, 0, 2),
        }
    }

    /// Its address on the path, in [`IPV6_NETWORK`].
    pub const fn ipv6(self) -> Ipv6Addr {
        match self {
            Self::A => Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, 1),
            Self::B => Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, 2),
        }
    }

    /// The far end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::AToB, Self::BToA];

    /// `a->b` or `b->a`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AToB => "a->b",
            Self::BToA => "b->a",
        }
    }

    /// Who sends.
    pub const fn sender(self) -> Side {
        match self {
            Self::AToB => Side::A,
            Self::BToA => Side::B,
        }
    }

    /// Who receives.
    pub const fn receiver(self) -> Side {
        self.sender().other()
    }

    /// The other direction, that of the acknowledgements.
    pub const fn reverse(self) -> Self {
        match self {
            Self::AToB => Self::BToA,
            Self::BToA => Self::AToB,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Side {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        Self::ALL
            .into_iter()
            .find(|side| side.as_str() == text)
            .ok_or_else(|| ScenarioError::Side { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests;
