//! What a user sees: text for a terminal, and the JSON that others rely on.
//!
//! Pure functions from results to text. What is *not* here: finding anything out, and deciding whether a stream takes
//! colours: the text carries ANSI styles, which the caller strips where they are not wanted (`anstream`).
//!
//! Text that came from a peer or from packets is cleaned by [`clean`] on its way into a [`text`] page, and escaped by
//! [`json::to_string`] on its way into JSON, so no caller has to think of it.
#![forbid(unsafe_code)]

mod changes;
mod clean;
pub mod json;
pub mod playbook;
mod problem;
pub mod schema;
mod settings;
mod stack;
mod standing;
pub mod text;

pub use changes::{AppliedPlan, PlatformPlan};
pub use clean::clean;
pub use problem::Problem;
pub use settings::SettingsList;
pub use stack::{DeviceRow, DeviceTable, StackConnection, StackPool, StackRun};
pub use standing::{Reading, Standing};

#[cfg(test)]
mod sample;
