//! Text for a terminal: what an expert wants to see of a result, on one screen where that is possible.

mod direction;
mod journal;
mod outcome;
mod page;
mod plan;
mod problem;
mod proof;
mod scenario;

pub use direction::direction;
pub use journal::{history, status, undo};
pub use outcome::outcome;
pub use page::Look;
pub use plan::plan;
pub use problem::problem;
pub use proof::proof;
pub use scenario::scenarios;

#[cfg(test)]
mod tests;
