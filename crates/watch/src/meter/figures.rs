//! The sums themselves, and the table of metrics that are made of them: each with the name that OpenMetrics and the one that
//! OpenTelemetry has for it.

use std::{borrow::Cow, collections::BTreeMap};

use fullpipe_diagnose::Limiter;
use prometheus_client::registry::Unit;

use super::{End, Pair, Slice, Totals};

/// Upper bounds of round trips, in seconds: a data centre, a country, a continent, the world, a queue.
pub(super) const ROUND_TRIPS: &[f64] =
    &[0.000_1, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// All that was counted since the meter was made.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) pairs: BTreeMap<Pair, Sums>,
    pub(super) round_trips: BTreeMap<String, Histogram>,
    /// Open sockets by process and buffer.
    pub(super) pinned: BTreeMap<(String, &'static str), u64>,
    /// Pairs with labels of their own.
    pub(super) named: usize,
    pub(super) overflows: u64,
    pub(super) closed_windows: Option<u64>,
    pub(super) looks: u64,
    pub(super) look_s: f64,
    /// As the last interval left it.
    pub(super) now: Totals,
}

/// Of one pair of a process and a destination.
#[derive(Debug, Default)]
pub(super) struct Sums {
    seconds: BTreeMap<Limiter, f64>,
    moved: [u64; 2],
    segments: [u64; 2],
    ended: u64,
    /// Of those that ended, by reason.
    aborted: BTreeMap<&'static str, u64>,
}

impl Sums {
    pub(super) fn end(&mut self, end: End) {
        self.ended += 1;
        if let End::Aborted(reason) = end {
            *self.aborted.entry(reason).or_default() += 1;
        }
    }

    pub(super) fn add(&mut self, slice: &Slice<'_>) {
        for (limiter, time) in slice.seconds.into_iter().flatten() {
            *self.seconds.entry(*limiter).or_default() += time;
        }
        for end in 0..2 {
            self.moved[end] += slice.moved[end];
            self.segments[end] += slice.segments[end];
        }
    }
}

/// Observations by the bound that they stay within, the last one without a bound; and their sum.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram {
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; ROUND_TRIPS.len() + 1], sum: 0.0 }
    }
}

impl Histogram {
    pub(super) fn observe(&mut self, value: f64) {
        self.counts[ROUND_TRIPS.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// How many there are: of several hosts they add up.
    Count,
    /// A state.
    State,
    /// How often values came.
    Histogram,
}

/// What distinguishes the points of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Limiter,
    Process,
    Destination,
    Buffer,
    Reason,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Seconds(f64),
    Histogram(Histogram),
}

/// A label and its value.
type Named = (Label, Cow<'static, str>);

/// One series at this moment.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) labels: Vec<Named>,
    pub(super) value: Value,
}

impl Point {
    fn single(value: Value) -> Vec<Self> {
        vec![Self { labels: Vec::new(), value }]
    }
}

/// One metric at this moment.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) spec: &'static Spec,
    pub(super) points: Vec<Point>,
}

/// What a metric is called.
#[derive(Debug)]
pub(super) struct Spec {
    /// For OpenMetrics, after the prefix and before the unit.
    pub(super) name: &'static str,
    pub(super) unit: Option<Unit>,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    /// For OpenTelemetry. Neighbours of one name are one metric there.
    #[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "who doesn't push has no other names"))]
    pub(super) otlp: Otlp,
    figure: Figure,
}

/// What it is called in OpenTelemetry: its semantic name where there is one for the same thing, else one of our own.
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "who doesn't push has no other names"))]
#[derive(Debug)]
pub(super) struct Otlp {
    pub(super) name: &'static str,
    /// As UCUM writes it.
    pub(super) unit: &'static str,
    /// What OpenMetrics has in the name.
    pub(super) attribute: Option<(&'static str, &'static str)>,
}

/// What a metric is made of.
#[derive(Clone, Copy, Debug)]
enum Figure {
    Limited,
    Moved(usize),
    Segments(usize),
    RoundTrips,
    Pinned,
    Ended,
    Aborted,
    Lost,
    ClosedWindows,
    Single(fn(&Figures) -> Value),
}

const fn named(name: &'static str, unit: &'static str) -> Otlp {
    Otlp { name, unit, attribute: None }
}

const fn io(direction: &'static str) -> Otlp {
    Otlp { name: "fullpipe.network.io", unit: "By", attribute: Some(("network.io.direction", direction)) }
}

/// Every metric.
///
/// Of OpenTelemetry's own, `system.network.connection.count` is the same thing. `process.network.io` is not: it counts all bytes
/// of a process on the network, these only TCP's payload (semantic-conventions 1.37, docs/system).
static SPECS: &[Spec] = &[
    Spec {
        name: "limited",
        unit: Some(Unit::Seconds),
        help: "Time for which each limiter held, summed over connections; the 512 busiest are judged",
        kind: Kind::Counter,
        otlp: named("fullpipe.limited.time", "s"),
        figure: Figure::Limited,
    },
    Spec {
        name: "sent",
        unit: Some(Unit::Bytes),
        help: "Payload that peers acknowledged",
        kind: Kind::Counter,
        otlp: io("transmit"),
        figure: Figure::Moved(0),
    },
    Spec {
        name: "received",
        unit: Some(Unit::Bytes),
        help: "Payload that was received",
        kind: Kind::Counter,
        otlp: io("receive"),
        figure: Figure::Moved(1),
    },
    Spec {
        name: "sent_segments",
        unit: None,
        help: "Segments with payload that were sent, retransmissions included",
        kind: Kind::Counter,
        otlp: named("fullpipe.segments.sent", "{segment}"),
        figure: Figure::Segments(0),
    },
    Spec {
        name: "retransmitted_segments",
        unit: None,
        help: "Segments that were retransmitted",
        kind: Kind::Counter,
        otlp: named("fullpipe.segments.retransmitted", "{segment}"),
        figure: Figure::Segments(1),
    },
    Spec {
        name: "round_trip",
        unit: Some(Unit::Seconds),
        help: "Smoothed round trips of active connections, one of each in each interval",
        kind: Kind::Histogram,
        otlp: named("fullpipe.round_trip.duration", "s"),
        figure: Figure::RoundTrips,
    },
    Spec {
        name: "pinned_sockets",
        unit: None,
        help: "Open sockets whose application set SO_RCVBUF or SO_SNDBUF, of those that have been judged",
        kind: Kind::Count,
        otlp: named("fullpipe.pinned_socket.count", "{socket}"),
        figure: Figure::Pinned,
    },
    Spec {
        name: "ended_connections",
        unit: None,
        help: "Connections that ended, short ones too; with --events",
        kind: Kind::Counter,
        otlp: named("fullpipe.connections.ended", "{connection}"),
        figure: Figure::Ended,
    },
    Spec {
        name: "aborted_connections",
        unit: None,
        help: "Connections that ended otherwise than by both ends being done; with --events",
        kind: Kind::Counter,
        otlp: named("fullpipe.connections.aborted", "{connection}"),
        figure: Figure::Aborted,
    },
    Spec {
        name: "lost_events",
        unit: None,
        help: "Connections that ended uncounted, because they were too many at once; with --events",
        kind: Kind::Counter,
        otlp: named("fullpipe.lost_events", "{connection}"),
        figure: Figure::Lost,
    },
    Spec {
        name: "connections",
        unit: None,
        help: "TCP connections that are open",
        kind: Kind::Count,
        otlp: named("system.network.connection.count", "{connection}"),
        figure: Figure::Single(|figures| whole(figures.now.connections)),
    },
    Spec {
        name: "active_connections",
        unit: None,
        help: "Connections in which payload moved or waited",
        kind: Kind::Count,
        otlp: named("fullpipe.active_connection.count", "{connection}"),
        figure: Figure::Single(|figures| whole(figures.now.active)),
    },
    Spec {
        name: "unjudged_connections",
        unit: None,
        help: "Active connections beyond those that are judged",
        kind: Kind::Count,
        otlp: named("fullpipe.unjudged_connection.count", "{connection}"),
        figure: Figure::Single(|figures| whole(figures.now.unjudged)),
    },
    Spec {
        name: "named_pairs",
        unit: None,
        help: "Pairs of process and destination with labels of their own; 128 at the most",
        kind: Kind::Count,
        otlp: named("fullpipe.named_pair.count", "{pair}"),
        figure: Figure::Single(|figures| whole(figures.named)),
    },
    Spec {
        name: "full_listen_queues",
        unit: None,
        help: "Listeners whose queue is full",
        kind: Kind::Count,
        otlp: named("fullpipe.full_listen_queue.count", "{socket}"),
        figure: Figure::Single(|figures| whole(figures.now.full_listeners)),
    },
    Spec {
        name: "listen_overflows",
        unit: None,
        help: "Connections that were dropped because a listen queue was full",
        kind: Kind::Counter,
        otlp: named("fullpipe.listen_overflows", "{connection}"),
        figure: Figure::Single(|figures| Value::Whole(figures.overflows)),
    },
    Spec {
        name: "closed_windows",
        unit: None,
        help: "How often a receive window of this host was closed, of all its connections",
        kind: Kind::Counter,
        otlp: named("fullpipe.closed_windows", "{window}"),
        figure: Figure::ClosedWindows,
    },
    Spec {
        name: "hidden_processes",
        unit: None,
        help: "1 where rights are missing to see processes of other users",
        kind: Kind::State,
        otlp: named("fullpipe.hidden_processes", "1"),
        figure: Figure::Single(|figures| Value::Whole(figures.now.hides_owners.into())),
    },
    Spec {
        name: "looks",
        unit: None,
        help: "Looks at all connections",
        kind: Kind::Counter,
        otlp: named("fullpipe.looks", "{look}"),
        figure: Figure::Single(|figures| Value::Whole(figures.looks)),
    },
    Spec {
        name: "look",
        unit: Some(Unit::Seconds),
        help: "Time that looking took",
        kind: Kind::Counter,
        otlp: named("fullpipe.look.time", "s"),
        figure: Figure::Single(|figures| Value::Seconds(figures.look_s)),
    },
];

/// Nothing where it is not known.
fn known(count: Option<u64>) -> Vec<Point> {
    count.map_or_else(Vec::new, |count| Point::single(Value::Whole(count)))
}

fn whole(count: usize) -> Value {
    Value::Whole(u64::try_from(count).unwrap_or(u64::MAX))
}

impl Figures {
    /// All of them that have anything to tell.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let metrics = SPECS.iter().map(|spec| Metric { spec, points: self.points(spec.figure) });
        metrics.filter(|metric| !metric.points.is_empty()).collect()
    }

    fn points(&self, figure: Figure) -> Vec<Point> {
        match figure {
            Figure::Limited => self.by_pair(|sums| {
                let label = |limiter| Some((Label::Limiter, word(limiter).into()));
                sums.seconds.iter().map(|(limiter, time)| (label(*limiter), Value::Seconds(*time))).collect()
            }),
            Figure::Ended => self.counts(|sums| sums.ended, |sums| sums.ended > 0),
            Figure::Aborted => self.by_pair(|sums| {
                let label = |reason: &'static str| Some((Label::Reason, reason.into()));
                sums.aborted.iter().map(|(reason, count)| (label(reason), Value::Whole(*count))).collect()
            }),
            Figure::Lost => known(self.now.lost_ends),
            Figure::ClosedWindows => known(self.closed_windows),
            Figure::Moved(end) => self.counts(|sums| sums.moved[end], |sums| sums.moved[end] > 0),
            // Also where none was sent again: a part of nothing can't be asked for.
            Figure::Segments(which) => self.counts(|sums| sums.segments[which], |sums| sums.segments[0] > 0),
            Figure::RoundTrips => {
                let point = |(destination, histogram): (&String, &Histogram)| Point {
                    labels: vec![(Label::Destination, destination.clone().into())],
                    value: Value::Histogram(histogram.clone()),
                };
                self.round_trips.iter().map(point).collect()
            }
            Figure::Pinned => {
                let point = |((process, buffer), count): (&(String, &'static str), &u64)| Point {
                    labels: vec![(Label::Process, process.clone().into()), (Label::Buffer, (*buffer).into())],
                    value: Value::Whole(*count),
                };
                self.pinned.iter().map(point).collect()
            }
            Figure::Single(value) => Point::single(value(self)),
        }
    }

    /// A count of each pair for which `is_shown`.
    fn counts(&self, count: impl Fn(&Sums) -> u64, is_shown: impl Fn(&Sums) -> bool) -> Vec<Point> {
        self.by_pair(|sums| is_shown(sums).then(|| (None, Value::Whole(count(sums)))).into_iter().collect())
    }

    /// What `values` makes of each pair, with a label of its own where it has one.
    fn by_pair(&self, values: impl Fn(&Sums) -> Vec<(Option<Named>, Value)>) -> Vec<Point> {
        let points = self.pairs.iter().flat_map(|(pair, sums)| {
            values(sums).into_iter().map(|(label, value)| {
                let names: [Named; 2] = [
                    (Label::Process, pair.process.clone().into()),
                    (Label::Destination, pair.destination.clone().into()),
                ];
                Point { labels: label.into_iter().chain(names).collect(), value }
            })
        });
        points.collect()
    }
}

/// As JSON spells it.
fn word(limiter: Limiter) -> String {
    serde_json::to_value(limiter).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}
