//! What `measure` found with several tests: a table each.

use fullpipe_measure::{ExchangeReport, Latency, MtuReport, PathMtu, SizeRow, StreamsRow, UnderLoad};

use super::page::{DIM, Look, PLAIN, Page, TITLE, WARN, or_dash};
use crate::Survey;

/// The tables of what was asked.
pub fn survey(survey: &Survey, look: Look) -> String {
    let mut page = Page::new(look);
    if !survey.sizes.is_empty() {
        put_sizes(&mut page, &survey.sizes);
    }
    if !survey.streams.is_empty() {
        put_streams(&mut page, &survey.streams);
    }
    for exchange in &survey.exchanges {
        put_exchange(&mut page, exchange);
    }
    if let Some(under_load) = &survey.under_load {
        put_under_load(&mut page, under_load);
    }
    if let Some(mtu) = &survey.mtu {
        put_mtu(&mut page, mtu);
    }
    if survey.cancelled {
        page.gap();
        page.styled_field("stopped", WARN, "before its time; only what was complete is shown");
    }
    page.finish()
}

/// Cells under their headings, each column as wide as its widest.
fn table(page: &mut Page, headings: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(headings.get(column).map(|heading| heading.chars().count())).max().unwrap_or(0)
    };
    let line = |cells: Vec<&str>| -> String {
        cells.iter().enumerate().map(|(column, cell)| format!("  {cell:>width$}", width = width(column))).collect()
    };
    page.pieces(0, &[(TITLE, &line(headings.to_vec()))]);
    for row in rows {
        page.pieces(0, &[(PLAIN, &line(row.iter().map(String::as_str).collect()))]);
    }
}

fn fixed(value: Option<f64>, digits: usize) -> String {
    or_dash(value.map(|value| format!("{value:.digits$}")))
}

fn time(us: Option<f64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 1e3 => format!("{us:.1} us"),
        Some(us) if us < 1e6 => format!("{:.2} ms", us / 1e3),
        Some(us) => format!("{:.2} s", us / 1e6),
    }
}

fn put_sizes(page: &mut Page, rows: &[SizeRow]) {
    let headings = ["message", "up", "s/GB", "down", "s/GB", "round trip", "in two halves"];
    let both = |own: Option<f64>, far: Option<f64>| fixed(own.zip(far).map(|(own, far)| own + far).or(own), 3);
    let cells = rows.iter().map(|row| {
        vec![
            row.size.to_string(),
            or_dash(row.up.rate_bps),
            both(row.up.own_seconds_per_gb, row.up.far_seconds_per_gb),
            or_dash(row.down.rate_bps),
            both(row.down.own_seconds_per_gb, row.down.far_seconds_per_gb),
            time(row.round_trip_us),
            time(row.split_us),
        ]
    });
    table(page, &headings, &cells.collect::<Vec<_>>());
    page.gap();
    page.paragraph(
        2,
        DIM,
        "s/GB: processor seconds of both ends per 10^9 B. Round trip: a message and an answer of one byte, median, small \
         writes leaving at once. In two halves: the message in two writes with Nagle's algorithm on, so that the second \
         waits for a delayed acknowledgement.",
    );
    let held = rows
        .iter()
        .find(|row| row.round_trip_us.zip(row.split_us).is_some_and(|(whole, split)| split > whole + DELAYED_US));
    if let Some(row) = held {
        let text = format!(
            "Nagle's algorithm and delayed acknowledgements hold each message of {} that is written in two halves for {}: \
             write it at once, or set TCP_NODELAY",
            row.size,
            time(row.split_us)
        );
        page.styled_field("note", WARN, &text);
    }
}

/// No acknowledgement is delayed by less (Linux: TCP_DELACK_MIN is 40 ms, and timers may be a little early).
const DELAYED_US: f64 = 30_000.0;

fn put_streams(page: &mut Page, rows: &[StreamsRow]) {
    let cells = rows
        .iter()
        .map(|row| vec![row.streams.to_string(), or_dash(row.up_bps), or_dash(row.down_bps), or_dash(row.retransmits)]);
    table(page, &["connections", "up", "down", "sent again"], &cells.collect::<Vec<_>>());
}

fn percentiles(latency: &Latency) -> Vec<String> {
    let all = [
        latency.min_us,
        latency.p50_us,
        latency.p90_us,
        latency.p99_us,
        latency.p99_9_us,
        latency.p99_99_us,
        latency.max_us,
    ];
    all.into_iter().map(|us| time(Some(us))).collect()
}

const PERCENTILES: [&str; 8] = ["", "least", "p50", "p90", "p99", "p99.9", "p99.99", "most"];

fn put_exchange(page: &mut Page, exchange: &ExchangeReport) {
    let title = format!("{} / {}", exchange.request, exchange.response);
    page.title(&title, PLAIN, &format!("{:.0} answers in a second", exchange.per_second));
    let named = [("connecting", &exchange.connecting), ("answer", &exchange.latency)];
    let rows: Vec<Vec<String>> = named
        .into_iter()
        .filter_map(|(name, latency)| Some([vec![name.to_owned()], percentiles(latency.as_ref()?)].concat()))
        .collect();
    table(page, &PERCENTILES, &rows);
    let mut how = vec![if exchange.spin { "both ends spin" } else { "both ends sleep while they wait" }.to_owned()];
    if exchange.split {
        how.push("requests in two halves".to_owned());
    }
    if !exchange.nodelay {
        how.push("Nagle's algorithm on".to_owned());
    }
    if exchange.streams > 1 {
        how.push(format!("{} connections", exchange.streams));
    }
    if let Some((own, far)) = exchange.own_processor.zip(exchange.far_processor) {
        how.push(format!("on processor {own} here and {far} there"));
    }
    page.field("how", &how.join(", "));
}

fn put_under_load(page: &mut Page, under_load: &UnderLoad) {
    let row = |name: &str, rate: String, latency: Option<&Latency>, per_minute: Option<f64>| {
        vec![
            name.to_owned(),
            rate,
            time(latency.map(|latency| latency.p50_us)),
            time(latency.map(|latency| latency.p99_us)),
            fixed(per_minute, 0),
        ]
    };
    let mut rows = vec![row("idle", "-".to_owned(), under_load.idle.as_ref(), under_load.idle_per_minute)];
    for loaded in &under_load.loaded {
        let name = crate::measured::name(loaded.direction);
        rows.push(row(name, or_dash(loaded.rate_bps), loaded.latency.as_ref(), loaded.per_minute));
    }
    table(page, &["load", "rate", "round trip", "p99", "per minute"], &rows);
}

fn put_mtu(page: &mut Page, mtu: &MtuReport) {
    for (name, path) in [("up", &mtu.up), ("down", &mtu.down)] {
        page.field(name, &path_mtu(path));
    }
}

fn path_mtu(path: &PathMtu) -> String {
    let Some(mtu) = path.mtu else { return "not even small packets arrived: UDP may be blocked".to_owned() };
    let mut text = format!("{mtu} B is the largest IP packet that passes");
    if path.black_hole {
        text += "; larger ones vanish without a word (a black hole)";
    }
    if let Some(interface) = path.interface_mtu.filter(|interface| *interface != mtu) {
        text += &format!("; the sender's interface would take {interface} B");
    }
    text
}
