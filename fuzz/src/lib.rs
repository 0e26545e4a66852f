//! What each fuzz target does with its input, as plain functions: libFuzzer calls them, and so does the replay of the
//! corpora on the stable toolchain. What is *not* here: the readers themselves, and inputs (`corpus/`).
//!
//! A body must not panic on any input, and states what must hold of the answer where more than that can be said.

pub mod captures;
pub mod engine;
pub mod ethernet;
pub mod foreign;
pub mod plans;
pub mod text;
pub mod transfer;

// The engine's own tests and the fuzzer go through the same histories.
#[path = "../../crates/tcp/tests/history/mod.rs"]
mod history;

/// One target: its name, which is that of its corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// The targets whose corpora this crate replays. `wire` and `orders` are missing: what they call is private to
/// `fullpipe-probe`, `fullpipe-measure` and `fullpipe-tune`, which replay those corpora themselves.
pub const TARGETS: &[Target] = &[
    ("units", text::units),
    ("scenario", text::scenario),
    ("sysctl_conf", text::sysctl_conf),
    ("recipe", text::recipe),
    ("reading", text::reading),
    ("playbook", text::playbook),
    ("transfer", transfer::transfer),
    ("plan", plans::plan),
    ("export", plans::export),
    ("capture", captures::capture),
    ("frames", ethernet::frames),
    ("segments", engine::segments),
    ("histories", engine::histories),
];
