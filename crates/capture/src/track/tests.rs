//! Which segments belong to one connection, and that the room they take is bounded.

use core::net::{IpAddr, Ipv4Addr};

use fullpipe_units::SeqNum;
use proptest::prelude::*;

use super::*;
use crate::{Endpoint, Flags, Flow, LinkStamp, Network};

fn end(host: u8, port: u16) -> Endpoint {
    Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)).into(), port }
}

fn segment(at_ns: u64, port: u16, flags: Flags, seq: u32, len: u32) -> Segment<'static> {
    Segment {
        number: at_ns,
        at_ns,
        flow: Flow { from: end(1, port), to: end(2, 80), outer: 0 },
        network: Network { length: len + 40, ..Network::default() },
        link: LinkStamp(0),
        seq: SeqNum::new(seq),
        ack: SeqNum::new(0),
        flags,
        window: 1_000,
        payload_len: len,
        options: &[],
        options_cut: false,
    }
}

#[test]
fn a_port_used_again_is_another_connection_and_a_repeated_syn_is_not() {
    let mut tracker = Tracker::new(1, Keep::default());
    let second = 1_000_000_000;
    tracker.segment(&segment(1, 5_000, Flags::SYN, 100, 0));
    tracker.segment(&segment(second, 5_000, Flags::SYN, 100, 0));
    tracker.segment(&segment(second + 1, 5_000, Flags::ACK, 101, 10));
    tracker.segment(&segment(second + 2, 5_000, Flags::SYN, 9_000, 0));
    tracker.segment(&segment(second + 3, 5_000, Flags::ACK, 9_001, 10));
    let found = tracker.finish();
    assert_eq!(found.connections.iter().map(|report| report.packets()).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(found.connections.get(0).unwrap().handshake.syns, 2);
}

#[test]
fn a_syn_that_crosses_another_is_the_same_connection() {
    let mut tracker = Tracker::new(1, Keep::default());
    let syn = segment(1, 5_000, Flags::SYN, 100, 0);
    tracker.segment(&syn);
    tracker.segment(&Segment { flow: syn.flow.reversed(), seq: SeqNum::new(700), at_ns: 2, ..syn });
    let found = tracker.finish();
    assert_eq!(found.connections.len(), 1);
    assert!(found.connections.get(0).unwrap().handshake.simultaneous);
}

#[test]
fn a_long_connection_is_counted_from_its_first_segment_on() {
    let mut tracker = Tracker::new(1, Keep { transfers: true });
    tracker.segment(&segment(1, 5_000, Flags::SYN, 0, 0));
    for step in 0..1_000_u32 {
        tracker.segment(&segment(1_000_000 * u64::from(step + 1), 5_000, Flags::ACK, 1 + step * 100, 100));
    }
    let found = tracker.finish();
    let report = found.connections.get(0).unwrap();
    let side = report.main_side();
    assert_eq!((side.counters.payload, side.counters.data_packets), (100_000, 1_000));
    assert!(side.verdict.is_some());
}

/// A connection of five segments that both ends close.
fn short(tracker: &mut Tracker, number: u32, at_ns: u64) {
    let flow = Flow {
        from: Endpoint {
            address: IpAddr::V4(Ipv4Addr::from(0x0A01_0000 + number / 50_000)).into(),
            port: number as u16,
        },
        to: end(2, 80),
        outer: 0,
    };
    for (step, flags, len, back) in
        [(0, 0x02, 0, false), (1, 0x12, 0, true), (2, 0x10, 300, false), (3, 0x11, 0, false), (4, 0x11, 900, true)]
    {
        let flow = if back { flow.reversed() } else { flow };
        tracker.segment(&Segment { flow, ..segment(at_ns + step * 1_000, 0, Flags(flags), step as u32 * 400, len) });
    }
}

#[test]
fn connections_that_are_over_make_room_for_others() {
    let mut tracker = Tracker::new(1, Keep::default());
    // 400 a second for 300 s; each is over 60 s after its end.
    for number in 0..120_000 {
        short(&mut tracker, number, u64::from(number) * 2_500_000);
    }
    let places: usize = tracker.followers.iter().map(Follower::places).sum();
    assert!(places < 60_000, "{places} are kept of 24,000 that are not over, and as many until the scan comes");
    let found = tracker.finish();
    assert_eq!(found.connections.len(), 120_000);
    assert!(found.connections.iter().all(|report| report.payload().get() == 1_200));
}

/// A connection that carries 40 segments in 120 ms, of which each is acknowledged some 10 ms later, and that both ends close.
fn long(tracker: &mut Tracker, port: u16, at_ns: u64) {
    let there = segment(at_ns, port, Flags::SYN, 100, 0);
    let back = Segment { flow: there.flow.reversed(), seq: SeqNum::new(700), ..there };
    let ms = 1_000_000;
    tracker.segment(&there);
    tracker.segment(&Segment { at_ns: at_ns + 20 * ms, flags: Flags(0x12), ack: SeqNum::new(101), ..back });
    let there = Segment { ack: SeqNum::new(701), flags: Flags::ACK, ..there };
    let back = Segment { seq: SeqNum::new(701), flags: Flags::ACK, ..back };
    for step in 0..40_u32 {
        let (at_ns, seq) = (at_ns + u64::from(20 + 3 * step) * ms, SeqNum::new(101 + step * 1_000));
        tracker.segment(&Segment { at_ns, seq, payload_len: 1_000, ..there });
        if step >= 3 {
            tracker.segment(&Segment { at_ns: at_ns + 1_000, ack: SeqNum::new(101 + (step - 2) * 1_000), ..back });
        }
    }
    let end = SeqNum::new(101 + 40_000);
    tracker.segment(&Segment { at_ns: at_ns + 150 * ms, seq: end, flags: Flags(0x11), ..there });
    tracker.segment(&Segment { at_ns: at_ns + 151 * ms, ack: end + 1, flags: Flags(0x11), ..back });
}

#[test]
fn timelines_of_connections_that_are_over_take_little_room_and_say_the_same() {
    let reports = |ports: core::ops::Range<u16>| {
        let mut tracker = Tracker::new(1, Keep { transfers: true });
        // Ten a second.
        ports.for_each(|port| long(&mut tracker, port, u64::from(port) * 100_000_000));
        let bins: usize = tracker.followers.iter().map(Follower::bins).sum();
        let found = tracker.finish().connections;
        let transfers = found.iter().map(|report| report.main_side().verdict.as_ref().unwrap().transfer.clone());
        (transfers.collect::<Vec<_>>(), bins)
    };
    // What comes after them has them take less.
    let (alone, of_one) = reports(1..2);
    let (many, of_many) = reports(1..301);
    assert_eq!(many[0], alone[0]);
    assert!(of_one > 250 && of_many < 300 * of_one / 4, "{of_many} bins of 300, {of_one} of one");
}

/// Beside the receiver, 20 ms from the sender: why a queue does not show, after so few segments.
#[test]
fn timestamps_that_were_agreed_on_are_not_said_to_be_missing() {
    let ms = 1_000_000;
    let blind = |options: &'static [u8]| {
        let mut tracker = Tracker::new(1, Keep { transfers: true });
        let asks = Segment { options, ..segment(ms, 5_000, Flags::SYN, 100, 0) };
        let answers = Segment { flow: asks.flow.reversed(), seq: SeqNum::new(700), ack: SeqNum::new(101), ..asks };
        tracker.segment(&asks);
        tracker.segment(&Segment { at_ns: 21 * ms, flags: Flags(0x12), ..answers });
        let asks = Segment { options: &[], flags: Flags::ACK, seq: SeqNum::new(101), ..asks };
        tracker.segment(&Segment { at_ns: 21 * ms, ack: SeqNum::new(701), ..asks });
        for step in 0..30 {
            let (at_ns, seq) = (41 * ms + u64::from(step) * ms, SeqNum::new(701 + step * 1_000));
            tracker.segment(&Segment { at_ns, seq, payload_len: 1_000, flags: Flags::ACK, options: &[], ..answers });
            tracker.segment(&Segment { at_ns, ack: seq + 1_000, ..asks });
        }
        let found = tracker.finish().connections;
        let verdict = found.get(0).unwrap().main_side().verdict.clone().unwrap();
        verdict.diagnosis.blind.join("; ")
    };
    assert!(blind(&[]).contains("the sender sent no timestamps"), "{}", blind(&[]));
    let agreed = blind(&[2, 4, 5, 180, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert!(agreed.contains("the sender's timestamps tell too little"), "{agreed}");
}

#[test]
fn a_flood_of_requests_takes_little_room_and_is_counted() {
    let mut tracker = Tracker::new(1, Keep::default());
    for number in 0..50_000_u32 {
        let mut syn = segment(u64::from(number) * 1_000, 0, Flags::SYN, number, 0);
        syn.flow.from =
            Endpoint { address: IpAddr::V4(Ipv4Addr::from(number.wrapping_mul(2_654_435_761))).into(), port: 7 };
        tracker.segment(&syn);
    }
    let bytes: usize = tracker.followers.iter().map(Follower::room).sum();
    assert!(bytes < 50_000 * 256, "{bytes} bytes");
    let found = tracker.finish();
    assert_eq!((found.connections.len(), found.unlisted), (50_000, 0));
}

#[test]
fn a_flood_without_end_is_summed_up_and_those_who_are_answered_are_listed() {
    let mut tracker = Tracker::new(1, Keep::default());
    const FLOOD: u32 = 1_400_000;
    for number in 0..FLOOD {
        let at_ns = u64::from(number) * 10_000;
        let mut syn = segment(at_ns, 0, Flags::SYN, number, 0);
        syn.flow.from =
            Endpoint { address: IpAddr::V4(Ipv4Addr::from(number.wrapping_mul(2_654_435_761))).into(), port: 7 };
        tracker.segment(&syn);
        if number % 100_000 == 0 {
            // One that is answered at once.
            let port = 1 + (number / 100_000) as u16;
            tracker.segment(&segment(at_ns, port, Flags::SYN, 0, 0));
            let mut answer = segment(at_ns, port, Flags::SYN.with(Flags::ACK), 0, 0);
            answer.flow = answer.flow.reversed();
            tracker.segment(&answer);
            tracker.segment(&segment(at_ns, port, Flags::ACK, 1, 100));
        }
    }
    let bytes: usize = tracker.followers.iter().map(Follower::room).sum();
    assert!(bytes < 300_000_000, "{bytes} bytes");
    let found = tracker.finish();
    assert!(found.unanswered > 200_000 && found.unanswered == found.unlisted, "{}", found.unanswered);
    assert_eq!(found.connections.len() as u64 + found.unlisted, u64::from(FLOOD) + 14);
    let listed = found.connections.iter().filter(|report| report.payload().get() == 100).count();
    assert_eq!(listed, 14);
}

/// What is found with a seed.
fn found_with(seed: u64, segments: &[Segment<'_>]) -> Vec<String> {
    let mut tracker = Tracker::new(seed, Keep::default());
    segments.iter().for_each(|segment| tracker.segment(segment));
    tracker.finish().connections.iter().map(|report| format!("{report:?}")).collect()
}

#[test]
fn what_comes_after_four_hours_is_another_connection_whoever_looks_in_between() {
    let seconds = |seconds: u64| seconds * 1_000_000_000;
    let mut segments = vec![segment(1, 1, Flags::ACK, 1, 10)];
    // Others talk meanwhile, each once.
    segments.extend((1..300).map(|nth| segment(seconds(50 * nth), 100 + nth as u16, Flags::ACK, 1, 10)));
    segments.extend([15_000, 15_001].map(|at| segment(seconds(at), 1, Flags::ACK, 11, 10)));
    for seed in 0..8 {
        assert_eq!(found_with(seed, &segments).len(), 301, "seed {seed}");
    }
}

#[test]
fn a_wrong_date_does_not_cut_connections_in_two() {
    let mut segments: Vec<_> = (0..200).map(|nth| segment(nth * 1_000_000, 1, Flags::ACK, 1, 10)).collect();
    segments.extend((200..400).map(|nth| segment(nth * 1_000_000, 2, Flags::ACK, 1, 10)));
    for years in [40, 80] {
        segments[years * 3].at_ns += years as u64 * 31_536_000_000_000_000;
    }
    assert_eq!(found_with(1, &segments).len(), 2);
}

proptest! {
    #[test]
    fn what_is_found_does_not_depend_on_the_seed(
        raw in proptest::collection::vec((0_usize..6, 0_u16..8, 0_u16..0x20, 0_u32..4, any::<bool>()), 0..200),
        dates: [u64; 2], seed: u64,
    ) {
        let mut at_ns = 0_u64;
        let segments: Vec<_> = (1..).zip(&raw).map(|(number, &(pause, port, flags, step, back))| {
            at_ns = at_ns.saturating_add([1_000_000, 1_000_000_000, 61_000_000_000, 14_500_000_000_000, 0, 0][pause]);
            let at_ns = [at_ns, at_ns, at_ns, at_ns, dates[0], dates[1]][pause];
            let mut segment = segment(at_ns, port, Flags(flags), 100 + step * 10, 10);
            segment.flow = if back { segment.flow.reversed() } else { segment.flow };
            Segment { number, ..segment }
        }).collect();
        prop_assert_eq!(found_with(1, &segments), found_with(seed, &segments));
    }

    #[test]
    fn any_segments_are_followed_without_a_panic(raw in proptest::collection::vec(
        (any::<u64>(), 0u16..4, any::<(u16, u16, u32, u32)>(), 0u32..70_000, proptest::collection::vec(any::<u8>(), 0..40), any::<bool>()),
        0..200,
    )) {
        let mut tracker = Tracker::new(1, Keep { transfers: true });
        for (at_ns, port, (flags, window, seq, ack), len, options, back) in &raw {
            let mut segment = segment(*at_ns, *port, Flags(*flags & 0x1ff), *seq, *len);
            segment.flow = if *back { segment.flow.reversed() } else { segment.flow };
            (segment.window, segment.ack, segment.options) = (*window, SeqNum::new(*ack), options);
            tracker.segment(&segment);
        }
        let found = tracker.finish();
        prop_assert_eq!(found.segments, raw.len() as u64);
    }
}

/// A segment of a connection with data both ways, and what carries it.
fn carried(at_ns: u64, is_answer: bool, flags: Flags, outer: u32) -> Segment<'static> {
    let mut one = segment(at_ns, 5_000, flags, 100, 10);
    one.flow.outer = outer;
    if is_answer { Segment { flow: one.flow.reversed(), ..one } } else { one }
}

/// How many packets the connections have that these segments make, from each end.
fn ends(segments: impl IntoIterator<Item = Segment<'static>>) -> Vec<[u64; 2]> {
    let mut tracker = Tracker::new(1, Keep::default());
    segments.into_iter().for_each(|segment| tracker.segment(&segment));
    tracker
        .finish()
        .connections
        .iter()
        .map(|report| report.sides.each_ref().map(|side| side.counters.packets))
        .collect()
}

#[test]
fn directions_that_are_carried_in_different_ways_are_one_connection() {
    for [there, back] in [[7, 0], [0, 7], [7, 8]] {
        let one = |nth: u64| carried(nth + 1, nth % 2 == 1, Flags::ACK, if nth % 2 == 1 { back } else { there });
        assert_eq!(ends((0..8).map(one)), [[4, 4]], "{there} and {back}");
    }
}

#[test]
fn a_packet_inside_and_outside_of_a_tunnel_is_of_two_connections() {
    let both = |nth: u64| [0, 7].map(|outer| carried(2 * nth + u64::from(outer) + 1, nth % 2 == 1, Flags::ACK, outer));
    assert_eq!(ends((0..8).flat_map(both)), [[4, 4], [4, 4]]);
    // And so are those within two networks that have the same addresses.
    let both =
        |nth: u64| [8, 7].map(|outer| carried(2 * nth + u64::from(8 - outer) + 1, nth % 2 == 1, Flags::ACK, outer));
    assert_eq!(ends((0..8).flat_map(both)), [[4, 4], [4, 4]]);
}

#[test]
fn what_another_connection_left_does_not_answer() {
    let hour = 3_600_000_000_000;
    let first = [carried(1, false, Flags::SYN, 7), carried(2, false, Flags::ACK, 7)];
    // The capture's own clock goes a minute from one segment to the next.
    let meanwhile = (1..400).map(|nth| segment(nth * hour / 60, 6_000, Flags::ACK, 100, 0));
    let then = [carried(400 * hour / 60, true, Flags::ACK, 0)];
    let found = ends(first.into_iter().chain(meanwhile).chain(then));
    assert_eq!((found.len(), found[0]), (3, [2, 0]));
}
