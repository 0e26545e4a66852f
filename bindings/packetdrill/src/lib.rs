//! The engine as packetdrill's system under test: `packetdrill --so_filename=libfullpipe_packetdrill.so
//! --so_flags=local=192.168.0.1,profile=linux script.pkt`.
//!
//! Time is virtual. packetdrill asks this library what time it is and lets it sleep, so a sleep runs the engine's timers
//! up to its end at once, and waiting for a packet runs them until there is one. What isn't here: a network, and what
//! scripts do with other programs (their shell lines; `cargo xtask packetdrill` turns the settings among them into
//! flags).
//!
//! nplab's packetdrill has no such interface: preloaded, with flags in `FULLPIPE_PACKETDRILL`, this library stands in for
//! the C library's calls (`preload`).
//!
//! `%{ }%` claims ask the C library itself for `TCP_INFO`; with this library in `LD_PRELOAD` too, it answers.
//!
//! It is for tests only: packetdrill is under the GPL, and a process that has loaded both is too.
#![cfg(target_os = "linux")]

pub mod abi;
mod calls;
mod flags;
mod host;
mod info;
mod notices;
mod options;
pub mod preload;
mod ready;
mod space;
mod times;
