//! What our server makes of clients that vanish, lie or are something else.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use crate::support::{Running, quick_server, run, short};

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn byte(stream: &mut TcpStream) -> u8 {
    let mut byte = [0u8];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}

fn frame(text: &str) -> Vec<u8> {
    let mut frame = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// How far a client comes before it vanishes.
fn vanish_after(server: SocketAddr, steps: u32) {
    let mut control = connect(server);
    let mut data = None;
    // A cookie of its own, or it would join the test of the one before.
    let mut cookie = *COOKIE;
    cookie[30] = b'a' + u8::try_from(steps).unwrap();
    for step in 1..=steps {
        match step {
            1 => control.write_all(&cookie[..20]).unwrap(),
            2 => control.write_all(&cookie[20..]).unwrap(),
            3 => assert_eq!(byte(&mut control), 9),
            4 => control.write_all(&frame(r#"{"tcp":true,"time":9}"#)[..10]).unwrap(),
            5 => control.write_all(&frame(r#"{"tcp":true,"time":9}"#)[10..]).unwrap(),
            6 => assert_eq!(byte(&mut control), 10),
            7 => data = Some(connect(server)),
            8 => data.as_mut().unwrap().write_all(&cookie).unwrap(),
            9 => assert_eq!([byte(&mut control), byte(&mut control)], [1, 2]),
            10 => data.as_mut().unwrap().write_all(&[7; 100_000]).unwrap(),
            11 => control.write_all(&[4]).unwrap(),
            12 => assert_eq!(byte(&mut control), 13),
            _ => control.write_all(&frame("{}")[..3]).unwrap(),
        }
    }
}

/// Runs a test, which the server may refuse so often, a tenth of a second apart, while it still has others.
fn served_within(server: &Running, refusals: u32) {
    let mut last = run(server, &short());
    for _ in 0..refusals {
        if last.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        last = run(server, &short());
    }
    last.unwrap();
}

#[test]
fn a_client_that_vanishes_at_any_step_leaves_the_server_free() {
    let options = fullpipe_measure::ServerOptions { max_clients: 1, ..quick_server() };
    let server = Running::with(options, None);
    for steps in 0..=13 {
        vanish_after(server.address, steps);
    }
    // With room for one test only, this one shows that all the others have left, or leave within their deadlines.
    served_within(&server, 50);
}

#[test]
fn silence_in_any_step_ends_with_the_deadline() {
    let server = Running::start();
    let held: Vec<TcpStream> = (0..3)
        .map(|step| {
            let mut stream = connect(server.address);
            if step > 0 {
                stream.write_all(&[&b"zz"[..], &COOKIE[2..]].concat()[..if step == 1 { 20 } else { 37 }]).unwrap();
            }
            stream
        })
        .collect();
    server.wait_for_line(|line| line.contains("accepts and stays silent"));
    server.wait_for_line(|line| line.contains("no answer within"));
    drop(held);
}

#[test]
fn strangers_are_named_in_the_log() {
    let server = Running::start();
    for (words, name) in [
        (&b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\r\n\r\n"[..], "HTTP"),
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", "SSH"),
        (
            &[
                0u8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x14, 0x51, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48, 49, 50, 51, 52, 53,
                54, 55, 56, 57, 48, 49, 50,
            ],
            "iperf 2",
        ),
    ] {
        connect(server.address).write_all(words).unwrap();
        server.wait_for_line(|line| line.contains(name));
    }
}

#[test]
fn a_giant_announcement_is_refused_before_it_is_read() {
    let server = Running::start();
    let mut control = connect(server.address);
    control.write_all(COOKIE).unwrap();
    assert_eq!(byte(&mut control), 9);
    control.write_all(&u32::MAX.to_be_bytes()).unwrap();
    server.wait_for_line(|line| line.contains("4294967295 bytes"));
    assert!(matches!(control.read(&mut [0; 10]), Ok(0) | Err(_)));
}

#[test]
fn a_client_that_trickles_is_let_go_with_the_deadline() {
    let server = Running::start();
    let trickle = |mut stream: TcpStream, bytes: Vec<u8>| {
        std::thread::spawn(move || {
            for byte in bytes {
                // It may have been let go.
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        })
    };
    let cookie = trickle(connect(server.address), COOKIE.to_vec());
    let mut slow = connect(server.address);
    slow.write_all(&[&b"yy"[..], &COOKIE[2..]].concat()).unwrap();
    assert_eq!(byte(&mut slow), 9);
    let params = trickle(slow, frame(r#"{"tcp":true,"time":9,"title":"0123456789"}"#));
    // 1.5 s for each answer; they would take 4 s.
    server.wait_for_line(|line| line.contains("not a fullpipe or iperf3 client"));
    server.wait_for_line(|line| line.contains("the handshake with") && line.contains("no answer within 1.5 s"));
    run(&server, &short()).unwrap();
    cookie.join().unwrap();
    params.join().unwrap();
}

#[test]
fn a_flood_of_silent_connections_is_bounded_and_said_once() {
    let options = fullpipe_measure::ServerOptions { answer: Duration::from_secs(20), ..quick_server() };
    let server = Running::with(options, None);
    let mut held: Vec<TcpStream> = (0..300).map(|_| connect(server.address)).collect();
    let turned_away = |line: &&String| line.contains("turned away, 256 others came");
    server.wait_for_line(|line| turned_away(&&line.to_owned()));
    // The last are answered that the server is busy.
    assert_eq!(byte(held.last_mut().unwrap()), 0xff);
    assert_eq!(server.log().iter().filter(turned_away).count(), 1, "{:#?}", server.log());
    drop(held);
    server.wait_for_line(|line| line.contains("accepts and stays silent"));
    served_within(&server, 100);
}

#[test]
fn deep_json_is_refused_and_costs_no_stack() {
    let server = Running::start();
    let mut control = connect(server.address);
    control.write_all(COOKIE).unwrap();
    assert_eq!(byte(&mut control), 9);
    control.write_all(&frame(&"[".repeat(7_000))).unwrap();
    server.wait_for_line(|line| line.contains("not JSON"));
    run(&server, &short()).unwrap();
}

#[test]
fn parameters_out_of_range_get_the_error_code() {
    let server = Running::start();
    for (params, code) in [(r#"{"tcp":true,"parallel":1000}"#, 6), (r#"{"sctp":true}"#, 13), ("[]", 114)] {
        let mut control = connect(server.address);
        // A cookie of its own, or it may join the session of the one before, which is about to end.
        let mut cookie = *COOKIE;
        cookie[30] = b'a' + code % 26;
        control.write_all(&cookie).unwrap();
        assert_eq!(byte(&mut control), 9);
        control.write_all(&frame(params)).unwrap();
        let mut reply = [0u8; 9];
        control.read_exact(&mut reply).unwrap();
        assert_eq!(reply, [0xfe, 0, 0, 0, code, 0, 0, 0, 0], "{params}");
    }
}

#[test]
fn a_data_connection_with_a_wrong_cookie_does_not_join_the_test() {
    let server = Running::start();
    let mut control = connect(server.address);
    control.write_all(COOKIE).unwrap();
    assert_eq!(byte(&mut control), 9);
    control.write_all(&frame(r#"{"tcp":true,"time":9}"#)).unwrap();
    assert_eq!(byte(&mut control), 10);
    let mut wrong = connect(server.address);
    let mut cookie = *COOKIE;
    cookie[0] = b'z';
    wrong.write_all(&cookie).unwrap();
    assert_eq!(byte(&mut wrong), 9, "it is taken for a test of its own");
    // The test that waits gets no stream and says so: SERVER_ERROR, 118.
    let mut reply = [0u8; 5];
    control.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [0xfe, 0, 0, 0, 118]);
}

#[test]
fn payload_that_stops_ends_the_test() {
    let options = fullpipe_measure::ServerOptions { stall: Duration::from_millis(300), ..quick_server() };
    let server = Running::with(options, None);
    let mut control = connect(server.address);
    control.write_all(COOKIE).unwrap();
    assert_eq!(byte(&mut control), 9);
    control.write_all(&frame(r#"{"tcp":true,"time":9}"#)).unwrap();
    assert_eq!(byte(&mut control), 10);
    let mut data = connect(server.address);
    data.write_all(COOKIE).unwrap();
    assert_eq!([byte(&mut control), byte(&mut control)], [1, 2]);
    let mut reply = [0u8; 5];
    control.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [0xfe, 0, 0, 0, 144]);
}

#[test]
fn random_bytes_never_stop_the_server() {
    let server = Running::start();
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    runner
        .run(&(bytes, 0..3u8), |(bytes, prefix)| {
            let mut stream = connect(server.address);
            let opening: &[u8] = if prefix > 0 { COOKIE } else { b"" };
            // The server may hang up in the middle, which is its right.
            drop(stream.write_all(opening));
            if prefix > 1 {
                drop(stream.write_all(&frame(r#"{"tcp":true,"fullpipe":{"version":1,"conversation":true}}"#)));
            }
            drop(stream.write_all(&bytes));
            Ok(())
        })
        .unwrap();
    run(&server, &short()).unwrap();
}
