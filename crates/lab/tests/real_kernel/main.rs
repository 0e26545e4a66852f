//! The lab on the kernel that runs this test. Without the right to make one, each test says so and passes.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod error;
mod lifetime;
mod mtu;
mod offload;
mod rights;
mod timing;

use std::{
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabOptions, Side, preflight};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_units::{Micros, Rate};

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

/// One hop that is the same in both directions.
fn path(hop: HopSpec, ip: IpVersions) -> PathSpec {
    PathSpec { mtu: 1_500, ip, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] }
}

fn rate(rate_bps: u64, one_way: Micros) -> HopSpec {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 2.0, at_least: 64 }, ..QueueSpec::default() };
    HopSpec { rate: Some(Rate::from_bps(rate_bps)), delay: one_way, queue, ..HopSpec::default() }
}

fn lab(path: &PathSpec) -> Lab {
    Lab::join(path, 7, LabOptions::default()).unwrap()
}

fn address_of(lab: &Lab, side: Side, v6: bool) -> SocketAddr {
    let host = lab.host(side);
    let ip = if v6 { host.ipv6().unwrap().into() } else { host.ipv4().unwrap().into() };
    SocketAddr::new(ip, 5201)
}

fn listen(lab: &Lab, address: SocketAddr) -> TcpListener {
    lab.host(Side::B).run(|| TcpListener::bind(address)).unwrap().unwrap()
}

fn udp(lab: &Lab, side: Side, v6: bool) -> UdpSocket {
    let address = address_of(lab, side, v6);
    let socket = lab.host(side).run(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

/// A connection from a to `address` on b. CUBIC, whatever this machine's default is.
fn connect(lab: &Lab, address: SocketAddr) -> TcpStream {
    let stream = lab.host(Side::A).run(|| TcpStream::connect(address)).unwrap().unwrap();
    rustix::net::sockopt::set_tcp_congestion(&stream, "cubic").unwrap();
    stream
}

/// A server on b that takes one connection and reads it to its end.
fn read_all(lab: &Lab, listener: TcpListener) -> JoinHandle<io::Result<Vec<u8>>> {
    let serve = move || {
        let mut bytes = Vec::new();
        listener.accept()?.0.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    lab.host(Side::B).spawn("reader", serve).unwrap()
}

/// A connected stream that has to be given up after a while, and must not block the test for ever.
fn bounded(stream: TcpStream) -> TcpStream {
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Asks again until it holds; `false` where it never does.
fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
