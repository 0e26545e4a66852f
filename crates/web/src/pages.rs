//! The server's own pages.

use axum::{http::StatusCode, response::Response};
use fullpipe_report::{
    clean,
    html::{Frame, Unpacked, unpacked},
};
use maud::{Markup, html};

use crate::{routes, runs::Run, store::About};

/// Built from `web/` by `npm run build`; a test of `web/` holds it fresh.
static SCRIPT: Unpacked = Unpacked::new(|| unpacked(include_bytes!("assets/live.js.gz")));

/// What its pages may do: ask this server, and nobody else.
const MAY: &str = "connect-src 'self'; worker-src 'self'; form-action 'none'; img-src data: blob:";

/// Captures up to so many bytes are read in the browser: it holds all of one, and reads 64 MB in a few seconds.
const LARGEST_IN_BROWSER: u64 = 64 << 20;

fn page(status: StatusCode, mark: &str, headline: &str, subline: Option<&str>, main: Markup, secret: &str) -> Response {
    let frame = Frame {
        title: &format!("fullpipe {mark}: {headline}"),
        mark,
        headline,
        subline,
        script: &SCRIPT,
        may: MAY,
        shows_results: true,
        main,
        footer: html! { p { "fullpipe " (env!("CARGO_PKG_VERSION")) ", on this machine. It asks nothing of any network but the tests that you start." } },
        data: &[("secret", serde_json::Value::from(secret).to_string())],
    };
    routes::page(status, &frame.policy(), frame.page())
}

/// The first page.
pub(crate) fn index(reports: &[(String, About)], current: Option<&Run>, secret: &str, largest: u64) -> Response {
    let main = html! {
        @if let Some(run) = current {
            article { p { code { (clean(&run.line)) } " is running: " a href={ "/runs/" (run.name) } { "follow it" } } }
        }
        section {
            h2 { "Why is this slow?" }
            form #start {
                div.fields {
                    div.field {
                        label for="host" { "Far machine" }
                        input #host name="host" required autocomplete="off" spellcheck="false" aria-describedby="host-hint";
                        p.note #host-hint { "runs " code { "fullpipe serve" } " or an iperf3 server" }
                    }
                    div.field {
                        label for="command" { "What to do" }
                        select #command name="command" aria-describedby="command-hint" {
                            option value="check" { "find the limit" }
                            option value="measure" { "measure only" }
                        }
                        p.note #command-hint { "nothing is changed on either machine" }
                    }
                    div.field {
                        label for="direction" { "Direction" }
                        select #direction name="direction" {
                            option value="both" { "both" }
                            option value="up" { "from here to there" }
                            option value="down" { "from there to here" }
                        }
                    }
                    div.field {
                        label for="seconds" { "Seconds" }
                        input #seconds name="seconds" inputmode="decimal" autocomplete="off" placeholder="as long as is usual";
                    }
                    div.field {
                        label for="connections" { "Connections" }
                        input #connections name="connections" inputmode="numeric" autocomplete="off" placeholder="1";
                    }
                }
                p { button.main type="submit" { "Start" } }
            }
            p.note #said role="alert" {}
        }
        section {
            h2 { "Look at a capture" }
            div #drop .drop data-largest=(largest) data-here=(LARGEST_IN_BROWSER) {
                label for="capture" { "Drop a capture here, or choose one" }
                input #capture type="file" accept=".pcap,.pcapng,.cap,.snoop,.gz,.zst";
                p.note {
                    "pcap, pcapng or snoop, also gzip or zstd. Up to " (LARGEST_IN_BROWSER >> 20) " MiB it is read in this browser and \
                     leaves it nowhere. A larger one is read by this server and removed again; only the report is kept."
                }
                p.check { input #elsewhere type="checkbox"; " " label for="elsewhere" { "have it read by this server, and keep the report" } }
                progress #sent max="1" value="0" aria-label="progress" hidden {}
                p #reading hidden { button #leave type="button" { "Stop" } }
            }
        }
        section #seen hidden {
            h2 tabindex="-1" {}
            p {
                "Read in this browser; nothing was sent. "
                button #save type="button" { "Save the report" } " " button #close type="button" { "Close" }
            }
            iframe title="What the capture holds" sandbox="allow-scripts allow-downloads" {}
        }
        noscript { p.note { "This page needs its script. In a terminal: " code { "fullpipe check" } ", " code { "fullpipe read" } "." } }
        section {
            h2 { "Reports" }
            @if reports.is_empty() {
                p.note { "None yet. What you start here is kept here." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Reports" {
                    table {
                        thead { tr { th { "Began" } th { "Command" } th { "Result" } th { span.hidden { "Remove" } } } }
                        tbody { @for (name, about) in reports { (row(name, about)) } }
                    }
                }
            }
        }
        section {
            h2 { "More" }
            ul {
                li { a href="/what-if" { "Try settings" } ": what a window, a buffer or a queue would give, by simulation" }
                li { a href="/changes" { "Changes" } ": what was tried and kept on this machine, and what was undone" }
            }
        }
    };
    page(StatusCode::OK, "web", "This machine's connections", None, main, secret)
}

fn row(name: &str, about: &About) -> Markup {
    let began = about.began.get(..19).unwrap_or(&about.began).replace('T', " ");
    let words = about.words.iter().filter(|word| *word != "--").map(|word| short(word)).collect::<Vec<_>>().join(" ");
    html! {
        tr {
            td { a href={ "/reports/" (name) } { (began) } }
            td { code { (clean(&words)) } }
            td { (clean(&about.headline)) @if about.exit != Some(0) { " " span.note { (ended(about.exit)) } } }
            td { button type="button" data-remove=(name) aria-label={ "Remove the report of " (began) } { "remove" } }
        }
    }
}

fn ended(exit: Option<i32>) -> String {
    exit.map_or_else(|| "(stopped)".to_owned(), |code| format!("(exit code {code})"))
}

/// A path's last part: the folder of a capture that was dropped says nothing.
fn short(word: &str) -> String {
    if word.contains(".incoming") {
        word.rsplit(['/', '\\']).next().unwrap_or(word).to_owned()
    } else {
        word.to_owned()
    }
}

/// A run, live.
pub(crate) fn run(run: &Run, secret: &str) -> Response {
    let words = run.line.split(' ').map(short).collect::<Vec<_>>().join(" ");
    let main = html! {
        article #run data-run=(run.name) {
            p #phase role="status" { "Starting." }
            progress #progress max="1" aria-label="progress" {}
            figure.chart { div.canvas #live role="img" tabindex="0" aria-label="Rate and round trip so far" {} }
            p { button type="button" #stop { "Stop" } " " span.note { "ends it with what was found until then" } }
            p.note #said role="alert" {}
        }
        section { h2 { "So far" } ul #log {} }
        p { a href="/" { "All reports" } }
        noscript { p.note { "This page needs its script; the result will be among the " a href="/" { "reports" } "." } }
    };
    page(StatusCode::OK, "run", &clean(&words), Some("It goes on when you leave this page."), main, secret)
}

/// Something that went wrong.
pub(crate) fn message(status: StatusCode, headline: &str, text: &str) -> Response {
    let main = html! { section { p { (text) } p { a href="/" { "To the first page" } } } };
    page(status, "web", headline, None, main, "")
}
