//! The document of `share`.

use serde_json::{Value, json};

use super::document;
use crate::{PoolShares, SHARE_CALLS, ShareRow};

/// What `share` found.
pub fn share(command: &str, found: &PoolShares) -> Value {
    document(
        command,
        json!({
            "pool": {
                "buffers": found.pool,
                "buffer_bytes": found.buffer,
                "reserve": found.reserve,
                "shared": found.shared,
                "left": found.left,
            },
            "shares": found.rows.iter().map(row).collect::<Vec<_>>(),
            "total_bps": found.total,
            "device_bps": found.device,
            "wait_us": found.wait,
            "stop": found.stop.0,
            "notes": found.notes,
        }),
    )
}

fn row(row: &ShareRow) -> Value {
    let mut whole = json!({
        "sockets": row.sockets,
        "count": row.count,
        "buffers": row.buffers(),
        "rate_bps": row.rate,
        "limiter": row.held,
        "latency_us": row.latency.map(|(own, _)| own),
        "ample_latency_us": row.latency.map(|(_, ample)| ample),
    });
    let calls = row.calls();
    whole["calls"] = calls
        .iter()
        .zip(SHARE_CALLS)
        .zip(&row.numbers)
        .map(|((call, (function, _)), (buffers, reason))| {
            json!({ "function": function, "value": buffers, "call": call, "reason": reason })
        })
        .collect();
    for ((_, key), (buffers, _)) in SHARE_CALLS.iter().zip(&row.numbers) {
        whole[key] = json!(buffers);
    }
    whole
}
