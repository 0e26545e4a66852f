//! A server and a client of the real binary on loopback.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// A running `fullpipe serve`, ended by the signal that Ctrl-C sends.
struct Server {
    process: Child,
    address: String,
    _state: tempfile::TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(["serve", "127.0.0.1:0", "--quiet"])
            .args(arguments)
            .env("FULLPIPE_STATE_DIR", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("the first line tells the address").to_owned();
        Self { process, address, _state: state }
    }

    fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Server {
    /// A test that failed leaves no server behind; one that ended it has nothing left to kill.
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What a check of `server` tells; its state folder is `state`.
fn check(server: &Server, state: &std::path::Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["check", &server.address, "--seconds", "0.5", "--omit", "0.2", "--json"])
        .env("FULLPIPE_STATE_DIR", state)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_check_over_loopback_reports_both_directions_and_changes_nothing() {
    let server = Server::start(&["--share-settings"]);
    let state = tempfile::tempdir().unwrap();
    let document = check(&server, state.path());
    let transfers = document["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 2);
    for transfer in transfers {
        assert!(transfer["rate_bps"].as_u64().unwrap() > 0, "{transfer}");
        assert!(transfer["diagnosis"]["limiter"].is_string());
    }
    assert_eq!(document["proof"], Value::Null);
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "a check touched the state folder");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_check_of_a_server_that_shares_no_settings_has_a_verdict_and_says_how_to_share_them() {
    let server = Server::start(&[]);
    let document = check(&server, tempfile::tempdir().unwrap().path());
    for transfer in document["transfers"].as_array().unwrap() {
        assert!(transfer["diagnosis"]["limiter"].is_string(), "{transfer}");
    }
    let notes = document["notes"].to_string();
    assert!(notes.contains("could not be read") && notes.contains("`fullpipe serve --share-settings`"), "{notes}");
    assert_eq!(server.end(), Some(0));
    let server = Server::start(&["--share-settings"]);
    let notes = check(&server, tempfile::tempdir().unwrap().path())["notes"].to_string();
    assert!(!notes.contains("could not be read"), "{notes}");
    assert_eq!(server.end(), Some(0));
}
