//! The README of an export: what each file does, in which order, when it takes effect, and what can't be done.

use super::{Before, Draft, ExportFile, powershell, quote::one_line, registry::line};
use crate::Family;

pub(super) fn write(draft: &Draft<'_>) -> ExportFile {
    let mut text = format!("Settings for {}, written by fullpipe\n\n", one_line(&draft.platform.to_string()));
    if draft.files.is_empty() {
        text.push_str("Nothing is to be set, so there is no other file.\n");
    }
    for file in &draft.files {
        line(&mut text, format_args!("{}\n    {}", file.name, file.what));
    }
    if !draft.steps.is_empty() {
        text.push_str("\nWhat to do\n");
        for (number, step) in (1..).zip(&draft.steps) {
            line(&mut text, format_args!("{number}. {step}"));
        }
    }
    changes(draft, &mut text);
    if !draft.left_out.is_empty() {
        text.push_str("\nWhat no file here does\n");
        for left_out in &draft.left_out {
            line(&mut text, format_args!("- {}: {}", one_line(&left_out.knob.to_string()), one_line(&left_out.why)));
        }
    }
    let traps = if draft.platform.family == Family::Windows { powershell::traps(draft) } else { Vec::new() };
    if !draft.plan.notes.is_empty() || !traps.is_empty() {
        text.push_str("\nWhat else to know\n");
        for note in draft.plan.notes.iter().chain(&traps) {
            line(&mut text, format_args!("- {}", one_line(note)));
        }
    }
    let windows = matches!(draft.platform.family, Family::Windows | Family::NetBurner);
    let text = if windows { text.replace('\n', "\r\n") } else { text };
    ExportFile {
        name: "README.txt",
        what: "what each file does".to_owned(),
        contents: text.into_bytes(),
        executable: false,
    }
}

fn changes(draft: &Draft<'_>, text: &mut String) {
    let items: Vec<_> =
        draft.items.iter().filter(|item| draft.left_out.iter().all(|left| left.knob != *item.knob())).collect();
    if items.is_empty() {
        return;
    }
    text.push_str("\nWhat is set\n");
    for item in items {
        let before = match &item.before {
            Before::Value(value) => one_line(value),
            Before::Absent => "absent".to_owned(),
            Before::Unknown => "not known".to_owned(),
        };
        let to = item.to().map_or_else(|| "removed".to_owned(), one_line);
        line(text, format_args!("- {}\n    before: {before}; then: {to}", one_line(&item.knob().to_string())));
        line(text, format_args!("    why: {}", one_line(&item.change.reason)));
        if !item.change.arithmetic.is_empty() {
            line(text, format_args!("    how much: {}", one_line(&item.change.arithmetic)));
        }
        if let Some(memory) = item.change.memory_worst_case {
            line(text, format_args!("    memory at worst: {memory}"));
        }
        line(text, format_args!("    applies: {}", item.change.takes_effect.words()));
        line(text, format_args!("    source: {}", one_line(&item.change.source)));
    }
}
