//! Builds fullpipe.exe and runs it in a Wine of its own, made and taken away by this test.
//!
//! It needs Wine, mingw-w64's C compiler and Rust's standard library for x86_64-pc-windows-gnu; where one of them is
//! missing it says so and passes. The registry has a test of its own in the package `fullpipe-host`.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "wine/connections.rs"]
mod connections;
#[path = "wine/netsh.rs"]
mod netsh;
#[path = "wine/settings.rs"]
mod settings;
#[path = "../../host/tests/toolchain/mod.rs"]
mod toolchain;
#[path = "wine/watch.rs"]
mod watch;
#[path = "../../host/tests/wine/mod.rs"]
mod wine;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use toolchain::text;
use wine::{COMPILER, PROGRAMS, TARGET, Wine};

/// What the next test runs. `cargo xtask test` does this one early, beside tests that wait.
#[test]
fn the_crate_builds_for_windows() {
    match toolchain::missing(&[COMPILER], TARGET) {
        Some(missing) => println!("skipped the_crate_builds_for_windows: {missing} is missing"),
        None => drop(build()),
    }
}

#[test]
fn fullpipe_exe_runs_and_measures_under_wine() {
    if let Some(missing) = toolchain::missing(PROGRAMS, TARGET) {
        println!("skipped fullpipe_exe_runs_and_measures_under_wine: {missing} is missing");
        return;
    }
    let program = build();
    let folder = tempfile::Builder::new().prefix("wine").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let wine = Wine::start(folder.path());
    let windows = || {
        let mut command = wine.command("wine");
        command.arg(&program).env("FULLPIPE_STATE_DIR", folder.path().join("windows"));
        command
    };
    let linux = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
        command.env("FULLPIPE_STATE_DIR", folder.path().join("linux"));
        command
    };
    it_tells_of_itself(&windows);
    settings::are_planned_applied_undone_and_linted(&wine, folder.path(), &windows);
    netsh::batch_files_say_to_netsh_what_they_are_meant_to(&wine, folder.path());
    connections::are_listed_with_their_programs(&windows);
    // Before a stand-in takes the place of Wine's own table.
    watch::shows_a_transfer_and_what_is_missing(folder.path(), &linux, &windows);
    connections::tell_of_pinned_buffers(&wine, folder.path(), &windows);
    a_capture_is_read(&windows);
    simulations_have_the_series_of_linux(&linux, &windows);
    what_makes_a_path_says_that_it_needs_linux(&windows);
    a_check_reports_both_directions(linux(), windows());
    a_check_reports_both_directions(windows(), linux());
    a_check_reports_both_directions(windows(), windows());
}

fn it_tells_of_itself(program: &dyn Fn() -> Command) {
    let said = |arguments: &[&str]| {
        let output = program().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        // Wine may have words of its own on the standard error.
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&["--version"]).trim_end(), concat!("fullpipe ", env!("CARGO_PKG_VERSION")));
    let history: Value = serde_json::from_str(&said(&["history", "--json"])).unwrap();
    assert_eq!(history["runs"], Value::Array(Vec::new()));
    assert!(said(&["status"]).contains("nothing is in force"));
    assert!(said(&["lab", "list"]).contains("wan-80ms"));
}

/// Captured on the lab's hosts; the verdict is the one that it has on Linux.
fn a_capture_is_read(program: &dyn Fn() -> Command) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/tests/data");
    for (name, limiter) in [("wan-80ms-cubic-window-a", "receive_window"), ("wan-80ms-cubic-buffer-b", "send_buffer")] {
        let output = program().arg("read").arg(data.join(name).with_extension("pcap")).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["connections"][0]["diagnosis"]["limiter"], limiter, "{name}");
    }
}

/// The same seed gives the same series on every system.
fn simulations_have_the_series_of_linux(linux: &dyn Fn() -> Command, windows: &dyn Fn() -> Command) {
    for words in [["adsl2", "1"], ["hsdpa", "2"], ["wan-80ms", "3"]] {
        let digests = |mut program: Command| {
            let output = program.args(["sim", words[0], "--seed", words[1], "--json"]).output().unwrap();
            assert!(output.status.success(), "{}", text(&output));
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let all = document["simulated"].as_array().unwrap().iter().map(|one| one["digest"].clone());
            all.collect::<Vec<_>>()
        };
        let found = digests(windows());
        assert!(!found.is_empty() && found.iter().all(Value::is_string), "{words:?}: {found:?}");
        assert_eq!(found, digests(linux()), "{words:?}");
    }
}

fn what_makes_a_path_says_that_it_needs_linux(program: &dyn Fn() -> Command) {
    for arguments in [["demo", "--json"].as_slice(), &["lab", "run", "wan-80ms", "--json"]] {
        let output = program().args(arguments).output().unwrap();
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(error["error"]["kind"], "unsupported", "{arguments:?}");
        assert!(error["error"]["message"].as_str().unwrap().contains("needs Linux"), "{error}");
    }
}

/// An end on Windows is said to be unseen where it does not answer, as Wine 8, and else to be seen in part.
fn a_check_reports_both_directions(mut serving: Command, mut measuring: Command) {
    let (serving, measuring) = (&mut serving, &mut measuring);
    let server = Server::start(serving);
    let output = measuring
        .args(["check", &server.address, "--seconds", "0.5", "--omit", "0.2", "--json"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let transfers = document["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 2, "{document}");
    for transfer in transfers {
        assert!(transfer["rate_bps"].as_u64().unwrap() > 0, "{transfer}");
        let blind = transfer["diagnosis"]["blind"].as_array().unwrap();
        let says = |words: &str| blind.iter().any(|what| what.as_str().unwrap().contains(words));
        assert!(says("could not be read") || says("untested on that system"), "{transfer}");
    }
}

/// A running `fullpipe serve`.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .args(["serve", "127.0.0.1:0", "--quiet"])
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        Self { process, address: address.expect("the first line tells the address") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It keeps nothing that has to be put back.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--profile", "cross", "--package", env!("CARGO_PKG_NAME")])
        .args(["--target", TARGET, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    target.join(TARGET).join("cross/fullpipe.exe")
}
