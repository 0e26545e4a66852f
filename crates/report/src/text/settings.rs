//! The settings of one machine, with what its catalogue says of them.

use fullpipe_host::windows::connections::End;
use fullpipe_knobs::{
    Family,
    catalogue::Honoured,
    reading::{Place, Reading, RemarkKind, SettingRow},
};

use super::page::{BAD, DIM, GOOD, Look, NAME, PLAIN, Page, WARN, count, value_or_absent};
use crate::{Connections, SettingsList};

/// Each setting with its value, default and meaning, and on the files.
pub fn settings(list: &SettingsList<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    let differ = list.rows.iter().filter(|row| list.is_default(row) == Some(false)).count();
    let platform = list.merged.settings.platform.to_string();
    let statement = match differ {
        0 => format!("{platform}: {}", count(list.rows.len(), "setting")),
        1 => format!("{platform}: {}, 1 differs from the default", count(list.rows.len(), "setting")),
        _ => format!("{platform}: {}, {differ} differ from the default", count(list.rows.len(), "setting")),
    };
    page.title("settings", PLAIN, &statement);
    for reading in list.readings {
        put_file(&mut page, reading);
    }
    for row in &list.rows {
        put_row(&mut page, row, list.is_default(row));
    }
    put_remarks(&mut page, list);
    if let Some(connections) = list.connections {
        put_connections(&mut page, connections);
    }
    let platform = &list.merged.settings.platform;
    let versions_differ = matches!(platform.family, Family::Linux | Family::Windows | Family::FreeBsd);
    if versions_differ && platform.version.is_empty() && !list.rows.is_empty() {
        page.gap();
        let words = "the files don't say which version this is, and defaults depend on it; name it: --platform";
        page.marked("note", DIM, &format!("{words} {}-{}", platform.family, example_version(platform.family)));
    }
    if list.hidden > 0 && !list.is_part {
        page.gap();
        let words = format!("{} not shown: absent, or not in the catalogue; --all shows all", list.hidden);
        page.marked("note", DIM, &words);
    }
    page.finish()
}

fn example_version(family: Family) -> &'static str {
    match family {
        Family::Windows => "2012",
        Family::FreeBsd => "14.1",
        Family::MacOs => "14",
        Family::Linux | Family::NetBurner | Family::Unknown => "6.18",
    }
}

fn put_file(page: &mut Page, reading: &Reading) {
    let others = match reading.others {
        0 => String::new(),
        number => format!(", and {number} more that the catalogue doesn't know"),
    };
    let found = count(reading.found.len(), "setting");
    page.field("from", &format!("{}: {}; {found}{others}", reading.file, reading.format));
}

fn put_row(page: &mut Page, row: &SettingRow, is_default: Option<bool>) {
    let described = &row.described;
    let style = match is_default {
        Some(false) => WARN,
        Some(true) => GOOD,
        None => PLAIN,
    };
    let value = value_or_absent(described.value.as_deref());
    let default = match (is_default, &described.default) {
        (Some(true), _) => "  (the default)".to_owned(),
        (_, Some(default)) => format!("  (default {default})"),
        (_, None) => "  (default unknown)".to_owned(),
    };
    let place = match (&row.file, row.place) {
        (Some(file), Some(place)) => format!("  {}", at(file, place)),
        _ => String::new(),
    };
    let knob = described.knob.to_string();
    page.sentence(2, &[(NAME, &knob), (PLAIN, "  "), (style, &value), (DIM, &default), (DIM, &place)]);
    if !described.meaning.is_empty() {
        page.paragraph(6, PLAIN, &described.meaning);
    }
    let (words, style) = match described.honoured {
        Honoured::Yes => ("", DIM),
        Honoured::Partly => ("partly honoured", WARN),
        Honoured::Ignored => ("IGNORED by this version", BAD),
        Honoured::ReadOnly => ("read-only in this version", WARN),
        Honoured::Absent => ("this version has no such setting", WARN),
        _ => ("not known for a fact whether this version honours it", DIM),
    };
    match (words, row.note.as_str()) {
        ("", "") => {}
        ("", note) => page.paragraph(6, DIM, note),
        (words, "") => page.paragraph(6, style, words),
        (words, note) => page.paragraph(6, style, &format!("{words}: {note}")),
    }
}

fn put_remarks(page: &mut Page, list: &SettingsList<'_>) {
    let mut remarks = list
        .readings
        .iter()
        .flat_map(|reading| reading.remarks.iter().map(move |remark| (&reading.file, remark)))
        .peekable();
    if remarks.peek().is_some() || !list.contradictions().is_empty() {
        page.title("remarks", WARN, "on the files");
    }
    for (file, remark) in remarks {
        let (word, style) = match remark.kind {
            RemarkKind::Unread => ("not read", BAD),
            RemarkKind::Misspelt => ("misspelt", BAD),
            RemarkKind::OutOfRange => ("out of range", BAD),
            RemarkKind::Contradiction => ("contradiction", WARN),
            RemarkKind::Inactive => ("inactive", WARN),
            _ => ("note", DIM),
        };
        page.paragraph(2, style, &format!("{}: {word}", at(file, remark.place)));
        page.paragraph(6, PLAIN, &remark.message);
    }
    for one in list.contradictions() {
        page.paragraph(2, WARN, &format!("{}: contradiction", at(&one.left_from.0, one.left_from.1)));
        let words = format!(
            "{}; taken is {} of {}, and left is {}",
            one.message,
            value_or_absent(one.taken.as_deref()),
            at(&one.taken_from.0, one.taken_from.1),
            value_or_absent(one.left.as_deref()),
        );
        page.paragraph(6, PLAIN, &words);
    }
}

fn put_connections(page: &mut Page, connections: &Connections) {
    let pinned = connections.pinned();
    let total = count(connections.observed.len(), "connection");
    let (style, statement) = match pinned {
        0 => (PLAIN, format!("{total}; none is known to have a buffer that its application set")),
        _ => (WARN, format!("{total}; {pinned} very likely with a buffer that the application set")),
    };
    page.title("connections", style, &statement);
    let shared = connections.problem();
    for one in &connections.observed {
        let program = one.program.as_deref().unwrap_or("an unknown program");
        let ends = format!("{} - {}", one.connection.local, one.connection.remote);
        let whose = format!("  {program} (process {})", one.connection.pid);
        page.sentence(2, &[(NAME, &ends), (DIM, &whose)]);
        match &one.verdict {
            Ok(verdict) => {
                put_end(page, "receive window", &verdict.receive);
                put_end(page, "in flight", &verdict.send);
            }
            Err(problem) if shared.is_none() => page.paragraph(6, DIM, &format!("not known: {problem}")),
            Err(_) => {}
        }
    }
    if let Some(problem) = shared {
        page.gap();
        page.marked("note", DIM, &format!("which buffers are pinned is not known: {problem}"));
    }
}

fn put_end(page: &mut Page, name: &str, end: &End) {
    let (style, word) = match end.pinned {
        Some(true) => (WARN, "PINNED: "),
        Some(false) => (GOOD, "not pinned: "),
        None => (DIM, ""),
    };
    page.paragraph(6, style, &format!("{name} at most {} B: {word}{}", end.largest, end.why));
}

/// `loader.conf:3:1`, as compilers name a place.
fn at(file: &str, place: Place) -> String {
    format!("{file}:{}:{}", place.line, place.column)
}
