//! The catalogue of settings that bound a TCP connection, and the planner over it.
//!
//! Pure: data files are compiled in, and settings that were read elsewhere are arguments. What is *not* here: touching
//! a machine (`host`), and saying what limits a connection (`diagnose`).
#![forbid(unsafe_code)]

mod address;
pub mod catalogue;
pub mod document;
pub mod export;
pub mod lint;
pub mod packets;
pub mod persist;
mod plan;
pub mod planner;
mod prefix;
pub mod reading;
pub mod recipe;
mod settings;
pub mod sysctl_conf;
mod tuning_level;
mod value;
pub mod verify;
mod version;

pub use address::{Address, ParseAddressError};
pub use catalogue::{Catalogue, Knob};
pub use packets::{FrameSizes, Ipsec, Packets};
pub use plan::{Change, Plan, TakesEffect};
pub use planner::{Flow, Goal, PlanHost, PlanRequest, PlatformRequest, plan, plan_platform};
pub use prefix::{PrefixError, parse_destination};
pub use settings::{
    Family, Link, MachineFacts, Mbufs, Origin, ParsePlatformError, Platform, Route, Settings, SocketBuffers,
};
pub use tuning_level::TuningLevel;
