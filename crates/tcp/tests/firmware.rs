//! Builds the engine for a microcontroller (Cortex-M4F), with all features and with none.
//!
//! Nothing is run there; what the smallest engine does is seen here. Where Rust's library for it is missing, a test says
//! so and passes.

use std::{path::PathBuf, process::Command};

const TARGET: &str = "thumbv7em-none-eabihf";

fn has_library() -> bool {
    let folder = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    folder.is_ok_and(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn builds(name: &str, features: &[&str]) {
    if !has_library() {
        println!("skipped {name}: Rust's library for {TARGET} is missing (rustup target add {TARGET})");
        return;
    }
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--lib", "--package", env!("CARGO_PKG_NAME"), "--target", TARGET])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_engine_builds_for_a_microcontroller() {
    builds("the_engine_builds_for_a_microcontroller", &[]);
}

#[test]
fn the_smallest_engine_builds_for_a_microcontroller() {
    builds("the_smallest_engine_builds_for_a_microcontroller", &["--no-default-features"]);
}

#[test]
fn the_smallest_engine_transfers() {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", env!("CARGO_PKG_NAME"), "--no-default-features", "--test", "smallest"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
