//! Prints the digest of many simulations: the same on every system, and before and after a change that must not change
//! behaviour. Run with `cargo run --release -p fullpipe-sim --example digests`.

use std::error::Error;

use fullpipe_path::{QueueSize, Scenario};
use fullpipe_sim::{Application, HostSpec, PLATFORMS, Spec, device_runs, from_scenario, knob, run};
use fullpipe_units::{Bytes, Micros, Rate};

fn main() -> Result<(), Box<dyn Error>> {
    for name in Scenario::names() {
        let scenario = Scenario::named(&name)?;
        for &direction in scenario.expect.keys() {
            tell(&format!("{name} {direction}"), &from_scenario(&scenario, direction)?)?;
        }
        let runs = scenario.device.as_ref().map(|device| device_runs(&scenario, device)).transpose()?;
        for run in runs.into_iter().flatten() {
            for spec in run.specs.iter().take(2) {
                tell(&format!("{name} {} buffers", run.buffers), spec)?;
            }
        }
    }
    let known = PLATFORMS.iter().map(|platform| platform.name);
    for (at, platform) in known.enumerate() {
        let at = at as u64;
        for (loss, queue) in [(0.0, 0.5), (0.001, 2.0), (0.02, 0.25)] {
            let queue = QueueSize::Bdp { multiple: queue, at_least: 8 };
            let (rate, rtt) = (Rate::from_bps(3_000_000 + at * 7_000_000), Micros::new(4_000 + at * 9_000));
            let mut spec =
                Spec::new(knob::path(rate, rtt, loss, queue)?, HostSpec::of(platform)?, HostSpec::of("linux-6.18")?);
            (spec.time, spec.seed) = (Micros::from_secs(5), 1 + at);
            tell(&format!("{platform} sends, loss {loss}"), &spec)?;
            std::mem::swap(&mut spec.sender, &mut spec.receiver);
            (spec.bytes, spec.series, spec.receiver_opens) = (Some(Bytes::new(2_000_000)), at.is_multiple_of(2), true);
            tell(&format!("{platform} receives, loss {loss}"), &spec)?;
            spec.application = Application::Messages { size: 900 };
            tell(&format!("{platform} answers, loss {loss}"), &spec)?;
        }
    }
    Ok(())
}

fn tell(name: &str, spec: &Spec) -> Result<(), Box<dyn Error>> {
    let outcome = run(spec)?;
    println!(
        "{:016x} {name}: {} segments, {} retransmitted, {:?}",
        outcome.digest(),
        outcome.data_segments,
        outcome.retransmits,
        outcome.truth.limiter()
    );
    Ok(())
}
