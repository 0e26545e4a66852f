//! Builds this crate for FreeBSD and macOS, C code included, with zig as the compiler (cargo-zigbuild).
//!
//! Nothing is run there. Where cargo-zigbuild or Rust's standard library for the system is missing, a test says so and
//! passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod toolchain;

use std::{
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Two cargo-zigbuilds that are the first on a machine fail over the links that both make.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn builds(name: &str, target: &str) {
    if let Some(missing) = toolchain::missing(&["cargo-zigbuild"], target) {
        println!("skipped {name}: {missing} is missing");
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new("cargo-zigbuild")
        .args(["zigbuild", "--quiet", "--profile", "cross", "--package", env!("CARGO_PKG_NAME"), "--target", target])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", toolchain::text(&output));
}

#[test]
fn the_crate_builds_for_freebsd() {
    builds("the_crate_builds_for_freebsd", "x86_64-unknown-freebsd");
}

#[test]
fn the_crate_builds_for_macos() {
    builds("the_crate_builds_for_macos", "aarch64-apple-darwin");
}
