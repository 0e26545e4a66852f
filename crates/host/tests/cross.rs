//! Builds this crate for FreeBSD and macOS, C code included, with zig as the compiler (cargo-zigbuild).
//!
//! Nothing is run there. Where cargo-zigbuild or Rust's standard library for the system is missing, a test says so and
//! passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "toolchain/build.rs"]
mod build;
mod toolchain;

use build::builds;

const ZIG: [&str; 2] = ["cargo-zigbuild", "zigbuild"];

#[test]
fn the_crate_builds_for_freebsd() {
    builds("the_crate_builds_for_freebsd", &ZIG, ZIG[0], "x86_64-unknown-freebsd", &[]);
}

#[test]
fn the_crate_builds_for_macos() {
    builds("the_crate_builds_for_macos", &ZIG, ZIG[0], "aarch64-apple-darwin", &[]);
}
