//! Captures looked at: what was found in them as a list, and a closer look at the first connections, sample by sample and
//! segment by segment. What is *not* here: where their bytes come from, and drawing.

use std::{collections::BTreeMap, net::IpAddr};

use fullpipe_capture::{
    Findings, Flow, Keep, Mark, Point, ProblemKind, Report, Segment, Sink, TooBig, Trace, Tracer, Tracker, Wanted,
};
use fullpipe_diagnose::Limiter;
use fullpipe_ingest::{Captures, Error, Outcome};
use fullpipe_units::Micros;

use crate::{
    CaptureFile, CaptureList, CaptureProblem, Vantages, clean, display_filter, endpoint,
    html::{Chart, Charts, TraceChart},
};

/// What was seen of captures.
#[derive(Debug)]
pub struct Seen {
    /// All of it, not yet in order.
    pub list: CaptureList,
    /// Whether one of several could not be read, or breaks off.
    pub broken: bool,
}

/// What was found in `captures`.
pub fn list(captures: &Captures, found: Findings) -> Seen {
    let mut list = CaptureList {
        connections: found.connections,
        unlisted: found.unlisted,
        unanswered: found.unanswered,
        ..CaptureList::default()
    };
    tell_files(captures, &mut list);
    let is_cut =
        |file: &Outcome| file.problems.listed().iter().any(|problem| matches!(problem.kind, ProblemKind::FileCut));
    let broken = !captures.failed.is_empty() || captures.files.iter().any(|file| file.broken.is_some() || is_cut(file));
    list.vantages = vantages(&list);
    Seen { list, broken }
}

/// The connections that were seen at two places: those between the same ends, in the order in which each place saw them.
fn vantages(list: &CaptureList) -> Vec<Vantages> {
    if list.places() < 2 {
        return Vec::new();
    }
    let mut seen: BTreeMap<[(IpAddr, u16); 2], Vec<Seat>> = BTreeMap::new();
    for report in list.connections.iter() {
        let mut ends = [report.a, report.b].map(|end| (IpAddr::from(end.address), end.port));
        ends.sort_unstable();
        let Some(file) = list.file_of(report.first_packet) else { continue };
        seen.entry(ends).or_default().push(Seat::new(file.place, &report));
    }
    let mut vantages = Vec::new();
    for mut seats in seen.into_values() {
        seats.sort_unstable_by_key(|seat| seat.number);
        while let Some(first) = seats.first().copied() {
            let second = seats.iter().position(|seat| seat.place != first.place);
            let second = second.map(|place| seats.remove(place));
            seats.remove(0);
            vantages.extend(second.map(|second| first.beside(second)));
        }
    }
    vantages
}

/// A connection as one place saw it.
#[derive(Clone, Copy)]
struct Seat {
    place: usize,
    number: u64,
    /// From the place to the end that sent most, and back.
    to_sender: Option<Micros>,
    verdict: Option<Limiter>,
}

impl Seat {
    fn new(place: usize, report: &Report) -> Self {
        let side = report.main_side();
        let verdict = side.verdict.as_ref().map(|verdict| verdict.diagnosis.limiter);
        Self { place, number: report.number, to_sender: side.away, verdict }
    }

    fn beside(self, other: Self) -> Vantages {
        let is_nearer = match (self.to_sender, other.to_sender) {
            (Some(own), Some(others)) => own <= others,
            (own, _) => own.is_some(),
        };
        let (near, far) = if is_nearer { (self, other) } else { (other, self) };
        Vantages { near: near.number, far: far.number, agree: near.verdict == far.verdict }
    }
}

/// What was read, and what could not be.
fn tell_files(captures: &Captures, list: &mut CaptureList) {
    for file in &captures.files {
        let name = clean(&file.name).into_owned();
        list.files.push(CaptureFile {
            name: name.clone(),
            place: file.place,
            lasted: Micros::new(file.lasted_ns / 1_000),
            packets: file.totals.packets,
            bytes: file.totals.bytes,
            segments: file.totals.segments,
        });
        list.problem_count += file.problems.total();
        list.problems.extend(file.problems.listed().iter().map(|problem| CaptureProblem {
            file: name.clone(),
            packet: Some(problem.packet.saturating_sub(file.before)),
            message: problem.kind.to_string(),
        }));
        if let Some(error) = &file.broken {
            whole(list, name, error);
        }
    }
    for error in &captures.failed {
        let name = match error {
            Error::Open { name, .. }
            | Error::Read { name, .. }
            | Error::Decompress { name, .. }
            | Error::Packed { name, .. }
            | Error::LongWindow { name }
            | Error::NotACapture { name, .. } => clean(name).into_owned(),
        };
        whole(list, name, error);
    }
}

/// A problem with a whole file.
fn whole(list: &mut CaptureList, file: String, error: &Error) {
    list.problem_count += 1;
    list.problems.push(CaptureProblem { file, packet: None, message: clean(&error.to_string()).into_owned() });
}

/// Connections that are listed on a page, unless more are asked for.
pub const MOST_ON_PAGE: usize = 500;
/// Connections that are drawn.
pub const MOST_DRAWN: usize = 8;
/// Points of all graphs together: some six bytes each.
const MOST_POINTS: usize = 1_200_000;

/// The charts of the first `count` connections that are shown; `read` hands the captures over once more.
pub fn charts(list: &CaptureList, count: usize, read: impl FnOnce(&mut Closer) -> Captures) -> Charts {
    let reports: Vec<_> = list.connections.iter().take(list.shown.min(count)).collect();
    let wanted: Vec<Wanted> = reports.iter().map(|report| wanted(report)).collect();
    if wanted.is_empty() {
        return Charts::default();
    }
    let tracer = Tracer::new(&wanted, MOST_POINTS / wanted.len());
    let mut closer = Closer { tracer, tracker: Tracker::new(0, Keep { transfers: true }) };
    let captures = read(&mut closer);
    let mut charts = Charts::default();
    if !captures.failed.is_empty() {
        charts.note = Some("A capture could not be read a second time, for the charts.".to_owned());
    }
    let again = closer.tracker.finish().connections;
    for (place, (report, trace)) in reports.iter().zip(closer.tracer.finish()).enumerate() {
        let side = again.iter().find(|again| again.first_packet == report.first_packet);
        let transfer = side.as_ref().and_then(|again| again.sides[report.main()].verdict.as_ref()?.transfer.as_ref());
        let chart = transfer
            .and_then(|transfer| Chart::of_transfer("The connection over time", ("connections", place), transfer));
        charts.charts.extend(chart);
        charts.traces.extend(graph(place, report, trace));
    }
    charts
}

fn graph(place: usize, report: &Report, trace: Trace) -> Option<TraceChart> {
    let main = report.main();
    let ends = [report.a, report.b];
    let is_payload = |point: &&Point| matches!(point.mark, Mark::Data | Mark::Again);
    let silent_ns = trace.points.iter().find(is_payload).map_or(0, |first| first.at_ns);
    (!trace.points.is_empty()).then(|| TraceChart {
        connection: place,
        title: "Segments over time".to_owned(),
        filter: display_filter(report),
        ends: [ends[main], ends[1 - main]].map(endpoint),
        has_windows: wanted(report).shift.is_some(),
        begins_us: -i64::try_from(silent_ns / 1_000).unwrap_or(0),
        trace,
    })
}

/// The side that sent most, and the acknowledgements for it.
fn wanted(report: &Report) -> Wanted {
    let main = report.main();
    let ends = [report.a, report.b];
    let [sender, receiver] = [main, 1 - main].map(|side| report.sides[side].syn);
    let shift = match (sender, receiver) {
        // Both must have sent the option (RFC 7323, section 2.2).
        (Some(sender), Some(receiver)) => Some(sender.window_scale.and(receiver.window_scale).unwrap_or(0)),
        _ => None,
    };
    Wanted {
        flow: Flow { from: ends[main], to: ends[1 - main], outer: report.outer },
        from_ns: report.started_ns,
        to_ns: report.started_ns.saturating_add(report.lasted.get().saturating_add(1).saturating_mul(1_000)),
        shift,
        packets: report.packets(),
    }
}

/// Follows only the connections that are drawn.
#[derive(Debug)]
pub struct Closer {
    tracer: Tracer,
    tracker: Tracker,
}

impl Sink for Closer {
    fn segment(&mut self, segment: &Segment<'_>) {
        if self.tracer.wants(segment) {
            self.tracer.segment(segment);
            self.tracker.segment(segment);
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        self.tracker.too_big(notice);
    }
}
