//! Which segments belong to one connection, and that the room they take is bounded.

use core::net::{IpAddr, Ipv4Addr};

use fullpipe_units::SeqNum;
use proptest::prelude::*;

use super::*;
use crate::{Endpoint, Flow, LinkStamp, Network};

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
    tracker.segment(&segment(1, 5_000, Flags::SYN, 100, 0));
    tracker.segment(&segment(2, 5_000, Flags::SYN, 100, 0));
    tracker.segment(&segment(3, 5_000, Flags::ACK, 101, 10));
    tracker.segment(&segment(4, 5_000, Flags::SYN, 9_000, 0));
    tracker.segment(&segment(5, 5_000, Flags::ACK, 9_001, 10));
    let found = tracker.finish();
    assert_eq!(found.connections.iter().map(Report::packets).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(found.connections[0].handshake.syns, 2);
}

#[test]
fn a_syn_that_crosses_another_is_the_same_connection() {
    let mut tracker = Tracker::new(1, Keep::default());
    let syn = segment(1, 5_000, Flags::SYN, 100, 0);
    tracker.segment(&syn);
    tracker.segment(&Segment { flow: syn.flow.reversed(), seq: SeqNum::new(700), at_ns: 2, ..syn });
    let found = tracker.finish();
    assert_eq!(found.connections.len(), 1);
    assert!(found.connections[0].handshake.simultaneous);
}

#[test]
fn a_long_connection_is_counted_from_its_first_segment_on() {
    let mut tracker = Tracker::new(1, Keep { transfers: true });
    tracker.segment(&segment(1, 5_000, Flags::SYN, 0, 0));
    for step in 0..1_000_u32 {
        tracker.segment(&segment(1_000_000 * u64::from(step + 1), 5_000, Flags::ACK, 1 + step * 100, 100));
    }
    let found = tracker.finish();
    let side = found.connections[0].main_side();
    assert_eq!((side.counters.payload, side.counters.data_packets), (100_000, 1_000));
    assert!(side.verdict.is_some());
}

proptest! {
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
