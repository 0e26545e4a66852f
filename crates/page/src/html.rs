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
mod mesh;
mod read;
mod survey;
mod table;
mod trace;
mod what_if;

use std::{io::Read as _, sync::LazyLock};

use base64ct::{Base64, Encoding};
use flate2::read::GzDecoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use fullpipe_chart::Chart;
pub use trace::TraceChart;
pub use what_if::{Choices, Pool, Situation, State, what_if};

use crate::{clean, json};

/// Built from `web/` by `npm run build`, as the style is; a test of `web/` holds them fresh.
static SCRIPT: Unpacked = LazyLock::new(|| unpacked(include_bytes!("html/assets/report.js.gz")));
/// The style of every page; its colours are those of every chart.
pub const STYLE: &str = include_str!("html/assets/report.css");

/// A script that the program holds as gzip.
pub type Unpacked = LazyLock<String>;

/// What `npm run build` packed.
#[expect(clippy::expect_used, reason = "these bytes are part of the program, and tests unpack all of them")]
pub fn unpacked(gzip: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(gzip).read_to_string(&mut text).expect("gzip of a text");
    text
}

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

/// `charts` with the curves that the document holds itself, each with its `id`: all that its page draws.
pub fn with_curves(document: &Value, mut charts: Charts) -> Charts {
    charts.charts.extend(curves::drawn(document));
    for (place, chart) in charts.charts.iter_mut().enumerate() {
        chart.id = format!("chart-{place}");
    }
    charts
}

/// The page of a result. `document` is what `--json` prints; a key that is missing is left out of the page, and one that it
/// does not know is shown as a table or a list.
pub fn page(document: &Value, charts: Charts) -> String {
    let charts = with_curves(document, charts);
    let command = document["command"].as_str().unwrap_or("result");
    let headline = headline(document);
    Frame {
        title: &format!("fullpipe {}: {headline}", clean(command)),
        mark: &clean(command),
        headline: &headline,
        subline: subline(document).as_deref(),
        script: &SCRIPT,
        may: ALONE,
        shows_results: false,
        main: body(document, &charts),
        footer: html! {
            p {
                "Made by fullpipe " (env!("CARGO_PKG_VERSION")) ". The page holds the whole result as JSON (schema "
                code { (clean(document["schema"].as_str().unwrap_or("?"))) } "). "
                button type="button" #save hidden { "Save the JSON" }
                noscript { "It stands at the end of its source." }
                " It asks nothing of any network."
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
    /// Whether it shows pages of results in frames of its own, which inherit its policy.
    pub shows_results: bool,
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
        let more = if self.shows_results { hash(&SCRIPT) } else { String::new() };
        policy(self.script, &more, self.may)
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
    format!("default-src 'none'; script-src {} {more}; style-src {}; base-uri 'none'; {may}", hash(script), hash(STYLE))
}

/// A text that may run, for a policy.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", Base64::encode_string(&Sha256::digest(text.as_bytes())))
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
    mesh::headline(document)
        .or_else(|| loops::headline(document))
        .or_else(|| read::headline(document))
        .or_else(|| figures::headline(document))
        .or_else(|| survey::headline(document))
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
    document["situation"].as_str().or_else(|| document["summary"].as_str()).map(|text| clean(text).into_owned())
}

/// Keys that are shown elsewhere on the page, or are of no use to a reader.
const ELSEWHERE: &[&str] = &[
    "schema",
    "command",
    "ends",
    "scenario",
    "situation",
    "summary",
    "error",
    "proof",
    "connection_count",
    "seen_twice",
    "problem_count",
    "as_expected",
    "path_valid",
    "seed",
    "host",
];

fn body(document: &Value, charts: &Charts) -> Markup {
    let Some(entries) = document.as_object() else { return html! { p { "The document is empty." } } };
    let shown = [ELSEWHERE, mesh::shown(document), loops::SHOWN, read::SHOWN, figures::SHOWN, survey::SHOWN];
    let is_shown = |key: &str| shown.iter().any(|keys| keys.contains(&key));
    let rest = || table::in_order(entries).into_iter().filter(|(key, _)| !is_shown(key));
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
        @if mesh::is(document) { (mesh::body(document)) } @else { (figures::directions(document, charts)) }
        (survey::conclusions(document))
        @if let Some(note) = &charts.note { p.note { (note) } }
        @for chart in charts.charts.iter().filter(|chart| chart.of.is_none()) { (figure::figure(chart)) }
        (survey::tables(document))
        (figures::ends(document))
        (loops::plan(document))
        (loops::transfers(document, "transfers_after", "Measured with the changes in force", charts))
        @if !mesh::is(document) { (loops::settings(document)) }
        @for (key, value) in rest().filter(|(_, value)| !table::is_plain(value)) { (table::section(key, value)) }
        (table::plain(rest().filter(|(_, value)| table::is_plain(value))))
    }
}

#[cfg(test)]
mod tests;
