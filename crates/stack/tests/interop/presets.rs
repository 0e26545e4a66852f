//! What the presets do to messages and to bulk: segments, bytes on the wire, latency.

use std::{
    io::{Read, Write},
    thread,
    time::{Duration, Instant},
};

use fullpipe_path::HopSpec;
use fullpipe_tcp::socket::SocketOptions;
use fullpipe_units::Micros;

use crate::world::{Between, LIMIT, World, cubic, may_run};

const ONE_WAY: Micros = Micros::from_millis(10);
const MESSAGE: usize = 100;
const MESSAGES: usize = 40;
/// Between two messages: several go in one round trip of 20 ms.
const GAP: Duration = Duration::from_millis(4);
const BULK: usize = 400_000;
/// IPv4 and TCP with timestamps.
const HEADERS: u64 = 52;

/// What one preset did.
#[derive(Debug)]
struct Seen {
    segments: u32,
    wire_bytes: u64,
    /// From the write to the arrival of the last byte: the median message, or all of it.
    span: Duration,
}

fn world() -> World {
    let hop = HopSpec { delay: ONE_WAY, ..HopSpec::default() };
    World::new(&Between { hop, mtu: 1500, seed: 3, offload: false }, |_| {})
}

/// Writes messages now and then; the kernel notes when each was whole.
fn messages(world: &World, options: SocketOptions) -> Seen {
    let listener = world.kernel_listens(false, 5001);
    let connection = world.engine.connect_with(world.kernel(false, 5001), options, LIMIT).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    cubic(&peer);
    let reader = thread::spawn(move || {
        let mut message = [0; MESSAGE];
        (0..MESSAGES)
            .map(|_| {
                peer.read_exact(&mut message).unwrap();
                Instant::now()
            })
            .collect::<Vec<_>>()
    });
    let mut written = Vec::new();
    for _ in 0..MESSAGES {
        written.push(Instant::now());
        assert_eq!(connection.try_write(&[1; MESSAGE]).unwrap(), MESSAGE);
        thread::sleep(GAP);
    }
    let arrived = reader.join().unwrap();
    let mut latencies: Vec<Duration> =
        arrived.iter().zip(&written).map(|(at, from)| at.duration_since(*from)).collect();
    latencies.sort();
    seen(&connection.counts().unwrap(), latencies[MESSAGES / 2])
}

/// Writes much in small pieces.
fn bulk(world: &World, options: SocketOptions) -> Seen {
    let listener = world.kernel_listens(false, 5002);
    let mut connection = world.engine.connect_with(world.kernel(false, 5002), options, LIMIT).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    cubic(&peer);
    let reader = thread::spawn(move || std::io::copy(&mut peer, &mut std::io::sink()).unwrap());
    connection.set_timeout(Some(LIMIT));
    let start = Instant::now();
    for _ in 0..BULK / MESSAGE {
        connection.write_all(&[1; MESSAGE]).unwrap();
    }
    connection.shutdown_write().unwrap();
    assert_eq!(reader.join().unwrap(), BULK as u64);
    seen(&connection.counts().unwrap(), start.elapsed())
}

fn seen(counts: &fullpipe_tcp::socket::Counts, span: Duration) -> Seen {
    let segments = counts.segments_sent;
    Seen { segments, wire_bytes: counts.bytes_sent + u64::from(segments) * HEADERS, span }
}

#[test]
fn presets_trade_latency_for_segments() {
    if !may_run("presets_trade_latency_for_segments") {
        return;
    }
    let world = world();
    let default = world.options();
    let (low_latency, bulk_preset) = (default.low_latency(), default.bulk(43));
    let [nagle, quick, full] = [default, low_latency, bulk_preset].map(|options| messages(&world, options));
    println!("{MESSAGES} messages of {MESSAGE} B, 20 ms: default {nagle:?}, low latency {quick:?}, bulk {full:?}");
    // Each message its own segment; with Nagle those of one round trip share one.
    assert!(quick.segments >= MESSAGES as u32, "{quick:?}");
    assert!(nagle.segments < quick.segments && full.segments < quick.segments, "{nagle:?} {full:?}");
    assert!(quick.span < nagle.span && nagle.span < full.span, "{quick:?} {nagle:?} {full:?}");

    let [nagle, quick, full] =
        [default, SocketOptions { budgets: bulk_preset.budgets, ..low_latency }, bulk_preset].map(|o| bulk(&world, o));
    println!("{BULK} B in writes of {MESSAGE} B: default {nagle:?}, low latency {quick:?}, bulk {full:?}");
    // Full segments but for the last one, and the handshake and the end.
    assert!(full.segments <= BULK as u32 / 1448 + 6, "{full:?}");
    assert!(full.wire_bytes <= quick.wire_bytes, "{full:?} {quick:?}");
}
