//! What the loop found and did: measured directions, the plan, the proofs.

use fullpipe_knobs::TakesEffect;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    Charts, diagnosis, figure,
    table::{cell, text},
};
use crate::clean;

/// The keys that are shown here.
pub(super) const SHOWN: &[&str] = &["transfers", "transfers_after", "hosts", "plan", "proofs"];

fn items<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document[key].as_array().map_or(&[], Vec::as_slice)
}

fn rate(value: &Value) -> String {
    cell("rate_bps", value)
}

/// The proof, or what was measured and what limited it, in one sentence.
pub(super) fn headline(document: &Value) -> Option<String> {
    if let Some(proof) = items(document, "proofs").iter().max_by(|a, b| by_ratio(a).total_cmp(&by_ratio(b))) {
        return Some(format!(
            "{} \u{2192} {}: \u{d7}{:.2}{} {}",
            rate(&proof["before_bps"]),
            rate(&proof["after_bps"]),
            by_ratio(proof),
            interval(proof).map(|text| format!(" ({text}),")).unwrap_or_default(),
            match (proof["helped"].as_bool(), proof["kept"].as_bool()) {
                (Some(true), Some(true)) => "and kept",
                (Some(true), _) => "and put back",
                _ => "which is no proof; put back",
            }
        ));
    }
    let transfers = items(document, "transfers");
    let lowest = |one: &&Value| one["rate_bps"].as_u64().unwrap_or(u64::MAX);
    let is_open = |one: &&Value| diagnosis::tone(&one["diagnosis"]) == "bad";
    let one = transfers.iter().filter(is_open).min_by_key(lowest).or_else(|| transfers.first())?;
    Some(format!(
        "{}: {}, limited by {}",
        arrow(&one["direction"]),
        rate(&one["rate_bps"]),
        diagnosis::verdict(&one["diagnosis"])?
    ))
}

fn by_ratio(proof: &Value) -> f64 {
    proof["ratio"].as_f64().unwrap_or(0.0)
}

fn interval(proof: &Value) -> Option<String> {
    let (low, high) = proof["ratio_low"].as_f64().zip(proof["ratio_high"].as_f64())?;
    Some(format!("95 % interval {low:.2} to {high:.2}"))
}

fn arrow(direction: &Value) -> String {
    text(direction).replacen("->", " \u{2192} ", 1)
}

/// Each direction with its figures, judgement and charts.
pub(super) fn transfers(document: &Value, key: &str, title: &str, charts: &Charts) -> Markup {
    let transfers = items(document, key);
    if transfers.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { (title) }
            @for (place, one) in transfers.iter().enumerate() {
                article class={ "verdict " (diagnosis::tone(&one["diagnosis"])) } {
                    h3 {
                        span.direction { (arrow(&one["direction"])) } " "
                        (diagnosis::verdict(&one["diagnosis"]).unwrap_or_default())
                    }
                    (facts(one))
                    (diagnosis::section(&one["diagnosis"], None))
                    @for chart in charts.charts.iter().filter(|chart| chart.is_of(key, place)) { (figure::figure(chart)) }
                }
            }
        }
    }
}

fn facts(one: &Value) -> Markup {
    let attainable = &one["diagnosis"]["attainable_bps"];
    let figures = [
        ("payload rate", cell("rate_bps", &one["rate_bps"]), !one["rate_bps"].is_null()),
        ("without slow start", cell("rate_bps", &one["steady_bps"]), !one["steady_bps"].is_null()),
        ("without this limit", cell("rate_bps", attainable), !attainable.is_null()),
        ("round trip, idle", cell("rtt_us", &one["rtt_us"]), !one["rtt_us"].is_null()),
        ("round trip, loaded", cell("rtt_us", &one["loaded_rtt_us"]), !one["loaded_rtt_us"].is_null()),
        ("retransmitted", cell("retransmissions", &one["retransmissions"]), !one["retransmissions"].is_null()),
        ("payload", cell("bytes", &one["bytes"]), !one["bytes"].is_null()),
        ("duration", cell("seconds", &one["seconds"]), !one["seconds"].is_null()),
        ("congestion control", cell("", &one["congestion_control"]), one["congestion_control"].is_string()),
    ];
    html! {
        dl.facts {
            @for (name, figure, _) in figures.iter().filter(|(_, _, is_known)| *is_known) {
                div { dt { (name) } dd { (figure) } }
            }
        }
    }
}

/// Before and after, with the interval, a direction each.
pub(super) fn proofs(document: &Value) -> Markup {
    let proofs = items(document, "proofs");
    if proofs.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Proof" }
            @for proof in proofs { (one_proof(proof)) }
        }
    }
}

fn one_proof(proof: &Value) -> Markup {
    let helped = proof["helped"].as_bool() == Some(true);
    let (before, after) = (proof["before_bps"].as_f64().unwrap_or(0.0), proof["after_bps"].as_f64().unwrap_or(0.0));
    let most = before.max(after).max(1.0);
    let bounds = proof["ratio_low"].as_f64().zip(proof["ratio_high"].as_f64());
    let bounds = bounds.map(|(low, high)| (low * before / most, (high * before / most).min(1.2)));
    let width = |value: f64| format!("{:.1}", 640.0 * value);
    html! {
        article class={ "proof " (if helped { "good" } else { "open" }) } {
            h3 {
                span.direction { (arrow(&proof["direction"])) } " \u{d7}" (format!("{:.2}", by_ratio(proof)))
                @if let Some(text) = interval(proof) { span.quiet { " (" (text) ", " (cell("pairs", &proof["pairs"])) " pairs)" } }
            }
            svg.bars viewBox="0 0 1000 92" role="img"
                aria-label={ "Before " (rate(&proof["before_bps"])) ", after " (rate(&proof["after_bps"])) }
            {
                text x="92" y="30" text-anchor="end" { "before" }
                rect.before x="104" y="10" width=(width(before / most)) height="28" rx="3" {}
                text.figure x=(format!("{:.1}", 114.0 + 640.0 * before / most)) y="30" { (rate(&proof["before_bps"])) }
                text x="92" y="74" text-anchor="end" { "after" }
                rect.after x="104" y="54" width=(width(after / most)) height="28" rx="3" {}
                text.figure x=(format!("{:.1}", 122.0 + 640.0 * bounds.map_or(after / most, |(_, high)| high.max(after / most)))) y="74" {
                    (rate(&proof["after_bps"]))
                }
                @if let Some((low, high)) = bounds {
                    path.whisker d=(format!("M{0:.1} 68H{1:.1}M{0:.1} 62V74M{1:.1} 62V74", 104.0 + 640.0 * low, 104.0 + 640.0 * high)) {}
                }
            }
            p {
                (verdict_of(proof))
                @if let Some(predicted) = proof["predicted_ratio"].as_f64() {
                    " The simulator predicted \u{d7}" (format!("{predicted:.2}")) "."
                }
            }
            @if let Some(knobs) = proof["knobs"].as_array().filter(|knobs| !knobs.is_empty()) {
                p.quiet { "Tried together: " @for knob in knobs { code { (text(knob)) } " " } }
            }
        }
    }
}

fn verdict_of(proof: &Value) -> &'static str {
    match (proof["decision"].as_str(), proof["helped"].as_bool(), proof["kept"].as_bool()) {
        (_, Some(true), Some(true)) => "The changes helped and were kept.",
        (_, Some(true), _) => "The changes helped; they were put back, as this command does.",
        (Some("harmed"), ..) => "The rate fell; the changes were put back.",
        (Some("need_more_pairs"), ..) => "Too few pairs to tell; the changes were put back.",
        _ => "No gain was shown; the changes were put back.",
    }
}

fn fact(key: &str, value: &Value) -> String {
    let effect = diagnosis::word::<TakesEffect>(value).filter(|_| key == "takes_effect");
    effect.map_or_else(|| cell(key, value), |effect| effect.words().to_owned())
}

/// What to set, why, what it costs and how to undo it.
pub(super) fn plan(document: &Value) -> Markup {
    let plan = &document["plan"];
    let changes = items(plan, "changes");
    let notes = items(plan, "notes");
    if changes.is_empty() && notes.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Plan" }
            @if changes.is_empty() { p { "Nothing to set." } }
            @for change in changes { (one_change(change)) }
            @if !notes.is_empty() { ul { @for note in notes { li { (text(note)) } } } }
        }
    }
}

/// The value of a setting.
fn value(value: &Value) -> String {
    value.as_str().map_or_else(|| "absent".to_owned(), |text| clean(text).into_owned())
}

fn one_change(change: &Value) -> Markup {
    html! {
        article.change {
            h3 {
                span.direction { (text(&change["host"])) } " " code { (text(&change["knob"])) } " "
                code.from { (value(&change["from"])) } " \u{2192} " code.to { (value(&change["to"])) }
            }
            p { (text(&change["reason"])) }
            @if let Some(arithmetic) = change["arithmetic"].as_str() { p.quiet { (clean(arithmetic)) } }
            dl.facts {
                @for (name, key) in [("memory at most", "memory_worst_case"), ("applies", "takes_effect"), ("undo by hand", "undo"), ("source", "source")] {
                    @if !change[key].is_null() { div { dt { (name) } dd { (fact(key, &change[key])) } } }
                }
            }
        }
    }
}

/// The settings of each host that differ from the defaults of its version.
pub(super) fn settings(document: &Value) -> Markup {
    let hosts = items(document, "hosts");
    if hosts.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Settings that differ from the defaults" }
            @for host in hosts {
                article.change {
                    h3 { span.direction { (text(&host["host"])) } " " span.quiet { (text(&host["platform"])) } }
                    @if items(host, "not_default").is_empty() {
                        p { "None of " (cell("compared", &host["compared"])) " that could be compared." }
                    } @else {
                        dl.settings {
                            @for setting in items(host, "not_default") {
                                div {
                                    dt { code { (text(&setting["knob"])) } }
                                    dd {
                                        strong { (value(&setting["value"])) }
                                        span.quiet { " default: " (value(&setting["default"])) }
                                        p { (text(&setting["meaning"])) }
                                        @if setting["note"].as_str().is_some_and(|note| !note.is_empty()) {
                                            p.quiet { (text(&setting["note"])) }
                                        }
                                    }
                                }
                            }
                        }
                        p.quiet { (items(host, "not_default").len()) " of " (cell("compared", &host["compared"])) " that could be compared, as read before any change." }
                    }
                }
            }
        }
    }
}
