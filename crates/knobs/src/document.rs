//! The catalogue as a document for people: one page per platform under `docs/settings/`.

use std::fmt::Write;

use crate::catalogue::{Catalogue, Honoured, Knob, Scope, Span};

/// The page of one platform, in Markdown.
pub fn page(catalogue: &Catalogue) -> String {
    let mut text = format!("# Settings: {}\n\n", catalogue.family);
    text.push_str("Generated from `crates/knobs/data/");
    line(
        &mut text,
        format_args!("{}.toml` by the tests of `fullpipe-knobs`; change the data, not this page.\n", catalogue.family),
    );
    line(&mut text, format_args!("{}\n", catalogue.about));
    line(&mut text, format_args!("What no source settles is marked *(unverified)*: a hint, not a fact."));
    for knob in &catalogue.knobs {
        entry(&mut text, knob);
    }
    text
}

fn entry(text: &mut String, knob: &Knob) {
    line(text, format_args!("\n## `{}`\n\n{}\n", knob.address, knob.meaning));
    let unit = if knob.unit == "none" { String::new() } else { format!(", in {}", knob.unit) };
    line(text, format_args!("- Value: {}{unit}; range: {}", knob.value_type, knob.range));
    line(text, format_args!("- Reaches: {}", scope(knob.scope)));
    if !knob.lifts.is_empty() {
        let lifts: Vec<&str> = knob.lifts.iter().map(|limiter| limiter.words()).collect();
        line(text, format_args!("- Can lift: {}; costs: {}", lifts.join(", "), knob.costs));
    }
    line(text, format_args!("- Applies: {}", knob.takes_effect.map_or("never, or unknown", crate::TakesEffect::words)));
    if let Some(loss) = &knob.off {
        line(text, format_args!("- Off: {loss}"));
    }
    let undo = knob.undo.replace("{address}", &knob.address.to_string()).replace("{from}", "VALUE");
    let value = if knob.undo.contains("{from}") { ", with VALUE as it was before" } else { "" };
    line(text, format_args!("- Undo: `{undo}`{value}"));
    for span in &knob.spans {
        line(text, format_args!("- {}", span_words(span)));
    }
    line(text, format_args!("- Source: {}", knob.source()));
}

/// Writing to a text can't fail.
fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    let written = writeln!(text, "{words}");
    debug_assert!(written.is_ok());
}

fn span_words(span: &Span) -> String {
    let versions = match (&span.since, &span.until) {
        (None, None) => "All versions".to_owned(),
        (Some(since), None) => format!("Since {since}"),
        (None, Some(until)) => format!("Before {until}"),
        (Some(since), Some(until)) => format!("From {since} until before {until}"),
    };
    let honoured = match span.honoured {
        Honoured::Yes => "honoured",
        Honoured::Partly => "partly honoured",
        Honoured::Ignored => "accepted and ignored",
        Honoured::ReadOnly => "read-only",
        Honoured::Absent => "not there",
        Honoured::Unknown => "unknown whether honoured",
    };
    let note = if span.note.is_empty() { String::new() } else { format!("; {}", span.note) };
    let sure = if span.confirmed { "" } else { " *(unverified)*" };
    format!("{versions}: {honoured}; default {}{note}{sure}", span.default)
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Machine => "the whole machine",
        Scope::Namespace => "one network namespace (or the machine, where there is only one)",
        Scope::Route => "one route",
        Scope::Link => "one network interface",
        Scope::Socket => "one socket; only the application can set it",
        Scope::Build => "what is built with it",
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;

    /// `cargo xtask generate` writes the pages anew.
    #[test]
    fn the_pages_under_docs_are_those_of_the_catalogue() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings");
        for catalogue in Catalogue::all() {
            let file = folder.join(format!("{}.md", catalogue.family));
            let text = page(catalogue);
            if env::var_os("FULLPIPE_GENERATE").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&file, &text).unwrap();
            }
            let there = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
            assert!(there == text, "{} is out of date; see this test's comment", file.display());
        }
    }
}
