//! A judgement: what was the limit, for which part of the time, why, and what to do.

use fullpipe_diagnose::{Confidence, Detail, Limiter, limit_words};
use maud::{Markup, html};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::table::{cell, text};
use crate::{clean, words};

/// A word of the document as the type that it names; `None` for words to come.
pub(super) fn word<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// `receive window (window-scale shift 0), 97 % of the time`.
pub(super) fn verdict(diagnosis: &Value) -> Option<String> {
    let limiter = word::<Limiter>(&diagnosis["limiter"])?;
    let or = diagnosis["or"].as_array().into_iter().flatten().filter_map(|one| word::<Limiter>(&one["limiter"]));
    Some(words::verdict(
        limiter,
        word::<Detail>(&diagnosis["detail"]),
        &or.collect::<Vec<_>>(),
        diagnosis["share"].as_f64().unwrap_or(0.0),
        word::<Confidence>(&diagnosis["confidence"]).unwrap_or(Confidence::High),
    ))
}

/// The same without how much of the time, nor how sure.
pub(super) fn limit(limited: &Value) -> Option<String> {
    Some(limit_words(word::<Limiter>(&limited["limiter"])?, word::<Detail>(&limited["detail"])))
}

/// How it is coloured: what can be lifted, what is as it should be, what is open.
pub(super) fn tone(diagnosis: &Value) -> &'static str {
    match word::<Limiter>(&diagnosis["limiter"]) {
        Some(Limiter::Path) => "good",
        Some(Limiter::Application | Limiter::InsufficientEvidence) | None => "open",
        Some(_) => "bad",
    }
}

/// The name by which style and script know a limiter.
pub(super) fn role(limiter: &str) -> String {
    limiter.chars().filter(|c| c.is_ascii_lowercase() || *c == '_').collect::<String>().replace('_', "-")
}

/// What to do, the shares of the time, why, and what could not be seen. `filter` selects the packets in Wireshark.
pub(super) fn section(diagnosis: &Value, filter: Option<&str>) -> Markup {
    html! {
        @if let Some(action) = diagnosis["action"].as_str().filter(|action| !action.is_empty()) {
            p.action { strong { "Do: " } (clean(action)) }
        }
        (shares(&diagnosis["shares"]))
        (evidence(&diagnosis["evidence"], filter))
        (list("What would tell", &diagnosis["or"], |one| html! { (text(&one["decided_by"])) }))
        (list("Not seen", &diagnosis["blind"], |one| html! { (text(one)) }))
    }
}

fn list(title: &str, items: &Value, item: impl Fn(&Value) -> Markup) -> Markup {
    let Some(items) = items.as_array().filter(|items| !items.is_empty()) else { return html! {} };
    let mut items: Vec<Markup> = items.iter().map(item).collect();
    // What tells several limiters from the verdict stands once.
    items.dedup_by(|a, b| a.0 == b.0);
    html! { h4 { (title) } ul { @for one in items { li { (one) } } } }
}

/// Each reason with the packets that show it; the filter that selects them where it is another than the one before.
fn evidence(evidence: &Value, filter: Option<&str>) -> Markup {
    let Some(items) = evidence.as_array().filter(|items| !items.is_empty()) else { return html! {} };
    let packets =
        |one: &Value| one["first_packet"].as_u64().zip(one["last_packet"].as_u64()).filter(|_| filter.is_some());
    html! {
        h4 { "Why" }
        ul {
            @for (place, one) in items.iter().enumerate() {
                li {
                    (text(&one["text"]))
                    @if let Some((first, last)) = packets(one) {
                        @if place == 0 || packets(&items[place - 1]) != Some((first, last)) {
                            " " span.packets { code { "frame.number in {" (first) ".." (last) "}" } }
                        }
                    }
                }
            }
        }
    }
}

/// A bar whose parts are the parts of the time, with its legend.
fn shares(shares: &Value) -> Markup {
    let Some(shares) = shares.as_object() else { return html! {} };
    let mut parts: Vec<(&str, f64)> = shares
        .iter()
        .filter_map(|(limiter, share)| Some((limiter.as_str(), share.as_f64()?)))
        .filter(|(_, share)| *share >= 0.005)
        .collect();
    if parts.is_empty() {
        return html! {};
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut from = 0.0;
    let placed: Vec<(&str, f64, f64)> = parts
        .iter()
        .map(|(limiter, share)| {
            let place = (*limiter, from, *share);
            from += share;
            place
        })
        .collect();
    html! {
        figure.shares {
            figcaption { "What was the limit, in parts of the time" }
            svg viewBox="0 0 1000 28" preserveAspectRatio="none" aria-hidden="true" {
                @for (limiter, from, share) in &placed {
                    rect class={ "fill-" (role(limiter)) } x=(format!("{:.1}", from * 1e3)) y="0"
                        width=(format!("{:.1}", (share * 1e3 - 1.5).max(1.0))) height="28" {}
                }
            }
            ul.legend {
                @for (limiter, _, share) in &placed {
                    li { span class={ "swatch fill-" (role(limiter)) } {} (cell("limiter", &Value::from(*limiter))) " " b { (cell("share", &Value::from(*share))) } }
                }
            }
        }
    }
}
