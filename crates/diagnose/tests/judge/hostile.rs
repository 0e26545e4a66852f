//! Whatever a source says, the judge answers, and its answer keeps its promises.

use fullpipe_diagnose::{
    Buffer, Confidence, CongestionState, Detail, Diagnosis, Drop, Drops, End, Limiter, PacketSample, PathRate,
    ReceiverSample, RttSummary, Run, SenderSample, Source, SynFacts, Transfer, diagnose, diagnose_streams,
    diagnose_with_runs, percent,
};
use fullpipe_units::{Bytes, Micros, Rate};
use proptest::prelude::*;

/// Small, usual and extreme numbers.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        0..3_000u64,
        0..20_000_000u64,
        any::<u64>()
    ]
}

fn some<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::weighted(0.8, strategy)
}

fn bytes() -> impl Strategy<Value = Option<Bytes>> {
    some(number().prop_map(Bytes::new))
}

fn micros() -> impl Strategy<Value = Option<Micros>> {
    some(number().prop_map(Micros::new))
}

fn count() -> impl Strategy<Value = Option<u64>> {
    some(number())
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    some(number().prop_map(Rate::from_bps))
}

prop_compose! {
    fn packets()(
        (peak, delivered, sent, unprompted, prompted) in (number(), number(), number(), number(), number()),
        (held, closed, idle, starved, dry, asked_us) in (number(), number(), number(), number(), number(), number()),
        counts in prop::array::uniform8(prop_oneof![0..50u32, any::<u32>()]),
        (credited, hidden) in (number(), number()),
    ) -> PacketSample {
        let [prompts, clocked, woken, written, asked, credits, nagle, delayed] = counts;
        PacketSample {
            peak: Bytes::new(peak), delivered: Bytes::new(delivered), sent: Bytes::new(sent),
            unprompted: Bytes::new(unprompted), prompted: Bytes::new(prompted), credited: Bytes::new(credited),
            hidden: Bytes::new(hidden), held_us: Micros::new(held), closed_us: Micros::new(closed), idle_us: Micros::new(idle),
            starved_us: Micros::new(starved), dry_us: Micros::new(dry), asked_us: Micros::new(asked_us),
            prompts, clocked, woken, written, asked, credits, nagle, delayed,
            ..PacketSample::default()
        }
    }
}

prop_compose! {
    fn drops()(
        bytes in number(), wait_us in micros(), list in prop::collection::vec((number(), number()), 0..40),
    ) -> Drops {
        let drop = |(at_us, passed)| Drop { at_us: Micros::new(at_us), passed: Bytes::new(passed) };
        Drops { bytes: Bytes::new(bytes), wait_us, list: list.into_iter().map(drop).collect() }
    }
}

prop_compose! {
    fn sender_sample()(
        (at, acked, mss) in (number(), number(), some(any::<u32>())),
        (in_flight, not_sent, offered_window, cwnd, ssthresh) in (bytes(), bytes(), bytes(), bytes(), bytes()),
        (rtt_us, min_rtt_us, busy_us, rwnd_limited_us, sndbuf_limited_us) in
            (micros(), micros(), micros(), micros(), micros()),
        (retransmits, timeouts, dsacks, heard) in (count(), count(), some(any::<u32>()), some(any::<u32>())),
        (delivery_rate_bps, pacing_rate_bps, send_buffer, send_queued) in (rate(), rate(), bytes(), bytes()),
        state in some(0..3usize),
        packets in some(packets()),
    ) -> SenderSample {
        let states = [CongestionState::Open, CongestionState::Recovery, CongestionState::Loss];
        SenderSample {
            at_us: Micros::new(at), acked: Bytes::new(acked), mss, in_flight, not_sent, offered_window, cwnd, ssthresh,
            rtt_us, min_rtt_us, busy_us, rwnd_limited_us, sndbuf_limited_us, retransmits, timeouts, dsacks,
            heard, delivery_rate_bps, pacing_rate_bps, send_buffer, send_queued,
            congestion_state: state.map(|index| states[index]),
            packets,
            ..SenderSample::default()
        }
    }
}

prop_compose! {
    fn receiver_sample()(at in number(), received in number(), offered_window in bytes(), unread in bytes())
        -> ReceiverSample
    {
        ReceiverSample {
            at_us: Micros::new(at), received: Bytes::new(received), offered_window, unread, ..ReceiverSample::default()
        }
    }
}

prop_compose! {
    fn end()(
        name in ".{0,8}", scale in some(some(any::<u8>())), mss in some(any::<u16>()), pinned in any::<bool>(),
        largest in bytes(), control in some(prop_oneof![Just("bbr"), Just("cubic"), Just("")]),
        cpu in some(prop_oneof![Just(0.0), Just(1.0), Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)]),
    ) -> End {
        let buffer = largest.map(|largest| Buffer { largest, pinned });
        let syn = scale.map(|window_scale| SynFacts { mss, window_scale, ..SynFacts::default() });
        End {
            name, syn, congestion_control: control.map(String::from), send_buffer: buffer, receive_buffer: buffer,
            cpu_busy: cpu, platform: None, opened: None,
        }
    }
}

prop_compose! {
    fn transfer()(
        (sender, receiver) in (end(), end()),
        (total, duration, idle) in (number(), number(), micros()),
        (path_mtu, known, lower_bound, drops) in (some(any::<u32>()), rate(), any::<bool>(), some(drops())),
        mut sender_samples in prop::collection::vec(sender_sample(), 0..40),
        receiver_samples in prop::collection::vec(receiver_sample(), 0..12),
        ordered in any::<bool>(),
    ) -> Transfer {
        if ordered {
            sender_samples.sort_by_key(|sample| sample.at_us);
        }
        Transfer {
            source: Source::Live, sender, receiver,
            bytes: Bytes::new(total), duration_us: Micros::new(duration),
            idle_rtt: idle.map(|us| RttSummary { min_us: us, p50_us: us, count: 1 }),
            path_mtu, lost_size: None, full_size_passed: false, drops, opening: None, write: None, write_every_us: None, link_rate: None, path_rate: known.map(|rate_bps| PathRate { rate_bps, lower_bound }),
            sender_samples, receiver_samples, blind: Vec::new(),
        }
    }
}

fn keeps_its_promises(diagnosis: &Diagnosis) -> Result<(), TestCaseError> {
    prop_assert!((0.0..=1.0).contains(&diagnosis.share), "share {}", diagnosis.share);
    prop_assert!(diagnosis.shares.values().all(|share| (0.0..=1.0).contains(share)), "{:?}", diagnosis.shares);
    prop_assert!(diagnosis.shares.values().sum::<f64>() <= 1.0 + 1e-9, "{:?}", diagnosis.shares);
    prop_assert!(!diagnosis.shares.contains_key(&Limiter::InsufficientEvidence));
    prop_assert!(!diagnosis.action.is_empty() && !diagnosis.evidence.is_empty());
    let of_limiter = diagnosis.shares.get(&diagnosis.limiter).copied().unwrap_or(0.0);
    prop_assert!(
        diagnosis.limiter == Limiter::InsufficientEvidence || diagnosis.share <= of_limiter + 1e-9,
        "{} of {:?}",
        diagnosis.share,
        diagnosis.shares
    );
    // What took more of the time than the verdict is named beside it.
    if ![Limiter::InsufficientEvidence, Limiter::Handshake].contains(&diagnosis.limiter) {
        for (limiter, share) in &diagnosis.shares {
            let is_named = *limiter == diagnosis.limiter || diagnosis.or.iter().any(|or| or.limiter == *limiter);
            prop_assert!(is_named || *share <= diagnosis.share + 0.01, "{:#?}", diagnosis);
        }
    }
    for evidence in &diagnosis.evidence {
        prop_assert!(!evidence.text.contains("NaN") && !evidence.text.contains("inf"), "{}", evidence.text);
    }
    let json = serde_json::to_string(diagnosis).expect("a diagnosis is always JSON");
    let back: Diagnosis = serde_json::from_str(&json).expect("and comes back");
    prop_assert_eq!(
        (back.limiter, &back.evidence, &back.blind),
        (diagnosis.limiter, &diagnosis.evidence, &diagnosis.blind)
    );
    Ok(())
}

prop_compose! {
    /// A steady transfer seen by packets: so much in flight of what is offered, and at a rate that both may belie.
    fn steady()(
        window in 8_000..4_000_000u64,
        rtt_us in 1_000..300_000u64,
        used in 0.1..3.0f64,
        speed in 0.1..4.0f64,
        (timeouts, retransmits) in (0..4u64, 0..4u64),
        source in prop::sample::select(vec![Source::Live, Source::LiveOneEnd, Source::Capture, Source::Simulation]),
    ) -> (Transfer, f64) {
        let step_us = rtt_us / 2;
        let bytes = (speed * window as f64 * step_us as f64 / rtt_us as f64) as u64;
        let in_flight = Bytes::new((used * window as f64) as u64);
        let sample = |index: u64| SenderSample {
            at_us: Micros::new(index * step_us),
            acked: Bytes::new(index * bytes),
            in_flight: Some(in_flight),
            offered_window: Some(Bytes::new(window)),
            rtt_us: Some(Micros::new(rtt_us)),
            mss: Some(1_448),
            retransmits: Some(retransmits * index / 60),
            timeouts: Some(timeouts * index / 60),
            packets: Some(PacketSample {
                peak: in_flight, delivered: Bytes::new(bytes), sent: Bytes::new(bytes), held_us: Micros::new(step_us),
                ..PacketSample::default()
            }),
            ..SenderSample::default()
        };
        let received = |index: u64| ReceiverSample {
            at_us: Micros::new(index * step_us), received: Bytes::new(index * bytes), ..ReceiverSample::default()
        };
        let syn = Some(SynFacts { mss: Some(1_460), window_scale: Some(7), ..SynFacts::default() });
        let end = |name: &str| End { name: name.to_owned(), syn, ..End::default() };
        let story = Transfer {
            source, sender: end("a"), receiver: end("b"),
            bytes: Bytes::new(60 * bytes), duration_us: Micros::new(60 * step_us),
            idle_rtt: Some(RttSummary { min_us: Micros::new(rtt_us), p50_us: Micros::new(rtt_us), count: 9 }),
            sender_samples: (0..=60).map(sample).collect(),
            receiver_samples: (0..=60).map(received).collect(),
            ..Transfer::default()
        };
        (story, speed)
    }
}

/// The guard, seen from outside: whatever the source, no verdict stands against its own figures.
fn does_not_contradict_itself(transfer: &Transfer, speed: f64) -> Result<(), TestCaseError> {
    let found = diagnose(transfer);
    let carried = transfer.rate().unwrap_or_default();
    prop_assert!(found.attainable_bps.is_none_or(|most| most >= carried), "{:?} below {carried}", found.attainable_bps);
    if found.limiter == Limiter::ReceiveWindow {
        prop_assert!(speed <= 2.1, "{speed} times what the window allows: {found:#?}");
        prop_assert!(speed <= 1.4 || found.confidence == Confidence::Low, "{speed}: {found:#?}");
    }
    let last = transfer.sender_samples.last().copied().unwrap_or_default();
    if last.timeouts > last.retransmits && found.limiter != Limiter::InsufficientEvidence {
        prop_assert_eq!(found.confidence, Confidence::Low, "{:#?}", found);
        prop_assert!(found.blind.iter().any(|line| line.contains("contradicts itself")), "{:#?}", found);
    }
    prop_assert!(found.or.iter().all(|other| other.limiter != found.limiter), "{:#?}", found.or);
    Ok(())
}

/// What the verdict, its reasons and its timeline say of one thing is the same.
fn says_one_thing(transfer: &Transfer) -> Result<(), TestCaseError> {
    let (found, runs) = diagnose_with_runs(transfer);
    for evidence in &found.evidence {
        if let Some((_, rest)) = evidence.text.split_once(" was the limit for ") {
            prop_assert!(rest.starts_with(&percent(found.share)), "{} and {}", found.share, evidence.text);
        }
    }
    let says = |words: &str| found.evidence.iter().any(|evidence| evidence.text.contains(words));
    prop_assert!(!(says("without a queue") && says("queued at the bottleneck")), "{:#?}", found.evidence);
    let is_opening = |detail: Option<Detail>| detail == Some(Detail::SlowStart);
    let of = |run: &&Run| run.limiter == found.limiter && is_opening(run.detail) == is_opening(found.detail);
    let time = |runs: &mut dyn Iterator<Item = &Run>| runs.map(|run| (run.to_us - run.from_us) as f64).sum::<f64>();
    if found.detail == Some(Detail::SlowStart) {
        let (held, all) = (time(&mut runs.iter().filter(of)), time(&mut runs.iter()));
        prop_assert!(found.share * all <= held + 1.0, "{} of the time is not {held} of {all} us", found.share);
    }
    let lost_us = transfer.sender_samples.windows(2).find(|pair| pair[1].retransmits > pair[0].retransmits);
    for run in runs.iter().filter(|run| run.detail == Some(Detail::Loss) || run.limiter == Limiter::Reordering) {
        prop_assert!(lost_us.is_some_and(|pair| run.to_us > pair[0].at_us.get()), "{run:?} before anything was lost");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_transfer_is_judged_within_its_promises(transfer in transfer()) {
        keeps_its_promises(&diagnose(&transfer))?;
    }

    #[test]
    fn no_verdict_stands_against_its_own_figures((transfer, speed) in steady()) {
        does_not_contradict_itself(&transfer, speed)?;
        says_one_thing(&transfer)?;
        keeps_its_promises(&diagnose(&transfer))?;
    }

    #[test]
    fn any_streams_are_judged_within_their_promises(transfers in prop::collection::vec(transfer(), 0..4)) {
        keeps_its_promises(&diagnose_streams(&transfers))?;
    }
}

#[test]
fn an_empty_transfer_is_judged() {
    assert_eq!(diagnose(&Transfer::default()).limiter, Limiter::InsufficientEvidence);
}

#[test]
fn samples_that_step_back_in_time_are_dropped() {
    let mut transfer = crate::world::World::default().transfer();
    let straight = diagnose(&transfer);
    let early = transfer.sender_samples[3];
    for index in [50, 100, 300] {
        transfer.sender_samples.insert(index, early);
    }
    assert_eq!(diagnose(&transfer).limiter, straight.limiter);
}
