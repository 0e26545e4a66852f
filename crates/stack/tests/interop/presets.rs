//! What the presets do to messages, requests and bulk: segments, bytes on the wire, latency.

use std::{sync::atomic::AtomicBool, time::Duration};

use fullpipe_path::Scenario;
use fullpipe_stack::{
    Preset, Settings,
    experiment::{Load, PresetOutcome, PresetTrial, Work, preset_trial},
};
use fullpipe_tcp::{profile::Profile, socket::SocketOptions};

use crate::world::may_run;

/// 9.4 ms of round trip: shorter than a delayed acknowledgement (40 ms), longer than the gap between messages.
const SCENARIO: &str = "netburner-wan";
const LOAD: Load = Load {
    message_bytes: 100,
    gap: Duration::from_millis(3),
    messages: 20,
    pieces: 100,
    piece_gap: Duration::from_millis(1),
    bulk_bytes: 50_000,
};
/// What Linux delays an acknowledgement by, at the least.
const DELAYED_ACK: Duration = Duration::from_millis(40);

fn of(work: Work, preset: Preset) -> PresetOutcome {
    let profile = Profile::NETBURNER;
    let options = preset.applied(SocketOptions::from_profile(&profile));
    let settings = Settings { profile, ..Settings::new(&[]) };
    let scenario = Scenario::named(SCENARIO).unwrap();
    let trial = PresetTrial { work, load: LOAD, settings, options };
    let outcome = preset_trial(&scenario, &trial, &AtomicBool::new(false)).unwrap();
    println!("{} with {}: {outcome:?}", work.name(), preset.name());
    assert_eq!(outcome.retransmits, 0, "nothing is lost on this path");
    // 40 bytes of headers to each packet, and no option on this profile.
    let answers = if work == Work::Requests { u64::from(LOAD.messages) } else { 0 };
    let packets = outcome.data_segments + outcome.acks + outcome.peer_acks + answers;
    let once = outcome.bytes + answers * LOAD.message_bytes as u64 + packets * 40;
    // The kernel repeats its last answer (tail loss probe) where this machine holds up the delayed acknowledgement.
    let repeated = outcome.wire_bytes.checked_sub(once).unwrap_or_else(|| panic!("{once} bytes, not {outcome:?}"));
    assert!(repeated == 0 || answers > 0 && repeated == LOAD.message_bytes as u64, "{once} bytes, not {outcome:?}");
    outcome
}

#[test]
fn low_latency_answers_without_waiting_for_the_delayed_acknowledgement() {
    if !may_run("low_latency_answers_without_waiting_for_the_delayed_acknowledgement") {
        return;
    }
    let [usual, quick, held] = Preset::ALL.map(|preset| of(Work::Requests, preset));
    assert_eq!(usual.latencies.len(), LOAD.messages as usize);
    // A head and a body each. Only held back they share one segment.
    assert_eq!((quick.data_segments, held.data_segments), (2 * 20, 20));
    // Nagle's body waits for the acknowledgement of the head; without a delayed one nothing is that much longer.
    let [usual, quick, held] = [usual, quick, held].map(|outcome| outcome.latency(0.5).unwrap());
    assert!(usual > quick + DELAYED_ACK / 2, "{usual:?} {quick:?}");
    assert!(held >= Duration::from_micros(Profile::NETBURNER.no_push_us.into()), "{held:?}");
}

#[test]
fn low_latency_gives_each_message_its_segment_and_the_others_share() {
    if !may_run("low_latency_gives_each_message_its_segment_and_the_others_share") {
        return;
    }
    let [usual, quick, held] = Preset::ALL.map(|preset| of(Work::Messages, preset));
    // One each, but for those that a busy machine wrote together.
    assert!(quick.data_segments * 4 >= u64::from(LOAD.messages) * 3, "{quick:?}");
    assert!(usual.data_segments < quick.data_segments && held.data_segments < usual.data_segments);
    let [usual, quick, held] = [usual, quick, held].map(|outcome| outcome.latency(0.5).unwrap());
    assert!(quick < usual && usual < held, "{quick:?} {usual:?} {held:?}");
}

#[test]
fn bulk_sends_full_segments_of_small_writes() {
    if !may_run("bulk_sends_full_segments_of_small_writes") {
        return;
    }
    for work in [Work::Pieces, Work::Bulk] {
        let [usual, quick, full] = Preset::ALL.map(|preset| of(work, preset));
        let bytes = if work == Work::Bulk { LOAD.bulk_bytes } else { 10_000 };
        assert_eq!([usual.bytes, quick.bytes, full.bytes], [bytes; 3]);
        // 1,460 bytes each, but for the last one.
        assert_eq!(full.data_segments, bytes.div_ceil(1_460));
        assert!(full.data_segments <= usual.data_segments && usual.data_segments <= quick.data_segments);
        assert!(full.wire_bytes < quick.wire_bytes && full.peer_acks <= quick.peer_acks);
        assert!(full.latencies.is_empty());
        if work == Work::Pieces {
            // Five buffers in each round trip, in which seven pieces come; Nagle has one.
            assert!(quick.data_segments > 2 * usual.data_segments, "{quick:?} {usual:?}");
        }
    }
}
