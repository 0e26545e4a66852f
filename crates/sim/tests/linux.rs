//! Rules of Linux that decide how much a sender has in flight, and what its kernel counts.

#![allow(clippy::unwrap_used, reason = "tests")]

use fullpipe_diagnose::{Limiter, PathRate, diagnose};
use fullpipe_path::QueueSize;
use fullpipe_sim::{Application, HostSpec, Outcome, Spec, knob, run};
use fullpipe_units::{Bytes, Micros, Rate};

fn spec(bps: u64, rtt_us: u64, settings: &[(&str, &str)]) -> Spec {
    queued(bps, rtt_us, 4.0, settings)
}

/// The same with a queue of so many bandwidth-delay products, and 20 packets at least.
fn queued(bps: u64, rtt_us: u64, multiple: f64, settings: &[(&str, &str)]) -> Spec {
    let host = || HostSpec::named("linux-6.18").unwrap();
    let queue = QueueSize::Bdp { multiple, at_least: 20 };
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
        // A window that grows is told with each segment, whatever is out of order.
        let mut spec = spec(400_000_000, 10_000, &[("path.loss", "0.0005"), ("receiver.window", "4M")]);
        spec.receiver.profile.compresses_sacks = compresses_sacks;
        (spec.capture, spec.time) = (true, Micros::from_secs(3));
        let outcome = run(&spec).unwrap();
        let seen = outcome.receiver_capture.as_ref().unwrap().len() as u64;
        (seen - outcome.data_segments.min(seen), outcome.data_segments)
    };
    let [(few, of_few), (many, of_many)] = [true, false].map(with);
    assert!(few * of_many * 10 < many * of_few * 9, "{few} of {of_few}, {many} of {of_many}");
}

/// After a repair a new gap is reported at once: without that its loss is found by a probe only, some 25 ms later.
#[test]
fn each_gap_is_reported_at_once() {
    let rate = run(&queued(39_000_000, 1_900, 2.0, &[("sender.congestion", "reno")])).unwrap().rate();
    assert!(rate.bps() > 37_000_000, "{rate}");
}

/// A congestion window that was used up counts as that for a flight (`tp->is_cwnd_limited`), so that it grows though a small send
/// buffer stops the sender in between. A kernel: 2.3 Mbit/s; where the last segment decided: 1.6.
#[test]
fn the_window_grows_for_a_flight_that_used_it_up() {
    let settings = [("sender.buffer", "28525"), ("sender.congestion", "cubic")];
    let rate = run(&queued(6_070_384, 166_306, 0.5, &settings)).unwrap().rate();
    assert!((2_000_000..2_600_000).contains(&rate.bps()), "{rate}");
}

/// 15,000 B in a round trip: twice as much, and a little more because it is more than the ten segments that Linux begins with
/// (`tcp_rcvbuf_grow`), is less than the window that is offered once segments are known.
#[test]
fn the_receive_buffer_follows_what_is_read() {
    let most = |write_rate| {
        let mut spec = spec(50_000_000, 100_000, &[]);
        spec.application = Application::Paced { rate: Rate::from_bps(write_rate), write: 2_000 };
        let offered =
            run(&spec).unwrap().transfer.sender_samples.into_iter().filter_map(|sample| sample.offered_window);
        offered.max().unwrap()
    };
    assert!(most(1_200_000) <= Bytes::new(82_000), "{}", most(1_200_000));
    assert!(most(6_000_000) >= Bytes::new(300_000), "{}", most(6_000_000));
}

/// What is read in a round trip is compared with the first window, where that is less than ten segments (`tcp_init_buffer_space`). A
/// kernel with `tcp_rmem` of 4096 5840 3932160 had 89.9 Mbit/s on this path.
#[test]
fn a_receive_buffer_that_begins_with_two_segments_grows() {
    let mut spec = queued(100_000_000, 100_000, 1.0, &[]);
    (spec.receiver.receive.initial, spec.receiver.receive.max) = (Bytes::new(3_000), Bytes::new(2_400_000));
    let delivered = run(&spec).unwrap().rate().bps();
    assert!(delivered > 60_000_000, "{delivered}");
}

/// While the window grows each segment is acknowledged (`tcp_grow_window` asks for a quick acknowledgement), not every second.
#[test]
fn a_window_that_has_grown_is_told_at_once() {
    let acknowledged = |settings: &[(&str, &str)]| {
        let mut spec = spec(100_000_000, 100_000, settings);
        (spec.capture, spec.bytes) = (true, Some(Bytes::new(1_000_000)));
        let outcome = run(&spec).unwrap();
        let seen = outcome.receiver_capture.as_ref().unwrap().len() as f64;
        seen / outcome.data_segments as f64 - 1.0
    };
    let (grows, stays) = (acknowledged(&[]), acknowledged(&[("receiver.window", "4M")]));
    assert!(grows > 0.85 && stays < 0.7, "{grows} {stays}");
}

/// Each acknowledgement counts for an eighth (`tcp_rtt_estimator`): the smoothed round-trip time is at the queue's within a round
/// trip.
#[test]
fn the_smoothed_round_trip_time_follows_the_queue() {
    let with = |smooths_each_ack| {
        let mut spec = queued(20_000_000, 100_000, 4.0, &[("sender.congestion", "reno")]);
        spec.sender.profile.smooths_each_ack = smooths_each_ack;
        let samples = run(&spec).unwrap().transfer.sender_samples;
        let early = samples.into_iter().filter(|sample| sample.at_us < Micros::from_millis(1_200));
        early.filter_map(|sample| sample.rtt_us).max().unwrap()
    };
    assert!(with(true).get() > with(false).get() * 5 / 4, "{:?} {:?}", with(true), with(false));
}

/// What acknowledgements that only report echo is old (RFC 7323, section 4.1): 200 ms and a queue of 50 ms are never 300 ms.
#[test]
fn a_loss_lengthens_no_round_trip_time() {
    let outcome = run(&queued(20_000_000, 200_000, 0.25, &[])).unwrap();
    let longest = outcome.transfer.sender_samples.iter().filter_map(|sample| sample.rtt_us).max().unwrap();
    assert!(outcome.retransmits > 0 && longest < Micros::from_millis(300), "{longest:?}");
}

/// What the windows let go is a burst; what they let go later is another one, which waits for its time: 33 losses cost BBR
/// nothing. A kernel: 74.9 Mbit/s; where the rest of a burst left as acknowledgements made room for it: 70.5. And holes that are
/// repaired are no plateau above what the path delivers.
#[test]
fn random_losses_leave_bbr_at_the_paths_rate_and_its_verdict_at_the_path() {
    let outcome =
        run(&queued(76_624_000, 106_300, 2.0, &[("sender.congestion", "bbr"), ("path.loss", "0.001")])).unwrap();
    assert!(outcome.retransmits > 5 && outcome.rate().bps() > 74_000_000, "{}", outcome.rate());
    assert_eq!(outcome.diagnosis().limiter, Limiter::Path, "{:?}", outcome.diagnosis().evidence);
}

/// A writer that its buffer wakes late refills the path in bursts, and loses what overflows the queue: the buffer holds it, whatever
/// the path is known to carry.
#[test]
fn bursts_of_a_small_send_buffer_are_its_doing_though_the_path_would_carry_more() {
    let settings = [("sender.buffer", "57143"), ("sender.congestion", "reno")];
    let mut transfer = run(&queued(3_500_000, 213_800, 1.0, &settings)).unwrap().transfer;
    assert_eq!(diagnose(&transfer).limiter, Limiter::SendBuffer);
    transfer.path_rate = Some(PathRate { rate_bps: Rate::from_bps(3_378_000), lower_bound: false });
    assert_eq!(diagnose(&transfer).limiter, Limiter::SendBuffer, "{:?}", diagnose(&transfer).evidence);
}

/// A segment leaves piece by piece, and is filled up by as much after each, so that a write goes past the buffer by half of the
/// window and a segment at most. A kernel, three times: 5.5 Mbit/s without a loss; with bursts of twice that: 1.5 Mbit/s and 86.
#[test]
fn a_write_goes_past_a_small_buffer_by_half_of_the_window() {
    let settings = [("sender.buffer", "34096"), ("sender.congestion", "reno")];
    let outcome = run(&queued(8_327_430, 177_080, 2.0, &settings)).unwrap();
    assert!(outcome.rate().bps() > 5_000_000, "{} {}", outcome.rate(), outcome.retransmits);
}

/// A segment that is filled up and not sent lets acknowledgements go on sending while the writer waits (`tcp_push_one` sends a single
/// piece): CUBIC's slow start ends at 211 segments, overflows the queue, and the sender stays at what the path delivers. A kernel in
/// five of eight runs: 155 to 158 Mbit/s; where all of a segment left at once: 73 without a loss, as in the other three.
#[test]
fn what_waits_in_the_last_segment_leaves_while_the_writer_does_nothing() {
    let settings = [("sender.buffer", "39780"), ("sender.congestion", "cubic")];
    let outcome = run(&queued(344_258_799, 6_420, 1.0, &settings)).unwrap();
    assert!(outcome.rate().bps() > 145_000_000, "{} {}", outcome.rate(), outcome.retransmits);
}

/// A send buffer grows where the writer waits and what leaves makes two pieces, or leaves room in the window (`tcp_should_expand_sndbuf`,
/// which `tcp_check_space` asks after each piece): not with an acknowledgement of one segment, which lets go one piece of two. So 141
/// Mbit/s, 169 ms, Reno: a kernel loses 189 and 203 segments; with a buffer that grows always 846, and 71 instead of 90 Mbit/s.
#[test]
fn a_send_buffer_does_not_grow_while_the_window_is_used_up() {
    let settings = [("sender.buffer_max", "2371851"), ("sender.congestion", "reno")];
    let outcome = run(&spec(141_214_795, 168_624, &settings)).unwrap();
    let limits = |segments: u64| {
        let bytes = Some(Bytes::new(segments * 1_448));
        let samples = outcome.transfer.sender_samples.iter().filter(move |sample| sample.cwnd == bytes);
        samples.filter_map(|sample| sample.send_buffer).max()
    };
    // Twice ten segments, each with what belongs to it, and no more when there are twenty.
    assert_eq!([10, 20].map(limits), [Some(Bytes::new(46_080)); 2]);
    // With forty it has grown: the receiver acknowledges two at once.
    assert!(limits(40) > Some(Bytes::new(150_000)), "{:?}", limits(40));
}

/// The window grows from the first segment on, from a half to five eighths of the buffer (`tcp_measure_rcv_mss`), and each time
/// makes the number of quick acknowledgements odd (`icsk_ack.quick |= 1`): sixteen of them acknowledge twenty segments.
#[test]
fn quick_acknowledgements_are_saved_while_the_window_grows() {
    let mut spec = spec(100_000_000, 100_000, &[]);
    (spec.capture, spec.bytes) = (true, Some(Bytes::new(20 * 1_448)));
    let outcome = run(&spec).unwrap();
    let offered = outcome.transfer.sender_samples.iter().filter_map(|sample| sample.offered_window).max().unwrap();
    assert!((Bytes::new(76_000)..Bytes::new(82_000)).contains(&offered), "{offered}");
    // SYN, SYN-ACK, its acknowledgement, two FINs and what acknowledges them; each segment of data, and an answer to it.
    let seen = outcome.receiver_capture.as_ref().unwrap().len() as u64;
    assert!(seen - outcome.data_segments >= 20 + 3, "{seen} {}", outcome.data_segments);
}

/// The writer of 4 MB is woken when two thirds are left, and a burst's last acknowledgement leaves a little more: nothing moves until the
/// next burst's come, and Linux counts none of that time for the buffer. An application that keeps as much on its way writes meanwhile.
#[test]
fn a_large_send_buffer_that_rests_where_its_writer_is_woken_is_not_the_application() {
    let limiter = |spec: &Spec| diagnose(&run(spec).unwrap().transfer).limiter;
    for (bps, rtt_us) in
        [(600_000_000, 100_000), (600_000_000, 200_000), (1_000_000_000, 100_000), (1_000_000_000, 200_000)]
    {
        assert_eq!(limiter(&queued(bps, rtt_us, 1.0, &[])), Limiter::SendBuffer, "{bps} {rtt_us}");
    }
    for rate in (150..=205).step_by(5) {
        for write in [16_000, 65_536] {
            let mut spec = queued(1_000_000_000, 100_000, 1.0, &[]);
            spec.application = Application::Paced { rate: Rate::from_bps(rate * 1_000_000), write };
            assert_ne!(limiter(&spec), Limiter::SendBuffer, "{rate} Mbit/s, {write} B");
        }
    }
}
