//! Builds the library and a program that uses it for Windows, FreeBSD and macOS, with mingw-w64 and zig as linkers.
//!
//! Nothing is run there: Wine does not know `SIO_TCP_INFO`. Where a linker or Rust's standard library for the system is
//! missing, a test says so and passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../host/tests/toolchain/mod.rs"]
mod toolchain;

use std::{
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Two cargo-zigbuilds that are the first on a machine fail over the links that both make.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn builds(name: &str, command: &[&str], linker: &str, target: &str) {
    if let Some(missing) = toolchain::missing(&[linker], target) {
        println!("skipped {name}: {missing} is missing");
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (program, first) = command.split_first().unwrap();
    let output = Command::new(program)
        .args(first)
        .args(["--quiet", "--profile", "cross", "--package", env!("CARGO_PKG_NAME"), "--example", "look"])
        .args(["--target", target])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", toolchain::text(&output));
}

#[test]
fn a_program_builds_for_windows() {
    let command = [env!("CARGO"), "build"];
    builds("a_program_builds_for_windows", &command, "x86_64-w64-mingw32-gcc", "x86_64-pc-windows-gnu");
}

#[test]
fn a_program_builds_for_freebsd() {
    let command = ["cargo-zigbuild", "zigbuild"];
    builds("a_program_builds_for_freebsd", &command, "cargo-zigbuild", "x86_64-unknown-freebsd");
}

#[test]
fn a_program_builds_for_macos() {
    let command = ["cargo-zigbuild", "zigbuild"];
    builds("a_program_builds_for_macos", &command, "cargo-zigbuild", "aarch64-apple-darwin");
}
