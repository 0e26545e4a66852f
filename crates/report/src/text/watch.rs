//! The connections of this host: a table, and the story of those that something holds back.

use fullpipe_diagnose::Limiter;
use fullpipe_units::{Bytes, Rate};
use fullpipe_watch::{Frame, Owner, Row, record::Whole};

use super::page::{BAD, DIM, Look, NAME, PLAIN, Page, TITLE, WARN, count, or_dash, percent};
use crate::{clean, json};

/// Connections with details below the table; all of them with `--verbose`.
const STORIES: usize = 3;

/// A table, and under it what holds the first ones back and what would lift it.
pub fn watch(frame: &Frame, look: Look) -> String {
    // A table may use all of a wide terminal, of which a page takes only so much.
    let width = look.width;
    let mut page = Page::new(look);
    let shown = frame.rows.len();
    let of =
        if shown < frame.matching { format!(", the first {shown} of {} shown", frame.matching) } else { String::new() };
    let [head, time] = watch_head(frame);
    page.pieces(0, &[(TITLE, &head), (TITLE, &of), (DIM, "   "), (DIM, &time)]);
    if shown > 0 {
        page.pieces(0, &[(DIM, &watch_header(width))]);
    }
    for row in &frame.rows {
        put_row(&mut page, row, width);
    }
    // Who has nothing more to send, and a full path, need no story.
    let is_well = |limiter: Limiter| matches!(limiter, Limiter::Application | Limiter::Path) && !look.verbose;
    let has_story = |row: &&Row| {
        row.limiter().is_some_and(|limiter| !is_well(limiter)) || row.notes.iter().any(|note| note.is_trouble)
    };
    let stories = if look.verbose { usize::MAX } else { STORIES };
    for row in frame.rows.iter().filter(has_story).take(stories) {
        put_story(&mut page, row, look.verbose);
    }
    for listener in &frame.listeners {
        page.gap();
        let who = listener.owner.as_ref().map(owner).unwrap_or_default();
        page.styled_field("listening", BAD, &format!("{} {who}: {}", listener.local, listener.note.text));
        page.field("do", &listener.note.fix);
    }
    if !frame.missing.is_empty() || !frame.remarks.is_empty() {
        page.gap();
    }
    for missing in &frame.missing {
        page.field("not seen", missing);
    }
    for remark in &frame.remarks {
        page.field("note", remark);
    }
    page.finish()
}

/// A whole recording: the averages of each connection, and what held it for most of its time.
pub fn recording(whole: &Whole, look: Look) -> String {
    let frame = &whole.frame;
    let mut page = Page::new(look);
    let ends = [whole.from.as_deref(), frame.time.as_deref()].into_iter().flatten().map(shorter);
    let ends: Vec<String> = ends.collect();
    let head = format!("recording of {} in {:.0} s", count(whole.intervals, "interval"), frame.interval_s);
    page.pieces(0, &[(TITLE, &head), (DIM, "   "), (DIM, &ends.join(" to "))]);
    page.finish() + &watch(&Frame { time: None, ..frame.clone() }, look)
}

/// One line for each connection, for a pipe; `header` with the names of the columns first.
pub fn watch_lines(frame: &Frame, with_header: bool) -> String {
    let mut page = Page::new(Look::default());
    if with_header {
        page.pieces(0, &[(PLAIN, &format!("{:<20}  {}", "TIME", watch_header(usize::MAX)))]);
    }
    let time = frame.time.as_deref().map_or_else(|| format!("{:.3}", frame.at_s), shorter);
    for row in &frame.rows {
        let trouble = row.notes.iter().find(|note| note.is_trouble).map(|note| format!("  {}", note.text));
        page.pieces(0, &[(PLAIN, &format!("{time:<20}  {}{}", cells(row, usize::MAX), trouble.unwrap_or_default()))]);
    }
    for listener in &frame.listeners {
        page.pieces(0, &[(PLAIN, &format!("{time:<20}  listening {}: {}", listener.local, listener.note.text))]);
    }
    page.finish()
}

/// Columns that the addresses get: what the others leave.
fn room(width: usize) -> [usize; 2] {
    match width {
        0..66 => [0, 15],
        66..100 => [0, 21],
        100..130 => [0, 28],
        _ => [25, 28],
    }
}

/// Whether a terminal has room for the congestion window and retransmissions, too.
fn is_wide(width: usize) -> bool {
    width >= 100
}

/// How many connections there are, and when that was.
pub fn watch_head(frame: &Frame) -> [String; 2] {
    let head = format!("{}, {} active", count(frame.connections, "TCP connection"), frame.active);
    [head, frame.time.as_deref().map(shorter).unwrap_or_default()]
}

/// The names of the columns that fit `width`.
pub fn watch_header(width: usize) -> String {
    let [local, peer] = room(width);
    let local = if local > 0 { format!("{:<local$} ", "LOCAL") } else { String::new() };
    let more = if is_wide(width) { format!(" {:>6} {:>4}", "CWND", "RETR") } else { String::new() };
    format!(
        "{:<12} {local}{:<peer$} {:>7} {:>6} {:>6}{more}  {}",
        "PROCESS", "PEER", "BIT/S", "RTT ms", "WINDOW", "LIMITER"
    )
}

/// A row but for its limiter's colour.
fn cells(row: &Row, width: usize) -> String {
    let (front, limiter) = parts(row, width);
    format!("{front}  {limiter}")
}

fn parts(row: &Row, width: usize) -> (String, String) {
    let [local, peer] = room(width);
    let local = if local > 0 { format!("{:<local$} ", cut(&row.local.to_string(), local)) } else { String::new() };
    let process = match (&row.owner, row.uid) {
        (Some(owner), _) => name(owner),
        (None, Some(uid)) => format!("uid {uid}"),
        (None, None) => "-".to_owned(),
    };
    let window = if row.is_receiving() { row.own_window } else { row.peer_window };
    let more = || {
        let cwnd = or_dash(row.cwnd.map(|bytes| short(bytes.get())));
        format!(" {cwnd:>6} {:>4}", or_dash(row.retransmissions))
    };
    let front = format!(
        "{:<12} {local}{:<peer$} {:>7} {:>6} {:>6}{}",
        cut(&process, 12),
        cut(&row.peer.to_string(), peer),
        or_dash(row.rate().map(|rate| short(rate.bps()))),
        or_dash(row.rtt_us.map(|rtt| format!("{:.1}", rtt.get() as f64 / 1e3))),
        or_dash(window.map(|bytes| short(bytes.get()))),
        if is_wide(width) { more() } else { String::new() },
    );
    (front, limiter(row))
}

fn limiter(row: &Row) -> String {
    let Some(diagnosis) = &row.diagnosis else { return "-".to_owned() };
    let Some(limiter) = row.limiter() else {
        return if row.is_receiving() { "seen at the sender" } else { "too little to judge" }.to_owned();
    };
    let detail = diagnosis.detail.as_ref().and_then(json::word).map(|word| format!(", {}", word.replace('_', " ")));
    format!("{limiter}{} {}", detail.unwrap_or_default(), percent(diagnosis.share))
}

/// How a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing can be said.
    Quiet,
    /// As it should be.
    Well,
    /// Something holds it back.
    Held,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRow {
    /// All but what limits it.
    pub front: String,
    /// What limits it.
    pub limiter: String,
    /// How it is.
    pub mood: Mood,
}

/// A connection as a line of `width` columns; text of a process is clean.
pub fn watch_row(row: &Row, width: usize) -> WatchRow {
    let (front, limiter) = parts(row, width);
    let mood = match row.limiter() {
        _ if row.notes.iter().any(|note| note.is_trouble) => Mood::Held,
        None => Mood::Quiet,
        Some(Limiter::Path | Limiter::Application) => Mood::Well,
        Some(_) => Mood::Held,
    };
    let left = width.saturating_sub(front.chars().count() + 2).max(8);
    WatchRow { limiter: cut(&limiter, left), front, mood }
}

/// What there is to say of one connection.
pub fn watch_story(row: &Row, look: Look) -> String {
    let mut page = Page::new(look);
    put_story(&mut page, row, look.verbose);
    page.finish()
}

fn put_row(page: &mut Page, row: &Row, width: usize) {
    let WatchRow { front, limiter, mood } = watch_row(row, width);
    let style = match mood {
        Mood::Quiet => DIM,
        Mood::Well => PLAIN,
        Mood::Held => WARN,
    };
    page.pieces(0, &[(PLAIN, &front), (PLAIN, "  "), (style, &limiter)]);
}

fn put_story(page: &mut Page, row: &Row, is_verbose: bool) {
    page.gap();
    let arrow = if row.is_receiving() { "<-" } else { "->" };
    let who = row.owner.as_ref().map(owner).unwrap_or_default();
    let old = if row.is_older { "longer than " } else { "" };
    page.sentence(
        0,
        &[
            (NAME, &format!("{} {arrow} {}", row.local, row.peer)),
            (DIM, &format!("  {who}, there for {old}{:.0} s", row.seen_s)),
        ],
    );
    if let Some(diagnosis) = row.diagnosis.as_ref().filter(|_| row.limiter().is_some()) {
        let word = json::word(&diagnosis.confidence).unwrap_or_default();
        page.styled_field("limited by", WARN, &format!("{} ({word} confidence)", limiter(row)));
        let evidence = if is_verbose { usize::MAX } else { 1 };
        for evidence in diagnosis.evidence.iter().take(evidence) {
            page.field("because", &evidence.text);
        }
        page.field("do", &diagnosis.action);
    }
    for note in row.notes.iter().filter(|note| note.is_trouble || is_verbose) {
        let label = if note.is_sure { "seen" } else { "likely" };
        page.field(label, &note.text);
        page.field("", &note.fix);
    }
    let held: Vec<String> = row.seconds.iter().map(|(limiter, time)| format!("{limiter} {time:.1} s")).collect();
    if held.len() > 1 {
        page.field("so far", &held.join(", "));
    }
    if is_verbose {
        let size = |bytes: Option<Bytes>| or_dash(bytes);
        page.field(
            "buffers",
            &format!(
                "send {}, receive {}; {} in flight, {} unread",
                size(row.send_buffer),
                size(row.receive_buffer),
                size(row.in_flight),
                row.unread
            ),
        );
    }
}

/// `nginx (pid 7, fd 12), container 4f4f4f4f4f4f`.
fn owner(owner: &Owner) -> String {
    let place = match (&owner.container, &owner.cgroup) {
        (Some(container), _) => format!(", container {container}"),
        (None, Some(cgroup)) => format!(", {cgroup}"),
        (None, None) => String::new(),
    };
    let fd = owner.fd.map(|fd| format!(", fd {fd}")).unwrap_or_default();
    format!("{} (pid {}{fd}){place}", owner.process, owner.pid)
}

/// The process's name, as far as this user may know it.
fn name(owner: &Owner) -> String {
    if owner.process.is_empty() { format!("pid {}", owner.pid) } else { clean(&owner.process).into_owned() }
}

/// At most `columns` characters.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['~']).collect()
}

/// Three digits and a decimal prefix, as rates have it: `6.45M`.
fn short(number: u64) -> String {
    Rate::from_bps(number)
        .to_string()
        .replace(" bit/s", "")
        .replace(" kbit/s", "k")
        .replace(" Mbit/s", "M")
        .replace(" Gbit/s", "G")
}

/// To the second.
fn shorter(time: &str) -> String {
    time.split_once('.').map_or_else(|| time.to_owned(), |(seconds, _)| format!("{seconds}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_hostile_process_styles_nothing_and_no_line_of_the_table_is_wider_than_the_terminal() {
        for width in [60, 80, 100, 120, 200] {
            let text = plain(&watch(&sample::watched(), Look { width, ..Look::default() }));
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
            let wide = text.lines().skip(1).take(3).find(|line| line.chars().count() > width);
            assert_eq!(wide, None, "{width}: {text}");
        }
        let lines = plain(&watch_lines(&sample::watched(), true));
        assert!(!lines.contains(['\u{1b}', '\u{202e}']), "{lines:?}");
        assert_eq!(lines.lines().count(), 4, "a header, two connections and a listener: {lines}");
    }

    #[test]
    fn what_a_system_does_not_tell_is_a_dash_and_no_zero() {
        let mut frame = sample::watched();
        let row = &mut frame.rows[1];
        (row.sent_bps, row.received_bps, row.rtt_us, row.uid) = (None, None, None, None);
        let cells = watch_row(row, 80).front.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((cells[0].as_str(), &cells[2..4]), ("-", ["-".to_owned(), "-".to_owned()].as_slice()), "{cells:?}");
        row.owner = Some(Owner { pid: 4_711, ..Owner::default() });
        assert!(watch_row(row, 80).front.starts_with("pid 4711 "), "a name that may not be known");
        frame.rows[0].owner.iter_mut().for_each(|owner| owner.fd = None);
        let text = plain(&watch(&frame, Look { width: 100, ..Look::default() }));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("(pid 4711)") && text.contains("(ESTATS) of 3 connections were off"), "{text}");
    }

    #[test]
    fn a_page_tells_what_holds_a_connection_and_what_lifts_it() {
        let text = plain(&watch(&sample::watched(), Look { width: 100, ..Look::default() }));
        for part in [
            "40 TCP connections, 2 active, the first 2 of 3 shown",
            "send buffer, pinned by application 93 %",
            "limited by",
            "the application set SO_SNDBUF",
            "leave SO_SNDBUF out of the application",
            "container 4f4f4f4f4f4f",
            "application 0.5 s, send buffer 11.5 s",
            "129 connections wait",
            "run as root",
            "uid 33",
        ] {
            assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in
            [(0, "0"), (999, "999"), (65_535, "65.5k"), (6_291_456, "6.29M"), (10_000_000_000, "10.0G")]
        {
            assert_eq!(short(number), text);
        }
    }
}
