//! Rules of Linux that decide how much a sender has in flight, and what its kernel counts.

#![allow(clippy::unwrap_used, reason = "tests")]

use fullpipe_path::QueueSize;
use fullpipe_sim::{Application, HostSpec, Outcome, Spec, knob, run};
use fullpipe_units::{Micros, Rate};

fn spec(bps: u64, rtt_us: u64, settings: &[(&str, &str)]) -> Spec {
    let host = || HostSpec::named("linux-6.18").unwrap();
    let queue = QueueSize::Bdp { multiple: 4.0, at_least: 20 };
    let path = knob::path(Rate::from_bps(bps), Micros::new(rtt_us), 0.0, queue).unwrap();
    let mut spec = Spec::new(path, host(), host());
    for (key, value) in settings {
        knob::set(&mut spec, key, value).unwrap();
    }
    (spec.application, spec.omit) = (Application::MEASURED, Micros::from_secs(2));
    spec
}

/// The part of the time that the sender's kernel counts as held by the send buffer.
fn counted(outcome: &Outcome) -> f64 {
    let last = outcome.transfer.sender_samples.last().unwrap();
    last.sndbuf_limited_us.unwrap().as_secs_f64() / last.at_us.as_secs_f64()
}

/// `tcp_cwnd_validate` looks when something is sent, and not while the congestion window is used up.
#[test]
fn linux_counts_a_send_buffer_only_where_the_congestion_window_has_room() {
    let with = |congestion| {
        let settings = [("sender.buffer", "40000"), ("sender.congestion", congestion)];
        run(&spec(24_000_000, 80_000, &settings)).unwrap()
    };
    let [cubic, bbr] = ["cubic", "bbr"].map(with);
    assert!(counted(&cubic) < 0.01, "{}", counted(&cubic));
    assert!(counted(&bbr) > 0.05, "{}", counted(&bbr));
}

/// An application that waits in one long write has not run out of data (`tcp_rate_check_app_limited` is asked once for each
/// call), so that BBR takes what a small send buffer lets through for the path's rate.
#[test]
fn bbr_paces_at_the_rate_that_a_small_send_buffer_lets_through() {
    let rate =
        run(&spec(24_000_000, 80_000, &[("sender.buffer", "40000"), ("sender.congestion", "bbr")])).unwrap().rate();
    // A kernel with 43,040 B: 4.24 Mbit/s. Where each piece of the write told of an application without data: 5.67.
    assert!((3_600_000..4_500_000).contains(&rate.bps()), "{rate}");
}

/// Acknowledgements that only report what is out of order are gathered for a twentieth of a round trip (`tcp_comp_sack_delay_ns`).
#[test]
fn linux_gathers_reports_of_what_is_out_of_order() {
    let with = |compresses_sacks| {
        let mut spec = spec(400_000_000, 10_000, &[("path.loss", "0.0005")]);
        spec.receiver.profile.compresses_sacks = compresses_sacks;
        (spec.capture, spec.time) = (true, Micros::from_secs(3));
        let outcome = run(&spec).unwrap();
        let seen = outcome.receiver_capture.as_ref().unwrap().len() as u64;
        (seen - outcome.data_segments.min(seen), outcome.data_segments)
    };
    let [(few, of_few), (many, of_many)] = [true, false].map(with);
    assert!(few * of_many * 10 < many * of_few * 9, "{few} of {of_few}, {many} of {of_many}");
}
