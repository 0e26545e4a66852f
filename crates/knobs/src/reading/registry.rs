//! Registry exports, through the reader of registry recipes; what a machine's own export adds is checked here.

use std::collections::BTreeSet;

use super::{Place, Refusal, RemarkKind, scan, sheet::Sheet};
use crate::{
    Address, Catalogue, Family,
    recipe::{self, Action, Kind},
};

/// The most keys whose absent values are listed. A machine has a few dozen adapters.
const MOST_KEYS: usize = 1_000;

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family(Family::Windows);
    header(text)?;
    let (steps, problems) = recipe::read(Kind::Registry, text);
    let whole = problems.is_empty() && is_whole(text, &steps);
    for problem in problems {
        let place = Place { line: problem.line, column: problem.column };
        sheet.remark(RemarkKind::Unread, place, problem.message);
    }
    let listed = note(steps, sheet);
    if whole && ends_as_an_export(text) {
        sheet.keys = recipe::keys(text).into_iter().take(MOST_KEYS).collect();
        absences(&listed, sheet);
    } else if whole && !listed.is_empty() {
        let line = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        let words = "no empty line at the end, as regedit writes one: the export looks cut off, and what it lacks \
                     counts as unknown; export it once more";
        sheet.remark(RemarkKind::Unread, Place { line, column: 1 }, words);
    }
    Ok(())
}

/// A setup file: what the machine has once it was run, whatever section that takes.
pub(super) fn setup(text: &str, sheet: &mut Sheet) {
    sheet.family(Family::Windows);
    let (steps, problems) = recipe::read(Kind::Inf, text);
    for problem in problems {
        let place = Place { line: problem.line, column: problem.column };
        sheet.remark(RemarkKind::Unread, place, problem.message);
    }
    if steps.is_empty() {
        let words = "no AddReg or DelReg section of it sets a value: the machine stays as it is";
        sheet.remark(RemarkKind::Unread, Place { line: 1, column: 1 }, words);
    }
    note(steps, sheet);
}

/// Notes what the lines set, and gives back the values that Windows itself keeps in each key.
fn note(steps: Vec<recipe::Step>, sheet: &mut Sheet) -> Vec<(Place, Address)> {
    let mut listed = Vec::new();
    for step in steps {
        let place = Place { line: step.line, column: 1 };
        let (knob, value) = match step.action {
            Action::Set(knob, value) => (knob, Some(value)),
            Action::Delete(knob) => (knob, None),
            Action::Reset(_)
            | Action::Unclear(_)
            | Action::Repeats(_)
            | Action::Sockets(_)
            | Action::Misspelt { .. } => continue,
        };
        if is_windows_own(&knob) {
            listed.push((place, knob.clone()));
        }
        if !has_plain_key(&knob) {
            sheet.remark(RemarkKind::Unread, place, "the key of an interface is no GUID in braces");
            continue;
        }
        sheet.set(place, knob, value.as_deref());
    }
    listed
}

/// Whether the file looks like what regedit writes and not like a recipe: nothing is deleted and nothing is commented.
fn is_whole(text: &str, steps: &[recipe::Step]) -> bool {
    let recipes = scan::lines(text).any(|(_, line)| line.starts_with(';') || line.starts_with("[-"));
    !recipes && steps.iter().all(|step| matches!(step.action, Action::Set(..)))
}

/// Both `reg export` and regedit end a file with an empty line.
fn ends_as_an_export(text: &str) -> bool {
    text.ends_with("\n\n") || text.ends_with("\r\n\r\n")
}

/// An export lists all values of a key, so what it doesn't list of that key is absent.
///
/// A key counts as exported whole where it has the value that Windows itself keeps there: a few lines that somebody
/// wrote by hand don't.
fn absences(listed: &[(Place, Address)], sheet: &mut Sheet) {
    let Some(windows) = Catalogue::for_family(Family::Windows) else { return };
    let mut done = BTreeSet::new();
    for (place, knob) in listed {
        let Address::Registry { key, .. } = knob else { continue };
        if done.len() >= MOST_KEYS || !done.insert(key) {
            continue;
        }
        for row in &windows.knobs {
            let Address::Registry { value, .. } = &row.address else { continue };
            let here = Address::Registry { key: key.clone(), value: value.clone() };
            if row.matches(&here) {
                sheet.absent(*place, here);
            }
        }
    }
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

/// Whether a value is one that Windows keeps in each key of its sort: `Tcpip\Parameters`, and the keys of its adapters.
fn is_windows_own(knob: &Address) -> bool {
    let Address::Registry { value, .. } = knob else { return false };
    ["DataBasePath", "EnableDHCP"].iter().any(|own| value.eq_ignore_ascii_case(own))
}

/// Whether the part of a key that differs from adapter to adapter is a GUID and nothing else.
fn has_plain_key(knob: &Address) -> bool {
    let Address::Registry { key, .. } = knob else { return true };
    key.split('\\').filter(|part| part.starts_with('{')).all(|part| {
        let inner = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        inner.is_some_and(|inner| inner.chars().all(|c| c.is_ascii_hexdigit() || c == '-'))
    })
}
