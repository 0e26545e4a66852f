//! Comma-separated values (RFC 4180), for spreadsheets and plots: columns have the names of the JSON document's keys.

mod capture;
mod measured;

pub use capture::captures;
pub use measured::{comparison, measured};
