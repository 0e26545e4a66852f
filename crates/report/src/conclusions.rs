//! What the figures of a survey say, in sentences: below its tables, in its JSON and on its page.

use fullpipe_measure::{
    CapacityOfDirection, Direction, ExchangeReport, Loaded, PathMtu, SizeRow, SizeSide, StreamsRow, TcpMtu, UnderLoad,
};
use fullpipe_page::percent;
use fullpipe_units::{Bytes, Rate};
use serde::Serialize;

use crate::{
    Survey,
    text::{count, or_dash},
};

/// A sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conclusion {
    /// Which direction it is about; `None`: both, or neither.
    pub direction: Option<Direction>,
    /// What the figures say.
    pub text: String,
    /// Whether something is to be done.
    #[serde(skip)]
    pub is_warning: bool,
}

impl Conclusion {
    fn plain(direction: impl Into<Option<Direction>>, text: String) -> Self {
        Self { direction: direction.into(), text, is_warning: false }
    }

    fn warning(direction: impl Into<Option<Direction>>, text: String) -> Self {
        Self { is_warning: true, ..Self::plain(direction, text) }
    }
}

impl Survey {
    /// What the figures say, in the order of the tables.
    pub fn conclusions(&self) -> Vec<Conclusion> {
        let mut all = of_sizes(&self.sizes);
        all.extend(of_streams(&self.streams));
        all.extend(self.exchanges.iter().filter_map(of_exchange));
        all.extend(self.under_load.iter().flat_map(of_load));
        for (direction, path) in
            self.mtu.iter().flat_map(|mtu| [(Direction::Up, &mtu.up), (Direction::Down, &mtu.down)])
        {
            all.push(Conclusion::plain(direction, path_mtu(path)));
            all.extend(self.tcp_mtu.iter().filter(|tcp| tcp.direction == direction).map(|tcp| of_tcp(path, tcp)));
        }
        all.extend(self.capacity.iter().flat_map(|capacity| &capacity.directions).map(of_capacity));
        all
    }
}

/// Whether messages of some sizes wait for the receiver's window, or for an acknowledgement.
pub(crate) fn of_sizes(rows: &[SizeRow]) -> Vec<Conclusion> {
    let side = |direction, of| window_says(rows, of).map(|text| Conclusion::warning(direction, text));
    let sides = [side(Direction::Up, |row| &row.up), side(Direction::Down, |row| &row.down)];
    let delay = delay_says(rows).map(|text| Conclusion::warning(None, text));
    sides.into_iter().chain([delay]).flatten().collect()
}

/// Which messages the receiver's window holds back most of the time.
fn window_says(rows: &[SizeRow], of: fn(&SizeRow) -> &SizeSide) -> Option<String> {
    let sizes = sizes_of(rows, |row| of(row).window_share.is_some_and(|share| share >= 0.5))?;
    Some(format!(
        "the receiver's window holds the sender back most of the time with messages of {sizes}; `fullpipe check` says what \
         keeps it small"
    ))
}

/// Which messages in two halves wait for a delayed acknowledgement most of the time.
fn delay_says(rows: &[SizeRow]) -> Option<String> {
    let waits = |row: &SizeRow| row.split_delayed.is_some_and(|part| part >= 0.5);
    let (sizes, first) = (sizes_of(rows, waits)?, rows.iter().find(|row| waits(row))?);
    Some(format!(
        "Nagle's algorithm and delayed acknowledgements hold messages of {sizes} that are written in two halves ({} of \
         those of {} wait, half of all longer than {}): {HALVES}",
        percent(first.split_delayed.unwrap_or(0.0)),
        first.size,
        time(first.split_us)
    ))
}

/// What helps.
const HALVES: &str = "write them at once, or set TCP_NODELAY";

/// Whether requests in two halves wait for a delayed acknowledgement.
pub(crate) fn of_exchange(exchange: &ExchangeReport) -> Option<Conclusion> {
    let (part, latency) = exchange.delayed.zip(exchange.latency)?;
    let (request, took) = (exchange.request, time(Some(latency.p50_us)));
    if part < 0.5 {
        let why = if part < 0.1 { ": the far end acknowledges at once, or a half fills a segment" } else { "" };
        let text = format!(
            "{} of the requests of {request} in two halves wait for a delayed acknowledgement{why}",
            percent(part)
        );
        return Some(Conclusion::plain(None, text));
    }
    Some(Conclusion::warning(
        None,
        format!(
            "Nagle's algorithm and delayed acknowledgements hold requests of {request} that are written in two halves: the \
             second half waits for the acknowledgement of the first, which the far end delays in the hope of sending it \
             with an answer ({} of them wait, half of all longer than {took}; written at once {}): {HALVES}",
            percent(part),
            time(exchange.at_once_us),
        ),
    ))
}

/// From the smallest to the largest of which it holds.
fn sizes_of(rows: &[SizeRow], holds: impl Fn(&SizeRow) -> bool) -> Option<String> {
    let held: Vec<&SizeRow> = rows.iter().filter(|row| holds(row)).collect();
    let (first, last) = (held.first()?.size, held.last()?.size);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}

/// A time in microseconds with its unit, shorter ones to a tenth of a microsecond.
pub(crate) fn time(us: Option<f64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 1e3 => format!("{us:.1} us"),
        Some(us) if us < 1e6 => format!("{:.2} ms", us / 1e3),
        Some(us) => format!("{:.2} s", us / 1e6),
    }
}

/// Whether one connection carries what several do.
pub(crate) fn of_streams(rows: &[StreamsRow]) -> Vec<Conclusion> {
    let side = |direction, of: fn(&StreamsRow) -> Option<Rate>| {
        sweep_says(rows, of).map(|text| Conclusion::plain(direction, text))
    };
    [side(Direction::Up, |row| row.up_bps), side(Direction::Down, |row| row.down_bps)].into_iter().flatten().collect()
}

/// Is it one flow, or the path? `None` for fewer than two numbers of connections.
fn sweep_says(rows: &[StreamsRow], of: impl Fn(&StreamsRow) -> Option<Rate>) -> Option<String> {
    let rate = |row: &StreamsRow| of(row).map_or(0.0, |rate| rate.bps() as f64);
    let (first, last) = (rows.first()?, rows.last()?);
    let before_last = rows.len().checked_sub(2).and_then(|index| rows.get(index))?;
    let best = rows.iter().map(rate).max_by(f64::total_cmp).filter(|&best| best > 0.0)?;
    let enough = rows.iter().find(|row| rate(row) >= NEAR * best).unwrap_or(last);
    let share = rate(first) / best;
    Some(if share >= SAME {
        "more connections carry no more: what limits is shared by all, the path or a machine".to_owned()
    } else if enough.streams == last.streams && rate(last) >= STILL_GROWING * rate(before_last) {
        format!(
            "each connection is limited by itself: {} {} of what {} carry, and the rate still grew; `fullpipe check` says \
             what limits it",
            carried(first.streams),
            percent(share),
            last.streams
        )
    } else {
        format!(
            "a single connection is limited by itself: {} {} of what {} carry; `fullpipe check` says what limits it",
            carried(first.streams),
            percent(share),
            enough.streams
        )
    })
}

fn carried(streams: u32) -> String {
    format!("{} {}", count(streams as usize, "connection"), if streams == 1 { "carries" } else { "carry" })
}

/// The fewest carry about as much as the most: tests on a shared path differ by that much.
const SAME: f64 = 0.9;

/// Enough is what comes so near to the best.
const NEAR: f64 = 0.95;

/// A last step that brings so much more shows that there was room.
const STILL_GROWING: f64 = 1.25;

/// What the load adds in each direction.
pub(crate) fn of_load(under_load: &UnderLoad) -> Vec<Conclusion> {
    let loaded = under_load.loaded.iter();
    loaded.filter_map(|loaded| Some(Conclusion::plain(loaded.direction, load_says(under_load, loaded)?))).collect()
}

/// What the load adds, and whether it filled the path.
fn load_says(under_load: &UnderLoad, loaded: &Loaded) -> Option<String> {
    let (idle, full) = (under_load.idle?.p50_us, loaded.latency?.p50_us);
    let mut text = format!("{} idle, {} loaded", time(Some(idle)), time(Some(full)));
    if full > idle {
        text += &format!(": payload adds {}", time(Some(full - idle)));
    }
    if loaded.steady == Some(false) {
        text += "; the rate did not level off, so the path may not have been full: try a longer -t or more \
                 connections (-P)";
    }
    Some(text)
}

/// The largest packet that passes.
pub(crate) fn path_mtu(path: &PathMtu) -> String {
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

/// What TCP makes of the path MTU that was probed.
pub(crate) fn of_tcp(path: &PathMtu, tcp: &TcpMtu) -> Conclusion {
    let kernel = tcp.path_mtu.map(|mtu| format!("; path MTU in the kernel {mtu} B")).unwrap_or_default();
    let segments = format!("segments of {} B{kernel}", or_dash(tcp.mss));
    if tcp.bytes == Bytes::ZERO {
        let way_out = "let ICMP \"too big\" pass, give the sender's route the path's MTU, or let the sender probe \
                       (net.ipv4.tcp_mtu_probing = 1)";
        return Conclusion::warning(tcp.direction, format!("{segments}, and nothing arrives: {way_out}"));
    }
    match path.mtu.zip(tcp.path_mtu) {
        Some((probed, believed)) if believed < probed => {
            Conclusion::warning(tcp.direction, format!("{segments}, less than passes"))
        }
        Some((probed, believed)) if believed > probed => {
            Conclusion::warning(tcp.direction, format!("{segments}, more than passes, and only some of it arrives"))
        }
        _ => Conclusion::plain(tcp.direction, segments),
    }
}

/// What is available in a direction.
pub(crate) fn of_capacity(capacity: &CapacityOfDirection) -> Conclusion {
    let found = &capacity.found;
    let text = match (found.available_bps, found.low_bps, found.high_bps) {
        (None, ..) => "too few trains arrived: UDP may be blocked, or the path loses much".to_owned(),
        (Some(_), Some(low), None) => {
            format!("at least {low}: no faster train could be sent, so the path may take more")
        }
        (Some(rate), low, high) => {
            format!("{rate} is available (between {} and {})", or_dash(low), or_dash(high))
        }
    };
    Conclusion::plain(capacity.direction, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_two_halves_name_the_delayed_acknowledgement_that_they_wait_for() {
        let latency = fullpipe_measure::Latency { p50_us: 44_010.0, ..Default::default() };
        let exchange = |delayed| ExchangeReport {
            request: Bytes::new(100),
            latency: Some(latency),
            at_once_us: Some(12.5),
            delayed,
            ..ExchangeReport::default()
        };
        let held = of_exchange(&exchange(Some(1.0))).unwrap();
        assert!(held.is_warning && held.text.contains("delayed acknowledgements hold requests of 100 B"), "{held:?}");
        assert!(held.text.contains("44.01 ms; written at once 12.5 us"), "{held:?}");
        let free = of_exchange(&exchange(Some(0.0))).unwrap();
        assert!(!free.is_warning && free.text.starts_with("0 %"), "{free:?}");
        assert_eq!(of_exchange(&exchange(None)), None);
    }

    fn says(rates: &[(u32, u64)]) -> Option<String> {
        let row = |&(streams, mbps): &(u32, u64)| StreamsRow {
            streams,
            up_bps: Some(Rate::from_bps(mbps * 1_000_000)),
            down_bps: None,
            retransmits: None,
        };
        sweep_says(&rates.iter().map(row).collect::<Vec<_>>(), |row| row.up_bps)
    }

    #[test]
    fn one_flow_is_told_from_the_path() {
        assert!(says(&[(1, 95), (2, 100), (4, 99)]).unwrap().starts_with("more connections carry no more"));
        let held = says(&[(1, 40), (2, 80), (4, 98), (8, 100)]).unwrap();
        assert!(held.contains("1 connection carries 40 % of what 4 carry"), "{held}");
        assert!(says(&[(1, 25), (2, 50), (4, 100)]).unwrap().contains("the rate still grew"));
        assert_eq!(says(&[(1, 100)]), None);
        assert_eq!(says(&[(1, 0), (2, 0)]), None);
    }
}
