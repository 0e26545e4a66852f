//! Loops over a list of words that stands in the script itself: what a body does for each word.
//!
//! No shell and no `cmd`: words that only a running script knows leave the loop as it is. PowerShell's loops are in
//! `powershell`.

use std::collections::BTreeMap;

use super::variables::{self, LONGEST, is_of_name};

/// The most that the loops of one script are written out to, in lines or commands.
const MOST: usize = 4096;

/// A loop of `cmd`: its variable, with its percent signs, and its words.
struct Loop {
    variable: String,
    words: Vec<String>,
}

/// The lines of a batch file, with `for %%v in (a b) do ...` written out. Each keeps the number of its own line.
pub(super) fn batch(text: &str) -> Vec<(u32, String)> {
    let mut lines = Vec::new();
    let mut open: Vec<Option<Loop>> = Vec::new();
    for (number, raw) in (1..).zip(text.lines()) {
        let trimmed = raw.trim_start();
        if trimmed.starts_with(')') && open.pop().is_some() {
            continue;
        }
        let mut body = raw.to_owned();
        if let Some((head, rest)) = head_of_batch(trimmed) {
            if let Some(block) = rest.trim_start().strip_prefix('(').filter(|block| !block.contains(')')) {
                open.push(head);
                body = block.to_owned();
            } else if let Some(head) = head {
                let rest = rest.trim().trim_start_matches('(').trim_end_matches(')').to_owned();
                open.push(Some(head));
                write_out(&rest, number, &open, &mut lines);
                open.pop();
                continue;
            }
        } else if trimmed.ends_with('(') {
            // `if ... (`: its end must not be taken for that of a loop.
            open.push(None);
        }
        write_out(&body, number, &open, &mut lines);
    }
    lines
}

/// One line for each word of the loops around it.
fn write_out(body: &str, number: u32, open: &[Option<Loop>], lines: &mut Vec<(u32, String)>) {
    let mut bodies = vec![body.to_owned()];
    for one in open.iter().flatten().filter(|one| body.contains(&one.variable)) {
        if bodies.len().saturating_mul(one.words.len()) > MOST {
            break;
        }
        bodies =
            bodies.iter().flat_map(|body| one.words.iter().map(|word| body.replace(&one.variable, word))).collect();
    }
    lines.extend(bodies.into_iter().map(|body| (number, body)));
}

/// The head of a loop and what follows its `do`: the head is none where its words are known only to a running script.
fn head_of_batch(line: &str) -> Option<(Option<Loop>, &str)> {
    let line = line.trim_start_matches(['@', '(']);
    let lower = line.to_ascii_lowercase();
    if !lower.starts_with("for ") {
        return None;
    }
    let (at_in, at_do) = (lower.find(" in ")?, lower.find(") do")?);
    let rest = line.get(at_do + 4..)?;
    let variable = line.get(4..at_in)?.trim();
    let list = line.get(at_in + 4..at_do)?.trim_start().strip_prefix('(')?;
    let plain = variable.starts_with('%') && !variable.contains(' ') && !list.contains(['*', '?', '%', '\'', '`', '/']);
    let words = || list.split([' ', ',', ';', '\t']).map(|word| word.trim_matches('"')).filter(|word| !word.is_empty());
    let head = plain.then(|| Loop { variable: variable.to_owned(), words: words().map(str::to_owned).collect() });
    Some((head, rest))
}

/// One command of a shell script: its line and its words.
pub(super) type Command = (u32, Vec<String>);

/// The commands of a shell script in the order in which they run, with `for v in a b; do ...; done` written out and the
/// variables that the script itself gives put in.
pub(super) fn shell(commands: &[Command]) -> Vec<Command> {
    let mut shell = Shell { left: MOST, ..Shell::default() };
    shell.run(commands, 0);
    shell.written
}

/// How deep loops are read that lie in one another.
const DEEPEST: usize = 32;

/// A shell script on its way.
#[derive(Default)]
struct Shell {
    variables: BTreeMap<String, String>,
    written: Vec<Command>,
    /// How many commands of loops may still be written out again.
    left: usize,
}

impl Shell {
    fn run(&mut self, commands: &[Command], depth: usize) {
        let mut rest = commands;
        while let Some(((line, words), after)) = rest.split_first() {
            rest = after;
            if let Some((variable, list)) = self.head_of_loop(words) {
                let (body, behind) = after.split_at(end_of_body(after));
                rest = behind.get(1..).unwrap_or_default();
                if depth < DEEPEST {
                    self.each(&variable, &list, body, depth + 1);
                }
            } else if !self.note(words) {
                self.written.push((*line, words.iter().map(|word| self.put_in(word)).collect()));
            }
        }
    }

    /// The body of a loop once for each word, or once where its words are not known.
    fn each(&mut self, variable: &str, list: &[String], body: &[Command], depth: usize) {
        self.variables.remove(variable);
        if list.is_empty() {
            return self.run(body, depth);
        }
        for (at, word) in list.iter().enumerate() {
            // The first time is the file's own text.
            let cost = if at == 0 { 0 } else { body.len() + 1 };
            let Some(left) = self.left.checked_sub(cost) else { break };
            self.left = left;
            self.variables.insert(variable.to_owned(), word.clone());
            self.run(body, depth);
        }
        self.variables.remove(variable);
    }

    /// The variable of a loop and its words; no words where only a running shell knows them.
    fn head_of_loop(&self, command: &[String]) -> Option<(String, Vec<String>)> {
        let command = command.strip_prefix(&["do".to_owned()]).unwrap_or(command);
        let [first, variable, word_in, list @ ..] = command else { return None };
        if first != "for" || word_in != "in" {
            return None;
        }
        let mut words = Vec::new();
        for word in list {
            if words.len() >= MOST {
                break;
            }
            let known = self.put_in(word);
            match braces(&known) {
                Some(several) => words.extend(several),
                None if known.contains(['$', '*', '?', '`', '{', '[']) => return Some((variable.clone(), Vec::new())),
                // What a variable stands for may be several words.
                None => words.extend(known.split_whitespace().map(str::to_owned)),
            }
        }
        Some((variable.clone(), words))
    }

    /// Notes `NAME=text`; true for a command that does nothing else.
    fn note(&mut self, command: &[String]) -> bool {
        const BEFORE: [&str; 9] = ["do", "then", "else", "export", "readonly", "local", "declare", "typeset", "-r"];
        let words = command.iter().skip_while(|word| BEFORE.contains(&word.as_str()));
        let pairs: Vec<Option<(&str, &str)>> = words.map(|word| name_and_value(word)).collect();
        // Before another command it holds for that alone, unless it is one word of `NAME=$(command ...)`.
        let Some(Some(first)) = pairs.first() else { return false };
        let alone = pairs.iter().all(Option::is_some);
        if !alone && !first.1.contains("$(") && !first.1.contains('`') {
            return false;
        }
        for (name, value) in pairs.into_iter().flatten() {
            let value = self.put_in(value);
            match worked_out(&value) {
                Some(value) if alone && value.len() <= LONGEST => self.variables.insert(name.to_owned(), value),
                _ => self.variables.remove(name),
            };
        }
        alone
    }

    /// A word with `$name`, `${name}` and `${name:-text}` replaced where they are known.
    fn put_in(&self, word: &str) -> String {
        variables::put_in(word, &['$'], |from| {
            let inner = from.get(1..).unwrap_or_default();
            let (name, default, after) = match inner.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((inner, after)) => {
                    let (name, default) =
                        inner.split_once(":-").map_or((inner, None), |(name, text)| (name, Some(text)));
                    (name, default, after)
                }
                None => {
                    let end = inner.bytes().take_while(|byte| is_of_name(*byte)).count();
                    let (name, after) = inner.split_at(end);
                    (name, None, after)
                }
            };
            let value = self.variables.get(name).map(String::as_str).or(default);
            (from.len() - after.len(), value.map(str::to_owned))
        })
    }
}

/// `NAME=text` as one word.
fn name_and_value(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = name.bytes().all(is_of_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    (plain && !name.is_empty()).then_some((name, value))
}

/// A value without anything that only a running shell knows; `$((16*1024))` is worked out where it is a product.
fn worked_out(value: &str) -> Option<String> {
    if let Some(sum) = value.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) {
        let factors = sum.split('*').map(|factor| factor.trim().parse::<u64>().ok());
        let product = factors.into_iter().try_fold(1_u64, |product, factor| product.checked_mul(factor?));
        return product.map(|product| product.to_string());
    }
    (!value.contains(['$', '`'])).then(|| value.to_owned())
}

/// Where the `done` of a loop stands whose body begins here.
fn end_of_body(commands: &[Command]) -> usize {
    let mut depth = 0_u32;
    for (at, (_, words)) in commands.iter().enumerate() {
        let first = words.iter().find(|word| *word != "do").map_or("", String::as_str);
        match first {
            "for" | "while" | "until" => depth += 1,
            "done" if depth == 0 => return at,
            "done" => depth -= 1,
            _ => {}
        }
    }
    commands.len()
}

/// `{1..4}` and `{rmem,wmem}`, with what stands around them.
fn braces(word: &str) -> Option<Vec<String>> {
    let (before, rest) = word.split_once('{').filter(|(before, _)| !before.ends_with('$'))?;
    let (inner, after) = rest.split_once('}').filter(|(inner, after)| !inner.contains('{') && !after.contains('{'))?;
    let all: Vec<String> = match inner.split_once("..") {
        Some((from, to)) => {
            let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
            (from..=to).take(MOST).map(|number| number.to_string()).collect()
        }
        None if inner.contains(',') => inner.split(',').map(str::to_owned).collect(),
        None => return None,
    };
    Some(all.into_iter().map(|middle| format!("{before}{middle}{after}")).collect())
}
