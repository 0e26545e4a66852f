//! Captures looked at: what was found in them as a list, and a closer look at the first connections, sample by sample and
//! segment by segment. What is *not* here: where their bytes come from, and drawing.

use fullpipe_capture::{
    Findings, Flow, Keep, Mark, Point, ProblemKind, Report, Segment, Sink, TooBig, Trace, Tracer, Tracker, Wanted,
};
use fullpipe_ingest::{Captures, Error, Outcome};

use crate::{
    CaptureFile, CaptureList, CaptureProblem, clean, display_filter, endpoint,
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
    let broken = !captures.failed.is_empty()
        || captures.files.iter().any(|file| file.broken.is_some() || is_cut(file) || is_early(captures, file));
    Seen { list, broken }
}

/// What is said of a file that begins before the one before it ended.
const EARLY: &str = "it begins before the previous capture ends, so a connection that is in both is judged wrongly: give \
                     captures in the order of time, and the two ends of a connection one at a time";

/// Whether a file begins before the one before it ended. Its packets are then no continuation.
fn is_early(captures: &Captures, file: &Outcome) -> bool {
    let before =
        captures.files.iter().filter(|other| other.before < file.before).map(|other| other.totals.last_ns).max();
    before.zip(file.totals.first_ns).is_some_and(|(before, first)| first < before)
}

/// What was read, and what could not be.
fn tell_files(captures: &Captures, list: &mut CaptureList) {
    for file in &captures.files {
        let name = clean(&file.name).into_owned();
        list.files.push(CaptureFile {
            name: name.clone(),
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
        if is_early(captures, file) {
            list.problem_count += 1;
            list.problems.push(CaptureProblem { file: name.clone(), packet: None, message: EARLY.to_owned() });
        }
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
