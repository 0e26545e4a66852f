//! Text for a terminal: what an expert wants to see of a result, on one screen where that is possible.

mod capture;
mod changes;
mod direction;
mod draw;
mod findings;
mod journal;
mod measured;
mod mesh;
mod outcome;
mod page;
mod plain;
mod plan;
mod problem;
mod proof;
mod scenario;
mod settings;
mod share;
mod sim;
mod stack;
mod survey;
mod unpin;
mod verified;
mod watch;

pub use capture::{capture_story, captures};
pub use changes::{applied, confirmed, dry_run, platform_plan};
pub use direction::{arrow, direction};
pub use draw::sparkline;
pub use findings::findings;
pub use journal::{history, restored, show, status, undo};
pub use measured::{interval, measured};
pub use mesh::{mesh, mesh_history};
pub use outcome::outcome;
pub use page::Look;
pub(crate) use page::{count, or_dash};
pub use plain::{lists, paragraph};
pub use plan::plan;
pub use problem::problem;
pub use proof::proof;
pub use scenario::scenarios;
pub use settings::settings;
pub use share::share;
pub use sim::{reference, sim, what_if};
pub use stack::{device_table, preset_table, stack_run};
pub use survey::{comparison, exchange_row, survey, sweep_row};
pub use unpin::unpinned;
pub use verified::verified;
pub use watch::{Mood, WatchRow, recording, watch, watch_head, watch_header, watch_lines, watch_row, watch_story};

#[cfg(test)]
mod tests;
