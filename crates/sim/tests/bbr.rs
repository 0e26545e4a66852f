//! BBR, packet by packet: it fills a path, keeps the queue short, takes no notice of random loss, and looks for the least round-trip
//! time every ten seconds.

#![allow(clippy::unwrap_used, reason = "tests")]

use fullpipe_sim::{HostSpec, Outcome, Spec, knob, run};
use fullpipe_units::{Micros, Rate};

fn transfer(congestion: &str, loss: &str, queue: &str, seconds: u64) -> Outcome {
    let host = || HostSpec::named("linux-6.18").unwrap();
    let rate = Rate::from_bps(20_000_000);
    let mut spec: Spec = knob::one_link(rate, Micros::from_millis(40), loss, queue, [host(), host()]).unwrap();
    knob::set(&mut spec, "sender.congestion", congestion).unwrap();
    (spec.time, spec.omit) = (Micros::from_secs(seconds), Micros::from_secs(2));
    run(&spec).unwrap()
}

fn mbit(outcome: &Outcome) -> u64 {
    outcome.rate().bps() / 1_000_000
}

#[test]
fn the_path_is_full_and_the_queue_shorter_than_cubics() {
    let (bbr, cubic) = (transfer("bbr", "0", "4bdp", 8), transfer("cubic", "0", "4bdp", 8));
    assert!(mbit(&bbr) >= 18 && mbit(&cubic) >= 18, "{} {}", mbit(&bbr), mbit(&cubic));
    assert!(bbr.queue_delay.get() * 2 < cubic.queue_delay.get(), "{:?} {:?}", bbr.queue_delay, cubic.queue_delay);
    assert_eq!(bbr.transfer.sender.congestion_control.as_deref(), Some("bbr"));
}

#[test]
fn random_loss_costs_nothing() {
    let (bbr, cubic) = (transfer("bbr", "1%", "1bdp", 8), transfer("cubic", "1%", "1bdp", 8));
    assert!(mbit(&bbr) >= 17, "{}", mbit(&bbr));
    assert!(mbit(&cubic) < 10, "{}", mbit(&cubic));
}

#[test]
fn every_ten_seconds_four_segments_are_in_flight_for_a_while() {
    let outcome = transfer("bbr", "0", "2bdp", 14);
    let few: Vec<_> = outcome
        .transfer
        .sender_samples
        .iter()
        .filter(|sample| sample.at_us > Micros::from_secs(5))
        .filter(|sample| sample.cwnd.is_some_and(|cwnd| cwnd.get() <= 4 * 1_448))
        .map(|sample| sample.at_us)
        .collect();
    let (first, last) = (few.first().copied().unwrap(), few.last().copied().unwrap());
    let held = last.saturating_sub(first);
    assert!(first >= Micros::from_secs(10) && first < Micros::from_secs(12), "{first:?}");
    assert!(held >= Micros::from_millis(150) && held < Micros::from_millis(500), "{held:?}");
}
