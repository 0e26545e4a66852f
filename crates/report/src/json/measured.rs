//! The document of `measure`.

use fullpipe_measure::{Cpu, DirectionMeasurement, Push};
use fullpipe_units::Micros;
use serde_json::{Value, json};

use super::document;
use crate::measured::{Interval, Measured, intervals, seconds_per_gb, sent};
use crate::{Comparison, KeptSize, Survey};

/// What `measure` found.
pub fn measured(command: &str, measured: &Measured<'_>) -> Value {
    let measurement = measured.measurement;
    let directions = measurement.directions.iter().map(|direction| one_direction(direction, measured));
    document(
        command,
        json!({
            "host": measured.host,
            "ends": { "a": super::OWN_END, "b": measured.host },
            "peer": { "address": measurement.peer.to_string(), "kind": measurement.peer_kind },
            "cancelled": measurement.cancelled,
            "directions": directions.collect::<Vec<_>>(),
            "processor": {
                "own": processor(&measurement.own_cpu, measured),
                "far": measurement.far_cpu.as_ref().map(|cpu| processor(cpu, measured)),
            },
            "max": measurement.own_push.as_ref().map(|own| json!({
                "own": push(own),
                "far": measurement.far_push.as_ref().map(push),
            })),
            "server_output": measurement.server_output,
            "warnings": measurement.warnings,
        }),
    )
}

/// What `measure` found with several tests.
pub fn survey(command: &str, survey: &Survey) -> Value {
    document(
        command,
        json!({
            "host": survey.host,
            "ends": { "a": super::OWN_END, "b": survey.host },
            "peer": { "address": survey.peer.to_string(), "kind": survey.peer_kind },
            "cancelled": survey.cancelled,
            "conclusions": survey.conclusions(),
            "sizes": survey.sizes,
            "streams": survey.streams,
            "exchanges": survey.exchanges,
            "under_load": survey.under_load,
            "mtu": survey.mtu,
            "tcp_mtu": survey.tcp_mtu,
            // Filled by `comparison`.
            "comparison": [],
            "capacity": survey.capacity.as_ref().map_or(&[][..], |capacity| &capacity.directions),
        }),
    )
}

/// The document of a survey with an earlier one beside it.
pub fn comparison(mut survey: Value, comparison: &Comparison) -> Value {
    survey["comparison"] = json!(comparison.rows);
    survey
}

/// The sizes of a document.
pub fn sizes_of(document: &Value) -> Vec<KeptSize> {
    KeptSize::of_document(document)
}

/// The sizes of a document that was kept.
///
/// # Errors
///
/// Where the text is no JSON.
pub fn kept_sizes(text: &str) -> Result<Vec<KeptSize>, serde_json::Error> {
    serde_json::from_str(text).map(|document| KeptSize::of_document(&document))
}

fn processor(cpu: &Cpu, measured: &Measured<'_>) -> Value {
    json!({
        "user_percent": cpu.user_percent,
        "system_percent": cpu.system_percent,
        "seconds_per_gb": seconds_per_gb(cpu.percent(), measured),
    })
}

fn push(push: &Push) -> Value {
    json!({ "sending": push.sending, "receiving": push.receiving })
}

fn one_direction(direction: &DirectionMeasurement, measured: &Measured<'_>) -> Value {
    let every = Micros::from(measured.spec.progress_every);
    json!({
        "direction": direction.direction,
        "rate_bps": direction.rate_bps,
        "steady_bps": direction.steady_bps,
        "bytes": direction.bytes,
        "sent_bytes": sent(direction),
        "seconds": direction.seconds,
        "omitted_s": direction.omitted_us.as_secs_f64(),
        "retransmissions": direction.retransmits,
        "rtt_us": direction.idle_rtt.map(|rtt| rtt.min_us),
        "loaded_rtt_us": direction.loaded_rtt.map(|rtt| rtt.p50_us),
        "kernel_mtu": direction.kernel_mtu,
        "datagrams": direction.datagrams.map(|datagrams| json!({
            "packets": datagrams.packets,
            "lost": datagrams.lost,
            "loss": datagrams.loss(),
            "out_of_order": datagrams.out_of_order,
            "jitter_us": datagrams.jitter_us,
        })),
        "streams": direction.transfers.iter().zip(&direction.counted).map(|(transfer, counted)| {
            let last = transfer.sender_samples.last();
            json!({
                "rate_bps": counted.rate(),
                "bytes": counted.bytes,
                "sent_bytes": counted.sent,
                "seconds": counted.duration_us.as_secs_f64(),
                "congestion_control": transfer.sender.congestion_control,
                "mss": last.and_then(|sample| sample.mss),
                "path_mtu": transfer.path_mtu,
                "rtt_us": last.and_then(|sample| sample.rtt_us),
                "cwnd": last.and_then(|sample| sample.cwnd),
                "window": last.and_then(|sample| sample.offered_window),
                "retransmissions": counted.retransmits,
                "busy_us": last.and_then(|sample| sample.busy_us),
                "rwnd_limited_us": last.and_then(|sample| sample.rwnd_limited_us),
                "sndbuf_limited_us": last.and_then(|sample| sample.sndbuf_limited_us),
                "blind": transfer.blind,
                "series": measured.series.then(|| json!({
                    "sender": transfer.sender_samples, "receiver": transfer.receiver_samples,
                })),
            })
        }).collect::<Vec<_>>(),
        "intervals": intervals(direction, every).iter().map(interval).collect::<Vec<_>>(),
    })
}

fn interval(interval: &Interval) -> Value {
    json!({
        "from_s": interval.from_us as f64 / 1e6,
        "to_s": interval.to_us as f64 / 1e6,
        "bytes": interval.bytes,
        "rate_bps": interval.rate(),
        "omitted": interval.omitted,
        "retransmissions": interval.retransmits,
        "rtt_us": interval.rtt_us,
        "cwnd": interval.cwnd,
        "window": interval.window,
        "packets": interval.packets,
        "lost": interval.lost,
        "out_of_order": interval.out_of_order,
        "jitter_us": interval.jitter_us,
    })
}
