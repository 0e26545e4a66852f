//! The whole story of one run.

use fullpipe_tune::{Outcome, PathErrorSummary, Restored, ScenarioFacts};

use super::{
    direction::{arrow, put_direction},
    page::{BAD, DIM, GOOD, Look, PLAIN, Page, WARN, count, value_or_absent},
    plan::put_plan,
    proof::put_proofs,
};

/// Everything that a run of `check`, `tune`, `demo` or `lab run` found and did, as far as it went.
pub fn outcome(outcome: &Outcome, look: Look) -> String {
    let mut page = Page::new(look);
    if let Some(scenario) = &outcome.scenario {
        put_scenario(&mut page, scenario);
    }
    for direction in &outcome.before {
        put_direction(&mut page, direction);
    }
    if !outcome.before.is_empty() || !outcome.plan.changes.is_empty() {
        put_plan(&mut page, &outcome.plan);
    }
    put_proofs(&mut page, &outcome.proofs);
    put_after(&mut page, outcome);
    put_restored(&mut page, &outcome.restored);
    if let Some(error) = &outcome.path_error {
        put_path_error(&mut page, error);
    }
    put_expectations(&mut page, outcome);
    for (index, note) in outcome.notes.iter().enumerate() {
        if index == 0 {
            page.gap();
        }
        page.marked("note", WARN, &arrow(note));
    }
    page.finish()
}

pub(crate) fn put_scenario(page: &mut Page, scenario: &ScenarioFacts) {
    page.title(&scenario.name, PLAIN, &scenario.summary);
    for imitation in &scenario.imitations {
        page.styled_field("imitation", WARN, imitation);
    }
    if let Some(published) = &scenario.published {
        page.field("published", published);
    }
}

/// With what was kept in force, one line per direction: the stories themselves are as before.
fn put_after(page: &mut Page, outcome: &Outcome) {
    if outcome.after.is_empty() {
        return;
    }
    if page.look.verbose {
        for direction in &outcome.after {
            put_direction(page, direction);
        }
        return;
    }
    page.title("after", PLAIN, "the last measurement with the changes in force");
    for direction in &outcome.after {
        let mut text = direction.rate_bps.to_string();
        if let Some(steady) = direction.steady_bps {
            text += &format!(" ({steady} without slow start)");
        }
        text += &format!(", limited by: {}", direction.diagnosis.limiter.words());
        page.field(&arrow(&direction.name), &text);
    }
}

fn put_restored(page: &mut Page, restored: &[Restored]) {
    if restored.is_empty() {
        return;
    }
    let compared = restored.iter().map(|host| host.compared).sum();
    let hosts = match restored.len() {
        1 => "the host reads".to_owned(),
        2 => "both hosts read".to_owned(),
        number => format!("all {number} hosts read"),
    };
    if restored.iter().all(|host| host.differences.is_empty()) {
        let settings = count(compared, "setting");
        page.title("restored", GOOD, &format!("{hosts} as at the start: {settings} compared"));
        return;
    }
    page.title("restored", BAD, "NOT everything reads as at the start");
    for host in restored {
        let settings = count(host.compared, "setting");
        match host.differences.len() {
            0 => page.field(&host.host, &format!("as at the start: {settings} compared")),
            number => page.field(&host.host, &format!("{number} of {settings} differ")),
        }
        for difference in &host.differences {
            let before = value_or_absent(difference.before.as_deref());
            let now = value_or_absent(difference.now.as_deref());
            page.subfield("", &format!("{}: was {before}, is {now}", difference.knob));
        }
    }
}

fn put_path_error(page: &mut Page, error: &PathErrorSummary) {
    let figures = format!("release error p50 {} us, p99 {} us, max {} us", error.p50_us, error.p99_us, error.max_us);
    if error.valid {
        page.title("emulated path", PLAIN, &figures);
    } else {
        page.title("emulated path", BAD, &format!("did not keep up in every measurement (see the notes): {figures}"));
    }
}

pub(crate) fn put_expectations(page: &mut Page, outcome: &Outcome) {
    if outcome.expectations.is_empty() {
        return;
    }
    let met = outcome.expectations.iter().filter(|expectation| expectation.met).count();
    let all = outcome.expectations.len();
    let style = if met == all { GOOD } else { BAD };
    // Without a scenario it is the user who expects something.
    let (name, words) =
        if outcome.scenario.is_some() { ("expected", "as the scenario says") } else { ("gates", "passed") };
    page.title(name, style, &format!("{met} of {all} {words}"));
    let width =
        |text: &dyn Fn(&fullpipe_tune::Expectation) -> usize| outcome.expectations.iter().map(text).max().unwrap_or(0);
    let direction = width(&|expectation| arrow(&expectation.direction).chars().count());
    let expected = width(&|expectation| expectation.expected.chars().count()).min(48);
    let line = |expectation: &fullpipe_tune::Expectation| {
        format!("{:direction$}  {:expected$}  ", arrow(&expectation.direction), expectation.expected)
    };
    // All in one line each, or none.
    let room = page.look.width.saturating_sub(7);
    let fits = |expectation: &fullpipe_tune::Expectation| {
        line(expectation).chars().count() + 6 + expectation.found.chars().count() <= room
    };
    let is_wide = outcome.expectations.iter().all(fits);
    for expectation in &outcome.expectations {
        let (mark, style) = if expectation.met { ("met  ", GOOD) } else { ("NOT  ", BAD) };
        let (what, found) = (line(expectation), &expectation.found);
        if is_wide {
            page.pieces(2, &[(style, mark), (PLAIN, &what), (DIM, "found "), (PLAIN, found)]);
            continue;
        }
        if what.trim_end().chars().count() <= room {
            page.pieces(2, &[(style, mark), (PLAIN, &what)]);
        } else {
            page.pieces(2, &[(style, mark), (PLAIN, &arrow(&expectation.direction))]);
            page.paragraph(7, PLAIN, &expectation.expected);
        }
        page.paragraph(7, DIM, &format!("found {found}"));
    }
}
