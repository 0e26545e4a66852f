//! A connection made of segments: what is counted, and what is dropped.

use fullpipe_units::SeqNum;

use super::*;
use crate::track::{
    options::{Options, SynOptions},
    seen::Parts,
};

const MS: u64 = 1_000_000;

/// Segments of one connection, captured `near` from the low end and `far` from the high end (round trips).
pub(crate) struct Wire {
    pub(crate) number: u64,
    pub(crate) connection: Option<Connection>,
}

pub(crate) fn segment(at_ns: u64, sender: Sender, flags: Flags, seq: u32, ack: u32, len: u32) -> Seen {
    Seen::new(parts(at_ns, sender, flags, seq, ack, len))
}

fn parts(at_ns: u64, sender: Sender, flags: Flags, seq: u32, ack: u32, len: u32) -> Parts {
    Parts {
        clock_s: 0,
        at_ns,
        number: 0,
        sender,
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        timestamps: None,
        len,
        length: len + 40,
        link: 0,
        window: 60_000,
        flags,
        id: None,
        hop_limit: 64,
        ecn: 0,
    }
}

impl Wire {
    fn new() -> Self {
        Self { number: 0, connection: None }
    }

    fn put(&mut self, seen: Seen) -> &mut Self {
        self.put_with(seen, SynOptions::default())
    }

    fn put_with(&mut self, mut seen: Seen, syn: SynOptions) -> &mut Self {
        self.number += 1;
        seen.number = self.number;
        // Each has its own identification, as systems give it.
        seen = seen.with_id(seen.id().unwrap_or(self.number as u16));
        self.connection
            .get_or_insert_with(|| {
                let mut connection = Connection::default();
                connection.restart(&seen, false);
                connection
            })
            .on(&seen, &Options { syn, ..Options::NONE });
        self
    }

    /// The low end opens with 100, the high end answers with 500, 80 ms away from a capture beside the low end.
    fn opened() -> Self {
        let mut wire = Self::new();
        let syn = SynOptions { mss: Some(1_000), window_scale: Some(2), ..SynOptions::default() };
        wire.put_with(segment(0, Sender::Low, Flags::SYN, 100, 0, 0), syn);
        wire.put_with(segment(80 * MS, Sender::High, Flags(0x12), 500, 101, 0), syn);
        wire.put(segment(80 * MS + 1, Sender::Low, Flags::ACK, 101, 501, 0));
        wire
    }

    fn data(&mut self, at_ms: u64, offset: u32, len: u32) -> &mut Self {
        self.put(segment(at_ms * MS, Sender::Low, Flags::ACK, 101u32.wrapping_add(offset), 501, len))
    }

    fn ack(&mut self, at_ms: u64, offset: u32) -> &mut Self {
        self.put(segment(at_ms * MS, Sender::High, Flags::ACK, 501, 101u32.wrapping_add(offset), 0))
    }

    fn low(&self) -> half::Counters {
        self.connection.as_ref().unwrap().half(Sender::Low).counters
    }
}

#[test]
fn the_handshake_tells_where_the_capture_stands_and_what_scales() {
    let wire = Wire::opened();
    let connection = wire.connection.unwrap();
    assert_eq!(connection.opener, Some(Sender::Low));
    assert_eq!(connection.half(Sender::Low).near.least_ns, Some(1));
    assert_eq!(connection.half(Sender::High).near.least_ns, Some(80 * MS));
    assert_eq!(connection.trip_ns(), 80 * MS + 1);
    assert_eq!(connection.shift(Sender::High), Some(2));
    assert!(connection.established);
}

#[test]
fn bytes_seen_before_are_a_retransmission_and_others_below_the_highest_are_late() {
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).data(101, 1_000, 1_000).data(102, 3_000, 1_000);
    wire.data(103, 2_000, 1_000);
    wire.data(110, 1_000, 1_000);
    let counters = wire.low();
    assert_eq!((counters.out_of_order, counters.retransmissions, counters.retransmitted), (1, 1, 1_000));
    assert_eq!(counters.payload, 4_000);
    // Half old, half new.
    wire.data(120, 3_500, 1_000);
    assert_eq!((wire.low().retransmissions, wire.low().retransmitted, wire.low().payload), (2, 1_500, 4_500));
}

#[test]
fn a_copy_is_dropped_however_long_it_took_and_a_retransmission_is_not() {
    let mut wire = Wire::opened();
    let mut seen = segment(100 * MS, Sender::Low, Flags::ACK, 101, 501, 1_000);
    seen = seen.with_id(77);
    wire.put(seen);
    seen.at_ns += 19 * MS;
    seen.hop_limit -= 1;
    wire.put(seen);
    assert_eq!((wire.connection.as_ref().unwrap().copied, wire.low().retransmissions), (1, 0));
    seen.at_ns += 90 * MS;
    seen = seen.with_id(78);
    wire.put(seen);
    assert_eq!((wire.connection.as_ref().unwrap().copied, wire.low().retransmissions), (1, 1));
    // Beyond any path's delay, the same identification has come round again.
    seen.at_ns += 300 * MS;
    wire.put(seen);
    assert_eq!(wire.low().retransmissions, 2);
}

#[test]
fn probes_of_a_closed_window_and_keep_alives_are_no_retransmissions() {
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).ack(180, 1_000);
    wire.put(segment(200 * MS, Sender::Low, Flags::ACK, 100 + 1_000, 501, 0));
    wire.data(201, 999, 1);
    assert_eq!((wire.low().keep_alives, wire.low().retransmissions), (2, 0));
    let mut closed = segment(300 * MS, Sender::High, Flags::ACK, 501, 1_101, 0);
    closed.window = 0;
    wire.put(closed);
    wire.data(500, 1_000, 1).data(900, 1_000, 1);
    assert_eq!((wire.low().window_probes, wire.low().retransmissions, wire.low().zero_windows), (2, 0, 1));
    wire.ack(1_000, 1_000).data(1_001, 1_000, 1_000);
    assert_eq!((wire.low().payload, wire.low().retransmissions), (2_000, 0));
}

#[test]
fn a_segment_without_payload_asks_a_closed_window_and_a_copy_of_old_data_does_not() {
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).data(101, 1_000, 1_000);
    let mut closed = segment(180 * MS, Sender::High, Flags::ACK, 501, 2_101, 0);
    closed.window = 0;
    wire.put(closed);
    // Linux asks with the number before the one that is wanted.
    for at_ms in [400, 800] {
        wire.put(segment(at_ms * MS, Sender::Low, Flags::ACK, 100 + 2_000, 501, 0));
    }
    assert_eq!((wire.low().window_probes, wire.low().keep_alives), (2, 0));
    // A probe of the tail (RFC 8985) that was on its way.
    wire.data(900, 1_000, 1_000);
    assert_eq!((wire.low().window_probes, wire.low().retransmissions), (2, 1));
    // Open again, and much later, the same says that somebody is there.
    wire.ack(1_000, 2_000);
    wire.put(segment(90_000 * MS, Sender::Low, Flags::ACK, 100 + 2_000, 501, 0));
    assert_eq!((wire.low().window_probes, wire.low().keep_alives), (2, 1));
}

#[test]
fn what_was_carried_is_what_was_acknowledged() {
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).data(101, 1_000, 1_000).data(102, 2_000, 1_000);
    let carried = |wire: &Wire| wire.connection.as_ref().map(|connection| connection.half(Sender::Low).carried());
    assert_eq!(carried(&wire), Some(0));
    wire.ack(180, 2_000);
    assert_eq!((carried(&wire), wire.low().payload), (Some(2_000), 3_000));
    // The number of a FIN is no payload.
    wire.put(segment(190 * MS, Sender::Low, Flags(0x11), 101 + 3_000, 501, 0)).ack(270, 3_001);
    assert_eq!(carried(&wire), Some(3_000));
}

#[test]
fn a_lone_retransmission_after_a_long_silence_is_a_timeout() {
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).ack(180, 1_000).data(181, 1_000, 1_000).data(500, 1_000, 1_000);
    assert_eq!((wire.low().timeouts, wire.low().retransmissions), (1, 1));
    let mut fast = Wire::opened();
    fast.data(100, 0, 1_000).data(101, 1_000, 1_000).data(102, 2_000, 1_000).data(103, 3_000, 1_000);
    fast.ack(180, 1_000).ack(181, 1_000).ack(182, 1_000).ack(183, 1_000).data(400, 1_000, 1_000);
    assert_eq!((fast.low().timeouts, fast.low().duplicate_acks), (0, 3));
}

#[test]
fn sequence_numbers_wrap_and_long_streams_count_on() {
    let mut wire = Wire::opened();
    let mut sent: u64 = 0;
    for step in 0..9_000_u64 {
        let at = 100 + step;
        wire.data(at, sent as u32, 1_000_000);
        sent += 1_000_000;
        wire.ack(at, sent as u32);
    }
    assert!(sent > 2 * (1 << 32));
    assert_eq!((wire.low().payload, wire.low().retransmissions, wire.low().unseen), (sent, 0, 0));
}

#[test]
fn what_was_acknowledged_and_never_seen_is_counted() {
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).data(101, 3_000, 1_000).ack(180, 4_000);
    assert_eq!((wire.low().unseen, wire.low().retransmissions, wire.low().out_of_order), (2_000, 0, 0));
}

#[test]
fn an_acknowledgement_of_what_the_capture_lacks_tells_no_round_trip() {
    let far_us = |wire: &Wire| wire.connection.as_ref().unwrap().half(Sender::Low).far.least_ns.map(|ns| ns / 1_000);
    let mut wire = Wire::opened();
    wire.data(100, 0, 1_000).ack(140, 1_000);
    let before = far_us(&wire);
    // Segments that follow are not in the capture, but the last one: it may have been sent again when its acknowledgement was under way.
    wire.data(200, 50_000, 1_000).ack(202, 51_000);
    assert_eq!((far_us(&wire), wire.low().unseen), (before, 49_000));
    wire.data(300, 51_000, 1_000).ack(302, 52_000);
    assert_eq!(far_us(&wire), Some(2_000));
}

#[test]
fn a_clock_that_steps_back_loses_nothing() {
    let mut wire = Wire::opened();
    wire.data(200, 0, 1_000).ack(150, 1_000).data(151, 1_000, 1_000);
    let setting = &wire.connection.as_ref().unwrap().setting;
    assert_eq!((wire.low().payload, setting.first), (2_000, Some((5, 50_000_000))));
}

#[test]
fn a_capture_appended_to_itself_counts_once() {
    let mut wire = Wire::opened();
    for _ in 0..2 {
        // Identifications are the same the second time.
        wire.number = 3;
        for step in 0..1_000 {
            wire.data(100 + u64::from(step), 1_000 * step, 1_000);
            wire.ack(180 + u64::from(step), 1_000 * (step + 1));
        }
    }
    let connection = wire.connection.as_ref().unwrap();
    assert_eq!((wire.low().payload, wire.low().retransmissions), (1_000_000, 0));
    assert_eq!(connection.copied, 2_000);
}

#[test]
fn only_an_answer_as_late_as_the_way_there_and_back_waited_for_an_acknowledgement() {
    // The high end is 80 ms away, and the low end, beside the capture, delays an acknowledgement by 40 ms.
    for (answered_ms, waits) in [(290, 0), (321, 1), (400, 0)] {
        let mut wire = Wire::opened();
        wire.put(segment(200 * MS, Sender::High, Flags::ACK, 501, 101, 10));
        wire.put(segment(240 * MS, Sender::Low, Flags::ACK, 101, 511, 0));
        wire.put(segment(answered_ms * MS, Sender::High, Flags::ACK, 511, 101, 10));
        let connection = wire.connection.unwrap();
        let (bins, _) = connection.half(Sender::High).flight.bins.as_ref().unwrap().coarse(1);
        assert_eq!(bins.iter().map(|bin| bin.nagle).sum::<u32>(), waits, "answered at {answered_ms} ms");
    }
}

#[test]
fn a_repeated_syn_counts_from_the_first() {
    let mut wire = Wire::new();
    for at_ms in [0, 1_000, 2_000] {
        wire.put(segment(at_ms * MS, Sender::Low, Flags::SYN, 100, 0, 0));
    }
    wire.put(segment(2_080 * MS, Sender::High, Flags(0x12), 500, 101, 0));
    wire.put(segment(2_081 * MS, Sender::Low, Flags::ACK, 101, 501, 0));
    let connection = wire.connection.unwrap();
    assert_eq!((connection.syn_retransmissions, connection.syn_ack_retransmissions), (2, 0));
    assert_eq!(connection.opened_ns, Some(2_081 * MS));
    // The round trip is that of the last.
    assert_eq!(connection.half(Sender::High).near.least_ns, Some(80 * MS));
}

#[test]
fn more_in_flight_than_a_window_says_shows_a_scale_that_was_not_seen() {
    for (window, is_beyond) in [(500, true), (2_600, false)] {
        let mut wire = Wire::new();
        wire.data(0, 0, 1_000);
        let mut ack = segment(80 * MS, Sender::High, Flags::ACK, 501, 1_101, 0);
        ack.window = window;
        wire.put(ack);
        for step in 1..6 {
            wire.data(81 + u64::from(step), step * 1_000, 1_000);
        }
        wire.ack(200, 6_000);
        let connection = wire.connection.unwrap();
        assert_eq!(connection.half(Sender::Low).flight.is_beyond, is_beyond, "window {window}");
    }
}

#[test]
fn the_last_segments_of_a_flight_are_told_from_others_when_a_timer_repeats_them() {
    for (count, tails) in [(2, 1), (6, 0)] {
        let mut wire = Wire::opened();
        for step in 0..count {
            wire.data(100, step * 1_000, 1_000);
        }
        wire.data(500, 0, 1_000);
        let connection = wire.connection.unwrap();
        let (bins, _) = connection.half(Sender::Low).flight.bins.as_ref().unwrap().coarse(1);
        let sum = |of: fn(&bins::Bin) -> u32| bins.iter().map(of).sum::<u32>();
        assert_eq!((sum(|bin| bin.timeouts), sum(|bin| bin.tails)), (1, tails), "{count} segments");
    }
}

#[test]
fn writes_of_one_size_show_in_what_is_pushed_and_not_full() {
    for (sizes, size) in [([2_300_u32; 12], Some(2_300)), ([2_000; 12], None)] {
        let mut wire = Wire::opened();
        let mut offset = 0;
        for (number, size) in sizes.into_iter().enumerate() {
            let at_ms = 100 + 100 * number as u64;
            let mut left = size;
            while left > 0 {
                let len = left.min(1_000);
                left -= len;
                // A sender that paces pushes what is full, too.
                let flags = Flags::ACK.with(Flags::PSH);
                wire.put(segment(at_ms * MS, Sender::Low, flags, 101 + offset, 501, len));
                offset += len;
            }
            wire.ack(at_ms + 80, offset);
        }
        let connection = wire.connection.unwrap();
        assert_eq!(connection.half(Sender::Low).write(), size, "writes of {sizes:?}");
        let every_ms = connection.half(Sender::Low).writes_every_ns().map(|ns| ns / MS);
        assert_eq!(every_ms, size.map(|_| 100), "writes of {sizes:?}");
    }
}

#[test]
fn writes_that_come_now_and_then_have_no_period() {
    let mut wire = Wire::opened();
    let mut at_ms = 100;
    for number in 0..24_u32 {
        at_ms += 40 + u64::from(number * 37 % 101);
        wire.put(segment(at_ms * MS, Sender::Low, Flags::ACK.with(Flags::PSH), 101 + number * 700, 501, 700));
        wire.ack(at_ms + 20, number * 700 + 700);
    }
    let connection = wire.connection.unwrap();
    assert_eq!(
        (connection.half(Sender::Low).write(), connection.half(Sender::Low).writes_every_ns()),
        (Some(700), None)
    );
}

#[test]
fn the_initial_window_is_the_sender_s_wherever_it_was_captured() {
    let mut wire = Wire::opened();
    // The high end is 80 ms away; the low end, beside the capture, acknowledges at once.
    for (at_ms, from) in [(200, 501), (201, 1_501), (202, 2_501), (290, 3_501)] {
        wire.put(segment(at_ms * MS, Sender::High, Flags::ACK, from, 101, 1_000));
        wire.put(segment(at_ms * MS + 1, Sender::Low, Flags::ACK, 101, from + 1_000, 0));
    }
    assert_eq!(wire.connection.unwrap().half(Sender::High).counters.initial_window, 3_000);
}

/// What the timeline has of the high end's data, captured beside the low end, which is 80 ms away: segments that come at
/// `data_us`, each of 1,000 B, and of which each second is acknowledged at once.
fn beside_the_receiver(data_us: impl Iterator<Item = u64>) -> bins::Bin {
    let mut wire = Wire::opened();
    for (number, at_us) in data_us.enumerate() {
        let from = 501 + 1_000 * number as u32;
        wire.put(segment(at_us * 1_000, Sender::High, Flags::ACK, from, 101, 1_000));
        if number % 2 == 1 {
            wire.put(segment(at_us * 1_000, Sender::Low, Flags::ACK, 101, from + 1_000, 0));
        }
    }
    let connection = wire.connection.unwrap();
    connection.half(Sender::High).flight.bins.as_ref().unwrap().coarse(1 << 50).0[0]
}

#[test]
fn two_segments_in_each_round_trip_leave_the_link_empty_and_answer_acknowledgements() {
    // A segment takes the link 1 ms; acknowledgements are a little shorter than the SYN that gave the distance.
    let bin = beside_the_receiver((0..100).flat_map(|turn| [200_000 + 81_980 * turn, 201_000 + 81_980 * turn]));
    let span_ns = 100 * 81_980_000;
    assert!(bin.dry_ns > span_ns / 10 * 9, "{} of {span_ns} ns without data", bin.dry_ns);
    assert!(bin.prompted > bin.sent / 10 * 7 && bin.unprompted < bin.sent / 10, "{bin:?}");
}

#[test]
fn behind_a_full_link_nothing_tells_when_data_was_sent() {
    let bin = beside_the_receiver((0..3_000).map(|number| 200_000 + 5_000 * number));
    assert!(bin.dry_ns < 100_000_000 && bin.hidden > bin.sent / 10 * 9, "{bin:?}");
}

#[test]
fn a_chance_answer_brings_no_end_nearer_that_echoes_timestamps() {
    let mut wire = Wire::opened();
    for turn in 0..20_u32 {
        let (at_ns, from) = (u64::from(turn) * 300 * MS + 400 * MS, 501 + 2_000 * turn);
        let mut put = |late_ns: u64, sender: Sender, seq: u32, ack: u32, len: u32, stamps: [u32; 2]| {
            let parts = parts(at_ns + late_ns, sender, Flags::ACK, seq, ack, len);
            wire.put(Seen::new(Parts { timestamps: Some(stamps), ..parts }));
        };
        put(0, Sender::High, from, 101, 1_000, [turn, turn]);
        // The application reads late and the window is advertised anew, just before what was sent long ago comes.
        put(200 * MS, Sender::Low, 101, from + 500, 0, [turn + 1, turn]);
        put(200 * MS + 20_000, Sender::High, from + 1_000, 101, 1_000, [turn, turn]);
    }
    let near_ns = wire.connection.unwrap().half(Sender::High).near.least_ns.unwrap();
    assert!(near_ns >= 79 * MS, "{near_ns} ns");
}
