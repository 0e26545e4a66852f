//! What `measure` and the simulator found.

use maud::{Markup, html};
use serde_json::Value;

use super::{Charts, figure, table};

/// The keys that are shown here.
pub(super) const SHOWN: &[&str] = &["directions", "peer", "processor"];

pub(super) fn headline(document: &Value) -> Option<String> {
    let rate = |value: &Value| table::cell("rate_bps", value);
    if let Some(directions) = document["directions"].as_array().filter(|directions| !directions.is_empty()) {
        let parts = directions.iter().map(|one| {
            let name = table::text(&one["direction"]).replacen("->", " \u{2192} ", 1);
            format!("{name} {}", rate(&one["rate_bps"]))
        });
        return Some(parts.collect::<Vec<_>>().join(", "));
    }
    if let Some(rows) = document["rows"].as_array().filter(|rows| rows.iter().any(|row| row["buffers"].is_number())) {
        return devices(rows);
    }
    if let Some(rows) = document["rows"].as_array().filter(|rows| rows.iter().any(|row| row["scenario"].is_string())) {
        return Some(format!(
            "{} figures of the published situations, simulated beside what was published",
            rows.len()
        ));
    }
    let plateau = &document["plateau"];
    if !plateau["rate_bps"].is_null() {
        let (knob, value) = (table::text(&plateau["knob"]), table::text(&plateau["value"]));
        return Some(format!("{} from {knob} {value} on", rate(&plateau["rate_bps"])));
    }
    let predictions = document["predictions"].as_array()?;
    let mut of_direction: Vec<(&Value, Vec<String>)> = Vec::new();
    for one in predictions {
        let rate = rate(&one["rate_bps"]);
        match of_direction.iter_mut().find(|(direction, _)| *direction == &one["direction"]) {
            Some((_, rates)) => rates.push(rate),
            None => of_direction.push((&one["direction"], vec![rate])),
        }
    }
    let is_one = of_direction.len() == 1;
    let parts = of_direction.iter().map(|(direction, rates)| {
        let name = if is_one { String::new() } else { format!("{} ", table::cell("direction", direction)) };
        format!("{name}{}", rates.join(", "))
    });
    Some(format!("predicted: {}", parts.collect::<Vec<_>>().join("; ")))
}

/// What a device carries in each role with the fewest and with the most packet buffers.
fn devices(rows: &[Value]) -> Option<String> {
    let mut roles: Vec<&Value> = Vec::new();
    for row in rows {
        if !roles.contains(&&row["role"]) {
            roles.push(&row["role"]);
        }
    }
    let parts = roles.into_iter().filter_map(|role| {
        let mut of_role = rows.iter().filter(|row| row["role"] == *role && row["rate_bps"].is_number());
        let (first, last) = (of_role.next()?, of_role.next_back());
        let with = |row: &Value| {
            format!("{} with {}", table::cell("rate_bps", &row["rate_bps"]), table::cell("", &row["buffers"]))
        };
        let most = last.map(|last| format!(", {}", with(last))).unwrap_or_default();
        Some(format!("{} {} packet buffers{most}", table::text(role), with(first)))
    });
    let parts = parts.collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join("; "))
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
                            ("duration", "seconds")]
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

/// What answered, and what it cost both ends.
pub(super) fn ends(document: &Value) -> Markup {
    let (peer, processor) = (&document["peer"], &document["processor"]);
    let spent = |end: &str| {
        let cpu = &processor[end];
        let percent = cpu["user_percent"].as_f64()? + cpu["system_percent"].as_f64()?;
        let per_gb = cpu["seconds_per_gb"].as_f64().map(|seconds| format!(", {seconds:.3} s per 10^9 B"));
        Some(format!("{percent:.0} % of one processor{}", per_gb.unwrap_or_default()))
    };
    let parts = [("this host", spent("own")), ("far end", spent("far"))];
    let parts: Vec<_> = parts.into_iter().filter_map(|(name, said)| Some((name, said?))).collect();
    html! {
        @if peer.is_object() || !parts.is_empty() {
            section {
                h2 { "Both ends" }
                dl {
                    @if peer.is_object() {
                        div { dt { "what answered" } dd { (table::cell("", &peer["kind"])) " at " (table::cell("", &peer["address"])) } }
                    }
                    @for (name, said) in &parts { div { dt { (name) } dd { (said) } } }
                }
            }
        }
    }
}
