//! A device's packet buffers over its sockets.

use fullpipe_units::Bytes;

use super::page::{DIM, GOOD, Look, NAME, PLAIN, Page, TITLE, WARN, count};
use crate::{PoolShares, ShareRow};

/// What `share` found.
pub fn share(found: &PoolShares, look: Look) -> String {
    let mut page = Page::new(look);
    let sockets: usize = found.rows.iter().map(|row| usize::from(row.count)).sum();
    let statement = format!(
        "{} buffers of {}: {} for {}, {} left over, {} in reserve",
        found.pool,
        found.buffer,
        found.shared,
        count(sockets, "socket"),
        found.left,
        found.reserve
    );
    page.title("share", PLAIN, &statement);
    for row in &found.rows {
        page.gap();
        put_row(&mut page, row, found.buffer);
    }
    let bulk = found.rows.iter().any(|row| row.rate.is_some());
    if bulk {
        page.title("together", GOOD, &format!("{} of {} that the device can move", found.total, found.device));
        page.field("more", &found.stop.1);
    }
    if let Some(wait) = found.wait.filter(|_| bulk) {
        page.field("wait", &format!("a message waits {wait} at most behind packets of bulk sockets in the device"));
    }
    for (index, note) in found.notes.iter().enumerate() {
        if index == 0 {
            page.gap();
        }
        page.marked("note", WARN, note);
    }
    page.finish()
}

fn put_row(page: &mut Page, row: &ShareRow, buffer: Bytes) {
    let each = match (row.count, row.of) {
        (1, 1) => String::new(),
        (1, all) => format!("  1 of the {all}"),
        (some, all) if some == all => "  each".to_owned(),
        (some, all) => format!("  each of {some} of the {all}"),
    };
    page.pieces(0, &[(TITLE, &row.sockets), (DIM, &each)]);
    if let Some(rate) = row.rate {
        let held = row.held.map_or_else(String::new, |held| format!(", limited by: {}", held.words()));
        page.styled_field("reaches", GOOD, &format!("{rate} alone on the device{held}"));
    }
    if let Some((own, ample)) = row.latency {
        page.styled_field("a message", GOOD, &format!("takes {own}; with ample buffers {ample}"));
    }
    page.field(
        "memory",
        &format!("{} buffers, {}", row.buffers(), Bytes::new(u64::from(row.buffers()) * buffer.get())),
    );
    for (call, (_, reason)) in row.calls().iter().zip(&row.numbers) {
        page.pieces(2, &[(NAME, call)]);
        page.paragraph(6, PLAIN, reason);
    }
}
