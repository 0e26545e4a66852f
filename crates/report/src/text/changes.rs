//! A plan for a platform with the files that it was written into, and what became of changes that were applied.

use fullpipe_host::{Applied, BootFile, Run, no_survivor};
use fullpipe_knobs::{Goal, Plan};

use super::{
    page::{BAD, DIM, GOOD, Look, NAME, PLAIN, Page, WARN, count, value_or_absent},
    plan::{put_forecast, put_plan_from},
};
use crate::{AppliedPlan, PlatformPlan, changes::file_diff};

/// The label of what is gone after a reboot although it was to last.
const NOT_LASTING: &str = "not lasting";

/// What to set on a platform, why, what can't be done there, and what was written.
pub fn platform_plan(answer: &PlatformPlan<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    let request = answer.request;
    let goal = match request.goal {
        Goal::Bulk => "for throughput",
        Goal::Interactive => "for short queues",
    };
    if answer.has_path {
        let path = format!("a path of {} and {}, {goal}", request.rate, request.rtt);
        page.title(&request.platform.to_string(), PLAIN, &path);
        // A platform's defaults say nothing of what this machine has there.
        put_plan_from(&mut page, answer.plan, &|change| answer.knows_before(change), answer.forecast);
    } else {
        let text = "no path was given, so nothing is planned: with --rate and --rtt a plan comes along";
        page.title(&request.platform.to_string(), PLAIN, text);
        for (index, note) in answer.plan.notes.iter().enumerate() {
            page.field(if index == 0 { "note" } else { "" }, note);
        }
    }
    if let Some(forecast) = answer.forecast {
        put_forecast(&mut page, forecast);
    }
    if let Some((export, folder)) = answer.written {
        let files = count(export.files.len(), "file");
        page.title("written", GOOD, &format!("{files} into {folder}; README.txt says what to do with them"));
        let widest = export.files.iter().map(|file| file.name.len()).max().unwrap_or(0);
        for file in &export.files {
            page.entry(&format!("  {}", file.name), widest + 2, &file.what);
        }
        for left in &export.left_out {
            page.marked("  left out", WARN, &format!("{}: {}", left.knob, left.why));
        }
    }
    page.finish()
}

/// What was set, what was read back, and what it still takes.
pub fn applied(done: &AppliedPlan<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    let run = done.run;
    let changed = run.applied.iter().filter(|applied| !applied.unchanged()).count();
    let statement = match run.id {
        // Nor were any left out because they were set already, which the plan notes.
        None if done.plan.changes.is_empty() && done.plan.notes.is_empty() => {
            "the plan has no changes; nothing was changed".to_owned()
        }
        None => "all values were set already; nothing was changed".to_owned(),
        Some(id) if changed > 0 => {
            let files = match run.boot_files.len() {
                0 => String::new(),
                files => format!(", {} written", count(files, "boot file")),
            };
            format!(
                "{} set and read back{files}; `fullpipe undo {id}` puts back what was there",
                count(changed, "setting")
            )
        }
        // Values that are only shown until the next boot are neither set now nor set already.
        Some(id) => {
            let values =
                if run.applied.iter().any(|applied| applied.at_start) { "" } else { "; values were already set" };
            let written =
                if run.boot_files.is_empty() { "a confirmation writes the boot file" } else { "boot file written" };
            format!("{written}{values}; `fullpipe undo {id}` takes it back")
        }
    };
    page.title("applied", GOOD, &statement);
    for applied in &run.applied {
        put_applied(&mut page, applied);
    }
    if let (Some(within), Some(id)) = (done.confirm_within, run.id) {
        let words = format!(
            "for {} s: `fullpipe confirm {id}` keeps it, from a new connection if you came over the network; \
             without, everything is put back",
            within.as_secs()
        );
        page.styled_field("on trial", WARN, &words);
    }
    for file in &run.boot_files {
        page.field("boot file", &file.display().to_string());
    }
    for knob in &run.not_persisted {
        page.styled_field(NOT_LASTING, WARN, &no_survivor(knob));
    }
    for knob in &run.waiting {
        let words =
            format!("{knob} waits for the reboot: the running system lacks what it needs; apply again after it");
        page.styled_field("not set yet", WARN, &words);
    }
    for (index, note) in done.plan.notes.iter().enumerate() {
        page.field(if index == 0 { "note" } else { "" }, note);
    }
    if done.needs_restart() {
        page.gap();
        page.marked("hint", WARN, "reboot: some changes take effect only then");
    }
    page.finish()
}

/// A run that is kept from now on, and what somebody else made of its settings meanwhile.
pub fn confirmed(run: &Run, changed: &[String], look: Look) -> String {
    let mut page = Page::new(look);
    let id = run.id.map_or_else(String::new, |id| id.to_string());
    page.title("confirmed", GOOD, &format!("run {id} is kept; `fullpipe undo {id}` takes it back"));
    for file in &run.boot_files {
        page.field("boot file", &file.display().to_string());
    }
    for knob in &run.not_persisted {
        page.styled_field(NOT_LASTING, WARN, &no_survivor(knob));
    }
    for overridden in &run.overridden {
        page.styled_field(NOT_LASTING, WARN, &overridden.to_string());
    }
    for changed in changed {
        page.styled_field("changed", WARN, changed);
    }
    page.finish()
}

/// What would be changed, as a diff.
pub fn dry_run(plan: &Plan, files: &[BootFile], look: Look) -> String {
    let mut page = Page::new(look);
    let title = format!("{} would be changed; nothing was", count(plan.changes.len(), "setting"));
    page.title("dry run", PLAIN, &title);
    for change in &plan.changes {
        let knob = change.knob.to_string();
        for (mark, style, value) in [("- ", BAD, &change.from), ("+ ", GOOD, &change.to)] {
            let shown = value_or_absent(value.as_deref());
            page.sentence(2, &[(style, mark), (NAME, &knob), (style, " = "), (style, &shown)]);
        }
    }
    for file in files {
        page.title(&file.path.display().to_string(), PLAIN, "");
        for (mark, line) in file_diff(file) {
            let (style, mark) = if mark == '-' { (BAD, "- ") } else { (GOOD, "+ ") };
            page.pieces(2, &[(style, mark), (style, &line)]);
        }
    }
    for (index, note) in plan.notes.iter().enumerate() {
        page.field(if index == 0 { "note" } else { "" }, note);
    }
    page.finish()
}

fn put_applied(page: &mut Page, applied: &Applied) {
    let now = if applied.at_start { &applied.wanted } else { &applied.now };
    let (before, now) = (value_or_absent(applied.before.as_deref()), value_or_absent(now.as_deref()));
    let knob = applied.address.to_string();
    if applied.unchanged() {
        page.sentence(2, &[(NAME, &knob), (DIM, "  is "), (PLAIN, &now), (DIM, " already")]);
        return;
    }
    let mut pieces = vec![(NAME, knob.as_str()), (PLAIN, "  "), (DIM, &before), (PLAIN, " -> "), (GOOD, &now)];
    let clamped =
        format!("  (asked for {}: the system has limits of its own)", value_or_absent(applied.wanted.as_deref()));
    if applied.clamped() {
        pieces.push((BAD, &clamped));
    }
    if applied.at_start {
        pieces.push((WARN, "  (in the boot file; the running system keeps the old value until the next reboot)"));
    } else if applied.needs_restart() {
        pieces.push((WARN, "  (takes effect after a reboot)"));
    }
    page.sentence(2, &pieces);
}
