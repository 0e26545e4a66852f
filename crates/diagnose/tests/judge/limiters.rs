//! What the ends do: windows, buffers, applications, acknowledgements. Each rule with what it must and must not say.

use fullpipe_diagnose::{Confidence, Detail, Limiter, SenderSample, Transfer, diagnose};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    report,
    world::{Control, MSS, World},
};

fn verdict(world: &World) -> (Limiter, Option<Detail>) {
    let diagnosis = diagnose(&world.transfer());
    println!("{}", report(&diagnosis));
    (diagnosis.limiter, diagnosis.detail)
}

/// `wan-80ms`: 64,512 B offered over 100 Mbit/s and 80 ms.
fn small_window(control: Control) -> World {
    World { control, rtt_us: 80_000.0, window: 64_512.0, receiver_shift: Some(0), ..World::default() }
}

#[test]
fn a_window_below_the_product_is_the_limit_under_either_control() {
    for control in [Control::Cubic, Control::Bbr] {
        let diagnosis = diagnose(&small_window(control).transfer());
        let report = report(&diagnosis);
        assert_eq!(
            (diagnosis.limiter, diagnosis.detail),
            (Limiter::ReceiveWindow, Some(Detail::ScaleZero)),
            "{report}"
        );
        assert!(diagnosis.share > 0.85 && diagnosis.confidence == Confidence::High, "{report}");
        // BBR stays below the window in one round trip of eight, and that is the window's doing, too.
        let measured = if control == Control::Bbr { "6.33" } else { "6.4" };
        let arithmetic = format!("64,512 B x 8 / 80.0 ms = 6.45 Mbit/s; measured {measured}");
        assert!(report.contains(&arithmetic), "{report}");
        assert!(diagnosis.action.contains("receiver (b)"), "{report}");
    }
}

#[test]
fn the_reason_for_the_window_follows_the_syn_and_the_application() {
    let by = |receiver_shift, sender_shift, pinned_receive| {
        verdict(&World { receiver_shift, sender_shift, pinned_receive, ..small_window(Control::Cubic) }).1
    };
    assert_eq!(by(None, Some(7), false), Some(Detail::ScalingAbsent));
    assert_eq!(by(Some(7), None, false), Some(Detail::ScalingAbsent));
    assert_eq!(
        by(Some(0), Some(7), true),
        Some(Detail::ScaleZero),
        "the shift bounds the window before the buffer does"
    );
    assert_eq!(by(Some(7), Some(7), true), Some(Detail::PinnedByApplication));
    assert_eq!(by(Some(7), Some(7), false), Some(Detail::WindowCeiling));
}

#[test]
fn scaling_is_advised_only_where_the_window_needs_it() {
    // 17,520 B without scaling over 230 ms: the path may hold more than 65,535 B or not.
    let action = |known| {
        let world = World {
            path_bps: 1.8e6,
            rtt_us: 230_000.0,
            window: 17_520.0,
            receiver_shift: None,
            known,
            ..World::default()
        };
        let diagnosis = diagnose(&world.transfer());
        assert_eq!(diagnosis.detail, Some(Detail::ScalingAbsent), "{}", report(&diagnosis));
        diagnosis.action
    };
    let lower_bound = World::exact(1.8e6).map(|path| fullpipe_diagnose::PathRate { lower_bound: true, ..path });
    for (known, expected) in [
        (
            World::exact(1.8e6),
            "raise the receive window to at least 51,750 B (1.80 Mbit/s x 230 ms / 8): that needs no window scaling",
        ),
        (
            lower_bound,
            "raise the receive window to at least 51,750 B (1.80 Mbit/s x 230 ms / 8): up to 65,535 B need no window scaling; for more, switch it on there, too",
        ),
        (
            None,
            "raise the receive window to at least the path's bandwidth-delay product: up to 65,535 B need no window scaling; for more, switch it on there, too",
        ),
        (World::exact(7e6), "switch window scaling on and offer at least 201,250 B (7.00 Mbit/s x 230 ms / 8)"),
    ] {
        assert_eq!(action(known), format!("on the receiver (b), {expected}"));
    }
}

#[test]
fn an_attainable_rate_is_named_only_where_the_path_was_measured() {
    let world = small_window(Control::Cubic);
    assert_eq!(diagnose(&world.transfer()).attainable_bps, None);
    let known = World { known: World::exact(94e6), ..world };
    let diagnosis = diagnose(&known.transfer());
    assert_eq!(diagnosis.attainable_bps.map(|rate| rate.bps()), Some(94_000_000));
    assert!(diagnosis.action.contains("940,000 B"), "{}", diagnosis.action);
}

#[test]
fn a_window_above_the_product_is_not_blamed_for_a_full_path() {
    for control in [Control::Cubic, Control::Bbr] {
        for factor in [1.15, 1.3, 1.5, 2.0, 8.0] {
            let mut world = World { control, queue: 20.0, ..World::default() };
            world.window = factor * world.bdp();
            assert_eq!(verdict(&world).0, Limiter::Path, "{control:?} at {factor} products");
        }
    }
}

#[test]
fn a_window_at_the_product_is_the_path_where_its_rate_is_known() {
    for factor in [0.95, 1.0, 1.05] {
        let mut world = World { queue: 20.0, ..World::default() };
        world.window = factor * world.bdp();
        world.known = World::exact(world.path_bps);
        assert_eq!(verdict(&world).0, Limiter::Path, "at {factor} products");
    }
}

#[test]
fn windows_well_below_the_product_are_found_at_any_size() {
    for (rate, rtt_us, window) in
        [(1.8e6, 230_000.0, 17_520.0), (7e6, 40_000.0, 17_520.0), (1e9, 10_000.0, 262_144.0), (25e6, 10_000.0, 7_300.0)]
    {
        let world = World { path_bps: rate, rtt_us, window, receiver_shift: Some(0), ..World::default() };
        assert_eq!(verdict(&world).0, Limiter::ReceiveWindow, "{window} B at {rate} bit/s and {rtt_us} us");
    }
}

#[test]
fn a_small_send_buffer_is_told_from_a_small_window() {
    for control in [Control::Cubic, Control::Bbr] {
        for (pinned_send, detail) in [(false, Detail::BufferCap), (true, Detail::PinnedByApplication)] {
            let world = World {
                control,
                rtt_us: 80_000.0,
                window: 1_300_000.0,
                send_buffer: 64_000.0,
                pinned_send,
                ..World::default()
            };
            let diagnosis = diagnose(&world.transfer());
            let report = report(&diagnosis);
            assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::SendBuffer, Some(detail)), "{report}");
            assert!(diagnosis.confidence == Confidence::High && diagnosis.action.contains("sender (a)"), "{report}");
        }
    }
}

#[test]
fn a_well_filled_buffer_in_which_no_writer_waits_holds_nobody() {
    // Linux counts the time (tcpi_sndbuf_limited): 0.4 of it behind a full buffer, none where an application keeps a window of
    // its own and the automatic buffer grew to just that.
    let world = World { rtt_us: 80_000.0, window: 1_300_000.0, send_buffer: 64_000.0, ..World::default() };
    for (share, limiter) in [(0.4, Limiter::SendBuffer), (0.0, Limiter::Application)] {
        let mut transfer = world.transfer();
        for sample in &mut transfer.sender_samples {
            sample.sndbuf_limited_us = Some(Micros::new((share * sample.at_us.get() as f64) as u64));
        }
        let diagnosis = diagnose(&transfer);
        assert_eq!(diagnosis.limiter, limiter, "{}", report(&diagnosis));
    }
}

#[test]
fn a_send_buffer_above_the_product_is_not_blamed_for_a_full_path() {
    let mut world = World { queue: 20.0, ..World::default() };
    world.send_buffer = 1.3 * world.bdp();
    assert_eq!(verdict(&world).0, Limiter::Path);
}

#[test]
fn window_and_buffer_of_one_size_are_the_window() {
    let world = World { send_buffer: 65_536.0, pinned_send: true, ..small_window(Control::Cubic) };
    assert_eq!(verdict(&world).0, Limiter::ReceiveWindow, "the receiver's end must be changed first");
}

#[test]
fn an_application_that_writes_slowly_is_the_limit() {
    let world = World { app_bps: Some(10e6), ..World::default() };
    let diagnosis = diagnose(&world.transfer());
    assert_eq!(diagnosis.limiter, Limiter::Application, "{}", report(&diagnosis));
    assert_eq!(diagnosis.detail, None);
}

#[test]
fn an_idle_application_is_told_from_a_slow_one() {
    let mut transfer = World { app_bps: Some(10e6), ..World::default() }.transfer();
    let stop = transfer.sender_samples.len() / 4;
    let last = transfer.sender_samples[stop];
    for sample in &mut transfer.sender_samples[stop..] {
        sample.acked = last.acked;
        sample.in_flight = Some(Bytes::ZERO);
    }
    let diagnosis = diagnose(&transfer);
    assert_eq!(
        (diagnosis.limiter, diagnosis.detail),
        (Limiter::Application, Some(Detail::Idle)),
        "{}",
        report(&diagnosis)
    );
}

#[test]
fn a_closed_window_is_a_slow_reader_or_a_hung_one() {
    let mut transfer = World { window: 200_000.0, ..World::default() }.transfer();
    let close = |transfer: &mut Transfer, keep_closed: bool| {
        let count = transfer.sender_samples.len();
        for (index, sample) in transfer.sender_samples.iter_mut().enumerate().skip(20) {
            if index % 4 != 3 || (keep_closed && index > count / 3) {
                sample.offered_window = Some(Bytes::ZERO);
            }
        }
    };
    close(&mut transfer, false);
    transfer.sender_samples.pop();
    while transfer.sender_samples.last().is_some_and(|s| s.offered_window == Some(Bytes::ZERO)) {
        transfer.sender_samples.pop();
    }
    let slow = diagnose(&transfer);
    assert_eq!((slow.limiter, slow.detail), (Limiter::ReceiveWindow, Some(Detail::SlowReader)), "{}", report(&slow));
    assert!(slow.action.contains("read faster"));
    close(&mut transfer, true);
    if let Some(last) = transfer.sender_samples.last_mut() {
        last.offered_window = Some(Bytes::ZERO);
    }
    let hung = diagnose(&transfer);
    assert_eq!((hung.limiter, hung.detail), (Limiter::ReceiveWindow, Some(Detail::ZeroWindow)), "{}", report(&hung));
}

#[test]
fn data_that_the_application_leaves_unread_makes_it_a_slow_reader() {
    let mut transfer = small_window(Control::Cubic).transfer();
    for sample in &mut transfer.receiver_samples {
        sample.unread = Some(Bytes::new(50_000));
    }
    assert_eq!(diagnose(&transfer).detail, Some(Detail::SlowReader));
}

fn lone_segments(waiting: u64, delay_us: u64) -> Transfer {
    let mut transfer = World { rtt_us: 10_000.0, app_bps: Some(10e6), ..World::default() }.transfer();
    for (index, sample) in transfer.sender_samples.iter_mut().enumerate() {
        sample.acked = Bytes::new(index as u64 * 300);
        sample.in_flight = Some(Bytes::new(700));
        sample.not_sent = Some(Bytes::new(waiting));
        sample.rtt_us = Some(Micros::new(10_000 + delay_us));
    }
    transfer
}

#[test]
fn a_lone_segment_whose_ack_is_late_is_ack_delay() {
    let nagle = diagnose(&lone_segments(500, 40_000));
    assert_eq!((nagle.limiter, nagle.detail), (Limiter::AckDelay, Some(Detail::Nagle)), "{}", report(&nagle));
    let timer = diagnose(&lone_segments(0, 200_000));
    assert_eq!((timer.limiter, timer.detail), (Limiter::AckDelay, Some(Detail::DelayedAck)), "{}", report(&timer));
    // Linux waits 40 ms, and every second segment is acknowledged by the answer.
    let smoothed = diagnose(&lone_segments(500, 20_000));
    assert_eq!((smoothed.limiter, smoothed.detail), (Limiter::AckDelay, Some(Detail::Nagle)), "{}", report(&smoothed));
    let answered = diagnose(&lone_segments(0, 20_000));
    assert_eq!(answered.limiter, Limiter::Application, "{}", report(&answered));
    let prompt = diagnose(&lone_segments(0, 1_000));
    assert_eq!(prompt.limiter, Limiter::Application, "{}", report(&prompt));
}

/// 100 ms of samples for each message of two halves, of which the second waits for an acknowledgement that comes 42 ms later.
fn halves_that_wait() -> Transfer {
    let mut transfer = World { rtt_us: 2_000.0, seconds: 1.3, ..World::default() }.transfer();
    let first = transfer.sender_samples[0];
    transfer.sender_samples = (0..1_300_u64)
        .map(|ms| {
            let (message, into) = (ms / 50, ms % 50);
            let waits = into < 42;
            SenderSample {
                at_us: Micros::new(ms * 1_000),
                acked: Bytes::new(message * 300 + if waits { 0 } else { 150 }),
                in_flight: Some(Bytes::new(150)),
                not_sent: Some(Bytes::new(if waits { 150 } else { 0 })),
                rtt_us: Some(Micros::new(2_000)),
                ..first
            }
        })
        .collect();
    transfer
}

#[test]
fn what_waits_behind_a_late_acknowledgement_again_and_again_is_nagle_however_little_it_is() {
    let nagle = diagnose(&halves_that_wait());
    assert_eq!((nagle.limiter, nagle.detail), (Limiter::AckDelay, Some(Detail::Nagle)), "{}", report(&nagle));
}

/// As much in flight all the time, more written behind it, nothing lost, and the round trip of the empty path.
fn level(sndbuf_share: f64) -> Transfer {
    let mut transfer = World { rtt_us: 40_000.0, seconds: 8.0, window: 1e6, ..World::default() }.transfer();
    for sample in &mut transfer.sender_samples {
        let at = sample.at_us.get();
        *sample = SenderSample {
            acked: Bytes::new(at * 60_000 / 40_000),
            in_flight: Some(Bytes::new(60_000)),
            not_sent: Some(Bytes::new(30_000)),
            cwnd: Some(Bytes::new(60_000)),
            rtt_us: Some(Micros::new(40_000)),
            retransmits: Some(0),
            delivery_rate_bps: None,
            sndbuf_limited_us: Some(Micros::new((at as f64 * sndbuf_share) as u64)),
            rwnd_limited_us: Some(Micros::ZERO),
            ..*sample
        };
    }
    transfer
}

#[test]
fn a_kernel_that_counts_the_waiting_of_a_writer_is_believed_though_something_waits_to_be_sent() {
    let buffer = diagnose(&level(0.9));
    assert_eq!(buffer.limiter, Limiter::SendBuffer, "{}", report(&buffer));
}

/// As `TCP_INFO` showed `iperf3 -w 64K` at 40 ms: what is in flight is the whole window in one sample of four and well below it in
/// the others, nothing queues, and the kernel counts a quarter of the time for the window.
fn below_its_window(control: Control, rtt_us: u64, rwnd_share: f64) -> Transfer {
    let mut transfer = World { control, rtt_us: 40_000.0, seconds: 8.0, ..World::default() }.transfer();
    for (number, sample) in transfer.sender_samples.iter_mut().enumerate() {
        let at = sample.at_us.get();
        let is_whole = number % 4 == 0;
        *sample = SenderSample {
            acked: Bytes::new(at * 72_000 / 40_000),
            in_flight: Some(Bytes::new(if is_whole { 80_480 } else { 68_895 })),
            not_sent: Some(Bytes::new(57_920)),
            offered_window: Some(Bytes::new(80_480)),
            cwnd: Some(Bytes::new(200_000)),
            rtt_us: Some(Micros::new(if is_whole { rtt_us } else { 40_400 })),
            min_rtt_us: Some(Micros::new(40_000)),
            retransmits: Some(0),
            delivery_rate_bps: None,
            send_buffer: Some(Bytes::new(131_072)),
            send_queued: Some(Bytes::new(120_000)),
            sndbuf_limited_us: Some(Micros::ZERO),
            rwnd_limited_us: Some(Micros::new((at as f64 * rwnd_share) as u64)),
            ..*sample
        };
    }
    transfer
}

#[test]
fn a_sender_that_stays_below_its_window_between_the_times_that_it_is_used_up_is_held_by_it() {
    for control in [Control::Bbr, Control::Cubic] {
        let window = diagnose(&below_its_window(control, 40_600, 0.25));
        assert_eq!(window.limiter, Limiter::ReceiveWindow, "{control:?}: {}", report(&window));
        // Where a queue shows whenever more is sent, the path is what holds it at that rate.
        let queueing = diagnose(&below_its_window(control, 50_000, 0.25));
        assert_eq!(queueing.limiter, Limiter::Path, "{control:?}: {}", report(&queueing));
        // That the path is known to carry more changes nothing (64,512 B at 1 Gbit/s and 1 ms had read as a congestion window).
        let known = Transfer { path_rate: World::exact(100e6), ..below_its_window(control, 40_600, 0.25) };
        let known = diagnose(&known);
        assert_eq!(known.limiter, Limiter::ReceiveWindow, "{control:?}: {}", report(&known));
    }
}

/// As `TCP_INFO` showed a blocking writer with `SO_SNDBUF` under CUBIC: its congestion window is used up, too, and so the kernel
/// counts no time for the buffer, which holds `queued` bytes in every second sample.
fn buffered(queued: u64) -> Transfer {
    queueing(131_072, |number| if number.is_multiple_of(2) { queued } else { 100_000 })
}

/// A writer behind a buffer of so many bytes, of which each sample has `queued`.
fn queueing(buffer: u64, queued: impl Fn(usize) -> u64) -> Transfer {
    let mut transfer = World { rtt_us: 40_000.0, seconds: 8.0, ..World::default() }.transfer();
    for (number, sample) in transfer.sender_samples.iter_mut().enumerate() {
        let at = sample.at_us.get();
        *sample = SenderSample {
            acked: Bytes::new(at * 60_000 / 40_000),
            in_flight: Some(Bytes::new(60_000)),
            not_sent: Some(Bytes::ZERO),
            cwnd: Some(Bytes::new(62_000)),
            rtt_us: Some(Micros::new(40_400)),
            min_rtt_us: Some(Micros::new(40_000)),
            retransmits: Some(0),
            delivery_rate_bps: None,
            send_buffer: Some(Bytes::new(buffer)),
            send_queued: Some(Bytes::new(queued(number))),
            sndbuf_limited_us: Some(Micros::ZERO),
            rwnd_limited_us: Some(Micros::ZERO),
            ..*sample
        };
    }
    transfer
}

#[test]
fn a_buffer_that_holds_more_than_it_may_makes_its_writer_wait_though_the_kernel_does_not_count_it() {
    let full = diagnose(&buffered(140_000));
    assert_eq!(full.limiter, Limiter::SendBuffer, "{}", report(&full));
    let filled = diagnose(&buffered(120_000));
    assert_eq!(filled.limiter, Limiter::Application, "{}", report(&filled));
}

#[test]
fn a_large_buffer_whose_writer_is_about_to_be_woken_holds_the_sender() {
    // Two thirds are 800,000 B.
    let limiter = |queued: fn(usize) -> u64, acked_us: u64| {
        let mut transfer = queueing(1_200_000, queued);
        for sample in &mut transfer.sender_samples {
            sample.acked = Bytes::new(sample.at_us.get() / acked_us * acked_us * 60_000 / 40_000);
        }
        let diagnosis = diagnose(&transfer);
        println!("{}", report(&diagnosis));
        diagnosis.limiter
    };
    let resting = |number| if number % 100 == 0 { 1_000_000 } else { 850_000 };
    assert_eq!(limiter(resting, 40_000), Limiter::SendBuffer);
    // An application that keeps as much on its way writes meanwhile, and is answered.
    assert_eq!(limiter(resting, 1), Limiter::Application);
    // ... or waits in between.
    assert_eq!(limiter(|number| if number % 4 == 0 { 300_000 } else { 850_000 }, 40_000), Limiter::Application);
    // One sample in twenty finds it nearly full, to the end, and none far from that.
    let filled = |number| if number % 20 == 0 { 1_150_000 } else { 1_000_000 };
    assert_eq!(limiter(filled, 1), Limiter::SendBuffer);
    let caught_up = |number| if number % 20 == 0 && number < 100 { 1_150_000 } else { 1_000_000 };
    assert_eq!(limiter(caught_up, 1), Limiter::Application);
    assert_eq!(limiter(|number| if number % 20 == 0 { 1_150_000 } else { 500_000 }, 1), Limiter::Application);
}

#[test]
fn a_busy_processor_is_blamed_only_where_nothing_else_explains_the_rate() {
    // The path has room, data waits, and less is in flight than congestion control allows.
    let mut transfer = World { cpu: 0.99, known: World::exact(900e6), ..World::default() }.transfer();
    for sample in &mut transfer.sender_samples {
        sample.in_flight = sample.cwnd.map(|cwnd| Bytes::new(cwnd.get() / 2));
        sample.rtt_us = sample.min_rtt_us;
        sample.pacing_rate_bps = Some(Rate::from_bps(240_000_000));
        sample.retransmits = Some(0);
    }
    let diagnosis = diagnose(&transfer);
    assert_eq!(diagnosis.limiter, Limiter::Cpu, "{}", report(&diagnosis));
    for control in [Control::Cubic, Control::Bbr] {
        assert_eq!(verdict(&World { control, cpu: 1.0, ..World::default() }).0, Limiter::Path);
    }
}

#[test]
fn too_little_is_not_enough_evidence() {
    let short = diagnose(&World { seconds: 0.1, ..World::default() }.transfer());
    assert_eq!(short.limiter, Limiter::InsufficientEvidence, "{}", report(&short));
    let mut few = World::default().transfer();
    for (index, sample) in few.sender_samples.iter_mut().enumerate() {
        sample.acked = Bytes::new((index as u64 * 100).min(19 * MSS as u64));
    }
    assert_eq!(diagnose(&few).limiter, Limiter::InsufficientEvidence);
    assert_eq!(diagnose(&Transfer::default()).limiter, Limiter::InsufficientEvidence);
}

#[test]
fn the_sender_alone_gives_the_same_verdict_with_less_confidence() {
    let mut transfer = small_window(Control::Cubic).transfer();
    transfer.receiver_samples.clear();
    let diagnosis = diagnose(&transfer);
    assert_eq!((diagnosis.limiter, diagnosis.confidence), (Limiter::ReceiveWindow, Confidence::Medium));
    assert!(diagnosis.blind.iter().any(|text| text.contains("receiver was not seen")), "{}", report(&diagnosis));
}

#[test]
fn the_receiver_alone_sees_a_small_window_and_nothing_else() {
    let mut transfer = small_window(Control::Cubic).transfer();
    transfer.sender_samples.clear();
    let diagnosis = diagnose(&transfer);
    assert_eq!((diagnosis.limiter, diagnosis.confidence), (Limiter::ReceiveWindow, Confidence::Low));
    let mut wide = World::default().transfer();
    wide.sender_samples.clear();
    let diagnosis = diagnose(&wide);
    assert_eq!(diagnosis.limiter, Limiter::InsufficientEvidence, "{}", report(&diagnosis));
    assert!(diagnosis.blind.iter().any(|text| text.contains("sender was not seen")));
}
