//! Real connections between two real kernels, whose limiter is known. Without the right to make a path, each test says so and
//! passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Stdio,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_lab::{Lab, LabHost, LabOptions, Side, preflight};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_units::{Micros, Rate};
use fullpipe_watch::{Filter, Frame, Row, Sort, Subject, Watcher};
use socket2::{Domain, Socket, Type};

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

fn lab(rate: Rate) -> Lab {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, ..QueueSpec::default() };
    let hop = HopSpec { rate: Some(rate), delay: Micros::from_millis(20), queue, ..HopSpec::default() };
    let path =
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
    Lab::join(&path, 1, LabOptions::default()).unwrap()
}

/// What a server does with a connection: what its port says.
fn serve(host: &LabHost, port: u16) {
    let address = SocketAddr::new(host.address(), port);
    let listener = host.run(|| TcpListener::bind(address)).unwrap().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, port));
        }
    });
}

const SINK: u16 = 5_001;
const SLOW: u16 = 5_002;
const ECHO: u16 = 5_003;
/// Acknowledges each 20,000 B by a message of its own.
const CREDIT: u16 = 5_004;

fn answer(mut stream: TcpStream, port: u16) -> Option<()> {
    let mut block = vec![0; 65_536];
    match port {
        SINK => while stream.read(&mut block).ok()? > 0 {},
        SLOW => loop {
            stream.read_exact(&mut block[..8_192]).ok()?;
            thread::sleep(Duration::from_millis(50));
        },
        ECHO => loop {
            stream.read_exact(&mut block[..100]).ok()?;
            stream.write_all(&block[..100]).ok()?;
        },
        _ => loop {
            stream.read_exact(&mut block[..20_000]).ok()?;
            stream.write_all(&[1]).ok()?;
        },
    }
    Some(())
}

/// A client's connection, on which `work` goes on until it fails.
fn client(lab: &Lab, port: u16, send_buffer: Option<usize>, work: fn(TcpStream) -> Option<()>) {
    let address = SocketAddr::new(lab.host(Side::B).address(), port);
    let stream = lab.host(Side::A).run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        if let Some(size) = send_buffer {
            socket.set_send_buffer_size(size).unwrap();
        }
        socket.connect(&address.into()).unwrap();
        TcpStream::from(socket)
    });
    let stream = stream.unwrap();
    thread::spawn(move || work(stream));
}

fn fill(mut stream: TcpStream) -> Option<()> {
    loop {
        stream.write_all(&[7; 65_536]).ok()?;
    }
}

fn ask(mut stream: TcpStream) -> Option<()> {
    loop {
        stream.write_all(&[7; 100]).ok()?;
        stream.read_exact(&mut [0; 100]).ok()?;
        thread::sleep(Duration::from_millis(100));
    }
}

/// Keeps four messages of 20,000 B on their way, and no more.
fn with_credit(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut credit = 4;
    loop {
        while credit > 0 {
            stream.write_all(&[7; 20_000]).ok()?;
            credit -= 1;
        }
        credit += stream.read(&mut [0; 16]).ok().filter(|&count| count > 0)?;
    }
}

fn rest(stream: TcpStream) -> Option<()> {
    thread::sleep(Duration::from_secs(30));
    drop(stream);
    Some(())
}

/// What a host sees of its connections in intervals of half a second: the first frame, after two others, that `is_clear`, or
/// the last of many. A machine that does other things besides delays packets, which no sender can tell from a queue.
fn seen(host: &LabHost, is_clear: impl Fn(&Frame) -> bool + Sync) -> Frame {
    const MOST: usize = 24;
    host.run(|| {
        let mut watcher = Watcher::new(Duration::from_millis(500), Filter::default(), Sort::Worst, 100).unwrap();
        let mut number = 0;
        loop {
            let frame = watcher.next_frame(&|| false).unwrap().unwrap();
            number += 1;
            if number == MOST || (number > 2 && is_clear(&frame)) {
                return frame;
            }
        }
    })
    .unwrap()
}

/// Whether the busiest connection's verdict is this one.
fn busiest_is(limiter: Limiter) -> impl Fn(&Frame) -> bool + Sync {
    move |frame| busiest(frame).limiter() == Some(limiter)
}

fn busiest(frame: &Frame) -> &Row {
    frame.rows.iter().max_by_key(|row| row.rate()).unwrap()
}

fn to(frame: &Frame, port: u16) -> &Row {
    frame.rows.iter().find(|row| row.peer.port() == port).unwrap()
}

fn subjects(row: &Row) -> Vec<Subject> {
    row.notes.iter().filter(|note| note.is_trouble).map(|note| note.subject).collect()
}

#[test]
fn what_each_connection_of_a_host_is_held_by_is_named_and_idle_ones_are_blamed_for_nothing() {
    let Some(_turn) = turn("what_each_connection_of_a_host_is_held_by_is_named") else { return };
    let lab = lab(Rate::from_bps(200_000_000));
    for port in [SINK, SLOW, ECHO, CREDIT] {
        serve(lab.host(Side::B), port);
    }
    // 65,536 B and less in 40 ms each: together a good part below what the path carries.
    client(&lab, SINK, Some(65_536), fill);
    client(&lab, SLOW, None, fill);
    client(&lab, ECHO, None, ask);
    client(&lab, CREDIT, None, with_credit);
    client(&lab, SINK, None, rest);
    thread::sleep(Duration::from_millis(1_500));
    let pinned = |frame: &Frame| {
        frame
            .rows
            .iter()
            .find(|row| {
                row.peer.port() == SINK && row.send_buffer.is_some() && row.sent_bps.is_some_and(|rate| rate.bps() > 0)
            })
            .cloned()
    };
    let frame = seen(lab.host(Side::A), |frame| {
        pinned(frame).and_then(|row| row.limiter()) == Some(Limiter::SendBuffer)
            && to(frame, SLOW).limiter() == Some(Limiter::ReceiveWindow)
            && to(frame, CREDIT).limiter() == Some(Limiter::Application)
    });
    let pinned = &pinned(&frame).unwrap();
    let diagnosis = pinned.diagnosis.as_ref().unwrap();
    assert_eq!(
        (diagnosis.limiter, diagnosis.detail),
        (Limiter::SendBuffer, Some(Detail::PinnedByApplication)),
        "{pinned:#?}"
    );
    assert_eq!(subjects(pinned), [Subject::SendBufferSet]);
    assert_eq!(pinned.owner.as_ref().unwrap().pid, std::process::id());
    assert!(pinned.seconds[&Limiter::SendBuffer] > 0.5, "{:?}", pinned.seconds);

    let slow = to(&frame, SLOW);
    assert_eq!(slow.limiter(), Some(Limiter::ReceiveWindow), "{slow:#?}");

    let own = to(&frame, CREDIT);
    assert_eq!(own.limiter(), Some(Limiter::Application), "{own:#?}");

    let idle = frame
        .rows
        .iter()
        .find(|row| row.peer.port() == SINK && row.sent_bps.is_some_and(|rate| rate.bps() == 0))
        .unwrap();
    for well in [idle, to(&frame, ECHO)] {
        let blamed = well.limiter().filter(|limiter| *limiter != Limiter::Application);
        assert_eq!((blamed, subjects(well)), (None, vec![]), "{well:#?}");
    }
}

#[test]
fn a_full_path_is_the_path_and_a_peer_without_scaling_is_named() {
    let Some(_turn) = turn("a_full_path_is_the_path_and_a_peer_without_scaling_is_named") else { return };
    let lab = lab(Rate::from_bps(50_000_000));
    serve(lab.host(Side::B), SINK);
    let off = [("net.ipv4.tcp_window_scaling".to_owned(), "0".to_owned())].into();
    lab.host(Side::B).apply(&off).unwrap();
    client(&lab, SINK, None, fill);
    thread::sleep(Duration::from_millis(1_000));
    let frame = seen(lab.host(Side::A), busiest_is(Limiter::ReceiveWindow));
    let row = to(&frame, SINK);
    let diagnosis = row.diagnosis.as_ref().unwrap();
    assert_eq!(
        (diagnosis.limiter, diagnosis.detail),
        (Limiter::ReceiveWindow, Some(Detail::ScalingAbsent)),
        "{row:#?}"
    );
    let note = row.notes.iter().find(|note| note.subject == Subject::NoScaling).unwrap();
    assert!(note.text.contains("the peer left it out"), "{note:?}");
    drop(lab);

    let lab = self::lab(Rate::from_bps(20_000_000));
    serve(lab.host(Side::B), SINK);
    client(&lab, SINK, None, fill);
    thread::sleep(Duration::from_millis(1_500));
    let frame = seen(lab.host(Side::A), busiest_is(Limiter::Path));
    let row = to(&frame, SINK);
    assert_eq!(row.limiter(), Some(Limiter::Path), "{row:#?}");
    assert_eq!(subjects(row), [], "{row:#?}");
}

#[test]
fn iperf3_with_64_kb_is_seen_as_what_it_is() {
    let Some(_turn) = turn("iperf3_with_64_kb_is_seen_as_what_it_is") else { return };
    // BBR paces just below the window, and CUBIC sends all of it at once.
    for congestion in ["cubic", "bbr"] {
        iperf3_with_64_kb(congestion);
    }
}

fn iperf3_with_64_kb(congestion: &str) {
    let lab = lab(Rate::from_bps(100_000_000));
    let start = |side: Side, words: &[&str]| {
        lab.host(side).command("iperf3").args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let Ok(mut server) = start(Side::B, &["-s", "-1"]) else {
        println!("skipped iperf3_with_64_kb_is_seen_as_what_it_is: iperf3 is not installed");
        return;
    };
    thread::sleep(Duration::from_millis(300));
    let address = lab.host(Side::B).address().to_string();
    let mut program = start(Side::A, &["-c", &address, "-w", "64K", "-t", "60", "-C", congestion]).unwrap();
    thread::sleep(Duration::from_millis(1_500));
    let frame = seen(lab.host(Side::A), busiest_is(Limiter::ReceiveWindow));
    let at_receiver = seen(lab.host(Side::B), busiest_is(Limiter::ReceiveWindow));
    for child in [&mut program, &mut server] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let row = busiest(&frame);
    let owner = row.owner.as_ref().unwrap();
    assert_eq!(owner.process, "iperf3");
    // With -w both ends set both buffers, and a 64 KB receive buffer's window is the smaller of the two bounds.
    assert_eq!(row.limiter(), Some(Limiter::ReceiveWindow), "{congestion}: {row:#?}");
    let note = row.notes.iter().find(|note| note.subject == Subject::SendBufferSet).unwrap();
    assert!(note.is_sure && !note.is_trouble, "{note:?}");
    let row = busiest(&at_receiver);
    let diagnosis = row.diagnosis.as_ref().unwrap();
    assert_eq!(
        (diagnosis.limiter, diagnosis.detail),
        (Limiter::ReceiveWindow, Some(Detail::PinnedByApplication)),
        "{row:#?}"
    );
    assert_eq!(subjects(row), [Subject::ReceiveBufferSet]);
    let row = busiest(&frame);
    for other in frame.rows.iter().filter(|other| other.local != row.local) {
        assert_eq!((other.limiter(), subjects(other)), (None, vec![]), "{other:#?}");
    }
}
