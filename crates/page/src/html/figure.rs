//! The place of a chart on a page, and what it says to those who don't see it.

use fullpipe_chart::{Chart, Kind};
use fullpipe_units::{Bytes, Micros, Rate};
use maud::{Markup, html};

/// The place where script draws it, and what it says to those who don't see it.
pub(super) fn figure(chart: &Chart) -> Markup {
    html! {
        figure.chart data-chart=(chart.id) {
            figcaption { (chart.title) }
            div.canvas role="img" tabindex="0" aria-label=(spoken(chart)) {}
            @if let Some(note) = &chart.note { p.note { (note) } }
            noscript { p.note { "This chart is drawn by script: " (spoken(chart)) } }
        }
    }
}

/// The span of each series, in words.
fn spoken(chart: &Chart) -> String {
    let lines = chart.panels.iter().flat_map(|panel| panel.series.iter().map(move |line| (panel.unit, line)));
    let lines = lines.filter_map(|(unit, line)| {
        let known = || line.y.iter().flatten().copied();
        let (low, high) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
        Some(format!("{} from {} to {}", line.name, written(unit, low), written(unit, high)))
    });
    format!("{}. {}.", chart.title, lines.collect::<Vec<_>>().join("; "))
}

fn written(unit: Kind, value: f64) -> String {
    let whole = value.max(0.0) as u64;
    match unit {
        Kind::Seconds => format!("{value:.2} s"),
        Kind::Micros => Micros::new(whole).to_string(),
        Kind::Bytes => Bytes::new(whole).to_string(),
        Kind::Rate => Rate::from_bps(whole).to_string(),
        Kind::Count => format!("{value}"),
    }
}
