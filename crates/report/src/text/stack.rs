//! What the engine did on a real interface.

use fullpipe_units::{Bytes, Micros, Rate};

use super::page::{BAD, DIM, GOOD, Look, PLAIN, Page, WARN, count, or_dash};
use crate::{DeviceAdvice, DeviceRow, DeviceTable, PresetRow, PresetTable, StackRun};

/// What `stack serve`, `connect` and `echo` did.
pub fn stack_run(run: &StackRun, look: Look) -> String {
    let mut page = Page::new(look);
    for one in &run.connections {
        let style = if one.failure.is_some() { BAD } else { GOOD };
        page.title(&one.peer.to_string(), style, &Rate::from_bps(one.rate_bps).to_string());
        let payload = format!("{} B sent, {} B received in {:.3} s", one.sent, one.received, one.seconds);
        page.field("payload", &payload);
        let segments = format!(
            "{} sent, {} received, {} retransmitted, {}",
            one.segments_sent,
            one.segments_received,
            one.retransmits,
            count(one.timeouts as usize, "timeout")
        );
        page.field("segments", &segments);
        let rtt = or_dash(one.rtt_us.map(|us| Micros::new(us.into())));
        page.field("path", &format!("round trip {rtt}, segments of {} B", or_dash(one.mss)));
        if let Some(failure) = &one.failure {
            page.styled_field("ended", BAD, failure);
        }
    }
    if run.connections.is_empty() {
        page.paragraph(0, PLAIN, "no connection came");
    }
    page.gap();
    let pool = run.pool;
    let style = if pool.free == pool.buffers { PLAIN } else { WARN };
    let text = format!("{} of {} buffers free, at most {} in use", pool.free, pool.buffers, pool.most_used);
    page.styled_field("pool", style, &text);
    page.finish()
}

/// The table of a device over its buffers.
pub fn device_table(table: &DeviceTable, look: Look) -> String {
    let mut page = Page::new(look);
    page.title(&table.scenario, PLAIN, &table.summary);
    let waits = if table.waits { ", its application waits for each set of buffers" } else { "" };
    let busy = Micros::new(table.per_packet_us);
    let rtt = Micros::new(table.rtt_us);
    let rate = table.rate_bps.map_or_else(String::new, |rate| format!("{}, ", Rate::from_bps(rate)));
    let lost = if table.loss > 0.0 {
        format!(", {} % lost each way", (table.loss * 1e5).round() / 1e3)
    } else {
        String::new()
    };
    let path = format!("{} over {rate}{rtt}{lost}", Bytes::new(table.bytes));
    page.field("device", &format!("{busy} per packet{waits}; {path}"));
    for fitted in &table.fitted {
        page.styled_field("fitted", WARN, fitted);
    }
    if let Some(published) = &table.published {
        page.field("published", published);
    }
    for role in ["sends", "receives"] {
        let rows: Vec<_> = table.rows.iter().filter(|row| row.role == role).collect();
        if rows.is_empty() {
            continue;
        }
        page.gap();
        let swept = if table.sweep == "all" { "buffers" } else { "out of order" };
        let [fourth, fifth] = if table.advice.is_some() { ["held", "memory"] } else { ["published", "apart"] };
        let head = format!("{swept:>12}  {:>9}  {:>13}  {fourth:>9}  {fifth:>9}", "seconds", "rate");
        page.pieces(0, &[(DIM, &format!("the engine {role}"))]);
        page.pieces(0, &[(DIM, &head)]);
        for row in rows {
            match (table.advice, row.held) {
                (Some(advice), Some(held)) => put_own_row(&mut page, row, (held, advice)),
                _ => put_row(&mut page, row, table.tolerance),
            }
        }
    }
    if let Some(advice) = table.advice {
        page.gap();
        put_advice(&mut page, advice);
    }
    page.finish()
}

/// A line for a device that nobody published figures of: what it costs instead.
fn put_own_row(page: &mut Page, row: &DeviceRow, (held, advice): (u64, DeviceAdvice)) {
    let advised = if row.role == "sends" { advice.sends } else { advice.receives } == Some(row.buffers);
    let memory = Bytes::new(held * advice.buffer_bytes).to_string();
    let figures = format!(
        "{:>12}  {:>9.3}  {:>13}  {held:>9}  {memory:>11}",
        row.buffers,
        row.seconds,
        Rate::from_bps(row.rate_bps).to_string()
    );
    let asked = row.asked.unwrap_or(held);
    let (style, remark) = match (row.valid, advised) {
        (false, _) => (WARN, "  the path did not keep up".to_owned()),
        (true, true) => (GOOD, "  set this".to_owned()),
        (true, false) if asked > held => (WARN, format!("  the whole pool, and it runs dry: {asked} are asked for")),
        (true, false) if held > advice.pool * 3 / 4 => (WARN, "  more than three quarters of the pool".to_owned()),
        (true, false) => (PLAIN, String::new()),
    };
    page.pieces(0, &[(PLAIN, &figures), (style, &remark)]);
}

fn put_advice(page: &mut Page, advice: DeviceAdvice) {
    let DeviceAdvice { connections, pool, .. } = advice;
    let for_all = count(usize::from(connections), "connection");
    match advice.receives.zip(advice.sends) {
        Some((receives, sends)) => {
            let words = format!(
                "SetSocketRxBuffers of {receives}, SetSocketTxBuffers and SetSocketUnackBuffers of {sends}: for each direction the smallest count within 3 % of its fastest that leaves a quarter of the pool of {pool} beside {for_all}"
            );
            page.styled_field("set", GOOD, &words);
            let lossy = format!("SetOutOfOrderBuffers of {} where packets get lost", receives.saturating_sub(1));
            page.field("or", &lossy);
        }
        None => page.styled_field(
            "set",
            WARN,
            &format!("nothing: {for_all} with 5 buffers in each list can hold more than three quarters of the pool of {pool}; take fewer, or build with a larger BUFFER_POOL_SIZE"),
        ),
    }
}

fn put_row(page: &mut Page, row: &DeviceRow, tolerance: f64) {
    let published = or_dash(row.published_s.map(|seconds| format!("{seconds:.3}")));
    let apart = or_dash(row.deviation.map(|off| format!("{:+.0} %", off * 100.0)));
    let figures = format!(
        "{:>12}  {:>9.3}  {:>13}  {published:>9}  ",
        row.buffers,
        row.seconds,
        Rate::from_bps(row.rate_bps).to_string()
    );
    let style = match row.deviation {
        None => PLAIN,
        Some(_) if row.fitted => WARN,
        Some(off) if off.abs() <= tolerance => GOOD,
        Some(_) => BAD,
    };
    let remark = match (row.fitted, row.valid) {
        (true, true) => "  fitted",
        (true, false) => "  fitted; the path did not keep up",
        (false, true) => "",
        (false, false) => "  the path did not keep up",
    };
    page.pieces(0, &[(PLAIN, &figures), (style, &format!("{apart:>9}")), (WARN, remark)]);
}

/// The presets beside each other.
pub fn preset_table(table: &PresetTable, look: Look) -> String {
    let mut page = Page::new(look);
    let [rtt, gap] = [table.rtt_us, table.gap_us].map(Micros::new);
    page.title(&table.scenario, PLAIN, &format!("the presets over {rtt}, profile {}", table.profile));
    let (messages, size) = (table.messages, table.message_bytes);
    for (work, what) in [
        ("messages", format!("{messages} messages of {size} B, one way, one every {gap}")),
        ("requests", format!("{messages} requests of {size} B, each in two writes, each answered")),
        (
            "pieces",
            format!("{} pieces of {size} B, one way, one every {}", table.pieces, Micros::new(table.piece_gap_us)),
        ),
        ("bulk", format!("{} B in writes of {size} B, as fast as it goes", table.bulk_bytes)),
    ] {
        let rows: Vec<_> = table.rows.iter().filter(|row| row.work == work).collect();
        if rows.is_empty() {
            continue;
        }
        page.gap();
        page.pieces(0, &[(DIM, &what)]);
        let [p50, p99] = if rows.iter().any(|row| row.latency.is_some()) { ["p50", "p99"] } else { ["", "seconds"] };
        let head = format!(
            "{:>12}  {p50:>9}  {p99:>9}  {:>8}  {:>5}  {:>9}  {:>10}",
            "preset", "segments", "acks", "peer acks", "wire bytes"
        );
        page.pieces(0, &[(DIM, &head)]);
        rows.into_iter().for_each(|row| put_preset(&mut page, row));
    }
    page.gap();
    for advice in table.advice() {
        page.entry(advice.preset, "low_latency".len(), &advice.text);
    }
    page.finish()
}

fn put_preset(page: &mut Page, row: &PresetRow) {
    let [p50, p99] = match row.latency {
        Some(latency) => [latency.p50_us, latency.p99_us].map(|us| Micros::new(us).to_string()),
        None => [String::new(), format!("{:.3}", row.seconds)],
    };
    let figures = format!(
        "{:>12}  {p50:>9}  {p99:>9}  {:>8}  {:>5}  {:>9}  {:>10}",
        row.preset, row.data_segments, row.acks, row.peer_acks, row.wire_bytes
    );
    let remark = if row.valid { "" } else { "  the path did not keep up" };
    page.pieces(0, &[(PLAIN, &figures), (WARN, remark)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PresetLatency;

    #[test]
    fn the_presets_are_advised_by_their_figures() {
        let mut table = crate::sample::presets();
        let text = preset_table(&table, Look { width: 100, ..Look::default() });
        for says in [
            "at most 7.90 ms instead of 48.0 ms",
            "35 data segments",
            "instead of 330",
            "0.06 s instead of 0.13 s",
            "40 instead of 27",
        ] {
            assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(says), "{says}: {text}");
        }
        // Where nothing is gained, nothing is praised.
        for row in &mut table.rows {
            row.latency = row.latency.map(|_| PresetLatency { p50_us: 8_000, p99_us: 9_000 });
            row.data_segments = 70;
        }
        let advice = table.advice();
        assert!(advice[0].text.starts_with("gains nothing here"), "{advice:?}");
        assert!(advice[1].text.starts_with("saves no segments here"), "{advice:?}");
    }
}
