//! The segments of a few connections one by one, as a time-sequence graph shows them.
//!
//! What is *not* here: what they mean (`story`), and drawing them. A trace holds a bounded number of points; of a connection
//! with more segments, those are kept that a graph of a few thousand columns shows (the first, the last, the lowest and the
//! highest of each column: the M4 aggregation of Jugel et al., VLDB 2014), and everything that is no ordinary progress.

use std::collections::HashMap;

use fullpipe_units::SeqNum;

use crate::{Flags, Flow, Segment, Sink, TooBig, track::options::Options};

/// What to look for: the data of one connection's side, and the acknowledgements for it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// From the sender of the data to its receiver.
    pub flow: Flow,
    /// When the connection began, in the capture's nanoseconds.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// The shift of the windows that the receiver offers; `None` where its SYN was not seen, and windows mean nothing.
    pub shift: Option<u8>,
    /// Segments of the connection, both ways.
    pub packets: u64,
}

/// What a point of a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Payload, a SYN or a FIN, further than everything before.
    Data,
    /// At or below what was sent before: retransmitted, or overtaken on the way.
    Again,
    /// An acknowledgement: up to `seq`, with a window of `len` bytes behind it.
    Ack,
    /// A selective acknowledgement of `len` bytes from `seq` on.
    Sack,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Since the trace's beginning, in nanoseconds.
    pub at_ns: u64,
    /// The packet's number in the capture, from 1.
    pub number: u64,
    /// What it is.
    pub mark: Mark,
    /// Sequence number since the trace's first, in bytes; wraps are undone.
    pub seq: i64,
    /// Its bytes.
    pub len: u32,
}

/// The points of one connection's side, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// When it begins, in the capture's nanoseconds.
    pub from_ns: u64,
    /// The sequence number from which the points count.
    pub base: u32,
    /// The points.
    pub points: Vec<Point>,
    /// How many there were.
    pub seen: u64,
}

/// Collects traces.
#[derive(Debug)]
pub struct Tracer {
    places: HashMap<Flow, (usize, bool)>,
    tracks: Vec<Track>,
}

impl Tracer {
    /// Traces of `wanted`, each of at most about `most` points.
    pub fn new(wanted: &[Wanted], most: usize) -> Self {
        let mut places = HashMap::new();
        for (place, wanted) in wanted.iter().enumerate() {
            places.insert(wanted.flow, (place, true));
            places.insert(wanted.flow.reversed(), (place, false));
        }
        Self { places, tracks: wanted.iter().map(|wanted| Track::new(*wanted, most)).collect() }
    }

    /// Whether it looks for this segment.
    pub fn wants(&self, segment: &Segment<'_>) -> bool {
        self.places.get(&segment.flow).is_some_and(|(place, _)| self.tracks[*place].is_within(segment.at_ns))
    }

    /// The traces, in the order in which they were wanted.
    pub fn finish(self) -> Vec<Trace> {
        self.tracks.into_iter().map(Track::finish).collect()
    }
}

impl Sink for Tracer {
    fn segment(&mut self, segment: &Segment<'_>) {
        let Some(&(place, is_data)) = self.places.get(&segment.flow) else { return };
        let track = &mut self.tracks[place];
        if track.is_within(segment.at_ns) {
            if is_data { track.data(segment) } else { track.ack(segment) }
        }
    }

    fn too_big(&mut self, _: &TooBig) {}
}

/// One trace in the making.
#[derive(Debug)]
struct Track {
    wanted: Wanted,
    /// The first sequence number, the last one that was unwrapped, and how far that is from the first.
    last: Option<(SeqNum, i64)>,
    highest: i64,
    /// Width of a column in nanoseconds; 0 keeps everything.
    column_ns: u64,
    columns: [Column; 2],
    /// How many more points that are no ordinary progress are kept in any case.
    room: usize,
    trace: Trace,
}

impl Track {
    fn new(wanted: Wanted, most: usize) -> Self {
        // Up to four points of data and four of acknowledgements for a column; the other half is for what is always kept.
        let columns = (most / 16).max(1) as u64;
        let column_ns =
            if wanted.packets as usize <= most { 0 } else { wanted.to_ns.abs_diff(wanted.from_ns) / columns + 1 };
        Self {
            wanted,
            last: None,
            highest: i64::MIN,
            column_ns,
            columns: [Column::default(), Column::default()],
            room: most / 2,
            trace: Trace { from_ns: wanted.from_ns, ..Trace::default() },
        }
    }

    fn is_within(&self, at_ns: u64) -> bool {
        (self.wanted.from_ns..=self.wanted.to_ns).contains(&at_ns)
    }

    /// The distance from the first sequence number; what is less than half the space away is near.
    fn distance(&mut self, seq: SeqNum) -> i64 {
        let (last, far) = *self.last.get_or_insert_with(|| {
            self.trace.base = seq.get();
            (seq, 0)
        });
        let distance = far + i64::from(seq.get().wrapping_sub(last.get()) as i32);
        if distance > far {
            self.last = Some((seq, distance));
        }
        distance
    }

    fn data(&mut self, segment: &Segment<'_>) {
        let controls = [Flags::SYN, Flags::FIN].iter().filter(|flag| segment.flags.has(**flag)).count() as u32;
        let len = segment.payload_len + controls;
        if len == 0 {
            return;
        }
        let seq = self.distance(segment.seq);
        let mark = if seq < self.highest { Mark::Again } else { Mark::Data };
        self.highest = self.highest.max(seq + i64::from(len));
        self.put(0, segment, mark, seq, len);
    }

    fn ack(&mut self, segment: &Segment<'_>) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let seq = self.distance(segment.ack);
        let is_syn = segment.flags.has(Flags::SYN);
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        let shift = if is_syn { Some(0) } else { self.wanted.shift };
        let window = shift.map_or(0, |shift| u32::from(segment.window) << shift.min(14));
        self.put(1, segment, Mark::Ack, seq, window);
        let options = Options::walk(segment.options);
        for (left, right) in options.sack.into_iter().take(usize::from(options.sack_count)) {
            let (from, to) = (self.distance(left), right.get().wrapping_sub(left.get()));
            self.put(1, segment, Mark::Sack, from, to);
        }
    }

    fn put(&mut self, lane: usize, segment: &Segment<'_>, mark: Mark, seq: i64, len: u32) {
        self.trace.seen += 1;
        let at_ns = segment.at_ns.saturating_sub(self.wanted.from_ns);
        let point = Point { at_ns, number: segment.number, mark, seq, len };
        let is_ordinary = match mark {
            Mark::Data => true,
            Mark::Ack => len > 0 || self.wanted.shift.is_none(),
            Mark::Again | Mark::Sack => false,
        };
        if self.column_ns == 0 {
            self.trace.points.push(point);
            return;
        }
        let column = at_ns / self.column_ns;
        if self.columns[lane].number != column {
            self.columns[lane].empty_into(&mut self.trace.points);
            self.columns[lane].number = column;
        }
        if is_ordinary || self.room == 0 {
            self.columns[lane].take(point);
        } else {
            self.room -= 1;
            self.trace.points.push(point);
        }
    }

    fn finish(mut self) -> Trace {
        for column in &mut self.columns {
            column.empty_into(&mut self.trace.points);
        }
        // In a column, what is always kept was put before the column's own.
        self.trace.points.sort_by_key(|point| (point.at_ns, point.number));
        self.trace
    }
}

/// The first, last, lowest and highest point of a column.
#[derive(Debug, Default)]
struct Column {
    number: u64,
    kept: Option<[Point; 4]>,
}

impl Column {
    fn take(&mut self, point: Point) {
        let Some([_, last, low, high]) = &mut self.kept else {
            self.kept = Some([point; 4]);
            return;
        };
        *last = point;
        if point.seq < low.seq {
            *low = point;
        }
        if point.seq + i64::from(point.len) > high.seq + i64::from(high.len) {
            *high = point;
        }
    }

    fn empty_into(&mut self, points: &mut Vec<Point>) {
        let Some(mut kept) = self.kept.take() else { return };
        kept.sort_by_key(|point| (point.at_ns, point.number));
        let from = points.len();
        for point in kept {
            if !points[from..].contains(&point) {
                points.push(point);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, LinkStamp, Network, segment::Address};

    const FLOW: Flow = Flow {
        from: Endpoint { address: Address(1), port: 5_000 },
        to: Endpoint { address: Address(2), port: 80 },
        outer: 0,
    };

    fn segment(number: u64, flow: Flow, seq: u32, ack: u32, payload_len: u32, options: &[u8]) -> Segment<'_> {
        Segment {
            number,
            at_ns: 1_000 + number * 1_000_000,
            flow,
            network: Network { id: None, hop_limit: 64, ecn: 0, dont_fragment: true, length: 40 + payload_len },
            link: LinkStamp(0),
            seq: SeqNum::new(seq),
            ack: SeqNum::new(ack),
            flags: Flags::ACK,
            window: 500,
            payload_len,
            options,
            options_cut: false,
        }
    }

    fn wanted(packets: u64) -> Wanted {
        Wanted { flow: FLOW, from_ns: 1_000, to_ns: 1_000 + packets * 1_000_000, shift: Some(2), packets }
    }

    #[test]
    fn data_repeats_acknowledgements_and_sack_are_told_apart_across_a_wrap() {
        let mut tracer = Tracer::new(&[wanted(10)], 100);
        let start = u32::MAX - 999;
        // Kind 5, one block: the second thousand bytes.
        let mut sack = vec![1, 1, 5, 10];
        sack.extend(0_u32.to_be_bytes());
        sack.extend(1_000_u32.to_be_bytes());
        tracer.segment(&segment(1, FLOW, start, 7, 1_000, &[]));
        tracer.segment(&segment(2, FLOW, 0, 7, 1_000, &[]));
        tracer.segment(&segment(3, FLOW.reversed(), 7, start, 0, &sack));
        tracer.segment(&segment(4, FLOW, start, 7, 1_000, &[]));
        tracer.segment(&segment(5, FLOW.reversed(), 7, 1_000, 0, &[]));
        tracer.segment(&segment(6, FLOW, 1_000, 7, 0, &[]));
        let traces = tracer.finish();
        let points: Vec<_> = traces[0].points.iter().map(|p| (p.number, p.mark, p.seq, p.len)).collect();
        assert_eq!(
            points,
            [
                (1, Mark::Data, 0, 1_000),
                (2, Mark::Data, 1_000, 1_000),
                (3, Mark::Ack, 0, 2_000),
                (3, Mark::Sack, 1_000, 1_000),
                (4, Mark::Again, 0, 1_000),
                (5, Mark::Ack, 2_000, 2_000),
            ]
        );
        assert_eq!((traces[0].seen, traces[0].from_ns, traces[0].base), (6, 1_000, start));
    }

    #[test]
    fn a_long_trace_is_thinned_and_keeps_what_is_no_ordinary_progress() {
        let count = 100_000;
        let mut tracer = Tracer::new(&[wanted(count)], 8_000);
        for number in 1..=count {
            // Every thousandth is sent again.
            let seq = if number % 1_000 == 0 { number - 500 } else { number };
            tracer.segment(&segment(number, FLOW, seq as u32 * 1_000, 7, 1_000, &[]));
        }
        let trace = tracer.finish().remove(0);
        assert_eq!(trace.seen, count);
        assert!(trace.points.len() < 8_000 && trace.points.len() > 1_000, "{}", trace.points.len());
        assert_eq!(trace.points.iter().filter(|point| point.mark == Mark::Again).count(), 100);
        assert!(trace.points.is_sorted_by_key(|point| point.at_ns));
        assert_eq!((trace.points[0].number, trace.points.last().unwrap().number), (1, count));
    }

    #[test]
    fn another_connection_between_the_same_ports_is_not_mixed_in() {
        let mut tracer = Tracer::new(&[wanted(2)], 100);
        for number in 1..=5 {
            let one = segment(number, FLOW, number as u32, 7, 1, &[]);
            assert_eq!(tracer.wants(&one), number <= 2);
            tracer.segment(&one);
        }
        assert_eq!(tracer.finish()[0].points.len(), 2);
    }
}
