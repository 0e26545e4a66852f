//! Against the real thing, in both roles.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Output, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use fullpipe_diagnose::Source;
use fullpipe_measure::{Client, ClientOptions, Length, MeasureError, PeerKind, TestDirection, TestSpec, UdpSpec};
use fullpipe_units::{Bytes, Rate};
use serde_json::Value;

use crate::{
    options::{connect_between_tests, iperf3_has},
    support::{Running, quick_server, short, target},
};

/// `false`, with a printed reason, where iperf3 is not installed.
pub(crate) fn iperf3_is_here(test: &str) -> bool {
    let here = Command::new("iperf3").arg("--version").output().is_ok();
    if !here {
        println!("skipped: {test}: iperf3 is not installed");
    }
    here
}

/// With the usual interval: without one, clients from 3.16 on never notice that `-n` or `-k` has been reached.
fn iperf3(address: SocketAddr, options: &[&str]) -> Output {
    let port = address.port().to_string();
    Command::new("iperf3").args(["-c", "127.0.0.1", "-p", &port, "-J"]).args(options).output().unwrap()
}

/// The report of a real client that ran against our server.
fn report(server: &Running, options: &[&str]) -> Value {
    let output = iperf3(server.address, options);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success() && report["error"].is_null(), "{options:?}: {report:#}");
    report
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
fn datagrams_of_a_real_client_are_counted() {
    if !iperf3_is_here("datagrams_of_a_real_client_are_counted") {
        return;
    }
    let server = Running::start();
    let report = report(&server, &["-u", "-R", "-b", "8M", "-t", "1"]);
    let sum = &report["end"]["sum"];
    // On loopback its datagrams are as long as the MTU allows: 30 a second.
    assert!(sum["packets"].as_u64().unwrap() > 2, "{sum}");
    assert!(sum["lost_percent"].is_number() && sum["jitter_ms"].as_f64().unwrap() >= 0.0, "{sum}");
}

#[test]
fn a_real_client_gets_our_output_and_its_title_stands_in_the_log() {
    if !iperf3_is_here("a_real_client_gets_our_output_and_its_title_stands_in_the_log") {
        return;
    }
    let server = Running::start();
    let mut options = vec!["-n", "1M", "--get-server-output", "--title", "night run", "-l", "16K", "-C", "reno"];
    if iperf3_has("--extra-data") {
        options.extend(["--extra-data", "rack 7"]);
    }
    let report = report(&server, &options);
    let text = report["server_output_text"].as_str().unwrap();
    // Old ones send a little more than they were asked to.
    assert!(text.contains("received 1,"), "{text}");
    assert_eq!(text.contains("extra data: rack 7"), iperf3_has("--extra-data"), "{text}");
    server.wait_for_line(|line| line.contains("(night run)"));
    // Before 3.2 it does not tell.
    assert!(matches!(report["end"]["sender_tcp_congestion"].as_str(), Some("reno") | None), "{report:#}");
}

#[test]
fn fifty_real_clients_are_served_at_once() {
    if !iperf3_is_here("fifty_real_clients_are_served_at_once") {
        return;
    }
    let options = fullpipe_measure::ServerOptions { answer: Duration::from_secs(20), ..quick_server() };
    let server = Running::with(options, None);
    let port = server.address.port().to_string();
    let clients: Vec<Child> = (0..50)
        .map(|number| {
            let both: &[&str] = if iperf3_has("--bidir") { &["--bidir"] } else { &["-R"] };
            let direction = [&[][..], &["-R"], both][number % 3];
            Command::new("iperf3")
                .args(["-c", "127.0.0.1", "-p", &port, "-J", "-t", "2", "-b", "1M", "-l", "8K"])
                .args(direction)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for client in clients {
        let output = client.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["error"].is_null(), "{}", report["error"]);
        assert!(report["end"]["sum_received"]["bytes"].as_u64().unwrap() > 0, "{report:#}");
    }
    // A client may be gone before the server has written its line.
    let served = || server.log().iter().filter(|line| line.contains(" stream")).count();
    for _ in 0..1_000 {
        if served() == 50 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(served(), 50, "{:#?}", server.log());
}

#[test]
fn limits_hold_for_a_real_client() {
    if !iperf3_is_here("limits_hold_for_a_real_client") {
        return;
    }
    let limited = fullpipe_measure::ServerOptions {
        max_rate: Some(Rate::from_bps(40_000_000)),
        longest_test: Duration::from_secs(5),
        ..quick_server()
    };
    let server = Running::with(limited, None);
    for options in [&["-t", "2"][..], &["-t", "2", "-R"], &["-t", "2", "-P", "2"]] {
        let report = report(&server, options);
        let bits = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        // 2 s of 40 Mbit/s, and whatever fits into the first moment.
        assert!((1e3..55e6).contains(&bits), "{options:?}: {bits}");
    }
    // Before 3.20 it has no words for the code of a duration that a server does not allow, and in 3.1 for no code at all.
    let known = [(&["-t", "60"][..], ["37", "duration"]), (&["-t", "1", "-b", "1G"], ["27", "bandwidth"])];
    for (options, words) in known {
        let output = iperf3(server.address, options);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = report["error"].as_str().unwrap();
        let is_mute = !iperf3_has("--bidir") && error.trim_end() == "error -";
        assert!(is_mute || words.iter().any(|word| error.contains(word)), "{options:?}: {error}");
    }
    let small = fullpipe_measure::ServerOptions { max_bytes: Some(Bytes::new(5_000_000)), ..quick_server() };
    let server = Running::with(small, None);
    let output = iperf3(server.address, &["-t", "9"]);
    // Its writer may meet the closed connection before its reader meets the word; 3.1 dies of that.
    if iperf3_has("--bidir") || output.status.signal() != Some(libc::SIGPIPE) {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = report["error"].as_str().unwrap();
        assert!(["terminated", "unable to write"].iter().any(|word| error.contains(word)), "{report:#}");
    }
    server.wait_for_line(|line| line.contains("it reached the 5,000,000 B"));
}

/// A real server on a port of its own.
pub(crate) struct Iperf3Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Iperf3Server {
    pub(crate) fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self::start_with(free, &[])
    }

    fn for_one_test() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self::start_with(free, &["-1"])
    }

    pub(crate) fn start_with(free: SocketAddr, options: &[&str]) -> Self {
        let mut child = Command::new("iperf3")
            .args(["-s", "-B", &free.ip().to_string(), "--forceflush", "-p", &free.port().to_string()])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Nobody may let its pipe run full.
        std::thread::spawn(move || lines.count());
        let server = Self { child, address: free };
        if !cfg!(target_os = "linux") {
            std::thread::sleep(Duration::from_secs(1));
            return server;
        }
        for _ in 0..2_000 {
            if server.listens() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it never listened");
    }

    /// As the kernel tells: old ones keep their words in a buffer, and a connection would be taken for a client.
    fn listens(&self) -> bool {
        let port = format!(":{:04X} ", self.address.port());
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|file| {
            let table = std::fs::read_to_string(file).unwrap_or_default();
            // The second column is the local address, the fourth the state: 0A is LISTEN.
            table.lines().any(|line| {
                let mut columns = line.split_whitespace().skip(1);
                let local = columns.next().is_some_and(|local| format!("{local} ").ends_with(&port));
                local && columns.nth(1) == Some("0A")
            })
        })
    }
}

impl Drop for Iperf3Server {
    fn drop(&mut self) {
        // One for a single test may have ended.
        drop(self.child.kill());
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
fn datagrams_to_and_from_a_real_server_are_counted() {
    if !iperf3_is_here("datagrams_to_and_from_a_real_server_are_counted") {
        return;
    }
    let server = Iperf3Server::start();
    let mut client = Client::connect(&target(server.address)).unwrap();
    for (direction, counters_64bit) in [(TestDirection::Up, false), (TestDirection::Down, true)] {
        let spec = TestSpec {
            direction,
            udp: Some(UdpSpec { counters_64bit }),
            block: Bytes::new(1_000),
            pace: Some(Rate::from_bps(4_000_000)),
            length: Length::Time(Duration::from_secs(1)),
            ..short()
        };
        let measurement = client.run(&spec, &AtomicBool::new(false), &mut |_| ()).unwrap();
        for direction in &measurement.directions {
            let datagrams = direction.datagrams.unwrap();
            // 500 a second at the most, and fewer on a busy machine.
            assert!((10..=700).contains(&datagrams.packets), "{direction:#?}");
            assert!(datagrams.loss().is_some() && datagrams.jitter_us.is_some(), "{direction:#?}");
            assert!(direction.rate_bps.unwrap().bps() > 0, "{direction:#?}");
        }
    }
}

#[test]
fn the_options_reach_a_real_server() {
    if !iperf3_is_here("the_options_reach_a_real_server") {
        return;
    }
    let server = Iperf3Server::start();
    let mut client = Client::connect(&target(server.address)).unwrap();
    let spec = TestSpec {
        length: Length::Time(Duration::from_secs(1)),
        pace: Some(Rate::from_bps(8_000_000)),
        block: Bytes::new(8_192),
        nodelay: true,
        mss: Some(1_000),
        tos: Some(0x20),
        zerocopy: true,
        title: Some("night run".to_owned()),
        extra_data: Some("rack 7".to_owned()),
        server_output: true,
        ..short()
    };
    let measurement = client.run(&spec, &AtomicBool::new(false), &mut |_| ()).unwrap();
    let direction = &measurement.directions[0];
    // A second of 8 Mbit/s at the most, and less on a busy machine.
    assert!((8_192..3_000_000).contains(&direction.bytes.get()), "{direction:#?}");
    let mss = direction.transfers[0].sender_samples.last().unwrap().mss.unwrap();
    assert!(mss <= 1_000, "{mss}");
    let output = measurement.server_output.unwrap();
    assert!(output.contains("Server listening") || output.contains("Accepted connection"), "{output}");
    assert!(measurement.far_cpu.is_some());
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

#[test]
fn a_server_for_one_test_is_measured_and_one_that_is_gone_is_named() {
    if !iperf3_is_here("a_server_for_one_test_is_measured_and_one_that_is_gone_is_named") {
        return;
    }
    let never = AtomicBool::new(false);
    let spec = TestSpec { length: Length::Time(Duration::from_secs(1)), ..short() };
    let connect = |server: &Iperf3Server, first: Option<TestSpec>| {
        let first = (None, first.as_ref());
        Client::connect_for(&target(server.address), ClientOptions::default(), first, &never).unwrap()
    };
    for direction in [TestDirection::Up, TestDirection::Down] {
        let server = Iperf3Server::for_one_test();
        let spec = TestSpec { direction, ..spec.clone() };
        let mut client = connect(&server, Some(spec.clone()));
        let measurement = client.run(&spec, &never, &mut |_| ()).unwrap();
        assert!(measurement.directions[0].rate_bps.unwrap().bps() > 0, "{measurement:#?}");
        // That was its only one.
        let error = client.run(&spec, &never, &mut |_| ()).unwrap_err();
        assert!(matches!(error, MeasureError::OneTest { .. }), "{error}");
    }
    // A question of several tests does not say at first what it wants.
    let server = Iperf3Server::for_one_test();
    let error = connect(&server, None).run(&spec, &never, &mut |_| ()).unwrap_err();
    assert!(matches!(error, MeasureError::OneTest { .. }), "{error}");
}

#[test]
fn another_test_than_the_first_gets_a_session_of_its_own() {
    if !iperf3_is_here("another_test_than_the_first_gets_a_session_of_its_own") {
        return;
    }
    let server = Iperf3Server::start();
    let never = AtomicBool::new(false);
    let first = TestSpec { length: Length::Time(Duration::from_secs(30)), ..short() };
    let mut client = connect_between_tests(&server, &first).unwrap();
    let other = TestSpec { length: Length::Time(Duration::from_secs(1)), ..short() };
    client.run(&other, &never, &mut |_| ()).unwrap();
    // Nor does one that never runs keep the server busy.
    connect_between_tests(&server, &first).unwrap().bye();
    connect_between_tests(&server, &other).unwrap().run(&other, &never, &mut |_| ()).unwrap();
}
