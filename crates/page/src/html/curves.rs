//! The curves that a document holds itself: rate over message size, streams, a swept setting, buffers, and round trips under
//! load.

use fullpipe_chart::{Chart, Kind, Panel, Series, Shape};
use serde_json::Value;

/// All that the document has.
pub(super) fn drawn(document: &Value) -> Vec<Chart> {
    let mut charts: Vec<Chart> =
        [sizes(document), streams(document), sweep(document), devices(document), under_load(document)]
            .into_iter()
            .flatten()
            .collect();
    let directions = document["directions"].as_array().into_iter().flatten().enumerate();
    charts.extend(directions.filter_map(|(place, one)| datagrams(place, one)));
    charts
}

/// A direction that carried datagrams, whose intervals are all that there is.
fn datagrams(place: usize, direction: &Value) -> Option<Chart> {
    let rows = rows(direction, "intervals").filter(|_| direction["datagrams"].is_object())?;
    let chart = chart(
        "Datagrams over time",
        "time",
        Kind::Seconds,
        column(rows, "/to_s"),
        [
            panel("throughput", Kind::Rate, [points("payload", "rate", column(rows, "/rate_bps"))]),
            panel("lost", Kind::Count, [points("datagrams", "again", column(rows, "/lost"))]),
            panel("jitter", Kind::Micros, [points("RFC 3550", "rtt", column(rows, "/jitter_us"))]),
        ],
    )?;
    Some(Chart { of: Some(("directions", place)), ..chart })
}

fn rows<'a>(document: &'a Value, key: &str) -> Option<&'a [Value]> {
    document[key].as_array().map(Vec::as_slice).filter(|rows| rows.len() > 1)
}

fn column(rows: &[Value], pointer: &str) -> Vec<Option<f64>> {
    rows.iter().map(|row| row.pointer(pointer).and_then(Value::as_f64)).collect()
}

fn points(name: &str, role: &'static str, y: Vec<Option<f64>>) -> Option<Series> {
    y.iter().any(Option::is_some).then(|| Series { name: name.to_owned(), role, shape: Shape::Points, y })
}

fn panel(label: &str, unit: Kind, series: impl IntoIterator<Item = Option<Series>>) -> Option<Panel> {
    let series: Vec<Series> = series.into_iter().flatten().collect();
    (!series.is_empty()).then(|| Panel { label: label.to_owned(), unit, series })
}

fn chart(
    title: &str,
    axis: &str,
    unit: Kind,
    x: Vec<Option<f64>>,
    panels: impl IntoIterator<Item = Option<Panel>>,
) -> Option<Chart> {
    let x: Vec<f64> = x.into_iter().collect::<Option<_>>()?;
    let panels: Vec<Panel> = panels.into_iter().flatten().collect();
    // uPlot needs an axis that grows.
    let grows = x.windows(2).all(|pair| pair[0] < pair[1]);
    let is_log = unit != Kind::Seconds && x.first().is_some_and(|first| *first > 0.0);
    (grows && !panels.is_empty()).then(|| Chart {
        title: title.to_owned(),
        axis: axis.to_owned(),
        unit,
        is_log,
        x,
        panels,
        ..Chart::default()
    })
}

/// A curve with the place from which on its rates are as good as the best, within what tests of one path differ by. None where
/// it is the last that was tried: the curve may go on.
fn with_plateau(chart: Chart) -> Chart {
    const NEAR: f64 = 0.95;
    let reached = |line: &Series| {
        let best = line.y.iter().flatten().copied().fold(0.0, f64::max);
        line.y.iter().position(|rate| rate.is_some_and(|rate| best > 0.0 && rate >= NEAR * best))
    };
    let series = chart.panels.first().map_or(&[][..], |panel| &panel.series);
    let place = series.iter().filter(|line| line.role != "product").filter_map(reached).max();
    let plateau = place.filter(|place| place + 1 < chart.x.len()).map(|place| chart.x[place]);
    Chart { plateau, ..chart }
}

fn sizes(document: &Value) -> Option<Chart> {
    let rows = rows(document, "sizes")?;
    chart(
        "Rate and round trip by message size",
        "message size",
        Kind::Bytes,
        column(rows, "/size"),
        [
            panel(
                "throughput",
                Kind::Rate,
                [
                    points("a \u{2192} b", "rate", column(rows, "/up/rate_bps")),
                    points("b \u{2192} a", "window", column(rows, "/down/rate_bps")),
                ],
            ),
            panel(
                "request and answer",
                Kind::Micros,
                [
                    points("one write", "rtt", column(rows, "/round_trip_us")),
                    points("two writes, Nagle on", "again", column(rows, "/split_us")),
                ],
            ),
        ],
    )
    .map(with_plateau)
}

fn streams(document: &Value) -> Option<Chart> {
    let rows = rows(document, "streams")?;
    chart(
        "Rate by number of connections",
        "connections",
        Kind::Count,
        column(rows, "/streams"),
        [
            panel(
                "throughput",
                Kind::Rate,
                [
                    points("a \u{2192} b", "rate", column(rows, "/up_bps")),
                    points("b \u{2192} a", "window", column(rows, "/down_bps")),
                ],
            ),
            panel(
                "retransmitted",
                Kind::Count,
                [points("segments", "again", column(rows, "/retransmissions"))
                    .filter(|line| line.y.iter().flatten().any(|count| *count > 0.0))],
            ),
        ],
    )
    .map(with_plateau)
}

/// A swept setting: its values are words such as `16k`, in the last word of `set`.
fn sweep(document: &Value) -> Option<Chart> {
    let rows = rows(document, "predictions")?;
    let values: Vec<Option<f64>> = rows.iter().map(swept).collect();
    let swept = document["plateau"]["knob"].as_str().unwrap_or("the setting").to_owned();
    // The command's own, whose rate is known.
    let on_plateau = &document["plateau"]["rate_bps"];
    let place = rows.iter().position(|row| !on_plateau.is_null() && row["rate_bps"] == *on_plateau);
    let plateau = place.filter(|place| place + 1 < rows.len()).and_then(|place| values[place]);
    chart(
        &format!("Predicted rate by {swept}"),
        &swept,
        unit_of(document["plateau"]["value"].as_str().unwrap_or_default()),
        values,
        [
            panel(
                "throughput",
                Kind::Rate,
                [
                    points("predicted", "rate", column(rows, "/rate_bps")),
                    points("measured", "window", column(rows, "/measured_bps")),
                ],
            ),
            panel("memory at most", Kind::Bytes, [points("both hosts", "flight", column(rows, "/memory_bytes"))]),
            panel("wait at the narrowest link", Kind::Micros, [points("mean", "rtt", column(rows, "/queue_delay_us"))]),
        ],
    )
    .map(|chart| Chart { plateau, ..chart })
}

/// The number that was swept, in the setting's own unit: `receiver.window=16384`, `receiver.delayed_ack=1000us`.
fn swept(row: &Value) -> Option<f64> {
    let value = row["set"].as_array()?.last()?.as_str()?.split_once('=')?.1;
    match value.parse::<fullpipe_units::Bytes>() {
        Ok(bytes) => Some(bytes.get() as f64),
        Err(_) => value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok(),
    }
}

/// What a swept setting counts, by how a value of it is written: `192,641 B`, `1.00 ms`, `20.0 Mbit/s`.
fn unit_of(written: &str) -> Kind {
    match written.rsplit(' ').next().filter(|unit| *unit != written) {
        Some("B") => Kind::Bytes,
        Some(unit) if unit.ends_with("bit/s") => Kind::Rate,
        Some("us" | "ms" | "s") => Kind::Micros,
        _ => Kind::Count,
    }
}

fn devices(document: &Value) -> Option<Chart> {
    let rows = rows(document, "rows").filter(|rows| rows[0].get("buffers").is_some())?;
    // A table may hold both roles of the device.
    let of_role = |role: &Value| rows.iter().filter(|row| row["role"] == *role).cloned().collect::<Vec<_>>();
    let other = rows.iter().map(|row| &row["role"]).find(|role| **role != rows[0]["role"]);
    let (rows, other) = (of_role(&rows[0]["role"]), other.map(of_role).unwrap_or_default());
    let is_shared = column(&other, "/buffers") == column(&rows, "/buffers");
    let name = |rows: &[Value]| rows[0]["role"].as_str().unwrap_or("measured").to_owned();
    let bits = document["bytes"].as_f64().map(|bytes| bytes * 8.0);
    let published = column(&rows, "/published_s").into_iter().map(|time| Some((bits? / time?).round())).collect();
    let rate = panel(
        "throughput",
        Kind::Rate,
        [
            points(&name(&rows), "rate", column(&rows, "/rate_bps")),
            is_shared.then(|| points(&name(&other), "window", column(&other, "/rate_bps"))).flatten(),
            points(&format!("{}, published", name(&rows)), "product", published),
        ],
    );
    chart("Rate by packet buffers", "packet buffers", Kind::Count, column(&rows, "/buffers"), [rate]).map(with_plateau)
}

/// The parts of a distribution that the document has, each with how many round trips there are for one that took longer.
const PARTS: [(f64, &str); 5] =
    [(2.0, "p50_us"), (10.0, "p90_us"), (100.0, "p99_us"), (1_000.0, "p99_9_us"), (10_000.0, "p99_99_us")];

/// Round trips without load and beside it, as far as there are enough to say so.
fn under_load(document: &Value) -> Option<Chart> {
    let load = document.get("under_load")?;
    let loaded = load["loaded"].as_array().map_or(&[][..], Vec::as_slice);
    // As far as anything is known: the rest of the axis would be empty.
    let all = loaded.iter().map(|one| &one["latency"]).chain([&load["idle"]]);
    let most = all.filter_map(|latency| latency["count"].as_f64()).fold(0.0, f64::max);
    let parts = || PARTS.into_iter().filter(|(one_in, _)| *one_in <= most);
    let curve = |name: &str, role: &'static str, latency: &Value| {
        let count = latency["count"].as_f64()?;
        points(name, role, parts().map(|(one_in, key)| latency[key].as_f64().filter(|_| one_in <= count)).collect())
    };
    let beside = loaded.iter().zip(["rate", "window"]).map(|(one, role)| {
        let (from, to) = one["direction"].as_str()?.split_once("->")?;
        curve(&format!("payload {from} \u{2192} {to}"), role, &one["latency"])
    });
    let all = panel("round trip", Kind::Micros, [curve("no load", "product", &load["idle"])].into_iter().chain(beside));
    let x: Vec<_> = parts().map(|(one_in, _)| Some(one_in)).collect();
    if x.len() < 2 {
        return None;
    }
    chart(
        "Round trips under load: how long the slowest take",
        "one round trip of so many takes longer",
        Kind::Count,
        x,
        [all],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sweep_of_sizes_times_and_rates_is_drawn_in_their_unit() {
        let of = |values: [&str; 2], written: &str| {
            let row = |value: &str| json!({ "set": ["a=1", format!("x={value}")], "rate_bps": 1_000_000 });
            let document = json!({
                "predictions": values.map(row), "plateau": { "knob": "x", "value": written, "rate_bps": 1_000_000 },
            });
            sweep(&document).map(|chart| (chart.unit, chart.x))
        };
        assert_eq!(of(["16384", "4194304"], "16,384 B"), Some((Kind::Bytes, vec![16_384.0, 4_194_304.0])));
        assert_eq!(of(["1000us", "200000us"], "1.00 ms"), Some((Kind::Micros, vec![1_000.0, 200_000.0])));
        assert_eq!(of(["1000000", "2000000"], "1.00 Mbit/s"), Some((Kind::Rate, vec![1e6, 2e6])));
        assert_eq!(of(["5", "43"], "20"), Some((Kind::Count, vec![5.0, 43.0])));
        assert_eq!(of(["cubic", "reno"], "cubic"), None);
    }

    #[test]
    fn round_trips_under_load_are_drawn_as_far_as_there_are_enough() {
        let load = |count: u64| {
            let latency =
                json!({ "count": count, "p50_us": 10, "p90_us": 20, "p99_us": 30, "p99_9_us": 40, "p99_99_us": 50 });
            under_load(&json!({ "under_load": { "idle": latency, "loaded": [] } })).map(|chart| chart.x)
        };
        assert_eq!(load(90), Some(vec![2.0, 10.0]));
        assert_eq!(load(20_000).map(|x| x.len()), Some(5));
        assert_eq!(load(3), None, "one figure is no curve");
    }

    #[test]
    fn a_curve_says_from_where_on_it_gains_no_more() {
        let of = |rates: &[u64]| {
            let row =
                |(place, rate): (usize, &u64)| json!({ "streams": 1_u32 << place, "up_bps": rate, "down_bps": null });
            let rows: Vec<Value> = rates.iter().enumerate().map(row).collect();
            streams(&json!({ "streams": rows })).expect("a curve").plateau
        };
        assert_eq!(of(&[40, 80, 98, 100, 99]), Some(4.0));
        assert_eq!(of(&[100, 99, 100]), Some(1.0));
        assert_eq!(of(&[25, 50, 100]), None, "it may go on");
        assert_eq!(of(&[0, 0]), None);
    }
}
