//! One history of two stacks: calls, segments, losses and forgeries, step by step, with what must hold after each. What
//! is *not* here: where the steps come from (property tests, the fuzzer).

#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "each user takes its part of it"
)]

use fullpipe_pair::{Link, Net, PORT, addr, byte, config};
use fullpipe_tcp::{
    heap::HeapStorage,
    profile::{Budgets, Keepalive, Profile},
    socket::{Endpoint, SocketOptions},
    stack::{ListenerId, SocketId, Stack},
    wire::{
        checksum::Checksum,
        ip::{self, Addresses, Packet},
        tcp::{self, CHECKSUM_AT},
    },
};
use fullpipe_units::Instant;

/// What happens next.
#[derive(Clone, Debug)]
pub enum Step {
    Connect {
        port: Option<u16>,
    },
    Accept,
    Write {
        socket: usize,
        len: usize,
    },
    Read {
        socket: usize,
        len: usize,
    },
    Shutdown {
        socket: usize,
    },
    Close {
        socket: usize,
    },
    Abort {
        socket: usize,
    },
    Options {
        socket: usize,
        budget: u16,
        no_nagle: bool,
        no_push: bool,
    },
    /// How long a peer may leave data unacknowledged, or be silent.
    Limits {
        socket: usize,
        user_timeout_ms: Option<u32>,
        reap_after_ms: Option<u32>,
        keepalive: bool,
    },
    /// The listener goes, or comes again.
    Listener,
    /// So many echo requests at once, whose answers want buffers before anything leaves.
    Echoes {
        host: usize,
        count: u8,
    },
    Run {
        us: u64,
    },
    Path {
        loss: u32,
        reorder: u32,
        duplicate: u32,
        mtu: usize,
    },
    Cut,
    Forge {
        host: usize,
        pick: usize,
        change: Change,
    },
    /// An ICMP error about a segment that `host` sent, its sequence number changed `by` so much.
    Icmp {
        host: usize,
        pick: usize,
        kind: u8,
        code: u8,
        mtu: u16,
        by: i32,
    },
}

/// What is changed in a segment that really went by, before it is retransmitted.
#[derive(Clone, Debug)]
pub enum Change {
    Flags(u8),
    Seq(i32),
    Ack(i32),
    Window(u16),
    Byte(Place, u8),
    Cut(Place),
    /// Without a checksum that fits.
    Damage(Place, u8),
}

/// A place in a packet of any length, in 2^32ths of it.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub u32);

impl Place {
    /// The place in `len` bytes; below `len` unless that is zero.
    fn index(self, len: usize) -> usize {
        ((len as u64 * u64::from(self.0)) >> 32) as usize
    }
}

/// A connection's end, and how far its streams have come; `None` where forgeries may have touched the content.
struct End {
    host: usize,
    id: SocketId,
    stream: u64,
    written: u64,
    read: u64,
}

pub struct History {
    net: Net,
    ends: Vec<End>,
    listener: Option<ListenerId>,
    v6: bool,
    forged: bool,
    seen: Vec<(usize, Vec<u8>)>,
}

/// What a profile gives, and fast open where it may be used.
fn options_of(profile: &Profile) -> SocketOptions {
    SocketOptions {
        fast_open: profile.fast_open.client || profile.fast_open.server,
        ..SocketOptions::from_profile(profile)
    }
}

impl History {
    pub fn new(seed: u64, profiles: [Profile; 2]) -> Self {
        Self::over(false, seed, profiles)
    }

    /// Over IPv6 or IPv4.
    pub fn over(v6: bool, seed: u64, profiles: [Profile; 2]) -> Self {
        let host = |at: u8| {
            let config = config(at, v6, 1500, profiles[usize::from(at)]);
            Stack::new(HeapStorage::new(6, 24, 1548), config)
        };
        let mut net = Net::new(seed, [Link::clean(5_000); 2], [host(0), host(1)]);
        let listener = net.hosts[1].listen(None, PORT, 3, options_of(&profiles[1])).expect("the first socket");
        Self { net, ends: Vec::new(), listener: Some(listener), v6, forged: false, seen: Vec::new() }
    }

    fn add(&mut self, host: usize, id: SocketId) {
        // Both ends of a connection derive the same stream numbers from its client's port.
        let Some(tuple) = self.net.hosts[host].tuple(id) else { return };
        let port = if host == 0 { tuple.local.port } else { tuple.remote.port };
        let stream = u64::from(port) * 2 + host as u64;
        self.ends.push(End { host, id, stream, written: 0, read: 0 });
    }

    /// Does one step; both ends send what they then have.
    pub fn apply(&mut self, step: &Step) {
        let now = self.net.now;
        match *step {
            Step::Connect { port } => {
                let options = options_of(&self.net.hosts[0].config().profile);
                let remote = Endpoint::new(addr(self.v6, 1), PORT);
                if let Ok(id) = self.net.hosts[0].connect(now, port, remote, options) {
                    self.add(0, id);
                    if options.fast_open {
                        // What is there before the SYN leaves goes with it.
                        self.write(self.ends.len() - 1, 700);
                    }
                }
            }
            Step::Accept => {
                if let Some(id) = self.listener.and_then(|listener| self.net.hosts[1].accept(now, listener)) {
                    self.add(1, id);
                }
            }
            Step::Write { socket, len } => self.write(socket, len),
            Step::Read { socket, len } => self.read(socket, len),
            Step::Shutdown { socket } => self.call(socket, |host, now, id| host.shutdown_write(now, id).is_ok()),
            Step::Close { socket } => {
                self.call(socket, |host, now, id| host.close(now, id).is_ok());
                self.forget(socket);
            }
            Step::Abort { socket } => {
                self.call(socket, |host, now, id| host.abort(now, id).is_ok());
                self.forget(socket);
            }
            Step::Options { socket, budget, no_nagle, no_push } => self.call(socket, |host, now, id| {
                let mut options = options_of(&host.config().profile);
                options.budgets = Budgets::all(budget);
                (options.no_nagle, options.no_push) = (no_nagle, no_push);
                host.set_options(now, id, options).is_ok()
            }),
            Step::Limits { socket, user_timeout_ms, reap_after_ms, keepalive } => self.call(socket, |host, now, id| {
                let keepalive = keepalive.then_some(Keepalive { idle_s: 2, interval_s: 1, probes: 2 });
                let options =
                    SocketOptions { user_timeout_ms, reap_after_ms, keepalive, ..options_of(&host.config().profile) };
                host.set_options(now, id, options).is_ok()
            }),
            Step::Listener => match self.listener.take() {
                Some(listener) => self.net.hosts[1].close_listener(now, listener),
                None => {
                    let host = &mut self.net.hosts[1];
                    self.listener = host.listen(None, PORT, 3, options_of(&host.config().profile)).ok();
                }
            },
            Step::Echoes { host, count } => {
                let bytes = self.echo(host);
                for _ in 0..count {
                    let _dropped_is_fine = self.net.hosts[host].on_packet(now, &bytes, false);
                }
                self.net.hosts[host].on_timeout(now);
            }
            Step::Icmp { host, pick, kind, code, mtu, by } => self.forge_icmp(host, pick, [kind, code], mtu, by),
            Step::Run { us } => self.run(us),
            Step::Path { loss, reorder, duplicate, mtu } => {
                for link in &mut self.net.links {
                    (link.loss, link.reorder, link.duplicate, link.mtu) = (loss, reorder, duplicate, mtu);
                }
            }
            Step::Cut => self.net.cut(),
            Step::Forge { host, pick, ref change } => self.forge(host, pick, change),
        }
        self.net.flush();
    }

    fn call(&mut self, socket: usize, call: impl FnOnce(&mut Stack<HeapStorage>, Instant, SocketId) -> bool) {
        let now = self.net.now;
        if let Some(end) = self.ends.get(socket) {
            let _gone_is_fine = call(&mut self.net.hosts[end.host], now, end.id);
        }
    }

    fn forget(&mut self, socket: usize) {
        if socket < self.ends.len() {
            self.ends.remove(socket);
        }
    }

    fn write(&mut self, socket: usize, len: usize) {
        let Some(end) = self.ends.get_mut(socket) else { return };
        let data: Vec<u8> = (0..len as u64).map(|at| byte(end.stream, end.written + at)).collect();
        if let Ok(took) = self.net.hosts[end.host].write(self.net.now, end.id, &data) {
            assert!(took <= len);
            end.written += took as u64;
        }
    }

    fn read(&mut self, socket: usize, len: usize) {
        let Some(end) = self.ends.get_mut(socket) else { return };
        let mut data = vec![0; len];
        if let Ok(got) = self.net.hosts[end.host].read(self.net.now, end.id, &mut data) {
            for got in &data[..got] {
                assert!(self.forged || *got == byte(end.stream ^ 1, end.read), "content at {}", end.read);
                end.read += 1;
            }
        }
    }

    fn run(&mut self, us: u64) {
        let until = Instant::from_nanos(self.net.now.as_nanos() + us * 1_000);
        let mut steps = 0;
        while self.net.step(until) {
            steps += 1;
            assert!(steps < 100_000, "the two ends don't come to rest");
        }
    }

    /// Sends a segment that went by to `host` again, changed.
    fn forge(&mut self, host: usize, pick: usize, change: &Change) {
        // Old segments as well as late ones.
        if self.seen.is_empty() || pick % 2 == 1 {
            self.seen.clone_from(&self.net.recorded);
        }
        let to_host: Vec<&Vec<u8>> = self.seen.iter().filter(|(to, _)| *to == host).map(|(_, bytes)| bytes).collect();
        let Some(bytes) = to_host.get(pick % to_host.len().max(1)) else { return };
        let mut bytes = (*bytes).clone();
        let field =
            |bytes: &[u8], at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let put = |bytes: &mut [u8], at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        let tcp = header_len(self.v6);
        if bytes.len() < tcp + 20 {
            return;
        }
        match *change {
            Change::Flags(flags) => bytes[tcp + 13] = flags,
            Change::Seq(by) => {
                let value = field(&bytes, tcp + 4).wrapping_add_signed(by);
                put(&mut bytes, tcp + 4, value);
            }
            Change::Ack(by) => {
                let value = field(&bytes, tcp + 8).wrapping_add_signed(by);
                put(&mut bytes, tcp + 8, value);
            }
            Change::Window(window) => bytes[tcp + 14..tcp + 16].copy_from_slice(&window.to_be_bytes()),
            Change::Byte(at, value) | Change::Damage(at, value) => {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        }
        if !matches!(change, Change::Damage(..)) {
            self.forged = true;
            repair(&mut bytes);
        }
        self.net.inject(host, &bytes);
    }

    /// An echo request to `host`.
    fn echo(&self, host: usize) -> Vec<u8> {
        let mut message = vec![if self.v6 { 128 } else { 8 }, 0, 0, 0, 0, 1, 0, 1];
        message.extend_from_slice(&[b'x'; 600]);
        self.icmp_packet(host, message)
    }

    fn forge_icmp(&mut self, host: usize, pick: usize, [kind, code]: [u8; 2], mtu: u16, by: i32) {
        let sent: Vec<&Vec<u8>> =
            self.net.recorded.iter().filter(|(to, _)| *to != host).map(|(_, bytes)| bytes).collect();
        let Some(quoted) = sent.get(pick % sent.len().max(1)) else { return };
        let tcp = header_len(self.v6);
        let Some(quoted) = quoted.get(..tcp + 8) else { return };
        let mut quoted = quoted.to_vec();
        let seq = [quoted[tcp + 4], quoted[tcp + 5], quoted[tcp + 6], quoted[tcp + 7]];
        quoted[tcp + 4..].copy_from_slice(&u32::from_be_bytes(seq).wrapping_add_signed(by).to_be_bytes());
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend_from_slice(&mtu.to_be_bytes());
        message.extend_from_slice(&quoted);
        let bytes = self.icmp_packet(host, message);
        self.net.inject(host, &bytes);
    }

    /// A packet around an ICMP message from the other host.
    fn icmp_packet(&self, host: usize, mut message: Vec<u8>) -> Vec<u8> {
        let addresses = Addresses { src: addr(self.v6, 1 - host as u8), dst: addr(self.v6, host as u8) };
        let protocol = if self.v6 { ip::ICMPV6 } else { ip::ICMP };
        let len = message.len();
        let sum = if self.v6 { addresses.pseudo_header(protocol, len as u32) } else { Checksum::new() };
        let sum = sum.bytes(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = vec![0; addresses.header_len()];
        addresses.write(&mut packet, ip::Fields { protocol, ttl: 64, ecn: ip::Ecn::NotEct, id: 0 }, len);
        packet.extend_from_slice(&message);
        packet
    }

    /// No buffer is lost.
    pub fn check(&mut self) {
        for host in &mut self.net.hosts {
            let count = host.pool().count();
            assert_eq!(host.free_count() + host.held_count(), count, "a buffer is lost");
        }
    }

    /// The path heals and everybody leaves: everything must come back.
    pub fn finish(mut self) {
        for link in &mut self.net.links {
            *link = Link::clean(5_000);
        }
        self.run(1_000_000);
        for end in &self.ends {
            let _gone_is_fine = self.net.hosts[end.host].abort(self.net.now, end.id);
        }
        if let Some(listener) = self.listener {
            self.net.hosts[1].close_listener(self.net.now, listener);
        }
        fullpipe_pair::settle(&mut self.net);
    }
}

/// Where TCP begins.
const fn header_len(v6: bool) -> usize {
    if v6 { 40 } else { 20 }
}

/// Makes lengths and checksums fit, so that the forgery is read.
pub fn repair(bytes: &mut [u8]) {
    if bytes.first().is_some_and(|first| first >> 4 == 6) {
        return repair_v6(bytes);
    }
    if bytes.len() < 40 || bytes[0] != 0x45 {
        return;
    }
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    bytes[10..12].fill(0);
    let sum = Checksum::new().bytes(&bytes[..20]).finish();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let Ok(packet) = Packet::parse(bytes) else { return };
    if packet.protocol != ip::TCP {
        return;
    }
    let addresses = Addresses { src: packet.src, dst: packet.dst };
    bytes[20 + CHECKSUM_AT..22 + CHECKSUM_AT].fill(0);
    let sum = tcp::checksum(&addresses, u32::from(len) - 20).bytes(&bytes[20..]).finish();
    bytes[20 + CHECKSUM_AT..22 + CHECKSUM_AT].copy_from_slice(&sum.to_be_bytes());
}

fn repair_v6(bytes: &mut [u8]) {
    if bytes.len() < 60 || bytes[6] != ip::TCP {
        return;
    }
    let len = (bytes.len() - 40) as u16;
    bytes[4..6].copy_from_slice(&len.to_be_bytes());
    let Ok(packet) = Packet::parse(bytes) else { return };
    let addresses = Addresses { src: packet.src, dst: packet.dst };
    bytes[40 + CHECKSUM_AT..42 + CHECKSUM_AT].fill(0);
    let sum = tcp::checksum(&addresses, len.into()).bytes(&bytes[40..]).finish();
    bytes[40 + CHECKSUM_AT..42 + CHECKSUM_AT].copy_from_slice(&sum.to_be_bytes());
}
