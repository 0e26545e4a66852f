//! What is to be said of recipes, line by line.

use fullpipe_knobs::lint::{Finding, Level};

use super::page::{BAD, DIM, GOOD, Look, Page, WARN, count};

/// The findings of each file in the order of its lines; lines that are fine only where everything is asked for.
pub fn findings(files: &[(String, Vec<Finding>)], look: Look) -> String {
    let mut page = Page::new(look);
    let of = |level: Level| files.iter().flat_map(|(_, all)| all).filter(|finding| finding.level == level).count();
    let (errors, warnings, fine) = (of(Level::Error), of(Level::Warning), of(Level::Ok));
    let style = match (errors, warnings) {
        (0, 0) => GOOD,
        (0, _) => WARN,
        _ => BAD,
    };
    let hint = if fine > 0 && !look.verbose { " (--verbose shows them)" } else { "" };
    let notes = count(of(Level::Note), "note");
    let statement = format!("{}, {}, {notes}, {fine} fine{hint}", count(errors, "error"), count(warnings, "warning"));
    page.title("lint", style, &statement);
    for (file, findings) in files {
        let shown = findings.iter().filter(|finding| look.verbose || finding.level > Level::Ok);
        for finding in shown {
            let (word, style) = match finding.level {
                Level::Error => ("error", BAD),
                Level::Warning => ("warning", WARN),
                Level::Note => ("note", DIM),
                Level::Ok => ("ok", GOOD),
            };
            let on = finding.platform.as_ref().map_or_else(String::new, |platform| format!(" ({platform})"));
            page.paragraph(2, style, &format!("{file}:{}: {word}: {}{on}", finding.line, finding.rule));
            if let Some(text) = &finding.text {
                page.paragraph(6, DIM, &format!("| {text}"));
            }
            page.paragraph(6, super::page::PLAIN, &finding.message);
            if let Some(fix) = &finding.fix {
                page.paragraph(6, GOOD, &format!("instead: {fix}"));
            }
        }
    }
    page.finish()
}
