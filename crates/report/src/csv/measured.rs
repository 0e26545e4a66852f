//! The intervals of a measurement. What is *not* here: what the figures mean (`docs/json.md`).

use fullpipe_units::{Bytes, Micros};

use crate::measured::{Measured, intervals, name};

/// A line per interval and direction; what is not known is empty.
pub fn measured(measured: &Measured<'_>) -> String {
    let mut text = String::from("direction,from_s,to_s,bytes,rate_bps,retransmits,rtt_us,cwnd,window\n");
    let every = Micros::from(measured.spec.progress_every);
    for direction in &measured.measurement.directions {
        for interval in intervals(direction, every) {
            let or_empty = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            text += &format!(
                "{},{:.3},{:.3},{},{},{},{},{},{}\n",
                name(direction.direction),
                interval.from_us as f64 / 1e6,
                interval.to_us as f64 / 1e6,
                interval.bytes,
                or_empty(interval.rate().map(fullpipe_units::Rate::bps)),
                or_empty(interval.retransmits),
                or_empty(interval.rtt_us.map(Micros::get)),
                or_empty(interval.cwnd.map(Bytes::get)),
                or_empty(interval.window.map(Bytes::get)),
            );
        }
    }
    text
}
