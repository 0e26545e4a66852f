//! What the path does: full, lossy, reordering, policed, opening, black holes; and several streams at once.

use fullpipe_diagnose::{
    Confidence, CongestionState, Detail, Limiter, PathRate, SenderSample, Transfer, diagnose, diagnose_streams,
    diagnose_with_runs,
};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    report,
    world::{Control, MSS, World},
};

#[test]
fn clean_controls_are_the_path_and_nothing_else() {
    for control in [Control::Cubic, Control::Bbr] {
        for path_bps in [10e6, 100e6, 1e9] {
            for rtt_us in [5_000.0, 40_000.0, 200_000.0] {
                for (queue, seconds) in [(0.5, 8.0), (1.0, 10.0), (4.0, 20.0)] {
                    let world = World { control, path_bps, rtt_us, queue, seconds, ..World::default() };
                    for known in [None, World::exact(path_bps)] {
                        let diagnosis = diagnose(&World { known, ..world.clone() }.transfer());
                        let place = format!("{control:?}, {path_bps} bit/s, {rtt_us} us, {queue} products, {known:?}");
                        assert_eq!(diagnosis.limiter, Limiter::Path, "{place}: {}", report(&diagnosis));
                        assert_eq!(diagnosis.detail, Some(Detail::Saturated), "{place}");
                        assert!(diagnosis.confidence > Confidence::Low, "{place}: {}", report(&diagnosis));
                    }
                }
            }
        }
    }
}

/// A virtual machine that stands still for 60 ms of every 200, and makes up for it in the rest.
#[test]
fn no_more_is_attainable_than_a_path_carried_for_long() {
    let world = World { path_bps: 100e6, rtt_us: 20_000.0, control: Control::Bbr, ..World::default() };
    let mut transfer = world.transfer();
    let even = diagnose(&transfer).attainable_bps.unwrap().bps() as f64;
    for sample in &mut transfer.sender_samples {
        let (period, at) = (sample.at_us.get() / 200_000 * 200_000, sample.at_us.get() % 200_000);
        let stood = (at.saturating_sub(60_000) as f64 / 0.7 + period as f64) / sample.at_us.get().max(1) as f64;
        sample.acked = Bytes::new((sample.acked.get() as f64 * stood) as u64);
    }
    let found = diagnose(&transfer);
    assert_eq!(found.limiter, Limiter::Path, "{}", report(&found));
    let attainable = found.attainable_bps.unwrap().bps() as f64;
    assert!(attainable < 1.03 * even, "{attainable} where it was {even}");
}

#[test]
fn random_loss_below_the_path_rate_is_congestion_control() {
    for (rtt_us, known) in [(20_000.0, None), (80_000.0, None), (80_000.0, World::exact(95e6))] {
        let diagnosis = diagnose(&World { rtt_us, loss: 0.01, known, ..World::default() }.transfer());
        let report = report(&diagnosis);
        assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::CongestionWindow, Some(Detail::Loss)), "{report}");
        assert!(report.contains("1.22 x 1,448 B"), "{report}");
    }
}

#[test]
fn random_loss_that_does_not_hold_the_rate_down_is_not_blamed() {
    let fast = World { control: Control::Bbr, loss: 0.01, ..World::default() };
    assert_eq!(diagnose(&fast.transfer()).limiter, Limiter::Path, "BBR carries on");
    let rare = World { path_bps: 10e6, rtt_us: 5_000.0, loss: 0.0005, ..World::default() };
    let diagnosis = diagnose(&rare.transfer());
    assert_eq!(diagnosis.limiter, Limiter::Path, "{}", report(&diagnosis));
}

#[test]
fn retransmissions_that_were_not_needed_are_reordering() {
    let diagnosis = diagnose(&World { loss: 0.01, spurious: 0.9, rtt_us: 80_000.0, ..World::default() }.transfer());
    assert_eq!(diagnosis.limiter, Limiter::Reordering, "{}", report(&diagnosis));
    let lost = diagnose(&World { loss: 0.01, spurious: 0.1, rtt_us: 80_000.0, ..World::default() }.transfer());
    assert_eq!(lost.limiter, Limiter::CongestionWindow, "{}", report(&lost));
}

#[test]
fn loss_at_a_level_rate_after_a_burst_is_a_policer() {
    let mut transfer = World { control: Control::Bbr, ..World::default() }.transfer();
    let burst = transfer.sender_samples.len() / 5;
    let at_burst = transfer.sender_samples[burst].acked.get();
    for (index, sample) in transfer.sender_samples.iter_mut().enumerate().skip(burst) {
        // A tenth of the rate from here on, and 5 % of it lost.
        let later = (sample.acked.get() - at_burst) / 10;
        sample.acked = Bytes::new(at_burst + later);
        sample.retransmits = Some(later / 1_448 / 20 + index as u64);
    }
    let diagnosis = diagnose(&transfer);
    assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::Path, Some(Detail::Policed)), "{}", report(&diagnosis));
}

#[test]
fn a_window_that_opens_all_the_time_is_slow_start() {
    let world = World { path_bps: 1e9, rtt_us: 200_000.0, seconds: 8.0, early_exit: 0.05, ..World::default() };
    let diagnosis = diagnose(&world.transfer());
    let report = report(&diagnosis);
    assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::CongestionWindow, Some(Detail::SlowStart)), "{report}");
    let brief = World { early_exit: 0.7, path_bps: 10e6, ..World::default() };
    assert_eq!(diagnose(&brief.transfer()).limiter, Limiter::Path, "an early exit that hardly costs time");
}

#[test]
fn a_transfer_that_ends_in_slow_start_says_so() {
    let world = World { rtt_us: 200_000.0, path_bps: 1e9, seconds: 1.4, ..World::default() };
    let diagnosis = diagnose(&world.transfer());
    assert_eq!(diagnosis.detail, Some(Detail::SlowStart), "{}", report(&diagnosis));
}

#[test]
fn timeouts_are_told_from_losses_and_from_the_end_of_data() {
    let stalled = |waiting: u64| {
        let mut transfer = World::default().transfer();
        let (count, mut timeouts) = (transfer.sender_samples.len(), 0);
        let frozen = transfer.sender_samples[count / 4];
        for (index, sample) in transfer.sender_samples.iter_mut().enumerate().skip(count / 4) {
            timeouts += u64::from(index % 40 == 39);
            sample.acked = frozen.acked;
            sample.timeouts = Some(timeouts);
            sample.not_sent = Some(Bytes::new(waiting));
            sample.in_flight = Some(Bytes::new(10 * MSS as u64));
            sample.congestion_state = Some(CongestionState::Loss);
        }
        diagnose(&transfer)
    };
    let rto = stalled(100_000);
    assert_eq!((rto.limiter, rto.detail), (Limiter::CongestionWindow, Some(Detail::Rto)), "{}", report(&rto));
    let tail = stalled(0);
    assert_eq!(tail.detail, Some(Detail::TailLoss), "{}", report(&tail));
}

#[test]
fn full_segments_that_vanish_are_an_mtu_black_hole() {
    let mut transfer = World::default().transfer();
    for (index, sample) in transfer.sender_samples.iter_mut().enumerate() {
        sample.acked = Bytes::new(1_000);
        sample.in_flight = Some(Bytes::new(10 * MSS as u64));
        sample.cwnd = Some(Bytes::new(MSS as u64));
        sample.timeouts = Some(index as u64 / 100);
    }
    let diagnosis = diagnose(&transfer);
    let expected = (Limiter::SegmentSize, Some(Detail::MtuBlackHole));
    assert_eq!((diagnosis.limiter, diagnosis.detail), expected, "{}", report(&diagnosis));
}

#[test]
fn a_window_that_is_used_up_and_was_larger_before_is_a_slow_reader() {
    let mut transfer = World { window: 64_512.0, ..World::default() }.transfer();
    transfer.receiver_samples.clear();
    assert_ne!(diagnose(&transfer).detail, Some(Detail::SlowReader), "it never was larger");
    for sample in transfer.sender_samples.iter_mut().take(20) {
        sample.offered_window = Some(Bytes::new(120_000));
    }
    let diagnosis = diagnose(&transfer);
    let expected = (Limiter::ReceiveWindow, Some(Detail::SlowReader));
    assert_eq!((diagnosis.limiter, diagnosis.detail), expected, "{}", report(&diagnosis));
}

#[test]
fn small_segments_are_named_where_losses_make_them_matter() {
    let mut transfer = World { loss: 0.01, rtt_us: 80_000.0, ..World::default() }.transfer();
    for sample in &mut transfer.sender_samples {
        sample.mss = Some(536);
    }
    let diagnosis = diagnose(&transfer);
    assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::SegmentSize, Some(Detail::SmallMss)));
    // What counts seconds by limiter, as `watch` does, counts them under that name.
    let (diagnosis, runs) = diagnose_with_runs(&transfer);
    let named =
        |limiter| runs.iter().filter(move |run| run.limiter == limiter).map(|run| run.to_us - run.from_us).sum();
    let (small, window): (u64, u64) = (named(Limiter::SegmentSize), named(Limiter::CongestionWindow));
    assert!(small > window && small > 0, "{small} us, {window} us");
    let share = |limiter| diagnosis.shares.get(&limiter).copied().unwrap_or(0.0);
    assert!(share(Limiter::SegmentSize) > share(Limiter::CongestionWindow), "{diagnosis:?}");
    transfer.path_mtu = Some(576);
    assert_eq!(diagnose(&transfer).limiter, Limiter::CongestionWindow, "the path takes no more");
}

#[test]
fn window_limited_streams_that_fill_the_path_together_are_the_path() {
    let stream = World { window: 125_000.0, known: World::exact(100e6), ..World::default() }.transfer();
    let alone = diagnose_streams(std::slice::from_ref(&stream));
    assert_eq!(alone.limiter, Limiter::ReceiveWindow, "{}", report(&alone));
    let four = diagnose_streams(&vec![stream.clone(); 4]);
    assert_eq!(four.limiter, Limiter::Path, "{}", report(&four));
    assert!(report(&four).contains("4 streams carried"), "{}", report(&four));
    let two = diagnose_streams(&vec![stream; 2]);
    assert_eq!(two.limiter, Limiter::ReceiveWindow, "{}", report(&two));
    assert_eq!(two.attainable_bps, Some(Rate::from_bps(100_000_000)));
}

#[test]
fn streams_that_disagree_lower_the_confidence() {
    let streams = [
        World { window: 64_512.0, ..World::default() }.transfer(),
        World { send_buffer: 64_512.0, ..World::default() }.transfer(),
        World { app_bps: Some(13e6), ..World::default() }.transfer(),
    ];
    let diagnosis = diagnose_streams(&streams);
    assert_eq!(diagnosis.confidence, Confidence::Low, "{}", report(&diagnosis));
    assert!(diagnosis.shares.values().sum::<f64>() <= 1.0 + 1e-9);
}

#[test]
fn a_known_rate_far_above_the_measured_one_clears_the_path() {
    // A round trip that others inflate does not make this window-limited stream fill the path.
    let mut transfer = World { window: 64_512.0, known: World::exact(95e6), ..World::default() }.transfer();
    for sample in &mut transfer.sender_samples {
        sample.rtt_us = sample.rtt_us.map(|rtt| Micros::new(rtt.get() * 3 / 2));
    }
    assert_eq!(diagnose(&transfer).limiter, Limiter::ReceiveWindow);
    transfer.path_rate = Some(PathRate { rate_bps: Rate::from_bps(95_000_000), lower_bound: true });
    assert_eq!(diagnose(&transfer).limiter, Limiter::ReceiveWindow, "so does a lower bound");
    transfer.path_rate = None;
    assert_eq!(diagnose(&transfer).limiter, Limiter::ReceiveWindow, "no more is in flight than the rate explains");
}

/// A window that is sent in bursts queues behind itself; the first packet of each burst meets an empty path.
#[test]
fn bursts_behind_themselves_are_no_standing_queue() {
    let world = World { path_bps: 1e9, rtt_us: 2_000.0, window: 131_072.0, ..World::default() };
    let mut transfer = world.transfer();
    for sample in &mut transfer.sender_samples {
        sample.rtt_us = sample.rtt_us.map(|rtt| Micros::new(rtt.get() + 371));
    }
    let diagnosis = diagnose(&transfer);
    assert_eq!(diagnosis.limiter, Limiter::ReceiveWindow, "{}", report(&diagnosis));
    // A window just above the product fills the path, and its excess stands in the queue.
    let full = World { window: 1.2 * world.bdp(), ..world }.transfer();
    assert_eq!(diagnose(&full).limiter, Limiter::Path, "{}", report(&diagnose(&full)));
}

/// A saw-tooth between 40 and 80 KB under way, with `lost` segments at each of its tops, over 20 ms without a queue; slow start
/// went up to 200 KB.
fn sawtooth(lost: u64, control: &str) -> Transfer {
    let mut transfer = World { rtt_us: 20_000.0, seconds: 8.0, window: 4e6, ..World::default() }.transfer();
    transfer.sender.congestion_control = Some(control.to_owned());
    let (mut acked, mut retransmits, mut before) = (0, 0, 0);
    for (index, sample) in transfer.sender_samples.iter_mut().enumerate() {
        let at = sample.at_us.get();
        let tooth = index as u64 % 40;
        let flight = if index < 10 { 20_000 * (index as u64 + 1) } else { 40_000 + tooth * 1_000 };
        acked += flight.min(60_000) * (at - before) / 20_000;
        retransmits += if tooth == 39 || index == 10 { lost } else { 0 };
        before = at;
        *sample = SenderSample {
            acked: Bytes::new(acked),
            in_flight: Some(Bytes::new(flight)),
            not_sent: Some(Bytes::new(500_000)),
            cwnd: Some(Bytes::new(flight)),
            rtt_us: Some(Micros::new(20_000)),
            retransmits: Some(retransmits),
            delivery_rate_bps: None,
            ..*sample
        };
    }
    transfer
}

#[test]
fn losses_at_one_height_are_the_path_however_high_slow_start_went() {
    let found = diagnose(&sawtooth(4, "cubic"));
    assert_eq!(found.limiter, Limiter::Path, "{}", report(&found));
}

#[test]
fn a_rate_that_random_losses_would_not_allow_is_a_policer_s() {
    let mut transfer = sawtooth(60, "cubic");
    // No tops tell: what is in flight when it is lost differs.
    for (index, sample) in transfer.sender_samples.iter_mut().enumerate() {
        let scatter = 30_000 + (index as u64).wrapping_mul(2_654_435_761) % 90_000;
        (sample.in_flight, sample.cwnd) = (Some(Bytes::new(scatter)), Some(Bytes::new(scatter)));
    }
    let found = diagnose(&transfer);
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{}", report(&found));
}

/// A sender over an empty path of 10 ms that loses four segments at once again and again, at a level rate of 15 Mbit/s after a faster
/// beginning, in samples of `sample_us`.
fn losing_at_a_level_rate(sample_us: u64) -> Transfer {
    let mut transfer = World { rtt_us: 10_000.0, seconds: 8.0, window: 4e6, ..World::default() }.transfer();
    transfer.sender.congestion_control = Some("cubic".to_owned());
    let flight = Bytes::new(18_750);
    let sample = |index: u64| {
        let at_us = index * sample_us;
        let (fast_us, slow_us) = (at_us.min(240_000), at_us.saturating_sub(240_000));
        SenderSample {
            at_us: Micros::new(at_us),
            acked: Bytes::new((fast_us * 40 + slow_us * 15) / 8),
            in_flight: Some(flight),
            not_sent: Some(Bytes::new(500_000)),
            cwnd: Some(flight),
            rtt_us: Some(Micros::new(10_000)),
            // Four in every 240 ms, of 311 segments.
            retransmits: Some(4 * (slow_us / 240_000)),
            offered_window: Some(Bytes::new(4_000_000)),
            mss: Some(1_448),
            ..SenderSample::default()
        }
    };
    transfer.sender_samples = (0..8_000_000 / sample_us).map(sample).collect();
    transfer
}

#[test]
fn a_segment_that_waits_is_no_queue_in_front_of_a_policer() {
    let evidence = |rtt_us: u64| {
        let mut transfer = losing_at_a_level_rate(2_500);
        for sample in &mut transfer.sender_samples {
            sample.rtt_us = Some(Micros::new(rtt_us));
        }
        let found = diagnose(&transfer);
        assert_eq!(found.detail, Some(Detail::Policed), "{}", report(&found));
        found.evidence.into_iter().map(|evidence| evidence.text).collect::<String>()
    };
    // 1,875 B and 5,625 B at 15 Mbit/s.
    let one = evidence(11_000);
    assert!(one.contains("without a queue: a policer") && !one.contains("queued at the bottleneck"), "{one}");
    let several = evidence(13_000);
    assert!(several.contains("behind a queue") && several.contains("queued at the bottleneck"), "{several}");
}

#[test]
fn losses_several_at_a_time_between_which_one_rate_gets_through_are_a_policer_s() {
    let found = diagnose(&losing_at_a_level_rate(2_500));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{}", report(&found));
    // A twelfth of a second holds many round trips, and losses by chance in several of them.
    let rare = diagnose(&losing_at_a_level_rate(120_000));
    assert_ne!(rare.detail, Some(Detail::Policed), "{}", report(&rare));
    let mut single = losing_at_a_level_rate(2_500);
    for sample in &mut single.sender_samples {
        // What came at once comes one after the other, but for a burst at the beginning.
        sample.retransmits = sample.retransmits.map(|count| count / 4 + if count > 0 { 150 } else { 0 });
    }
    let found = diagnose(&single);
    assert_ne!(found.detail, Some(Detail::Policed), "{}", report(&found));
}
