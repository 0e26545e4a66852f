//! What has no form of its own on the page: tables of rows, lists of keys, sentences.

use fullpipe_units::{Bytes, Micros, Rate};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::clean;

/// Rows beyond this stay in the JSON.
const MOST_ROWS: usize = 500;

/// A key of the document with its value under a heading of its own; nothing where there is nothing.
pub(super) fn section(key: &str, value: &Value) -> Markup {
    if is_empty(value) {
        return html! {};
    }
    html! {
        section { h2 { (title(key)) } (any(key, value)) }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.values().all(is_empty),
        _ => false,
    }
}

/// Whether it is a single figure or text.
pub(super) fn is_plain(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// What is a single figure or text, together.
pub(super) fn plain<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>) -> Markup {
    let entries: Vec<_> = entries.filter(|(_, value)| !value.is_null()).collect();
    html! {
        @if !entries.is_empty() {
            section {
                h2 { "The run" }
                dl { @for (key, value) in entries { div { dt { (heading(key)) } dd { (cell(key, value)) } } } }
            }
        }
    }
}

/// Any value.
pub(super) fn any(key: &str, value: &Value) -> Markup {
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => rows(items),
        Value::Array(items) => html! { ul { @for item in items { li { (cell(key, item)) } } } },
        Value::Object(entries) => list(key, entries),
        _ => html! { p { (cell(key, value)) } },
    }
}

/// Objects with the same keys as a table.
pub(super) fn rows(items: &[Value]) -> Markup {
    let Some(first) = items.iter().find_map(Value::as_object) else { return html! {} };
    let is_usual = |key: &str, value: &Value| USUAL.iter().any(|(name, usual)| *name == key && value == usual);
    let has_value = |key: &&String| {
        let values = || items.iter().map(|item| &item[key.as_str()]);
        values().any(|value| !is_empty(value)) && !values().all(|value| is_usual(key, value))
    };
    let keys: Vec<&String> = in_order(first).into_iter().map(|(key, _)| key).filter(has_value).collect();
    html! {
        div.scroll tabindex="0" role="group" aria-label="table" {
            table {
                thead { tr { @for key in &keys { th.n[items.iter().all(|item| is_number(&item[key.as_str()]))] scope="col" { (heading(key)) } } } }
                tbody {
                    @for item in items.iter().take(MOST_ROWS) {
                        tr { @for key in &keys { td.n[is_number(&item[key.as_str()])] { (inner(key, &item[key.as_str()])) } } }
                    }
                }
            }
        }
        @if items.len() > MOST_ROWS { p.note { "The first " (MOST_ROWS) " of " (items.len()) " rows; the JSON has all." } }
    }
}

/// What says nothing where it is so in every row.
const USUAL: &[(&str, Value)] = &[("valid", Value::Bool(true)), ("fitted", Value::Bool(false))];

/// What a reader looks for first: what a row is about, then what came of it. The rest follows by name.
const FIRST: &[&str] = &[
    "warnings",
    "notes",
    "scenario",
    "case",
    "direction",
    "role",
    "host",
    "name",
    "knob",
    "value",
    "default",
    "meaning",
    "set",
    "size",
    "streams",
    "buffers",
    "from_s",
    "to_s",
    "expected",
    "found",
    "met",
    "published",
    "rate_bps",
    "up",
    "down",
    "up_bps",
    "down_bps",
    "round_trip_us",
    "seconds",
    "limiter",
    "detail",
];

/// The entries in the order in which a person reads them.
pub(super) fn in_order(entries: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut ordered: Vec<_> = entries.iter().collect();
    ordered.sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
    ordered
}

/// The entries of the object at `parent`, whose unit holds for those that name none: `path_error_us.p99`.
fn list(parent: &str, entries: &Map<String, Value>) -> Markup {
    let unit = UNITS.iter().find(|unit| parent.ends_with(*unit)).copied().unwrap_or_default();
    let name = |key: &str| match key {
        "p50" if !unit.is_empty() => "Median".to_owned(),
        "p99" if !unit.is_empty() => "p99".to_owned(),
        "max" if !unit.is_empty() => "Max".to_owned(),
        _ => heading(key),
    };
    let with_unit = |key: &str, value: &Value| {
        if parent == "truth" && value.is_number() {
            return "share".to_owned();
        }
        let names_one = !value.is_number() || UNITS.iter().any(|unit| key.ends_with(unit));
        if names_one { key.to_owned() } else { format!("{key}{unit}") }
    };
    html! {
        dl {
            @for (key, value) in entries.iter().filter(|(_, value)| !is_empty(value)) {
                div { dt { (name(key)) } dd { (inner(&with_unit(key, value), value)) } }
            }
        }
    }
}

fn inner(key: &str, value: &Value) -> Markup {
    match value {
        Value::Object(entries) => list(key, entries),
        Value::Array(items) if items.iter().any(Value::is_object) => rows(items),
        Value::Array(items) => html! { (items.iter().map(|item| cell(key, item)).collect::<Vec<_>>().join(", ")) },
        _ => html! { (cell(key, value)) },
    }
}

fn is_number(value: &Value) -> bool {
    value.is_number() || value.is_null()
}

/// How a key names its unit.
const UNITS: [&str; 5] = ["_bps", "_us", "_bytes", "_s", "_ns"];

/// The heading of a key of the document.
fn title(key: &str) -> String {
    match key {
        "expectations" => "What was expected".to_owned(),
        "path_error_us" => "How late the emulated path was".to_owned(),
        "rows" => "All figures".to_owned(),
        "restored" => "Compared with the start, after everything was undone".to_owned(),
        "scenario_facts" => "The scenario".to_owned(),
        _ => heading(key),
    }
}

/// Words of keys that are written in capitals.
const ACRONYMS: [&str; 6] = ["mtu", "mss", "tcp", "udp", "cpu", "gb"];

/// A key as a person writes it: `rate_bps` is `rate`.
pub(super) fn heading(key: &str) -> String {
    match key {
        "knob" => return "Setting".to_owned(),
        "compared" => return "Settings compared".to_owned(),
        _ => {}
    }
    let bare = UNITS.iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
    let words = bare.replace('_', " ").replace("rtt", "round trip").replace("cwnd", "congestion window");
    let words: Vec<_> = words
        .split(' ')
        .map(|word| if ACRONYMS.contains(&word) { word.to_uppercase() } else { word.to_owned() })
        .collect();
    let words = words.join(" ");
    let mut letters = words.chars();
    let heading = letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect());
    clean(&heading).into_owned()
}

/// A string without what would deceive a reader; a dash for everything else.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| "\u{2013}".to_owned(), |text| clean(text).into_owned())
}

/// A plain value with the unit that its key names.
pub(super) fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "\u{2013}".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) if key == "direction" => clean(text).replacen("->", " \u{2192} ", 1),
        Value::String(text) if is_word(key) => clean(text).replace('_', " "),
        Value::String(text) => clean(text).into_owned(),
        Value::Number(number) => with_unit(key, number.as_f64().unwrap_or(0.0)),
        Value::Array(items) => items.iter().map(|item| cell(key, item)).collect::<Vec<_>>().join(", "),
        Value::Object(_) => "\u{2026}".to_owned(),
    }
}

/// Words of a list that JSON spells with underscores.
fn is_word(key: &str) -> bool {
    matches!(key, "limiter" | "detail" | "truth" | "decision" | "takes_effect" | "expected" | "found" | "outcome")
}

fn with_unit(key: &str, value: f64) -> String {
    const SIZES: [&str; 8] = ["bytes", "size", "cwnd", "window", "mss", "kernel_mtu", "path_mtu", "memory_worst_case"];
    let whole = value.max(0.0).round() as u64;
    if key.ends_with("_bps") {
        Rate::from_bps(whole).to_string()
    } else if key.ends_with("_us") {
        Micros::new(whole).to_string()
    } else if key.ends_with("_ns") {
        Micros::new(whole / 1_000).to_string()
    } else if key.ends_with("_bytes") || SIZES.contains(&key) {
        Bytes::new(whole).to_string()
    } else if key.ends_with("_share") || ["share", "loss", "deviation", "tolerance"].contains(&key) {
        format!("{:.0} %", value * 100.0)
    } else if key.ends_with("_s") || key == "seconds" {
        format!("{value:.2} s")
    } else if value.fract() == 0.0 {
        grouped(value)
    } else {
        format!("{value:.3}")
    }
}

/// Thousands apart.
fn grouped(value: f64) -> String {
    let bytes = Bytes::new(value.abs() as u64).to_string();
    let digits = bytes.trim_end_matches(" B");
    if value < 0.0 { format!("-{digits}") } else { digits.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_unit_that_its_key_names() {
        for (key, value, shown) in [
            ("rate_bps", 6_410_000.0, "6.41 Mbit/s"),
            ("rtt_us", 80_100.0, "80.1 ms"),
            ("send_buffer_bytes", 64_512.0, "64,512 B"),
            ("share", 0.97, "97 %"),
            ("retransmissions", 12_345.0, "12,345"),
            ("messages_per_second", 0.25, "0.250"),
        ] {
            assert_eq!(with_unit(key, value), shown, "{key}");
        }
        assert_eq!(heading("loaded_rtt_us"), "Loaded round trip");
        assert_eq!(heading("tcp_mtu"), "TCP MTU");
        assert_eq!(cell("direction", &"a->b".into()), "a \u{2192} b");
        let late = section("path_error_us", &serde_json::json!({ "p50": 25, "max": 8_484 })).into_string();
        assert!(late.contains("25 us") && late.contains("8.48 ms"), "{late}");
    }
}
