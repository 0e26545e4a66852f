//! Builds this crate for Windows and runs its registry test in a Wine of its own, made and taken away by this test.
//!
//! It needs Wine, mingw-w64's C compiler and Rust's standard library for x86_64-pc-windows-gnu; where one of them is
//! missing it says so and passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod toolchain;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use toolchain::text;

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";

#[test]
fn the_registry_round_trip_holds_under_wine() {
    if let Some(missing) = toolchain::missing(&["wine", "wineboot", COMPILER], TARGET) {
        println!("skipped the_registry_round_trip_holds_under_wine: {missing} is missing");
        return;
    }
    let folder = tempfile::Builder::new().prefix("wine").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let wine = Wine::start(folder.path());
    let output = wine
        .command(env!("CARGO"))
        .args(["test", "--quiet", "--package", env!("CARGO_PKG_NAME"), "--target", TARGET, "--test", "registry"])
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

/// A Wine whose registry is in a folder.
struct Wine<'a> {
    folder: &'a Path,
}

impl<'a> Wine<'a> {
    fn start(folder: &'a Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wine/bcryptprimitives.c");
        let library = folder.join("bcryptprimitives.dll");
        let built =
            Command::new(COMPILER).args(["-shared", "-O1", "-o"]).arg(library).arg(source).arg("-ladvapi32").output();
        let built = built.unwrap();
        assert!(built.status.success(), "{}", text(&built));
        let wine = Self { folder };
        // It complains about what a bare system lacks (a display, 32-bit programs), and makes the registry all the same.
        wine.command("wineboot").arg("--init").output().unwrap();
        assert!(wine.prefix().join("system.reg").is_file() || wine.prefix().join("drive_c").is_dir(), "no registry");
        wine
    }

    fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    /// A program that sees this Wine, without a display.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("WINEPREFIX", self.prefix())
            .env("WINEPATH", self.folder)
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Wine<'_> {
    fn drop(&mut self) {
        // Ends this prefix' own processes, so that its folder can be taken away.
        drop(self.command("wineboot").arg("--kill").output());
        fs::remove_dir_all(self.prefix()).unwrap_or_default();
    }
}
