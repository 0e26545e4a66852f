//! The documents of the simulator.

use serde_json::{Value, json};

use super::{document, outcome};
use crate::{SimRun, WhatIf};

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
            "retransmits": row.retransmits,
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
