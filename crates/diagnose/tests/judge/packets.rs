//! What packets alone show: timelines as a capture makes them, of intervals of half a round trip.

use fullpipe_diagnose::{
    Detail, Drop, Drops, End, Limiter, Opening, PacketSample, ReceiverSample, RttSummary, SenderSample, Source,
    SynFacts, Transfer, diagnose, diagnose_with_runs,
};
use fullpipe_units::{Bytes, Micros};

const MSS: u64 = 1_448;
const RTT_US: u64 = 80_000;
const STEP_US: u64 = RTT_US / 2;

/// One interval.
#[derive(Clone, Copy)]
struct Step {
    /// Segments that arrived.
    arrived: u64,
    /// Segments in flight.
    in_flight: u64,
    lost: u64,
    rtt_us: u64,
    window: Option<u64>,
    packets: PacketSample,
    timeouts: u64,
}

/// So many segments in each half of a round trip.
fn step(arrived: u64) -> Step {
    let in_flight = 2 * arrived;
    let packets = PacketSample { sent: Bytes::new(arrived * MSS), ..PacketSample::default() };
    Step { arrived, in_flight, lost: 0, rtt_us: RTT_US, window: Some(4_000_000), packets, timeouts: 0 }
}

fn losing(arrived: u64, lost: u64) -> Step {
    Step { lost, ..step(arrived) }
}

fn end(name: &str, opened: bool, scale: Option<u8>) -> End {
    let syn = SynFacts { mss: Some(1_460), window_scale: scale, timestamps: true, ..SynFacts::default() };
    End { name: name.to_owned(), syn: scale.map(|_| syn), opened: Some(opened), ..End::default() }
}

fn transfer(steps: &[Step]) -> Transfer {
    let mut sample = SenderSample {
        mss: Some(MSS as u32),
        retransmits: Some(0),
        timeouts: Some(0),
        packets: Some(PacketSample::default()),
        ..SenderSample::default()
    };
    let mut samples = vec![sample];
    let mut receivers = Vec::new();
    let mut largest = 0;
    let mut drops = Drops::default();
    for step in steps {
        let bytes = step.arrived * MSS;
        if step.lost > 0 {
            // The first and the last of them.
            let point = |at_us: u64, passed: u64| Drop { at_us: Micros::new(at_us), passed: Bytes::new(passed) };
            let (at_us, passed) = (sample.at_us.get(), sample.acked.get());
            drops.list.extend([point(at_us, passed), point(at_us + STEP_US - 1, passed + bytes)]);
            drops.bytes = Bytes::new(drops.bytes.get() + step.lost * MSS);
            drops.wait_us = Some(Micros::new(step.rtt_us - RTT_US));
        }
        largest = largest.max(step.window.unwrap_or(0));
        sample = SenderSample {
            at_us: Micros::new(sample.at_us.get() + STEP_US),
            acked: Bytes::new(sample.acked.get() + bytes),
            in_flight: Some(Bytes::new(step.in_flight * MSS)),
            offered_window: step.window.map(Bytes::new),
            rtt_us: Some(Micros::new(step.rtt_us)),
            retransmits: sample.retransmits.map(|count| count + step.lost),
            timeouts: sample.timeouts.map(|count| count + step.timeouts),
            packets: Some(PacketSample {
                peak: step.packets.peak.max(Bytes::new(step.in_flight * MSS)),
                delivered: Bytes::new(bytes),
                ..step.packets
            }),
            ..sample
        };
        samples.push(sample);
        receivers.push(ReceiverSample {
            at_us: sample.at_us,
            received: sample.acked,
            offered_window: step.window.map(Bytes::new),
            unread: step.window.map(|window| Bytes::new(largest - window)),
            ..ReceiverSample::default()
        });
    }
    let rtt = Micros::new(RTT_US);
    Transfer {
        source: Source::Capture,
        sender: end("a", true, Some(7)),
        receiver: end("b", false, Some(7)),
        bytes: sample.acked,
        duration_us: sample.at_us,
        idle_rtt: Some(RttSummary { min_us: rtt, p50_us: rtt, count: 9 }),
        sender_samples: samples,
        receiver_samples: receivers,
        drops: Some(drops).filter(|drops| !drops.list.is_empty()),
        ..Transfer::default()
    }
}

fn repeat(step: Step, count: usize) -> Vec<Step> {
    vec![step; count]
}

/// Doubling up to 100 segments in half a round trip, then what a bucket lets through: 40.
fn policed() -> Vec<Step> {
    let mut steps: Vec<Step> = [10, 20, 40, 80, 100, 100].into_iter().map(step).collect();
    steps.extend(repeat(losing(40, 30), 8));
    // Growth up to the rate, and beyond it.
    for part in [28, 30, 32, 34, 36, 38, 39, 40, 40, 40] {
        steps.extend(repeat(step(part), 4));
    }
    steps.extend(repeat(losing(40, 6), 3));
    for part in [28, 30, 32, 34, 36, 38, 39, 40, 40, 40] {
        steps.extend(repeat(step(part), 4));
    }
    steps
}

#[test]
fn losses_at_one_rate_after_a_faster_beginning_and_without_a_queue_are_a_policer() {
    let found = diagnose(&transfer(&policed()));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{found:#?}");
}

#[test]
fn what_comes_late_or_waits_to_be_asked_is_not_a_policers() {
    let mut late = transfer(&policed());
    for sample in &mut late.sender_samples {
        sample.dsacks = sample.retransmits.and_then(|count| u32::try_from(count).ok());
    }
    assert_ne!(diagnose(&late).detail, Some(Detail::Policed));
    // Two half round trips of eight without data, and then the next request is there: the bucket fills up meanwhile.
    let mut asked = transfer(&policed());
    for (number, sample) in asked.sender_samples.iter_mut().enumerate() {
        let Some(packets) = sample.packets.as_mut().filter(|_| number % 8 < 2) else { continue };
        packets.dry_us = Micros::new(STEP_US);
        packets.asked = u32::from(number % 8 == 0);
    }
    assert_ne!(diagnose(&asked).detail, Some(Detail::Policed));
}

/// As a video that was recorded: pieces of one size, each with a burst at its beginning that a short queue drops a part of. From one to the
/// next as much gets through in as much time, and a bucket would have filled up before each.
#[test]
fn pieces_of_one_size_with_rests_between_them_are_not_a_policers() {
    let at_rest = Step {
        in_flight: 0,
        packets: PacketSample { idle_us: Micros::new(STEP_US), ..PacketSample::default() },
        ..step(0)
    };
    let mut steps = Vec::new();
    for _ in 0..8 {
        steps.extend([losing(15, 4)]);
        steps.extend(repeat(step(15), 60));
        steps.extend(repeat(at_rest, 12));
    }
    assert_ne!(diagnose(&transfer(&steps)).detail, Some(Detail::Policed));
    // Without the rests nothing speaks against one.
    steps.retain(|step| step.arrived > 0);
    assert_eq!(diagnose(&transfer(&steps)).detail, Some(Detail::Policed));
}

/// As CUBIC was recorded over 100 ms behind a queue of 8 KB: between losses two segments more in eight round trips, each step as level as a
/// buffer would make it.
#[test]
fn the_steps_of_a_window_that_grows_slowly_are_no_send_buffer() {
    let flight = |segments: u64| Step {
        in_flight: segments,
        packets: PacketSample {
            sent: Bytes::new(segments / 2 * MSS),
            prompted: Bytes::new(segments / 2 * MSS),
            clocked: 1,
            dry_us: Micros::new(STEP_US / 2),
            ..PacketSample::default()
        },
        ..step(segments / 2)
    };
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(losing(20, 2));
        (22..=34).step_by(2).for_each(|segments| steps.extend(repeat(flight(segments), 20)));
    }
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::Loss)), "{found:#?}");
    // One level throughout is one.
    let steps: Vec<Step> = [losing(20, 2)].into_iter().chain(repeat(flight(34), 400)).collect();
    assert_eq!(diagnose(&transfer(&steps)).limiter, Limiter::SendBuffer);
}

#[test]
fn a_policed_sender_that_is_slow_for_a_while_after_its_losses_is_policed_all_the_same() {
    let mut steps = policed();
    steps.extend(repeat(losing(40, 6), 3));
    // A timeout, and what comes after it.
    steps.extend(repeat(step(12), 60));
    for _ in 0..2 {
        steps.extend(repeat(losing(40, 6), 3));
        for part in [28, 30, 32, 34, 36, 38, 39, 40, 40, 40] {
            steps.extend(repeat(step(part), 4));
        }
    }
    steps.extend(repeat(losing(40, 6), 3));
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{found:#?}");
}

#[test]
fn the_same_losses_with_a_queue_are_a_full_link() {
    let mut steps = policed();
    steps.iter_mut().skip(4).for_each(|step| step.rtt_us = 2 * RTT_US);
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Saturated)), "{found:#?}");
}

#[test]
fn a_bucket_behind_a_queue_is_not_said_to_have_none() {
    // As a cable modem that was recorded: faster at first, then level, with little waiting where it loses and more elsewhere.
    let mut steps = policed();
    steps.iter_mut().skip(6).for_each(|step| step.rtt_us = RTT_US + RTT_US / if step.lost > 0 { 10 } else { 1 });
    let found = diagnose(&transfer(&steps));
    let said: Vec<&str> = found.evidence.iter().map(|evidence| evidence.text.as_str()).collect();
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{found:#?}");
    assert!(said.iter().any(|text| text.contains("queued at the bottleneck")), "{said:#?}");
    assert!(said.iter().any(|text| text.contains("a bucket of tokens behind a queue")), "{said:#?}");
}

#[test]
fn a_link_is_never_faster_than_where_it_loses_and_no_policer() {
    let mut steps = policed();
    steps.iter_mut().for_each(|step| step.arrived = step.arrived.min(40));
    // It has room for a few segments, which are there when it loses one.
    steps.iter_mut().filter(|step| step.lost > 0).for_each(|step| step.rtt_us = RTT_US + RTT_US / 10);
    let found = diagnose(&transfer(&steps));
    assert_ne!(found.detail, Some(Detail::Policed), "{found:#?}");
}

#[test]
fn losses_in_bursts_at_one_rate_behind_which_nothing_waits_are_a_policer() {
    // Whoever pauses between its bursts fills the bucket again, and over half a round trip is never faster than the rate.
    let mut steps = policed();
    steps.iter_mut().for_each(|step| step.arrived = step.arrived.min(40));
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{found:#?}");
}

#[test]
fn one_pause_between_two_losses_is_no_level_rate() {
    // All at once, a timer, and the way up to the link's rate, at which nothing is lost any more.
    let mut steps: Vec<Step> = [10, 20, 40, 80, 100].into_iter().map(step).collect();
    steps.extend(repeat(losing(40, 30), 6));
    steps.extend(repeat(step(1), 60));
    steps.extend(repeat(losing(2, 3), 1));
    let found = diagnose(&transfer(&steps));
    assert_ne!(found.detail, Some(Detail::Policed), "{found:#?}");
}

#[test]
fn needless_retransmissions_behind_many_needed_ones_are_no_reordering() {
    // The path runs dry, and of eight that are retransmitted in each event more than half had arrived.
    let mut steps: Vec<Step> = [10, 20, 40].into_iter().map(step).collect();
    for round in 0..30_u64 {
        let rate = 8 + round * 7 % 13;
        steps.extend(repeat(step(rate), 5));
        steps.push(losing(rate, 8));
    }
    steps.iter_mut().for_each(|step| step.packets.dry_us = Micros::new(STEP_US / 2));
    let mut seen = transfer(&steps);
    for sample in &mut seen.sender_samples {
        sample.dsacks = sample.retransmits.map(|count| (count * 55 / 100) as u32);
    }
    let found = diagnose(&seen);
    assert_eq!(found.detail, Some(Detail::Loss), "{found:#?}");
}

/// One event in slow start, and then a send buffer that its writer uses up.
#[test]
fn what_ends_slow_start_says_nothing_of_what_comes_then() {
    let mut steps: Vec<Step> = [10, 20, 40, 80].into_iter().map(step).collect();
    steps.extend(repeat(losing(40, 30), 2));
    let woken = PacketSample {
        woken: 1,
        prompts: 4,
        sent: Bytes::new(20 * MSS),
        prompted: Bytes::new(20 * MSS),
        ..PacketSample::default()
    };
    steps.extend(repeat(Step { window: Some(1 << 20), packets: woken, ..step(20) }, 120));
    let found = diagnose(&transfer(&steps));
    assert_eq!(found.limiter, Limiter::SendBuffer, "{found:#?}");
}

#[test]
fn single_losses_at_any_rate_are_no_policer() {
    let mut steps: Vec<Step> = [10, 20, 40, 80].into_iter().map(step).collect();
    for round in 0..30_u64 {
        steps.extend(repeat(step(8 + round * 7 % 13), 5));
        steps.push(losing(8 + round * 7 % 13, 1));
    }
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::Loss)), "{found:#?}");
}

#[test]
fn a_level_flight_at_the_rate_of_a_policer_is_no_send_buffer() {
    let mut steps: Vec<Step> = [10, 20, 40, 80, 100, 100].into_iter().map(step).collect();
    steps.extend(repeat(losing(40, 30), 8));
    steps.extend(repeat(step(40), 80));
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{found:#?}");
}

/// Random losses now and then strike at whatever rate there is, however fast it went at first.
#[test]
fn losses_at_many_rates_after_a_faster_beginning_are_no_policer() {
    let mut steps: Vec<Step> = [10, 20, 40, 80, 100, 100].into_iter().map(step).collect();
    for round in 0..20_u64 {
        steps.extend(repeat(losing(10 + round * 11 % 37, 4), 2));
        steps.extend(repeat(step(10 + round * 17 % 41), 6));
    }
    let found = diagnose(&transfer(&steps));
    assert_ne!(found.detail, Some(Detail::Policed), "{found:#?}");
}

/// As much in each round trip, without a gap and without a queue: `SO_MAX_PACING_RATE`.
#[test]
fn a_sender_that_keeps_to_a_rate_of_its_own_without_a_queue_is_no_full_buffer() {
    let mut paced = step(20);
    paced.packets.prompted = paced.packets.sent;
    paced.packets.prompts = 20;
    let found = diagnose(&transfer(&repeat(paced, 80)));
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
}

/// SSH: what the receiving application takes it tells the sending one, which sends as much again.
#[test]
fn a_level_flight_that_goes_on_after_messages_is_the_applications_own_window() {
    let mut steps = repeat(clocked(20), 80);
    assert_eq!(diagnose(&transfer(&steps)).limiter, Limiter::SendBuffer);
    for step in &mut steps {
        step.packets.credits = 4;
        step.packets.credited = Bytes::new(step.packets.sent.get() / 2);
    }
    let found = diagnose(&transfer(&steps));
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
    assert!(found.evidence[0].text.contains("window of their own"), "{found:#?}");
}

/// A flight that doesn't grow, in a path with gaps, without a queue or a loss: no congestion window stays so.
#[test]
fn a_flight_that_neither_grows_nor_queues_nor_loses_is_no_congestion_window() {
    let unsteady = (0..90_u64).map(|place| clocked(16 + place * 7 % 9)).collect::<Vec<_>>();
    let found = diagnose(&transfer(&unsteady));
    assert_eq!(found.limiter, Limiter::SendBuffer, "{found:#?}");
}

#[test]
fn a_window_that_shrinks_to_half_now_and_then_is_filled_by_a_slow_reader() {
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..30 {
        let held = Step { window: Some(40 * MSS), ..step(20) };
        steps.extend([held, held, Step { window: Some(12 * MSS), ..step(20) }]);
    }
    steps.iter_mut().for_each(|step| step.packets.held_us = Micros::new(STEP_US));
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::ReceiveWindow, Some(Detail::SlowReader)), "{found:#?}");
}

#[test]
fn one_segment_at_a_time_is_the_application_and_no_opening_window() {
    let lone = Step { in_flight: 1, ..step(1) };
    let found = diagnose(&transfer(&repeat(lone, 80)));
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
}

/// A sender that answers each acknowledgement at once, in bursts that leave the path empty between them.
fn clocked(arrived: u64) -> Step {
    let mut step = step(arrived);
    step.packets.prompted = step.packets.sent;
    step.packets.prompts = (arrived / 2) as u32;
    step.packets.dry_us = Micros::new(STEP_US / 2);
    step
}

#[test]
fn a_level_flight_is_a_buffer_only_where_the_window_was_seen_to_be_larger() {
    let steps = repeat(clocked(20), 80);
    assert_eq!(diagnose(&transfer(&steps)).limiter, Limiter::SendBuffer);
    // No SYN, and so no scale.
    let blind: Vec<Step> = steps.iter().map(|step| Step { window: None, ..*step }).collect();
    let mut story = transfer(&blind);
    (story.sender.syn, story.receiver.syn) = (None, None);
    let found = diagnose(&story);
    assert_eq!(found.limiter, Limiter::InsufficientEvidence, "{found:#?}");
    assert!(found.evidence[0].text.contains("SYN"), "{found:#?}");
}

#[test]
fn a_level_flight_of_one_write_is_the_application_s_pace() {
    let mut story = transfer(&repeat(clocked(20), 80));
    story.write = Some(Bytes::new(40 * MSS - 500));
    assert_eq!(diagnose(&story).limiter, Limiter::Application);
    story.write = Some(Bytes::new(60 * MSS));
    assert_eq!(diagnose(&story).limiter, Limiter::SendBuffer);
}

#[test]
fn a_flight_that_runs_half_empty_in_each_round_trip_is_no_full_buffer() {
    let mut burst = Step { in_flight: 10, ..step(20) };
    burst.packets.peak = Bytes::new(40 * MSS);
    let found = diagnose(&transfer(&repeat(burst, 80)));
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
}

#[test]
fn a_paced_sender_just_below_a_window_that_shrank_is_held_by_the_reader() {
    let mut steps: Vec<Step> = [10, 20, 40, 80].into_iter().map(step).collect();
    // 80 segments of a window of 100 in flight, of which nothing was prompted.
    let mut paced = Step { window: Some(100 * MSS), ..step(40) };
    paced.packets.unprompted = paced.packets.sent;
    steps.extend(repeat(paced, 80));
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::ReceiveWindow, Some(Detail::SlowReader)), "{found:#?}");
}

#[test]
fn a_timer_for_the_end_of_a_flight_is_a_tail_loss() {
    let silent = Step { in_flight: 2, ..step(0) };
    let mut timeout = Step { lost: 1, timeouts: 1, ..silent };
    let mut cycle = repeat(step(3), 2);
    cycle.extend(repeat(silent, 5));
    cycle.push(timeout);
    let rto: Vec<Step> = cycle.iter().copied().cycle().take(80).collect();
    let found = diagnose(&transfer(&rto));
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::Rto)), "{found:#?}");
    timeout.packets.tails = 1;
    cycle.pop();
    cycle.push(timeout);
    let tail: Vec<Step> = cycle.iter().copied().cycle().take(80).collect();
    let found = diagnose(&transfer(&tail));
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::TailLoss)), "{found:#?}");
}

#[test]
fn a_handshake_that_was_repeated_and_took_most_of_the_time_is_the_limiter() {
    let mut story = transfer(&[step(10), step(4)]);
    let opening = Opening { took_us: Micros::from_millis(2_080), syn_retransmissions: 2, ..Opening::default() };
    story.opening = Some(opening);
    let found = diagnose(&story);
    assert_eq!(found.limiter, Limiter::Handshake, "{found:#?}");
    assert!(found.evidence[0].text.contains("sent 3 times"), "{found:#?}");
    assert!(found.shares.values().sum::<f64>() <= 1.0 + 1e-9, "{found:#?}");
    // One round trip, however short the rest is, is what a handshake takes.
    story.opening = Some(Opening { took_us: Micros::new(RTT_US), syn_retransmissions: 0, ..opening });
    assert_eq!(diagnose(&story).limiter, Limiter::InsufficientEvidence);
}

#[test]
fn a_small_initial_window_is_named_with_what_is_allowed() {
    let steps: Vec<Step> = [1, 1, 2, 2, 4, 4, 8, 8, 16, 16].into_iter().map(step).collect();
    let mut story = transfer(&steps);
    let initial_window = Some(Bytes::new(2 * MSS));
    story.opening = Some(Opening { initial_window, ..Opening::default() });
    let found = diagnose(&story);
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::SlowStart)), "{found:#?}");
    assert!(found.evidence.iter().any(|reason| reason.text.contains("2 segments; RFC 6928 allows 10")), "{found:#?}");
    assert!(found.action.contains("begin with 10 segments"), "{found:#?}");
}

#[test]
fn too_few_round_trips_or_segments_are_not_enough() {
    for steps in [repeat(step(20), 6), repeat(step(1), 12)] {
        let found = diagnose(&transfer(&steps));
        assert_eq!(found.limiter, Limiter::InsufficientEvidence, "{found:#?}");
    }
}

#[test]
fn a_level_flight_that_leaves_the_path_no_gap_and_shows_no_queue_is_neither_a_buffer_nor_a_full_path() {
    let mut even = clocked(20);
    even.packets.dry_us = Micros::ZERO;
    even.packets.prompts = 80;
    let found = diagnose(&transfer(&repeat(even, 80)));
    assert!(!matches!(found.limiter, Limiter::SendBuffer | Limiter::Path), "{found:#?}");
}

/// Pauses of the sender in every second step, ended as `end` says.
fn pausing(end: fn(&mut PacketSample)) -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 0..40_u64 {
        let mut pause = clocked(15 + round % 9);
        pause.packets.prompted = Bytes::ZERO;
        pause.packets.prompts = 2;
        end(&mut pause.packets);
        let mut burst = clocked(30 - round % 7);
        burst.packets.prompted = Bytes::ZERO;
        steps.extend([pause, burst]);
    }
    steps
}

#[test]
fn a_later_acknowledgement_than_the_first_wakes_a_writer_that_waits_for_its_buffer() {
    let found = diagnose(&transfer(&pausing(|packets| packets.woken = 1)));
    assert_eq!(found.limiter, Limiter::SendBuffer, "{found:#?}");
}

#[test]
fn an_application_writes_whether_an_acknowledgement_came_or_not() {
    let found = diagnose(&transfer(&pausing(|packets| {
        packets.written = 1;
        packets.unprompted = packets.sent;
    })));
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
}

#[test]
fn who_waits_for_requests_is_held_by_the_other_application() {
    let mut answer = Step { in_flight: 3, ..step(3) };
    answer.packets.asked = 1;
    answer.packets.asked_us = Micros::new(STEP_US - 1_000);
    let found = diagnose(&transfer(&repeat(answer, 40)));
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
}

#[test]
fn segments_that_vanish_until_smaller_ones_come_are_a_black_hole() {
    let mut steps = vec![step(10)];
    steps.extend(repeat(Step { arrived: 0, ..step(10) }, 30));
    steps.push(Step { timeouts: 1, lost: 1, ..step(1) });
    steps.extend(repeat(step(10), 8));
    let mut story = transfer(&steps);
    story.lost_size = Some(1_448);
    let found = diagnose(&story);
    assert_eq!((found.limiter, found.detail), (Limiter::SegmentSize, Some(Detail::MtuBlackHole)), "{found:#?}");
}

#[test]
fn a_window_that_was_exceeded_six_times_over_did_not_hold_the_sender() {
    // As in a public capture of an upload, whose round trips were read far too long.
    let mut beyond = Step { window: Some(20 * MSS), in_flight: 20, rtt_us: 10 * RTT_US, ..step(40) };
    beyond.packets.held_us = Micros::new(STEP_US);
    beyond.packets.dry_us = Micros::new(STEP_US / 2);
    let found = diagnose(&transfer(&repeat(beyond, 80)));
    assert_eq!(found.limiter, Limiter::InsufficientEvidence, "{found:#?}");
    assert!(found.evidence[0].text.contains("contradicts itself"), "{found:#?}");
    assert_eq!(found.or.first().map(|alternative| alternative.limiter), Some(Limiter::ReceiveWindow), "{found:#?}");
}

#[test]
fn no_less_is_attainable_than_was_carried() {
    let found = diagnose(&transfer(&repeat(Step { rtt_us: 2 * RTT_US, ..step(40) }, 80)));
    let carried = transfer(&repeat(step(40), 80)).rate();
    assert!(found.attainable_bps.is_none_or(|attainable| Some(attainable) >= carried), "{found:#?}");
}

#[test]
fn the_share_of_an_opening_window_is_its_own_and_not_that_of_all_congestion_windows() {
    // Doubles, and then losses hold it down.
    let doubling = (0..18).map(|half| step(5 << (half / 2)));
    let after = [losing(900, 60), step(400), losing(450, 9), step(300), losing(350, 4), step(240), losing(280, 5)];
    let story = transfer(&doubling.chain(after).collect::<Vec<_>>());
    let (found, runs) = diagnose_with_runs(&story);
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::SlowStart)), "{found:#?}");
    let opening: u64 = runs.iter().filter(|run| run.detail == found.detail).map(|run| run.to_us - run.from_us).sum();
    let all: u64 = runs.iter().map(|run| run.to_us - run.from_us).sum();
    assert!(runs.iter().any(|run| run.detail == Some(Detail::Loss)), "{runs:#?}");
    assert!((found.share - opening as f64 / all as f64).abs() < 0.02, "{} of {runs:#?}", found.share);
}

#[test]
fn needless_probes_of_a_tail_are_neither_loss_nor_reordering() {
    // A reader closes its window again and again, and acknowledges the last segment late, which is sent again meanwhile.
    let closed = Step {
        arrived: 0,
        window: Some(0),
        packets: PacketSample { closed_us: Micros::new(STEP_US), ..PacketSample::default() },
        ..step(0)
    };
    let cycle = |many: u64| {
        let probed = Step { lost: 1, packets: PacketSample { probes: 1, ..step(many).packets }, ..step(many) };
        [vec![step(many); 4], vec![probed], vec![closed; 8]].concat()
    };
    let mut story = transfer(&[20, 12, 30, 16, 24, 36, 14, 28, 18].map(cycle).concat());
    let mut reported = 0;
    for pair in 1..story.sender_samples.len() {
        let probes = story.sender_samples[pair].packets.map_or(0, |packets| packets.probes);
        reported += probes;
        story.sender_samples[pair].dsacks = Some(reported);
    }
    story.drops = None;
    let (found, runs) = diagnose_with_runs(&story);
    assert_eq!(found.limiter, Limiter::ReceiveWindow, "{found:#?}");
    let blames = runs.iter().filter(|run| run.detail == Some(Detail::Loss) || run.limiter == Limiter::Reordering);
    assert_eq!(blames.count(), 0, "{runs:#?}");
}

#[test]
fn losses_that_all_arrived_are_no_losses_and_said_so() {
    let mut story = transfer(&[vec![step(20); 4], vec![losing(20, 1)], vec![step(14); 8]].concat().repeat(4));
    let contradicts = |story: &Transfer| diagnose(story).blind.iter().any(|line| line.contains("nothing was lost"));
    assert!(!contradicts(&story));
    for sample in &mut story.sender_samples {
        sample.dsacks = sample.retransmits.map(|count| count as u32);
    }
    let found = diagnose(&story);
    assert!(found.detail != Some(Detail::Loss) || contradicts(&story), "{found:#?}");
}

#[test]
fn a_black_hole_carried_what_was_acknowledged() {
    let stuck = Step { arrived: 0, in_flight: 10, lost: 1, timeouts: 1, ..step(0) };
    let waiting = Step { arrived: 0, in_flight: 10, ..step(0) };
    let steps = [
        vec![waiting; 8],
        vec![stuck],
        vec![waiting; 16],
        vec![stuck],
        vec![waiting; 32],
        vec![stuck],
        vec![waiting; 4],
    ];
    let mut story = transfer(&steps.concat());
    story.bytes = Bytes::ZERO;
    let sure = diagnose(&story);
    assert_eq!(sure.detail, Some(Detail::MtuBlackHole), "{sure:#?}");
    story.bytes = Bytes::new(15_928);
    let found = diagnose(&story);
    assert!(found.blind.iter().any(|line| line.contains("15,928 B were carried and 0 B acknowledged")), "{found:#?}");
}

/// Bursts of several sizes in each round trip, forty segments lost at once in the middle, and bursts again, which leave the path empty in between and
/// `low` of each in flight at the least.
fn after_a_loss(low: f64, woken: u32) -> Transfer {
    let burst = |most: u64| {
        let packets = |sent: u64| PacketSample {
            sent: Bytes::new(sent * MSS),
            prompted: Bytes::new(sent * MSS),
            peak: Bytes::new(most * MSS),
            dry_us: Micros::new(STEP_US / 2),
            prompts: 4,
            woken,
            ..PacketSample::default()
        };
        let least = (most as f64 * low) as u64;
        [
            Step { arrived: most / 4, in_flight: most, packets: packets(most), ..step(0) },
            Step { arrived: most - most / 4, in_flight: least, packets: packets(0), ..step(0) },
        ]
    };
    let bursts = |count: usize| [50, 70, 90, 60].into_iter().cycle().take(count).flat_map(burst).collect::<Vec<_>>();
    transfer(&[bursts(34), vec![losing(40, 40)], vec![step(20); 2], bursts(26)].concat())
}

#[test]
fn a_flight_that_falls_in_each_round_trip_long_after_a_loss_is_not_held_by_it() {
    let late = diagnose(&after_a_loss(0.3, 0));
    assert_eq!(late.limiter, Limiter::SendBuffer, "{late:#?}");
    // One that stays near its top is what losses left of the window.
    let held = diagnose(&after_a_loss(0.9, 0));
    assert_eq!(held.limiter, Limiter::CongestionWindow, "{held:#?}");
}

#[test]
fn pauses_long_after_a_loss_count_as_those_before_any() {
    let found = diagnose(&after_a_loss(0.8, 1));
    assert_eq!((found.limiter, found.detail), (Limiter::SendBuffer, Some(Detail::BufferCap)), "{found:#?}");
}

/// Of the tail of what there was to send something is lost, and all that follows is waiting for it.
#[test]
fn a_loss_holds_the_sender_from_when_it_happens_and_not_from_when_it_is_repeated() {
    let mut steps = repeat(step(10), 3);
    steps.extend(repeat(Step { arrived: 0, in_flight: 4, ..step(10) }, 9));
    steps.push(losing(4, 4));
    let mut seen = transfer(&steps);
    let lost = Drop { at_us: Micros::new(2 * STEP_US), passed: Bytes::new(20 * MSS) };
    seen.drops.as_mut().unwrap().list.insert(0, lost);
    let found = diagnose(&seen);
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::Loss)), "{found:#?}");
    assert!(found.share > 0.7, "{found:#?}");
}

/// What was lost is sent again in batches, so that much comes through in one half of a round trip and little in the next.
#[test]
fn what_a_policer_lets_through_is_level_over_whole_round_trips() {
    let mut steps: Vec<Step> = [10, 20, 40, 80, 100, 100].into_iter().map(step).collect();
    for _ in 0..8 {
        steps.extend([losing(65, 20), losing(15, 20)]);
    }
    for part in [28, 30, 32, 34, 36, 38] {
        steps.extend(repeat(step(part), 4));
    }
    let found = diagnose(&transfer(&steps));
    assert_eq!((found.limiter, found.detail), (Limiter::Path, Some(Detail::Policed)), "{found:#?}");
}

/// BBR keeps to the rate that it saw while it lost a fifth of all (`bbr_lt_bw_sampling`), evenly: that is no application's pace.
#[test]
fn a_sender_that_learned_a_policers_rate_is_policed() {
    let learned = |later: u64| {
        let mut steps: Vec<Step> = [10, 20, 40, 80, 100, 100].into_iter().map(step).collect();
        for part in [29, 4, 8, 12, 9, 11, 12, 12, 14, 10] {
            steps.extend(repeat(losing(part, 5), 2));
        }
        let mut paced = step(later);
        paced.packets.prompts = 20;
        steps.extend(repeat(paced, 100));
        diagnose(&transfer(&steps)).detail
    };
    assert_eq!(learned(12), Some(Detail::Policed));
    assert_ne!(learned(40), Some(Detail::Policed), "that is not the rate at which it lost");
}

/// So many half round trips with data in them, at their beginning some losses, and two without before the next request is there.
fn answers(halves: usize, asked: u32) -> Transfer {
    let mut steps: Vec<Step> = Vec::new();
    for round in 0..14_u64 {
        let mut dry = Step { arrived: 0, in_flight: 1, ..step(0) };
        dry.packets.dry_us = Micros::new(STEP_US);
        dry.packets.asked = asked;
        steps.extend([dry, Step { packets: PacketSample { asked: 0, ..dry.packets }, ..dry }]);
        steps.push(Step { in_flight: 30 + round * 11 % 37, ..losing(40, 2) });
        steps.extend(repeat(step(40), halves - 1));
    }
    transfer(&steps)
}

#[test]
fn where_the_path_is_empty_for_the_next_request_losses_are_not_what_holds() {
    let limiter = |halves, asked| diagnose(&answers(halves, asked)).limiter;
    assert_eq!(limiter(4, 0), Limiter::CongestionWindow, "nobody asked: the losses emptied it");
    assert_eq!(limiter(4, 1), Limiter::Application, "a round trip in three");
    assert_eq!(limiter(14, 1), Limiter::Path, "a round trip in eight");
}

#[test]
fn requests_that_cost_a_part_beside_losses_are_named_as_well() {
    let mut story = answers(8, 1);
    for sample in &mut story.sender_samples {
        let Some(packets) = &mut sample.packets else { continue };
        packets.dry_us = packets.dry_us.max(Micros::new(STEP_US / 2));
    }
    let found = diagnose(&story);
    assert_eq!((found.limiter, found.detail), (Limiter::CongestionWindow, Some(Detail::Loss)), "{found:#?}");
    assert_eq!(found.or.first().map(|alternative| alternative.limiter), Some(Limiter::Application), "{found:#?}");
}

#[test]
fn writes_as_regular_as_a_timers_are_an_applications_and_no_buffers() {
    // Each comes some time after an acknowledgement, but not long enough for that alone to tell.
    let mut late = clocked(20);
    late.packets.prompted = Bytes::ZERO;
    late.packets.written = 1;
    let mut story = transfer(&repeat(late, 80));
    story.write = Some(Bytes::new(20 * MSS - 500));
    assert_eq!(diagnose(&story).limiter, Limiter::SendBuffer);
    story.write_every_us = Some(Micros::new(RTT_US / 2));
    let found = diagnose(&story);
    assert_eq!(found.limiter, Limiter::Application, "{found:#?}");
    assert!(found.evidence.iter().any(|evidence| evidence.text.contains("40.0 ms after the one before")), "{found:#?}");
}

/// A buffer that holds a little more or less at times, behind a window that doubled first.
#[test]
fn a_flight_that_stays_and_shrinks_again_is_no_window_that_opens() {
    let mut steps: Vec<Step> = [10, 20, 40, 80].into_iter().map(clocked).collect();
    steps.extend(repeat(clocked(100), 22));
    steps.extend((0..24_u64).map(|place| clocked(110 + place * 11 % 37)));
    steps.extend(repeat(clocked(103), 20));
    let found = diagnose(&transfer(&steps));
    assert_eq!(found.limiter, Limiter::SendBuffer, "{found:#?}");
}

#[test]
fn a_buffer_takes_no_less_than_it_took_before() {
    let mut steps: Vec<Step> = [10, 20, 40, 80, 160, 320].into_iter().map(step).collect();
    steps.extend(repeat(losing(320, 40), 2));
    let level = |arrived: u64| {
        let mut even = clocked(arrived);
        (even.packets.dry_us, even.packets.prompts) = (Micros::ZERO, 10);
        let story = transfer(&[steps.clone(), repeat(even, 80)].concat());
        diagnose(&story).limiter
    };
    assert_eq!(level(130), Limiter::SendBuffer);
    assert_ne!(level(60), Limiter::SendBuffer, "320 were in flight before");
}

/// Beside the receiver of a sender without timestamps, what is in flight is computed from the rate, and as level as that.
#[test]
fn a_level_flight_of_which_no_round_trip_was_seen_is_a_full_path_where_it_leaves_no_gap() {
    let mut even = clocked(20);
    even.packets.dry_us = Micros::ZERO;
    even.packets.prompts = 4;
    let mut story = transfer(&repeat(even, 80));
    story.sender_samples.iter_mut().for_each(|sample| sample.rtt_us = None);
    let found = diagnose(&story);
    assert_eq!(found.limiter, Limiter::Path, "{found:#?}");
}
