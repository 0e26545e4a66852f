//! What a page shows of captures beside the document: a second look at the first connections, sample by sample and segment by
//! segment. What is *not* here: drawing it.

use std::{ops::ControlFlow, path::Path};

use fullpipe_capture::{Flow, Keep, Report, Segment, Sink, TooBig, Trace, Tracer, Tracker, Wanted};
use fullpipe_ingest::{Options, read_all};
use fullpipe_report::{
    CaptureList, display_filter, endpoint,
    html::{Chart, Charts, TraceChart},
};

use crate::args::ReadArgs;

/// Connections that are drawn.
const MOST_DRAWN: usize = 8;
/// Points of all graphs together: some six bytes each.
const MOST_POINTS: usize = 1_200_000;

/// The charts of the connections that are shown first.
pub(super) fn of(args: &ReadArgs, list: &CaptureList) -> Charts {
    of_first(args, list, MOST_DRAWN)
}

/// The charts of the first `count` of them.
pub(super) fn of_first(args: &ReadArgs, list: &CaptureList, count: usize) -> Charts {
    if args.files.iter().any(|file| file == Path::new("-")) {
        let note = "Charts need a second look at the capture, and what came through a pipe can be read once only.";
        return Charts { note: Some(note.to_owned()), ..Charts::default() };
    }
    let reports: Vec<_> = list.connections.iter().take(list.shown.min(count)).collect();
    let wanted: Vec<Wanted> = reports.iter().map(|report| wanted(report)).collect();
    if wanted.is_empty() {
        return Charts::default();
    }
    let tracer = Tracer::new(&wanted, MOST_POINTS / wanted.len());
    let mut second = Second { tracer, tracker: Tracker::new(0, Keep { transfers: true }) };
    let captures = read_all(&args.files, Options::default(), &mut second, |_| ControlFlow::Continue(()));
    let mut charts = Charts::default();
    if !captures.failed.is_empty() {
        charts.note = Some("A capture could not be read a second time, for the charts.".to_owned());
    }
    let again = second.tracker.finish().connections;
    for (place, (report, trace)) in reports.iter().zip(second.tracer.finish()).enumerate() {
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
    (!trace.points.is_empty()).then(|| TraceChart {
        connection: place,
        title: "Segments over time".to_owned(),
        filter: display_filter(report),
        ends: [ends[main], ends[1 - main]].map(endpoint),
        has_windows: wanted(report).shift.is_some(),
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
struct Second {
    tracer: Tracer,
    tracker: Tracker,
}

impl Sink for Second {
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
