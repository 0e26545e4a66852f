//! Simulations whose digests are compared: scenarios, devices, and every platform over three paths.

use fullpipe_path::{QueueSize, Scenario};
use fullpipe_sim::{Application, HostSpec, PLATFORMS, Spec, device_runs, from_scenario, knob, run};
use fullpipe_units::{Bytes, Micros, Rate};

/// A simulation and its name.
pub(crate) type Case = (String, Spec);

/// All of them, or the ones that take no time.
pub(crate) fn cases(is_all: bool) -> Vec<Case> {
    if !is_all {
        return few();
    }
    let mut cases = scenarios();
    cases.extend(platforms(&[(0.0, 0.5), (0.001, 2.0), (0.02, 0.25)]));
    cases
}

fn few() -> Vec<Case> {
    let mut cases = platforms(&[(0.001, 2.0)]);
    for (_, spec) in &mut cases {
        spec.time = Micros::from_secs(1);
    }
    let settings = [("path.flows", "3"), ("path.cross", "1M"), ("path.thin_acks", "4"), ("path.aggregate", "2ms")];
    for (at, setting) in settings.iter().enumerate() {
        let (_, mut spec) = cases[at * 3].clone();
        knob::set(&mut spec, setting.0, setting.1).unwrap_or_else(|error| panic!("{error}"));
        cases.push((format!("{} {}", setting.0, setting.1), spec));
    }
    cases
}

fn scenarios() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in Scenario::names() {
        let scenario = Scenario::named(&name).unwrap_or_else(|error| panic!("{error}"));
        for &direction in scenario.expect.keys() {
            let spec = from_scenario(&scenario, direction).unwrap_or_else(|error| panic!("{error}"));
            cases.push((format!("{name} {direction}"), spec));
        }
        let runs = scenario.device.as_ref().map(|device| device_runs(&scenario, device));
        for run in runs.into_iter().flatten().flatten() {
            let specs = run.specs.iter().take(2);
            cases.extend(specs.map(|spec| (format!("{name} {} buffers", run.buffers), spec.clone())));
        }
    }
    cases
}

/// Every platform as sender, receiver and answering end, with each of these losses and queues.
fn platforms(paths: &[(f64, f64)]) -> Vec<Case> {
    let host = |name| HostSpec::named(name).unwrap_or_else(|error| panic!("{error}"));
    let mut cases = Vec::new();
    for (at, platform) in PLATFORMS.iter().map(|platform| platform.name).enumerate() {
        let at = at as u64;
        for &(loss, queue) in paths {
            let queue = QueueSize::Bdp { multiple: queue, at_least: 8 };
            let (rate, rtt) = (Rate::from_bps(3_000_000 + at * 7_000_000), Micros::new(4_000 + at * 9_000));
            let path = knob::path(rate, rtt, loss, queue).unwrap_or_else(|error| panic!("{error}"));
            let mut spec = Spec::new(path, host(platform), host("linux-6.18"));
            (spec.time, spec.seed) = (Micros::from_secs(5), 1 + at);
            cases.push((format!("{platform} sends, loss {loss}"), spec.clone()));
            std::mem::swap(&mut spec.sender, &mut spec.receiver);
            (spec.bytes, spec.series, spec.receiver_opens) = (Some(Bytes::new(2_000_000)), at.is_multiple_of(2), true);
            cases.push((format!("{platform} receives, loss {loss}"), spec.clone()));
            spec.application = Application::Messages { size: 900 };
            cases.push((format!("{platform} answers, loss {loss}"), spec));
        }
    }
    cases
}

/// What came of one, as a line.
pub(crate) fn line((name, spec): &Case) -> String {
    let outcome = run(spec).unwrap_or_else(|error| panic!("{error}"));
    format!(
        "{:016x} {name}: {} segments, {} retransmitted, {:?}\n",
        outcome.digest(),
        outcome.data_segments,
        outcome.retransmits,
        outcome.truth.limiter()
    )
}
