//! What the engine did on a real interface.

use fullpipe_units::{Micros, Rate};

use super::page::{BAD, DIM, GOOD, Look, PLAIN, Page, WARN, count, or_dash};
use crate::{DeviceRow, DeviceTable, StackRun};

/// What `stack serve`, `connect` and `echo` did.
pub fn stack_run(run: &StackRun, look: Look) -> String {
    let mut page = Page::new(look);
    for one in &run.connections {
        let style = if one.failure.is_some() { BAD } else { GOOD };
        page.title(&one.peer.to_string(), style, &Rate::from_bps(one.rate_bps).to_string());
        let payload = format!("{} B sent, {} B received in {:.3} s", one.sent, one.received, one.seconds);
        page.field("payload", &payload);
        let segments = format!(
            "{} sent, {} received, {} sent again, {}",
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
    page.field("device", &format!("{busy} per packet{waits}; {} B over {rtt}", table.bytes));
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
        let head = format!("{swept:>12}  {:>9}  {:>13}  {:>9}  {:>9}", "seconds", "rate", "published", "apart");
        page.pieces(0, &[(DIM, &format!("the engine {role}"))]);
        page.pieces(0, &[(DIM, &head)]);
        for row in rows {
            put_row(&mut page, row, table.tolerance);
        }
    }
    page.finish()
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
