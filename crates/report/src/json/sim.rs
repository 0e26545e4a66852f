//! The documents of the simulator.

use serde_json::{Value, json};

use super::{document, outcome};
use crate::{ReferenceFigure, ReferenceTable, SimRun, WhatIf};

/// What `sim` found: a run of the loop without a plan, and what only a simulation knows.
pub fn sim(command: &str, run: &SimRun) -> Value {
    let mut whole = outcome(command, &run.outcome);
    whole["seed"] = json!(run.seed);
    let series = |name: &str| {
        let direction = run.outcome.before.iter().find(|direction| direction.name == name)?;
        let transfer = direction.transfers.first().filter(|_| run.series)?;
        Some(json!({ "sender": transfer.sender_samples, "receiver": transfer.receiver_samples }))
    };
    let known = run.known.iter().map(|known| {
        json!({
            "direction": known.direction,
            "truth": known.truth,
            "queue_delay_us": known.queue_delay_us,
            "digest": format!("{:016x}", known.digest),
            "series": series(&known.direction),
        })
    });
    whole["simulated"] = Value::Array(known.collect());
    whole
}

/// What `what-if` predicts.
pub fn what_if(command: &str, found: &WhatIf) -> Value {
    let predictions = found.predictions.iter().map(|row| {
        json!({
            "direction": row.direction,
            "set": row.set,
            "rate_bps": row.rate,
            "measured_bps": row.measured,
            "limiter": row.limiter,
            "detail": row.detail,
            "truth": row.truth,
            "seconds": row.seconds,
            "retransmissions": row.retransmits,
            "queue_delay_us": row.queue_delay_us,
            "memory_bytes": row.memory_bytes,
            "failure": row.failure,
        })
    });
    let plateau = found.plateau.as_ref().and_then(|(knob, place)| {
        let row = found.predictions.get(*place)?;
        Some(json!({ "knob": knob, "value": row.value, "rate_bps": row.rate }))
    });
    document(
        command,
        json!({
            "situation": found.situation,
            "seed": found.seed,
            "predictions": predictions.collect::<Vec<_>>(),
            "plateau": plateau,
            "notes": found.notes,
        }),
    )
}

/// The table of the published situations.
pub fn reference(command: &str, table: &ReferenceTable) -> Value {
    let split = |figure: Option<ReferenceFigure>| match figure {
        Some(ReferenceFigure::Rate(rate)) => (Some(rate), None),
        Some(ReferenceFigure::Seconds(seconds)) => (None, Some(seconds)),
        None => (None, None),
    };
    let rows = table.rows.iter().map(|row| {
        let (rate, seconds) = split(Some(row.simulated));
        let (by_arithmetic, seconds_by_arithmetic) = split(row.arithmetic.as_ref().map(|(figure, _)| *figure));
        json!({
            "scenario": row.scenario,
            "case": row.case,
            "published": row.published,
            "arithmetic": row.arithmetic.as_ref().map(|(_, words)| words),
            "arithmetic_bps": by_arithmetic,
            "arithmetic_s": seconds_by_arithmetic,
            "rate_bps": rate,
            "seconds": seconds,
            "limiter": row.limiter,
            "lab": row.lab,
        })
    });
    document(command, json!({ "rows": rows.collect::<Vec<_>>(), "notes": table.notes }))
}
