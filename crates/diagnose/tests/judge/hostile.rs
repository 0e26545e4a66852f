//! Whatever a source says, the judge answers, and its answer keeps its promises.

use fullpipe_diagnose::{
    Buffer, CongestionState, Diagnosis, End, Limiter, PathRate, ReceiverSample, RttSummary, SenderSample, Source,
    SynFacts, Transfer, diagnose, diagnose_streams,
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
    fn sender_sample()(
        (at, acked, mss) in (number(), number(), some(any::<u32>())),
        (in_flight, not_sent, offered_window, cwnd, ssthresh) in (bytes(), bytes(), bytes(), bytes(), bytes()),
        (rtt_us, min_rtt_us, busy_us, rwnd_limited_us, sndbuf_limited_us) in
            (micros(), micros(), micros(), micros(), micros()),
        (retransmits, timeouts, dsacks) in (count(), count(), some(any::<u32>())),
        (delivery_rate_bps, pacing_rate_bps, send_buffer, send_queued) in (rate(), rate(), bytes(), bytes()),
        state in some(0..3usize),
    ) -> SenderSample {
        let states = [CongestionState::Open, CongestionState::Recovery, CongestionState::Loss];
        SenderSample {
            at_us: Micros::new(at), acked: Bytes::new(acked), mss, in_flight, not_sent, offered_window, cwnd, ssthresh,
            rtt_us, min_rtt_us, busy_us, rwnd_limited_us, sndbuf_limited_us, retransmits, timeouts, dsacks,
            delivery_rate_bps, pacing_rate_bps, send_buffer, send_queued,
            congestion_state: state.map(|index| states[index]),
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
        (path_mtu, known, lower_bound) in (some(any::<u32>()), rate(), any::<bool>()),
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
            path_mtu, lost_size: None, drops: None, opening: None, write: None, path_rate: known.map(|rate_bps| PathRate { rate_bps, lower_bound }),
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_transfer_is_judged_within_its_promises(transfer in transfer()) {
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
