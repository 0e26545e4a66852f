//! What `measure` found, and the line of each interval while it runs.

use fullpipe_diagnose::SenderSample;
use fullpipe_measure::{Counted, Cpu, DirectionMeasurement, Measurement, PeerKind, Phase, Progress};
use fullpipe_units::{Micros, Rate};

use super::{
    page::{GOOD, Look, PLAIN, Page, WARN, bar, counted, or_dash, percent},
    survey::table,
};
use crate::measured::{Measured, name, seconds_per_gb};

/// Columns of a bar in the line of an interval.
const INTERVAL_BAR: usize = 10;

/// The line of an interval: time, rates, and what the kernel says; on a terminal of that many columns also a bar as long as the
/// rate is beside the `largest` so far, and what doesn't fit is left out: first the windows, then the bar, then the round trip.
pub fn interval(progress: &Progress, largest: Rate, columns: Option<usize>) -> String {
    // Each with its turn to be left out.
    let mut parts = vec![(ALWAYS, format!("{:7.2} s", progress.elapsed.as_secs_f64()))];
    if columns.is_some() {
        let rate = progress.up_bps.max(progress.down_bps).map_or(0, Rate::bps);
        let part = rate as f64 / largest.bps().max(1) as f64;
        parts.push((2, format!("{:INTERVAL_BAR$}", bar(part, INTERVAL_BAR, true))));
    }
    for (name, rate) in [("up", progress.up_bps), ("down", progress.down_bps)] {
        parts.extend(rate.map(|rate| (ALWAYS, format!("{name} {rate}"))));
    }
    parts.extend(progress.rtt_us.map(|rtt| (3, format!("rtt {rtt}"))));
    for (turn, name, size) in [(1, "cwnd", progress.cwnd), (0, "window", progress.window)] {
        parts.extend(size.map(|size| (turn, format!("{name} {size}"))));
    }
    parts.extend(progress.retransmits.map(|count| (ALWAYS, format!("retransmitted {count}"))));
    if let Some(datagrams) = progress.datagrams {
        parts.push((ALWAYS, format!("lost {} of {}", datagrams.lost, datagrams.packets)));
        parts.extend(datagrams.jitter_us.map(|jitter_us| (ALWAYS, format!("jitter {:.3} ms", jitter_us / 1e3))));
    }
    if progress.phase == Phase::Omitted {
        parts.push((ALWAYS, "(omitted)".to_owned()));
    }
    for turn in 0..ALWAYS {
        let width: usize = parts.iter().map(|(_, part)| part.chars().count() + 2).sum();
        if columns.is_none_or(|columns| width - 2 <= columns) {
            break;
        }
        parts.retain(|(of_part, _)| *of_part != turn);
    }
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join("  ") + "\n"
}

/// The turn of a part of that line that is never left out.
const ALWAYS: u8 = 4;

/// The whole result.
pub fn measured(measured: &Measured<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    let measurement = measured.measurement;
    for direction in &measurement.directions {
        let account = if measurement.peer_kind == PeerKind::Iperf2 { "acknowledged" } else { "counted" };
        put_direction(&mut page, direction, account);
    }
    page.gap();
    put_processor(&mut page, measured);
    put_push(&mut page, measurement);
    let peer = match measurement.peer_kind {
        PeerKind::Fullpipe => "fullpipe; both ends were seen",
        PeerKind::Iperf3 => "an iperf3 server; only this end was seen",
        PeerKind::Iperf2 => "an iperf 2 server; only this end was seen",
    };
    page.field("far end", &format!("{} ({}), {peer}", measured.host, measurement.peer));
    if measurement.cancelled {
        page.styled_field("stopped", WARN, "before its time; the figures are of what was measured until then");
    }
    for warning in &measurement.warnings {
        page.styled_field("note", WARN, warning);
    }
    if let Some(output) = &measurement.server_output {
        page.gap();
        page.paragraph(0, PLAIN, "the server's output:");
        for line in output.lines() {
            page.paragraph(2, PLAIN, line);
        }
    }
    page.finish()
}

fn put_direction(page: &mut Page, direction: &DirectionMeasurement, account: &str) {
    page.title(name(direction.direction), GOOD, &or_dash(direction.rate_bps));
    page.field("received", &format!("{} in {:.2} s, as the receiver {account}", direction.bytes, direction.seconds));
    let omitted = direction.omitted_us;
    if omitted > Micros::ZERO {
        page.field("omitted", &format!("the first {:.2} s, which count in no other figure", omitted.as_secs_f64()));
    }
    if let Some(datagrams) = direction.datagrams {
        page.field("datagrams", &datagrams.to_string());
        return;
    }
    if let Some(steady) = direction.steady_bps.filter(|_| omitted == Micros::ZERO) {
        page.field("steady", &format!("{steady} without slow start"));
    }
    let idle = direction.idle_rtt.map(|rtt| rtt.min_us);
    let loaded = direction.loaded_rtt.map(|rtt| rtt.p50_us);
    page.field("round trip", &format!("{} idle (smallest), {} loaded (median)", or_dash(idle), or_dash(loaded)));
    let Some(transfer) = direction.transfers.first() else { return };
    let mut kernel = vec![transfer.sender.congestion_control.clone().unwrap_or_else(|| "-".to_owned())];
    if let Some(last) = transfer.sender_samples.last() {
        kernel.extend(last.mss.map(|mss| format!("segments of {mss} B")));
        kernel.extend(last.cwnd.map(|cwnd| format!("cwnd {cwnd}")));
        kernel.extend(last.offered_window.map(|window| format!("window {window}")));
    }
    if direction.transfers.len() > 1 {
        kernel.push(format!("the first of {} connections", direction.transfers.len()));
    }
    page.field("sender", &kernel.join(", "));
    let retransmits = direction.retransmits.map(|segments| counted(segments, "segment"));
    page.field("retransmitted", &or_dash(retransmits));
    if let Some(limited) = limited(transfer.sender_samples.last()) {
        page.field("limited by", &limited);
    }
    let lasts = direction.transfers.iter().map(|transfer| transfer.sender_samples.last());
    put_connections(page, &direction.counted.iter().zip(lasts).collect::<Vec<_>>());
}

/// More connections than this are summed up.
const MOST_CONNECTIONS: usize = 16;

/// What each of several connections got, with the sender's last sample.
fn put_connections(page: &mut Page, connections: &[(&Counted, Option<&SenderSample>)]) {
    if connections.len() > MOST_CONNECTIONS {
        let mut sorted: Vec<_> = connections.iter().map(|(counted, _)| counted.rate()).collect();
        sorted.sort_unstable();
        let [first, middle, last] = [0, sorted.len() / 2, sorted.len() - 1].map(|place| or_dash(sorted[place]));
        page.field(
            "each",
            &format!("{first} (slowest), {middle} (median), {last} (fastest); `--json` lists every connection"),
        );
        return;
    }
    if connections.len() < 2 {
        return;
    }
    let rows = (1..).zip(connections).map(|(number, (counted, last)): (u32, _)| {
        vec![
            number.to_string(),
            or_dash(counted.rate()),
            or_dash(counted.retransmits),
            or_dash(last.and_then(|sample| sample.rtt_us)),
            or_dash(last.and_then(|sample| sample.cwnd)),
        ]
    });
    table(page, &["connection", "rate", "retransmitted", "round trip", "cwnd"], &rows.collect::<Vec<_>>());
}

/// What the sender's kernel says that it waited for.
fn limited(last: Option<&SenderSample>) -> Option<String> {
    let last = last?;
    let busy = last.busy_us?.get();
    let share = |part: Option<Micros>| percent(part.map_or(0, Micros::get) as f64 / busy.max(1) as f64);
    Some(format!(
        "receive window {}, send buffer {} of the sender's busy time",
        share(last.rwnd_limited_us),
        share(last.sndbuf_limited_us)
    ))
}

/// What `--max` did, so that nobody takes it for what an application gets.
fn put_push(page: &mut Page, measurement: &Measurement) {
    let ends = [("here", measurement.own_push.as_ref()), ("there", measurement.far_push.as_ref())];
    for (end, push) in ends.into_iter().filter_map(|(end, push)| Some((end, push?))) {
        for (role, choice) in [("sent", &push.sending), ("received", &push.receiving)] {
            let Some(choice) = choice else { continue };
            let mut text = format!("{role} {end} with {}: {}", choice.mechanism.name(), choice.reason);
            for refused in &choice.refused {
                text += &format!("; {} can't be used: {}", refused.mechanism.name(), refused.reason);
            }
            if let Some(left) = choice.left {
                text += &format!("; left after {:.1} s, because {}", left.at_s, left.harm.name());
            }
            page.field("max", &text);
        }
    }
}

fn put_processor(page: &mut Page, measured: &Measured<'_>) {
    let measurement = measured.measurement;
    let of = |cpu: &Cpu| {
        let mut text = format!("{:.0} %", cpu.percent());
        if let Some(seconds) = seconds_per_gb(cpu.percent(), measured) {
            text += &format!(" ({seconds:.3} s per GB)");
        }
        text
    };
    let far = measurement.far_cpu.as_ref().map_or_else(|| "-".to_owned(), of);
    page.field("processor", &format!("{} here, {far} there", of(&measurement.own_cpu)));
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Bytes;

    use super::*;

    fn page_of(connections: u64) -> String {
        let connections: Vec<Counted> = (1..=connections)
            .map(|number| Counted {
                bytes: Bytes::new(number * 125_000),
                duration_us: Micros::new(1_000_000),
                ..Counted::default()
            })
            .collect();
        let mut page = Page::new(Look::default());
        put_connections(&mut page, &connections.iter().map(|one| (one, None)).collect::<Vec<_>>());
        page.finish()
    }

    #[test]
    fn each_of_several_connections_has_its_rate() {
        assert_eq!(page_of(1), "", "one connection's rate is the direction's");
        let few = page_of(3);
        assert_eq!(few.lines().count(), 4, "{few}");
        assert!(few.lines().last().unwrap().contains("3.00 Mbit/s"), "{few}");
        let many = page_of(40);
        assert!(many.contains("1.00 Mbit/s (slowest), 21.0 Mbit/s (median), 40.0 Mbit/s"), "{many}");
    }
}
