//! A report that nobody may ever look at, in some 80 bytes: numbers of seven bits a byte, and of the counters only those
//! that are not zero. What is *not* here: judged connections, which are worth their room.

use fullpipe_diagnose::SynFacts;
use fullpipe_units::{Bytes, Micros, Rate};

use super::{ClockSetBack, Handshake, Report, Side};
use crate::{Address, Endpoint, Platform, connection::half::Counters};

/// IPv4 addresses as [`Address`] maps them begin with this.
const MAPPED: u128 = 0xFFFF_0000_0000;

/// Bits of the first byte.
mod bit {
    pub(super) const IPV4: u64 = 0;
    pub(super) const SIMULTANEOUS: u64 = 1;
    /// The side that sent a reset plus one: two bits.
    pub(super) const RESET_BY: u64 = 2;
}

/// No report takes more: 10 bytes for each number of at most 64 bits, of which a side has 30 and all else 15, and two
/// addresses.
const LONGEST: usize = 10 * (2 * 30 + 15) + 2 * 16;

/// Adds a report to `bytes`. Its number, and verdicts, are not part of it.
pub(super) fn pack(report: &Report, bytes: &mut Vec<u8>) {
    // Room for all, and what is over given back: a look for room with each byte takes longer than the byte.
    let from = bytes.len();
    bytes.resize(from + LONGEST, 0);
    let mut into = Packer { room: &mut bytes[from..], len: 0 };
    let is_ipv4 = [report.a, report.b].iter().all(|end| end.address.0 >> 32 == MAPPED >> 32);
    let reset_by = report.reset_by.map_or(0, |side| u64::from(side) + 1);
    into.number(
        u64::from(is_ipv4) << bit::IPV4
            | u64::from(report.handshake.simultaneous) << bit::SIMULTANEOUS
            | reset_by << bit::RESET_BY,
    );
    for end in [report.a, report.b] {
        into.address(end.address, is_ipv4);
        into.number(end.port.into());
    }
    into.number(report.outer.into());
    into.number(report.first_packet);
    into.number(report.started_ns);
    into.number(report.lasted.get());
    into.maybe(report.rtt.map(Micros::get));
    into.number(report.handshake.syns.into());
    for packet in report.handshake.packets {
        into.maybe(packet.map(|packet| packet.wrapping_sub(report.first_packet)));
    }
    into.maybe(report.handshake.took.map(Micros::get));
    into.number(report.copies);
    into.maybe(report.clock_set_back.map(|back| back.packet));
    into.number(report.clock_set_back.map_or(0, |back| back.by.get()));
    report.sides.iter().for_each(|side| into.side(side));
    let len = into.len;
    bytes.truncate(from + len);
}

/// What [`pack`] added at the beginning of `bytes`.
pub(super) fn unpack(bytes: &[u8]) -> Report {
    let mut from = Unpacker(bytes);
    let bits = from.number();
    let is_ipv4 = bits >> bit::IPV4 & 1 == 1;
    let [a, b] = [(); 2].map(|()| Endpoint { address: from.address(is_ipv4), port: from.number() as u16 });
    let outer = from.number() as u32;
    let first_packet = from.number();
    let started_ns = from.number();
    let lasted = Micros::new(from.number());
    let rtt = from.maybe().map(Micros::new);
    let syns = from.number() as u32;
    let packets = [(); 3].map(|()| from.maybe().map(|packet| packet.wrapping_add(first_packet)));
    let took = from.maybe().map(Micros::new);
    let copies = from.number();
    let (set_back, set_back_by) = (from.maybe(), Micros::new(from.number()));
    Report {
        number: 0,
        a,
        b,
        outer,
        first_packet,
        started_ns,
        lasted,
        rtt,
        handshake: Handshake { syns, packets, took, simultaneous: bits >> bit::SIMULTANEOUS & 1 == 1 },
        copies,
        clock_set_back: set_back.map(|packet| ClockSetBack { packet, by: set_back_by }),
        reset_by: (bits >> bit::RESET_BY & 3).checked_sub(1).map(|side| side as u8),
        sides: [(); 2].map(|()| from.side()),
    }
}

struct Packer<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl Packer<'_> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.room[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
        while number > 0x7F {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// `u64::MAX` is none; no count or time is that large.
    fn maybe(&mut self, number: Option<u64>) {
        self.number(number.map_or(0, |number| number.saturating_add(1)));
    }

    fn address(&mut self, Address(bits): Address, is_ipv4: bool) {
        let from = if is_ipv4 { 12 } else { 0 };
        bits.to_be_bytes()[from..].iter().for_each(|byte| self.byte(*byte));
    }

    fn side(&mut self, side: &Side) {
        let counts = counts(&side.counters);
        let mut set = counts.iter().enumerate().fold(0, |set, (place, count)| set | u64::from(*count > 0) << place);
        self.number(set);
        while set > 0 {
            self.number(counts[set.trailing_zeros() as usize % COUNTS]);
            set &= set - 1;
        }
        self.number(side.mss.into());
        match &side.syn {
            None => self.number(0),
            Some(syn) => {
                self.number(1 | u64::from(syn.sack_permitted) << 1 | u64::from(syn.timestamps) << 2);
                self.maybe(syn.mss.map(u64::from));
                self.maybe(syn.window_scale.map(u64::from));
                self.maybe(syn.window.map(u64::from));
            }
        }
        self.maybe(side.platform.and_then(|platform| platform.code()));
        self.maybe(side.away.map(Micros::get));
        self.number(side.sending.get());
    }
}

struct Unpacker<'a>(&'a [u8]);

impl Unpacker<'_> {
    fn number(&mut self) -> u64 {
        let (mut number, mut place) = (0, 0);
        while let [byte, rest @ ..] = self.0 {
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << (place & 63);
            place += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn maybe(&mut self) -> Option<u64> {
        self.number().checked_sub(1)
    }

    fn address(&mut self, is_ipv4: bool) -> Address {
        let length = if is_ipv4 { 4 } else { 16 };
        let (bytes, rest) = self.0.split_at_checked(length).unwrap_or_default();
        self.0 = rest;
        let bits = bytes.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        Address(if is_ipv4 { MAPPED | bits } else { bits })
    }

    fn side(&mut self) -> Side {
        let set = self.number();
        let mut all = [0; COUNTS];
        for (place, count) in all.iter_mut().enumerate() {
            if set >> place & 1 == 1 {
                *count = self.number();
            }
        }
        let counters = counters(all);
        let mss = self.number() as u32;
        let bits = self.number();
        let syn = (bits & 1 == 1).then(|| SynFacts {
            sack_permitted: bits & 2 != 0,
            timestamps: bits & 4 != 0,
            mss: self.maybe().map(|mss| mss as u16),
            window_scale: self.maybe().map(|scale| scale as u8),
            window: self.maybe().map(|window| window as u16),
        });
        let platform = self.maybe().and_then(Platform::coded);
        let away = self.maybe().map(Micros::new);
        let sending = Micros::new(self.number());
        let rate = Rate::from_bytes(Bytes::new(counters.carried), sending);
        Side { counters, mss, syn, platform, away, sending, rate, verdict: None }
    }
}

/// Fields of [`Counters`].
const COUNTS: usize = 21;

/// The fields in an order, and the other way round: the compiler sees to it that none is forgotten.
macro_rules! in_order {
    ($($field:ident),*; $($narrow:ident),*) => {
        const fn counts(counters: &Counters) -> [u64; COUNTS] {
            let Counters { $($field,)* $($narrow,)* } = *counters;
            [$($field,)* $($narrow as u64,)*]
        }

        const fn counters([$($field,)* $($narrow,)*]: [u64; COUNTS]) -> Counters {
            Counters { $($field,)* $($narrow: $narrow as u32,)* }
        }
    };
}

in_order!(
    packets, ip_bytes, data_packets, payload, carried, retransmissions, retransmitted, out_of_order, reordered, duplicate_acks,
    dsacks, timeouts, keep_alives, window_probes, zero_windows, unseen, initial_window, marked, largest_window, too_big;
    largest
);
