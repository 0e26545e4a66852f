//! The metrics as OTLP has them in JSON (OTLP 1.0, "JSON Protobuf Encoding"): 64-bit numbers are texts, enumerations are numbers.
//!
//! JSON, because it needs no library beyond the one that is here for everything else: `opentelemetry-otlp` brings an SDK, gRPC
//! and a second HTTP client, and messages by `opentelemetry-proto` bring prost and tonic.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::figures::{Histogram, Kind, Label, Metric, Point, ROUND_TRIPS, Value};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: each sum is of all since the start, so that one that gets lost is made up for by the next.
const CUMULATIVE: u32 = 2;

/// What metrics of several names mean together: those of payload are the only ones.
const TOGETHER: &str = "Payload of TCP: acknowledged by peers (transmit), and received";

/// Who tells, and since when it counts.
#[derive(Clone, Debug)]
pub struct Resource {
    /// What identifies it: `service.name`, `host.name`, ..., each with its value.
    pub attributes: Vec<(String, String)>,
    /// The version of the program.
    pub version: &'static str,
    /// When all sums were zero.
    pub start: SystemTime,
}

pub(super) fn json(metrics: &[Metric], resource: &Resource, now: SystemTime) -> String {
    let times = Times { start: nanoseconds(resource.start), now: nanoseconds(now) };
    let same = metrics.chunk_by(|one, next| one.spec.otlp.name == next.spec.otlp.name);
    let metrics: Vec<Json> = same.filter_map(|parts| metric(parts, &times)).collect();
    let attributes = resource.attributes.iter().map(|(key, value)| attribute(key, value));
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes.collect::<Vec<_>>()},
        "scopeMetrics": [{
            "scope": {"name": "fullpipe", "version": resource.version},
            "metrics": metrics,
        }],
    }]})
    .to_string()
}

struct Times {
    start: String,
    now: String,
}

/// Since 1970, as a text.
fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// Those that OpenMetrics tells apart by name, as one metric.
fn metric(parts: &[Metric], times: &Times) -> Option<Json> {
    let spec = parts.first()?.spec;
    let points: Vec<Json> = parts
        .iter()
        .flat_map(|part| part.points.iter().map(|one| point(one, part.spec.otlp.attribute, times)))
        .collect();
    let (shape, data) = match spec.kind {
        Kind::Counter | Kind::Count => (
            "sum",
            json!({
                "dataPoints": points,
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": spec.kind == Kind::Counter,
            }),
        ),
        Kind::State => ("gauge", json!({"dataPoints": points})),
        Kind::Histogram => ("histogram", json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE})),
    };
    let mut metric = json!({"name": spec.otlp.name, "description": if parts.len() > 1 { TOGETHER } else { spec.help }, "unit": spec.otlp.unit});
    metric[shape] = data;
    Some(metric)
}

fn point(point: &Point, more: Option<(&str, &str)>, times: &Times) -> Json {
    let mut attributes: Vec<Json> = point.labels.iter().map(|(label, value)| attribute(name(*label), value)).collect();
    // All of it is TCP's: an attribute of each figure, as the semantic conventions of connections do.
    attributes.push(attribute("network.transport", "tcp"));
    attributes.extend(more.map(|(key, value)| attribute(key, value)));
    let mut json = json!({
        "attributes": attributes,
        "startTimeUnixNano": times.start,
        "timeUnixNano": times.now,
    });
    match &point.value {
        Value::Whole(count) => json["asInt"] = count.to_string().into(),
        Value::Seconds(seconds) => json["asDouble"] = (*seconds).into(),
        Value::Histogram(histogram) => put_histogram(&mut json, histogram),
    }
    json
}

fn put_histogram(json: &mut Json, histogram: &Histogram) {
    json["count"] = histogram.count().to_string().into();
    json["sum"] = histogram.sum.into();
    json["bucketCounts"] = histogram.counts.iter().map(u64::to_string).collect();
    json["explicitBounds"] = ROUND_TRIPS.into();
}

fn attribute(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

/// The semantic name where there is one. A network is no address, so that `network.peer.address` would be wrong.
fn name(label: Label) -> &'static str {
    match label {
        Label::Limiter => "fullpipe.limiter",
        Label::Process => "process.executable.name",
        Label::Destination => "fullpipe.destination",
        Label::Buffer => "fullpipe.buffer",
        Label::Reason => "fullpipe.reason",
    }
}
