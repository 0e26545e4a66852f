//! The connections of captures.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    Charts, diagnosis, figure,
    table::{cell, text},
    trace,
};

/// The keys that are shown here.
pub(super) const SHOWN: &[&str] = &["connections", "files", "limits", "problems", "unlisted"];

/// Connections beyond this stay in the JSON.
const MOST_ROWS: usize = 500;
/// Stories that are shown in full.
const MOST_STORIES: usize = 20;

pub(super) fn headline(document: &Value) -> Option<String> {
    let connections = document["connections"].as_array()?;
    let twice = document["seen_twice"].as_u64().unwrap_or(0);
    let count = document["connection_count"].as_u64().unwrap_or(connections.len() as u64).saturating_sub(twice);
    let Some(first) = connections.first() else { return Some("no TCP connection in the capture".to_owned()) };
    let verdict = diagnosis::verdict(&first["diagnosis"])?;
    Some(if count == 1 {
        format!("{}: {verdict}", named(first))
    } else if let Some((limit, many)) = most_common(document, count) {
        let count = cell("connection_count", &count.into());
        format!("{count} connections, {many} of them limited by {limit}")
    } else {
        let count = cell("connection_count", &count.into());
        let is_judged = first["diagnosis"]["limiter"] != "insufficient_evidence";
        let worst = if is_judged { "most time was lost in" } else { "the first is" };
        format!("{count} connections; {worst} {}: {verdict}", named(first))
    })
}

/// What limits most of so many connections, with most of their payload, and how many: beside thousands of others, the worst of them says little.
fn most_common(document: &Value, count: u64) -> Option<(String, String)> {
    let limits = document["limits"].as_array().filter(|_| count > MOST_STORIES as u64)?;
    let of = |limit: &Value| [&limit["connections"], &limit["bytes"]].map(|value| value.as_u64().unwrap_or(0));
    let all = limits.iter().map(of).fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    let first = limits.first().filter(|limit| limit["limiter"] != "insufficient_evidence")?;
    let is_most = of(first).iter().zip(all).all(|(part, all)| 2 * part > all);
    let limit = diagnosis::limit(first).filter(|_| is_most)?;
    Some((limit, cell("", &first["connections"])))
}

fn named(connection: &Value) -> String {
    let (from, to) = if connection["direction"] == "b->a" { ("b", "a") } else { ("a", "b") };
    format!("{} \u{2192} {}", text(&connection[from]), text(&connection[to]))
}

/// A table of all, the stories of the first, and what could not be read.
pub(super) fn connections(document: &Value, charts: &Charts) -> Markup {
    let Some(connections) = document["connections"].as_array() else { return html! {} };
    html! {
        (files(document))
        @if connections.len() > 1 { (limits(document)) (overview(connections, document)) }
        @if !connections.is_empty() {
            section {
                h2 { (if connections.len() > 1 { "The first connections" } else { "The connection" }) }
                @for (place, one) in connections.iter().take(MOST_STORIES).enumerate() {
                    (story(place, one, charts, connections.len() == 1))
                }
            }
        }
    }
}

fn files(document: &Value) -> Markup {
    let files = document["files"].as_array().map_or(&[][..], Vec::as_slice);
    let problems = document["problems"].as_array().map_or(&[][..], Vec::as_slice);
    let described = |file: &Value| {
        html! {
            code { (text(&file["file"])) } ": " (cell("packets", &file["packets"])) " packets, "
            (cell("segments", &file["segments"])) " TCP segments, " (cell("bytes", &file["bytes"]))
        }
    };
    // One whole capture is no part of its own.
    if let ([file], []) = (files, problems) {
        return html! { p.subline { (described(file)) } };
    }
    html! {
        section {
            h2 { "Read" }
            ul {
                @for file in files { li { (described(file)) } }
                @for problem in problems {
                    li.problem {
                        (text(&problem["file"]))
                        @if let Some(packet) = problem["packet"].as_u64() { ", packet " (packet) }
                        ": " (text(&problem["message"]))
                    }
                }
            }
        }
    }
}

fn limits(document: &Value) -> Markup {
    let limits = document["limits"].as_array().map_or(&[][..], Vec::as_slice);
    // Each its own: the connections say so themselves.
    if limits.iter().all(|limit| limit["connections"] == 1) {
        return html! {};
    }
    html! {
        section {
            h2 { "What limits the connections" }
            div.scroll tabindex="0" role="group" aria-label="limits" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Limited by" }
                            th.n scope="col" { "Connections" }
                            th.n scope="col" { "Payload" }
                        }
                    }
                    tbody {
                        @for limit in limits {
                            tr {
                                td class=(diagnosis::tone(limit)) { (diagnosis::limit(limit).unwrap_or_default()) }
                                td.n { (cell("", &limit["connections"])) }
                                td.n { (cell("bytes", &limit["bytes"])) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn overview(connections: &[Value], document: &Value) -> Markup {
    let total = document["connection_count"].as_u64().unwrap_or(connections.len() as u64);
    html! {
        section {
            h2 { "Connections, worst first" }
            div.scroll tabindex="0" role="group" aria-label="connections" {
                table.sorts {
                    thead {
                        tr {
                            @for (name, is_number) in [("No", true), ("From", false), ("To", false), ("Rate", true), ("Round trip", true),
                                ("Payload", true), ("Retransmitted", true), ("Limited by", false)]
                            { th scope="col" .n[is_number] { (name) } }
                        }
                    }
                    tbody {
                        @for (place, one) in connections.iter().take(MOST_ROWS).enumerate() {
                            @let turned = one["direction"] == "b->a";
                            tr {
                                td.n data-value=(bare(&one["number"])) {
                                    @if place < MOST_STORIES { a href={ "#connection-" (place) } { (cell("", &one["number"])) } }
                                    @else { (cell("", &one["number"])) }
                                }
                                td { (text(&one[if turned { "b" } else { "a" }])) }
                                td { (text(&one[if turned { "a" } else { "b" }])) }
                                td.n data-value=(bare(&one["rate_bps"])) { (cell("rate_bps", &one["rate_bps"])) }
                                td.n data-value=(bare(&one["rtt_us"])) { (cell("rtt_us", &one["rtt_us"])) }
                                td.n data-value=(bare(&one["bytes"])) { (cell("bytes", &one["bytes"])) }
                                td.n data-value=(bare(&one["retransmissions"])) { (cell("", &one["retransmissions"])) }
                                td class=(diagnosis::tone(&one["diagnosis"])) { (diagnosis::verdict(&one["diagnosis"]).unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
            @if total > connections.len().min(MOST_ROWS) as u64 {
                p.note { (connections.len().min(MOST_ROWS)) " of " (cell("", &total.into())) " connections; `--top N` takes more into the JSON." }
            }
        }
    }
}

/// A number for script to put rows in order; empty where there is none.
fn bare(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |number| number.to_string())
}

fn story(place: usize, one: &Value, charts: &Charts, is_alone: bool) -> Markup {
    let filter = one["display_filter"].as_str();
    let facts = [
        ("payload rate", "rate_bps"),
        ("round trip", "rtt_us"),
        ("payload", "bytes"),
        ("duration", "seconds"),
        ("packets", "packets"),
        ("retransmitted", "retransmissions"),
        ("out of order", "out_of_order"),
        ("segment", "mss"),
    ];
    html! {
        article id={ "connection-" (place) } class={ "verdict " (diagnosis::tone(&one["diagnosis"])) } {
            h3 {
                @if !is_alone { span.direction { "No " (cell("", &one["number"])) } " " }
                span.direction { (named(one)) } " " (diagnosis::verdict(&one["diagnosis"]).unwrap_or_default())
            }
            dl.facts {
                @for (name, key) in facts { @if !one[key].is_null() { div { dt { (name) } dd { (cell(key, &one[key])) } } } }
            }
            (diagnosis::section(&one["diagnosis"], filter))
            (advice(&one["advice"]))
            @for chart in charts.charts.iter().filter(|chart| chart.is_of("connections", place)) { (figure::figure(chart)) }
            @for chart in charts.traces.iter().filter(|chart| chart.connection == place) { (trace::figure(chart)) }
            @if let Some(filter) = filter { p.quiet { "In Wireshark: " code { (crate::clean(filter)) } } }
        }
    }
}

fn advice(advice: &Value) -> Markup {
    let Some(advice) = advice.as_array().filter(|advice| !advice.is_empty()) else { return html! {} };
    html! {
        h4 { "What to set" }
        ul {
            @for one in advice {
                li {
                    "on " (text(&one["host"]))
                    @if one["is_guess"].as_bool() == Some(true) { ", whose SYN looks like " } @else { ", if it is " }
                    (text(&one["platform"])) ": "
                    @for setting in one["settings"].as_array().into_iter().flatten() { code { (text(setting)) } " " }
                    @if one["look_at"].as_array().is_some_and(|settings| !settings.is_empty()) { "look at " }
                    @for setting in one["look_at"].as_array().into_iter().flatten() { code { (text(setting)) } " " }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The headline of a capture of so many connections, of which the first waited for its handshake, where so many are limited by a full path.
    fn headline_of(all: u64, full: u64) -> String {
        let worst = json!({ "a": "192.0.2.1:80", "b": "192.0.2.2:1024", "direction": "a->b",
            "diagnosis": { "limiter": "handshake", "detail": null, "share": 0.74, "confidence": "high" } });
        let limit = |limiter: &str, detail: &str, connections: u64| json!({ "limiter": limiter, "detail": detail, "connections": connections, "bytes": 80_000 * connections });
        let mut limits = vec![limit("path", "saturated", full), limit("handshake", "", all - full)];
        limits.sort_by_key(|limit| core::cmp::Reverse(limit["bytes"].as_u64()));
        let document = json!({ "connections": [worst], "connection_count": all, "limits": limits });
        headline(&document).unwrap()
    }

    #[test]
    fn beside_thousands_that_have_one_limit_the_worst_one_makes_no_headline() {
        assert_eq!(headline_of(9_013, 8_964), "9,013 connections, 8,964 of them limited by path (saturated)");
        for (all, full) in [(3, 2), (9_013, 0)] {
            let headline = headline_of(all, full);
            assert_eq!(headline.contains("most time was lost in 192.0.2.1:80"), all == 3, "{headline}");
        }
    }
}
