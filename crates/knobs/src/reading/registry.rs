//! Registry exports, through the reader of registry recipes; what a machine's own export adds is checked here.

use super::{Place, Refusal, RemarkKind, scan, sheet::Sheet};
use crate::{
    Address,
    recipe::{self, Action, Kind},
};

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family("windows");
    header(text)?;
    let (steps, problems) = recipe::read(Kind::Registry, text);
    for problem in problems {
        let place = Place { line: problem.line, column: problem.column };
        sheet.remark(RemarkKind::Unread, place, problem.message);
    }
    for step in steps {
        let place = Place { line: step.line, column: 1 };
        let (knob, value) = match step.action {
            Action::Set(knob, value) => (knob, Some(value)),
            Action::Delete(knob) => (knob, None),
            Action::Reset(_) | Action::Unclear(_) => continue,
        };
        if !has_plain_key(&knob) {
            sheet.remark(RemarkKind::Unread, place, "the key of an interface is no GUID in braces");
            continue;
        }
        sheet.set(place, knob, value.as_deref());
    }
    Ok(())
}

/// The first line that says something must be a header that regedit knows.
fn header(text: &str) -> Result<(), Refusal> {
    let first = scan::lines(text).find(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with(';'));
    let (number, line) = first.unwrap_or((1, ""));
    if ["REGEDIT4", "Windows Registry Editor Version 5.00"].contains(&line.trim()) {
        return Ok(());
    }
    Err(Refusal {
        place: scan::place_of(number, line, line.trim_start()),
        problem: format!("`{}` is no header that regedit knows", super::sheet::shown(line.trim())),
        expected: "`REGEDIT4` or `Windows Registry Editor Version 5.00`",
        way_out: "export the key again with `reg export` or regedit",
    })
}

/// Whether the part of a key that differs from adapter to adapter is a GUID and nothing else.
fn has_plain_key(knob: &Address) -> bool {
    let Address::Registry { key, .. } = knob else { return true };
    key.split('\\').filter(|part| part.starts_with('{')).all(|part| {
        let inner = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        inner.is_some_and(|inner| inner.chars().all(|c| c.is_ascii_hexdigit() || c == '-'))
    })
}
