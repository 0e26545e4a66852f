//! Fitting what was not published, a device's time per packet or its path's round-trip time, to a published figure.
//!
//! What is fitted to a figure predicts that figure for nothing; what is predicted with it are the others.

use std::sync::atomic::AtomicBool;

use fullpipe_path::{DeviceSpec, FitSpec, Fitted, Scenario};
use fullpipe_units::Micros;

use super::{
    table::{once, trial},
    trial::Outcome,
};
use crate::StackError;

/// Steps of a fit; each one leaves a tenth of the error at the most.
const STEPS: usize = 4;

/// What a fit found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Which quantity.
    pub quantity: Fitted,
    /// Its value in microseconds.
    pub us: f64,
    /// The time that it gives.
    pub seconds: f64,
    /// The time that it was to give.
    pub published: f64,
}

/// Fits anew what `scenario` says was fitted to its own published times, and puts it into the scenario.
///
/// # Errors
/// As [`table`](super::table).
pub fn fit(scenario: &mut Scenario, stop: &AtomicBool) -> Result<Vec<Found>, StackError> {
    fit_by(scenario, |scenario, device, buffers| once(scenario, scenario.seed, &trial(device, true, buffers), stop))
}

/// The same, by what `measure` says that a transfer with so many buffers takes.
fn fit_by(
    scenario: &mut Scenario,
    mut measure: impl FnMut(&Scenario, &DeviceSpec, u16) -> Result<Outcome, StackError>,
) -> Result<Vec<Found>, StackError> {
    let Some(mut device) = scenario.device.clone() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for fit in device.fitted.clone() {
        let Some(published) = device.published.get(&fit.buffers).copied() else { continue };
        if fit.scenario != scenario.name {
            continue;
        }
        let mut best: Option<Found> = None;
        for _ in 0..STEPS {
            let us = match fit.quantity {
                Fitted::PerPacket => device.per_packet.get(),
                Fitted::Rtt => scenario.path.rtt().get(),
            };
            let outcome = measure(scenario, &device, fit.buffers)?;
            let found = Found { quantity: fit.quantity, us: us as f64, seconds: outcome.seconds, published };
            let off = |found: &Found| (found.seconds - found.published).abs();
            if best.is_none_or(|best| off(&found) < off(&best)) {
                best = Some(found);
            }
            improve(scenario, &mut device, &fit, (&outcome, published));
        }
        if let Some(found) = best {
            match fit.quantity {
                Fitted::PerPacket => device.per_packet = Micros::new(found.us as u64),
                Fitted::Rtt => {
                    let now = scenario.path.rtt().get() as f64;
                    stretch(scenario, found.us - now);
                }
            }
            all.push(found);
        }
    }
    scenario.device = Some(device);
    Ok(all)
}

/// A step: the time that is too much is shared among the packets, or among the round trips.
fn improve(scenario: &mut Scenario, device: &mut DeviceSpec, fit: &FitSpec, (outcome, published): (&Outcome, f64)) {
    let counts = outcome.counts;
    let too_long_us = (outcome.seconds - published) * 1e6;
    match fit.quantity {
        Fitted::PerPacket => {
            let packets = f64::from(counts.segments_sent + counts.segments_received);
            device.per_packet = shifted(device.per_packet, -too_long_us / packets);
        }
        Fitted::Rtt => {
            let rounds = f64::from(counts.segments_sent) / f64::from(fit.buffers);
            stretch(scenario, -too_long_us / rounds);
        }
    }
}

fn shifted(span: Micros, by_us: f64) -> Micros {
    Micros::new((span.get() as f64 + by_us).round().max(1.0) as u64)
}

/// Changes the round-trip time, half of it each way, at the first hop.
fn stretch(scenario: &mut Scenario, by_us: f64) {
    if let Some(hop) = scenario.path.hops.first_mut() {
        hop.ab.delay = shifted(hop.ab.delay, by_us / 2.0);
        hop.ba.delay = shifted(hop.ba.delay, by_us / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_tcp::socket::Counts;

    use super::*;

    const PACKETS: u32 = 2_740;
    /// The kernel acknowledges every second packet.
    const ACKS: u32 = PACKETS / 2;

    /// A device that is busy with each packet and waits a round trip for each set of buffers.
    fn device_takes(scenario: &Scenario, device: &DeviceSpec, buffers: u16) -> f64 {
        let rounds = f64::from(PACKETS) / f64::from(buffers);
        let busy = device.per_packet.get() as f64 * f64::from(PACKETS + ACKS);
        // What neither quantity explains.
        let rest = 0.02e6;
        (busy + rounds * scenario.path.rtt().get() as f64 + rest) / 1e6
    }

    fn outcome(seconds: f64) -> Outcome {
        let counts = Counts { segments_sent: PACKETS, segments_received: ACKS, ..Counts::default() };
        Outcome { seconds, device_seconds: seconds, counts, early_dropped: 0, valid: true }
    }

    fn fitted(scenario: &mut Scenario) -> Vec<Found> {
        fit_by(scenario, |scenario, device, buffers| Ok(outcome(device_takes(scenario, device, buffers)))).unwrap()
    }

    #[test]
    fn a_time_per_packet_is_found_and_predicts_the_other_figures() {
        let mut scenario = Scenario::named("netburner-lan").unwrap();
        // A device that is as the scenario says, but for its speed; what it would have been published with.
        let mut real = scenario.device.clone().unwrap();
        real.per_packet = Micros::new(77);
        let truth = |buffers| device_takes(&scenario, &real, buffers);
        let (at_5, at_20) = (truth(5), truth(20));
        if let Some(device) = &mut scenario.device {
            device.published.insert(20, at_20);
        }
        let [found] = fitted(&mut scenario)[..] else { panic!("one quantity is fitted") };
        assert_eq!((found.quantity, found.us as u64), (Fitted::PerPacket, 77));
        assert!((found.seconds / found.published - 1.0).abs() < 0.01, "{found:?}");
        let device = scenario.device.clone().unwrap();
        assert_eq!(device.per_packet, real.per_packet, "what was found is in the scenario");
        assert!((device_takes(&scenario, &device, 5) / at_5 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_round_trip_is_found_and_the_time_per_packet_of_the_other_scenario_stays() {
        let mut scenario = Scenario::named("netburner-wan").unwrap();
        let device = scenario.device.clone().unwrap();
        let mut real = scenario.clone();
        stretch(&mut real, 2_000.0);
        let at_5 = device_takes(&real, &device, 5);
        if let Some(device) = &mut scenario.device {
            device.published.insert(5, at_5);
        }
        let [found] = fitted(&mut scenario)[..] else { panic!("the other quantity is netburner-lan's") };
        assert_eq!(found.quantity, Fitted::Rtt);
        let apart = found.us - real.path.rtt().get() as f64;
        assert!(apart.abs() <= 20.0, "{apart} us");
        assert_eq!(scenario.path.rtt(), Micros::new(found.us as u64));
        assert_eq!(scenario.device.unwrap().per_packet, device.per_packet);
    }

    #[test]
    fn the_best_step_is_kept_where_a_later_one_was_disturbed() {
        let mut scenario = Scenario::named("netburner-lan").unwrap();
        let mut step = 0;
        let found = fit_by(&mut scenario, |scenario, device, buffers| {
            step += 1;
            let disturbed = if step == STEPS { 3.0 } else { 1.0 };
            Ok(outcome(device_takes(scenario, device, buffers) * disturbed))
        });
        let found = found.unwrap()[0];
        assert!((found.seconds / found.published - 1.0).abs() < 0.01, "{found:?}");
        assert_eq!(scenario.device.unwrap().per_packet, Micros::new(found.us as u64));
    }

    #[test]
    fn a_scenario_without_a_device_has_nothing_to_fit() {
        let mut scenario = Scenario::named("wan-80ms").unwrap();
        assert!(fitted(&mut scenario).is_empty());
    }

    #[test]
    fn a_fit_that_fails_says_why() {
        let mut scenario = Scenario::named("netburner-lan").unwrap();
        let failed = fit_by(&mut scenario, |_, _, _| Err(StackError::Stopped));
        assert!(matches!(failed, Err(StackError::Stopped)));
    }
}
