//! Many connections, and peers that die: whatever happens, the pool is whole again.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

use fullpipe_path::HopSpec;
use fullpipe_stack::session::{self, Service, Until};
use fullpipe_tcp::{profile::Budgets, socket::SocketOptions};
use fullpipe_units::Micros;

use crate::world::{Between, LIMIT, World, cubic, may_run};

const EACH_WAY: u32 = 500;
const MESSAGE: &[u8] = b"through both stacks and back";

fn between() -> Between {
    let hop = HopSpec { delay: Micros::new(500), ..HopSpec::default() };
    Between { hop, mtu: 1500, seed: 7, offload: true }
}

/// Sends a message, ends its side and reads it back.
fn ask(mut stream: TcpStream) {
    cubic(&stream);
    stream.write_all(MESSAGE).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert_eq!(back, MESSAGE);
}

fn answer(mut stream: TcpStream) {
    cubic(&stream);
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    stream.write_all(&all).unwrap();
}

#[test]
fn a_thousand_connections_leave_nothing_behind() {
    if !may_run("a_thousand_connections_leave_nothing_behind") {
        return;
    }
    // The engine closes first on half of them: TIME-WAIT keeps an entry for a minute, and no buffer.
    let world = World::new(&between(), |settings| settings.sockets = 1_100);
    let options = world.options();
    let listener = world.kernel_listens(false, 5001);
    let stop = AtomicBool::new(false);
    let until = Until { time: Instant::now() + LIMIT, stop: &stop };
    thread::scope(|scope| {
        scope.spawn(|| listener.incoming().take(EACH_WAY as usize).for_each(|stream| answer(stream.unwrap())));
        let served =
            scope.spawn(|| session::serve(&world.engine, 5002, options, Service::Echo, Some(EACH_WAY), &until));
        scope.spawn(|| {
            let mut waited = 0;
            for _ in 0..EACH_WAY {
                let stream = loop {
                    match world.kernel_connects(false, 5002) {
                        Ok(stream) => break stream,
                        // The engine is about to listen.
                        Err(error) if waited < 100 => {
                            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
                            waited += 1;
                            thread::sleep(Duration::from_millis(10));
                        }
                        Err(error) => panic!("{error}"),
                    }
                };
                ask(stream);
            }
        });
        for _ in 0..EACH_WAY {
            let mut connection = world.engine.connect_with(world.kernel(false, 5001), options, LIMIT).unwrap();
            connection.set_timeout(Some(LIMIT));
            connection.write_all(MESSAGE).unwrap();
            connection.shutdown_write().unwrap();
            let mut back = Vec::new();
            connection.read_to_end(&mut back).unwrap();
            assert_eq!(back, MESSAGE);
        }
        let sessions = served.join().unwrap().unwrap();
        assert_eq!(sessions.len(), EACH_WAY as usize);
        assert!(sessions.iter().all(|session| session.failure.is_none()));
    });
    assert!(world.engine.settle(LIMIT));
    assert!(world.pool_is_whole());
}

#[test]
fn a_peer_that_resets_gives_its_buffers_back() {
    if !may_run("a_peer_that_resets_gives_its_buffers_back") {
        return;
    }
    let world = World::new(&between(), |_| {});
    let listener = world.kernel_listens(true, 5001);
    for _ in 0..20 {
        let options = SocketOptions { budgets: Budgets::all(43), ..world.options() };
        let mut connection = world.engine.connect_with(world.kernel(true, 5001), options, LIMIT).unwrap();
        let (peer, _) = listener.accept().unwrap();
        connection.set_timeout(Some(LIMIT));
        connection.write_all(&[7; 40_000]).unwrap();
        // A program that is killed: what it had not read makes its kernel reset.
        drop(peer);
        let failed = loop {
            if let Err(error) = connection.write(&[7; 4_000]) {
                break error;
            }
        };
        assert_eq!(failed.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(world.pool_is_whole(), "the application still holds the connection");
    }
}

#[test]
fn peers_that_vanish_give_their_buffers_back() {
    if !may_run("peers_that_vanish_give_their_buffers_back") {
        return;
    }
    let world = World::new(&between(), |_| {});
    let peer: SocketAddr = world.kernel(false, 5001);
    let listener = world.kernel_listens(false, 5001);
    let options = SocketOptions { reap_after_ms: Some(1_500), ..world.options() };
    let mut connections = Vec::new();
    let mut peers = Vec::new();
    for _ in 0..20 {
        connections.push(world.engine.connect_with(peer, options, LIMIT).unwrap());
        peers.push(listener.accept().unwrap().0);
    }
    // Power off: nothing goes either way any more.
    world.lab.stall(Duration::from_secs(6));
    for connection in &connections {
        assert!(connection.try_write(&[7; 7_000]).unwrap() > 0);
    }
    let held = world.engine.with(|stack, _| stack.pool().count() - stack.pool().free_count());
    assert!(held >= 80, "{held}");
    let start = Instant::now();
    assert!(world.pool_is_whole());
    println!("{held} buffers of 20 dead peers were back after {:.1} s", start.elapsed().as_secs_f64());
    for connection in &mut connections {
        assert_eq!(connection.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    }
}

#[test]
fn a_session_with_a_peer_that_vanished_ends_with_the_connection_and_says_so() {
    if !may_run("a_session_with_a_peer_that_vanished_ends_with_the_connection_and_says_so") {
        return;
    }
    let world = World::new(&between(), |_| {});
    let peer = world.kernel(false, 5001);
    let listener = world.kernel_listens(false, 5001);
    let options = SocketOptions { reap_after_ms: Some(500), ..world.options() };
    let stop = AtomicBool::new(false);
    let until = Until { time: Instant::now() + LIMIT, stop: &stop };
    let session = session::connect(&world.engine, peer, options, Service::Discard, &until).unwrap();
    drop(listener);
    let failure = session.failure.unwrap();
    assert!(failure.contains("reading from 10."), "{failure}");
    assert!(until.time > Instant::now(), "it went on after the connection's end: {failure}");
}
