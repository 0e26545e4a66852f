//! What `measure` found with several tests: by message size, by number of connections, with requests, under load.

use maud::{Markup, html};
use serde_json::Value;

use super::table::{cell, text};

/// The keys that are shown here.
pub(super) const SHOWN: &[&str] = &["sizes", "streams", "exchanges", "under_load", "conclusions", "cancelled"];

/// Where a cell finds its value in a row, and the key that tells its unit.
type Column = (&'static str, &'static str, &'static str);

fn items<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document[key].as_array().map_or(&[], Vec::as_slice)
}

fn arrow(direction: &Value) -> String {
    text(direction).replacen("->", " \u{2192} ", 1)
}

/// The best of a sweep in each direction, or what the load adds.
pub(super) fn headline(document: &Value) -> Option<String> {
    let best = |rows: &[Value], pointer: &str, by: &str, words: fn(&str) -> String| {
        let rate = |row: &&Value| row.pointer(pointer).and_then(Value::as_u64);
        let row = rows.iter().filter(|row| rate(row).is_some()).max_by_key(rate)?;
        Some(format!("{} {}", cell("rate_bps", row.pointer(pointer)?), words(&cell(by, &row[by]))))
    };
    let both = |up: Option<String>, down: Option<String>| {
        let named = [("a \u{2192} b", up), ("b \u{2192} a", down)];
        let parts: Vec<_> = named.into_iter().filter_map(|(name, said)| Some(format!("{name} {}", said?))).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    };
    let (sizes, streams) = (items(document, "sizes"), items(document, "streams"));
    if !sizes.is_empty() {
        let words = |size: &str| format!("in messages of {size}");
        return both(best(sizes, "/up/rate_bps", "size", words), best(sizes, "/down/rate_bps", "size", words));
    }
    if !streams.is_empty() {
        let words = |count: &str| format!("with {count} {}", if count == "1" { "connection" } else { "connections" });
        return both(best(streams, "/up_bps", "streams", words), best(streams, "/down_bps", "streams", words));
    }
    if let Some(first) = items(document, "exchanges").first() {
        let asked = (cell("bytes", &first["request"]), cell("bytes", &first["response"]));
        let per_second = cell("", &Value::from(first["per_second"].as_f64()?.round()));
        return Some(format!("{per_second} transactions/s of {} and {}", asked.0, asked.1));
    }
    // Path MTU, available rate, round trips under load: the first that is said of a direction is its result.
    let mut said: Vec<(&Value, String)> = Vec::new();
    for one in items(document, "conclusions") {
        if said.iter().all(|(direction, _)| *direction != &one["direction"]) {
            said.push((&one["direction"], sentence(one)));
        }
    }
    let short = said.iter().map(|(_, text)| text.split("; ").next().unwrap_or_default());
    (!said.is_empty()).then(|| short.collect::<Vec<_>>().join("; "))
}

fn sentence(conclusion: &Value) -> String {
    let direction = conclusion["direction"].as_str().map(|_| format!("{}: ", arrow(&conclusion["direction"])));
    format!("{}{}", direction.unwrap_or_default(), text(&conclusion["text"]))
}

/// Text whose commands stand between backticks.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (place, piece) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// The sentences.
pub(super) fn conclusions(document: &Value) -> Markup {
    let conclusions = items(document, "conclusions");
    html! {
        @if document["cancelled"] == true { p.note { "It was stopped before its time: only what was complete is shown." } }
        @if !conclusions.is_empty() {
            section { h2 { "What the figures say" } ul { @for one in conclusions { li { (with_code(&sentence(one))) } } } }
        }
    }
}

/// The tables.
pub(super) fn tables(document: &Value) -> Markup {
    let [sizes, streams, exchanges] = ["sizes", "streams", "exchanges"].map(|key| items(document, key));
    let under_load = &document["under_load"];
    html! {
        @if !sizes.is_empty() { section { h2 { "By message size" } (table(SIZES, sizes)) (note(OF_SIZES)) } }
        @if !streams.is_empty() { section { h2 { "By number of connections" } (table(STREAMS, streams)) } }
        @for one in exchanges {
            section {
                h2 { "Requests of " (cell("bytes", &one["request"])) ", responses of " (cell("bytes", &one["response"])) }
                (table(TRIPS, &trips(one, &[("answer", "latency"), ("connecting", "connecting"), ("request after it", "asking")])))
                (note(&format!("{}, {}.", if one["spin"] == true { "Both ends spin" } else { "Both ends sleep while they wait" },
                    if one["nodelay"] == true { "small writes leave at once" } else { "Nagle's algorithm is on" })))
            }
        }
        @if under_load.is_object() {
            section { h2 { "Round trips under load" } (table(TRIPS, &loads(under_load))) (note(OF_LOAD)) }
        }
    }
}

fn note(text: &str) -> Markup {
    html! { p.note { (text) } }
}

const SIZES: &[Column] = &[
    ("Message", "/size", "bytes"),
    ("a \u{2192} b", "/up/rate_bps", "rate_bps"),
    ("CPU s/GB", "/up/seconds_per_gb", ""),
    ("Limited by window", "/up/window_share", "share"),
    ("by buffer", "/up/buffer_share", "share"),
    ("b \u{2192} a", "/down/rate_bps", "rate_bps"),
    ("CPU s/GB", "/down/seconds_per_gb", ""),
    ("Limited by window", "/down/window_share", "share"),
    ("by buffer", "/down/buffer_share", "share"),
    ("Round trip", "/round_trip_us", "trip_us"),
    ("In two writes", "/split_us", "trip_us"),
];

const OF_SIZES: &str = "CPU s/GB: processor seconds of both ends per 10^9 B. Limited: the part of the sender's busy time in which \
    the receive window or the send buffer limited it. Round trip: a message and an answer of one byte, median, small writes \
    leaving at once. In two writes: the same with the message in two writes and Nagle's algorithm on.";

const STREAMS: &[Column] = &[
    ("Connections", "/streams", ""),
    ("a \u{2192} b", "/up_bps", "rate_bps"),
    ("b \u{2192} a", "/down_bps", "rate_bps"),
    ("Retransmitted", "/retransmissions", ""),
];

const TRIPS: &[Column] = &[
    ("", "/name", ""),
    ("Rate", "/rate_bps", "rate_bps"),
    ("Timed", "/count", ""),
    ("Min", "/min_us", "trip_us"),
    ("Median", "/p50_us", "trip_us"),
    ("p90", "/p90_us", "trip_us"),
    ("p99", "/p99_us", "trip_us"),
    ("Max", "/max_us", "trip_us"),
    ("Per minute", "/per_minute", "whole"),
];

const OF_LOAD: &str = "Kept: one byte and an answer on a connection that stays open. Handshake and request: of new connections. Per minute: the \
    responsiveness of draft-ietf-ippm-responsiveness without TLS and HTTP, from the handshakes and first requests of new connections \
    and the RTT under load: compare it with itself rather than with other tools.";

/// The rows of a distribution each, of those that were timed.
fn trips(one: &Value, named: &[(&str, &str)]) -> Vec<Value> {
    let row = |&(name, key): &(&str, &str)| {
        let mut row = one[key].as_object()?.clone();
        row.insert("name".to_owned(), Value::from(name));
        Some(Value::Object(row))
    };
    named.iter().filter_map(row).collect()
}

fn loads(under_load: &Value) -> Vec<Value> {
    let with = |mut rows: Vec<Value>, rate: &Value, per_minute: &Value| {
        if let Some(first) = rows.first_mut() {
            first["rate_bps"] = rate.clone();
            first["per_minute"] = per_minute.clone();
        }
        rows
    };
    let idle = [("no load: kept", "idle"), ("handshake", "idle_connecting"), ("request", "idle_asking")];
    let mut all = with(trips(under_load, &idle), &Value::Null, &under_load["idle_per_minute"]);
    for one in items(under_load, "loaded") {
        let kept = format!("{}: kept", arrow(&one["direction"]));
        let named = [(kept.as_str(), "latency"), ("handshake", "connecting"), ("request", "asking")];
        all.extend(with(trips(one, &named), &one["rate_bps"], &one["per_minute"]));
    }
    all
}

/// The columns that any row has something for.
fn table(columns: &[Column], rows: &[Value]) -> Markup {
    // A share that is nothing in every row is left out.
    let known = |(_, pointer, key): &&Column| {
        let is_something = |value: &Value| *key != "share" || value.as_f64().is_some_and(|share| share >= 0.005);
        rows.iter().map(|row| value(row, pointer)).any(|value| !value.is_null() && is_something(&value))
    };
    let columns: Vec<&Column> = columns.iter().filter(known).collect();
    let is_name = |pointer: &str| pointer == "/name";
    html! {
        div.scroll tabindex="0" role="group" aria-label="table" {
            table {
                thead { tr { @for (heading, pointer, _) in &columns {
                    @if is_name(pointer) { td {} } @else { th.n scope="col" { (heading) } }
                } } }
                tbody { @for row in rows { tr { @for (_, pointer, key) in &columns {
                    @if is_name(pointer) { th scope="row" { (shown(key, &value(row, pointer))) } }
                    @else { td.n { (shown(key, &value(row, pointer))) } }
                } } } }
            }
        }
    }
}

/// What is at `pointer`; the processor time of both ends together.
fn value(row: &Value, pointer: &str) -> Value {
    let Some(side) = pointer.strip_suffix("/seconds_per_gb") else {
        return row.pointer(pointer).cloned().unwrap_or_default();
    };
    let part = |end: &str| row.pointer(side)?[format!("{end}_seconds_per_gb")].as_f64();
    part("own").map_or(Value::Null, |own| Value::from(own + part("far").unwrap_or(0.0)))
}

fn shown(key: &str, value: &Value) -> String {
    match value.as_f64() {
        // To a tenth of a microsecond, as in the terminal.
        Some(us) if key == "trip_us" && us < 1e3 => format!("{us:.1} us"),
        Some(number) if key == "whole" => cell("", &Value::from(number.round())),
        _ => cell(key, value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_survey_has_a_headline_and_a_flat_table() {
        let document = json!({
            "sizes": [
                { "size": 1_024, "up": { "rate_bps": 10_700_000, "own_seconds_per_gb": 0.5, "far_seconds_per_gb": 0.25, "window_share": 0.5 },
                    "down": {}, "round_trip_us": 65.25, "split_us": 44_010.0 },
                { "size": 4_096, "up": { "rate_bps": 24_900_000 }, "down": {}, "round_trip_us": 50.0, "split_us": null },
            ],
            "conclusions": [{ "direction": "a->b", "text": "it waits: `fullpipe check`" }, { "direction": null, "text": "both do" }],
        });
        assert_eq!(headline(&document).as_deref(), Some("a \u{2192} b 24.9 Mbit/s in messages of 4,096 B"));
        let page = conclusions(&document).into_string() + &tables(&document).into_string();
        for shown in [
            "1,024 B",
            "0.750",
            "50 %",
            "65.2 us",
            "44.0 ms",
            "a \u{2192} b: it waits: <code>fullpipe check</code>",
            "<li>both do",
        ] {
            assert!(page.contains(shown), "{shown} in {page}");
        }
        assert!(!page.contains("b \u{2192} a"), "nothing is known of it: {page}");
    }

    #[test]
    fn a_load_has_a_row_for_each_distribution() {
        let trip =
            |us: f64| json!({ "count": 45, "min_us": us, "p50_us": us, "p90_us": us, "p99_us": us, "max_us": us });
        let document = json!({
            "under_load": {
                "idle": trip(29.0), "idle_connecting": trip(102.0), "idle_asking": null, "idle_per_minute": 486_750.8,
                "loaded": [{ "direction": "a->b", "latency": trip(2_500.0), "rate_bps": 94_000_000, "per_minute": 1_200.4 }],
            },
            "conclusions": [{ "direction": "a->b", "text": "29.0 us idle, 2.50 ms loaded; the rate did not level off" }],
        });
        assert_eq!(headline(&document).as_deref(), Some("a \u{2192} b: 29.0 us idle, 2.50 ms loaded"));
        let page = conclusions(&document).into_string() + &tables(&document).into_string();
        assert_eq!(page.matches("<tr>").count(), 4, "{page}");
        for shown in ["no load: kept", "486,751", "94.0 Mbit/s", "2.50 ms", "1,200"] {
            assert!(page.contains(shown), "{shown} in {page}");
        }
    }
}
