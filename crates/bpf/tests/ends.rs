//! Connections of this very process that end, as the kernel that the test runs on tells of them. Without the right to load programs,
//! each test says so and passes.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use fullpipe_bpf::{BpfError, Ended, Ends, How};

/// `None`, and the reason printed, without the right to.
fn begin(test: &str) -> Option<Ends> {
    match Ends::begin() {
        Ok(ends) => Some(ends),
        Err(BpfError::Denied { .. }) => {
            println!("skipped {test}: loading a BPF program takes rights that this user has not");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Those of an address that nobody else in this namespace uses, once there are `count`.
fn of(ends: &mut Ends, address: Ipv4Addr, count: usize) -> Vec<Ended> {
    let mut found = Vec::new();
    for _ in 0..600 {
        ends.drain(|ended| found.extend((ended.peer == address).then_some(ended)));
        if found.len() >= count {
            return found;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{} of {count} came", found.len());
}

#[test]
fn every_short_connection_is_told_of_with_what_it_moved() {
    const COUNT: usize = 2_000;
    let Some(mut ends) = begin("every_short_connection_is_told_of_with_what_it_moved") else { return };
    let address = Ipv4Addr::new(127, 71, 0, 1);
    let listener = TcpListener::bind((address, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).unwrap();
            stream.write_all(&text[..text.len() / 2]).unwrap();
        }
    });
    let mut sent = 0;
    for number in 0..COUNT {
        let mut stream = TcpStream::connect(to).unwrap();
        let text = vec![7; 2 + 2 * (number % 50) * 100];
        stream.write_all(&text).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), text.len() / 2);
        sent += text.len() as u64;
    }
    server.join().unwrap();
    // Only the connecting ends: the others have another peer.
    let found = of(&mut ends, address, COUNT);
    let name = fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
    assert_eq!(found.len(), COUNT);
    assert_eq!(found.iter().map(|ended| ended.moved[0]).sum::<u64>(), sent);
    assert_eq!(found.iter().map(|ended| ended.moved[1]).sum::<u64>(), sent / 2);
    for ended in &found {
        assert_eq!((ended.how, ended.cookie, ended.process.as_ref()), (How::Closed, None, Some(&name)), "{ended:?}");
        assert!(ended.segments[0] > 0 && ended.rtt_us.is_some(), "{ended:?}");
    }
    assert_eq!(ends.lost().unwrap(), 0);
}

#[test]
fn a_reset_is_told_from_either_end() {
    let Some(mut ends) = begin("a_reset_is_told_from_either_end") else { return };
    let (here, there) = (Ipv4Addr::new(127, 72, 0, 1), Ipv4Addr::new(127, 72, 0, 2));
    let listener = TcpListener::bind((there, 0)).unwrap();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((here, 0)).into()).unwrap();
    socket.connect(&listener.local_addr().unwrap().into()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
    assert_eq!(of(&mut ends, there, 1)[0].how, How::ResetHere);
    drop(accepted);
    let refused = TcpListener::bind((Ipv4Addr::new(127, 72, 0, 3), 0)).unwrap();
    let nobody = refused.local_addr().unwrap();
    drop(refused);
    TcpStream::connect(nobody).unwrap_err();
    assert_eq!(of(&mut ends, Ipv4Addr::new(127, 72, 0, 3), 1)[0].how, How::Refused);
}
