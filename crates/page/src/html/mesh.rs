//! What `mesh` found: who is wrong, the matrix, and what is slow or slower than before.

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_units::Rate;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    diagnosis,
    survey::with_code,
    table::{cell, text},
};
use crate::mbps;

/// The most hosts whose matrix is drawn: 10,000 cells.
const MOST_HOSTS: usize = 100;

/// The most directions that are listed.
const MOST_ROWS: usize = 500;

/// Whether the document is one of `mesh`.
pub(super) fn is(document: &Value) -> bool {
    document["mesh"].is_string() && document["directions"].is_array()
}

/// The keys that are shown here.
pub(super) fn shown(document: &Value) -> &'static [&'static str] {
    if is(document) { &["mesh", "bad", "suspect"] } else { &[] }
}

fn items<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document[key].as_array().map_or(&[], Vec::as_slice)
}

fn is_bad(direction: &Value) -> bool {
    direction["slow"] == true || !direction["error"].is_null()
}

/// Who is wrong, or how many directions are.
pub(super) fn headline(document: &Value) -> Option<String> {
    if !is(document) {
        return None;
    }
    let directions = items(document, "directions");
    let slower = directions.iter().filter(|one| one["slower"] == true).count();
    let (bad, all) = (cell("", &document["bad"]), directions.len());
    let rest = match (document["bad"].as_u64(), slower) {
        (Some(0), 0) => format!("{}, none slow", count(all)),
        (Some(0), _) => format!("{slower} of {all} directions slower than before"),
        (_, 0) => format!("{bad} of {all} directions slow or failed"),
        _ => format!("{bad} of {all} directions slow or failed, {slower} slower than before"),
    };
    let suspect =
        document["suspect"]["text"].as_str().map(|_| format!("look at {}; ", text(&document["suspect"]["text"])));
    Some(format!("{}: {}{rest}", text(&document["mesh"]), suspect.unwrap_or_default()))
}

fn count(directions: usize) -> String {
    if directions == 1 { "1 direction".to_owned() } else { format!("{directions} directions") }
}

/// All of it.
pub(super) fn body(document: &Value) -> Markup {
    html! {
        (suspect(document))
        (matrix(document))
        (notable(document))
    }
}

fn suspect(document: &Value) -> Markup {
    let suspect = &document["suspect"];
    let is_quiet = document["bad"].as_u64() == Some(0) || document["bad"].is_null();
    html! {
        @if suspect.is_object() {
            section {
                h2 { "Who is wrong" }
                article.bad {
                    h3 { (text(&suspect["text"])) }
                    p {
                        (cell("", &suspect["bad"])) " of its " (cell("", &suspect["directions"])) " directions are slow or failed"
                        @if suspect["limiter"].is_string() { "; most of them limited by: " (cell("limiter", &suspect["limiter"])) }
                        "."
                    }
                    p.action { (with_code(&text(&suspect["action"]))) }
                }
            }
        } @else if !is_quiet {
            p.note { "No single host or site explains what is slow or failed." }
        }
    }
}

/// Rates from each host (a line) to each other (a column).
fn matrix(document: &Value) -> Markup {
    let hosts = items(document, "hosts");
    if hosts.len() > MOST_HOSTS {
        return html! { p.note { "The matrix of " (hosts.len()) " hosts is in the JSON." } };
    }
    let between = |one: &Value| Some((one["from"].as_str()?.to_owned(), one["to"].as_str()?.to_owned()));
    let cells: BTreeMap<_, _> =
        items(document, "directions").iter().filter_map(|one| Some((between(one)?, one))).collect();
    let limiters: BTreeSet<&str> = cells.values().filter_map(|one| one["limiter"].as_str()).collect();
    let names: Vec<&str> = hosts.iter().filter_map(|host| host["name"].as_str()).collect();
    let suspects: Vec<&str> = items(&document["suspect"], "names").iter().filter_map(Value::as_str).collect();
    let is_suspect =
        |host: &Value| [&host["name"], &host["site"]].iter().any(|name| suspects.iter().any(|one| *name == one));
    html! {
        section {
            h2 { "Between all hosts" }
            div.scroll tabindex="0" role="group" aria-label="table" {
                table.matrix {
                    thead { tr {
                        td { "from \\ to" }
                        @for host in hosts { th.n.wrong[is_suspect(host)] scope="col" { (text(&host["name"])) } }
                    } }
                    tbody { @for host in hosts { tr {
                        th.wrong[is_suspect(host)] scope="row" { (text(&host["name"])) (site(host)) }
                        @for to in &names { (figure(host["name"].as_str().and_then(|from| cells.get(&(from.to_owned(), (*to).to_owned()))))) }
                    } } }
                }
                ul.legend {
                    @for limiter in limiters {
                        li { span class={ "swatch fill-" (diagnosis::role(limiter)) } {} (cell("limiter", &Value::from(limiter))) }
                    }
                }
            }
            p.note { "Mbit/s of payload, and the colour of what limits it. Marked: slow or failed; \u{2193}: slower than in earlier runs." }
        }
    }
}

/// A site that has a name of its own.
fn site(host: &Value) -> Markup {
    html! { @if host["site"] != host["name"] { " " span.quiet { (text(&host["site"])) } } }
}

fn figure(direction: Option<&&Value>) -> Markup {
    let Some(one) = direction else { return html! { td.n { } } };
    let limiter = one["limiter"].as_str().unwrap_or_default();
    html! {
        td.n.bad[is_bad(one)] {
            @if one["rate_bps"].is_null() { "failed" } @else {
                span class={ "swatch fill-" (diagnosis::role(limiter)) } title=(cell("limiter", &one["limiter"])) {}
                " " (rate(&one["rate_bps"]))
            }
            @if one["slower"] == true { " \u{2193}" }
        }
    }
}

fn rate(value: &Value) -> String {
    value.as_u64().map_or_else(|| text(&Value::Null), |bps| mbps(Rate::from_bps(bps)))
}

/// Each direction that is slow, slower or failed, with what it is held against.
fn notable(document: &Value) -> Markup {
    let directions = items(document, "directions").iter();
    let listed: Vec<&Value> = directions.filter(|one| is_bad(one) || one["slower"] == true).collect();
    let is_failed = listed.iter().any(|one| one["error"].is_string());
    let against = |one: &Value| match one["against"].as_str() {
        Some("declared") => format!("{}, as declared", cell("rate_bps", &one["against_bps"])),
        Some(_) => format!("{}, the median", cell("rate_bps", &one["against_bps"])),
        None => text(&Value::Null),
    };
    html! {
        (one_sided(document))
        @if !listed.is_empty() {
            section {
                h2 { "Slow, slower or failed" }
                div.scroll tabindex="0" role="group" aria-label="table" {
                    table {
                        thead { tr {
                            th scope="col" { "Direction" }
                            th.n scope="col" { "Rate" }
                            th scope="col" { "Limiter" }
                            th.n scope="col" { "Round trip" }
                            th.n scope="col" { "Slow against" }
                            th.n scope="col" { "Before" }
                            @if is_failed { th scope="col" { "Why it failed" } }
                        } }
                        tbody { @for one in listed.iter().take(MOST_ROWS) { tr {
                            th scope="row" { (text(&one["from"])) " \u{2192} " (text(&one["to"])) }
                            td.n { (cell("rate_bps", &one["rate_bps"])) }
                            td { (cell("limiter", &one["limiter"])) }
                            td.n { (cell("rtt_us", &one["rtt_us"])) }
                            td.n { (against(one)) }
                            td.n { (cell("rate_bps", &one["before_bps"])) }
                            @if is_failed { td { (text(&one["error"])) } }
                        } } }
                    }
                }
                @if listed.len() > MOST_ROWS { p.note { "The first " (MOST_ROWS) " of " (listed.len()) " rows; the JSON has all." } }
            }
        }
    }
}

/// The hosts that could not measure to another; a pair is said once.
fn one_sided(document: &Value) -> Markup {
    let of = |one: &Value| one["unable"].is_object().then(|| text(&one["unable"]["text"]));
    let sentences: BTreeSet<String> = items(document, "directions").iter().filter_map(of).collect();
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { "Measured by one end alone" }
                ul { @for one in sentences.iter().take(MOST_ROWS) { li { (one) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn direction(from: &str, to: &str, mbps: Option<u64>, slow: bool) -> Value {
        json!({
            "from": from, "to": to, "rate_bps": mbps.map(|mbps| mbps * 1_000_000), "rtt_us": 80_000,
            "limiter": mbps.map(|_| if slow { "receive_window" } else { "path" }),
            "error": if mbps.is_none() { Some("refused <b>") } else { None }, "slow": slow, "slower": slow,
            "against_bps": slow.then_some(1_000_000_000), "against": slow.then_some("declared"),
            "before_bps": slow.then_some(940_000_000),
        })
    }

    fn document() -> Value {
        let host = |name: &str, site: &str| json!({ "name": name, "site": site, "address": name });
        json!({
            "mesh": "wan", "run": 7, "bad": 2, "hosts": [host("p1", "paris"), host("t1", "t1")],
            "directions": [direction("p1", "t1", Some(64), true), direction("t1", "p1", None, false)],
            "suspect": { "kind": "host", "names": ["t1"], "role": "both", "directions": 2, "bad": 2, "limiter": "receive_window",
                "text": "host t1", "action": "look at t1: `fullpipe settings` there" },
        })
    }

    #[test]
    fn a_mesh_has_its_suspect_its_matrix_and_what_is_slow() {
        let found = document();
        assert_eq!(
            headline(&found).as_deref(),
            Some("wan: look at host t1; 2 of 2 directions slow or failed, 1 slower than before")
        );
        let page = super::super::page(&found, super::super::Charts::default());
        for shown in [
            "<h3>host t1</h3>",
            "limited by: receive window",
            "<code>fullpipe settings</code>",
            "<th class=\"n wrong\" scope=\"col\">t1</th>",
            "p1 <span class=\"quiet\">paris</span>",
            "<td class=\"n bad\"><span class=\"swatch fill-receive-window\" title=\"receive window\"></span> 64.0 \u{2193}</td>",
            "<td class=\"n bad\">failed</td>",
            "1.00 Gbit/s, as declared",
            "940 Mbit/s",
            "refused &lt;b&gt;",
        ] {
            assert!(page.contains(shown), "{shown} in {page}");
        }
        assert!(
            !["Measured", "Suspect", "Settings that differ from the defaults"]
                .iter()
                .any(|h| page.contains(&format!("<h2>{h}</h2>"))),
            "nothing is shown twice: {page}"
        );
    }

    #[test]
    fn who_could_not_measure_is_said_once_for_a_pair() {
        let mut found = document();
        for direction in found["directions"].as_array_mut().unwrap() {
            let text = "t1 can't measure to p1, so p1 measured both directions: no <route>";
            direction["unable"] = json!({ "host": "t1", "error": "no <route>", "text": text });
        }
        let page = super::super::page(&found, super::super::Charts::default());
        let said = "t1 can't measure to p1, so p1 measured both directions: no &lt;route&gt;";
        assert_eq!(page.matches(said).count(), 1, "{page}");
        assert!(!super::super::page(&document(), super::super::Charts::default()).contains("one end alone"));
    }

    #[test]
    fn a_mesh_that_is_well_says_so_and_a_large_one_has_no_matrix() {
        let mut found = document();
        found["bad"] = json!(0);
        found["suspect"] = Value::Null;
        found["directions"] = json!([direction("p1", "t1", Some(940), false)]);
        assert_eq!(headline(&found).as_deref(), Some("wan: 1 direction, none slow"));
        assert!(!body(&found).into_string().contains("No single host"));
        found["hosts"] = (0..=MOST_HOSTS).map(|host| json!({ "name": host.to_string() })).collect();
        let page = body(&found).into_string();
        assert!(page.contains("The matrix of 101 hosts is in the JSON") && !page.contains("<table"), "{page}");
    }
}
