//! Common segments go a short way; here the same transfer is made on the long one, and all that leaves is compared.

#![expect(clippy::unwrap_used, reason = "tests")]

use core::{cell::Cell, net::Ipv4Addr, ops::ControlFlow, time::Duration};
use std::{collections::BTreeMap, thread_local, vec, vec::Vec};

use fullpipe_units::Instant;
use proptest::prelude::*;

use crate::{
    SecretKey,
    congestion::Algorithm,
    heap::HeapStorage,
    profile::{Budgets, Profile},
    socket::{Endpoint, SocketOptions, Tuple},
    stack::{Config, Datagram, Device, Entry, Plain, SocketId, Stack},
};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(true) };
}

pub(super) fn are_on() -> bool {
    ON.get()
}

const PORT: u16 = 80;
const CALLER: u16 = 9_999;
const MSS: u16 = 1_460;

/// A packet on the wire: its bytes, or a plain segment, which goes to its connection without them.
enum Packet {
    Bytes(Vec<u8>),
    Plain(Plain),
}

/// What left a host: when, its headers, and the length of its data.
type Left = (Instant, usize, Vec<u8>, usize);

struct World {
    hosts: [Stack<HeapStorage<[Entry; 3]>>; 2],
    /// By the time of arrival.
    wire: BTreeMap<(Instant, usize), (usize, Packet)>,
    /// The connection, seen from both hosts.
    ids: [Option<SocketId>; 2],
    left: Vec<Left>,
    now: Instant,
    seed: u64,
    /// One packet of so many is lost.
    loss: u64,
}

const fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, 1 + host as u8)
}

/// The connection, seen from a host.
fn tuple(host: usize) -> Tuple {
    let ends = [Endpoint::new(address(0).into(), CALLER), Endpoint::new(address(1).into(), PORT)];
    Tuple::new(ends[host], ends[1 - host])
}

/// Something between 0 and `most - 1`, always the same for the same two numbers.
const fn drawn(seed: u64, number: u64, most: u64) -> u64 {
    let mut x = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % most
}

impl World {
    fn new(profile: &Profile, seed: u64, loss: u64) -> Self {
        let host = |at: usize| {
            let device = Device { mtu: 1_500, checksum_offload: true, burst: 0 };
            let mut config = Config::new(address(at).into(), device, SecretKey([at as u8; 16]));
            config.profile = *profile;
            Stack::new(HeapStorage::overlaid([const { Entry::FREE }; 3], 800, MSS, 2, 100).remembering(), config)
        };
        let now = Instant::from_nanos(1_000_000_000);
        Self { hosts: [host(0), host(1)], wire: BTreeMap::new(), ids: [None; 2], left: Vec::new(), now, seed, loss }
    }

    fn launch(&mut self, host: usize, mut headers: Vec<u8>, data: usize, plain: Option<Plain>) {
        let number = self.left.len();
        self.left.push((self.now, host, headers.clone(), data));
        if self.loss > 0 && drawn(self.seed, number as u64, self.loss) == 0 {
            return;
        }
        // The link serialises, and now and then a packet is late.
        let late = if drawn(self.seed, number as u64, 50) == 1 { 300 } else { 0 };
        let at = self.now + Duration::from_micros(2_000 + late + data as u64 / 100);
        let packet = plain.map_or_else(
            || {
                headers.resize(headers.len() + data, 0);
                Packet::Bytes(headers)
            },
            Packet::Plain,
        );
        self.wire.insert((at, number), (1 - host, packet));
    }

    /// Everything that wants to leave does.
    fn flush(&mut self, host: usize) {
        let Profile { layout, ttl, .. } = self.hosts[host].config().profile;
        let tuple = tuple(host);
        let now = self.now;
        let mut gone = Vec::new();
        if are_on() {
            let answer = self.hosts[host].poll_datagrams(now, |departing| {
                let (datagram, plain) = match departing.plain() {
                    Ok(plain) => (plain.datagram(tuple, ttl), Some(plain)),
                    Err(departing) => {
                        let mut datagram = Datagram::EMPTY;
                        departing.fill(&mut datagram);
                        (datagram, None)
                    }
                };
                let (bytes, len) = datagram.headers(&layout);
                assert!(plain.is_none_or(|plain| plain.len() == datagram.len() && len == datagram.header_len.into()));
                gone.push((bytes[..len].to_vec(), datagram.data_len as usize, plain));
                ControlFlow::Continue(())
            });
            assert!(answer.is_none());
        } else {
            while let Some(packet) = self.hosts[host].poll_transmit(now) {
                gone.push((packet.headers().to_vec(), packet.len() - packet.headers().len(), None));
            }
        }
        for (headers, data, plain) in gone {
            self.launch(host, headers, data, plain);
        }
    }

    /// A packet arrives.
    fn deliver(&mut self, host: usize, packet: Packet) {
        let packet = match packet {
            Packet::Bytes(packet) => packet,
            Packet::Plain(plain) => {
                let data = vec![0; plain.data_len() as usize];
                let stack = &mut self.hosts[host];
                if !self.ids[host].is_some_and(|id| stack.on_plain(self.now, id, &plain, &data)) {
                    stack.on_datagram(self.now, &plain.datagram(tuple(1 - host), 64), &data).unwrap();
                }
                return;
            }
        };
        self.hosts[host].on_packet(self.now, &packet, true).unwrap();
    }

    fn run(&mut self, writes: &[usize]) {
        let mut options = SocketOptions::from_profile(&self.hosts[0].config().profile);
        let sender =
            self.hosts[0].connect(self.now, Some(CALLER), Endpoint::new(address(1).into(), PORT), options).unwrap();
        options.discards = are_on();
        let listener = self.hosts[1].listen(None, PORT, 1, options).unwrap();
        self.ids[0] = Some(sender);
        let (mut writes, mut rest) = (writes.iter(), 0);
        for _ in 0..20_000 {
            if rest == 0 {
                rest = writes.next().copied().unwrap_or(0);
            }
            if rest > 0 {
                rest -= self.hosts[0].write(self.now, sender, &vec![0; rest]).unwrap_or(0);
            }
            if rest == 0 && writes.len() == 0 {
                self.hosts[0].shutdown_write(self.now, sender).ok();
            }
            self.ids[1] = self.ids[1].or_else(|| self.hosts[1].accept(self.now, listener));
            while let Some(id) = self.ids[1]
                && self.hosts[1].discard(self.now, id, 1 << 17).is_ok_and(|len| len > 0)
            {}
            (0..2).for_each(|host| self.flush(host));
            let timers = [0, 1].map(|host| self.hosts[host].next_timeout().unwrap_or(Instant::FAR_FUTURE));
            let arrival = self.wire.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
            let next = arrival.min(timers[0]).min(timers[1]);
            if next == Instant::FAR_FUTURE {
                break;
            }
            self.now = self.now.max(next);
            if arrival <= self.now {
                let (_, (host, packet)) = self.wire.pop_first().unwrap();
                self.deliver(host, packet);
            } else {
                (0..2).for_each(|host| self.hosts[host].on_timeout(self.now));
            }
        }
    }
}

/// All that leaves both hosts in a transfer of these writes.
fn transfer(profile: &Profile, seed: u64, loss: u64, writes: &[usize], short: bool) -> Vec<Left> {
    ON.set(short);
    let mut world = World::new(profile, seed, loss);
    world.run(writes);
    ON.set(true);
    world.left
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_differs_on_the_short_ways(
        seed: u64,
        loss in prop::sample::select(vec![0, 300, 30]),
        writes in prop::collection::vec(1_usize..200_000, 1..8),
        platform in 0..3_usize,
        congestion in prop::sample::select(vec![Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr]),
        timestamps: bool,
        sack: bool,
    ) {
        let profile = [Profile::DEFAULT, Profile::LINUX, Profile::FREEBSD][platform];
        let budgets = Budgets { receive: 100, out_of_order: 100, transmit: 200, unacknowledged: 200 };
        let profile = Profile { congestion, timestamps, sack, budgets, ..profile };
        let long = transfer(&profile, seed, loss, &writes, false);
        let short = transfer(&profile, seed, loss, &writes, true);
        let sent: usize = long.iter().map(|(.., data)| data).sum();
        prop_assert!(sent >= writes.iter().sum::<usize>());
        for (number, (long, short)) in long.iter().zip(&short).enumerate() {
            prop_assert_eq!(long, short, "packet {}", number);
        }
        prop_assert_eq!(long.len(), short.len());
    }
}
