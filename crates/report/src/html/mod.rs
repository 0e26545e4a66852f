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
mod picture;
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
pub use picture::Format;
pub use trace::TraceChart;
pub use what_if::{Choices, State, what_if};

use self::picture::Subject;
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

/// The charts of a result that can be a picture, by their titles, in the order of the page.
pub fn pictures(document: &Value, charts: &Charts) -> Vec<String> {
    let charts = charts_of(document, charts.clone());
    subjects(document, &charts).map(|(title, _)| title).collect()
}

/// Chart `number`, from 1, of those as a picture; `None` where there are fewer.
///
/// # Errors
///
/// What the drawing failed of, in words.
pub fn picture(document: &Value, charts: &Charts, number: usize, format: Format) -> Option<Result<Vec<u8>, String>> {
    let charts = charts_of(document, charts.clone());
    let (_, subject) = subjects(document, &charts).nth(number.checked_sub(1)?)?;
    Some(picture::draw(subject, &headline(document), format))
}

fn subjects<'a>(document: &'a Value, charts: &'a Charts) -> impl Iterator<Item = (String, Subject<'a>)> {
    let named = move |title: &str, of: Option<(&'static str, usize)>| {
        let Some((key, place)) = of else { return title.to_owned() };
        let direction = document[key][place]["direction"].as_str().map(|name| format!(", {}", clean(name)));
        let place = direction.unwrap_or_else(|| format!(", {} {}", key.trim_end_matches('s'), place + 1));
        let after = if key == "transfers_after" { ", with the changes" } else { "" };
        format!("{title}{place}{after}")
    };
    let series = charts.charts.iter().map(move |chart| (named(&chart.title, chart.of), Subject::Chart(chart)));
    let traces = charts
        .traces
        .iter()
        .map(move |chart| (named(&chart.title, Some(("connections", chart.connection))), Subject::Trace(chart)));
    series.chain(traces)
}

/// With the curves that the document holds itself.
fn charts_of(document: &Value, mut charts: Charts) -> Charts {
    charts.charts.extend(curves::of(document));
    for (place, chart) in charts.charts.iter_mut().enumerate() {
        chart.id = format!("chart-{place}");
    }
    charts
}

/// The page of a result. `document` is what `--json` prints; a key that is missing is left out of the page, and one that it
/// does not know is shown as a table or a list.
pub fn page(document: &Value, charts: Charts) -> String {
    let charts = charts_of(document, charts);
    let command = document["command"].as_str().unwrap_or("result");
    let headline = headline(document);
    Frame {
        title: &format!("fullpipe {}: {headline}", clean(command)),
        mark: &clean(command),
        headline: &headline,
        subline: subline(document).as_deref(),
        script: SCRIPT,
        may: ALONE,
        main: body(document, &charts),
        footer: html! {
            p {
                "Made by fullpipe " (env!("CARGO_PKG_VERSION")) ". The page holds the whole result as JSON (schema "
                code { (clean(document["schema"].as_str().unwrap_or("?"))) } "): "
                button type="button" #save hidden { "save it" }
                noscript { "see the end of its source" }
                ". It asks nothing of any network."
            }
        },
        data: &[
            ("document", json::to_string(document)),
            ("charts", serde_json::to_string(&charts).expect("numbers and text become JSON")),
        ],
    }
    .page()
}

/// What a page has around it.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The title of its window.
    pub title: &'a str,
    /// The word beside the program's name.
    pub mark: &'a str,
    /// The heading.
    pub headline: &'a str,
    /// A line below it.
    pub subline: Option<&'a str>,
    /// Its one script.
    pub script: &'a str,
    /// What it may do besides running that script: directives of Content-Security-Policy.
    pub may: &'a str,
    /// What it shows.
    pub main: Markup,
    /// What it says at the end.
    pub footer: Markup,
    /// JSON for its script, by the element's `id`.
    pub data: &'a [(&'static str, String)],
}

/// What a page may do that stands alone.
const ALONE: &str = "img-src data: blob:; form-action 'none'";

impl Frame<'_> {
    /// The page's Content-Security-Policy, which it carries itself, too.
    pub fn policy(&self) -> String {
        policy(self.script, "", self.may)
    }

    /// The page.
    pub fn page(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(self.policy());
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "fullpipe " (env!("CARGO_PKG_VERSION")) };
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#main" { "To the result" }
                    header {
                        p.mark { "fullpipe " span { (self.mark) } }
                        h1 { (self.headline) }
                        @if let Some(line) = self.subline { p.subline { (line) } }
                    }
                    main #main { (self.main) }
                    footer { (self.footer) }
                    @for (id, json) in self.data { script id=(id) type="application/json" { (PreEscaped(data(json))) } }
                    script { (PreEscaped(self.script)) }
                }
            }
        };
        page.into_string()
    }
}

/// Only the script and the style that are in the page itself may run; nothing is loaded from anywhere. `more` is what its script
/// may do besides, `may` are more directives.
fn policy(script: &str, more: &str, may: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", Base64::encode_string(&Sha256::digest(text.as_bytes())));
    format!("default-src 'none'; script-src {} {more}; style-src {}; base-uri 'none'; {may}", hash(script), hash(STYLE))
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
pub fn headline(document: &Value) -> String {
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
