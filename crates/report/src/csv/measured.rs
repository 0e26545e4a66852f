//! The intervals of a measurement. What is *not* here: what the figures mean (`docs/json.md`).

use fullpipe_units::{Bytes, Micros};

use crate::measured::{Measured, intervals, name};

/// A line per interval and direction; what is not known is empty. Datagrams have other columns than connections.
pub fn measured(measured: &Measured<'_>) -> String {
    let is_udp = measured.spec.udp.is_some();
    let own = if is_udp { "packets,lost,out_of_order,jitter_us" } else { "retransmits,rtt_us,cwnd,window" };
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
