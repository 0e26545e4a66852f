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

/// What a server with these arguments writes while one measurement of it runs with `words`: on standard output, and on standard
/// error.
fn served(arguments: &[&str], variables: &[(&str, &str)], words: &[&str]) -> (String, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args([&["serve", "127.0.0.1:0", "--one-off"], arguments].concat())
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let port = match serde_json::from_str::<Value>(&first) {
        Ok(listening) => listening["port"].to_string(),
        Err(_) => first.trim().rsplit(':').next().unwrap().to_owned(),
    };
    let client = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args([&["measure", &format!("127.0.0.1:{port}"), "-t", "0.2"], words].concat())
        .output()
        .unwrap();
    assert!(client.status.success(), "{client:?}");
    let ended = process.wait_with_output().unwrap();
    (first, String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn every_line_of_a_server_has_one_form_and_a_time_whatever_logs_it() {
    for variables in [&[][..], &[("RUST_LOG", "debug")]] {
        let (first, log) = served(&["--json"], variables, &[]);
        let lines: Vec<Value> = std::iter::once(first.as_str())
            .chain(log.lines())
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect();
        for line in &lines {
            assert_eq!(line["command"], "serve", "{line}");
            let time = line["time"].as_str().unwrap();
            assert!(time.ends_with('Z') && time.contains('T'), "{line}");
            let level = line["level"].as_str().unwrap();
            assert!(["debug", "info"].contains(&level) && line["event"].is_string(), "{line}");
        }
        assert_eq!((&lines[0]["event"], lines[0]["port"].is_u64()), (&Value::from("listening"), true));
        let test = lines.iter().find(|line| line["event"] == "test_ended").unwrap();
        assert!(test["peer"].as_str().unwrap().starts_with("127.0.0.1:") && test["text"].is_string(), "{test}");
        let fields = &test["fields"];
        assert_eq!((&fields["connections"], fields["duration_us"].is_u64()), (&Value::from(1), true), "{test}");
        assert!(fields["received_bytes"].as_u64().unwrap() + fields["sent_bytes"].as_u64().unwrap() > 0, "{test}");
        let logged = lines.iter().filter(|line| line["level"] == "debug" && line["event"] == "log").count();
        assert_eq!(logged > 0, !variables.is_empty(), "{lines:#?}");
    }
}

#[test]
fn a_server_that_is_verbose_logs_more_and_every_line_of_text_has_a_time() {
    let logged = |log: &str| log.lines().filter(|line| line.contains(" debug: ")).count();
    let (_, plain) = served(&["--share-settings"], &[], &[]);
    let (_, verbose) = served(&["--share-settings", "-v"], &[], &[]);
    assert!(logged(&plain) == 0 && logged(&verbose) > 0, "{plain}\n{verbose}");
    let ended = plain.lines().find(|line| line.contains("127.0.0.1:")).unwrap_or_else(|| panic!("{plain}"));
    assert!(plain.lines().any(|line| line.starts_with("20") && line.contains("Z 127.0.0.1:")), "{ended}");
}

#[test]
fn a_client_keeps_the_habits_of_iperf3() {
    let measured = |words: &[&str]| {
        let server = Server::start(&[]);
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args([&["measure", &server.address], words].concat())
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (result, lines) = measured(&["-t", "0.5", "-i", "0.2", "-T", "north"]);
    assert!(
        !lines.is_empty() && lines.lines().chain(result.lines()).all(|line| line.starts_with("north:")),
        "{result}"
    );
    let (_, lines) = measured(&["-t", "0.5", "-i", "0"]);
    assert_eq!(lines, "", "no interval");
    // Long enough for a sample: 1 MB can be over in a fifth of a millisecond.
    let (result, _) = measured(&["-k", "256K", "-l", "1k", "-J"]);
    let document: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(document["end"]["sum_received"]["bytes"], 256 * 1_024 * 1_024, "{document:#}");
    let start = &document["start"];
    assert!(start["timestamp"]["timesecs"].as_u64().unwrap() > 1_700_000_000, "{start}");
    assert_eq!(start["cookie"].as_str().map(str::len), Some(36), "{start}");
    assert!(start["system_info"].as_str().unwrap().contains(' '), "{start}");
    let connected = &start["connected"][0];
    let first = &document["intervals"][0]["streams"][0];
    assert!(first["pmtu"].as_u64() >= Some(1_500) && first["rttvar"].is_u64(), "{first}");
    assert!(connected["local_host"] == "127.0.0.1" && connected["local_port"].as_u64().unwrap() > 0, "{connected}");
    for command in ["measure", "serve"] {
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args([command, "--version"]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains(env!("CARGO_PKG_VERSION")), "{command}: {said}");
    }
}
