//! The simulator: the engine of `fullpipe-tcp`, emulating a platform, over the machines of `fullpipe-path`, in virtual
//! time.
//!
//! [`run`] carries out one [`Spec`] (a path, two hosts, an application) and gives an [`Outcome`]: the same
//! [`Transfer`](fullpipe_diagnose::Transfer) that a live test has, for the same judge, and beside it the [`Truth`], what
//! the engine knows to have held each interval. A run is decided by its spec and seed alone.
//!
//! [`Prediction`] asks "what if": a base spec, settings by name ([`knob`]) and sweeps over one of them. [`from_scenario`]
//! reads a scenario file as the lab does.
//!
//! What is *not* here: clocks, sockets, files and threads (a sweep's points are independent: whoever has threads shares
//! them out), and the judgement (`fullpipe-diagnose`).
#![forbid(unsafe_code)]

mod application;
mod device;
mod end;
mod filling;
mod flow;
mod forecast;
pub mod knob;
mod machine;
mod outcome;
mod packet;
mod pcap;
mod platform;
pub mod reference;
mod samples;
mod scenario;
mod seen;
pub mod share;
mod spec;
mod sweep;
mod truth;
mod world;
mod writer;

pub use application::{Application, Reader};
pub use forecast::{Between, Forecast, Line, Predicted, StepForecast, forecast, predict_steady};
pub use machine::{Acts, Machine, NotSimulated};
pub use outcome::Outcome;
pub use pcap::Capture;
pub use platform::{PLATFORMS, Platform, platform};
pub use scenario::{DeviceRun, device_runs, from_scenario};
pub use seen::{Overrides, Seen, as_seen};
pub use spec::{Cross, HostSpec, ReceiveBuffer, SendBuffer, SimError, Spec};
pub use sweep::{Prediction, Range, plateau, predict};
pub use truth::{Held, Truth};
pub use world::run;
