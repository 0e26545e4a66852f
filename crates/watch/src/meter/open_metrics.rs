//! The metrics as text, as OpenMetrics 1.0 has it.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text::encode},
    metrics::{MetricType, exemplar::Exemplar},
    registry::Registry,
};

use super::figures::{Kind, Label, Metric, ROUND_TRIPS, Value};

/// Single observations are not exposed.
const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;

pub(super) fn text(metrics: Vec<Metric>) -> String {
    let mut registry = Registry::with_prefix("fullpipe");
    registry.register_collector(Box::new(Metrics(metrics)));
    let mut text = String::new();
    // Writing to a string does not fail.
    encode(&mut text, &registry).unwrap_or_default();
    text
}

#[derive(Debug)]
struct Metrics(Vec<Metric>);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Metric { spec, points } in &self.0 {
            let kind = match spec.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Count | Kind::State => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(spec.name, spec.help, spec.unit.as_ref(), kind)?;
            for point in points {
                let labels: Vec<_> = point.labels.iter().map(|(label, value)| (name(*label), value.as_ref())).collect();
                if labels.is_empty() {
                    value(&mut metric, spec.kind, &point.value)?;
                } else {
                    value(&mut metric.encode_family(&labels)?, spec.kind, &point.value)?;
                }
            }
        }
        Ok(())
    }
}

fn value(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> fmt::Result {
    let is_counter = kind == Kind::Counter;
    match value {
        Value::Whole(count) if is_counter => metric.encode_counter(count, NO_EXEMPLAR),
        Value::Seconds(seconds) if is_counter => metric.encode_counter(seconds, NO_EXEMPLAR),
        Value::Whole(count) => metric.encode_gauge(count),
        Value::Seconds(seconds) => metric.encode_gauge(seconds),
        Value::Histogram(histogram) => {
            let bounds = ROUND_TRIPS.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts.iter().copied()).collect();
            metric.encode_histogram::<NoLabelSet>(histogram.sum, histogram.count(), &buckets, None)
        }
    }
}

fn name(label: Label) -> &'static str {
    match label {
        Label::Limiter => "limiter",
        Label::Process => "process",
        Label::Destination => "destination",
        Label::Buffer => "buffer",
        Label::Reason => "reason",
    }
}
