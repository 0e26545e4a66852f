//! The few socket calls of Linux that no safe wrapper offers, and `/proc` where the machine itself is asked.
//!
//! Not here: anything that decides what the numbers mean.

pub(crate) mod cpu;
pub(crate) mod host;
pub(crate) mod sockopt;
pub(crate) mod tcp_info;
