//! What pages in a browser compute themselves: the simulator's answers, and what is in a capture.
//!
//! The same engine, judge and words as `fullpipe what-if` and `fullpipe read`, so that the pages and the commands answer alike,
//! to the digit. Each is a feature, so that a page carries only what it needs. What is *not* here: the pages (`page`, `web`).

#[cfg(target_arch = "wasm32")]
mod abi;
#[cfg(feature = "simulator")]
mod pool;
#[cfg(feature = "reader")]
mod reader;
#[cfg(feature = "simulator")]
mod simulator;

#[cfg(feature = "reader")]
pub use reader::read;
#[cfg(feature = "simulator")]
pub use simulator::answer;
