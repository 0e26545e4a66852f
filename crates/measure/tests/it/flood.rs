//! One address that takes all it can get, and a client of another address meanwhile.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use fullpipe_measure::{Client, Length, ServerOptions, TestDirection, TestSpec, UdpSpec};
use fullpipe_units::{Bytes, Rate};
use socket2::{Domain, Socket, Type};

use crate::support::{Running, quick_server, run, short};

/// Whose flood it is; clients of the library come from 127.0.0.1.
const CROWD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A connection from the crowd's address.
fn connect(server: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((CROWD, 0)).into())?;
    socket.connect_timeout(&server.into(), Duration::from_secs(20))?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(stream)
}

/// Cookies that differ.
fn cookie(number: usize) -> Vec<u8> {
    format!("{number:036}\0").into_bytes()
}

/// A conversation that is begun and then says nothing; an error where the server turns it away.
fn conversation(server: SocketAddr, number: usize) -> std::io::Result<TcpStream> {
    let mut stream = connect(server)?;
    stream.write_all(&cookie(number))?;
    let mut state = [0u8];
    stream.read_exact(&mut state)?;
    let params = br#"{"tcp":true,"time":1,"fullpipe":{"version":1,"conversation":true}}"#;
    stream.write_all(&u32::try_from(params.len()).unwrap().to_be_bytes())?;
    stream.write_all(params)?;
    stream.read_exact(&mut state)?;
    if state[0] == 0xff { Err(std::io::ErrorKind::ConnectionRefused.into()) } else { Ok(stream) }
}

/// A client of another address measures, over TCP and with datagrams. How long it took is printed, and not judged here.
fn another_is_served(server: &Running, meanwhile: &str) {
    let datagrams = TestSpec {
        direction: TestDirection::Up,
        udp: Some(UdpSpec { counters_64bit: false }),
        block: Bytes::new(1_000),
        pace: Some(Rate::from_bps(800_000)),
        ..short()
    };
    for (what, spec) in [("TCP", short()), ("UDP", datagrams)] {
        let begin = Instant::now();
        let measured = run(server, &spec).unwrap_or_else(|error| panic!("{meanwhile}: {what}: {error}"));
        assert!(!measured.directions.is_empty());
        println!("{meanwhile}: a test of 300 ms over {what} took {} ms in all", begin.elapsed().as_millis());
    }
}

fn server() -> Running {
    // Long deadlines: what is silent stays for as long as the test lasts.
    let options = ServerOptions { answer: Duration::from_secs(30), ..quick_server() };
    Running::with(options, None)
}

#[test]
fn ten_thousand_silent_connections_of_one_address_leave_another_served() {
    const WANTED: u64 = 10_000;
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limits.maximum.unwrap_or(u64::MAX);
    let limits = rustix::process::Rlimit { current: limits.maximum, ..limits };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limits).unwrap();
    // The server's ends are in this process, too, as are other tests.
    let count = WANTED.min(most.saturating_sub(3_000));
    let server = server();
    let held: Vec<TcpStream> = (0..count).map_while(|_| connect(server.address).ok()).collect();
    println!("{} silent connections (of {WANTED} wanted)", held.len());
    assert!(held.len() > 1_000, "this machine allows no flood");
    another_is_served(&server, "10,000 silent connections");
    drop(held);
}

#[test]
fn bytes_that_drip_leave_another_served() {
    let server = server();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let drip = || {
            let mut held: Vec<TcpStream> = (0..300).map_while(|_| connect(server.address).ok()).collect();
            for byte in cookie(0) {
                held.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
                if over.load(Relaxed) {
                    return;
                }
                thread::sleep(Duration::from_millis(100));
            }
        };
        scope.spawn(drip);
        thread::sleep(Duration::from_millis(300));
        another_is_served(&server, "300 connections that drip");
        over.store(true, Relaxed);
    });
}

#[test]
fn idle_conversations_of_one_address_leave_another_its_own() {
    let server = server();
    let held: Vec<TcpStream> = (0..64).filter_map(|number| conversation(server.address, number).ok()).collect();
    assert!((1..64).contains(&held.len()), "{} of 64 conversations", held.len());
    another_is_served(&server, "64 idle conversations wanted");
}

#[test]
fn a_conversation_that_asks_nothing_ends_and_one_whose_client_measures_goes_on() {
    let usual = ServerOptions::default().talk_idle;
    assert!(usual <= Duration::from_secs(30), "{usual:?}");
    let server = Running::with(ServerOptions { talk_idle: Duration::from_secs(3), ..quick_server() }, None);
    let mut silent = conversation(server.address, 0).unwrap();
    let mut client = Client::connect(&server.target()).unwrap();
    // Longer than a conversation may be silent.
    let spec = TestSpec { length: Length::Time(Duration::from_secs(4)), ..short() };
    client.run(&spec, &AtomicBool::new(false), &mut |_| {}).unwrap();
    client.ping(1).expect("it goes on");
    // The server ends the other one: it takes 20 s until this read is given up.
    assert_eq!(silent.read(&mut [0u8]).unwrap(), 0);
}

#[test]
fn a_conversation_that_asks_without_end_is_slowed_down() {
    let server = server();
    let mut client = Client::connect(&server.target()).unwrap();
    let begin = Instant::now();
    client.ping(400).unwrap();
    // 200 at once, and the others one in 10 ms each: a server that does not wait answers all of them in some 40 ms.
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[test]
fn a_thousand_clients_that_speak_nonsense_leave_another_served() {
    let server = server();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let speak = || {
            for number in 0..1_000 {
                let nonsense = [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0xff; 4_000], cookie(number)];
                // It may be turned away at any byte.
                if let Ok(mut stream) = connect(server.address) {
                    drop(stream.write_all(&nonsense[number % 3]));
                    drop(stream.write_all(b"\xff\xff\xff\xff nonsense"));
                }
            }
            over.store(true, Relaxed);
        };
        scope.spawn(speak);
        another_is_served(&server, "1,000 clients that speak nonsense");
    });
    assert!(over.load(Relaxed));
    another_is_served(&server, "after them");
}
