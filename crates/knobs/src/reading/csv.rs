//! ConvertTo-Csv and Export-Csv: a line of names, then a line for each object.

use super::{
    Place, Refusal, RemarkKind,
    scan::Scan,
    sheet::Sheet,
    windows::{self, Form, Property},
};
use crate::Family;

/// The most columns that are read; the widest object of Windows has about 60.
const MOST_COLUMNS: usize = 1_024;

struct Field {
    text: String,
    place: Place,
}

const FORM: Form = Form {
    is: "fields between separators, in quotation marks or without",
    way_out: "save it with: Get-NetTCPSetting | Export-Csv FILE",
};

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family(Family::Windows);
    let mut scan = Scan::new(text);
    // Windows PowerShell names the type on a line of its own.
    while scan.rest().starts_with("#TYPE") {
        scan.take_while(|c| c != '\n');
        scan.skip_spaces();
    }
    scan.skip_spaces();
    let first = scan.rest().lines().next().unwrap_or_default();
    let delimiter = [',', ';', '\t'].into_iter().find(|mark| first.contains(*mark)).unwrap_or(',');
    let mut heading = record(&mut scan, delimiter)?;
    // A longer name is none of ours, and must not be copied for each line.
    heading.iter_mut().filter(|name| name.text.len() > windows::LONGEST_NAME).for_each(|name| name.text.clear());
    let mut objects = 0_usize;
    while !scan.rest().is_empty() {
        let place = scan.place();
        let fields = record(&mut scan, delimiter)?;
        if fields.iter().all(|field| field.text.is_empty()) {
            continue;
        }
        if fields.len() != heading.len() {
            let words = format!("{} fields, but the heading has {}", fields.len(), heading.len());
            sheet.remark(RemarkKind::Unread, place, words);
            continue;
        }
        let pairs = heading.iter().zip(fields);
        let properties: Vec<Property> = pairs
            .map(|(name, field)| Property { name: name.text.clone(), value: field.text, place: field.place })
            .collect();
        objects += usize::from(windows::object(&properties, sheet));
    }
    if objects > 0 {
        return Ok(());
    }
    Err(FORM.no_object())
}

/// One line, whose quoted fields may have line ends in them.
fn record(scan: &mut Scan<'_>, delimiter: char) -> Result<Vec<Field>, Refusal> {
    let mut fields = Vec::new();
    loop {
        let place = scan.place();
        let text = if scan.peek() == Some('"') { quoted(scan)? } else { plain(scan, delimiter) };
        if fields.len() < MOST_COLUMNS {
            fields.push(Field { text, place });
        }
        if !scan.eat(delimiter) {
            break;
        }
    }
    // A quotation that ends before its field does: the rest of the line is no field.
    let place = scan.place();
    let rest = scan.take_while(|c| c != '\n');
    scan.eat('\n');
    if rest.trim().is_empty() {
        return Ok(fields);
    }
    Err(FORM.damaged(place, "text after the closing quotation mark"))
}

fn plain(scan: &mut Scan<'_>, delimiter: char) -> String {
    scan.take_while(|c| c != delimiter && c != '\n').trim().to_owned()
}

fn quoted(scan: &mut Scan<'_>) -> Result<String, Refusal> {
    let start = scan.place();
    scan.next();
    let mut text = String::new();
    while let Some(c) = scan.next() {
        match c {
            '"' if scan.eat('"') => text.push('"'),
            '"' => return Ok(text),
            _ => text.push(c),
        }
    }
    Err(FORM.damaged(start, "the quotation mark is not closed; the file was cut off"))
}
