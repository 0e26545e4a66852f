//! A plan: what to set, where, why, what it costs, and how it is undone.

use fullpipe_knobs::{Change, Plan};

use super::page::{DIM, GOOD, Look, NAME, PLAIN, Page, WARN, count, value_or_absent};
use crate::{ForecastPoint, ForecastRow, PlanForecast};

/// The changes in their order, with reasons; and what the plan leaves alone.
pub fn plan(plan: &Plan, look: Look) -> String {
    let mut page = Page::new(look);
    put_plan(&mut page, plan);
    page.finish()
}

/// As [`plan`], on a page.
pub(crate) fn put_plan(page: &mut Page, plan: &Plan) {
    put_plan_from(page, plan, &|_| true, None);
}

/// As [`put_plan`], where it may not be known what there is before a change, and perhaps with what is predicted.
pub(crate) fn put_plan_from(
    page: &mut Page,
    plan: &Plan,
    knows_before: &dyn Fn(&Change) -> bool,
    forecast: Option<&PlanForecast>,
) {
    let statement = match plan.changes.len() {
        0 => "nothing to change".to_owned(),
        number => count(number, "change"),
    };
    page.title("plan", PLAIN, &statement);
    for (index, change) in plan.changes.iter().enumerate() {
        put_change(page, index + 1, change, knows_before(change));
        let Some(forecast) = forecast.and_then(|forecast| forecast.changes.get(index)) else { continue };
        for row in &forecast.rows {
            page.subfield("predicted", &forecast_words(row));
        }
        if let Some(why) = &forecast.not_predicted {
            page.subfield("predicted", &format!("nothing: {why}"));
        }
    }
    for (index, note) in plan.notes.iter().enumerate() {
        page.field(if index == 0 { "note" } else { "" }, note);
    }
}

/// What the whole plan is predicted to do.
pub(crate) fn put_forecast(page: &mut Page, forecast: &PlanForecast) {
    page.title("predicted", PLAIN, "all changes together");
    for row in &forecast.whole {
        page.styled_field(row.direction, GOOD, &change_words(row));
    }
    for note in &forecast.notes {
        page.marked("note", WARN, note);
    }
}

fn forecast_words(row: &ForecastRow) -> String {
    format!("{} {}", row.direction, change_words(row))
}

fn change_words(row: &ForecastRow) -> String {
    let point = |point: &ForecastPoint| {
        let detail = point.detail.map_or_else(String::new, |detail| format!(", {}", detail.words()));
        format!("{} ({}{detail})", point.rate, point.limiter.words())
    };
    format!("{} -> {}", point(&row.before), point(&row.after))
}

fn put_change(page: &mut Page, number: usize, change: &Change, knows_before: bool) {
    // Without the machine's own settings even a value is only the platform's default.
    let from = match change.from.as_deref() {
        None if !knows_before => "(unknown)".to_owned(),
        Some(default) if !knows_before => format!("(unknown; by default {})", value_or_absent(Some(default))),
        from => value_or_absent(from),
    };
    let to = value_or_absent(change.to.as_deref());
    let knob = change.knob.to_string();
    page.sentence(
        2,
        &[
            (DIM, &format!("{number}. ")),
            (PLAIN, &format!("on {}  ", change.host)),
            (NAME, &knob),
            (PLAIN, "  "),
            (DIM, &from),
            (PLAIN, " -> "),
            (GOOD, &to),
        ],
    );
    page.subfield("why", &change.reason);
    if !change.arithmetic.is_empty() {
        page.subfield("arithmetic", &change.arithmetic);
    }
    if let Some(memory) = change.memory_worst_case {
        page.subfield("memory", &format!("at most {memory}"));
    }
    page.subfield("applies", change.takes_effect.words());
    if let Some(command) = change.command() {
        page.command("do", &command);
    }
    // What is no single command is there to be read.
    if change.undo.contains(['<', ',']) || change.undo.contains(" it ") {
        page.subfield("undo", &change.undo);
    } else {
        page.command("undo", &change.undo);
    }
    if page.look.verbose && !change.source.is_empty() {
        page.subfield("source", &change.source);
    }
}
