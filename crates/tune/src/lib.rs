//! The loop: measure, diagnose, plan, apply, prove, undo, over two ends.
//!
//! Two hosts of the lab ([`lab_run`], [`demo`]), or this host and a far one ([`check`], [`tune`], with [`serve`] on the
//! other side), go through the same [`round`]. The lab is there on Linux only. What is *not* here: judging (`diagnose`),
//! choosing values (`knobs`), touching settings (`host`), moving payload (`measure`), and showing anything (`report`).

mod allowed;
mod alternate;
mod channel;
#[cfg(target_os = "linux")]
mod disturbed;
mod end;
mod error;
mod event;
mod far;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod handler;
#[cfg(target_os = "linux")]
mod in_lab;
mod judge;
mod key;
mod meter;
mod outcome;
mod plans;
mod remote;
mod remote_end;
mod round;

pub use allowed::{Allowed, AllowedError};
pub use end::Destination;
pub use error::TuneError;
pub use event::{Event, Observer};
pub use far::{AllowTune, FarOptions, ServeOptions, TuneOptions, check, serve, tune, undo_far};
#[cfg(target_os = "linux")]
pub use in_lab::{LabRunOptions, demo, lab_run};
pub use key::{Key, KeyError, SHORTEST_KEY};
pub use meter::Lengths;
pub use outcome::{
    Difference, Direction, DirectionProof, Expectation, HostSettings, KeptRun, Outcome, PathErrorSummary,
    PredictedGain, Restored, ScenarioFacts,
};
pub use plans::PlanOptions;
