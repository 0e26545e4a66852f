//! An emulated path: links, queues, loss, delay and scenarios, with time as an argument.
//!
//! [`OneWay`] is one direction of a path, a chain of [`Hop`]s. Each hop refuses what is larger than its MTU, drops
//! what a policer has no tokens for, queues, shapes and serialises at its rate, then loses, duplicates, delays and reorders what
//! is on the wire. All of them are [`Machine`]s: packets and the current time go in, departures with their *planned* times come out. The lab drives
//! them with the real clock and TUN devices, the simulator with a virtual clock.
//!
//! [`Scenario`] is a file that describes a path, its two ends and what must come out.
//!
//! What is *not* here: clocks, sockets, packet formats (a segment is a length, an ECN codepoint and the driver's own
//! handle), settings of hosts (a scenario carries them as text) and the judgement of what was measured.
#![forbid(unsafe_code)]

mod delay;
mod gather;
mod hop;
mod link;
mod loss;
mod machine;
mod one_way;
mod path_spec;
mod pipe;
mod policer;
mod queue;
mod random;
mod scenario;
mod spec;
mod stats;
mod trace;

pub use delay::DelayLine;
pub use hop::Hop;
pub use loss::LossProcess;
pub use machine::{Departure, Ecn, Fate, Machine, Segment};
pub use one_way::OneWay;
pub use path_spec::{Headers, IpVersions, PathHop, PathSpec};
pub use policer::Policer;
pub use queue::{Queue, QueueLimit, Refused};
pub use random::Random;
pub use scenario::{
    After, ApplicationSpec, DETAILS, DEVICE, DeviceSpec, Direction, ExpectSpec, FitSpec, Fitted, HostSpec,
    IPV4_NETWORK, IPV6_NETWORK, LIMITERS, Roles, Scenario, ScenarioError, Side, Sweep, TestSpec,
};
pub use spec::{
    AggregateSpec, CoDelSpec, Discipline, HopSpec, JitterSpec, LossSpec, MtuSpec, NoQueueSize, OversizeVerdict,
    PolicerSpec, QueueSize, QueueSpec, RedSpec, ReorderBy, ReorderSpec, Spread, ThinSpec,
};
pub use stats::{HopStats, QueueStats};
pub use trace::{RateTrace, TraceError};
