//! Judging a recipe line by line: what it does on a version, what it breaks, and what does nothing.
//!
//! Most of it comes from the catalogue (ignored, read-only, absent on this version); the rest are the rules of
//! `rules`, each with its reason. Pure over text.

mod device;
pub(crate) mod meant;
mod rules;
mod sarif;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_units::{Bytes, Micros, Rate};
use serde::{Deserialize, Serialize};

use crate::{
    Address, Catalogue, Family, Platform,
    catalogue::{Honoured, Span},
    recipe::{self, Action, Kind, Problem, Step},
};

pub use sarif::{Sarif, sarif};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The line is fine.
    Ok,
    /// Worth knowing.
    Note,
    /// Useless, or risky.
    Warning,
    /// Breaks something, or can't work.
    Error,
}

/// What is said of one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The line, counted from 1.
    pub line: u32,
    /// How bad it is.
    pub level: Level,
    /// The rule's name, which stays the same from release to release.
    pub rule: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to write instead, where there is one thing.
    pub fix: Option<String>,
    /// The setting that the line is about.
    #[serde(default)]
    pub knob: Option<String>,
    /// The platform that it was judged for.
    #[serde(default)]
    pub platform: Option<String>,
    /// The line itself, free of control characters and not longer than a line.
    #[serde(default)]
    pub text: Option<String>,
}

/// What a recipe is judged for.
#[derive(Clone, Debug, Default)]
pub struct LintRequest {
    /// The platform that it shall run on. Absent: the file's own, in its newest version.
    pub platform: Option<Platform>,
    /// The path that it shall fill: rate and round-trip time.
    pub path: Option<(Rate, Micros)>,
    /// What the files of the same machine set, for rules that look at two settings; a recipe's own lines come first.
    pub beside: BTreeMap<Address, String>,
}

impl LintRequest {
    /// Notes what a file of the same machine sets.
    pub fn add_beside(&mut self, steps: &[Step]) {
        self.beside.extend(together(steps, self.platform.as_ref()));
    }
}

/// One setting of a recipe, with what the rules look at.
#[derive(Clone, Copy)]
struct Setting<'a> {
    line: u32,
    knob: &'a Address,
    value: &'a str,
    platform: &'a Platform,
    catalogue: &'static Catalogue,
    path: Option<(Rate, Micros)>,
    /// Everything that the recipe and the files beside it set, for rules that look at two lines.
    all: &'a BTreeMap<Address, String>,
    /// What it does line by line, for rules about calls that are made for several sockets.
    steps: &'a [Step],
    /// Whether FreeBSD's boot loader reads it.
    at_start: bool,
    /// The socket that it is about.
    socket: Option<&'a str>,
    /// Why the line sets nothing as it is written, with the rule's name.
    sets_nothing: Option<&'a (&'static str, String)>,
}

/// How many lines of one setting are looked back on, and how many calls around one.
const AROUND: usize = 64;

/// Judges a recipe. Each line that sets something has at least one finding; the order is that of the lines.
pub fn lint(kind: Kind, text: &str, request: &LintRequest) -> Vec<Finding> {
    let (steps, problems) = recipe::read(kind, text);
    let mut findings = lint_steps(&steps, problems, kind.family(), request, kind == Kind::Shell);
    quote(&mut findings, text);
    findings
}

/// Puts beside each finding the line that it is about.
pub fn quote(findings: &mut [Finding], text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    for finding in findings {
        let at = usize::try_from(finding.line).ok().and_then(|line| line.checked_sub(1));
        let line = at.and_then(|at| lines.get(at)).map(|line| line.trim_start_matches('\u{feff}').trim());
        // The first line has nothing to do with what is said of the whole file.
        let whole = ["platform-assumed", "empty"].contains(&finding.rule.as_str());
        finding.text = line.filter(|line| !line.is_empty() && !whole).map(|line| clean(&quoted(line)));
    }
}

/// A line of a file, cut where it is longer than a terminal's.
fn quoted(line: &str) -> String {
    const WIDTH: usize = 160;
    let beginning: String = line.chars().take(WIDTH).collect();
    if line.chars().count() > WIDTH { beginning + "..." } else { beginning }
}

/// Judges a recipe that has been read, here or by a reader of another room. `family` is the platform family that the format
/// is for, where that is plain; `at_start` says whether FreeBSD's boot loader reads it.
pub fn lint_steps(
    steps: &[Step],
    problems: Vec<Problem>,
    family: Option<Family>,
    request: &LintRequest,
    at_start: bool,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = problems
        .into_iter()
        .map(|problem| Finding {
            line: problem.line,
            level: Level::Error,
            rule: "syntax".to_owned(),
            message: clean(&format!("column {}: {}", problem.column, problem.message)),
            fix: None,
            knob: None,
            platform: None,
            text: None,
        })
        .collect();
    let platform = request.platform.clone().unwrap_or_else(|| platform_of(family, steps));
    let Some(catalogue) = Catalogue::for_family(platform.family) else {
        return findings;
    };
    if request.platform.is_none() && !steps.is_empty() {
        let words =
            format!("checked against the newest {}; name a platform to check against another", platform.family.title());
        findings.push(finding(1, Level::Note, "platform-assumed", words));
    }
    let mut all = request.beside.clone();
    all.extend(together(steps, Some(&platform)));
    let mut seen: BTreeMap<&Address, Vec<(&Step, &str)>> = BTreeMap::new();
    for step in steps {
        match &step.action {
            Action::Set(knob, value) => {
                let platform = &platform;
                let sets_nothing = step.sets_nothing(platform);
                let setting = Setting {
                    line: step.line,
                    knob,
                    value,
                    platform,
                    catalogue,
                    path: request.path,
                    all: &all,
                    steps,
                    at_start,
                    socket: step.socket.as_deref(),
                    sets_nothing: sets_nothing.as_ref(),
                };
                let mut found = judge(&setting);
                if sets_nothing.is_some() {
                    findings.extend(found.into_iter().map(|finding| about(finding, knob)));
                    continue;
                }
                let before = seen.entry(knob).or_default();
                // Of two branches a machine takes one.
                let earlier =
                    before.iter().rev().take(AROUND).find(|(earlier, _)| !earlier.branches.exclude(&step.branches));
                if let Some((earlier, other)) = earlier.filter(|_| !is_of_several(knob)) {
                    found.push(again(step.line, knob, [value, other], earlier.line));
                }
                before.push((step, value));
                findings.extend(found.into_iter().map(|finding| about(finding, knob)));
            }
            Action::Delete(knob) => {
                let words = format!("{knob} goes back to what the system does without it");
                findings.push(about(finding(step.line, Level::Ok, "deleted", words), knob));
            }
            Action::Misspelt { written, meant } => findings.push(misspelt(step.line, written, meant)),
            Action::Reset(what) => findings.push(rules::reset(step.line, what)),
            Action::Repeats(times) => findings.extend(device::repeated(step.line, *times, steps, &all)),
            Action::Sockets(sockets) => findings.extend(device::together(step.line, sockets, &all)),
            Action::Unclear(why) => {
                findings.push(finding(step.line, Level::Note, "not-judged", format!("{why}; it is not judged")));
            }
        }
    }
    let judged_for = if platform.version == NEWEST { platform.family.to_string() } else { platform.to_string() };
    // Names and values of a file must not reach a terminal as they are.
    for finding in &mut findings {
        finding.platform = Some(judged_for.clone());
        finding.knob = finding.knob.as_deref().map(clean);
        finding.message = clean(&finding.message);
        finding.fix = finding.fix.as_deref().map(clean);
    }
    findings.sort_by_key(|finding| finding.line);
    // A line that sets one thing twice is reported once.
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert((finding.line, finding.rule.clone(), finding.message.clone())));
    findings
}

fn finding(line: u32, level: Level, rule: &str, message: String) -> Finding {
    Finding { line, level, rule: rule.to_owned(), message, fix: None, knob: None, platform: None, text: None }
}

/// A finding with the setting that it is about.
fn about(finding: Finding, knob: &Address) -> Finding {
    Finding { knob: Some(knob.to_string()), ..finding }
}

/// A name that nothing has, and the one that was meant.
fn misspelt(line: u32, written: &str, meant: &str) -> Finding {
    let words = format!("{} does not exist; did you mean {meant}?", shown(written));
    let fix = Some(format!("write {meant}"));
    Finding { fix, ..finding(line, Level::Warning, "misspelt", words) }
}

/// Whether a setting stands for several: another line sets it for another socket, or another checksum of an adapter.
fn is_of_several(knob: &Address) -> bool {
    matches!(knob, Address::Socket(_))
        || matches!(knob, Address::Named { kind, .. } if kind == "call" || kind == "adapter")
}

/// The version that stands for the newest of a family whose versions are numbers.
const NEWEST: &str = "9999";

/// The platform that a recipe is for, in its newest version.
fn platform_of(family: Option<Family>, steps: &[Step]) -> Platform {
    let knobs =
        || steps.iter().filter_map(|step| if let Action::Set(knob, _) = &step.action { Some(knob) } else { None });
    let family = family.unwrap_or_else(|| {
        // The family whose catalogue knows most of the lines.
        let known = |family: Family| {
            let catalogue = Catalogue::for_family(family);
            knobs().filter(|knob| catalogue.is_some_and(|catalogue| catalogue.find(knob).is_some())).count()
        };
        [Family::NetBurner, Family::MacOs, Family::FreeBsd, Family::Linux]
            .into_iter()
            .max_by_key(|family| known(*family))
            .unwrap_or(Family::Linux)
    });
    // The newest version by name; numbered families have spans open to the end.
    let newest = Catalogue::for_family(family).and_then(|catalogue| catalogue.order.last().cloned());
    Platform { family, version: newest.unwrap_or_else(|| NEWEST.to_owned()) }
}

/// What steps set together on a platform; where it is not known, every line counts.
fn together(steps: &[Step], platform: Option<&Platform>) -> BTreeMap<Address, String> {
    let sets = steps.iter().filter_map(|step| match &step.action {
        Action::Set(knob, value) => {
            let sets = platform.is_none_or(|platform| step.sets_nothing(platform).is_none());
            sets.then(|| (knob.clone(), value.clone()))
        }
        _ => None,
    });
    sets.collect()
}

fn again(line: u32, knob: &Address, [value, other]: [&str; 2], earlier: u32) -> Finding {
    if value == other {
        return finding(
            line,
            Level::Note,
            "set-twice",
            format!("line {earlier} sets {knob} to the same value already"),
        );
    }
    let (words, fix) = if earlier == line {
        let words =
            format!("this line sets {knob} to `{}` and to `{}`; the last of them wins", shown(other), shown(value));
        (words, "keep one of them".to_owned())
    } else {
        let words = format!("line {earlier} sets {knob} to `{}`; this line wins", shown(other));
        (words, format!("delete line {earlier} or this one"))
    };
    Finding { fix: Some(fix), ..finding(line, Level::Warning, "conflicts-with", words) }
}

/// A value of a recipe, not longer than a line.
fn shown(value: &str) -> String {
    let beginning: String = value.chars().take(60).collect();
    if value.chars().count() > 60 { beginning + "..." } else { beginning }
}

/// A text without control characters.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// What the catalogue and the rules say of one setting; at least one finding.
fn judge(setting: &Setting<'_>) -> Vec<Finding> {
    // A registry address is recognised by its end, which is what differs.
    let name = match setting.knob {
        Address::Registry { value, .. } => shown(value),
        knob => shown(&knob.to_string()),
    };
    if let Some(nothing) = rules::sets_nothing(setting) {
        return vec![nothing];
    }
    if let Some(module) = rules::module(setting) {
        return vec![module];
    }
    let Some(knob) = setting.catalogue.find(setting.knob) else {
        if let Some(misplaced) = rules::wrong_place(setting) {
            return vec![misplaced];
        }
        if let Some(meant) = meant::nearest(setting.catalogue, setting.knob) {
            let fix = Some(format!("write {meant}"));
            let (level, words) = match windows::refuses(setting, &meant) {
                Some(words) => (Level::Error, format!("{words}; did you mean {meant}?")),
                None => {
                    let family = setting.platform.family.title();
                    (Level::Warning, format!("{name} is not a {family} setting; did you mean {meant}?"))
                }
            };
            let mut found = vec![Finding { fix, ..finding(setting.line, level, "misspelt", words) }];
            // netsh may take a beginning for the whole: what that does is worth a word, too.
            if let Address::Netsh { context, parameter } = setting.knob
                && meant.starts_with(parameter.as_str())
            {
                let knob = Address::Netsh { context: context.clone(), parameter: meant };
                let harms = judge(&Setting { knob: &knob, ..*setting }).into_iter();
                found.extend(harms.filter(|finding| finding.level >= Level::Warning));
            }
            return found;
        }
        if let Some(refused) = windows::no_such_parameter(setting) {
            return vec![refused];
        }
        let words = format!(
            "{name} is not among the settings that fullpipe knows of {}: it is not judged",
            setting.platform.family.title()
        );
        return vec![finding(setting.line, Level::Note, "unknown-setting", words)];
    };
    if knob.other_protocols {
        return vec![finding(setting.line, Level::Note, "not-tcp", knob.meaning.clone())];
    }
    let span = setting.catalogue.span(knob, &setting.platform.version);
    let mut undocumented = None;
    if let Some(span) = span {
        let on = if setting.platform.version == NEWEST {
            setting.platform.family.to_string()
        } else {
            setting.platform.to_string()
        };
        let (level, rule, what) = match span.honoured {
            Honoured::Ignored => (Level::Warning, "does-nothing", "does nothing"),
            Honoured::Absent => (Level::Warning, "not-there", "does not exist"),
            Honoured::ReadOnly => (Level::Error, "read-only", "can't be written"),
            Honoured::Unknown => (Level::Note, "not-documented", "is not documented"),
            Honoured::Yes | Honoured::Partly => (Level::Ok, "", ""),
        };
        // What nobody could confirm is no reason to call a line wrong.
        let level = if span.confirmed { level } else { level.min(Level::Note) };
        if level > Level::Ok {
            let sure = if span.confirmed { "" } else { " (unverified)" };
            let because = if span.note.is_empty() { String::new() } else { format!(": {}", span.note) };
            let words = format!("{name} {what} on {on}{sure}{because}");
            let fix = (level >= Level::Warning).then(|| "delete the line".to_owned());
            let found = Finding { fix, ..finding(setting.line, level, rule, words) };
            if span.honoured != Honoured::Unknown {
                return vec![found];
            }
            undocumented = Some(found);
        }
    }
    if let Some(wrong) = rules::wrong_file(setting) {
        return vec![wrong];
    }
    if let Some(wrong) = rules::wrong_type(setting, &knob.value_type) {
        return vec![wrong];
    }
    let mut found = rules::switched_off(setting, knob).map_or_else(|| rules::apply(setting), |off| vec![off]);
    if let Some(back) = device::taken_back(setting).filter(|_| found.is_empty()) {
        return vec![back];
    }
    // A rule that calls the value wrong has better words for it.
    if found.iter().all(|finding| finding.level < Level::Error)
        && let Some(wrong) = knob.wrong_value(setting.value)
    {
        return vec![setting.error(
            "out-of-range",
            format!("{name} can't be `{}`: {wrong}", shown(setting.value)),
            None,
        )];
    }
    if let Some(undocumented) = undocumented {
        // What harms where it acts is worth a word although nobody says whether it acts.
        found.retain(|finding| finding.level >= Level::Warning);
        let is_refused = |finding: &Finding| ["malformed", "misspelt", "no-template"].contains(&finding.rule.as_str());
        // What the command itself refuses is wrong whatever the setting does.
        found.iter_mut().filter(|finding| !is_refused(finding)).for_each(|finding| finding.level = Level::Warning);
        found.push(undocumented);
    }
    if !found.is_empty() {
        return found;
    }
    let note = span.map(|span| span.note.as_str()).filter(|note| !note.is_empty());
    let words = note.map_or_else(|| knob.meaning.clone(), |note| format!("{} ({note})", knob.meaning));
    vec![finding(setting.line, Level::Ok, "fine", words)]
}

impl Setting<'_> {
    /// Whether this version sizes buffers by itself where an application does not set them.
    fn is_automatic(&self) -> bool {
        let since = match self.platform.family {
            Family::Windows => "vista",
            Family::FreeBsd => "7.0",
            Family::NetBurner => return false,
            Family::Linux | Family::MacOs | Family::Unknown => return true,
        };
        self.catalogue.is_at_least(&self.platform.version, since).unwrap_or(true)
    }

    /// What the catalogue says of another setting on this version.
    fn span_of(&self, knob: &Address) -> Option<&'static Span> {
        Some(self.catalogue.at(knob, &self.platform.version)?.1)
    }

    /// The value that this version starts with, where the catalogue knows it as a number: the first of several.
    fn default_of(&self, knob: &Address) -> Option<u64> {
        self.span_of(knob)?.default.split(';').next()?.trim().parse().ok()
    }

    /// The window or buffer that fills the path, with room for one round of loss recovery.
    fn wanted(&self) -> Option<(Bytes, Bytes)> {
        let (rate, rtt) = self.path?;
        let bdp = fullpipe_units::bdp(rate, rtt);
        Some((bdp, Bytes::new(bdp.get().saturating_mul(2))))
    }

    fn error(&self, rule: &str, message: String, fix: Option<String>) -> Finding {
        Finding { fix, ..finding(self.line, Level::Error, rule, message) }
    }

    fn warning(&self, rule: &str, message: String, fix: Option<String>) -> Finding {
        Finding { fix, ..finding(self.line, Level::Warning, rule, message) }
    }

    fn note(&self, rule: &str, message: String) -> Finding {
        finding(self.line, Level::Note, rule, message)
    }
}

#[cfg(test)]
mod script_tests;
#[cfg(test)]
pub(crate) mod tests;
