//! What a user sees: text for a terminal, and the JSON that others rely on.
//!
//! Pure functions from results to text. What is *not* here: finding anything out, and deciding whether a stream takes
//! colours: the text carries ANSI styles, which the caller strips where they are not wanted (`anstream`).
//!
//! Text that came from a peer or from packets is cleaned by [`clean`] on its way into a [`text`] page, and escaped by
//! [`json::to_string`] on its way into JSON, so no caller has to think of it.
#![forbid(unsafe_code)]

mod changes;
mod charts;
pub mod columns;
mod comparison;
mod conclusions;
pub mod csv;
mod forecast;
pub mod json;
mod measured;
mod mesh;
pub mod parquet;
pub mod picture;
pub mod playbook;
mod problem;
mod row;
pub mod schema;
mod settings;
mod share;
mod sim;
mod stack;
mod standing;
mod survey;
pub mod text;
mod unpin;
pub mod xplot;

pub use changes::{AppliedPlan, PlatformPlan};
pub use charts::{charts_of_measured, charts_of_outcome};
pub use comparison::{ComparedSize, Comparison, KeptSize, Pair};
pub use conclusions::Conclusion;
pub use forecast::{ChangeForecast, ForecastPoint, ForecastRow, PlanForecast};
pub use fullpipe_page::{
    Advice, CaptureFile, CaptureList, CaptureProblem, MOST_DRAWN, MOST_ON_PAGE, Seen, Vantages, charts, clean,
    display_filter, endpoint, html, list,
};
pub use measured::Measured;
pub use mesh::MeshReport;
pub use problem::Problem;
pub use settings::{Connections, SettingsList};
pub use share::{PoolShares, SHARE_CALLS, ShareRow};
pub use sim::{PredictionRow, ReferenceFigure, ReferenceRow, ReferenceTable, SimKnown, SimRun, WhatIf};
pub use stack::{
    DeviceAdvice, DeviceRow, DeviceTable, PresetAdvice, PresetLatency, PresetRow, PresetTable, StackConnection,
    StackPool, StackRun,
};
pub use standing::{Reading, Standing};
pub use survey::Survey;
pub use unpin::{PutBack, Unpinned, UnpinnedSocket};

#[cfg(test)]
mod sample;
