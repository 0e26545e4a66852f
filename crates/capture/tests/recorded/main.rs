//! Captures of real kernels over emulated paths, taken at both hosts (`-a`, `-b`): one connection each, headers only. The
//! verdict is that of the live test which they were taken of, whichever host captured it.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod disturbed;

use std::path::PathBuf;

use fullpipe_capture::{Findings, Keep, Reader, Segment, Sink, TooBig, Tracker};
use fullpipe_diagnose::{Confidence, Detail, Limiter, Run};

/// File name without the host, and the live test's verdict.
const RECORDED: &[(&str, Limiter, Option<Detail>)] = &[
    ("wan-80ms-cubic-window", Limiter::ReceiveWindow, Some(Detail::ScaleZero)),
    ("wan-80ms-bbr-window", Limiter::ReceiveWindow, Some(Detail::ScaleZero)),
    ("wan-80ms-cubic-buffer", Limiter::SendBuffer, Some(Detail::BufferCap)),
    ("wan-80ms-bbr-buffer", Limiter::SendBuffer, Some(Detail::BufferCap)),
    ("adsl2-cubic-window", Limiter::ReceiveWindow, Some(Detail::ScalingAbsent)),
    ("bluetooth-hop-cubic-path", Limiter::Path, Some(Detail::Saturated)),
    ("clean-10m-40ms-bbr-path", Limiter::Path, Some(Detail::Saturated)),
    ("100m-80ms-bbr-nagle", Limiter::AckDelay, Some(Detail::Nagle)),
    ("50m-40ms-cubic-delayed-ack", Limiter::AckDelay, Some(Detail::DelayedAck)),
    ("10m-100ms-cubic-lost-syn-ack", Limiter::Handshake, None),
    ("20m-150ms-bbr-send-buffer", Limiter::SendBuffer, Some(Detail::BufferCap)),
    ("20m-150ms-cubic-idle", Limiter::Application, None),
    ("20m-150ms-cubic-small-start", Limiter::CongestionWindow, Some(Detail::SlowStart)),
    ("2m-230ms-cubic-policed", Limiter::Path, Some(Detail::Policed)),
    ("2m-230ms-cubic-stuck-reader", Limiter::ReceiveWindow, Some(Detail::ZeroWindow)),
];

/// What only the sender's end sees.
const AT_THE_SENDER: &[(&str, Limiter, Option<Detail>)] = &[
    ("10m-100ms-cubic-black-hole-a", Limiter::SegmentSize, Some(Detail::MtuBlackHole)),
    ("50m-40ms-cubic-tail-loss-a", Limiter::CongestionWindow, Some(Detail::TailLoss)),
    // BBR's last two segments of twenty are lost, and it asks for them; losing them takes more time than asking.
    ("strangers/tail-loss-probed-a", Limiter::CongestionWindow, Some(Detail::Loss)),
    // 60 KB each 220 ms over 89 ms, without the handshake: what waits is the application and no way to it.
    ("strangers/frames-from-the-middle-a", Limiter::Application, Some(Detail::Idle)),
    // Reno sends to lwIP in bursts with pauses, in which a bucket of 48 KB fills up again.
    ("strangers/policed-pauses-a", Limiter::Path, Some(Detail::Policed)),
];

/// The beginnings of transfers by other senders: other TCP stacks, writers and answers, from both ends.
const STRANGERS: &[(&str, Limiter, Option<Detail>)] = &[
    // FreeBSD 13, whose clock goes in steps and whose writer is woken by each acknowledgement.
    ("freebsd-send-buffer", Limiter::SendBuffer, Some(Detail::BufferCap)),
    // The same, whose clock goes slow by one part in a thousand, and which pauses in each round trip.
    ("freebsd-drifting-clock", Limiter::SendBuffer, Some(Detail::BufferCap)),
    ("freebsd-loss", Limiter::CongestionWindow, Some(Detail::Loss)),
    ("gvisor-window", Limiter::ReceiveWindow, Some(Detail::WindowCeiling)),
    // A writer of 64 KB at a time that Linux wakes when a third of 128 KB is free, paced by BBR.
    ("send-buffer-woken-writer", Limiter::SendBuffer, Some(Detail::BufferCap)),
    // 20,000 B every 50 ms over 80 ms.
    ("paced-writer", Limiter::Application, None),
    // Answers of 64 KB to requests of 36 B.
    ("request-response", Limiter::Application, None),
    // One packet in twenty late by 15 ms, without SACK and timestamps.
    ("reordering-without-sack", Limiter::Reordering, None),
    // 100 KB over 100 ms.
    ("short-opening", Limiter::CongestionWindow, Some(Detail::SlowStart)),
    // Packets above 1,400 B vanish until the sender probes with smaller ones.
    ("black-hole-probed", Limiter::SegmentSize, Some(Detail::MtuBlackHole)),
    // The same behind a request: its silence lies in the middle of what the receiver sees.
    ("black-hole-below", Limiter::SegmentSize, Some(Detail::MtuBlackHole)),
    // A bucket of 10 Mbit/s under Reno (Linux 6.1).
    ("policed-reno", Limiter::Path, Some(Detail::Policed)),
    // SO_MAX_PACING_RATE of 10 Mbit/s on a path of 50.
    ("paced-socket", Limiter::Application, None),
    // FreeBSD 13 sends to an application that reads more slowly than the path carries.
    ("slow-reader-freebsd", Limiter::ReceiveWindow, Some(Detail::SlowReader)),
    // All of 39 KB is acknowledged at once, 18 ms later than the path takes: when it was read.
    ("slow-reader-whole-window", Limiter::ReceiveWindow, Some(Detail::SlowReader)),
    // 64 KB each 200 ms: what is offered in between is less than a segment, and not nothing.
    ("slow-reader-leftover", Limiter::ReceiveWindow, Some(Detail::SlowReader)),
];

/// What was recorded at the receiver alone.
const AT_THE_RECEIVER: &[(&str, Limiter, Option<Detail>)] = &[
    // 100 KB each 100 ms over 49 ms: everything has been acknowledged for a good part of the time.
    ("strangers/shell-writes-b", Limiter::Application, None),
    // lwIP's buffer of 48 KB, written in pieces of 24 KB: a third leaves long after any acknowledgement.
    ("strangers/lwip-send-buffer-b", Limiter::SendBuffer, Some(Detail::BufferCap)),
    // smoltcp's buffer of 56,628 B, without timestamps, at 0.86 of what the link would carry by the spacing of its segments.
    ("strangers/smoltcp-link-left-idle-b", Limiter::SendBuffer, Some(Detail::BufferCap)),
    // 100 KB each 100 ms over 71 ms: a buffer of what is in flight at most would carry three times as much.
    ("strangers/frames-half-empty-b", Limiter::Application, None),
    // 128 KB each 262 ms over 73 ms, without the handshake: no window and no buffer leaves the path empty for most of the time.
    ("strangers/idle-from-the-middle-b", Limiter::Application, None),
];

#[test]
fn other_senders_are_understood_beside_their_receivers() {
    for &(name, limiter, detail) in AT_THE_RECEIVER {
        let found = read(name);
        let report = found.connections.get(0).unwrap();
        let diagnosis = &report.main_side().verdict.as_ref().unwrap().diagnosis;
        assert_eq!((diagnosis.limiter, diagnosis.detail), (limiter, detail), "{name}: {diagnosis:#?}");
    }
}

#[test]
fn what_the_spacing_of_segments_says_of_the_link_is_told_where_no_round_trip_was_seen() {
    let found = read("strangers/smoltcp-link-left-idle-b");
    let report = found.connections.get(0).unwrap();
    let evidence = &report.main_side().verdict.as_ref().unwrap().diagnosis.evidence;
    // 8,527,460 bit/s, of which 1,460 of 1,500 B are payload: 8.30 Mbit/s.
    assert!(evidence.iter().any(|text| text.text.contains("a link of 8.29 Mbit/s")), "{evidence:#?}");
    assert!(!evidence.iter().any(|text| text.text.contains("no queue")), "{evidence:#?}");
}

/// A small buffer of Linux 6.12 on an emulated processor: its writer is woken late, and BBR paces what it writes.
#[test]
fn a_paced_writer_that_is_woken_late_may_wait_for_its_buffer() {
    let found = read("strangers/late-paced-writer-a");
    let report = found.connections.get(0).unwrap();
    let diagnosis = &report.main_side().verdict.as_ref().unwrap().diagnosis;
    let second: Vec<Limiter> = diagnosis.or.iter().map(|or| or.limiter).collect();
    assert_eq!((diagnosis.limiter, &*second), (Limiter::Application, &[Limiter::SendBuffer][..]), "{diagnosis:#?}");
}

/// Four connections of iperf3 behind a bucket of 80 KB that fills at 1.7 Mbit/s: what one of them gets through depends on the others.
#[test]
fn connections_that_share_a_policer_are_judged_together() {
    for end in ["a", "b"] {
        let found = read(&format!("strangers/shared-policer-{end}"));
        let verdicts: Vec<_> =
            found.connections.iter().filter_map(|report| report.main_side().verdict.clone()).collect();
        let policed = verdicts.iter().filter(|verdict| verdict.diagnosis.detail == Some(Detail::Policed));
        assert_eq!(policed.clone().count(), 4, "{end}: {verdicts:#?}");
        for verdict in policed {
            let first = &verdict.diagnosis.evidence[0].text;
            // 1,448 of 1,500 B are payload: 1.64 Mbit/s.
            let is_known = |rate| first.starts_with(&format!("4 connections to 10.80.0.2 carried {rate} together"));
            assert!(["1.64 Mbit/s", "1.65 Mbit/s"].into_iter().any(is_known), "{end}: {first}");
            let is_same = |pair: &[Run]| (pair[0].limiter, pair[0].detail) == (pair[1].limiter, pair[1].detail);
            assert!(!verdict.runs.windows(2).any(is_same), "{end}: {:#?}", verdict.runs);
        }
    }
}

/// Four connections of iperf3 fill 5.2 Mbit/s together, beside their receiver; alone, each seems to be held down by losses.
#[test]
fn connections_that_fill_a_link_together_come_behind_those_that_could_gain() {
    let mut tracker = Tracker::new(1, Keep::default());
    for name in ["strangers/shared-link-b", "strangers/policed-reno-b"] {
        read_into(name, &mut tracker);
    }
    let mut found = tracker.finish();
    let told =
        found.connections.iter().filter_map(|report| Some(report.main_side().verdict.clone()?.diagnosis.evidence));
    assert!(!told.flatten().any(|evidence| evidence.text.contains("before a queue could form")));
    found.connections.worst_first(usize::MAX);
    let details: Vec<_> = found
        .connections
        .iter()
        .filter_map(|report| report.main_side().verdict.as_ref()?.diagnosis.detail)
        .filter(|detail| matches!(detail, Detail::Policed | Detail::Saturated | Detail::Loss))
        .collect();
    assert_eq!(details, [&[Detail::Policed][..], &[Detail::Saturated; 4]].concat());
}

/// Four connections of axel fill 10 Mbit/s before a queue of 70 ms, beside their receiver; alone, most seem to be held by a late writer or a buffer.
#[test]
fn connections_before_one_deep_queue_fill_their_link() {
    let found = read("strangers/deep-queue-b");
    let judged: Vec<_> = found.connections.iter().filter_map(|report| report.main_side().verdict.clone()).collect();
    assert_eq!(judged.len(), 4);
    for verdict in judged {
        let diagnosis = verdict.diagnosis;
        assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::Path, Some(Detail::Saturated)), "{diagnosis:#?}");
        let first = &diagnosis.evidence[0].text;
        // 1,448 of 1,500 B are payload: 9.65 Mbit/s, and a segment more or less in each span.
        assert!(
            first.starts_with("4 connections to 10.80.0.1 carried 9.70 Mbit/s together while a queue stood"),
            "{first}"
        );
    }
}

/// Forty downloads of 40 kB by ab, ten at a time, fill 5 Mbit/s. Alone, each of them seems to be in slow start or to be held down by losses.
#[test]
fn short_downloads_fill_a_link_together() {
    for (end, least) in [("a", 40), ("b", 38)] {
        let found = read(&format!("strangers/short-downloads-{end}"));
        let judged = found.connections.iter().filter_map(|report| Some(report.main_side().verdict.clone()?.diagnosis));
        let full: Vec<_> = judged.filter(|diagnosis| diagnosis.detail == Some(Detail::Saturated)).collect();
        assert!(full.len() >= least, "{end}: {}", full.len());
        let is_of_all = |text: &str| text.starts_with("40 connections to 10.80.0.2 carried 4.");
        let shared = full.iter().filter(|diagnosis| is_of_all(&diagnosis.evidence[0].text));
        // 1,448 of 1,500 B are payload.
        let is_known = |rate: f64| (rate / 4.83e6 - 1.0).abs() < 0.02;
        assert!(shared.clone().count() >= least - 2, "{end}: {full:#?}");
        for diagnosis in shared {
            assert!(diagnosis.attainable_bps.is_some_and(|rate| is_known(rate.bps() as f64)), "{end}: {diagnosis:#?}");
        }
    }
}

/// Eighty downloads of 50 kB by ab, twelve at a time, from nginx behind a shaper of 20 Mbit/s of its own. Captured behind that, each of them seems
/// to wait for its application or to be in slow start.
#[test]
fn short_downloads_fill_their_senders_own_link() {
    let found = read("strangers/own-link-a");
    let judged: Vec<_> =
        found.connections.iter().filter_map(|report| Some(report.main_side().verdict.clone()?.diagnosis)).collect();
    assert_eq!(judged.len(), 80);
    for diagnosis in judged {
        assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::Path, Some(Detail::Saturated)), "{diagnosis:#?}");
        // 1,448 of 1,514 B are payload.
        assert!(diagnosis.attainable_bps.is_some_and(|rate| (rate.bps() as f64 / 19.13e6 - 1.0).abs() < 0.01));
        let first = &diagnosis.evidence[0].text;
        assert!(
            first.starts_with("80 connections from 10.80.0.1 carried 19.2 Mbit/s together however many"),
            "{first}"
        );
    }
}

/// Two of a hundred connections of iperf3 at 100 Mbit/s, starved by the others: one of them never got a full segment through.
#[test]
fn what_others_got_through_does_not_vanish_for_its_size() {
    let details = |name: &str| -> Vec<Option<Detail>> {
        let detail = |report: &fullpipe_capture::Report| report.main_side().verdict.as_ref()?.diagnosis.detail;
        read(name).connections.iter().map(|report| detail(&report)).collect()
    };
    assert_eq!(details("strangers/starved-alone-a"), [Some(Detail::MtuBlackHole)], "nothing tells by itself");
    assert_eq!(details("strangers/starved-a"), [Some(Detail::Rto); 2]);
}

#[test]
fn other_senders_are_understood_from_either_end() {
    for &(name, limiter, detail) in STRANGERS {
        for host in ["a", "b"] {
            let found = read(&format!("strangers/{name}-{host}"));
            let report = found.connections.get(0).unwrap();
            let diagnosis = &report.main_side().verdict.as_ref().unwrap().diagnosis;
            assert_eq!((diagnosis.limiter, diagnosis.detail), (limiter, detail), "{name}-{host}: {diagnosis:#?}");
        }
    }
}

#[test]
fn a_capture_that_breaks_off_says_how_much_was_not_acknowledged() {
    for (host, pending) in [("a", "65,535 B"), ("b", "2,896 B")] {
        let found = read(&format!("wan-80ms-cubic-window-{host}"));
        let report = found.connections.get(0).unwrap();
        let side = report.main_side();
        let verdict = side.verdict.as_ref().unwrap();
        assert!(side.counters.carried < side.counters.payload, "{:?}", side.counters);
        assert_eq!(verdict.transfer.as_ref().unwrap().bytes.get(), side.counters.carried);
        let words = format!("the capture ends before {pending} that were sent had been acknowledged");
        assert!(verdict.diagnosis.blind.contains(&words), "{:?}", verdict.diagnosis.blind);
    }
}

#[test]
fn four_timeouts_are_counted_as_four() {
    let found = read("strangers/black-hole-probed-a");
    let report = found.connections.get(0).unwrap();
    assert_eq!(report.main_side().counters.timeouts, 4);
}

fn read(name: &str) -> Findings {
    let mut tracker = Tracker::new(1, Keep { transfers: true });
    read_into(name, &mut tracker);
    tracker.finish()
}

fn read_into<S: Sink>(name: &str, sink: &mut S) {
    read_bytes_into(&bytes_of(name), sink);
}

fn bytes_of(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("pcap");
    std::fs::read(path).unwrap()
}

fn read_bytes_into<S: Sink>(bytes: &[u8], sink: &mut S) {
    let mut reader = Reader::new();
    let used = reader.read(bytes, sink).unwrap();
    // A capture that ends within a packet is reported as such, and what came before counts.
    reader.finish(&bytes[used..], sink).unwrap();
}

#[test]
fn both_hosts_captures_get_the_verdict_of_the_live_test() {
    for &(name, limiter, detail) in RECORDED {
        for host in ["a", "b"] {
            let found = read(&format!("{name}-{host}"));
            assert_eq!(found.connections.len(), 1, "{name}-{host}");
            let report = found.connections.get(0).unwrap();
            let side = report.main_side();
            let diagnosis = &side.verdict.as_ref().unwrap().diagnosis;
            assert_eq!((diagnosis.limiter, diagnosis.detail), (limiter, detail), "{name}-{host}: {diagnosis:#?}");
            assert!(diagnosis.evidence.iter().any(|evidence| evidence.packets.is_some()), "{name}-{host}");
        }
    }
}

#[test]
fn what_never_arrives_is_told_at_the_sender_and_doubted_at_the_receiver() {
    for &(name, limiter, detail) in AT_THE_SENDER {
        let found = read(name);
        let report = found.connections.get(0).unwrap();
        let diagnosis = &report.main_side().verdict.as_ref().unwrap().diagnosis;
        assert_eq!((diagnosis.limiter, diagnosis.detail), (limiter, detail), "{name}: {diagnosis:#?}");
    }
    assert!(read("10m-100ms-cubic-black-hole-b").connections.get(0).unwrap().main_side().verdict.is_none());
    let found = read("50m-40ms-cubic-tail-loss-b");
    let report = found.connections.get(0).unwrap();
    let diagnosis = &report.main_side().verdict.as_ref().unwrap().diagnosis;
    assert!(diagnosis.confidence < Confidence::High, "{diagnosis:#?}");
    assert!(diagnosis.blind.iter().any(|doubt| doubt.contains("retransmission timer")), "{diagnosis:#?}");
}

#[test]
fn one_direction_alone_is_not_enough() {
    for &(name, ..) in RECORDED {
        for data in [true, false] {
            let limiter = main_limiter(&format!("{name}-a"), |_, segment| (segment.payload_len > 0) == data);
            assert!(limiter.is_none_or(|limiter| limiter == Limiter::InsufficientEvidence), "{name}: {limiter:?}");
        }
    }
}

#[test]
fn without_the_beginning_the_verdict_is_the_same_or_none() {
    let begins = |name: &str| name.ends_with("lost-syn-ack") || name.ends_with("small-start");
    for &(name, limiter, _) in RECORDED.iter().filter(|(name, ..)| !begins(name)) {
        for host in ["a", "b"] {
            let found = main_limiter(&format!("{name}-{host}"), |number, _| number > 30);
            let is_doubted = found.is_none_or(|found| found == Limiter::InsufficientEvidence);
            assert!(is_doubted || found == Some(limiter), "{name}-{host}: {found:?}");
        }
    }
}

/// The verdict on the first connection, if only some segments, chosen by their number, are seen of it.
fn main_limiter(name: &str, passes: impl Fn(u64, &Segment<'_>) -> bool) -> Option<Limiter> {
    let mut sink = Picked { tracker: Tracker::new(1, Keep { transfers: false }), passes, number: 0 };
    read_into(name, &mut sink);
    let found = sink.tracker.finish();
    Some(found.connections.get(0)?.main_side().verdict.as_ref()?.diagnosis.limiter)
}

struct Picked<F> {
    tracker: Tracker,
    passes: F,
    number: u64,
}

impl<F: Fn(u64, &Segment<'_>) -> bool> Sink for Picked<F> {
    fn segment(&mut self, segment: &Segment<'_>) {
        self.number += 1;
        if (self.passes)(self.number, segment) {
            self.tracker.segment(segment);
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        self.tracker.too_big(notice);
    }
}

#[test]
fn windows_and_round_trips_are_the_same_from_either_host() {
    for &(name, ..) in RECORDED {
        let [a, b] = ["a", "b"].map(|host| read(&format!("{name}-{host}")).connections.get(0).unwrap().into_owned());
        let trip = |report: &fullpipe_capture::Report| report.rtt.unwrap().get() as f64;
        assert!((trip(&a) / trip(&b) - 1.0).abs() < 0.2, "{name}: {:?} and {:?}", a.rtt, b.rtt);
        assert_eq!(a.sides[0].syn, b.sides[0].syn, "{name}");
        // One that grows was cut off at another size.
        let window = |report: &fullpipe_capture::Report| report.main_side().counters.largest_window;
        assert!(window(&a) == window(&b) || !name.ends_with("window"), "{name}");
    }
}

#[test]
fn the_arithmetic_of_the_window_stands_in_the_evidence() {
    let found = read("wan-80ms-cubic-window-b");
    let report = found.connections.get(0).unwrap();
    let verdict = report.main_side().verdict.as_ref().unwrap();
    let texts: Vec<&str> = verdict.diagnosis.evidence.iter().map(|evidence| evidence.text.as_str()).collect();
    assert!(texts[0].contains("65,535 B x 8 / 80."), "{texts:?}");
    let spans: u64 = verdict.runs.iter().map(|run| run.to_us - run.from_us).sum();
    assert_eq!(Some(spans), verdict.runs.last().map(|run| run.to_us - verdict.runs[0].from_us), "no gaps");
}
