//! On this kernel's own sockets.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    net::{TcpListener, TcpStream},
    time::Duration,
};

use fullpipe_socket::{Bytes, Decision, Fixed, Info, Memory, Micros, Path, Tuned, Wish, connect};
use socket2::{Domain, Socket, Type};

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
}

/// Ten milliseconds at 100 Mbit/s hold 125,000 B: automatic sizing reaches that on every kernel.
fn short() -> (Path, Wish) {
    (Path::of_rtt(Micros::from_millis(10)), Wish::bulk("100M".parse().unwrap()))
}

#[test]
fn a_new_socket_is_left_to_automatic_sizing() {
    let (path, wish) = short();
    let socket = socket();
    let before = (socket.recv_buffer_size().unwrap(), socket.send_buffer_size().unwrap());
    let tuned = Tuned::before_handshake(&socket, path, wish).unwrap();
    assert!(matches!(tuned.receive(), Decision::Automatic { short: None, .. }), "{tuned}");
    assert!(matches!(tuned.send(), Decision::Automatic { short: None, .. }), "{tuned}");
    assert_eq!((socket.recv_buffer_size().unwrap(), socket.send_buffer_size().unwrap()), before);
    assert_ne!(Fixed::read(&socket), Some(Fixed { receive: true, send: true }));
}

#[test]
fn buffers_fixed_at_64_kb_are_given_back_to_automatic_sizing() {
    let (path, wish) = short();
    let socket = socket();
    socket.set_recv_buffer_size(8_192).unwrap();
    socket.set_send_buffer_size(8_192).unwrap();
    let Some(fixed) = Fixed::read(&socket) else {
        println!("skipped buffers_fixed_at_64_kb_are_given_back_to_automatic_sizing: a kernel before 5.15");
        return;
    };
    assert_eq!(fixed, Fixed { receive: true, send: true });
    let tuned = Tuned::before_handshake(&socket, path, wish).unwrap();
    assert!(matches!(tuned.receive(), Decision::Released { was, .. } if was == Bytes::new(16_384)), "{tuned}");
    assert!(tuned.send().is_automatic(), "{tuned}");
    assert_eq!(Fixed::read(&socket), Some(Fixed::default()));
    let memory = Memory::read(&socket).unwrap();
    assert!(memory.receive_buffer > Some(Bytes::new(16_384)), "automatic sizing starts where a new socket does");
}

#[test]
fn a_short_queue_is_fixed_at_what_the_path_holds() {
    let socket = socket();
    let (path, _) = short();
    let tuned = Tuned::before_handshake(&socket, path, Wish::interactive("100M".parse().unwrap())).unwrap();
    // 125,000 B x 1.25 in whole segments is 156,220 B, in a buffer of which half is payload.
    assert!(matches!(tuned.receive(), Decision::Fixed { buffer, .. } if buffer == Bytes::new(315_392)), "{tuned}");
    assert_eq!(Fixed::read(&socket).map(|fixed| fixed.receive), Some(true));
}

#[test]
fn a_need_beyond_every_limit_names_the_setting_that_lifts_it() {
    let socket = socket();
    let path = Path::of_rtt(Micros::from_millis(500));
    let tuned = Tuned::before_handshake(&socket, path, Wish::bulk("100G".parse().unwrap()).fixed()).unwrap();
    let text = tuned.to_string();
    assert!(tuned.send().short().is_some() && text.contains("wmem"), "{text}");
}

#[test]
fn a_connection_is_opened_looked_at_and_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stream, mut tuned) = connect(address, Duration::from_secs(5), Wish::fast()).unwrap();
    tuned.look_again(&stream).unwrap();
    assert_eq!(tuned.path().scaling, Info::read(&stream).unwrap().scaling);
    assert!(tuned.path().mtu.unwrap() > 1_000 && tuned.path().own_shift.is_some());
    assert!(tuned.to_string().starts_with("path: round trip "), "{tuned}");
}

#[test]
fn an_accepted_connection_is_tuned_as_well() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let mut tuned = Tuned::connected(&accepted, Wish::fast()).unwrap();
    assert!(tuned.look_again(&accepted).unwrap().receive().is_automatic());
}

#[test]
fn nobody_there_is_an_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(Path::to(free, Duration::from_secs(1)).is_err());
}
