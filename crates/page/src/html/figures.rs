//! What `measure` and the simulator found.

use maud::{Markup, html};
use serde_json::Value;

use super::{Charts, figure, table};

/// The keys that are told here.
pub(super) const TOLD: &[&str] = &["directions"];

pub(super) fn headline(document: &Value) -> Option<String> {
    let rate = |value: &Value| table::cell("rate_bps", value);
    if let Some(directions) = document["directions"].as_array().filter(|directions| !directions.is_empty()) {
        let told = directions.iter().map(|one| {
            let name = table::text(&one["direction"]).replacen("->", " \u{2192} ", 1);
            format!("{name} {}", rate(&one["rate_bps"]))
        });
        return Some(told.collect::<Vec<_>>().join(", "));
    }
    let plateau = &document["plateau"];
    if !plateau["rate_bps"].is_null() {
        let (knob, value) = (table::text(&plateau["knob"]), table::text(&plateau["value"]));
        return Some(format!("{} from {knob} {value} on", rate(&plateau["rate_bps"])));
    }
    let predictions = document["predictions"].as_array()?;
    let rates = predictions.iter().map(|one| rate(&one["rate_bps"])).collect::<Vec<_>>();
    Some(format!("predicted: {}", rates.join(", ")))
}

/// Each measured direction, with its intervals drawn.
pub(super) fn directions(document: &Value, charts: &Charts) -> Markup {
    let Some(directions) = document["directions"].as_array().filter(|directions| !directions.is_empty()) else {
        return html! {};
    };
    html! {
        section {
            h2 { "Measured" }
            @for (place, one) in directions.iter().enumerate() {
                article.verdict {
                    h3 {
                        span.direction { (table::text(&one["direction"]).replacen("->", " \u{2192} ", 1)) } " "
                        (table::cell("rate_bps", &one["rate_bps"]))
                    }
                    dl.facts {
                        @for (name, key) in [("without slow start", "steady_bps"), ("round trip, idle", "rtt_us"),
                            ("round trip, loaded", "loaded_rtt_us"), ("retransmitted", "retransmissions"), ("payload", "bytes"),
                            ("in", "seconds")]
                        {
                            @if !one[key].is_null() { div { dt { (name) } dd { (table::cell(key, &one[key])) } } }
                        }
                    }
                    @if let Some(datagrams) = one.get("datagrams").filter(|datagrams| datagrams.is_object()) {
                        h4 { "Datagrams" } (table::any("datagrams", datagrams))
                    }
                    @for chart in charts.charts.iter().filter(|chart| chart.is_of("directions", place)) { (figure::figure(chart)) }
                    @if let Some(streams) = one["streams"].as_array().filter(|streams| streams.len() > 1) {
                        h4 { "Connections" } (table::rows(streams))
                    }
                }
            }
        }
    }
}
