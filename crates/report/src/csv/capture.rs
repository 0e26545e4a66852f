//! Captures, a line per connection. What is *not* here: what the figures mean (`docs/json.md`).

use fullpipe_diagnose::{Detail, Limiter};
use serde::Serialize;

use crate::capture::{CaptureList, endpoint};

#[derive(Serialize)]
struct Row {
    number: u64,
    a: String,
    b: String,
    packets: u64,
    bytes: u64,
    seconds: f64,
    direction: &'static str,
    rate_bps: Option<u64>,
    rtt_us: Option<u64>,
    retransmissions: u64,
    out_of_order: u64,
    mss: u32,
    window_scale_a: Option<u8>,
    window_scale_b: Option<u8>,
    limiter: Limiter,
    detail: Option<Detail>,
    share: f64,
    attainable_bps: Option<u64>,
    action: String,
}

/// A line of names, and one for each connection that is to be shown.
pub fn captures(list: &CaptureList) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for report in list.connections.iter().take(list.shown) {
        let main = report.main_side();
        let diagnosis = main.verdict.as_ref().map(|verdict| &verdict.diagnosis);
        let sum = |count: fn(&fullpipe_capture::Counters) -> u64| {
            report.sides.iter().map(|side| count(&side.counters)).sum::<u64>()
        };
        let scale = |place: usize| report.sides[place].syn.and_then(|syn| syn.window_scale);
        writer.serialize(Row {
            number: report.number,
            a: endpoint(report.a),
            b: endpoint(report.b),
            packets: report.packets(),
            bytes: report.payload().get(),
            seconds: report.lasted.as_secs_f64(),
            direction: if report.main() == 0 { "a->b" } else { "b->a" },
            rate_bps: main.rate.map(|rate| rate.bps()),
            rtt_us: report.rtt.map(|rtt| rtt.get()),
            retransmissions: sum(|counters| counters.retransmissions),
            out_of_order: sum(|counters| counters.out_of_order),
            mss: main.mss,
            window_scale_a: scale(0),
            window_scale_b: scale(1),
            limiter: diagnosis.map_or(Limiter::InsufficientEvidence, |diagnosis| diagnosis.limiter),
            detail: diagnosis.and_then(|diagnosis| diagnosis.detail),
            share: diagnosis.map_or(0.0, |diagnosis| diagnosis.share),
            attainable_bps: diagnosis.and_then(|diagnosis| diagnosis.attainable_bps).map(|rate| rate.bps()),
            action: diagnosis.map(|diagnosis| diagnosis.action.clone()).unwrap_or_default(),
        })?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
