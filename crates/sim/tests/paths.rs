//! Paths that change, that gather packets, that others share, and that speak IPv6.

#![allow(clippy::unwrap_used, reason = "tests")]

use fullpipe_capture::{Keep, Reader, Tracker};
use fullpipe_diagnose::{Confidence, Detail, Diagnosis, Limiter, diagnose};
use fullpipe_path::{IpVersions, LossSpec, PolicerSpec, QueueSize, RateTrace, ReorderBy, ReorderSpec};
use fullpipe_sim::{Capture, HostSpec, Outcome, Spec, knob, run};
use fullpipe_units::{Bytes, Micros, Rate};

/// Linux over one link for five seconds, the first of which is left out.
fn linux(mbps: u64, rtt_ms: u64) -> Spec {
    let queue = QueueSize::Bdp { multiple: 1.0, at_least: 64 };
    let path = knob::path(Rate::from_bps(mbps * 1_000_000), Micros::from_millis(rtt_ms), 0.0, queue).unwrap();
    let host = || HostSpec::named("linux-6.18").unwrap();
    let mut spec = Spec::new(path, host(), host());
    (spec.time, spec.omit) = (Micros::from_secs(5), Micros::from_secs(1));
    spec
}

/// The sender's and the receiver's platform over one link.
fn over(platforms: [&str; 2], kbps: u64, rtt_us: u64, queue: f64) -> Spec {
    let size = QueueSize::Bdp { multiple: queue, at_least: 32 };
    let path = knob::path(Rate::from_bps(kbps * 1_000), Micros::new(rtt_us), 0.0, size).unwrap();
    let [sender, receiver] = platforms.map(|name| HostSpec::named(name).unwrap());
    Spec::new(path, sender, receiver)
}

fn police(spec: &mut Spec, kbps: u64, burst: u64) {
    let rate = Rate::from_bps(kbps * 1_000);
    spec.path.hops[0].ab.police = Some(PolicerSpec { rate, burst: Bytes::new(burst) });
}

fn set(spec: &mut Spec, settings: &[(&str, &str)]) {
    for (key, value) in settings {
        knob::set(spec, key, value).unwrap();
    }
}

fn mbps(spec: &Spec) -> f64 {
    run(spec).unwrap().rate().bps() as f64 / 1e6
}

#[test]
fn a_recorded_rate_is_what_the_path_carries() {
    let mut spec = linux(20, 40);
    let trace: RateTrace = "0 30M\n500ms 10M\n1s end".parse().unwrap();
    let hop = &mut spec.path.hops[0].ab;
    (hop.rate, hop.trace) = (Some(trace.mean()), Some(trace));
    let outcome = run(&spec).unwrap();
    let rate = outcome.rate().bps() as f64 / 1e6;
    // 20 Mbit/s on average, 1,448 of 1,500 B of it payload; after a fall the window overflows the queue.
    assert!((17.0..19.4).contains(&rate), "{rate}");
    assert_eq!(outcome.truth.limiter(), Some(Limiter::Path), "{:?}", outcome.truth.shares);
}

#[test]
fn mahimahis_packets_are_what_the_path_carries() {
    let mut spec = linux(12, 40);
    // Five packets in six milliseconds: 10.03 Mbit/s.
    let trace: RateTrace = "1\n1\n3\n3\n6\n".parse().unwrap();
    let hop = &mut spec.path.hops[0].ab;
    (hop.rate, hop.trace) = (Some(trace.mean()), Some(trace));
    let rate = mbps(&spec);
    assert!((9.3..9.7).contains(&rate), "{rate}");
}

#[test]
fn thinned_acknowledgements_carry_the_same_payload() {
    let (mut usual, mut thin) = (linux(20, 40), linux(20, 40));
    set(&mut thin, &[("path.thin_acks", "8")]);
    for spec in [&mut usual, &mut thin] {
        spec.capture = true;
    }
    let outcomes = [&usual, &thin].map(|spec| run(spec).unwrap());
    let [usual, thin] = outcomes.map(|outcome| {
        // What the sender's interface saw, less what the receiver's saw, is what did not arrive.
        let seen = outcome.capture.as_ref().unwrap().len();
        (outcome.rate().bps() as f64 / 1e6, seen)
    });
    assert!((thin.0 / usual.0 - 1.0).abs() < 0.02, "{usual:?} {thin:?}");
    assert!((thin.1 as f64) < 0.85 * usual.1 as f64, "{usual:?} {thin:?}");
}

#[test]
fn packets_that_leave_together_take_longer() {
    let mut spec = linux(50, 20);
    set(&mut spec, &[("receiver.window", "60k")]);
    let before = mbps(&spec);
    set(&mut spec, &[("path.aggregate", "20ms")]);
    let after = mbps(&spec);
    // 60,000 B each 20 ms are 24 Mbit/s, and each 40 ms 12.
    assert!((20.0..24.5).contains(&before) && (9.0..13.0).contains(&after), "{before} {after}");
}

#[test]
fn connections_at_one_bottleneck_share_it() {
    let mut spec = linux(50, 20);
    set(&mut spec, &[("path.flows", "5")]);
    spec.time = Micros::from_secs(20);
    let outcome = run(&spec).unwrap();
    assert_eq!(outcome.others.len(), 4);
    let all: u64 = outcome.others.iter().map(|bytes| bytes.get()).sum::<u64>() + outcome.transfer.bytes.get();
    let total = all as f64 * 8.0 / 20.0 / 1e6;
    assert!((45.0..48.5).contains(&total), "{total}");
    let own = outcome.rate().bps() as f64 / 1e6;
    assert!((4.0..20.0).contains(&own), "{own}");
    assert_eq!(outcome.truth.limiter(), Some(Limiter::Path), "{:?}", outcome.truth.shares);
}

#[test]
fn cross_traffic_takes_its_rate() {
    let mut spec = linux(20, 40);
    set(&mut spec, &[("path.cross", "8M")]);
    let rate = mbps(&spec);
    // 12 Mbit/s are left; some of the losses fall on the connection.
    assert!((9.5..11.7).contains(&rate), "{rate}");
}

#[test]
fn over_ipv6_a_segment_is_twenty_bytes_shorter() {
    let mut spec = linux(20, 40);
    spec.path.ip = IpVersions::V6;
    // What the first loss holds back until it is repaired would count with what follows.
    spec.omit = Micros::from_secs(2);
    spec.capture = true;
    let outcome = run(&spec).unwrap();
    let rate = outcome.rate().bps() as f64 / 1e6;
    assert!((rate - 20.0 * 1_428.0 / 1_500.0).abs() < 0.1, "{rate}");
    let file = outcome.capture.unwrap().to_pcap();
    assert_eq!((file[40] >> 4, file[46]), (6, 6));
    // A hop that takes less tells the sender (RFC 4443, section 3.2).
    spec.path.hops[0].ab.mtu =
        Some(fullpipe_path::MtuSpec { bytes: 1_300, oversize: fullpipe_path::OversizeVerdict::TooBig });
    let outcome = run(&spec).unwrap();
    assert!(outcome.rate() > Rate::from_bps(18_000_000), "{}", outcome.rate());
    assert_eq!(outcome.transfer.sender_samples.last().unwrap().mss, Some(1_300 - 72));
}

#[test]
fn a_thousand_connections_move_their_payload() {
    let mut spec = linux(100, 20);
    set(&mut spec, &[("receiver.window", "64k"), ("sender.buffer", "64k")]);
    spec.flows = 1_000;
    spec.series = false;
    spec.time = Micros::from_secs(2);
    let outcome = run(&spec).unwrap();
    let all = Bytes::new(outcome.others.iter().map(|bytes| bytes.get()).sum());
    assert!(all.get() > 15_000_000, "{all}");
    assert_eq!(outcome.others.len(), 999);
}

/// A radio link as cellular modems see it: packets of 1,504 B in bunches with pauses between them, at a mean that goes up and down from
/// second to second (Mbit/s), again and again.
fn radio(mbps: &[u64]) -> RateTrace {
    let mut random = fullpipe_path::Random::new(7);
    let (mut text, mut owed) = (String::new(), 0.0);
    let mut ms = 0;
    for rate in mbps {
        let end = ms + 1_000;
        while ms < end {
            let pause = 1 + (random.unit() * 24.0) as u64;
            ms = (ms + pause).min(end);
            owed += pause as f64 * *rate as f64 * 1e3 / (1_504.0 * 8.0);
            (0..owed as u64).for_each(|_| text += &format!("{ms}\n"));
            owed = owed.fract();
        }
    }
    text.parse().unwrap()
}

/// What the live view, the sender's and the receiver's capture are judged.
fn verdicts(outcome: &Outcome) -> [Diagnosis; 3] {
    let of_capture = |capture: &Option<Capture>| {
        let file = capture.as_ref().unwrap().to_pcap();
        let mut tracker = Tracker::new(1, Keep::default());
        let mut reader = Reader::new();
        let used = reader.read(&file, &mut tracker).unwrap();
        reader.finish(&file[used..], &mut tracker).unwrap();
        tracker.finish().connections.get(0).unwrap().main_side().verdict.as_ref().unwrap().diagnosis.clone()
    };
    [outcome.diagnosis(), of_capture(&outcome.capture), of_capture(&outcome.receiver_capture)]
}

#[test]
fn a_radio_link_with_a_deep_queue_is_full_however_its_rate_changes() {
    let rates = [8, 3, 1, 2, 9, 4, 1, 1, 6, 2];
    for (window, timestamps, limiter) in [
        // Holds the path at any of these rates many times over, and stands before the link.
        ("500k", "on", Limiter::Path),
        ("500k", "off", Limiter::Path),
        // Less than the path holds at any of them.
        ("5k", "on", Limiter::ReceiveWindow),
    ] {
        let mut spec = linux(10, 50);
        let trace = radio(&rates);
        let hop = &mut spec.path.hops[0].ab;
        (hop.rate, hop.trace) = (Some(trace.mean()), Some(trace));
        hop.queue.size = QueueSize::Packets(1_000);
        set(&mut spec, &[("receiver.window", window), ("receiver.timestamps", timestamps)]);
        (spec.time, spec.capture) = (Micros::from_secs(20), true);
        let outcome = run(&spec).unwrap();
        let truth = outcome.truth.limited(limiter);
        assert!(truth >= 0.6, "{window}, timestamps {timestamps}: {:?}", outcome.truth.shares);
        let [live, sender, receiver] = verdicts(&outcome);
        assert_eq!([live.limiter, sender.limiter], [limiter; 2], "{window}, timestamps {timestamps}");
        if timestamps == "on" {
            assert_eq!(receiver.limiter, limiter, "{window}");
        } else {
            // No round trip shows there: it could be the application as well, and that is said.
            assert_eq!((receiver.limiter, receiver.or[0].limiter), (Limiter::Application, limiter));
            assert_eq!(receiver.confidence, Confidence::Low);
        }
    }
}

/// Beside the receiver, where the queue of a full link overflows: without timestamps nothing tells how long it was, a deep one hides the
/// sender's clock while it grows, and at a low rate a segment takes longer than a small bucket.
#[test]
fn a_full_link_is_no_policer() {
    let detail_of = |outcome: &Outcome| verdicts(outcome).map(|found| found.detail);
    for (platforms, kbps, rtt_us, queue) in [
        (["windows-2022", "linux-6.18"], 1_400, 2_500, 1.0),
        (["windows-2025", "linux-5.x"], 1_000, 57_000, 1.9),
        (["windows-2025", "linux-6.18"], 134_000, 136_000, 1.4),
        (["freebsd-14", "macos-14"], 5_000, 6_100, 1.6),
        (["freebsd-13", "macos-14"], 17_000, 23_000, 1.7),
        (["linux-4.x", "linux-5.x"], 3_200, 67_000, 2.2),
        (["macos-14", "linux-6.18"], 138_500, 7_600, 2.1),
    ] {
        let what = format!("{platforms:?}, {kbps} kbit/s, {rtt_us} us, {queue}");
        let mut spec = over(platforms, kbps, rtt_us, queue);
        (spec.time, spec.capture) = (Micros::new(rtt_us * 60).max(Micros::from_secs(5)), true);
        let outcome = run(&spec).unwrap();
        assert!(outcome.truth.limited(Limiter::Path) >= 0.75, "{what}: {:?}", outcome.truth.shares);
        let [live, sender, receiver] = detail_of(&outcome);
        assert_eq!([live, sender], [Some(Detail::Saturated); 2], "{what}");
        // Where round trips don't show, losses may be all that does.
        assert_ne!(receiver, Some(Detail::Policed), "{what}");
        if kbps > 10_000 && rtt_us < 30_000 {
            police(&mut spec, kbps / 2, (kbps * rtt_us / 8_000).max(60_000));
            let [_, sender, receiver] = detail_of(&run(&spec).unwrap());
            assert_eq!([sender, receiver], [Some(Detail::Policed); 2], "{what}, policed");
        }
    }
}

/// Live, from the sender's counters alone, where CUBIC and Reno are no faster than losses by chance would let them be. A slow policer drops
/// two or three segments at a time.
#[test]
fn a_policer_shows_live() {
    for (congestion, kbps, rtt_us, policed_kbps, burst) in [
        ("cubic", 11_700, 9_900, 3_280, 15_000),
        ("cubic", 9_900, 14_000, 2_600, 30_700),
        ("cubic", 50_000, 60_000, 20_000, 400_000),
        ("cubic", 4_595, 14_917, 1_151, 10_579),
        ("reno", 7_633, 66_182, 2_867, 10_705),
        ("reno", 3_004, 55_296, 589, 5_719),
    ] {
        let mut spec = over(["linux-6.18"; 2], kbps, rtt_us, 1.0);
        spec.time = Micros::from_secs(8);
        set(&mut spec, &[("sender.congestion", congestion)]);
        police(&mut spec, policed_kbps, burst);
        assert_eq!(run(&spec).unwrap().diagnosis().detail, Some(Detail::Policed), "{kbps} kbit/s, {rtt_us} us");
    }
}

/// Live, BBR keeps a lossy link full. What a retransmission frees is acknowledged at once, which is no burst that a bucket let through.
#[test]
fn a_full_link_with_losses_by_chance_is_no_policer_live() {
    for (kbps, rtt_us, queue, loss, seed) in [
        (36_068, 45_015, 0.95, 0.0184, 61),
        (41_053, 30_005, 0.70, 0.0266, 233),
        (47_257, 45_761, 0.27, 0.0296, 379),
        (25_379, 129_812, 0.37, 0.0085, 388),
        (17_576, 82_916, 0.81, 0.0219, 767),
    ] {
        let mut spec = over(["linux-6.18"; 2], kbps, rtt_us, queue);
        (spec.seed, spec.time) = (seed, Micros::from_secs(8));
        spec.path.hops[0].ab.loss = Some(LossSpec::Bernoulli(loss));
        set(&mut spec, &[("sender.congestion", "bbr")]);
        let outcome = run(&spec).unwrap();
        let found = outcome.diagnosis();
        assert_ne!(found.detail, Some(Detail::Policed), "{kbps} kbit/s, {rtt_us} us: {:?}", found.evidence);
        // `watch` comes later, and may do so while a hole is open.
        for begun in (500..1_600).step_by(100).map(Micros::from_millis) {
            let mut transfer = outcome.transfer.clone();
            transfer.sender_samples.retain(|sample| sample.at_us >= begun);
            let found = diagnose(&transfer);
            assert_ne!(found.detail, Some(Detail::Policed), "{kbps} kbit/s, from {begun} on: {:?}", found.evidence);
        }
    }
}

/// Without SACK a sender takes what comes late for lost, and repeats much that was not: its counters say nothing of a policer.
#[test]
fn reordering_without_sack_is_no_policer_live() {
    for (kbps, rtt_us, part, seed) in
        [(68_750, 73_070, 0.0391, 1), (39_817, 5_180, 0.0156, 7), (63_775, 50_700, 0.0055, 36)]
    {
        let mut spec = over(["linux-6.18"; 2], kbps, rtt_us, 1.0);
        (spec.seed, spec.time) = (seed, Micros::from_secs(8));
        let by = ReorderBy::Later(Micros::new(rtt_us / 4));
        spec.path.hops[0].ab.reorder = Some(ReorderSpec { probability: part, by });
        for end in ["sender", "receiver"] {
            set(&mut spec, &[(&format!("{end}.sack"), "off"), (&format!("{end}.timestamps"), "off")]);
        }
        let found = run(&spec).unwrap().diagnosis();
        assert_ne!(found.detail, Some(Detail::Policed), "{kbps} kbit/s, {rtt_us} us: {:?}", found.evidence);
    }
}

/// A sender without timestamps times one segment in each round trip, and a slow reader offers less than a segment for most of the time: the
/// round trips of its bursts are no standing queue.
#[test]
fn a_slow_reader_that_offers_less_than_a_segment_is_no_full_path() {
    for (platforms, kbps, rtt_us, read_bps) in [
        (["windows-10", "freebsd-14"], 17_200, 5_500, 1_550_000),
        (["windows-11", "linux-4.x"], 22_200, 2_200, 1_330_000),
    ] {
        let mut spec = over(platforms, kbps, rtt_us, 1.0);
        spec.time = Micros::from_secs(3);
        set(&mut spec, &[("receiver.read_rate", &read_bps.to_string())]);
        let found = run(&spec).unwrap().diagnosis();
        assert_eq!((found.limiter, found.detail), (Limiter::ReceiveWindow, Some(Detail::SlowReader)), "{platforms:?}");
    }
}
