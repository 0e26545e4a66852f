//! Builds this crate for Windows and runs its registry test in a Wine of its own, made and taken away by this test.
//!
//! It needs Wine, mingw-w64's C compiler and Rust's standard library for x86_64-pc-windows-gnu; where one of them is
//! missing it says so and passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod toolchain;
#[path = "wine/mod.rs"]
mod wine;

use toolchain::text;
use wine::{PROGRAMS, TARGET, Wine};

#[test]
fn the_registry_round_trip_holds_under_wine() {
    if let Some(missing) = toolchain::missing(PROGRAMS, TARGET) {
        println!("skipped the_registry_round_trip_holds_under_wine: {missing} is missing");
        return;
    }
    let folder = tempfile::Builder::new().prefix("wine").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let wine = Wine::start(folder.path());
    let output = wine
        .command(env!("CARGO"))
        .args(["test", "--quiet", "--profile", "cross", "--package", env!("CARGO_PKG_NAME")])
        .args(["--target", TARGET, "--test", "registry"])
        .args(["--", "--nocapture"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env(format!("CARGO_TARGET_{}_RUNNER", TARGET.replace('-', "_").to_uppercase()), "wine")
        .env("FULLPIPE_TEST_REGISTRY", "1")
        .output()
        .unwrap();
    let said = text(&output);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(!said.contains("skipped"), "{said}");
}
