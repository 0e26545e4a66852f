//! The virtual-time driver of the TCP engine: two hosts, a link each way, one clock that moves from event to event, and
//! streams whose every byte is compared. Each run is decided by its seed.
//!
//! The engine's own tests and the fuzzer drive it with this; so can whoever changes the engine. What happens otherwise than it
//! must panics. What is *not* here: queues with policies, shapers and scenarios (`path`), platforms and settings (`sim`), and a
//! clock.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test that drives it")]

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use fullpipe_tcp::{
    SecretKey,
    heap::HeapStorage,
    profile::Profile,
    socket::{Endpoint, SocketOptions},
    stack::{Config, Device, Dropped, ListenerId, SocketId, Stack},
    wire::{
        checksum::Checksum,
        ip::{self, Packet},
        tcp::{self, Segment},
    },
};
use fullpipe_units::Instant;

/// Random numbers of a seed: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any number below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n
    }

    /// True in so many of a million cases.
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(per_million)
    }
}

/// One direction of the path.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Of every packet.
    pub delay_us: u64,
    /// Up to so much more, at random.
    pub jitter_us: u64,
    /// Bits per second; zero for no limit.
    pub rate_bps: u64,
    /// Packets that may wait for the rate.
    pub queue: u64,
    /// In millionths.
    pub loss: u32,
    /// Packets that arrive twice, in millionths.
    pub duplicate: u32,
    /// Packets held back by one to three milliseconds, in millionths.
    pub reorder: u32,
    /// Packets that get the CE mark if they are ECN-capable, in millionths.
    pub mark: u32,
    /// The largest packet that passes, in bytes.
    pub mtu: usize,
}

impl Link {
    /// A link that only delays.
    pub const fn clean(delay_us: u64) -> Self {
        Self {
            delay_us,
            jitter_us: 0,
            rate_bps: 0,
            queue: 1_000,
            loss: 0,
            duplicate: 0,
            reorder: 0,
            mark: 0,
            mtu: 65_535,
        }
    }
}

/// The address of a host.
#[must_use]
pub fn addr(v6: bool, host: u8) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host)).into()
    } else {
        Ipv4Addr::new(192, 0, 2, host).into()
    }
}

/// What a host is set up with.
#[must_use]
pub fn config(host: u8, v6: bool, mtu: u16, profile: Profile) -> Config {
    let mut config = Config::new(addr(v6, host), Device::plain(mtu), SecretKey([host; 16]));
    config.profile = profile;
    config
}

/// A packet under way: when it arrives, its number, the host it goes to.
type Flying = Reverse<(u64, u64, usize, Vec<u8>)>;

/// Two hosts and what is between them.
#[derive(Debug)]
pub struct Net {
    /// The clock of all.
    pub now: Instant,
    /// The hosts.
    pub hosts: [Stack<HeapStorage>; 2],
    /// What each host sends into.
    pub links: [Link; 2],
    /// Decides about losses and delays.
    pub random: Random,
    /// Packets that were sent.
    pub packets: u64,
    /// Of these got lost.
    pub dropped: u64,
    /// Packets that arrived at each host.
    pub delivered_segments: [u64; 2],
    /// The latest packets that hosts sent, and to which host.
    pub recorded: Vec<(usize, Vec<u8>)>,
    flying: BinaryHeap<Flying>,
    number: u64,
    free_at: [u64; 2],
    /// Called for every packet that a host sends: microseconds, host, packet.
    pub trace: Option<fn(u64, usize, &[u8])>,
}

impl Net {
    /// Two hosts that have said nothing yet.
    #[must_use]
    pub fn new(seed: u64, links: [Link; 2], hosts: [Stack<HeapStorage>; 2]) -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000),
            hosts,
            links,
            random: Random(seed),
            packets: 0,
            dropped: 0,
            delivered_segments: [0; 2],
            recorded: Vec::new(),
            flying: BinaryHeap::new(),
            number: 0,
            free_at: [0; 2],
            trace: None,
        }
    }

    /// Lets both hosts send what they have.
    pub fn flush(&mut self) {
        for host in 0..2 {
            while let Some(packet) = self.hosts[host].poll_transmit(self.now) {
                let mut bytes = vec![0; packet.len()];
                packet.copy_to(&mut bytes).unwrap();
                let (split, headers) = (packet.split_into(), packet.headers().len());
                assert!(split.is_none() || packet.needs_checksum(), "a device that splits makes checksums too");
                let pieces = if packet.needs_checksum() {
                    split_as_a_device(&bytes, headers, split.map_or(usize::MAX, usize::from))
                } else {
                    vec![bytes]
                };
                for bytes in pieces {
                    if let Some(trace) = self.trace {
                        trace(self.now.as_nanos() / 1_000, host, &bytes);
                    }
                    self.launch(host, bytes);
                }
            }
        }
    }

    fn launch(&mut self, from: usize, mut bytes: Vec<u8>) {
        let link = self.links[from];
        self.packets += 1;
        if self.recorded.len() >= 64 {
            self.recorded.remove(0);
        }
        self.recorded.push((1 - from, bytes.clone()));
        if bytes.len() > link.mtu || self.random.chance(link.loss) {
            self.dropped += 1;
            return;
        }
        let now = self.now.as_nanos();
        let mut leaves = now;
        if let Some(time) = (bytes.len() as u64 * 8_000_000_000).checked_div(link.rate_bps) {
            let start = self.free_at[from].max(now);
            if (start - now) / time.max(1) > link.queue {
                self.dropped += 1;
                return;
            }
            self.free_at[from] = start + time;
            leaves = start + time;
        }
        if self.random.chance(link.mark) {
            mark_ce(&mut bytes);
        }
        let copies = 1 + u32::from(self.random.chance(link.duplicate));
        for _ in 0..copies {
            let mut at = leaves + link.delay_us * 1_000;
            if link.jitter_us > 0 {
                at += self.random.below(link.jitter_us * 1_000);
            }
            if self.random.chance(link.reorder) {
                at += 1_000_000 + self.random.below(2_000_000);
            }
            self.number += 1;
            self.flying.push(Reverse((at, self.number, 1 - from, bytes.clone())));
        }
    }

    /// When something happens next.
    pub fn next_event(&mut self) -> Option<Instant> {
        let arrival = self.flying.peek().map(|Reverse((at, ..))| Instant::from_nanos(*at));
        let timers = self.hosts.iter_mut().filter_map(Stack::next_timeout).min();
        [arrival, timers].into_iter().flatten().min()
    }

    /// Moves to the next event and handles it; false where there is none before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let Some(at) = self.next_event().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= self.now.as_nanos()) {
            let Some(Reverse((_, _, host, bytes))) = self.flying.pop() else { break };
            self.delivered_segments[host] += 1;
            // A stack only sends what a stack can read; the answer to a forged address has no taker.
            let taken = self.hosts[host].on_packet(self.now, &bytes, false);
            assert!(matches!(taken, Ok(()) | Err(Dropped::Address)), "{taken:?}");
            // As packets come one by one, so do the answers.
            self.flush();
        }
        for host in &mut self.hosts {
            host.on_timeout(self.now);
        }
        self.flush();
        true
    }

    /// Handles all that happens within that time.
    pub fn run_for(&mut self, us: u64) {
        let until = Instant::from_nanos(self.now.as_nanos() + us * 1_000);
        while self.step(until) {}
    }

    /// Delivers packets now under way to nobody.
    pub fn cut(&mut self) {
        self.flying.clear();
    }

    /// Injects a packet to a host.
    pub fn inject(&mut self, host: usize, bytes: &[u8]) {
        let _counted = self.hosts[host].on_packet(self.now, bytes, false);
        self.flush();
    }
}

/// Splits a large IPv4 segment as a network card does: `headers` bytes of headers before each `size` bytes of data.
fn split_as_a_device(bytes: &[u8], headers: usize, size: usize) -> Vec<Vec<u8>> {
    let (head, data) = bytes.split_at(headers);
    let seq = u32::from_be_bytes([head[24], head[25], head[26], head[27]]);
    let count = data.len().div_ceil(size).max(1);
    let piece = |(at, data): (usize, &[u8])| {
        let mut piece = [head, data].concat();
        let len = piece.len();
        piece[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        piece[10..12].fill(0);
        let sum = Checksum::new().bytes(&piece[..20]).finish();
        piece[10..12].copy_from_slice(&sum.to_be_bytes());
        piece[24..28].copy_from_slice(&seq.wrapping_add((at as u32).wrapping_mul(size as u32)).to_be_bytes());
        if at + 1 < count {
            // FIN and PSH belong to the last segment only.
            piece[33] &= !0x09;
        }
        if at > 0 {
            // CWR to the first only (RFC 3168, section 6.1.2).
            piece[33] &= !0x80;
        }
        let addresses = {
            let packet = Packet::parse(&piece).unwrap();
            ip::Addresses { src: packet.src, dst: packet.dst }
        };
        piece[36..38].fill(0);
        let sum = tcp::checksum(&addresses, len as u32 - 20).bytes(&piece[20..]).finish();
        piece[36..38].copy_from_slice(&sum.to_be_bytes());
        piece
    };
    let pieces: Vec<&[u8]> = if data.is_empty() { vec![data] } else { data.chunks(size).collect() };
    pieces.into_iter().enumerate().map(piece).collect()
}

fn mark_ce(bytes: &mut [u8]) {
    if bytes[0] >> 4 == 4 && bytes[1] & 3 != 0 {
        bytes[1] |= 3;
        bytes[10..12].fill(0);
        let sum = Checksum::new().bytes(&bytes[..20]).finish();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The byte at a place of a stream: no two streams and no two shifts of one are alike.
#[must_use]
pub fn byte(stream: u64, at: u64) -> u8 {
    let mut x = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 56) as u8
}

/// One direction of a transfer.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Which stream's bytes it carries.
    pub stream: u64,
    /// How many, in bytes.
    pub size: u64,
    /// Bytes that the sender took.
    pub written: u64,
    /// Bytes that were read and compared.
    pub read: u64,
    /// The reader has seen the end.
    pub ended: bool,
    /// Bytes per write, and per read.
    pub chunk: usize,
    /// When the reader saw the end.
    pub done_at: Option<Instant>,
}

impl Flow {
    /// A direction that carries `size` bytes of a stream.
    #[must_use]
    pub fn new(stream: u64, size: u64) -> Self {
        Self { stream, size, written: 0, read: 0, ended: false, chunk: 16_384, done_at: None }
    }

    /// Writes what fits; closes the direction at the end.
    pub fn pump_out(&mut self, net: &mut Net, host: usize, id: SocketId) {
        let mut chunk = vec![0; self.chunk];
        if self.size == 0 {
            net.hosts[host].shutdown_write(net.now, id).unwrap();
        }
        while self.written < self.size {
            let len = (self.size - self.written).min(self.chunk as u64) as usize;
            for (offset, place) in chunk[..len].iter_mut().enumerate() {
                *place = byte(self.stream, self.written + offset as u64);
            }
            let took = net.hosts[host].write(net.now, id, &chunk[..len]).unwrap();
            self.written += took as u64;
            if self.written == self.size {
                net.hosts[host].shutdown_write(net.now, id).unwrap();
            }
            if took < len {
                break;
            }
        }
    }

    /// Reads and compares what has arrived.
    pub fn pump_in(&mut self, net: &mut Net, host: usize, id: SocketId) {
        let mut chunk = vec![0; self.chunk];
        while !self.ended {
            match net.hosts[host].read(net.now, id, &mut chunk) {
                Ok(0) => {
                    self.ended = true;
                    self.done_at = Some(net.now);
                    assert_eq!(self.read, self.size, "the stream ended early");
                }
                Ok(len) => {
                    for (offset, got) in chunk[..len].iter().enumerate() {
                        assert_eq!(*got, byte(self.stream, self.read + offset as u64), "at {}", self.read);
                    }
                    self.read += len as u64;
                }
                Err(fullpipe_tcp::stack::SocketError::WouldBlock) => break,
                Err(error) => panic!("{error} after {} bytes", self.read),
            }
        }
    }
}

/// Where host 1 listens.
pub const PORT: u16 = 80;

/// Opens a connection from host 0 to host 1 and returns both ends.
pub fn open(net: &mut Net, v6: bool, options: [SocketOptions; 2]) -> (SocketId, SocketId, ListenerId) {
    let listener = net.hosts[1].listen(None, PORT, 16, options[1]).unwrap();
    let remote = Endpoint::new(addr(v6, 1), PORT);
    let client = net.hosts[0].connect(net.now, None, remote, options[0]).unwrap();
    let server = loop {
        if let Some(server) = net.hosts[1].accept(net.now, listener) {
            break server;
        }
        assert!(net.step(Instant::from_nanos(net.now.as_nanos() + 600_000_000_000)), "no connection");
        assert!(net.hosts[0].socket(client).is_some_and(|socket| socket.failure().is_none()), "the handshake failed");
    };
    (client, server, listener)
}

/// Runs both directions to their ends, closes both ends, and checks that every buffer and entry came back.
pub fn transfer(net: &mut Net, ends: (SocketId, SocketId, ListenerId), flows: &mut [Flow; 2]) {
    let ids = [ends.0, ends.1];
    let deadline = Instant::from_nanos(net.now.as_nanos() + 7_200_000_000_000);
    while !(flows[0].ended && flows[1].ended) {
        for host in 0..2 {
            flows[host].pump_out(net, host, ids[host]);
            flows[1 - host].pump_in(net, host, ids[host]);
        }
        net.flush();
        let moved = net.step(deadline);
        if !moved {
            for (host, id) in net.hosts.iter_mut().zip(ids) {
                eprintln!("{:?} {:?}", host.info(id), host.socket(id).map(|socket| *socket.counts()));
            }
            panic!("nothing happens any more: {flows:?}");
        }
    }
    for (host, id) in net.hosts.iter_mut().zip(ids) {
        host.close(net.now, id).unwrap();
    }
    net.hosts[1].close_listener(net.now, ends.2);
    settle(net);
}

/// Waits until all connections are gone; then every buffer must be free.
pub fn settle(net: &mut Net) {
    net.run_for(3_600_000_000);
    for host in 0..2 {
        assert_eq!(net.hosts[host].sockets_in_use(), 0, "host {host} has sockets left");
        let count = net.hosts[host].pool().count();
        assert_eq!(net.hosts[host].free_count(), count, "host {host} has lost buffers");
    }
}

/// Prints a TCP packet as tcpdump would, roughly.
pub fn print(us: u64, host: usize, bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let Ok(segment) = Segment::parse(&packet, true) else { return };
    eprintln!(
        "{:>10} {} {:?} seq {} len {} ack {} win {} sack {:?} ts {:?}",
        us,
        if host == 0 { ">" } else { "<" },
        segment.flags,
        segment.seq.get(),
        segment.payload.len(),
        segment.ack.get(),
        segment.window,
        segment.options.sack.as_slice().iter().map(|b| (b.start.get(), b.end.get())).collect::<Vec<_>>(),
        segment.options.timestamps,
    );
}
