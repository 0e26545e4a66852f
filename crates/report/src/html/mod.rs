//! A result as one page: a file that needs nothing else, no network and no server.
//!
//! The page is written from the JSON document of the same result, which it carries along, and from [`Charts`], which hold the
//! series that the document leaves out. All text is written here and escaped, so that the page says what it says without
//! script, too; script only draws the charts. What is *not* here: the script and the style (`web/`), and writing files.

mod curves;
mod diagnosis;
mod figure;
mod figures;
mod loops;
mod read;
mod table;
mod trace;
mod what_if;

use base64ct::{Base64, Encoding};
use fullpipe_diagnose::Transfer;
use fullpipe_tune::{Direction, Outcome};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use fullpipe_chart::Chart;
pub use trace::TraceChart;
pub use what_if::{Choices, State, what_if};

use crate::{Measured, clean, json};

/// Built from `web/` by `npm run build`; a test of `web/` holds them fresh.
const SCRIPT: &str = include_str!("assets/report.js");
const STYLE: &str = include_str!("assets/report.css");

/// What is drawn beside the document.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Charts {
    /// Series over one axis.
    pub charts: Vec<Chart>,
    /// Time-sequence graphs.
    pub traces: Vec<TraceChart>,
    /// Why something is not drawn.
    #[serde(skip)]
    pub note: Option<String>,
}

impl Charts {
    /// Of a run of the loop: each direction before, and with the changes in force.
    pub fn of_outcome(outcome: &Outcome) -> Self {
        let of = |key: &'static str, directions: &[Direction]| {
            let charts =
                directions.iter().enumerate().filter_map(|(place, one)| of_streams((key, place), &one.transfers));
            charts.collect::<Vec<_>>()
        };
        let mut charts = of("transfers", &outcome.before);
        charts.extend(of("transfers_after", &outcome.after));
        Self { charts, ..Self::default() }
    }

    /// Of a test.
    pub fn of_measured(measured: &Measured<'_>) -> Self {
        let directions = measured.measurement.directions.iter().enumerate();
        let charts = directions.filter_map(|(place, one)| of_streams(("directions", place), &one.transfers));
        Self { charts: charts.collect(), ..Self::default() }
    }
}

/// The first of a direction's connections over time.
fn of_streams(of: (&'static str, usize), transfers: &[Transfer]) -> Option<Chart> {
    let title = match transfers.len() {
        0 | 1 => "The connection over time".to_owned(),
        count => format!("The first of {count} connections over time"),
    };
    Chart::of_transfer(&title, of, transfers.first()?)
}

/// The page of a result. `document` is what `--json` prints; a key that is missing is left out of the page, and one that it
/// does not know is shown as a table or a list.
pub fn page(document: &Value, mut charts: Charts) -> String {
    charts.charts.extend(curves::of(document));
    for (place, chart) in charts.charts.iter_mut().enumerate() {
        chart.id = format!("chart-{place}");
    }
    let command = document["command"].as_str().unwrap_or("result");
    let title = format!("fullpipe {}: {}", clean(command), headline(document));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy(SCRIPT, ""));
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "fullpipe " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "To the result" }
                header {
                    p.mark { "fullpipe " span { (clean(command)) } }
                    h1 { (headline(document)) }
                    @if let Some(line) = subline(document) { p.subline { (line) } }
                }
                main #main { (body(document, &charts)) }
                footer {
                    p {
                        "Made by fullpipe " (env!("CARGO_PKG_VERSION")) ". The page holds the whole result as JSON (schema "
                        code { (clean(document["schema"].as_str().unwrap_or("?"))) } "): "
                        button type="button" #save hidden { "save it" }
                        noscript { "see the end of its source" }
                        ". It asks nothing of any network."
                    }
                }
                script #document type="application/json" { (PreEscaped(data(&json::to_string(document)))) }
                script #charts type="application/json" {
                    (PreEscaped(data(&serde_json::to_string(&charts).expect("numbers and text become JSON"))))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Only the script and the style that are in the page itself may run; nothing is loaded from anywhere. `more` is what its script
/// may do besides.
fn policy(script: &str, more: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", Base64::encode_string(&Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; script-src {} {more}; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(STYLE)
    )
}

/// JSON that no HTML parser takes for markup. The characters occur in strings only, where an escape means the same.
fn data(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// The result in one sentence.
fn headline(document: &Value) -> String {
    let error = document["error"]["message"].as_str().map(|message| clean(message).into_owned());
    loops::headline(document)
        .or_else(|| read::headline(document))
        .or_else(|| figures::headline(document))
        .or(error)
        .unwrap_or_else(|| "result".to_owned())
}

/// Between whom, or of what.
fn subline(document: &Value) -> Option<String> {
    let name = |place: &str| document["ends"][place].as_str().map(|name| clean(name).into_owned());
    if let Some((a, b)) = name("a").zip(name("b")) {
        let scenario = document["scenario"].as_str().map(|name| format!(", scenario {}", clean(name)));
        let scenario = scenario.unwrap_or_default();
        let ends = if a == "a" && b == "b" { "from a to b and back".to_owned() } else { format!("a is {a}, b is {b}") };
        return Some(format!("{ends}{scenario}"));
    }
    document["situation"].as_str().map(|text| clean(text).into_owned())
}

/// Keys that are told elsewhere on the page, or are of no use to a reader.
const ELSEWHERE: &[&str] = &[
    "schema",
    "command",
    "ends",
    "scenario",
    "situation",
    "error",
    "proof",
    "connection_count",
    "problem_count",
    "as_expected",
    "path_valid",
    "seed",
    "host",
];

fn body(document: &Value, charts: &Charts) -> Markup {
    let Some(entries) = document.as_object() else { return html! { p { "The document is empty." } } };
    html! {
        @if let Some(error) = document.get("error").filter(|error| !error.is_null()) {
            section.error role="alert" {
                h2 { "The command failed" }
                p { (table::text(&error["message"])) }
                @if let Some(hint) = error["hint"].as_str() { p { (clean(hint)) } }
            }
        }
        (loops::proofs(document))
        (loops::transfers(document, "transfers", "Measured", charts))
        (read::connections(document, charts))
        (figures::directions(document, charts))
        @if let Some(note) = &charts.note { p.note { (note) } }
        @for chart in charts.charts.iter().filter(|chart| chart.of.is_none()) { (figure::figure(chart)) }
        (loops::plan(document))
        (loops::transfers(document, "transfers_after", "Measured with the changes in force", charts))
        @for (key, value) in table::in_order(entries) {
            @if !ELSEWHERE.contains(&key.as_str()) && !loops::TOLD.contains(&key.as_str())
                && !read::TOLD.contains(&key.as_str()) && !figures::TOLD.contains(&key.as_str())
            {
                (table::section(key, value))
            }
        }
    }
}

#[cfg(test)]
mod tests;
