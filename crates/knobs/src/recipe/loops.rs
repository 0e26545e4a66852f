//! Loops over words that stand in a shell script itself, its functions and its variables: its commands in the order in
//! which they run.
//!
//! No shell: words that only a running script knows leave the loop as it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    Conditions,
    posix::{self, Command, is_before},
    variables::{self, LONGEST, is_of_name},
};

/// The most that the loops and calls of one script are written out to, in commands beyond those of the script itself.
const MOST: usize = 4096;

/// How deep loops and calls are read that lie in one another.
const DEEPEST: usize = 32;

/// The commands of a shell script in the order in which they run: `for v in a b; do ...; done` is written out, functions
/// run where they are called (once behind the rest, where nothing calls them), and the variables that the script itself
/// gives are put in.
///
/// Beside them the lines that lists stand on which are put in.
pub(super) fn shell(commands: &[Command]) -> (Vec<Command>, Vec<u32>) {
    let mut shell = Shell { left: MOST, ..Shell::default() };
    shell.run(commands, 0);
    let functions = shell.functions.clone();
    for (name, body) in functions {
        if !shell.called.contains(&name) {
            shell.run(&body, 1);
        }
    }
    (
        shell.written,
        shell.lists.into_values().filter(|list| list.used).flat_map(|list| list.first..=list.last).collect(),
    )
}

/// A variable that is a list. An element may have a name: `[name]=value`.
#[derive(Default)]
struct List {
    elements: Vec<String>,
    /// The lines that it stands on.
    first: u32,
    last: u32,
    used: bool,
}

/// The call of a function that runs.
#[derive(Clone, Debug)]
struct Call {
    /// Its line: that of the outermost, where calls lie in one another.
    line: u32,
    arguments: Vec<String>,
}

/// A script on its way.
#[derive(Default)]
struct Shell {
    variables: BTreeMap<String, String>,
    lists: BTreeMap<String, List>,
    /// Variables whose values come from the arguments of the call that runs.
    given: BTreeSet<String>,
    functions: BTreeMap<String, Rc<[Command]>>,
    called: BTreeSet<String>,
    /// Those that run: menus call one another.
    running: Vec<String>,
    call: Option<Call>,
    conditions: Conditions,
    written: Vec<Command>,
    /// How many commands may still be written out again.
    left: usize,
}

impl Shell {
    fn run(&mut self, commands: &[Command], depth: usize) {
        let mut rest = commands;
        while let Some((command, after)) = rest.split_first() {
            rest = after;
            self.branch(command);
            for list in command.words.iter().filter_map(|word| list_of(word)) {
                if let Some(list) = self.lists.get_mut(list.trim_start_matches('!')) {
                    list.used = true;
                }
            }
            if let Some((variable, list)) = self.head_of_loop(&command.words) {
                let (body, behind) = after.split_at(end_of_body(after));
                rest = behind.get(1..).unwrap_or_default();
                if depth < DEEPEST {
                    self.each(&variable, &list, body, depth + 1);
                }
            } else if let Some((name, open)) = head_of_function(&command.words) {
                let (body, behind) = after.split_at(end_of_function(after, open));
                rest = behind.get(1..).unwrap_or_default();
                let mut body = body.to_vec();
                // Its bracket is no group of commands.
                if let Some(first) =
                    body.first_mut().filter(|first| !open && first.words.first().is_some_and(|word| word == "{"))
                {
                    first.words.remove(0);
                }
                self.functions.insert(name, body.into());
            } else if !self.note(command) && !self.calls(command, depth) {
                self.write(command);
            }
        }
    }

    /// Notes where the branches of conditions begin and end.
    fn branch(&mut self, command: &Command) {
        for word in command.words.iter().map(String::as_str).take_while(|word| is_before(word) || *word == "fi") {
            match word {
                "if" => self.conditions.begin(),
                "elif" | "else" => self.conditions.next(),
                "fi" => self.conditions.end(),
                _ => {}
            }
        }
    }

    fn write(&mut self, command: &Command) {
        let mut texts = command.words.iter().chain(&command.into).chain(command.here.iter().map(|(_, text)| text));
        // What a caller gives is judged where it gives it.
        let line = self.call.as_ref().filter(|_| texts.any(|text| self.is_given(text))).map(|call| call.line);
        let mut words: Vec<String> = command.words.iter().flat_map(|word| self.words(word)).collect();
        // `$SYSCTL -w ...`, which may stand for `sudo sysctl`.
        if let Some(first) = words.first().filter(|first| first.contains(' ') && command.words[0].starts_with('$')) {
            let several: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
            words.splice(..1, several);
        }
        let known = |(number, text): &(u32, String)| -> Vec<(u32, String)> {
            let number = line.unwrap_or(*number);
            self.put_in(text).lines().map(|text| (number, text.to_owned())).collect()
        };
        let here = command.here.iter().flat_map(known).collect();
        let into = command.into.as_ref().map(|into| self.put_in(into));
        let (line, own) = (line.unwrap_or(command.line), command.own);
        let branches = self.conditions.open.clone();
        self.written.push(Command { line, own, end: command.end, words, into, here, piped: command.piped, branches });
    }

    /// Whether the caller of the function that runs has a say in a text.
    fn is_given(&self, text: &str) -> bool {
        text.match_indices('$').any(|(at, _)| {
            let inner = text.get(at + 1..).unwrap_or_default().trim_start_matches(['{', '!']);
            let end = inner.bytes().take_while(|byte| is_of_name(*byte)).count();
            inner.starts_with(|c: char| c.is_ascii_digit() || c == '@' || c == '*')
                || inner.get(..end).is_some_and(|name| self.given.contains(name))
        })
    }

    /// Runs the function that a command calls; false where it calls none.
    fn calls(&mut self, command: &Command, depth: usize) -> bool {
        let words: Vec<String> = command.words.iter().skip_while(|word| is_before(word)).cloned().collect();
        let Some((name, arguments)) = words.split_first() else { return false };
        let Some(body) = self.functions.get(name).cloned() else { return false };
        if self.running.contains(name) || depth >= DEEPEST {
            return true;
        }
        // The first time is the script's own text.
        let again = !self.called.insert(name.clone());
        let cost = if again { body.len() + 1 } else { 0 };
        let Some(left) = self.left.checked_sub(cost) else { return true };
        self.left = left;
        self.running.push(name.clone());
        let arguments = arguments.iter().flat_map(|word| self.words(word)).collect();
        let line = self.call.as_ref().map_or(command.line, |outer| outer.line);
        let before = self.call.replace(Call { line, arguments });
        let given = std::mem::take(&mut self.given);
        // How deep a call is says nothing of how deep the loops are that it lies in.
        self.run(&body, self.running.len());
        (self.call, self.given) = (before, given);
        self.running.pop();
        true
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
    fn head_of_loop(&self, words: &[String]) -> Option<(String, Vec<String>)> {
        let at = words.iter().position(|word| !is_before(word))?;
        let [first, variable, word_in, list @ ..] = words.get(at..)? else { return None };
        if first != "for" || word_in != "in" {
            return None;
        }
        let mut words = Vec::new();
        for word in list {
            if words.len() >= MOST {
                break;
            }
            let several = self.words(word);
            if let [known] = several.as_slice() {
                match braces(known) {
                    Some(several) => words.extend(several),
                    None if known.contains(['$', '*', '?', '`', '{']) => return Some((variable.clone(), Vec::new())),
                    // What a variable stands for may be several words.
                    None if word.starts_with('$') => words.extend(known.split_whitespace().map(str::to_owned)),
                    None => words.push(known.clone()),
                }
            } else {
                words.extend(several);
            }
        }
        Some((variable.clone(), words))
    }

    /// Notes `NAME=text`; true for a command that does nothing else.
    fn note(&mut self, command: &Command) -> bool {
        const DECLARE: [&str; 5] = ["export", "readonly", "local", "declare", "typeset"];
        let is_option = |word: &str| word.len() == 2 && word.starts_with('-');
        let words = command
            .words
            .iter()
            .skip_while(|word| is_before(word) || DECLARE.contains(&word.as_str()) || is_option(word));
        let pairs: Vec<Option<(&str, &str)>> = words.map(|word| name_and_value(word)).collect();
        // Before another command it holds for that alone, unless it is one word of `NAME=$(command ...)`.
        let Some(Some(first)) = pairs.first() else { return false };
        let alone = pairs.iter().all(Option::is_some);
        if !alone && !first.1.contains("$(") && !first.1.contains('`') {
            return false;
        }
        for (name, value) in pairs.into_iter().flatten() {
            if self.call.is_some() && self.is_given(value) {
                self.given.insert(name.to_owned());
            }
            if let Some(elements) = posix::elements(value) {
                let known = |element: &String| match element_of(element) {
                    Some((name, value)) => {
                        let value = self.put_in(value);
                        vec![format!("[{}]={}", self.put_in(name), worked_out(&value).unwrap_or(value))]
                    }
                    None => self.words(element),
                };
                let elements = elements.iter().take(MOST).flat_map(known).collect();
                let list = List { elements, first: command.own, last: command.end, used: false };
                self.lists.insert(name.to_owned(), list);
                continue;
            }
            let value = self.put_in(value);
            match worked_out(&value) {
                // What is empty at first gets its value where only a running script knows.
                Some(value) if alone && !value.is_empty() && value.len() <= LONGEST => {
                    self.variables.insert(name.to_owned(), value)
                }
                _ => self.variables.remove(name),
            };
        }
        alone
    }

    /// The words that a word stands for: `$@` and `${list[@]}` may be several.
    fn words(&self, word: &str) -> Vec<String> {
        if let (Some(call), "$@" | "${@}" | "$*" | "${*}") = (&self.call, word) {
            return call.arguments.clone();
        }
        if let Some(name) = list_of(word) {
            let names_of = name.strip_prefix('!');
            if let Some(List { elements, .. }) = self.lists.get(names_of.unwrap_or(name)) {
                let part = |element: &String| match (element_of(element), names_of) {
                    (Some((name, _)), Some(_)) => name.to_owned(),
                    (Some((_, value)), None) => value.to_owned(),
                    (None, _) => element.clone(),
                };
                return elements.iter().map(part).collect();
            }
        }
        vec![self.put_in(word)]
    }

    /// A word with `$name`, `${name}`, `${name:-text}` and `${list[name]}` replaced where they are known.
    fn put_in(&self, word: &str) -> String {
        variables::put_in(word, &['$'], |from| {
            let inner = from.get(1..).unwrap_or_default();
            if let Some(inside) = inner.strip_prefix('{') {
                let Some(end) = end_of_braces(inside) else { return (1, None) };
                let (inside, length) = (inside.get(..end).unwrap_or_default(), end + 3);
                let (name, default) = match inside.split_once('-') {
                    Some((name, text)) if !name.contains('[') => (name.trim_end_matches(':'), Some(text)),
                    _ => (inside, None),
                };
                return (length, self.value(name).or_else(|| default.map(|text| self.put_in(text))));
            }
            // `$12` is `$1` and a 2.
            let one = inner.starts_with(|c: char| c.is_ascii_digit() || c == '@' || c == '*');
            let end = if one { 1 } else { inner.bytes().take_while(|byte| is_of_name(*byte)).count() };
            (1 + end, inner.get(..end).and_then(|name| self.value(name)))
        })
    }

    /// What a variable stands for, an argument of the function that runs, or an element of a list.
    fn value(&self, name: &str) -> Option<String> {
        if let Some((list, element)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            let wanted = self.put_in(element);
            let elements = self.lists.get(list)?.elements.iter();
            return elements
                .filter_map(|text| element_of(text))
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| value.to_owned());
        }
        if let Some(call) = &self.call {
            if ["@", "*"].contains(&name) {
                return Some(call.arguments.join(" "));
            }
            if let Ok(at) = name.parse::<usize>() {
                return call.arguments.get(at.checked_sub(1)?).cloned();
            }
        }
        self.variables.get(name).cloned()
    }
}

/// The list that a word stands for all elements of: `${list[@]}`, or with `!` for their names.
fn list_of(word: &str) -> Option<&str> {
    let rest = word.strip_prefix("${")?;
    ["[@]}", "[*]}"].iter().find_map(|end| rest.strip_suffix(end))
}

/// The name and the value of an element `[name]=value`.
fn element_of(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.split_once("]=")
}

/// Where the brace closes that is open.
fn end_of_braces(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `name()`, `function name {`: the name, and whether its body is open already.
fn head_of_function(words: &[String]) -> Option<(String, bool)> {
    match words {
        [function, name, rest @ ..] if function == "function" => {
            Some((name.trim_end_matches("()").to_owned(), rest.first().is_some_and(|word| word == "{")))
        }
        [name] => Some((name.strip_suffix("()")?.to_owned(), false)),
        _ => None,
    }
}

/// Where the `}` of a function stands whose body begins here, `open` where its `{` stands before.
fn end_of_function(commands: &[Command], open: bool) -> usize {
    let mut depth = i32::from(open);
    for (at, command) in commands.iter().enumerate() {
        let first = command.words.iter().find(|word| !["do", "then", "else"].contains(&word.as_str()));
        match first.map(String::as_str) {
            Some("{") => depth += 1,
            Some("}") => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return at;
        }
    }
    commands.len()
}

/// Where the `done` of a loop stands whose body begins here.
fn end_of_body(commands: &[Command]) -> usize {
    let mut depth = 0_u32;
    for (at, command) in commands.iter().enumerate() {
        let first = command.words.iter().find(|word| !["do", "then", "else", "{"].contains(&word.as_str()));
        match first.map_or("", String::as_str) {
            "for" | "while" | "until" | "select" => depth += 1,
            "done" if depth == 0 => return at,
            "done" => depth -= 1,
            _ => {}
        }
    }
    commands.len()
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
