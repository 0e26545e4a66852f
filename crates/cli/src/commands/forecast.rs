//! Predictions of plans: what the simulator says of settings that another room chose.

use fullpipe_knobs::{Plan, PlatformRequest, Settings};
use fullpipe_report::{ChangeForecast, ForecastPoint, ForecastRow, PlanForecast, json::SeenTransfer};
use fullpipe_sim::{Between, Line, Machine, Overrides, Predicted, Seen, SimError, as_seen, forecast, predict_steady};
use fullpipe_tune::{DirectionProof, Outcome, PredictedGain};

/// What a plan for a platform would do on the path that it is for.
pub(super) fn of_plan(plan: &Plan, request: &PlatformRequest<'_>) -> Result<PlanForecast, SimError> {
    let mut machine = Machine::new(&request.platform.to_string())?;
    if let Some(settings) = request.settings {
        set_all(&mut machine, settings);
    }
    // Where no file tells a value, the plan names the default of that very version.
    for change in plan.changes.iter().filter(|change| change.from.is_some()) {
        machine.set(&change.knob.to_string(), change.from.as_deref()).ok();
    }
    let line = Line { rate: request.rate, rtt: request.rtt, loss: 0.0, mtu: request.packets.segment().inner };
    let changes: Vec<_> = plan.changes.iter().map(|change| (change.knob.to_string(), change.to.clone())).collect();
    let found = forecast(&machine, line, &changes)?;
    let changes = found
        .steps
        .into_iter()
        .map(|step| ChangeForecast { rows: rows(step.receives, step.sends), not_predicted: step.not_predicted });
    Ok(PlanForecast {
        changes: changes.collect(),
        whole: rows(Some(found.receives), Some(found.sends)),
        notes: found.notes,
    })
}

/// Gives a machine the settings that were read; those that the simulator has a counterpart for, as `name = value`.
pub(super) fn set_all(machine: &mut Machine, settings: &Settings) -> Vec<String> {
    let there = settings.values.iter().filter_map(|(knob, value)| Some((knob.to_string(), value.as_deref()?)));
    let taken = there.filter(|(knob, value)| machine.set(knob, Some(value)).is_ok());
    taken.map(|(knob, value)| format!("{knob} = {}", value.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

fn rows(receives: Option<Between>, sends: Option<Between>) -> Vec<ForecastRow> {
    let row = |direction, between: Between| ForecastRow {
        direction,
        before: point(between.before),
        after: point(between.after),
    };
    let both = [("receives", receives), ("sends", sends)];
    both.into_iter().filter_map(|(direction, between)| Some(row(direction, between?))).collect()
}

fn point(predicted: Predicted) -> ForecastPoint {
    ForecastPoint { rate: predicted.rate, limiter: predicted.limiter, detail: predicted.detail }
}

/// Gives each proof what the simulator expects of its changes, where it can say so.
pub(super) fn beside_proofs(outcome: &mut Outcome) {
    let gains: Vec<_> = outcome.proofs.iter().map(|proof| gain(outcome, proof)).collect();
    for (proof, gain) in outcome.proofs.iter_mut().zip(gains) {
        proof.predicted = gain;
    }
}

/// What the changes of a proof give in its direction: one connection alone, whose ends reported their platforms.
fn gain(outcome: &Outcome, proof: &DirectionProof) -> Option<PredictedGain> {
    let direction = outcome.before.iter().find(|direction| direction.name == proof.direction)?;
    let [transfer] = direction.transfers.as_slice() else { return None };
    let measured = SeenTransfer::from_direction(direction)?;
    let seen = seen(&measured, measured.rtt?);
    let ends = [&transfer.sender, &transfer.receiver];
    let mut machines = Vec::new();
    for end in ends {
        machines.push(Machine::new(end.platform.as_deref()?).ok()?);
    }
    let mut touched = [false; 2];
    let before = [machines[0].clone(), machines[1].clone()];
    for change in outcome.plan.changes.iter().filter(|change| proof.knobs.contains(&change.knob)) {
        for (place, end) in ends.into_iter().enumerate() {
            if change.host == end.name {
                let acts = machines[place].set(&change.knob.to_string(), change.to.as_deref()).ok();
                touched[place] |= acts.is_some_and(|acts| if place == 0 { acts.sends } else { acts.receives });
            }
        }
    }
    if touched == [false; 2] {
        return None;
    }
    let rate = |overrides: &Overrides, machines: &[Machine]| {
        let (spec, _) = as_seen(&seen, overrides, &machines[0], &machines[1]).ok()?;
        Some(predict_steady(&spec).ok()?.rate)
    };
    let after = Overrides { sender: touched[0], receiver: touched[1], ..Overrides::default() };
    Some(PredictedGain { before_bps: rate(&Overrides::default(), &before)?, after_bps: rate(&after, &machines)? })
}

/// As the simulator takes it.
pub(super) fn seen(transfer: &SeenTransfer, rtt: fullpipe_units::Micros) -> Seen {
    Seen {
        rate: transfer.rate,
        path: transfer.path,
        attainable: transfer.attainable,
        rtt,
        limiter: transfer.limiter,
        segments: transfer.segments,
        mtu: transfer.mtu,
        window: transfer.window,
        in_flight: transfer.in_flight,
        scale: transfer.ends[1].scale,
    }
}
