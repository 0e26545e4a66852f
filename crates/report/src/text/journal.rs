//! What the journal knows: the runs that changed something, what is in force, and what an undo did.

use std::collections::BTreeSet;

use fullpipe_host::{EntryKind, EntryState, Left, Outcome, RunState, UndoReport, UndoneEntry};

use super::page::{BAD, DIM, GOOD, Look, NAME, PLAIN, Page, WARN, count, value_or_absent};
use crate::{
    Reading, Standing,
    standing::{lossy, stands},
};

const NOTHING_BY_THIS_USER: &str = "this user changed nothing";

/// Every run, in the order given; `is_all`: nobody else's are left out.
pub fn history(runs: &[Standing], is_all: bool, look: Look) -> String {
    let mut page = Page::new(look);
    if runs.is_empty() {
        let words = if is_all { "nothing was ever changed on this machine" } else { NOTHING_BY_THIS_USER };
        page.title("history", PLAIN, words);
    }
    let mut rest = runs;
    while let [first, ..] = rest {
        let rounds = rest.iter().take_while(|one| one.run.is_round() && one.run.command == first.run.command).count();
        let count = if look.verbose || rounds < 2 { 1 } else { rounds };
        let (these, others) = rest.split_at(count);
        match these {
            [one] => put_run(&mut page, one),
            rounds => put_rounds(&mut page, rounds),
        }
        rest = others;
    }
    page.finish()
}

/// What is in force because of us, what an interrupted run left behind, and what undos left to others; `is_all`: nobody else's is
/// left out.
pub fn status(standing: &[Standing], left: &[Left], is_all: bool, look: Look) -> String {
    let mut page = Page::new(look);
    if standing.is_empty() && !left.is_empty() {
        page.title("status", PLAIN, "nothing that fullpipe undoes is in force");
    } else if standing.is_empty() && is_all {
        page.title("status", GOOD, "nothing is in force: every setting is as it was before fullpipe");
    } else if standing.is_empty() {
        page.title("status", PLAIN, NOTHING_BY_THIS_USER);
    }
    for one in standing {
        put_run(&mut page, one);
    }
    if !left.is_empty() {
        page.title("left", WARN, "to whoever changed it since; no undo looks at it any more");
        left.iter().for_each(|left| put_left(&mut page, left));
    }
    if standing.iter().any(|standing| standing.run.state == RunState::Open) {
        page.gap();
        page.marked("hint", WARN, "`fullpipe undo` takes back what an interrupted run left behind");
    }
    page.finish()
}

fn put_left(page: &mut Page, left: &Left) {
    let is_file = left.entry.kind == EntryKind::File;
    let shown = |bytes: Option<&[u8]>| match bytes {
        content if is_file => file(content),
        value => value_or_absent(value.map(lossy).as_deref()),
    };
    let (style, mut text) = match &left.now {
        Err(why) => (WARN, format!("can't be read: {why}")),
        Ok(None) if is_file => (PLAIN, "somebody removed it".to_owned()),
        Ok(Some(_)) if is_file => (PLAIN, "is there as somebody changed it, with what it sets at boot".to_owned()),
        Ok(now) => (PLAIN, format!("reads {}", shown(now.as_deref()))),
    };
    text += &format!("; before run {} it was {}", left.run, shown(left.entry.before.as_deref()));
    if left.claims_an_undo() {
        text += "; `fullpipe undo` no longer takes it back, though its comment says so: removing it is theirs";
    }
    page.sentence(2, &[(NAME, &left.entry.place), (PLAIN, "  "), (style, &text)]);
}

/// One run in full, beside what the host reads now.
pub fn show(shown: &Standing, look: Look) -> String {
    let mut page = Page::new(look);
    put_run(&mut page, shown);
    let is_long = |kind| matches!(kind, EntryKind::File | EntryKind::FarRun);
    for entry in shown.run.entries.iter().filter(|entry| is_long(entry.kind)) {
        for (title, content) in [("was", &entry.before), ("target", &entry.intended)] {
            page.title(&entry.place, PLAIN, title);
            let content = content.as_deref().map_or_else(|| "(no file)".to_owned(), lossy);
            for line in content.lines() {
                page.pieces(2, &[(PLAIN, line)]);
            }
        }
    }
    page.finish()
}

/// What a tune tried in turn, newest first, in a few lines.
fn put_rounds(page: &mut Page, rounds: &[Standing]) {
    let [Standing { run: last, .. }, .., Standing { run: first, .. }] = rounds else { return };
    page.title(
        &format!("runs {} to {}", first.id.0, last.id.0),
        DIM,
        "undone: trials of a tune, measured with and without in turn",
    );
    page.field("command", &last.command);
    page.field("started", &format!("{:.0} to {:.0}", first.started, last.started));
    let places: BTreeSet<&str> =
        rounds.iter().flat_map(|one| &one.run.entries).map(|entry| entry.place.as_str()).collect();
    page.field("tried", &places.into_iter().collect::<Vec<_>>().join(", "));
    page.field("all of it", "fullpipe history --verbose");
}

fn put_run(page: &mut Page, standing: &Standing) {
    let Standing { run, readings, .. } = standing;
    let (state, style) = match run.state {
        RunState::Open => ("in force, never confirmed: interrupted, or still running", WARN),
        RunState::OnTrial => ("on trial: taken back unless `fullpipe confirm` comes in time", WARN),
        RunState::Kept => ("in force", GOOD),
        RunState::Undone => ("undone", DIM),
    };
    // What an undo left, because somebody had changed it since.
    let left = run.entries.iter().filter(|entry| entry.state.is_outstanding()).count();
    let is_partial = run.state != RunState::Undone && left < run.entries.len();
    if is_partial {
        let state = format!("{state}: {left} of {} left, the rest is put back", count(run.entries.len(), "change"));
        page.title(&format!("run {}", run.id.0), WARN, &state);
    } else {
        page.title(&format!("run {}", run.id.0), style, state);
    }
    page.field("command", &run.command);
    page.field("started", &format!("{:.0}", run.started));
    if let Some(host) = &run.host {
        page.field("host", host);
    }
    if run.far().is_some() {
        page.field(
            "undo",
            &format!("fullpipe undo {} --key-file FILE, while `fullpipe serve --allow-tune` runs there", run.id),
        );
    }
    for (index, entry) in run.entries.iter().enumerate() {
        let (before, set) = match entry.kind {
            EntryKind::Setting => {
                let set = if stands(entry) { entry.read_back.as_ref() } else { entry.intended.as_ref() };
                let shown = |bytes: Option<&Vec<u8>>| value_or_absent(bytes.map(|bytes| lossy(bytes)).as_deref());
                (shown(entry.before.as_ref()), shown(set))
            }
            EntryKind::File => (file(entry.before.as_deref()), file(entry.intended.as_deref())),
            EntryKind::FarRun | EntryKind::Program | EntryKind::Socket => {
                let joined = |bytes: Option<&Vec<u8>>| {
                    bytes.map_or_else(
                        || value_or_absent(None),
                        |bytes| lossy(bytes).lines().collect::<Vec<_>>().join("; "),
                    )
                };
                (joined(entry.before.as_ref()), joined(entry.intended.as_ref()))
            }
        };
        let mut pieces =
            vec![(NAME, entry.place.clone()), (PLAIN, "  ".to_owned()), (DIM, before), (PLAIN, format!(" -> {set}"))];
        if let Some(overridden) = standing.not_lasting(entry) {
            pieces.push((WARN, format!("  ({overridden})")));
        } else if entry.persisted && entry.state.is_outstanding() {
            pieces.push((DIM, "  (lasts beyond a reboot)".to_owned()));
        }
        if entry.state == EntryState::Left {
            pieces.push((DIM, "  left to whoever changed it".to_owned()));
        } else if is_partial {
            match entry.state {
                EntryState::Undone => pieces.push((DIM, "  put back".to_owned())),
                EntryState::Gone => pieces.push((DIM, "  gone by itself".to_owned())),
                EntryState::Intended | EntryState::Written | EntryState::Left => {
                    pieces.push((WARN, "  left".to_owned()))
                }
            }
        }
        match readings.get(index) {
            Some(Reading::Other(now)) => {
                pieces.push((WARN, format!("  but reads {} now", value_or_absent(now.as_deref()))));
            }
            Some(Reading::Unreadable(why)) => pieces.push((WARN, format!("  and can't be read: {why}"))),
            Some(Reading::AsSet | Reading::NotLooked) | None => {}
        }
        let pieces: Vec<_> = pieces.iter().map(|(style, text)| (*style, text.as_str())).collect();
        page.pieces_field(if index == 0 { "changed" } else { "" }, &pieces);
    }
}

/// A file's content is too long for a line.
fn file(content: Option<&[u8]>) -> String {
    content.map_or_else(|| "(no file)".to_owned(), |bytes| format!("(file of {} B)", bytes.len()))
}

/// What became of each setting, and whether something is left; `is_all`: nobody else's is left out.
pub fn undo(report: &UndoReport, is_all: bool, look: Look) -> String {
    let mut page = Page::new(look);
    match report.entries.len() {
        0 if is_all => page.title("undo", GOOD, "nothing to put back"),
        0 => page.title("undo", PLAIN, NOTHING_BY_THIS_USER),
        _ => {
            let style = if report.is_complete() { GOOD } else { BAD };
            let would = if report.dry_run { "would be " } else { "" };
            page.title("undo", style, &format!("{} {would}put back", restored(report)));
        }
    }
    for entry in &report.entries {
        put_undone(&mut page, entry, report.dry_run);
    }
    if let Some(error) = &report.unmarked {
        page.gap();
        page.marked("warning", WARN, &format!("the journal could not be marked: {error}"));
    }
    page.finish()
}

/// What was put back, counted as what was set is: settings, and beside them the boot files.
pub fn restored(report: &UndoReport) -> String {
    let of = |is_file: bool| {
        let these = || report.entries.iter().filter(move |entry| (entry.kind == EntryKind::File) == is_file);
        (these().filter(|entry| entry.outcome.is_restored()).count(), these().count())
    };
    let counted = |(back, all): (usize, usize), noun: &str| {
        let of = if back == all { String::new() } else { format!("{back} of ") };
        (all > 0).then(|| format!("{of}{}", count(all, noun)))
    };
    let all = [counted(of(false), "setting"), counted(of(true), "boot file")];
    all.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn put_undone(page: &mut Page, entry: &UndoneEntry, is_dry: bool) {
    let value = |value: &Option<String>| match value {
        // A file's content is too long for a line.
        content if entry.kind == EntryKind::File => file(content.as_deref().map(str::as_bytes)),
        value => value_or_absent(value.as_deref()),
    };
    let changed = |now: &Option<String>, ours: &Option<String>| match entry.kind {
        EntryKind::File => format!("somebody changed it, and it stays as it is, with what it sets: {}", value(now)),
        _ => format!("reads {} and not {}, so somebody changed it", value(now), value(ours)),
    };
    let (style, text) = match &entry.outcome {
        Outcome::Restored { was, now } if is_dry => (PLAIN, format!("{} -> {}", value(was), value(now))),
        Outcome::Restored { now, .. } => (GOOD, format!("is {} again", value(now))),
        Outcome::AlreadyBack => (GOOD, "was back already".to_owned()),
        Outcome::Gone { why } => (DIM, format!("is gone by itself: {why}")),
        Outcome::ChangedSince { now, ours, by: Some(run), .. } => {
            let (now, ours) = (value(now), value(ours));
            (WARN, format!("reads {now} and not {ours}: run {} changed it; undo that first", run.0))
        }
        Outcome::ChangedSince { now, ours, before, by: None } => (
            WARN,
            format!(
                "left alone: {}; --force restores {}, --leave-changed leaves it to them for good",
                changed(now, ours),
                value(before)
            ),
        ),
        Outcome::Left { now, ours, .. } => (DIM, format!("left to whoever changed it: {}", changed(now, ours))),
        Outcome::Elsewhere { namespace } => (WARN, format!("left alone: it belongs to {namespace}")),
        Outcome::AtFarEnd { .. } => {
            let run = entry.run.map_or_else(String::new, |run| format!(" {run}"));
            (WARN, format!("is in force at that end: `fullpipe undo{run} --key-file FILE` takes it back there"))
        }
        Outcome::Failed { why } => (BAD, format!("could NOT be put back: {why}")),
        // An outcome that this version of the report doesn't know is printed as the journal spells it.
        other => (WARN, format!("{other:?}")),
    };
    page.sentence(2, &[(NAME, &entry.place), (PLAIN, "  "), (style, &text)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_back_is_counted_as_what_was_set() {
        let entry = |kind, outcome| UndoneEntry { run: None, kind, place: "a".to_owned(), outcome };
        let back = || Outcome::Restored { was: None, now: None };
        let set = |kind| entry(kind, back());
        let mut report = UndoReport::default();
        report.entries.extend([set(EntryKind::File), set(EntryKind::Setting), set(EntryKind::Setting)]);
        assert_eq!(restored(&report), "2 settings and 1 boot file");
        report.entries.push(entry(EntryKind::Setting, Outcome::Failed { why: "x".to_owned() }));
        assert_eq!(restored(&report), "2 of 3 settings and 1 boot file");
        assert!(undo(&report, true, Look::default()).contains("2 of 3 settings and 1 boot file put back"));
    }

    #[test]
    fn who_sees_a_part_alone_is_never_shown_that_nothing_was_changed() {
        let look = Look::default();
        for text in
            [history(&[], false, look), status(&[], &[], false, look), undo(&UndoReport::default(), false, look)]
        {
            assert!(text.contains(NOTHING_BY_THIS_USER), "{text}");
        }
        for text in [history(&[], true, look), status(&[], &[], true, look), undo(&UndoReport::default(), true, look)] {
            assert!(!text.contains(NOTHING_BY_THIS_USER) && text.contains("nothing"), "{text}");
        }
    }
}
