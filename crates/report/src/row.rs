//! A connection of a capture as one line of a table. What is *not* here: how the table is written (`csv`, `columns`), and
//! what the figures mean (`docs/json.md`).

use fullpipe_capture::{Counters, Report};
use fullpipe_diagnose::{Detail, Limiter};
use serde::Serialize;

use crate::endpoint;

/// The columns, with the names of the JSON document's keys.
#[derive(Serialize)]
pub struct Row {
    pub(crate) number: u64,
    pub(crate) started_us: u64,
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) direction: &'static str,
    pub(crate) sending_seconds: f64,
    pub(crate) rate_bps: Option<u64>,
    pub(crate) rtt_us: Option<u64>,
    pub(crate) retransmissions: u64,
    pub(crate) out_of_order: u64,
    pub(crate) mss: u32,
    pub(crate) syn_seen_a: bool,
    pub(crate) syn_seen_b: bool,
    pub(crate) window_scale_a: Option<u8>,
    pub(crate) window_scale_b: Option<u8>,
    pub(crate) limiter: Limiter,
    pub(crate) detail: Option<Detail>,
    pub(crate) share: f64,
    pub(crate) attainable_bps: Option<u64>,
    pub(crate) action: String,
}

impl Row {
    /// The row of one connection.
    pub fn from_report(report: &Report) -> Self {
        let main = report.main_side();
        let diagnosis = main.verdict.as_ref().map(|verdict| &verdict.diagnosis);
        let sum = |count: fn(&Counters) -> u64| report.sides.iter().map(|side| count(&side.counters)).sum::<u64>();
        let scale = |place: usize| report.sides[place].syn.and_then(|syn| syn.window_scale);
        Self {
            number: report.number,
            started_us: report.started_ns / 1000,
            a: endpoint(report.a),
            b: endpoint(report.b),
            packets: report.packets(),
            bytes: report.payload().get(),
            seconds: report.lasted.as_secs_f64(),
            direction: if report.main() == 0 { "a->b" } else { "b->a" },
            sending_seconds: main.sending.as_secs_f64(),
            rate_bps: main.rate.map(|rate| rate.bps()),
            rtt_us: report.rtt.map(|rtt| rtt.get()),
            retransmissions: sum(|counters| counters.retransmissions),
            out_of_order: sum(|counters| counters.out_of_order),
            mss: main.mss,
            syn_seen_a: report.sides[0].syn.is_some(),
            syn_seen_b: report.sides[1].syn.is_some(),
            window_scale_a: scale(0),
            window_scale_b: scale(1),
            limiter: diagnosis.map_or(Limiter::InsufficientEvidence, |diagnosis| diagnosis.limiter),
            detail: diagnosis.and_then(|diagnosis| diagnosis.detail),
            share: diagnosis.map_or(0.0, |diagnosis| diagnosis.share),
            attainable_bps: diagnosis.and_then(|diagnosis| diagnosis.attainable_bps).map(|rate| rate.bps()),
            action: diagnosis.map(|diagnosis| diagnosis.action.clone()).unwrap_or_default(),
        }
    }
}
