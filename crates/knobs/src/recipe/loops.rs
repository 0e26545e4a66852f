//! Loops over a list of words that stands in the script itself: what a body does for each word.
//!
//! No shell and no `cmd`: words that only a running script knows leave the loop as it is.

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

/// The commands of a shell script, with `for v in a b; do ...; done` written out.
pub(super) fn shell(commands: &[Command]) -> Vec<Command> {
    let mut written = Vec::new();
    let mut rest = commands;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let Some((variable, words)) = head_of_shell(&first.1) else {
            written.push(first.clone());
            continue;
        };
        let (body, behind) = after.split_at(end_of_body(after));
        rest = behind.get(1..).unwrap_or_default();
        let body = shell(body);
        if words.is_empty() || body.len().saturating_mul(words.len()) + written.len() > MOST {
            written.extend(body);
            continue;
        }
        for word in &words {
            let with_word =
                |(line, command): &Command| (*line, command.iter().map(|w| put_in(w, variable, word)).collect());
            written.extend(body.iter().map(with_word));
        }
    }
    written
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

/// The variable of a loop and its words; no words where only a running shell knows them.
fn head_of_shell(command: &[String]) -> Option<(&str, Vec<String>)> {
    let command = command.strip_prefix(&["do".to_owned()]).unwrap_or(command);
    let [first, variable, word_in, list @ ..] = command else { return None };
    if first != "for" || word_in != "in" {
        return None;
    }
    let mut words = Vec::new();
    for word in list {
        match braces(word) {
            Some(several) => words.extend(several),
            None if word.contains(['$', '*', '?', '`', '{', '[']) => return Some((variable, Vec::new())),
            None => words.push(word.clone()),
        }
    }
    Some((variable, words))
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

/// A word with `$variable` and `${variable}` replaced.
fn put_in(word: &str, variable: &str, value: &str) -> String {
    let mut text = word.replace(&format!("${{{variable}}}"), value);
    let name = format!("${variable}");
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(&name)).map(|at| at + from) {
        let end = at + name.len();
        let longer =
            text.get(end..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
        if longer {
            from = end;
        } else {
            text.replace_range(at..end, value);
            from = at + value.len();
        }
    }
    text
}
