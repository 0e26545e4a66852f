//! The engine as a station on Ethernet: the kernel's neighbour discovery and its own find each other.

use std::{
    io::{Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabHost, LabOptions};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, Side};
use fullpipe_stack::{Host, Port, Settings};
use fullpipe_tcp::{
    link::{LinkSetup, Prefix},
    wire::ethernet::Mac,
};

use crate::world::{LIMIT, cubic, may_run};

const MESSAGE: &[u8] = b"from one station to the other";

/// The kernel's address and the engine's.
const PAIRS: [(&str, &str, u8); 2] = [("10.84.0.1", "10.84.0.2", 24), ("fd84::1", "fd84::2", 64)];

#[test]
fn stations_on_ethernet_find_each_other() {
    if !may_run("stations_on_ethernet_find_each_other") {
        return;
    }
    // The path of this lab stays unused: it lends its hosts' namespaces.
    let hops = vec![PathHop { name: None, ab: HopSpec::default(), ba: HopSpec::default() }];
    let path = PathSpec { mtu: 1500, ip: IpVersions::Both, hops };
    let lab = Lab::join(&path, 1, LabOptions { realtime: false, keep_awake: false, ..LabOptions::default() }).unwrap();
    let host = lab.host(Side::B);
    let engine = host.run(station).unwrap();
    for (kernel, own, _) in PAIRS {
        let (kernel, own): (IpAddr, IpAddr) = (kernel.parse().unwrap(), own.parse().unwrap());
        engine_calls(host, &engine, SocketAddr::new(kernel, 5001));
        kernel_calls(host, &engine, SocketAddr::new(own, 5002));
        let ping = host.command("ping").args(["-c", "1", "-W", "10", &own.to_string()]).output();
        match ping {
            Ok(ping) => assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stdout)),
            Err(error) => println!("skipped the echo of {own}: ping: {error}"),
        }
    }
    assert_eq!(engine.free_count(), 256);
}

fn station() -> Host {
    let kernel = PAIRS.map(|(kernel, _, bits)| (kernel.parse().unwrap(), bits));
    let own = PAIRS.map(|(_, own, bits)| Prefix { addr: own.parse().unwrap(), bits });
    let setup = LinkSetup {
        mac: Mac([2, 0, 0, 0, 0, 2]),
        prefixes: [Some(own[0]), Some(own[1]), None, None],
        gateway_v4: None,
        gateway_v6: None,
    };
    let port = Port::tap("station", 1500, &kernel, setup).unwrap();
    Host::start(port, Settings::new(&own.map(|prefix| prefix.addr))).unwrap()
}

fn engine_calls(host: &LabHost, engine: &Host, kernel: SocketAddr) {
    // An IPv6 address can't be used before the kernel has looked for duplicates of it.
    let end = Instant::now() + LIMIT;
    let listener = loop {
        match host.run(|| TcpListener::bind(kernel)).unwrap() {
            Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
            result => break result.unwrap(),
        }
    };
    let mut connection = engine.connect(kernel).unwrap();
    connection.write_all(MESSAGE).unwrap();
    connection.shutdown_write().unwrap();
    let mut arrived = Vec::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_end(&mut arrived).unwrap();
    assert_eq!(arrived, MESSAGE, "{kernel}");
    drop(stream);
    connection.set_timeout(Some(LIMIT));
    assert_eq!(connection.read(&mut [0; 16]).unwrap(), 0);
    connection.close();
    assert!(engine.settle(LIMIT));
}

fn kernel_calls(host: &LabHost, engine: &Host, own: SocketAddr) {
    let listener = engine.listen(own.port(), 1, engine.default_options()).unwrap();
    let caller = host.spawn("caller", move || {
        let mut stream = TcpStream::connect(own).unwrap();
        cubic(&stream);
        stream.write_all(MESSAGE).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!(back, MESSAGE, "{own}");
    });
    let mut connection = listener.accept(Some(LIMIT)).unwrap().unwrap();
    connection.set_timeout(Some(LIMIT));
    let mut arrived = Vec::new();
    connection.read_to_end(&mut arrived).unwrap();
    connection.write_all(&arrived).unwrap();
    connection.close();
    caller.unwrap().join().unwrap();
    assert!(engine.settle(LIMIT));
}
