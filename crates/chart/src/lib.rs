//! Series over one axis: what the script of a page draws, of results and in the browser alike.
//!
//! Pure. What is *not* here: the page around a chart, and the curves of a document (`report`); drawing (`web`).
#![forbid(unsafe_code)]

use fullpipe_diagnose::{Limiter, Run, Transfer, limit_words, runs};
use fullpipe_units::Bytes;
use serde::Serialize;

/// Points of a chart beyond which it is thinned: three for each column of a wide window.
const MOST_POINTS: usize = 4_000;

/// Panels under one another over one axis, with one cursor.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Chart {
    /// The `id` of its element; made when the page is written.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What it can't show, or what was left out.
    pub note: Option<String>,
    /// Which part of the document it belongs to: its key and place there; `None` where it stands alone.
    #[serde(skip)]
    pub of: Option<(&'static str, usize)>,
    /// What the axis is: `time`, `message size`.
    pub axis: String,
    /// What its numbers are.
    pub unit: Kind,
    /// Whether a step on the axis is a factor.
    pub is_log: bool,
    /// The axis of every series.
    pub x: Vec<f64>,
    /// The panels.
    pub panels: Vec<Panel>,
    /// What was the limit when.
    pub bands: Vec<Band>,
    /// From where on the axis a curve gains no more.
    pub plateau: Option<f64>,
}

/// What numbers are, so that they can be written with their unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Seconds.
    #[default]
    Seconds,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// Bit/s.
    Rate,
    /// A bare number.
    Count,
}

/// Series that share a scale.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Panel {
    /// What its scale is.
    pub label: String,
    /// What its numbers are.
    pub unit: Kind,
    /// The series.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Its colour: a role that the style knows.
    pub role: &'static str,
    /// How it is drawn.
    pub shape: Shape,
    /// A value for each place on the axis; `None` where nothing was seen.
    pub y: Vec<Option<f64>>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// A line from point to point.
    #[default]
    Line,
    /// A line that keeps its value until the next point.
    Step,
    /// A broken line for what is computed.
    Dashed,
    /// A line with its points.
    Points,
}

/// A span of the axis with one limiter.
#[derive(Clone, Debug, Serialize)]
pub struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// What was the limit, for a person.
    pub label: String,
    /// Its colour.
    pub role: String,
}

impl Chart {
    /// A connection over time: its rate, its round trip, what was in flight against what the ends and the path allow, and
    /// what was the limit when. `None` where it has no story.
    pub fn of_transfer(title: &str, of: (&'static str, usize), transfer: &Transfer) -> Option<Self> {
        let panels = if transfer.sender_samples.is_empty() { receiver(transfer) } else { sender(transfer) };
        let (x, panels) = panels?;
        let mut chart = Self {
            title: title.to_owned(),
            of: Some(of),
            axis: "time".to_owned(),
            x,
            panels,
            bands: bands(&runs(transfer)),
            ..Self::default()
        };
        chart.thin();
        Some(chart)
    }

    /// The rates of several connections side by side, and together. `None` where fewer than two have a story.
    pub fn of_transfers(title: &str, of: (&'static str, usize), transfers: &[Transfer]) -> Option<Self> {
        let stories: Vec<Vec<(u64, u64)>> = transfers.iter().map(progress).filter(|points| points.len() > 1).collect();
        let end = stories.iter().filter_map(|points| points.last()).map(|(at, _)| *at).max()?;
        if stories.len() < 2 {
            return None;
        }
        let rtt = transfers.iter().filter_map(|one| one.idle_rtt).map(|rtt| rtt.min_us.get()).min();
        let half = half_window(rtt);
        let step = (end / SIDE_BY_SIDE).max(1);
        let at: Vec<u64> = (0..=end / step).map(|n| n * step).collect();
        let rates: Vec<Vec<f64>> = stories.iter().map(|points| rates_at(points, &at, half)).collect();
        let sum = (0..at.len()).map(|place| Some(rates.iter().map(|one| one[place]).sum::<f64>().round())).collect();
        let each = rates.into_iter().zip(SIDES).enumerate().map(|(place, (rates, role))| {
            let y = rates.into_iter().map(|rate| Some(rate.round())).collect();
            line(&format!("No {}", place + 1), role, Shape::Line, y)
        });
        let panels =
            [panel("together", Kind::Rate, [line("all", "rate", Shape::Line, sum)]), panel("each", Kind::Rate, each)];
        let left_out = stories.len().saturating_sub(SIDES.len());
        Some(Self {
            title: title.to_owned(),
            note: (left_out > 0).then(|| format!("{left_out} more connections are in the sum only.")),
            of: Some(of),
            axis: "time".to_owned(),
            x: at.into_iter().map(seconds).collect(),
            panels: panels.into_iter().flatten().collect(),
            ..Self::default()
        })
    }

    /// Whether it belongs to that place of the document.
    pub fn is_of(&self, key: &str, place: usize) -> bool {
        self.of.is_some_and(|of| of == (key, place))
    }

    /// Keeps, for each of a thousand columns, where each series is lowest and highest, and both ends: what a graph of that
    /// width shows of it (the M4 aggregation of Jugel et al., VLDB 2014).
    fn thin(&mut self) {
        let count = self.x.len();
        if count <= MOST_POINTS {
            return;
        }
        let series = self.panels.iter().map(|panel| panel.series.len()).sum::<usize>().max(1);
        let columns = (MOST_POINTS / (2 * series + 2)).max(50);
        let mut kept = Vec::new();
        for column in 0..columns {
            let range = column * count / columns..(column + 1) * count / columns;
            kept.extend([range.start, range.end - 1]);
            for line in self.panels.iter().flat_map(|panel| &panel.series) {
                let known = range.clone().filter_map(|at| Some((at, line.y[at]?)));
                kept.extend(known.clone().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at));
                kept.extend(known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at));
            }
        }
        kept.sort_unstable();
        kept.dedup();
        self.x = kept.iter().map(|&at| self.x[at]).collect();
        for line in self.panels.iter_mut().flat_map(|panel| &mut panel.series) {
            line.y = kept.iter().map(|&at| line.y[at]).collect();
        }
        let extremes = "the lowest and the highest of each column are drawn; `--series` and `--csv` have all";
        self.note = Some(format!("{} of {count} samples: {extremes}", kept.len()));
    }
}

/// Half the time over which a rate is taken, in microseconds, before it is rounded up to round trips.
const HALF_WINDOW_US: u64 = 100_000;

/// Points of a chart of several connections, at most one more.
const SIDE_BY_SIDE: u64 = 400;
/// The colours of connections side by side.
const SIDES: [&str; 6] = ["rate", "window", "congestion", "flight", "rtt", "again"];

type Panels = Option<(Vec<f64>, Vec<Panel>)>;

/// Microseconds as seconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn line(name: &str, role: &'static str, shape: Shape, y: Vec<Option<f64>>) -> Option<Series> {
    y.iter().any(Option::is_some).then(|| Series { name: name.to_owned(), role, shape, y })
}

fn panel(label: &str, unit: Kind, series: impl IntoIterator<Item = Option<Series>>) -> Option<Panel> {
    let series: Vec<Series> = series.into_iter().flatten().collect();
    (!series.is_empty()).then(|| Panel { label: label.to_owned(), unit, series })
}

fn sender(transfer: &Transfer) -> Panels {
    let samples = &transfer.sender_samples;
    let bytes = |of: fn(&fullpipe_diagnose::SenderSample) -> Option<Bytes>| {
        samples.iter().map(|sample| of(sample).map(|bytes| bytes.get() as f64)).collect::<Vec<_>>()
    };
    let points: Vec<(u64, u64)> = samples.iter().map(|sample| (sample.at_us.get(), sample.acked.get())).collect();
    let rtt = transfer.idle_rtt.map(|rtt| rtt.min_us.get()).or_else(|| smallest(transfer));
    let product = transfer.path_rate.zip(rtt).map(|(path, rtt)| path.rate_bps.bps() as f64 * seconds(rtt) / 8.0);
    let us = |of: fn(&fullpipe_diagnose::SenderSample) -> Option<fullpipe_units::Micros>| {
        samples.iter().map(|sample| of(sample).map(|us| us.get() as f64)).collect::<Vec<_>>()
    };
    let constant = |value: Option<f64>| vec![value; samples.len()];
    let carried = transfer.path_rate.map(|path| path.rate_bps.bps() as f64);
    let panels = [
        panel(
            "throughput",
            Kind::Rate,
            [
                line("payload acknowledged", "rate", Shape::Line, rates(&points, rtt)),
                line("what the path carries", "product", Shape::Dashed, constant(carried)),
            ],
        ),
        panel(
            "in flight",
            Kind::Bytes,
            [
                line("in flight", "flight", Shape::Line, bytes(|sample| sample.in_flight)),
                line("offered window", "window", Shape::Step, bytes(|sample| sample.offered_window)),
                line("congestion window", "congestion", Shape::Line, bytes(|sample| sample.cwnd)),
                line("bandwidth-delay product", "product", Shape::Dashed, constant(product)),
            ],
        ),
        panel(
            "round trip",
            Kind::Micros,
            [
                line("smoothed", "rtt", Shape::Line, us(|sample| sample.rtt_us)),
                line("smallest", "product", Shape::Dashed, constant(rtt.map(|rtt| rtt as f64))),
            ],
        ),
        panel(
            "segments retransmitted so far",
            Kind::Count,
            [line(
                "retransmitted",
                "again",
                Shape::Step,
                samples.iter().map(|sample| sample.retransmits.map(|count| count as f64)).collect(),
            )
            .filter(|line| line.y.iter().flatten().any(|count| *count > 0.0))],
        ),
    ];
    Some((points.iter().map(|(at, _)| seconds(*at)).collect(), panels.into_iter().flatten().collect()))
}

fn smallest(transfer: &Transfer) -> Option<u64> {
    transfer.sender_samples.iter().filter_map(|sample| sample.min_rtt_us).map(fullpipe_units::Micros::get).min()
}

fn receiver(transfer: &Transfer) -> Panels {
    let samples = &transfer.receiver_samples;
    if samples.is_empty() {
        return None;
    }
    let points: Vec<(u64, u64)> = samples.iter().map(|sample| (sample.at_us.get(), sample.received.get())).collect();
    let bytes = |of: fn(&fullpipe_diagnose::ReceiverSample) -> Option<Bytes>| {
        samples.iter().map(|sample| of(sample).map(|bytes| bytes.get() as f64)).collect::<Vec<_>>()
    };
    let rtt = transfer.idle_rtt.map(|rtt| rtt.min_us.get());
    let panels = [
        panel("throughput", Kind::Rate, [line("payload received", "rate", Shape::Line, rates(&points, rtt))]),
        panel(
            "receiver",
            Kind::Bytes,
            [
                line("offered window", "window", Shape::Step, bytes(|sample| sample.offered_window)),
                line("received and not read", "flight", Shape::Line, bytes(|sample| sample.unread)),
            ],
        ),
    ];
    Some((points.iter().map(|(at, _)| seconds(*at)).collect(), panels.into_iter().flatten().collect()))
}

/// What was acknowledged, or else received, by then; us and bytes.
fn progress(transfer: &Transfer) -> Vec<(u64, u64)> {
    let sent = transfer.sender_samples.iter().map(|sample| (sample.at_us.get(), sample.acked.get()));
    let received = transfer.receiver_samples.iter().map(|sample| (sample.at_us.get(), sample.received.get()));
    if transfer.sender_samples.is_empty() { received.collect() } else { sent.collect() }
}

/// Half the time over which a rate is taken, in whole round trips; us.
fn half_window(rtt_us: Option<u64>) -> u64 {
    let rtt = rtt_us.unwrap_or(0).max(1);
    HALF_WINDOW_US.div_ceil(rtt) * rtt
}

/// The rates around moments that need not be those of the points; nothing before the first and after the last.
fn rates_at(points: &[(u64, u64)], at: &[u64], half_us: u64) -> Vec<f64> {
    let by_then = |us: u64| {
        let after = points.partition_point(|(at, _)| *at <= us);
        let Some(&(from, bytes)) = after.checked_sub(1).and_then(|place| points.get(place)) else {
            return points.first().map_or(0.0, |(_, bytes)| *bytes as f64);
        };
        let Some(&(to, more)) = points.get(after) else { return bytes as f64 };
        let part = (us - from) as f64 / (to - from).max(1) as f64;
        bytes as f64 + more.saturating_sub(bytes) as f64 * part
    };
    let last = points.last().map_or(0, |(at, _)| *at);
    let rate = |&us: &u64| {
        let (from, to) = (us.saturating_sub(half_us), us.saturating_add(half_us).min(last.max(us)));
        if to > from { (by_then(to) - by_then(from)) * 8e6 / (to - from) as f64 } else { 0.0 }
    };
    at.iter().map(rate).collect()
}

/// The rate around each point, over whole round trips and a fifth of a second at least: a burst in each round trip is no
/// change of the rate.
fn rates(points: &[(u64, u64)], rtt_us: Option<u64>) -> Vec<Option<f64>> {
    let half = half_window(rtt_us);
    let (mut low, mut high) = (0, 0);
    points
        .iter()
        .map(|&(at, _)| {
            while high + 1 < points.len() && points[high + 1].0 <= at.saturating_add(half) {
                high += 1;
            }
            while low + 1 < points.len() && points[low].0 < at.saturating_sub(half) {
                low += 1;
            }
            // Samples that are further apart: the one before and the one after.
            let is_alone = low == high;
            let (from, to) = if is_alone {
                (points[low.saturating_sub(1)], points[(high + 1).min(points.len() - 1)])
            } else {
                (points[low], points[high])
            };
            let span = to.0.saturating_sub(from.0);
            (span > 0).then(|| to.1.saturating_sub(from.1) as f64 * 8e6 / span as f64).map(f64::round)
        })
        .collect()
}

/// The name by which style and script know a limiter: `receive-window`.
pub fn role(limiter: Limiter) -> String {
    limiter.name().replace('_', "-")
}

fn bands(runs: &[Run]) -> Vec<Band> {
    runs.iter()
        .map(|run| Band {
            from: seconds(run.from_us),
            to: seconds(run.to_us),
            label: limit_words(run.limiter, run.detail),
            role: role(run.limiter),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_time_around_a_point() {
        // 12,500 B in each 10 ms: 10 Mbit/s, and nothing in the second half.
        let points: Vec<(u64, u64)> = (0..200).map(|n| (n * 10_000, n.min(100) * 12_500)).collect();
        let rates = rates(&points, Some(10_000));
        assert_eq!((rates[0], rates[50], rates[100], rates[199]), (Some(1e7), Some(1e7), Some(5e6), Some(0.0)));
        assert_eq!(super::rates(&[(0, 0)], None), [None]);
    }

    #[test]
    fn connections_side_by_side_add_up() {
        // 10 Mbit/s for 2 s, and 20 Mbit/s from the first second on, sampled at other moments.
        let one: Vec<(u64, u64)> = (0..=200).map(|n| (n * 10_000, n * 12_500)).collect();
        let other: Vec<(u64, u64)> = (0..=70).map(|n| (1_000_000 + n * 14_000, n * 35_000)).collect();
        let at = [500_000, 1_500_000];
        let rates: [Vec<f64>; 2] =
            [&one, &other].map(|points| rates_at(points, &at, 100_000).iter().map(|rate| rate.round()).collect());
        assert_eq!(rates, [vec![1e7, 1e7], vec![0.0, 2e7]]);
        assert_eq!(rates_at(&[], &at, 1), [0.0, 0.0]);
    }

    #[test]
    fn every_limiter_has_the_role_that_the_style_colours() {
        let style = include_str!("../../../web/src/report.css");
        for limiter in Limiter::ALL {
            let role = role(limiter);
            assert!(style.contains(&format!("--{role}:")) && style.contains(&format!(".fill-{role} ")), "{role}");
        }
    }

    #[test]
    fn thinning_keeps_both_ends_and_every_extreme() {
        let count = 100_000;
        let y: Vec<Option<f64>> = (0..count).map(|n| Some(if n == 77_777 { 1e9 } else { f64::from(n % 10) })).collect();
        let series = Series { y, ..Series::default() };
        let mut chart = Chart {
            x: (0..count).map(f64::from).collect(),
            panels: vec![Panel { series: vec![series], ..Panel::default() }],
            ..Chart::default()
        };
        chart.thin();
        let line = &chart.panels[0].series[0];
        assert!(chart.x.len() <= MOST_POINTS && line.y.len() == chart.x.len(), "{}", chart.x.len());
        assert_eq!((chart.x[0], *chart.x.last().unwrap()), (0.0, f64::from(count - 1)));
        assert!(line.y.contains(&Some(1e9)));
    }
}
