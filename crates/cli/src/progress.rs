//! Progress for a person who looks on: what happens, how long it will take, and what was found so far.
//!
//! A spinner line on standard error where that is a terminal, whose finished steps stay as lines above it; nothing at
//! all otherwise, so that logs and scripts see results only.

use std::time::Duration;

use fullpipe_report::{clean, text};
use fullpipe_tune::{Event, Observer};
use fullpipe_units::{Micros, Rate};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::output::Output;

/// Shows progress, or nothing.
pub(crate) struct Progress {
    output: Output,
    command: &'static str,
    bar: ProgressBar,
    phase: String,
    expected: Option<Micros>,
    /// Of this phase.
    rates: Vec<f64>,
}

/// Columns of the rates so far.
const RATES: usize = 24;

impl Progress {
    pub(crate) fn new(command: &'static str, output: Output) -> Self {
        let bar = if output.shows_progress() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template has known keys only");
        // ASCII, as the terminal may show nothing else; the last one stands when the work is done.
        bar.set_style(style.tick_chars("|/-\\ "));
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(125));
        }
        Self { output, command, bar, phase: String::new(), expected: None, rates: Vec::new() }
    }

    /// Removes the line at the bottom; what was said above it stays.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// The line itself, for whoever needs the terminal meanwhile (`suspend`).
    pub(crate) fn line(&self) -> ProgressBar {
        self.bar.clone()
    }

    fn say(&self, line: &str) {
        self.bar.println(clean(&text::arrow(line)));
    }

    fn show(&self, text: &str) {
        self.bar.set_message(clean(&text::arrow(text)).into_owned());
    }
}

impl Observer for Progress {
    fn on(&mut self, event: Event<'_>) {
        if self.output.tells_progress() {
            if let Some(object) = as_json(&event) {
                self.output.progress(self.command, &object);
            }
            return;
        }
        if let Event::Phase { what, expected } = event {
            what.clone_into(&mut self.phase);
            self.expected = expected;
            self.rates.clear();
            self.show(&match expected {
                Some(expected) => format!("{what} (about {expected})"),
                None => what.to_owned(),
            });
        } else if let Event::Tick { elapsed, rate, rtt } = event {
            let mut parts = tick(&self.phase, (elapsed, self.expected), rate, rtt);
            if self.output.draws_progress() {
                self.rates.push(rate.bps() as f64);
                parts.push(format!("  {}", text::sparkline(&self.rates, RATES)));
            }
            // Behind the spinner and its blank.
            self.show(&fitted(&parts, self.output.progress_width().saturating_sub(2)));
        } else if let Some(line) = line(&event) {
            self.say(&line);
        }
    }
}

/// `measuring a->b: 3.2 of 8 s`, `, 6.41 Mbit/s`, `, round trip 80.1 ms`: the most important first.
fn tick(phase: &str, (elapsed, expected): (Micros, Option<Micros>), rate: Rate, rtt: Option<Micros>) -> Vec<String> {
    let of = expected.map_or_else(String::new, |expected| format!(" of {:.0}", expected.as_secs_f64()));
    let first = format!("{phase}: {:.1}{of} s", elapsed.as_secs_f64());
    [first, format!(", {rate}")].into_iter().chain(rtt.map(|rtt| format!(", round trip {rtt}"))).collect()
}

/// As many parts as fit into a line, from the first on; each whole.
fn fitted(parts: &[String], width: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for part in parts {
        used += part.chars().count();
        if used > width && !line.is_empty() {
            break;
        }
        line += part;
    }
    line
}

/// The same for a program.
fn as_json(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::Phase { what, expected } => {
            json!({ "kind": "phase", "text": clean(what), "expected_s": expected.map(Micros::as_secs_f64) })
        }
        Event::Tick { elapsed, rate, rtt } => {
            json!({ "kind": "tick", "elapsed_s": elapsed.as_secs_f64(), "rate_bps": rate, "rtt_us": rtt })
        }
        other => json!({ "kind": "note", "text": clean(&line(other)?) }),
    })
}

/// The line that stays when a step is done.
fn line(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::PathMade(scenario) => format!("emulating the path {}: {}", scenario.name, scenario.summary),
        Event::Judged(direction) => {
            let diagnosis = &direction.diagnosis;
            format!("{}: {}, limited by: {}", direction.name, direction.rate_bps, diagnosis.limiter.words())
        }
        Event::Planned(plan) => match plan.changes.len() {
            0 => "nothing to change".to_owned(),
            1 => "planned 1 change".to_owned(),
            number => format!("planned {number} changes"),
        },
        Event::Applied { host, knob, from, to } => {
            format!("set on {host}: {knob} {} -> {}", value(*from), value(*to))
        }
        Event::Pair { direction, number, before, after } => format!("{direction} pair {number}: {before} -> {after}"),
        Event::Proved(proof) => format!("{}: {:.2} times as fast", proof.direction, proof.proof.ratio),
        Event::Undone { host, count } => format!("undone on {host}: {count}"),
        Event::Compared(host) => format!(
            "{} compared with its start: {} settings, {} differ",
            host.host,
            host.compared,
            host.differences.len()
        ),
        Event::Note(text) => format!("note: {text}"),
        // Phases and ticks are shown in place; what is to come is no reason to fail.
        _ => return None,
    })
}

fn value(text: Option<&str>) -> String {
    text.map_or_else(|| "(absent)".to_owned(), |text| text.replace('\t', " "))
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::Address;

    use super::*;

    #[test]
    fn a_tick_tells_how_far_and_how_fast() {
        let text = tick(
            "measuring a->b",
            (Micros::from_millis(3_200), Some(Micros::from_secs(8))),
            Rate::from_bps(6_410_000),
            Some(Micros::new(80_100)),
        );
        assert_eq!(text.concat(), "measuring a->b: 3.2 of 8 s, 6.41 Mbit/s, round trip 80.1 ms");
        assert_eq!(tick("x", (Micros::ZERO, None), Rate::ZERO, None).concat(), "x: 0.0 s, 0 bit/s");
        // On a narrow terminal what does not fit is left out as a whole.
        for (width, line) in [
            (80, "measuring a->b: 3.2 of 8 s, 6.41 Mbit/s, round trip 80.1 ms"),
            (58, "measuring a->b: 3.2 of 8 s, 6.41 Mbit/s"),
            (30, "measuring a->b: 3.2 of 8 s"),
            (10, "measuring a->b: 3.2 of 8 s"),
        ] {
            assert_eq!(fitted(&text, width), line);
        }
    }

    #[test]
    fn a_change_is_shown_with_what_was_there() {
        let knob = Address::sysctl("net.ipv4.tcp_rmem");
        let event = Event::Applied { host: "b", knob: &knob, from: None, to: Some("4096\t87380\t2621440") };
        assert_eq!(line(&event).unwrap(), "set on b: net.ipv4.tcp_rmem (absent) -> 4096 87380 2621440");
    }
}
