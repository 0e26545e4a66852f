//! Experiments with a small device: the engine, with the device's own speed, against a kernel over a made path.

mod fit;
mod presets;
mod table;
mod trial;

pub use fit::{Found, fit};
pub use presets::{Load, PresetOutcome, PresetTrial, Work, preset_trial};
pub use table::{Row, table};
pub use trial::{Application, Outcome, Trial, run};
