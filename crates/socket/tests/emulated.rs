//! Over the lab's path between two real kernels. Without the right to make one, each test says so and passes.
#![cfg(target_os = "linux")]

#[path = "../examples/before_after/transfer.rs"]
mod transfer;

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fullpipe_lab::{Side, preflight};
use fullpipe_socket::{Bytes, Micros, Path, Rate, Wish, connect};
use transfer::{Direction, Span, lab, run};

/// Labs disturb each other's timing: one at a time. `None`, and the reason printed, where there can be none.
fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if let Err(error) = preflight() {
        println!("skipped {test}: {error}");
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped {test}: a test can't enter a user namespace, for its process has threads already");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

const RATE: Rate = Rate::from_bps(50_000_000);
const ROUND_TRIP: Micros = Micros::from_millis(40);

#[test]
fn a_client_of_64_kb_is_faster_with_three_lines() {
    let Some(_turn) = turn("a_client_of_64_kb_is_faster_with_three_lines") else { return };
    let span = Span { whole: Duration::from_millis(1_200), omit: Duration::from_millis(600) };
    let [naive, tuned] = [None, Some(Wish::bulk(RATE))]
        .map(|wish| run(&lab(RATE, ROUND_TRIP), Direction::Download, wish, span).unwrap());
    // 65,536 B in 40 ms are 13 Mbit/s; were there no overhead, all of the buffer would be window: 26 Mbit/s.
    assert!(naive.rate < Rate::from_bps(27_000_000), "{naive:?}");
    assert_eq!(naive.memory.receive_buffer, Some(Bytes::new(131_072)));
    assert!(tuned.rate.bps() > naive.rate.bps() * 3 / 2, "{} after {}", tuned.rate, naive.rate);
    let said = tuned.said.unwrap();
    assert!(said.contains("round trip 4") && said.contains("automatic sizing is on again"), "{said}");
}

#[test]
fn a_send_buffer_of_64_kb_grows_again() {
    let Some(_turn) = turn("a_send_buffer_of_64_kb_grows_again") else { return };
    let span = Span { whole: Duration::from_millis(600), omit: Duration::from_millis(300) };
    let tuned = run(&lab(RATE, ROUND_TRIP), Direction::Upload, Some(Wish::bulk(RATE)), span).unwrap();
    assert!(tuned.memory.send_buffer > Some(Bytes::new(131_072)), "{tuned:?}");
}

#[test]
fn a_peer_without_scaling_is_seen_and_what_64_kb_allow_is_said() {
    let Some(_turn) = turn("a_peer_without_scaling_is_seen_and_what_64_kb_allow_is_said") else { return };
    let lab = lab(RATE, ROUND_TRIP);
    let off = BTreeMap::from([("net.ipv4.tcp_window_scaling".to_owned(), "0".to_owned())]);
    lab.host(Side::B).apply(&off).unwrap();
    let address = SocketAddr::new(lab.host(Side::B).address(), 5201);
    let _listener = lab.host(Side::B).run(|| TcpListener::bind(address)).unwrap().unwrap();
    let (stream, tuned) =
        lab.host(Side::A).run(|| connect(address, Duration::from_secs(5), Wish::bulk(RATE).fixed())).unwrap().unwrap();
    let without = tuned.without_scaling().unwrap();
    // 65,535 B in 40 ms are 13 Mbit/s, and 250,000 B take four windows of that.
    assert_eq!((without.window, without.connections), (Bytes::new(65_535), Some(4)));
    assert!((12_000_000..=13_200_000).contains(&without.allows.unwrap().bps()), "{without:?}");
    let text = tuned.to_string();
    assert!(text.contains("window scaling: missing"), "{text}");
    // Nothing larger than a window that is ever used was made, although the rate wants more.
    assert!(socket2::SockRef::from(&stream).recv_buffer_size().unwrap() <= 131_072, "{text}");
}

#[test]
fn a_round_trip_is_read_from_a_connect() {
    let Some(_turn) = turn("a_round_trip_is_read_from_a_connect") else { return };
    let lab = lab(RATE, ROUND_TRIP);
    let address = SocketAddr::new(lab.host(Side::B).address(), 5201);
    let _listener = lab.host(Side::B).run(|| TcpListener::bind(address)).unwrap().unwrap();
    let path = lab.host(Side::A).run(|| Path::to(address, Duration::from_secs(5))).unwrap().unwrap();
    assert!(path.rtt.unwrap() >= ROUND_TRIP, "{path:?}");
    assert_eq!((path.mtu, path.scaling), (Some(1_500), Some(true)));
}
