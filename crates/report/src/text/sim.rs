//! What the simulator found.

use anstyle::Style;
use fullpipe_diagnose::{Limiter, limit_words};
use fullpipe_units::{Bytes, Micros};

use super::{
    direction::{arrow, put_direction},
    draw,
    outcome::{put_expectations, put_scenario},
    page::{BAD, DIM, GOOD, Look, NAME, PLAIN, Page, WARN, or_dash},
};
use crate::{PredictionRow, ReferenceTable, SimRun, WhatIf};

/// Columns of a bar of a curve: at the most, and where the words about the plateau shall stand beside it.
const BAR: usize = 40;
const LEAST_BAR: usize = 24;
/// A value and its rate stand before a bar.
const BEFORE_BAR: usize = 24 + 2 + 13 + 2;
const PLATEAU_MARK: &str = "  <- the smallest on the plateau";
const SHORT_MARK: &str = " <-";

/// What `sim` found.
pub fn sim(run: &SimRun, look: Look) -> String {
    let mut page = Page::new(look);
    if let Some(scenario) = &run.outcome.scenario {
        put_scenario(&mut page, scenario);
    }
    page.field("simulated", &format!("in virtual time, seed {}", run.seed));
    for direction in &run.outcome.before {
        put_direction(&mut page, direction);
        let Some(known) = run.known.iter().find(|known| known.direction == direction.name) else { continue };
        let mut shares: Vec<_> = known.truth.iter().filter(|(_, share)| **share >= 0.005).collect();
        shares.sort_by(|a, b| b.1.total_cmp(a.1));
        let words = shares.iter().map(|(limiter, share)| format!("{} {:.0} %", limiter.words(), *share * 100.0));
        page.field("truth", &words.collect::<Vec<_>>().join(", "));
        page.field("queue", &format!("{} of wait on average", Micros::new(known.queue_delay_us)));
        page.field("series", &format!("{:016x}", known.digest));
    }
    put_expectations(&mut page, &run.outcome);
    put_notes(&mut page, &run.outcome.notes);
    page.finish()
}

/// What `what-if` predicts.
pub fn what_if(found: &WhatIf, look: Look) -> String {
    let mut page = Page::new(look);
    page.title("what if", PLAIN, &found.situation);
    page.gap();
    match &found.plateau {
        Some((knob, place)) => put_curve(&mut page, found, knob, *place),
        None => put_table(&mut page, &found.predictions),
    }
    put_notes(&mut page, &found.notes);
    page.finish()
}

/// The widest row of that table, and the widest without its last two columns.
const REFERENCE_WIDTH: usize = 110;
const FIGURES_WIDTH: usize = 72;

/// The published situations beside each other.
pub fn reference(table: &ReferenceTable, look: Look) -> String {
    let mut page = Page::new(look);
    page.title("published situations", PLAIN, "published, by arithmetic, simulated, in the lab");
    put_situation(&mut page, DIM, ["", "published", "arithmetic", "simulated", "limited by", "lab"]);
    let mut scenario = "";
    for row in &table.rows {
        if scenario != row.scenario {
            page.pieces(0, &[(NAME, row.scenario)]);
            scenario = row.scenario;
        }
        let arithmetic = or_dash(row.arithmetic.as_ref().map(|(figure, _)| figure));
        let simulated = row.simulated.to_string();
        let limiter = or_dash(row.limiter.map(Limiter::words));
        let cells = [row.case, row.published.unwrap_or("-"), &arithmetic, &simulated, &limiter, row.lab.unwrap_or("-")];
        put_situation(&mut page, PLAIN, cells);
        if let Some((_, words)) = row.arithmetic.as_ref().filter(|_| page.look.verbose) {
            page.pieces(4, &[(DIM, words)]);
        }
    }
    put_notes(&mut page, &table.notes);
    page.finish()
}

/// A row of that table; on a narrow terminal its last columns stand below the others.
fn put_situation(page: &mut Page, style: Style, [case, published, arithmetic, simulated, limiter, lab]: [&str; 6]) {
    let first = format!("  {case:<18} {published:<26}");
    let figures = format!(" {arithmetic:>11}  {simulated:>11}");
    let verdict = format!("{limiter:<17} {lab}");
    // Where the two stand below the case.
    let below = 21;
    match page.look.width {
        REFERENCE_WIDTH.. => page.pieces(0, &[(style, &first), (style, &figures), (style, "  "), (style, &verdict)]),
        FIGURES_WIDTH.. => {
            page.pieces(0, &[(style, &first), (style, &figures)]);
            page.pieces(below, &[(style, &verdict)]);
        }
        _ => {
            page.pieces(0, &[(style, &first)]);
            page.pieces(below, &[(style, figures.trim_start())]);
            page.pieces(below, &[(style, &verdict)]);
        }
    }
}

fn put_notes(page: &mut Page, notes: &[String]) {
    for (index, note) in notes.iter().enumerate() {
        if index == 0 {
            page.gap();
        }
        page.marked("note", WARN, note);
    }
}

fn put_table(page: &mut Page, rows: &[PredictionRow]) {
    for row in rows {
        let set = if row.set.is_empty() { "as it is".to_owned() } else { row.set.join(", ") };
        let name = row.direction.as_deref().map_or_else(|| set.clone(), |way| format!("{}  {set}", arrow(way)));
        page.pieces(0, &[(NAME, &name)]);
        let style = if row.failure.is_some() { BAD } else { GOOD };
        let measured = row.measured.map_or_else(String::new, |measured| format!("; measured {measured}"));
        page.styled_field("rate", style, &format!("{}{measured}", row.rate));
        page.field("limited by", &limit_words(row.limiter, row.detail));
        if let Some(seconds) = row.seconds {
            page.field("takes", &format!("{seconds:.2} s"));
        }
        page.field(
            "costs",
            &format!(
                "{} retransmitted, {} in the queue, {} of memory",
                row.retransmits,
                Micros::new(row.queue_delay_us),
                Bytes::new(row.memory_bytes)
            ),
        );
        if let Some(failure) = &row.failure {
            page.styled_field("ended", BAD, failure);
        }
    }
}

/// The number that was swept, in the setting's own unit: `receiver.window=16384`, `receiver.delayed_ack=1000us`.
fn swept(row: &PredictionRow) -> Option<f64> {
    let (_, value) = row.set.last()?.split_once('=')?;
    value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok()
}

/// The curve, where its values are numbers; whether it is there now.
fn put_drawing(page: &mut Page, rows: &[PredictionRow], place: usize) -> bool {
    let points = rows.iter().map(|row| Some((swept(row)?, row.rate.bps() as f64)));
    let (Some(points), [first, .., last]) = (points.collect::<Option<Vec<_>>>(), rows) else { return false };
    if points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return false;
    }
    let largest = rows.iter().map(|row| row.rate).max().unwrap_or_default().to_string();
    let ends = [first, last].map(|row| row.value.as_deref().unwrap_or_default());
    let words = rows.get(place).map(|row| format!("{} is enough", or_dash(row.value.as_deref())));
    draw::put_curve(page, &points, &largest, ends, words.as_deref().map(|words| (place, words)));
    page.gap();
    true
}

fn put_curve(page: &mut Page, found: &WhatIf, knob: &str, place: usize) {
    let rows = &found.predictions;
    let best = rows.iter().map(|row| row.rate.bps()).max().unwrap_or(0).max(1);
    let is_drawn = page.look.draws && put_drawing(page, rows, place);
    // A curve of thousands of points is read as JSON; here some forty lines tell its shape, and fewer below a drawing.
    let every = rows.len().div_ceil(if is_drawn { 12 } else { 48 }).max(1);
    let room = page.look.width.saturating_sub(BEFORE_BAR);
    let (longest, plateau) = match is_drawn {
        true if room >= PLATEAU_MARK.len() => (0, PLATEAU_MARK),
        // The line about the plateau below says what it is.
        true => (0, SHORT_MARK),
        false if room >= PLATEAU_MARK.len() + LEAST_BAR => (room - PLATEAU_MARK.len(), PLATEAU_MARK),
        false => (room.saturating_sub(SHORT_MARK.len()), SHORT_MARK),
    };
    let longest = longest.min(BAR);
    page.pieces(0, &[(DIM, &format!("{knob:>24}  {:>13}", "rate"))]);
    for (index, row) in rows.iter().enumerate() {
        if index % every != 0 && index != place && index + 1 != rows.len() {
            continue;
        }
        let cells = (row.rate.bps() as f64 / best as f64 * longest as f64).round() as usize;
        let mark = if page.look.unicode { "█" } else { "#" };
        let style = if index == place { GOOD } else { PLAIN };
        let figures = format!("{:>24}  {:>13}  ", or_dash(row.value.as_deref()), row.rate.to_string());
        let name = if index == place { plateau } else { "" };
        page.pieces(0, &[(style, &figures), (NAME, &mark.repeat(cells)), (GOOD, name)]);
    }
    if let Some(row) = rows.get(place) {
        page.gap();
        let value = or_dash(row.value.as_deref());
        let text = format!("{knob} = {value} gives {}, and no larger value gives 3 % more", row.rate);
        page.title("plateau", GOOD, &text);
        page.field("limited by", &limit_words(row.limiter, row.detail));
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Rate;

    use super::*;

    fn row(set: String, value: u64, rate: u64) -> PredictionRow {
        PredictionRow {
            direction: None,
            set: vec![set],
            value: Some(Bytes::new(value).to_string()),
            rate: Rate::from_bps(rate),
            measured: None,
            limiter: Limiter::ReceiveWindow,
            detail: None,
            truth: None,
            seconds: None,
            retransmits: 0,
            queue_delay_us: 0,
            memory_bytes: 0,
            failure: None,
        }
    }

    #[test]
    fn no_line_of_a_sweep_is_wider_than_the_terminal() {
        let row = |megabits: u64| row(format!("receiver.window={megabits}"), megabits << 20, megabits * 1_000_000);
        let predictions = [10, 50, 100, 100].into_iter().map(row).collect();
        let plateau = Some(("receiver.window".to_owned(), 2));
        let found = WhatIf { predictions, plateau, ..WhatIf::default() };
        for width in [60, 80, 100, 120] {
            let text = what_if(&found, Look { unicode: false, draws: false, width, ..Look::default() });
            let text = anstream::adapter::strip_str(&text).to_string();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= width), "{width}: {text}");
            assert!(text.contains("####  <- the smallest") == (width > 80) && text.contains("####"), "{text}");
            assert_eq!(text.matches("<-").count(), 1, "{text}");
        }
    }

    #[test]
    fn a_sweep_is_drawn_in_dots_on_a_terminal_and_nowhere_else() {
        for (values, suffix) in [([16_384, 65_536, 262_144], ""), ([1_000, 14_142, 200_000], "us")] {
            let row =
                |(place, value): (usize, u64)| row(format!("receiver.x={value}{suffix}"), value, 1_000_000 << place);
            let found = WhatIf {
                predictions: values.into_iter().enumerate().map(row).collect(),
                plateau: Some(("receiver.x".to_owned(), 2)),
                ..WhatIf::default()
            };
            let has_dots = |draws| {
                let text = what_if(&found, Look { unicode: true, draws, ..Look::default() });
                text.chars().any(|letter| ('\u{2801}'..='\u{28ff}').contains(&letter))
            };
            assert!(has_dots(true), "{values:?}{suffix}");
            assert!(!has_dots(false), "{values:?}{suffix}");
        }
    }
}
