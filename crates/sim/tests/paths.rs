//! Paths that change, that gather packets, that others share, and that speak IPv6.

#![allow(clippy::unwrap_used, reason = "tests")]

use fullpipe_diagnose::Limiter;
use fullpipe_path::{IpVersions, QueueSize, RateTrace};
use fullpipe_sim::{HostSpec, Spec, knob, run};
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
