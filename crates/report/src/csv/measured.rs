//! The intervals of a measurement. What is *not* here: what the figures mean (`docs/json.md`).

use fullpipe_units::{Bytes, Micros};

use crate::{
    Comparison, Pair,
    measured::{Measured, intervals, name},
};

/// A line per interval and direction; what is not known is empty. Datagrams have other columns than connections.
pub fn measured(measured: &Measured<'_>) -> String {
    let is_udp = measured.spec.udp.is_some();
    let own = if is_udp { "packets,lost,out_of_order,jitter_us" } else { "retransmissions,rtt_us,cwnd,window" };
    let mut text = format!("direction,from_s,to_s,bytes,rate_bps,{own}\n");
    let every = Micros::from(measured.spec.progress_every);
    let or_empty = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    for direction in &measured.measurement.directions {
        for interval in intervals(direction, every) {
            let own = if is_udp {
                let jitter = interval.jitter_us.map(|us| format!("{us:.1}")).unwrap_or_default();
                let counts = [interval.packets, interval.lost, interval.out_of_order].map(or_empty);
                format!("{},{jitter}", counts.join(","))
            } else {
                let (rtt, cwnd) = (interval.rtt_us.map(Micros::get), interval.cwnd.map(Bytes::get));
                [interval.retransmits, rtt, cwnd, interval.window.map(Bytes::get)].map(or_empty).join(",")
            };
            text += &format!(
                "{},{:.3},{:.3},{},{},{own}\n",
                name(direction.direction),
                interval.from_us as f64 / 1e6,
                interval.to_us as f64 / 1e6,
                interval.bytes,
                or_empty(interval.rate().map(fullpipe_units::Rate::bps)),
            );
        }
    }
    text
}

/// A line per message size: MB/s in each direction and the round trip, before and after, each with the spread of its rounds,
/// the gain in percent, and whether that is within the noise. What is not known is empty.
pub fn comparison(comparison: &Comparison) -> String {
    let heads = [("up", "mb_per_s"), ("down", "mb_per_s"), ("round_trip", "us")].map(|(name, unit)| {
        format!("{name}_{unit}_before,{name}_before_spread_percent,{name}_{unit}_after,{name}_after_spread_percent,{name}_percent,{name}_within_noise")
    });
    let mut text = format!("size,{}\n", heads.join(","));
    let fixed = |value: Option<f64>, by: f64, digits: usize| {
        value.map(|value| format!("{:.digits$}", value / by)).unwrap_or_default()
    };
    let cells = |pair: &Pair, by: f64, digits: usize| {
        [
            fixed(pair.before, by, digits),
            fixed(pair.before_spread_percent, 1.0, 1),
            fixed(pair.after, by, digits),
            fixed(pair.after_spread_percent, 1.0, 1),
            fixed(pair.percent, 1.0, 1),
            pair.within_noise.map(|noise| noise.to_string()).unwrap_or_default(),
        ]
        .join(",")
    };
    for row in &comparison.rows {
        // A megabyte per second is 8,000,000 bit/s.
        let cells = [cells(&row.up_bps, 8e6, 2), cells(&row.down_bps, 8e6, 2), cells(&row.round_trip_us, 1.0, 1)];
        text += &format!("{},{}\n", row.size, cells.join(","));
    }
    text
}
