//! The tables of captures, column by column: names, units and values, for every format that has columns (`parquet`, and Arrow
//! for Python). What is *not* here: writing any of them, and what the figures mean (`docs/json.md`).

use fullpipe_capture::Report;
use fullpipe_diagnose::SenderSample;
use fullpipe_units::Bytes;

use crate::{CaptureProblem, json::word};

pub use crate::row::Row;

/// A column of rows `R`: its name, which is that of the JSON document's key, its unit, and what it holds.
pub struct Column<R> {
    /// The name.
    pub name: &'static str,
    /// `bit/s`, `us`, `B`; empty where there is none.
    pub unit: &'static str,
    /// What is in it.
    pub values: Values<R>,
}

/// What a column holds, and how a row tells it.
pub enum Values<R> {
    /// Counts and rates: none of them is ever negative.
    Count(fn(&R) -> u64),
    /// Those that may not have been seen.
    MaybeCount(fn(&R) -> Option<u64>),
    /// What has a fraction.
    Number(fn(&R) -> f64),
    /// What is so, or not.
    Flag(fn(&R) -> bool),
    /// Words.
    Text(fn(&R) -> String),
    /// Words that may be absent.
    MaybeText(fn(&R) -> Option<String>),
}

const fn column<R>(name: &'static str, unit: &'static str, values: Values<R>) -> Column<R> {
    Column { name, unit, values }
}

/// A row for each connection, in the order of the comma-separated values.
pub const CONNECTIONS: &[Column<Row>] = &[
    column("number", "", Values::Count(|row| row.number)),
    column("started_us", "us since 1970", Values::Count(|row| row.started_us)),
    column("a", "", Values::Text(|row| row.a.clone())),
    column("b", "", Values::Text(|row| row.b.clone())),
    column("packets", "", Values::Count(|row| row.packets)),
    column("bytes", "B", Values::Count(|row| row.bytes)),
    column("seconds", "s", Values::Number(|row| row.seconds)),
    column("direction", "", Values::Text(|row| row.direction.to_owned())),
    column("sending_seconds", "s", Values::Number(|row| row.sending_seconds)),
    column("rate_bps", "bit/s", Values::MaybeCount(|row| row.rate_bps)),
    column("rtt_us", "us", Values::MaybeCount(|row| row.rtt_us)),
    column("retransmissions", "packets", Values::Count(|row| row.retransmissions)),
    column("out_of_order", "packets", Values::Count(|row| row.out_of_order)),
    column("mss", "B", Values::Count(|row| row.mss.into())),
    column("syn_seen_a", "", Values::Flag(|row| row.syn_seen_a)),
    column("syn_seen_b", "", Values::Flag(|row| row.syn_seen_b)),
    column("window_scale_a", "", Values::MaybeCount(|row| row.window_scale_a.map(u64::from))),
    column("window_scale_b", "", Values::MaybeCount(|row| row.window_scale_b.map(u64::from))),
    column("limiter", "", Values::Text(|row| word(&row.limiter).unwrap_or_default())),
    column("detail", "", Values::MaybeText(|row| row.detail.as_ref().and_then(word))),
    column("share", "of the time", Values::Number(|row| row.share)),
    column("attainable_bps", "bit/s", Values::MaybeCount(|row| row.attainable_bps)),
    column("action", "", Values::Text(|row| row.action.clone())),
];

/// A row for each sample of a direction that was judged, in the order of time.
pub const TIMELINES: &[Column<Moment>] = &[
    column("number", "", Values::Count(|moment| moment.number)),
    column("direction", "", Values::Text(|moment| moment.direction.to_owned())),
    column("at_us", "us", Values::Count(|moment| moment.sample.at_us.get())),
    column("acked", "B", Values::Count(|moment| moment.sample.acked.get())),
    column("in_flight", "B", Values::MaybeCount(|moment| moment.sample.in_flight.map(Bytes::get))),
    column("offered_window", "B", Values::MaybeCount(|moment| moment.sample.offered_window.map(Bytes::get))),
    column("cwnd", "B", Values::MaybeCount(|moment| moment.sample.cwnd.map(Bytes::get))),
    column("rtt_us", "us", Values::MaybeCount(|moment| moment.sample.rtt_us.map(|rtt| rtt.get()))),
    column("retransmissions", "packets", Values::MaybeCount(|moment| moment.sample.retransmits)),
];

/// A row for each thing that could not be read.
pub const PROBLEMS: &[Column<CaptureProblem>] = &[
    column("file", "", Values::Text(|problem| problem.file.clone())),
    column("packet", "", Values::MaybeCount(|problem| problem.packet)),
    column("message", "", Values::Text(|problem| problem.message.clone())),
];

/// One sample of one direction of a connection.
#[derive(Clone, Debug)]
pub struct Moment {
    number: u64,
    direction: &'static str,
    sample: SenderSample,
}

impl Moment {
    /// Those of both directions; none where the transfers were not kept.
    pub fn all_of(report: &Report) -> Vec<Self> {
        let sides = report.sides.iter().zip(["a->b", "b->a"]);
        let judged = sides.filter_map(|(side, direction)| {
            let transfer = side.verdict.as_ref()?.transfer.as_ref()?;
            Some((direction, &transfer.sender_samples))
        });
        let samples = judged.flat_map(|(direction, samples)| samples.iter().map(move |sample| (direction, sample)));
        samples.map(|(direction, sample)| Self { number: report.number, direction, sample: *sample }).collect()
    }
}
