//! The documents of `stack`.

use serde_json::{Value, json};

use super::document;
use crate::{DeviceTable, PresetTable, StackRun};

/// What `stack serve`, `connect` and `echo` did.
pub fn stack_run(command: &str, run: &StackRun) -> Value {
    let connections = run.connections.iter().map(|one| {
        json!({
            "peer": one.peer.to_string(),
            "sent": one.sent,
            "received": one.received,
            "seconds": one.seconds,
            "rate_bps": one.rate_bps,
            "segments_sent": one.segments_sent,
            "segments_received": one.segments_received,
            "retransmissions": one.retransmits,
            "timeouts": one.timeouts,
            "rtt_us": one.rtt_us,
            "mss": one.mss,
            "failure": one.failure,
        })
    });
    let pool = run.pool;
    document(
        command,
        json!({
            "scenario": run.scenario,
            "profile": run.profile,
            "offload": run.offload,
            "connections": connections.collect::<Vec<_>>(),
            "pool": { "buffers": pool.buffers, "free": pool.free, "most_used": pool.most_used },
        }),
    )
}

/// The table of a device over its buffers.
pub fn device_table(command: &str, table: &DeviceTable) -> Value {
    let rows = table.rows.iter().map(|row| {
        json!({
            "buffers": row.buffers,
            "role": row.role,
            "seconds": row.seconds,
            "runs": row.runs,
            "rate_bps": row.rate_bps,
            "retransmissions": row.retransmits,
            "early_dropped": row.early_dropped,
            "published_s": row.published_s,
            "deviation": row.deviation,
            "fitted": row.fitted,
            "valid": row.valid,
            "held": row.held,
            "asked": row.asked,
            "memory_bytes": row.held.zip(table.advice).map(|(held, advice)| held * advice.buffer_bytes),
        })
    });
    let advice = table.advice.map(|advice| {
        json!({ "sends": advice.sends, "receives": advice.receives, "connections": advice.connections, "pool": advice.pool,
            "buffer_bytes": advice.buffer_bytes })
    });
    document(
        command,
        json!({
            "advice": advice,
            "scenario": table.scenario,
            "summary": table.summary,
            "published": table.published,
            "bytes": table.bytes,
            "per_packet_us": table.per_packet_us,
            "rtt_us": table.rtt_us,
            "rate_bps": table.rate_bps,
            "loss": table.loss,
            "waits": table.waits,
            "sweep": table.sweep,
            "fitted": table.fitted,
            "tolerance": table.tolerance,
            "rows": rows.collect::<Vec<_>>(),
            "as_expected": table.as_expected(),
        }),
    )
}

/// The presets beside each other.
pub fn preset_table(command: &str, table: &PresetTable) -> Value {
    let rows = table.rows.iter().map(|row| {
        json!({
            "work": row.work,
            "preset": row.preset,
            "seconds": row.seconds,
            "bytes": row.bytes,
            "latency_us": row.latency.map(|latency| json!({ "p50": latency.p50_us, "p99": latency.p99_us })),
            "data_segments": row.data_segments,
            "acks": row.acks,
            "peer_acks": row.peer_acks,
            "wire_bytes": row.wire_bytes,
            "retransmissions": row.retransmits,
            "valid": row.valid,
        })
    });
    let advice = table.advice().into_iter().map(|advice| json!({ "preset": advice.preset, "text": advice.text }));
    document(
        command,
        json!({
            "scenario": table.scenario,
            "profile": table.profile,
            "rtt_us": table.rtt_us,
            "message_bytes": table.message_bytes,
            "messages": table.messages,
            "gap_us": table.gap_us,
            "pieces": table.pieces,
            "piece_gap_us": table.piece_gap_us,
            "bulk_bytes": table.bulk_bytes,
            "rows": rows.collect::<Vec<_>>(),
            "advice": advice.collect::<Vec<_>>(),
            "valid": table.is_valid(),
        }),
    )
}
