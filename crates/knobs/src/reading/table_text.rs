//! PowerShell's Format-Table: columns by the dashes under their headings.
//!
//! A value belongs to the column whose dashes it stands above or below: texts begin where the dashes begin, numbers end
//! where they end. A heading may be broken over several lines.

use super::{
    Place, Refusal, RemarkKind, scan,
    sheet::{Sheet, shown},
    windows::{self, Property},
};
use crate::Family;

/// One run of characters without a space, with the columns of characters that it takes.
struct Word<'a> {
    text: &'a str,
    from: usize,
    to: usize,
}

struct Column {
    name: String,
    from: usize,
    to: usize,
}

/// The widest table that is read, in columns; Windows' widest object has about 40.
const MOST_COLUMNS: usize = 256;

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family(Family::Windows);
    let mut headings: Vec<&str> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut objects = 0_usize;
    for (number, line) in scan::lines(text) {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            // PowerShell puts an empty line between a table and the next, and none within one.
            headings.clear();
            columns.clear();
        } else if is_rule(trimmed) {
            columns = headed(&headings, line);
        } else if columns.is_empty() {
            headings.push(line);
            // A heading is a few lines high; what stood before it is something else.
            if headings.len() > 8 {
                headings.remove(0);
            }
        } else if windows::object(&row(number, line, &columns, sheet), sheet) {
            objects += 1;
        }
    }
    if objects > 0 {
        return Ok(());
    }
    Err(Refusal {
        place: Place { line: 1, column: 1 },
        problem: "the table has no column that is known".to_owned(),
        expected: windows::OBJECTS,
        way_out: "a table leaves out what does not fit the window; save a list or JSON instead: Get-NetTCPSetting | ConvertTo-Json",
    })
}

/// Whether a line is the dashes under the headings.
fn is_rule(trimmed: &str) -> bool {
    trimmed.starts_with('-') && trimmed.bytes().all(|byte| byte == b'-' || byte == b' ')
}

fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (column, (offset, c)) in line.char_indices().enumerate() {
        match (c.is_whitespace(), open) {
            (true, Some((start, from))) => {
                words.push(Word { text: line.get(start..offset).unwrap_or_default(), from, to: column });
                open = None;
            }
            (false, None) => open = Some((offset, column)),
            _ => {}
        }
    }
    if let Some((start, from)) = open {
        let text = line.get(start..).unwrap_or_default();
        words.push(Word { text, from, to: from + text.chars().count() });
    }
    words
}

fn headed(headings: &[&str], rule: &str) -> Vec<Column> {
    let dashes = words(rule).into_iter().take(MOST_COLUMNS);
    let mut columns: Vec<Column> =
        dashes.map(|dash| Column { name: String::new(), from: dash.from, to: dash.to }).collect();
    for heading in headings {
        for word in words(heading) {
            if let Some(column) = under(&columns, &word).and_then(|at| columns.get_mut(at)) {
                // A longer heading is none of ours, and must not be copied for each row.
                if column.name.len() + word.text.len() <= windows::LONGEST_NAME {
                    column.name.push_str(word.text);
                }
            }
        }
    }
    columns
}

/// The column that a word overlaps. Columns are in the order of the line, so that the search is a binary one.
fn under(columns: &[Column], word: &Word<'_>) -> Option<usize> {
    let at = columns.partition_point(|column| column.to <= word.from);
    columns.get(at).filter(|column| column.from < word.to).map(|_| at)
}

fn row(number: u32, line: &str, columns: &[Column], sheet: &mut Sheet) -> Vec<Property> {
    let mut properties: Vec<Property> = Vec::new();
    let mut last = None;
    let mut end = 0;
    for word in words(line) {
        let place = Place { line: number, column: u32::try_from(word.from).unwrap_or(u32::MAX).saturating_add(1) };
        // A value with a space in it, such as the name of an adapter, may be longer than its heading.
        let goes_on = last.filter(|_| word.from == end + 1);
        end = word.to;
        let Some(at) = under(columns, &word).or(goes_on) else {
            sheet.remark(RemarkKind::Unread, place, format!("`{}` stands under no heading", shown(word.text)));
            continue;
        };
        match properties.last_mut() {
            Some(property) if last == Some(at) => {
                property.value.push(' ');
                property.value.push_str(word.text);
            }
            _ => {
                let name = columns.get(at).map(|column| column.name.clone()).unwrap_or_default();
                properties.push(Property { name, value: word.text.to_owned(), place });
            }
        }
        last = Some(at);
    }
    properties
}
