//! `fullpipe sim`, and the simulated `demo`.

use std::fs;

use fullpipe_diagnose::Diagnosis;
use fullpipe_path::{Direction, Scenario};
use fullpipe_report::{
    DeviceRow, DeviceTable, ReferenceFigure, ReferenceRow, ReferenceTable, SimKnown, SimRun, WhatIf, charts_of_outcome,
    html::Charts, json, text,
};
use fullpipe_sim::{
    Outcome as Simulated, SimError, Spec, device_runs, from_scenario, knob,
    reference::{Figure, NOTES},
    run as simulate,
};
use fullpipe_tune::{Direction as Shown, Expectation, Outcome, ScenarioFacts};
use fullpipe_units::{Micros, Rate};

use super::{Ended, lab, what_if};
use crate::{
    args::{DemoArgs, SimArgs},
    exit::Exit,
    failure::{Failure, exit_of_io},
    output::Output,
};

pub(super) fn run(args: &SimArgs, output: Output) -> Ended {
    args.page.check()?;
    let Some(name) = &args.scenario else { return reference(args, output) };
    let mut scenario = lab::scenario(name)?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    if scenario.device.is_some() {
        return device(&scenario, args, output);
    }
    let mut outcome = Outcome { scenario: Some(facts(&scenario)), ..Outcome::default() };
    let mut known = Vec::new();
    let directions: Vec<Direction> = scenario.expect.keys().copied().collect();
    let directions = if directions.is_empty() { Direction::ALL.to_vec() } else { directions };
    for (index, direction) in directions.into_iter().enumerate() {
        let spec = Spec { capture: args.pcap.is_some() && index == 0, ..from_scenario(&scenario, direction)? };
        let simulated = simulate(&spec)?;
        if let (Some(path), Some(capture)) = (&args.pcap, &simulated.capture) {
            fs::write(path, capture.to_pcap()).map_err(|error| {
                Failure::new(exit_of_io(&error), &format!("writing the capture {}: {error}", path.display()))
            })?;
        }
        known.push(SimKnown {
            direction: direction.as_str().to_owned(),
            truth: simulated.truth.shares.clone(),
            queue_delay_us: simulated.queue_delay.get(),
            digest: simulated.digest(),
        });
        let diagnosis = simulated.diagnosis();
        let mut shown = shown(direction, simulated, diagnosis);
        if scenario.test.streams == 1 {
            shown.judge_on(&scenario.path, direction);
        }
        outcome.expectations.extend(expectations(&scenario, direction, &shown));
        outcome.before.push(shown);
    }
    let run = SimRun { outcome, seed: scenario.seed, known, series: args.series };
    args.page.result(
        output,
        || json::sim("sim", &run),
        || charts_of_outcome(&run.outcome),
        |look| text::sim(&run, look),
    )?;
    Ok(if run.outcome.as_expected() { Exit::Ok } else { Exit::NotAsExpected })
}

/// The published situations beside each other.
fn reference(args: &SimArgs, output: Output) -> Ended {
    let figure = |figure: Figure| match figure {
        Figure::Rate(rate) => ReferenceFigure::Rate(rate),
        Figure::Seconds(seconds) => ReferenceFigure::Seconds(seconds),
    };
    let rows = fullpipe_sim::reference::reference()?.into_iter().map(|row| ReferenceRow {
        scenario: row.scenario,
        case: row.case,
        published: row.published,
        arithmetic: row.arithmetic.map(|(found, words)| (figure(found), words)),
        simulated: figure(row.simulated),
        limiter: row.limiter,
        lab: row.lab,
    });
    let notes = NOTES.iter().map(|note| (*note).to_owned());
    let table = ReferenceTable { rows: rows.collect(), notes: notes.collect() };
    args.page.result(
        output,
        || json::reference("sim", &table),
        Charts::default,
        |look| text::reference(&table, look),
    )?;
    Ok(Exit::Ok)
}

fn facts(scenario: &Scenario) -> ScenarioFacts {
    let imitates = [&scenario.a, &scenario.b].into_iter().filter_map(|host| host.imitates.as_ref());
    ScenarioFacts {
        name: scenario.name.clone(),
        summary: scenario.summary.clone(),
        imitations: imitates.map(|what| format!("the engine, emulating Linux that imitates {what}")).collect(),
        published: scenario.published.clone(),
    }
}

fn shown(direction: Direction, simulated: Simulated, diagnosis: Diagnosis) -> Shown {
    let transfer = simulated.transfer;
    let mut loaded: Vec<Micros> = transfer.sender_samples.iter().filter_map(|sample| sample.rtt_us).collect();
    loaded.sort_unstable();
    Shown {
        name: direction.as_str().to_owned(),
        rate_bps: transfer.rate().unwrap_or_default(),
        steady_bps: simulated.steady_bps,
        rtt_us: transfer.idle_rtt.map(|rtt| rtt.p50_us),
        loaded_rtt_us: loaded.get(loaded.len() / 2).copied(),
        bytes: transfer.bytes,
        duration_us: transfer.duration_us,
        retransmits: Some(simulated.retransmits),
        congestion_control: transfer.sender.congestion_control.clone(),
        diagnosis,
        transfers: vec![transfer],
    }
}

/// The verdict and the rate that the scenario expects, beside what came out.
fn expectations(scenario: &Scenario, direction: Direction, shown: &Shown) -> Vec<Expectation> {
    let Some(expect) = scenario.expect.get(&direction) else { return Vec::new() };
    let word = |value: serde_json::Result<serde_json::Value>| match value {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    };
    let diagnosis = &shown.diagnosis;
    let limiter = word(serde_json::to_value(diagnosis.limiter));
    let detail = expect.detail.as_ref().and(diagnosis.detail).map(|detail| word(serde_json::to_value(detail)));
    let verdict = |limiter: &str, detail: &Option<String>| match detail {
        Some(detail) => format!("limiter {limiter}, {detail}"),
        None => format!("limiter {limiter}"),
    };
    let one = |expected: String, found: String, met: bool| Expectation {
        direction: direction.as_str().to_owned(),
        expected,
        found,
        met,
    };
    let is_met = limiter == expect.limiter && detail == expect.detail;
    let mut all = vec![one(verdict(&expect.limiter, &expect.detail), verdict(&limiter, &detail), is_met)];
    if let Some(rate) = expect.rate {
        let found = shown.steady_bps.unwrap_or(shown.rate_bps);
        let off = (found.bps() as f64 / rate.bps() as f64 - 1.0).abs();
        all.push(one(
            format!("{rate} within {:.0} %", expect.tolerance * 100.0),
            found.to_string(),
            off <= expect.tolerance,
        ));
    }
    all
}

/// The table of a small device over its buffers.
fn device(scenario: &Scenario, args: &SimArgs, output: Output) -> Ended {
    let Some(device) = &scenario.device else { return Ok(Exit::Ok) };
    if args.pcap.is_some() {
        return Err(Failure::new(Exit::Usage, "a table of many transfers has no capture; leave --pcap out"));
    }
    let mut rows = Vec::new();
    for line in device_runs(scenario, device)? {
        let outcomes: Vec<Simulated> = line.specs.iter().map(simulate).collect::<Result<_, SimError>>()?;
        let time = |one: &Simulated| one.finished.unwrap_or(one.transfer.duration_us).as_secs_f64();
        let seconds = outcomes.iter().map(time).sum::<f64>() / outcomes.len().max(1) as f64;
        let rate = Rate::from_bytes(device.bytes, Micros::new((seconds * 1e6) as u64)).unwrap_or_default();
        let is_fitted = |fit: &fullpipe_path::FitSpec| fit.scenario == scenario.name && fit.buffers == line.buffers;
        rows.push(DeviceRow {
            buffers: line.buffers,
            role: if line.sends { "sends" } else { "receives" },
            seconds,
            runs: outcomes.len(),
            rate_bps: rate.bps(),
            retransmits: outcomes.iter().map(|one| one.retransmits as u32).sum(),
            early_dropped: outcomes.iter().map(|one| one.early_dropped).sum(),
            published_s: line.published,
            deviation: line.published.map(|published| seconds / published - 1.0),
            fitted: line.sends && device.fitted.iter().any(is_fitted),
            valid: outcomes.iter().all(|one| one.finished.is_some()),
            held: None,
            asked: None,
        });
    }
    let table = DeviceTable {
        scenario: scenario.name.clone(),
        summary: scenario.summary.clone(),
        published: scenario.published.clone(),
        bytes: device.bytes.get(),
        per_packet_us: device.per_packet.get(),
        rtt_us: scenario.path.rtt().get(),
        rate_bps: scenario.path.bottleneck(Direction::AToB).map(Rate::bps),
        loss: scenario.path.loss(Direction::AToB),
        waits: device.waits,
        sweep: if matches!(device.sweep, fullpipe_path::Sweep::All) { "all" } else { "out_of_order" },
        fitted: Vec::new(),
        tolerance: device.tolerance,
        rows,
        advice: None,
    };
    args.page.result(
        output,
        || json::device_table("sim", &table),
        Charts::default,
        |look| text::device_table(&table, look),
    )?;
    Ok(if table.as_expected() { Exit::Ok } else { Exit::NotAsExpected })
}

/// The story of `demo`, simulated: what limits each direction of `wan-80ms`, and what the setting for it would give.
pub(super) fn demo(args: &DemoArgs, output: Output) -> Ended {
    args.page.check()?;
    let scenario = Scenario::named("wan-80ms")?;
    let settings: [(Direction, &[(&str, &str)]); 2] = [
        (Direction::AToB, &[("receiver.shift", "7"), ("receiver.window_max", "4M")]),
        (Direction::BToA, &[("sender.buffer_max", "4M")]),
    ];
    let mut found = WhatIf {
        situation: format!("{}: {}", scenario.name, scenario.summary),
        seed: scenario.seed,
        notes: vec![what_if::NOTE.to_owned()],
        ..WhatIf::default()
    };
    for (direction, set) in settings {
        let spec = from_scenario(&scenario, direction)?;
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        for set in [Vec::new(), set] {
            let mut spec = spec.clone();
            for (key, value) in &set {
                knob::set(&mut spec, key, value)?;
            }
            let mut row = what_if::row(fullpipe_sim::predict(&spec, &[])?);
            row.set = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
            row.direction = Some(direction.as_str().to_owned());
            found.predictions.push(row);
        }
    }
    args.page.result(output, || json::what_if("demo", &found), Charts::default, |look| text::what_if(&found, look))?;
    Ok(Exit::Ok)
}
