//! Experiments with a small device: the engine, with the device's own speed, against a kernel over a made path.

mod table;
mod trial;

pub use table::{Found, Row, fit, table};
pub use trial::{Application, Outcome, Trial, run};
