//! What `measure` found with several tests: a table each.

use fullpipe_measure::{
    Capacity, Direction, ExchangeReport, Latency, MtuReport, SizeRow, SizeSide, StreamsRow, TcpMtu, UnderLoad,
};
use fullpipe_units::Rate;

use super::page::{DIM, Look, PLAIN, Page, TITLE, WARN, bar, count, or_dash, percent};
use crate::{
    Comparison, Pair, Survey,
    conclusions::{self, time},
};

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
        put_mtu(&mut page, mtu, &survey.tcp_mtu);
    }
    if let Some(capacity) = &survey.capacity {
        put_capacity(&mut page, capacity);
    }
    if survey.cancelled {
        page.gap();
        page.styled_field("stopped", WARN, "before its time; only what was complete is shown");
    }
    page.finish()
}

/// A row of a sweep for a person who looks on while it runs: its place, what was varied, and each direction's rate with a bar
/// as long as the rate is beside the largest so far; no bar where `largest` is none, as in a log.
pub fn sweep_row(
    place: usize,
    of: usize,
    label: &str,
    rates: [Option<Rate>; 2],
    largest: Option<Rate>,
    look: Look,
) -> String {
    // The text takes 62 columns; both bars share the rest, and where it is too little there are none.
    let cells = (look.width.saturating_sub(62) / 2).min(20);
    let largest = largest.filter(|_| cells >= 4);
    let side = |name: &str, rate: Option<Rate>| {
        let part = |largest: Rate| rate.map_or(0.0, |rate| rate.bps() as f64 / largest.bps().max(1) as f64);
        let bar = largest.map(|largest| format!(" {:cells$}", bar(part(largest), cells, look.unicode)));
        format!("  {name} {:>13}{}", or_dash(rate), bar.unwrap_or_default())
    };
    let width = of.to_string().len();
    let line = format!("{place:>width$} of {of}  {label:>12}{}{}", side("up", rates[0]), side("down", rates[1]));
    format!("{}\n", line.trim_end())
}

/// What requests of one pair of sizes found, for a person who looks on.
pub fn exchange_row(place: usize, of: usize, found: &ExchangeReport) -> String {
    let width = of.to_string().len();
    let median = found.latency.map_or_else(String::new, |latency| format!(", median {}", time(Some(latency.p50_us))));
    let sizes = format!("{} / {}", found.request, found.response);
    format!("{place:>width$} of {of}  {sizes:>16}  {:.0} transactions/s{median}\n", found.per_second)
}

/// MB/s and latency of two sweeps, size by size.
pub fn comparison(comparison: &Comparison, look: Look) -> String {
    let mut page = Page::new(look);
    page.gap();
    page.title("before and after", PLAIN, "MB/s of payload, and the round trip of a message with its answer");
    let headings = ["message", "up before", "after", "", "down before", "after", "", "round trip before", "after", ""];
    let plus_minus = if look.unicode { "\u{b1}" } else { "+-" };
    let cells = |pair: &Pair, words: &dyn Fn(Option<f64>) -> String| {
        let of = |figure: Option<f64>, spread: Option<f64>| {
            let spread = spread.map(|percent| format!(" {plus_minus}{percent:.0} %"));
            words(figure) + &spread.unwrap_or_default()
        };
        [of(pair.before, pair.before_spread_percent), of(pair.after, pair.after_spread_percent), gain(pair)]
    };
    let rate = |rate: Option<f64>| fixed(rate.map(|rate| rate / 8e6), 2);
    let rows = comparison.rows.iter().map(|row| {
        let trip = cells(&row.round_trip_us, &time);
        [&[row.size.to_string()][..], &cells(&row.up_bps, &rate), &cells(&row.down_bps, &rate), &trip].concat()
    });
    table(&mut page, &headings, &rows.collect::<Vec<_>>());
    page.gap();
    for note in comparison.notes() {
        page.paragraph(2, DIM, note);
    }
    page.finish()
}

/// How much more, and whether that says anything.
fn gain(pair: &Pair) -> String {
    let mark = match pair.within_noise {
        Some(true) => " ~",
        Some(false) => "",
        None => " ?",
    };
    or_dash(pair.percent.map(|percent| format!("{percent:+.0} %{mark}")))
}

/// Cells under their headings, each column as wide as its widest. Columns that don't fit beside the others stand below, again
/// behind the first.
pub(super) fn table(page: &mut Page, headings: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(headings.get(column).map(|heading| heading.chars().count())).max().unwrap_or(0)
    };
    let cell = |column: usize, cell: &str| format!("  {cell:>width$}", width = width(column));
    let mut next = 1;
    let mut is_first = true;
    while is_first || next < headings.len() {
        let mut used = width(0) + 2;
        let begin = next;
        // One at the least, however narrow the terminal.
        while next < headings.len() && (next == begin || used + width(next) + 2 <= page.look.width) {
            used += width(next) + 2;
            next += 1;
        }
        let line = |cells: &[&str]| -> String {
            let shown = [0].into_iter().chain(begin..next);
            shown.filter_map(|column| Some(cell(column, cells.get(column)?))).collect()
        };
        if !is_first {
            page.gap();
        }
        is_first = false;
        page.pieces(0, &[(TITLE, &line(headings))]);
        for row in rows {
            page.pieces(0, &[(PLAIN, &line(&row.iter().map(String::as_str).collect::<Vec<_>>()))]);
        }
    }
}

fn fixed(value: Option<f64>, digits: usize) -> String {
    or_dash(value.map(|value| format!("{value:.digits$}")))
}

fn put_sizes(page: &mut Page, rows: &[SizeRow]) {
    let headings = ["message", "up", "s/GB", "waited", "down", "s/GB", "waited", "round trip", "in two halves"];
    let both = |own: Option<f64>, far: Option<f64>| fixed(own.zip(far).map(|(own, far)| own + far).or(own), 3);
    let side = |side: &SizeSide| {
        [or_dash(side.rate_bps), both(side.own_seconds_per_gb, side.far_seconds_per_gb), waited(side)]
    };
    let cells = rows.iter().map(|row| {
        let ends = [time(row.round_trip_us), time(row.split_us)];
        [&[row.size.to_string()][..], &side(&row.up), &side(&row.down), &ends].concat()
    });
    table(page, &headings, &cells.collect::<Vec<_>>());
    page.gap();
    page.paragraph(
        2,
        DIM,
        "s/GB: processor seconds of both ends per 10^9 B. Waited: the part of the time in which the sender had something \
         to send and stood waiting, for an acknowledgement that opens the receiver's window or for room in its own buffer. \
         Round trip: a message and an answer of one byte, median, small writes leaving at once and both ends asleep while \
         they wait. In two halves: the message in two writes with Nagle's algorithm on, so that the second waits for the \
         acknowledgement of the first, and that for its delay.",
    );
    for said in conclusions::of_sizes(rows) {
        let name = said.direction.map_or("note", crate::measured::name);
        page.styled_field(name, WARN, &said.text);
    }
}

/// For what the sender waited longest.
fn waited(side: &SizeSide) -> String {
    let Some((window, buffer)) = side.window_share.zip(side.buffer_share) else { return "-".to_owned() };
    match window.max(buffer) {
        most if most < 0.01 => "no".to_owned(),
        most if window >= buffer => format!("window {}", percent(most)),
        most => format!("buffer {}", percent(most)),
    }
}

fn put_streams(page: &mut Page, rows: &[StreamsRow]) {
    let cells = rows
        .iter()
        .map(|row| vec![row.streams.to_string(), or_dash(row.up_bps), or_dash(row.down_bps), or_dash(row.retransmits)]);
    table(page, &["connections", "up", "down", "retransmitted"], &cells.collect::<Vec<_>>());
    for said in conclusions::of_streams(rows) {
        page.title(said.direction.map_or("note", crate::measured::name), PLAIN, &said.text);
    }
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

const PERCENTILES: [&str; 8] = ["", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

fn put_exchange(page: &mut Page, exchange: &ExchangeReport) {
    let title = format!("{} / {}", exchange.request, exchange.response);
    page.title(&title, PLAIN, &format!("{:.0} transactions/s", exchange.per_second));
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
    if let Some(said) = conclusions::of_exchange(exchange) {
        page.styled_field("note", if said.is_warning { WARN } else { PLAIN }, &said.text);
    }
}

fn put_under_load(page: &mut Page, under_load: &UnderLoad) {
    let kept =
        |latency: Option<Latency>| [latency.map(|latency| latency.p50_us), latency.map(|latency| latency.p99_us)];
    let trimmed = |latency: Option<Latency>| latency.map(|latency| latency.trimmed_us);
    let row = |name: &str, rate: Option<Rate>, times: &[Option<f64>], per_minute: Option<f64>| {
        let times = times.iter().map(|us| time(*us));
        [name.to_owned(), or_dash(rate)].into_iter().chain(times).chain([fixed(per_minute, 0)]).collect::<Vec<_>>()
    };
    let [p50, p99] = kept(under_load.idle);
    let new = [under_load.idle_connecting, under_load.idle_asking].map(trimmed);
    let mut rows = vec![row("idle", None, &[p50, p99, new[0], new[1], None], under_load.idle_per_minute)];
    for loaded in &under_load.loaded {
        let [p50, p99] = kept(loaded.latency);
        let times = [p50, p99, trimmed(loaded.connecting), trimmed(loaded.asking), loaded.own_rtt_us];
        rows.push(row(crate::measured::name(loaded.direction), loaded.rate_bps, &times, loaded.per_minute));
    }
    let headings = ["load", "rate", "round trip", "p99", "handshake", "request", "RTT under load", "per minute"];
    table(page, &headings, &rows);
    page.gap();
    for said in conclusions::of_load(under_load) {
        page.field(said.direction.map_or("note", crate::measured::name), &said.text);
    }
    let text = format!(
        "Round trip: one byte and an answer on a connection that stays open, beside {} with payload; median; both ends sleep \
         while they wait. Per minute: the responsiveness of draft-ietf-ippm-responsiveness without TLS, from the \
         handshakes and first requests of new connections and the RTT under load (means \
         without the longest twentieth). Requests are single bytes and no HTTP, and the number of connections is fixed: \
         compare it with itself rather than with other tools.",
        count(under_load.streams as usize, "connection")
    );
    page.paragraph(2, DIM, &text);
}

/// What an Ethernet frame carries that is no jumbo frame.
const ETHERNET: u32 = 1_500;

fn put_mtu(page: &mut Page, mtu: &MtuReport, tcp: &[TcpMtu]) {
    for (direction, path) in [(Direction::Up, &mtu.up), (Direction::Down, &mtu.down)] {
        page.title(crate::measured::name(direction), PLAIN, &conclusions::path_mtu(path));
        if let Some(tcp) = tcp.iter().find(|tcp| tcp.direction == direction) {
            let said = conclusions::of_tcp(path, tcp);
            page.styled_field("TCP", if said.is_warning { WARN } else { PLAIN }, &said.text);
        }
    }
    if let Some(both) = mtu.up.mtu.zip(mtu.down.mtu).map(|(up, down)| up.min(down)) {
        let jumbo = if both > ETHERNET { " (a jumbo packet)" } else { "" };
        page.gap();
        page.field("both ways", &format!("{both} B is the largest that both ends and the path take{jumbo}"));
    }
}

fn put_capacity(page: &mut Page, capacity: &Capacity) {
    for direction in &capacity.directions {
        let found = &direction.found;
        page.title(crate::measured::name(direction.direction), PLAIN, &conclusions::of_capacity(direction).text);
        page.field("bursts", &format!("{} back to back", or_dash(found.burst_bps)));
        let lost = if found.lost > 0 { format!(", {} of them lost", found.lost) } else { String::new() };
        page.field(
            "from",
            &format!("{} trains of {} datagrams, {} B each{lost}", found.trains, found.datagrams, found.packet_bytes),
        );
    }
    page.gap();
    page.paragraph(
        2,
        DIM,
        "In bits of IP packets. Trains are short: what a shaper lets through before its limit shows is taken for the \
         path's rate.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_stand_below_behind_the_first() {
        let headings = ["message", "up", "down", "round trip"];
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [row(["16,384 B", "5.40 Gbit/s", "12.4 Gbit/s", "18.0 us"])];
        let shown = |width| {
            let mut page = Page::new(Look { width, ..Look::default() });
            table(&mut page, &headings, &rows);
            anstream::adapter::strip_str(&page.finish()).to_string()
        };
        assert_eq!(shown(80).lines().count(), 2);
        let narrow = shown(40);
        let words: Vec<Vec<&str>> = narrow.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["message", "up", "down"]);
        assert_eq!(words[3], ["message", "round", "trip"]);
        assert_eq!(words[4], ["16,384", "B", "18.0", "us"]);
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn a_row_of_a_sweep_fits_the_screen_and_shows_the_rates_as_bars() {
        let rate = |bps| Some(Rate::from_bps(bps));
        for (width, cells) in [(60, 0_usize), (80, 9), (120, 20)] {
            let look = Look { width, ..Look::default() };
            let row = sweep_row(
                3,
                12,
                "4,096 B",
                [rate(50_000_000), rate(100_000_000)],
                Some(Rate::from_bps(100_000_000)),
                look,
            );
            assert!(row.trim_end().len() <= width, "{row}");
            assert!(row.starts_with(" 3 of 12       4,096 B  up   50.0 Mbit/s "), "{row}");
            assert_eq!(row.matches('#').count(), cells + cells.div_ceil(2), "{row}");
        }
        let none = sweep_row(1, 1, "1 B", [None, None], Some(Rate::ZERO), Look { unicode: true, ..Look::default() });
        assert!(none.trim_end().ends_with("down             -"), "{none:?}");
        let logged = sweep_row(3, 12, "4,096 B", [rate(50_000_000), rate(100_000_000)], None, Look::default());
        assert_eq!(logged, " 3 of 12       4,096 B  up   50.0 Mbit/s  down    100 Mbit/s\n");
    }
}
