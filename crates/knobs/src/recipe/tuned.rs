//! TuneD profiles (tuned.conf(5)): what their sysctl sections set. What a profile includes is in another file and not
//! read here.

use std::collections::BTreeMap;

use super::{Action, Problem, Step};
use crate::{Address, sysctl_conf};

/// The longest value of a variable that is put into a setting, in bytes.
const LONGEST: usize = 4096;

pub(super) fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let mut reader = Reader::default();
    for (number, raw) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        reader.line(number, raw);
    }
    reader.end_of_section();
    reader.steps.sort_by_key(|step| step.line);
    (reader.steps, reader.problems)
}

/// Whether a file is a profile: its first line that says anything is a section that profiles have.
pub(super) fn is_profile(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    first.is_some_and(|line| line.starts_with('[') && line.ends_with(']'))
}

/// One line `name=value` of a section.
struct Assignment<'a> {
    line: u32,
    name: &'a str,
    value: &'a str,
}

#[derive(Default)]
struct Reader<'a> {
    section: &'a str,
    lines: Vec<Assignment<'a>>,
    variables: BTreeMap<&'a str, String>,
    steps: Vec<Step>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn problem(&mut self, line: u32, raw: &str, message: &str) {
        let indent = raw.chars().take_while(|c| c.is_whitespace()).count();
        let column = u32::try_from(indent).unwrap_or(u32::MAX).saturating_add(1);
        self.problems.push(Problem { line, column, message: message.to_owned() });
    }

    fn line(&mut self, number: u32, raw: &'a str) {
        let line = raw.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return;
        }
        if let Some(rest) = line.strip_prefix('[') {
            self.end_of_section();
            match rest.strip_suffix(']') {
                Some(name) => self.section = name.trim(),
                None => {
                    self.section = "";
                    self.problem(number, raw, "the section's `[` is not closed by `]`");
                }
            }
            return;
        }
        // Other plugins have forms of their own; only these sections are ours to judge.
        match line.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                self.lines.push(Assignment { line: number, name: name.trim(), value: value.trim() });
            }
            _ if self.section == "sysctl" => {
                self.problem(number, raw, "no `=` in the line; a setting is written name=value");
            }
            _ => {}
        }
    }

    /// A section's plugin is its name, or what its `type` says, which may stand below the settings.
    fn end_of_section(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let plugin = lines.iter().find(|line| line.name == "type").map_or(self.section, |line| line.value);
        if self.section == "variables" {
            for line in lines.iter().filter(|line| line.value.len() <= LONGEST) {
                let value = self.expanded(unquoted(line.value)).unwrap_or_default();
                self.variables.insert(line.name, value);
            }
        } else if plugin == "sysctl" {
            const OF_EVERY_PLUGIN: [&str; 8] =
                ["type", "replace", "enabled", "devices", "devices_udev_regex", "priority", "drop", "script_pre"];
            for line in lines.iter().filter(|line| !OF_EVERY_PLUGIN.contains(&line.name)) {
                let action = self.setting(line);
                self.steps.push(Step::new(line.line, action));
            }
        }
    }

    fn setting(&self, line: &Assignment<'_>) -> Action {
        // `=>value` and `=<value` raise or lower a value only: the value is the one that may come to be.
        let value = unquoted(line.value.trim_start_matches(['>', '<']).trim_start());
        match self.expanded(value) {
            Some(value) => Action::Set(Address::Sysctl(sysctl_conf::dotted(line.name)), value),
            None => {
                Action::Unclear(format!("the value of {} comes from a variable that the file doesn't set", line.name))
            }
        }
    }

    /// A value with its variables; `None` where one of them is none of the file's own.
    fn expanded(&self, value: &str) -> Option<String> {
        let mut parts = value.split("${");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}')?;
            let value = self.variables.get(name.trim()).filter(|value| !value.is_empty())?;
            if text.len() + value.len() + rest.len() > LONGEST {
                return None;
            }
            text.push_str(value);
            text.push_str(rest);
        }
        Some(text)
    }
}

fn unquoted(value: &str) -> &str {
    ['"', '\''].into_iter().find_map(|mark| value.strip_prefix(mark)?.strip_suffix(mark)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROFILE: &str = "[main]\nsummary=Long paths\ninclude=throughput-performance\n\n[variables]\nlargest=16777216\n\n[cpu]\ngovernor=performance\n\n[sysctl]\n# both directions\nnet.ipv4.tcp_rmem=\"4096 131072 ${largest}\"\nnet.core.rmem_max=>212992\nnet.ipv4.tcp_wmem = ${unknown}\nnet.ipv4.tcp_sack 1\n\n[more]\nnet/ipv4/tcp_timestamps=0\ntype=sysctl\n";

    #[test]
    fn reads_the_sysctl_sections_with_the_variables_of_the_file() {
        let (steps, problems) = read(PROFILE);
        let set = |line, name: &str, value: &str| Step::new(line, Action::Set(Address::sysctl(name), value.to_owned()));
        assert_eq!(steps[0], set(13, "net.ipv4.tcp_rmem", "4096 131072 16777216"));
        assert_eq!(steps[1], set(14, "net.core.rmem_max", "212992"));
        assert!(matches!(&steps[2], Step { line: 15, action: Action::Unclear(_), .. }));
        assert_eq!(steps[3], set(19, "net.ipv4.tcp_timestamps", "0"));
        assert_eq!(steps.len(), 4);
        assert_eq!((problems.len(), problems[0].line, problems[0].column), (1, 16, 1));
    }

    #[test]
    fn a_section_that_is_not_closed_is_a_problem_with_its_place() {
        let (steps, problems) = read("[main]\n  [sysctl\nnet.ipv4.tcp_sack=0\n");
        assert_eq!((steps.len(), problems[0].line, problems[0].column), (0, 2, 3));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(\\[sysctl\\]|\\[variables\\]|\\[|\\]|type=|a=|\\$\\{a\\}|\\$\\{|\\}|=|>|\"|#|\n|[a-z.]){0,40}") {
            let (steps, problems) = read(&text);
            prop_assert!(steps.len() + problems.len() <= text.lines().count());
        }
    }
}
