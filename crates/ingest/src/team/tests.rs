//! That threads change nothing about what is found.

use std::net::{IpAddr, Ipv4Addr};

use fullpipe_capture::{Endpoint, Flags, Flow, LinkStamp, Network};
use fullpipe_units::SeqNum;

use super::*;

const CLIENTS: u32 = 700;

/// A step of a connection with a few requests: some lose segments, some are long enough to be judged, some begin anew
/// between the same ports.
fn segment(number: u64, client: u32, step: u32) -> Segment<'static> {
    let end = |host: u32, port| Endpoint { address: IpAddr::V4(Ipv4Addr::from(0x0A00_0000 + host)).into(), port };
    let there = Flow { from: end(client % 90 + 2, 1_000 + (client / 90) as u16), to: end(1, 443), outer: 0 };
    let is_anew = client.is_multiple_of(5) && step >= 30;
    let (first, step) = if is_anew { (90_000, step - 30) } else { (0, step) };
    let is_answer = step % 3 == 1;
    let lost = if client.is_multiple_of(7) && step % 11 == 6 { 2 } else { 0 };
    let sent = first + 1 + (step.saturating_sub(3) - lost.min(step.saturating_sub(3))) * 1_000;
    let (flags, seq, ack, len) = match step {
        0 => (Flags::SYN, first, 0, 0),
        1 => (Flags(0x12), 7_000, first + 1, 0),
        2 => (Flags::ACK, first + 1, 7_001, 0),
        _ if is_answer => (Flags::ACK, 7_001, sent, 0),
        _ => (Flags::ACK, sent, 7_001, 1_000),
    };
    Segment {
        number,
        at_ns: 1_000_000_000 + number * 37_000,
        flow: if is_answer { there.reversed() } else { there },
        network: Network { id: Some(number as u16), hop_limit: 60, length: len + 40, ..Network::default() },
        link: LinkStamp(client % 3),
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        flags,
        window: 30_000,
        payload_len: len,
        options: if step < 2 { &[2, 4, 5, 0xb4, 1, 3, 3, 7] } else { &[] },
        options_cut: false,
    }
}

fn feed(sink: &mut impl Sink) {
    let mut number = 0;
    for step in 0..60 {
        for client in (0..CLIENTS).filter(|client| step < 3 + client % 60) {
            number += 1;
            let segment = segment(number, client, step);
            sink.segment(&segment);
            if client.is_multiple_of(50) && step == 9 {
                let (about, seq) = (segment.flow, segment.seq);
                sink.too_big(&TooBig { number, at_ns: segment.at_ns, about, seq, mtu: Some(1_400) });
            }
        }
    }
}

fn lines(found: &Findings) -> Vec<String> {
    found.connections.iter().map(|report| format!("{report:?}")).collect()
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_threads() {
    let mut tracker = Tracker::new(7, Keep { transfers: true });
    feed(&mut tracker);
    let alone = tracker.finish();
    let expected = lines(&alone);
    assert!(expected.len() > CLIENTS as usize, "some begin anew");
    assert!(alone.connections.iter().any(|report| report.main_side().verdict.is_some()));
    for threads in 1..=8 {
        let mut team = Team::new(7, Keep { transfers: true }, NonZeroUsize::new(threads).unwrap());
        feed(&mut team);
        let found = team.finish();
        assert_eq!((found.segments, found.unlisted), (alone.segments, alone.unlisted));
        assert!(lines(&found) == expected, "{threads} threads");
    }
}
