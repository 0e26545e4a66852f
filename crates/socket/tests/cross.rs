//! Builds the library and a program that uses it for Windows, FreeBSD and macOS, with mingw-w64 and zig as linkers.
//!
//! Nothing is run there: Wine does not know `SIO_TCP_INFO`. Where a linker or Rust's standard library for the system is
//! missing, a test says so and passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../host/tests/toolchain/build.rs"]
mod build;
#[path = "../../host/tests/toolchain/mod.rs"]
mod toolchain;

use build::builds;

const EXAMPLE: [&str; 2] = ["--example", "look"];
const ZIG: [&str; 2] = ["cargo-zigbuild", "zigbuild"];

#[test]
fn a_program_builds_for_windows() {
    let command = [env!("CARGO"), "build"];
    builds("a_program_builds_for_windows", &command, "x86_64-w64-mingw32-gcc", "x86_64-pc-windows-gnu", &EXAMPLE);
}

#[test]
fn a_program_builds_for_freebsd() {
    builds("a_program_builds_for_freebsd", &ZIG, ZIG[0], "x86_64-unknown-freebsd", &EXAMPLE);
}

#[test]
fn a_program_builds_for_macos() {
    builds("a_program_builds_for_macos", &ZIG, ZIG[0], "aarch64-apple-darwin", &EXAMPLE);
}
