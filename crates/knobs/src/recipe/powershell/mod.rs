//! PowerShell scripts: their commands in the order in which they run, with loops over words of the script itself written
//! out and variables that the script itself gives put in.
//!
//! No interpreter: what only a running script knows stays the variable's name, and branches count as taken. Functions run
//! where they are called, with what the call gives and the defaults of `param()`.

mod parameters;
mod tokens;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use parameters::{is_param, parameters, without_param};
use tokens::{LIST, Spot, Token, Word, tokens};

use super::{
    Branches, Conditions,
    commands::{Language, Place, Taken, end_of_block},
    variables::{self, LONGEST, is_of_name},
};

/// The most that the loops of one script are written out to, in words beyond those of the script itself, and the most
/// elements of a list.
const MOST: usize = 1 << 16;
/// How deep blocks are read that lie in one another.
const DEEPEST: usize = 32;

/// One command: its line, its words without quotation marks, lists with commas, and the words of the command that hands
/// it objects by a pipe (none, where what hands them is no command).
#[derive(Debug, PartialEq)]
pub(super) struct Command {
    /// The line that it is judged on: that of the call which gives it values.
    pub(super) line: u32,
    /// The line that it begins on.
    pub(super) own: u32,
    pub(super) words: Vec<String>,
    pub(super) piped: Option<Vec<String>>,
    pub(super) branches: Branches,
}

pub(super) fn read(text: &str, depth: usize) -> Taken {
    let mut taken = Taken::default();
    for command in commands(text.trim_start_matches('\u{feff}')) {
        let place = Place { language: Language::PowerShell, depth };
        let from = taken.steps.len();
        taken.command(command.line, &command.words, command.piped.as_deref(), place);
        taken.place(from, [command.line, command.own], &command.branches);
    }
    taken.steps.sort_by_key(|step| step.line);
    taken
}

/// The commands of a script.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let mut run = Run { left: MOST, ..Run::default() };
    run.block(&tokens(text), 0);
    // What nothing calls may be called by another script.
    for (name, function) in run.functions.clone() {
        if !run.called.contains(&name) {
            run.function(&function, &[], None, 1);
        }
    }
    run.commands
}

/// What one part of a pipeline hands to the next.
enum Piped {
    Nothing,
    /// Texts that stand in the script.
    Texts(Vec<String>),
    /// What only a running script knows, from the command with these words.
    Objects(Vec<String>),
}

/// A function of the script.
#[derive(Clone, Debug)]
struct Function {
    /// Its parameters in their order, each with its default.
    parameters: Vec<(String, Option<Word>)>,
    body: Vec<Spot>,
}

/// A script on its way.
#[derive(Default)]
struct Run {
    /// Variables with what they stand for: one text or several.
    variables: BTreeMap<String, Vec<String>>,
    /// Variables that hold parameters for `@name`.
    tables: BTreeMap<String, Vec<[String; 2]>>,
    functions: BTreeMap<String, Rc<Function>>,
    called: BTreeSet<String>,
    /// Those that run: menus call one another.
    running: Vec<String>,
    /// The line of the call that runs, and the variables that come from it.
    call: Option<(u32, BTreeSet<String>)>,
    conditions: Conditions,
    commands: Vec<Command>,
    /// How much may still be written out.
    left: usize,
}

impl Run {
    fn block(&mut self, tokens: &[Spot], depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let mut words: Vec<Word> = Vec::new();
        let mut piped = Piped::Nothing;
        let mut at = 0;
        // Whether a condition of this block may have another branch.
        let mut open = false;
        while let Some((line, token)) = tokens.get(at) {
            at += 1;
            match token {
                Token::Word { text, quoted } => {
                    words.push(Word { line: *line, text: text.clone(), quoted: *quoted });
                }
                Token::Pipe => piped = self.part(&std::mem::take(&mut words), &piped, depth),
                Token::End(true) if !words.is_empty() && block_follows(tokens, at) => {}
                Token::End(_) | Token::Close => {
                    self.part(&std::mem::take(&mut words), &piped, depth);
                    piped = Piped::Nothing;
                }
                Token::Open => {
                    let end = end_of_block(tokens, at, [&Token::Open, &Token::Close]);
                    let inner = tokens.get(at..end).unwrap_or_default();
                    let words = std::mem::take(&mut words);
                    let first = words.first().map(|word| word.text.to_ascii_lowercase()).unwrap_or_default();
                    let first = first.split('(').next().unwrap_or_default();
                    if open && ["else", "elseif"].contains(&first) {
                        self.conditions.next();
                    } else {
                        if std::mem::replace(&mut open, first == "if") {
                            self.conditions.end();
                        }
                        if open {
                            self.conditions.begin();
                        }
                    }
                    self.head(&words, &piped, inner, depth + 1);
                    piped = Piped::Objects(Vec::new());
                    at = end + 1;
                }
            }
        }
        if open {
            self.conditions.end();
        }
        self.part(&words, &piped, depth);
    }

    /// A block, once for each text of the loop that it is the body of.
    fn head(&mut self, words: &[Word], piped: &Piped, block: &[Spot], depth: usize) {
        let first = words.first().map(|word| word.text.to_ascii_lowercase()).unwrap_or_default();
        if let ("function" | "filter", [_, name, list @ ..]) = (first.as_str(), words) {
            return self.define(name, list.first(), block);
        }
        let mut given = None;
        let variable = match (first.as_str(), words.get(1)) {
            ("foreach", Some(list)) if list.text.starts_with('(') => {
                let (name, texts) = self.each(&list.text);
                given = texts;
                name
            }
            ("%" | "foreach-object" | "foreach", _) => {
                if let Piped::Texts(texts) = piped {
                    given = Some(texts.clone());
                }
                Some("_".to_owned())
            }
            _ => None,
        };
        if let Some(name) = &variable {
            self.forget(name);
        }
        let (Some(name), Some(texts)) = (variable, given) else {
            return self.block(block, depth);
        };
        for (at, text) in texts.into_iter().enumerate() {
            // The first time is the script's own text.
            let cost = if at == 0 { 0 } else { block.len() + 1 };
            let Some(left) = self.left.checked_sub(cost) else { break };
            self.left = left;
            self.variables.insert(name.clone(), vec![text]);
            self.block(block, depth);
        }
        self.forget(&name);
    }

    /// `($name in LIST)`: the variable, and the list where the script tells it.
    fn each(&self, head: &str) -> (Option<String>, Option<Vec<String>>) {
        let inner = head.trim_start_matches('(').strip_suffix(')').unwrap_or_default();
        let words: Vec<Word> = tokens(inner).into_iter().filter_map(word).collect();
        match words.as_slice() {
            [name, word_in, list @ ..] if word_in.text.eq_ignore_ascii_case("in") => {
                let name = name.text.trim_start_matches('$').to_ascii_lowercase();
                let list = if let [list] = list { self.texts(list, 0) } else { None };
                (Some(name), list)
            }
            _ => (None, None),
        }
    }

    /// One command of a pipeline.
    fn part(&mut self, words: &[Word], piped: &Piped, depth: usize) -> Piped {
        let Some(first) = words.first() else { return Piped::Objects(Vec::new()) };
        if is_param(first) {
            let list = words.iter().find(|word| word.text.contains('(')).map(|word| word.text.as_str());
            for (name, default) in parameters(list.unwrap_or_default()) {
                if let Some(default) = default {
                    self.assign(&name, &[default]);
                }
            }
            return Piped::Objects(Vec::new());
        }
        let assigned = assignment(words);
        // What comes of a command is that command's to run.
        if assigned.as_ref().is_none_or(|(_, value)| value.len() <= 1) {
            for (line, block) in words.iter().filter(|word| !word.quoted).flat_map(blocks) {
                let spots = tokens(block).into_iter().map(|(inner, token)| (line + inner - 1, token));
                self.block(&spots.collect::<Vec<_>>(), depth + 1);
            }
        }
        if let Some((name, value)) = assigned {
            self.assign(&name, &value);
            // What comes of a command goes into the variable, and the command runs.
            if value.len() > 1 {
                self.part(&value, &Piped::Nothing, depth);
            }
            return Piped::Objects(Vec::new());
        }
        if let [only] = words
            && let Some(texts) = self.texts(only, 0)
            && (only.quoted || only.text.starts_with(['$', '(', '@']) || texts.len() > 1)
        {
            return Piped::Texts(texts);
        }
        if let Some(function) = self.functions.get(&first.text.to_ascii_lowercase()).filter(|_| !first.quoted).cloned()
        {
            self.calls(&function, words, depth);
            return Piped::Objects(Vec::new());
        }
        // What a caller gives is judged where it gives it.
        let is_given =
            |names: &BTreeSet<String>| words.iter().any(|word| names_of(&word.text).any(|name| names.contains(&name)));
        let line = self.call.as_ref().filter(|(_, names)| is_given(names)).map_or(first.line, |(line, _)| *line);
        let own = first.line;
        let words: Vec<String> = words.iter().flat_map(|word| self.spelt_out(word)).collect();
        let piped = match piped {
            Piped::Nothing => None,
            Piped::Texts(_) => Some(Vec::new()),
            Piped::Objects(words) => Some(words.clone()),
        };
        let branches = self.conditions.open.clone();
        self.commands.push(Command { line, own, words: words.clone(), piped, branches });
        Piped::Objects(words)
    }

    /// Runs the function that a command calls.
    fn calls(&mut self, function: &Function, words: &[Word], depth: usize) {
        let Some((first, rest)) = words.split_first() else { return };
        let name = first.text.to_ascii_lowercase();
        if self.running.contains(&name) || depth >= DEEPEST {
            return;
        }
        // The first time is the script's own text.
        let again = !self.called.insert(name.clone());
        let cost = function.body.len() + self.variables.len() + 1;
        let Some(left) = self.left.checked_sub(if again { cost } else { 0 }) else { return };
        self.left = left;
        self.running.push(name);
        // How deep a call is says nothing of how deep the blocks are that it lies in.
        self.function(function, rest, Some(first.line), self.running.len());
        self.running.pop();
    }

    /// `function Name($a, $b = 2) { param(...) ... }`.
    fn define(&mut self, name: &Word, list: Option<&Word>, body: &[Spot]) {
        // `Name($a)` is one word, `Name ($a)` are two.
        let mut own = parameters(list.map_or(name.text.as_str(), |list| list.text.as_str()));
        let name = name.text.split('(').next().unwrap_or_default();
        let param = body.iter().enumerate().find_map(|(at, (_, token))| match token {
            Token::Word { text, .. } if text.to_ascii_lowercase().starts_with("param") => Some((at, text)),
            _ => None,
        });
        if let Some((at, text)) = param {
            let inside = if text.contains('(') {
                text.clone()
            } else {
                match body.get(at + 1) {
                    Some((_, Token::Word { text, .. })) => text.clone(),
                    _ => String::new(),
                }
            };
            own.extend(parameters(&inside));
        }
        let name = name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase();
        self.functions.insert(name, Rc::new(Function { parameters: own, body: body.to_vec() }));
    }

    /// Runs a function with the words behind its name; `line` is that of the call.
    fn function(&mut self, function: &Function, words: &[Word], line: Option<u32>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let given = self.arguments(function, words);
        let outer = self.call.as_ref().map(|(line, _)| *line);
        let names: BTreeSet<String> = given.iter().map(|(name, _)| name.clone()).collect();
        let before = (self.variables.clone(), self.tables.clone());
        for (name, default) in &function.parameters {
            self.forget(name);
            if let Some(default) = default {
                self.assign(name, std::slice::from_ref(default));
            }
        }
        for (name, value) in given {
            self.forget(&name);
            if let Some(texts) = value {
                self.variables.insert(name, texts);
            }
        }
        let call = line.map(|line| (outer.unwrap_or(line), names));
        let call = std::mem::replace(&mut self.call, call);
        // Its own `param()` would take back what the call gives.
        let body = without_param(&function.body);
        self.block(body, depth);
        self.call = call;
        (self.variables, self.tables) = before;
    }

    /// What a call gives each parameter: `None` where only a running script knows it.
    fn arguments(&self, function: &Function, words: &[Word]) -> Vec<(String, Option<Vec<String>>)> {
        let mut given: Vec<(String, Option<Vec<String>>)> = Vec::new();
        let mut unnamed = Vec::new();
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            if let Some(table) = word
                .text
                .strip_prefix('@')
                .filter(|_| !word.quoted)
                .and_then(|name| self.tables.get(&name.to_ascii_lowercase()))
            {
                given.extend(table.iter().map(|[name, value]| (name.to_ascii_lowercase(), Some(vec![value.clone()]))));
                continue;
            }
            let name = word
                .text
                .strip_prefix('-')
                .filter(|name| !word.quoted && name.starts_with(|c: char| c.is_ascii_alphabetic()));
            let Some(name) = name else {
                unnamed.push(word);
                continue;
            };
            let lower = name.trim_end_matches(':').to_ascii_lowercase();
            let whole = function
                .parameters
                .iter()
                .find(|(parameter, _)| *parameter == lower)
                .or_else(|| function.parameters.iter().find(|(parameter, _)| parameter.starts_with(&lower)));
            let is_value = |next: &&Word| {
                next.quoted || !next.text.starts_with('-') || next.text[1..].starts_with(|c: char| c.is_ascii_digit())
            };
            let value = rest.next_if(is_value);
            let texts = match value {
                Some(value) => self.value(value),
                None => Some(vec!["$true".to_owned()]),
            };
            given.push((whole.map_or(lower, |(parameter, _)| parameter.clone()), texts));
        }
        let named: BTreeSet<String> = given.iter().map(|(name, _)| name.clone()).collect();
        let free = function.parameters.iter().map(|(name, _)| name).filter(|name| !named.contains(*name));
        given.extend(free.zip(unnamed).map(|(name, word)| (name.clone(), self.value(word))));
        given
    }

    /// What an argument of a call stands for: a word without quotation marks is a text there.
    fn value(&self, word: &Word) -> Option<Vec<String>> {
        self.texts(&Word { quoted: word.quoted || !word.text.starts_with(['$', '(', '@']), ..word.clone() }, 0)
    }

    fn assign(&mut self, name: &str, value: &[Word]) {
        self.forget(name);
        if let Some((_, names)) = &mut self.call
            && value.iter().any(|word| names_of(&word.text).any(|name| names.contains(&name)))
        {
            names.insert(name.to_owned());
        }
        let [value] = value else { return };
        if let Some(inner) = value.text.strip_prefix("@{").and_then(|rest| rest.strip_suffix('}')) {
            let all = tokens(inner);
            let lines = all.split(|(_, token)| matches!(token, Token::End(_)));
            let pair = |line: &[Spot]| {
                let words: Vec<Word> = line.iter().cloned().filter_map(word).collect();
                let (key, value) = pair_of(&words)?;
                let [value] = value.as_slice() else { return None };
                Some([key.trim_matches(['"', '\'']).to_owned(), self.put_in(&value.text)])
            };
            let table = lines.filter_map(pair).collect();
            self.tables.insert(name.to_owned(), table);
        } else if let Some(texts) = self.texts(value, 0)
            && texts.iter().map(String::len).sum::<usize>() <= LONGEST
        {
            self.variables.insert(name.to_owned(), texts);
        }
    }

    fn forget(&mut self, name: &str) {
        self.variables.remove(name);
        self.tables.remove(name);
    }

    /// The texts that a word stands for; `None` where only a running script knows them. `depth` is that of brackets.
    fn texts(&self, word: &Word, depth: usize) -> Option<Vec<String>> {
        let text = if depth <= DEEPEST { self.put_in(&word.text) } else { return None };
        if let Some(inner) =
            text.strip_prefix("@(").or_else(|| text.strip_prefix('(')).and_then(|rest| rest.strip_suffix(')'))
        {
            let all = tokens(inner);
            let mut found = Vec::new();
            for one in all.split(|(_, token)| matches!(token, Token::End(_))).filter(|one| !one.is_empty()) {
                let [(line, Token::Word { text, quoted })] = one else { return None };
                found.extend(self.texts(&Word { line: *line, text: text.clone(), quoted: *quoted }, depth + 1)?);
                if found.len() > MOST {
                    return None;
                }
            }
            return Some(found);
        }
        if let Some((from, to)) = text.split_once("..").filter(|_| !word.quoted) {
            let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
            return Some((from..=to).take(MOST).map(|number| number.to_string()).collect());
        }
        if text.contains('$') && !["$true", "$false"].iter().any(|known| text.eq_ignore_ascii_case(known)) {
            return None;
        }
        let from_variable = word.text.starts_with('$');
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let elements = || text.split(LIST);
        (word.quoted || from_variable || elements().all(plain)).then(|| elements().map(number_of_bytes).collect())
    }

    /// The words that a command gets for a word: `@name` stands for parameters.
    fn spelt_out(&self, word: &Word) -> Vec<String> {
        let table = word.text.strip_prefix('@').filter(|_| !word.quoted);
        if let Some(table) = table.and_then(|name| self.tables.get(&name.to_ascii_lowercase())) {
            return table
                .iter()
                .take(DEEPEST)
                .flat_map(|[key, value]| [format!("-{key}"), with_commas(value)])
                .collect();
        }
        vec![with_commas(&self.put_in(&word.text))]
    }

    /// A word with the variables that are known.
    fn put_in(&self, word: &str) -> String {
        variables::put_in(word, &['$'], |from| {
            let (name, end) = name_of(from);
            let rest = from.get(end..).unwrap_or_default();
            // A property or an element of it is something else.
            let part =
                rest.starts_with('[') || rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_alphabetic());
            let known = self.variables.get(&name.to_ascii_lowercase()).filter(|_| !part);
            (end, known.map(|texts| texts.join(&LIST.to_string())))
        })
    }
}

/// The name of the variable at the beginning of a text, and where what follows it begins: `$name`, `${name}`, `$($name)`.
fn name_of(text: &str) -> (&str, usize) {
    for (open, close) in [("${", '}'), ("$($", ')')] {
        if let Some((name, _)) = text.strip_prefix(open).and_then(|rest| rest.split_once(close))
            && name.bytes().all(is_of_name)
        {
            return (name, open.len() + name.len() + 1);
        }
    }
    let end = 1 + text.bytes().skip(1).take_while(|byte| is_of_name(*byte)).count();
    (text.get(1..end).unwrap_or_default(), end)
}

/// The blocks of commands within the brackets of a word, each with the line that it begins on: `::new("a", { ... })`.
fn blocks(word: &Word) -> Vec<(u32, &str)> {
    let (mut found, mut open, mut depth, mut mark, mut line, mut before) =
        (Vec::new(), None, 0_u32, None, word.line, ' ');
    for (at, c) in word.text.char_indices() {
        line += u32::from(c == '\n');
        match (mark, c) {
            (Some(open), c) if open == c => mark = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => mark = Some(c),
            (None, '{') => {
                if depth == 0 && !['@', '$', '\\'].contains(&before) {
                    open = Some((at + 1, line));
                }
                depth += 1;
            }
            (None, '}') => {
                depth = depth.saturating_sub(1);
                if let Some((from, line)) = open.take_if(|_| depth == 0) {
                    found.extend(word.text.get(from..at).map(|block| (line, block)));
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

/// The variables that a text names, in lower case.
fn names_of(text: &str) -> impl Iterator<Item = String> {
    text.match_indices('$').filter_map(|(at, _)| text.get(at..)).map(|from| name_of(from).0.to_ascii_lowercase())
}

fn word((line, token): Spot) -> Option<Word> {
    if let Token::Word { text, quoted } = token { Some(Word { line, text, quoted }) } else { None }
}

/// `$name = value`: the variable and what it gets; a type before either of them is passed.
fn assignment(words: &[Word]) -> Option<(String, Vec<Word>)> {
    let (name, value) = pair_of(words)?;
    let name = without_type(&name).strip_prefix('$')?.to_ascii_lowercase();
    // `$name += 1`: what comes of it is not worked out.
    let plain = name.trim_end_matches(['+', '-', '*', '/']);
    let value = if plain.len() < name.len() { Vec::new() } else { value };
    (!plain.is_empty() && plain.bytes().all(is_of_name)).then(|| (plain.to_owned(), value))
}

/// The words before and after the first equals sign.
fn pair_of(words: &[Word]) -> Option<(String, Vec<Word>)> {
    // It stands in the first two words, if anywhere: `$a=1`, `$a = 1`, `$a =1`.
    let at = words.iter().take(2).position(|word| word.text.contains('=') && !word.text.starts_with('('))?;
    let (key, rest) = words.split_at_checked(at)?;
    let (head, rest) = rest.split_first()?;
    let (before, after) = head.text.split_once('=')?;
    let name = key.first().map_or_else(|| before.to_owned(), |key| key.text.clone() + before);
    let mut value = Vec::new();
    if !after.is_empty() || head.quoted {
        value.push(Word { text: without_type(after).to_owned(), ..head.clone() });
    }
    value.extend(rest.iter().map(|word| Word { text: without_type(&word.text).to_owned(), ..word.clone() }));
    Some((name, value))
}

/// A text without a type before it: `[string[]]$names`, `[ordered]@{...}`.
fn without_type(text: &str) -> &str {
    let end = text.strip_prefix('[').and_then(|_| text.find(['$', '@']));
    end.and_then(|end| text.get(end..)).filter(|_| text.contains(']')).unwrap_or(text)
}

/// A number with PowerShell's multiplier as a plain one: `64KB`.
fn number_of_bytes(text: &str) -> String {
    let factor = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "kb" => Some(1_u64 << 10),
        "mb" => Some(1 << 20),
        "gb" => Some(1 << 30),
        _ => None,
    };
    let product = || {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        number.parse::<u64>().ok()?.checked_mul(factor(unit)?)
    };
    product().map_or_else(|| text.to_owned(), |number| number.to_string())
}

fn with_commas(text: &str) -> String {
    text.replace(LIST, ",")
}

/// Whether the next thing after line ends is a block.
fn block_follows(tokens: &[Spot], at: usize) -> bool {
    let mut rest = tokens.iter().skip(at).skip_while(|(_, token)| *token == Token::End(true));
    rest.next().is_some_and(|(_, token)| *token == Token::Open)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(text: &str) -> Vec<String> {
        let shown = |command: Command| {
            format!("{}{}: {}", command.line, if command.piped.is_some() { " |" } else { "" }, command.words.join(" "))
        };
        commands(text).into_iter().map(shown).collect()
    }

    #[test]
    fn loops_over_words_of_the_script_are_written_out() {
        for (text, expected) in [
            ("foreach ($n in \"A\") { x -S $n -I 10 }", vec!["1: x -S A -I 10"]),
            ("foreach ($n in 'A', 'B')\n{\n  x $n\n}\ny", vec!["3: x A", "3: x B", "5: y"]),
            ("$names = \"A\",\"B\"\nforeach ($n in $names) { x $n }", vec!["2: x A", "2: x B"]),
            ("$names = @(\n  'A'\n  'B'\n)\nforeach ($n in $names) {\n x $n }", vec!["6: x A", "6: x B"]),
            ("'A','B' | % { x $_ }", vec!["1: x A", "1: x B"]),
            ("'A' | ForEach-Object {\n x \"$($_)Custom\"\n}", vec!["2: x ACustom"]),
            ("1..3 | %{ x $_ }", vec!["1: x 1", "1: x 2", "1: x 3"]),
            (
                "foreach ($a in 1,2) { foreach ($b in 3,4) { x $a$b } }",
                vec!["1: x 13", "1: x 14", "1: x 23", "1: x 24"],
            ),
            ("foreach ($n in Get-X) { x $n }", vec!["1: x $n"]),
            ("Get-X | % { x $_.Name }", vec!["1: Get-X", "1: x $_.Name"]),
            ("Get-X | x -I 10", vec!["1: Get-X", "1 |: x -I 10"]),
        ] {
            assert_eq!(run(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_that_the_script_gives_are_put_in() {
        for (text, expected) in [
            ("$p = @{ S='A'; I = 10\n C = $true }\nx @p", vec!["3: x -S A -I 10 -C $true"]),
            ("[string]$n = 'A'\nx $n", vec!["2: x A"]),
            ("$w=64KB; x $w ${w}", vec!["1: x 65536 65536"]),
            ("$a = Get-X; x $a", vec!["1: x $a"]),
            ("$a = 1; $a = Get-X 2; x $a", vec!["1: Get-X 2", "1: x $a"]),
            ("x -N A, B -M `\n  'C D' # e\n<# f\n#> y", vec!["1: x -N A,B -M C D", "4: y"]),
            ("if ($a) { x } else { y }\nfunction f { z }", vec!["1: x", "1: y", "2: z"]),
            (r"x HKLM:\I\{0A-1} 'it''s' @q", vec![r"1: x HKLM:\I\{0A-1} it's @q"]),
        ] {
            assert_eq!(run(text), expected, "{text}");
        }
    }

    #[test]
    fn what_grows_without_end_is_cut() {
        let deep = "foreach ($a in 1..9) { ".repeat(30) + "x";
        assert!((1..=MOST).contains(&commands(&deep).len()));
        let doubled = format!("$a = 'ab'\n{}x $a", "$a = \"$a$a\"\n".repeat(60));
        assert!(commands(&doubled)[0].words.concat().len() <= 2 * LONGEST);
        assert!(commands(&format!("$a = {}", "(".repeat(100_000))).is_empty());
        assert!(commands(&"{".repeat(100_000)).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(function f|f|param\\(|::new\\(|if|else|foreach|\\(|\\)|\\{|\\}|\\$n|in|%|\\||;|,|@|=|\"|'|`|#|<#|\\[|1\\.\\.9|a| |\n){0,60}") {
            commands(&text);
        }
    }
}
