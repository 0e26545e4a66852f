//! Against the real thing, in both roles.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Output, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use fullpipe_diagnose::Source;
use fullpipe_measure::{Client, Length, MeasureError, PeerKind, TestDirection, TestSpec};
use fullpipe_units::Bytes;
use serde_json::Value;

use crate::support::{Running, quick_server, short, target};

/// `false`, with a printed reason, where iperf3 is not installed.
fn iperf3_is_here(test: &str) -> bool {
    let here = Command::new("iperf3").arg("--version").output().is_ok();
    if !here {
        println!("skipped: {test}: iperf3 is not installed");
    }
    here
}

fn iperf3(address: SocketAddr, options: &[&str]) -> Output {
    let port = address.port().to_string();
    Command::new("iperf3").args(["-c", "127.0.0.1", "-p", &port, "-J", "-i", "0"]).args(options).output().unwrap()
}

/// The report of a real client that ran against our server.
fn report(server: &Running, options: &[&str]) -> Value {
    let output = iperf3(server.address, options);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success() && report["error"].is_null(), "{options:?}: {report:#}");
    report
}

#[test]
fn a_real_client_runs_against_our_server_with_every_kind_of_test() {
    if !iperf3_is_here("a_real_client_runs_against_our_server_with_every_kind_of_test") {
        return;
    }
    let server =
        Running::with(fullpipe_measure::ServerOptions { answer: Duration::from_secs(5), ..quick_server() }, None);
    for options in [
        &["-t", "1"][..],
        &["-t", "1", "-R"],
        &["-t", "1", "--bidir", "-P", "2"],
        &["-t", "1", "-P", "4"],
        &["-n", "20M"],
        &["-n", "20M", "-R"],
        &["-k", "100", "-R"],
        &["-t", "1", "-O", "1", "-w", "64k", "-N", "-M", "1000", "-Z"],
    ] {
        let report = report(&server, options);
        let end = &report["end"];
        let received = end["sum_received"]["bytes"].as_f64().unwrap();
        assert!(received > 0.0, "{options:?}: {end:#}");
        // A sum that lacks one end's figure would show as nothing sent.
        assert!(end["sum_sent"]["bytes"].as_f64().unwrap() >= received * 0.9, "{options:?}: {end:#}");
    }
}

#[test]
fn a_real_client_is_paced_where_it_asks_for_it() {
    if !iperf3_is_here("a_real_client_is_paced_where_it_asks_for_it") {
        return;
    }
    let server = Running::start();
    let report = report(&server, &["-t", "1", "-R", "-b", "16M"]);
    let bytes = report["end"]["sum_received"]["bytes"].as_f64().unwrap();
    // 2 MB in a second; a test on a busy machine may last somewhat longer, and the first block is not held back.
    assert!((1e6..4e6).contains(&bytes), "{bytes}");
}

#[test]
fn a_real_client_is_told_what_is_not_served() {
    if !iperf3_is_here("a_real_client_is_told_what_is_not_served") {
        return;
    }
    let server = Running::start();
    let output = iperf3(server.address, &["-u", "-t", "1"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["error"].as_str().unwrap().contains("not implemented"), "{report:#}");
}

/// A real server on a port of its own.
struct Iperf3Server {
    child: Child,
    address: SocketAddr,
}

impl Iperf3Server {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut child = Command::new("iperf3")
            .args(["-s", "-B", "127.0.0.1", "--forceflush", "-p", &free.port().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening")), "it never listened");
        // Nobody may let its pipe run full.
        std::thread::spawn(move || lines.count());
        Self { child, address: free }
    }
}

impl Drop for Iperf3Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn our_client_runs_against_a_real_server_and_says_what_it_could_not_see() {
    if !iperf3_is_here("our_client_runs_against_a_real_server_and_says_what_it_could_not_see") {
        return;
    }
    let server = Iperf3Server::start();
    let mut client = Client::connect(&target(server.address)).unwrap();
    assert_eq!(client.peer_kind(), PeerKind::Iperf3);
    assert!(client.hello().is_none());
    assert!(matches!(client.ping(1), Err(MeasureError::NeedsFullpipe { .. })));
    let second = Duration::from_secs(1);
    for spec in [
        TestSpec { length: Length::Time(second), ..short() },
        TestSpec { direction: TestDirection::Down, length: Length::Time(second), omit: second, ..short() },
        TestSpec { direction: TestDirection::Both, streams: 2, length: Length::Time(second), ..short() },
        TestSpec { direction: TestDirection::Down, length: Length::Bytes(Bytes::new(5_000_000)), ..short() },
    ] {
        let measurement = client.run(&spec, &AtomicBool::new(false), &mut |_| ()).unwrap();
        assert_eq!(measurement.peer_kind, PeerKind::Iperf3);
        for direction in &measurement.directions {
            assert!(direction.rate_bps.unwrap().bps() > 0 && direction.retransmits.is_some(), "{spec:?}");
            for transfer in &direction.transfers {
                assert_eq!(transfer.source, Source::LiveOneEnd);
                assert!(transfer.blind.iter().any(|text| text.contains("could not be read")), "{:?}", transfer.blind);
            }
        }
    }
}

#[test]
fn a_real_server_that_measures_somebody_else_is_busy() {
    if !iperf3_is_here("a_real_server_that_measures_somebody_else_is_busy") {
        return;
    }
    let server = Iperf3Server::start();
    let mut other = Client::connect(&target(server.address)).unwrap();
    let spec = TestSpec {
        length: Length::Time(Duration::from_secs(30)),
        progress_every: Duration::from_millis(50),
        ..short()
    };
    let cancel = AtomicBool::new(false);
    let mut seen = None;
    let measurement = other.run(&spec, &cancel, &mut |progress| {
        if progress.phase == fullpipe_measure::Phase::Running && seen.is_none() {
            seen = Some(Client::connect(&target(server.address)).map(|_| ()));
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(measurement.unwrap().cancelled);
    assert!(matches!(seen, Some(Err(MeasureError::Busy { .. }))), "{seen:?}");
}
