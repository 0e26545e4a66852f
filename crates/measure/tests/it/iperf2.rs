//! iperf 2's test over TCP with the real program (2.1.8 is Debian's), in both roles.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use fullpipe_measure::{Client, ClientOptions, Length, MeasureError, PeerKind, TestDirection, TestSpec};
use fullpipe_units::Bytes;

use crate::support::{Running, short, target};

/// `false`, with a printed reason, where iperf 2 is not installed.
fn iperf2_is_here(test: &str) -> bool {
    let here = Command::new("iperf").arg("--version").output().is_ok();
    if !here {
        println!("skipped: {test}: iperf is not installed");
    }
    here
}

/// The rates and bytes that a client prints with `-y C`: one line for each connection.
fn client(server: &Running, options: &[&str]) -> Vec<u64> {
    let port = server.address.port().to_string();
    let output =
        Command::new("iperf").args(["-c", "127.0.0.1", "-p", &port, "-y", "C"]).args(options).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text.lines().filter_map(|line| line.split(',').nth(7)?.parse().ok()).collect();
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("reset"), "{output:?}");
    bytes
}

#[test]
fn a_real_iperf2_client_is_served_both_ways() {
    if !iperf2_is_here("a_real_iperf2_client_is_served_both_ways") {
        return;
    }
    let server = Running::start();
    assert_eq!(client(&server, &["-n", "1M"]), [1 << 20]);
    let back = client(&server, &["-t", "1", "-R"]);
    assert!(back.iter().any(|bytes| *bytes > 1 << 20), "{back:?}");
    let log = server.log();
    assert!(
        log.iter().any(|line| line.contains("iperf 2: 1 stream") && line.contains("received 1048576 B")),
        "{log:?}"
    );
    assert!(log.iter().all(|line| !line.contains("not a fullpipe or iperf3 client")), "{log:?}");
}

struct Iperf2Server(Child, SocketAddr);

impl Iperf2Server {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("iperf")
            .args(["-s", "-y", "C", "-B", "127.0.0.1", "-p", &free.port().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Each attempt is a client of its own, of no bytes.
        while TcpStream::connect(free).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Self(child, free)
    }
}

#[test]
fn a_real_iperf2_server_counts_what_our_client_says() {
    if !iperf2_is_here("a_real_iperf2_server_counts_what_our_client_says") {
        return;
    }
    let mut server = Iperf2Server::start();
    let mut client = Client::for_iperf2(&target(server.1), ClientOptions::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(client.peer_kind(), PeerKind::Iperf2);
    let spec = TestSpec { length: Length::Bytes(Bytes::new(2 << 20)), ..short() };
    let never = AtomicBool::new(false);
    let measurement = client.run(&spec, &never, &mut |_| ()).unwrap();
    assert!(measurement.directions[0].bytes.get() >= 2 << 20, "{measurement:?}");
    assert!(measurement.warnings[0].contains("iperf 2"), "{measurement:?}");
    let down = TestSpec { direction: TestDirection::Down, ..short() };
    assert!(matches!(client.run(&down, &never, &mut |_| ()), Err(MeasureError::BadSpec { .. })));
    std::thread::sleep(Duration::from_millis(500));
    server.0.kill().unwrap();
    let output = server.0.wait_with_output().unwrap();
    let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Its own header counts for payload, as it does from iperf's client.
    let counted = |line: &str| line.split(',').nth(7)?.parse::<u64>().ok();
    assert!(said.lines().filter_map(counted).any(|bytes| bytes >= 2 << 20), "{said} {complaints}");
    assert!(!complaints.contains("reset"), "{complaints}");
}

#[test]
fn a_closed_port_names_what_to_start_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = Client::for_iperf2(&target(free), ClientOptions::default(), &AtomicBool::new(false)).unwrap();
    let error = client.run(&short(), &AtomicBool::new(false), &mut |_| ()).unwrap_err();
    assert!(matches!(error, MeasureError::NoIperf2 { peer } if peer == free), "{error}");
    assert_eq!(error.kind(), "refused");
}
