//! A time-sequence graph, packed for the page: a few bytes for each packet.

use base64ct::{Base64, Encoding};
use fullpipe_capture::{Mark, Trace};
use maud::{Markup, html};
use serde::Serialize;

/// The points of one connection's side, for script to draw.
#[derive(Clone, Debug, Serialize)]
pub struct TraceChart {
    /// The `id` of its element; made when the page is written.
    pub id: String,
    /// Which connection of the document it belongs to.
    #[serde(skip)]
    pub connection: usize,
    /// What it shows.
    pub title: String,
    /// What to type into Wireshark to see the connection.
    pub filter: String,
    /// Points that are here.
    pub count: usize,
    /// Points that there were.
    pub seen: u64,
    /// Whether windows are known.
    pub has_windows: bool,
    /// The points, see [`packed`]; base64.
    pub points: String,
}

impl TraceChart {
    /// The graph of `trace`, of the connection at that place of the document.
    pub fn new(connection: usize, title: String, filter: String, trace: &Trace, has_windows: bool) -> Self {
        Self {
            id: format!("trace-{connection}"),
            connection,
            title,
            filter,
            count: trace.points.len(),
            seen: trace.seen,
            has_windows,
            points: Base64::encode_string(&packed(trace)),
        }
    }
}

/// For each point: its kind, and LEB128 numbers: microseconds and packets since the point before, the distance of its
/// sequence number from what the point of the same kind before it leads to (zigzag), and how much its bytes differ (zigzag).
fn packed(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(trace.points.len() * 6);
    let (mut at_us, mut number) = (0, 0);
    // Where the next of each kind is expected, and its size.
    let mut expected = [(0_i64, 0_i64); 4];
    for point in &trace.points {
        let kind = match point.mark {
            Mark::Data => 0,
            Mark::Again => 1,
            Mark::Ack => 2,
            Mark::Sack => 3,
        };
        let now = point.at_ns / 1_000;
        let (seq, len) = &mut expected[kind];
        bytes.push(kind as u8);
        leb128(&mut bytes, now.saturating_sub(at_us));
        leb128(&mut bytes, zigzag(point.number as i64 - number));
        leb128(&mut bytes, zigzag(point.seq - *seq));
        leb128(&mut bytes, zigzag(i64::from(point.len) - *len));
        *seq = if kind == 0 { point.seq + i64::from(point.len) } else { point.seq };
        *len = i64::from(point.len);
        (at_us, number) = (now, point.number as i64);
    }
    bytes
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The place where script draws it.
pub(super) fn figure(chart: &TraceChart) -> Markup {
    html! {
        figure.chart data-trace=(chart.id) {
            figcaption { (chart.title) }
            div.canvas role="img" tabindex="0"
                aria-label={ (chart.title) ": " (chart.seen) " segments, acknowledgements and SACK blocks over time" } {}
            @if chart.seen > chart.count as u64 {
                p.note {
                    (chart.count) " of " (chart.seen) " points: of each column the first, the last, the lowest and the highest, and \
                     every retransmission, SACK block and closed window as far as there is room."
                }
            }
            noscript { p.note { "This graph is drawn by script." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_capture::Point;

    use super::*;

    #[test]
    fn ordinary_segments_take_five_bytes_each() {
        let point =
            |n: u64| Point { at_ns: n * 50_000, number: n + 1, mark: Mark::Data, seq: n as i64 * 1_448, len: 1_448 };
        let trace = Trace { points: (0..1_000).map(point).collect(), seen: 1_000 };
        assert_eq!(packed(&trace).len(), 5 * 1_000 + 1, "the first size takes a byte more");
        assert_eq!(&packed(&trace)[6..11], [0, 50, 2, 0, 0]);
    }

    #[test]
    fn numbers_are_as_the_script_reads_them() {
        let mut bytes = Vec::new();
        leb128(&mut bytes, 300);
        assert_eq!(bytes, [0xac, 2]);
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
