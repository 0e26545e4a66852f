//! A time-sequence graph, packed for the page: a few bytes for each packet.

use base64ct::{Base64, Encoding};
use fullpipe_capture::{Mark, Trace};
use maud::{Markup, html};
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// The points of one connection's side, for script to draw.
#[derive(Clone, Debug)]
pub struct TraceChart {
    /// Which connection of the document it belongs to.
    pub connection: usize,
    /// What it shows.
    pub title: String,
    /// What to type into Wireshark to see the connection.
    pub filter: String,
    /// Who sends the data, and to whom.
    pub ends: [String; 2],
    /// Whether windows are known.
    pub has_windows: bool,
    /// Where the trace begins on the time axis of the connection's charts, whose zero is the first payload, in microseconds:
    /// negative where a handshake went before.
    pub begins_us: i64,
    /// The points.
    pub trace: Trace,
}

impl TraceChart {
    /// The `id` of its element.
    fn id(&self) -> String {
        format!("trace-{}", self.connection)
    }

    /// The last point on that axis.
    fn ends_us(&self) -> i64 {
        let last_ns = self.trace.points.iter().map(|point| point.at_ns).max().unwrap_or(0);
        self.begins_us.saturating_add(i64::try_from(last_ns / 1_000).unwrap_or(0))
    }
}

impl Serialize for TraceChart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("TraceChart", 9)?;
        object.serialize_field("id", &self.id())?;
        object.serialize_field("title", &self.title)?;
        object.serialize_field("filter", &self.filter)?;
        object.serialize_field("count", &self.trace.points.len())?;
        object.serialize_field("seen", &self.trace.seen)?;
        object.serialize_field("has_windows", &self.has_windows)?;
        object.serialize_field("begins_us", &self.begins_us)?;
        object.serialize_field("ends_us", &self.ends_us())?;
        object.serialize_field("points", &Base64::encode_string(&packed(&self.trace)))?;
        object.end()
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
        figure.chart data-trace=(chart.id()) {
            figcaption { (chart.title) }
            div.canvas role="img" tabindex="0"
                aria-label={ (chart.title) ": " (chart.trace.seen) " segments, acknowledgements and SACK blocks over time" } {}
            @if chart.trace.seen > chart.trace.points.len() as u64 {
                p.note {
                    (chart.trace.points.len()) " of " (chart.trace.seen) " points: of each column the first, the last, the lowest and the highest, and \
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
        let trace = Trace { points: (0..1_000).map(point).collect(), seen: 1_000, ..Trace::default() };
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
