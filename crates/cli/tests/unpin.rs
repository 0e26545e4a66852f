//! `fullpipe unpin` over a real path: a program that fixes its buffers is faster for as long as it runs, and not after it, also
//! where it was killed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use fullpipe_lab::{Lab, LabOptions, Side, preflight};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_units::{Micros, Rate};
use serde_json::{Value, json};

/// Programs of one test swallow calls of another one: one at a time. `None`, and the reason printed, where there can be none.
fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let reason = match preflight() {
        Err(error) => Some(error.to_string()),
        Ok(()) if !rustix::process::geteuid().is_root() => Some("loading a BPF program takes root".to_owned()),
        Ok(()) if Command::new("iperf3").arg("-v").output().is_err() => Some("iperf3 is not installed".to_owned()),
        Ok(()) => None,
    };
    match reason {
        Some(reason) => {
            println!("skipped {test}: {reason}");
            None
        }
        None => Some(turn),
    }
}

/// 100 Mbit/s and 80 ms there and back.
fn lab() -> Lab {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, ..QueueSpec::default() };
    let rate = Some(Rate::from_bps(100_000_000));
    let hop = HopSpec { rate, delay: Micros::from_millis(40), queue, ..HopSpec::default() };
    let path =
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
    Lab::join(&path, 1, LabOptions::default()).unwrap()
}

/// A child that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn serve(lab: &Lab) -> Running {
    let server = lab.host(Side::B).command("iperf3").arg("-s").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    thread::sleep(Duration::from_millis(500));
    Running(server.unwrap())
}

/// `iperf3 -w 64K` over the path: what it received, in bit/s.
fn measure(lab: &Lab) -> f64 {
    let address = lab.host(Side::B).address().to_string();
    let words = ["-c", &address, "-w", "64K", "-t", "6", "-O", "2", "-J"];
    let output: Output = lab.host(Side::A).command("iperf3").args(words).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{document}"))
}

/// `None`, and the reason printed, where the kernel or its mounts can't.
fn unpin(test: &str, state: &Path, words: &[&str]) -> Option<Running> {
    let mut child = fullpipe(state)
        .arg("unpin")
        .args(words)
        .args(["--yes", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let is_ready = lines.any(|line| line.contains("sized automatically"));
    // Somebody reads what else it says.
    thread::spawn(move || lines.for_each(drop));
    if is_ready {
        return Some(Running(child));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(21), "{output:?}");
    println!("skipped {test}: {}", String::from_utf8_lossy(&output.stdout));
    None
}

fn fullpipe(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.env("FULLPIPE_STATE_DIR", state);
    command
}

/// What a command prints as JSON.
fn printed(state: &Path, words: &[&str]) -> Value {
    let output = fullpipe(state).args(words).arg("--json").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A client with fixed buffers that goes on for a minute, under way.
fn client(lab: &Lab) -> Running {
    let address = lab.host(Side::B).address().to_string();
    let words = ["-c", &address, "-w", "64K", "-t", "60"];
    let client = lab.host(Side::A).command("iperf3").args(words).stdout(Stdio::null()).spawn();
    let client = Running(client.unwrap());
    thread::sleep(Duration::from_secs(2));
    client
}

/// BPF programs of this kind that are loaded; `None` without bpftool.
fn attached() -> Option<usize> {
    let listed = Command::new("bpftool").args(["prog", "list"]).output().ok()?;
    Some(String::from_utf8_lossy(&listed.stdout).matches("name unpin_").count())
}

#[test]
fn iperf3_with_64_kb_is_five_times_faster_for_as_long_as_it_is_unpinned_and_a_kill_leaves_nothing() {
    let test = "iperf3_with_64_kb_is_five_times_faster_for_as_long_as_it_is_unpinned";
    let Some(_turn) = turn(test) else { return };
    let state = tempfile::tempdir().unwrap();
    let lab = lab();
    let _server = serve(&lab);
    let pinned = measure(&lab);
    let Some(mut unpin) = unpin(test, state.path(), &["iperf3"]) else { return };
    if attached().is_some_and(|count| count != 2) {
        panic!("{:?} programs are attached", attached());
    }
    let freed = measure(&lab);
    unpin.0.kill().unwrap();
    unpin.0.wait().unwrap();
    // The kernel takes a moment to free them.
    let gone = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(100));
        attached().is_none_or(|count| count == 0)
    });
    assert!(gone, "after SIGKILL {:?} programs are there", attached());
    let again = measure(&lab);
    let left = printed(state.path(), &["status"]);
    assert_eq!(
        (&left["runs"][0]["entries"][0]["kind"], &left["runs"][0]["entries"][0]["as_set"]),
        (&json!("program"), &json!(false))
    );
    let undone = printed(state.path(), &["undo", "--yes"]);
    let why = &undone["undone"][0]["why"];
    assert_eq!(undone["undone"][0]["outcome"], "gone", "{undone:#}");
    assert!(why.as_str().unwrap().contains("nothing is attached any more"), "{why}");
    println!("64 KB fixed {pinned:.0} bit/s, unpinned {freed:.0} bit/s, after the kill {again:.0} bit/s");
    assert!(freed > 5.0 * pinned, "{pinned} and {freed} bit/s");
    assert!(again < 2.0 * pinned, "{pinned} and {again} bit/s after the kill");
}

#[test]
fn a_connection_that_is_open_gets_what_its_window_scale_allows_and_its_buffers_are_put_back() {
    let test = "a_connection_that_is_open_gets_what_its_window_scale_allows_and_its_buffers_are_put_back";
    let Some(_turn) = turn(test) else { return };
    let state = tempfile::tempdir().unwrap();
    let lab = lab();
    let _server = serve(&lab);
    let client = client(&lab);
    let Some(unpin) = unpin(test, state.path(), &["iperf3", "--open-only", "--for", "3s"]) else { return };
    let mut child = unpin;
    let mut text = String::new();
    std::io::Read::read_to_string(child.0.stdout.as_mut().unwrap(), &mut text).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let sockets = document["sockets"].as_array().unwrap_or_else(|| panic!("{document}"));
    assert!(!sockets.is_empty() && document["swallowed"].is_null(), "{document}");
    assert!(
        sockets.iter().all(|socket| socket["process"] == "iperf3" && socket["send_buffer"].as_u64() == Some(131_072))
    );
    assert_eq!(document["put_back"].as_u64(), Some(sockets.len() as u64), "{document}");
    // iperf3 set the receive buffer before the handshake, too: its window can't follow.
    assert!(sockets.iter().all(|socket| socket["largest_window"].is_u64()), "{document}");
    assert_eq!(printed(state.path(), &["history"])["runs"][0]["state"], "undone");
    drop(client);
}

#[test]
fn an_undo_ends_it_and_puts_open_sockets_back_also_after_a_kill() {
    let test = "an_undo_ends_it_and_puts_open_sockets_back_also_after_a_kill";
    let Some(_turn) = turn(test) else { return };
    let state = tempfile::tempdir().unwrap();
    let lab = lab();
    let _server = serve(&lab);
    let _client = client(&lab);
    let sockets = |undone: &Value| {
        let places = undone["undone"].as_array().unwrap_or_else(|| panic!("{undone:#}")).iter();
        places.filter(|entry| entry["outcome"] == "restored" && entry["now"].is_string()).count()
    };
    let Some(mut killed) = unpin(test, state.path(), &["iperf3", "--open-only"]) else { return };
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let undone = printed(state.path(), &["undo", "--yes"]);
    assert_eq!(undone["complete"], true, "{undone:#}");
    let found = sockets(&undone);
    assert!(found >= 1, "{undone:#}");
    let mut running = unpin(test, state.path(), &["iperf3"]).unwrap();
    let shown = printed(state.path(), &["status"]);
    let entries = shown["runs"][0]["entries"].as_array().unwrap();
    assert!(entries.len() > found && entries.iter().all(|entry| entry["as_set"] == true), "{shown:#}");
    let undone = printed(state.path(), &["undo", "--yes"]);
    assert_eq!((&undone["undone"][0]["outcome"], sockets(&undone)), (&json!("restored"), found), "{undone:#}");
    assert!(running.0.wait().is_ok());
    assert!(attached().is_none_or(|count| count == 0), "{:?} programs are attached", attached());
    assert_eq!(printed(state.path(), &["status"])["runs"], json!([]));
}
