//! Batch files: their commands in the order in which they run, with `for` over words of the file itself written out,
//! subroutines run for each `call`, and variables that the file itself gives put in.
//!
//! No interpreter: what only a running script knows stays the variable's name, and branches count as taken.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::Peekable,
    str::Chars,
};

use super::{
    Branches, Conditions,
    commands::{Language, Place, Taken, end_of_block},
    variables::{self, LONGEST},
};

/// The most that loops and calls of one file are written out to, in words beyond those of the file itself.
const MOST: usize = 1 << 16;
/// How deep blocks and calls are read that lie in one another.
const DEEPEST: usize = 32;

/// One command: the line that it is judged on (that of the call which gives it values), the line that it begins on, and its
/// words without quotation marks.
pub(super) struct Command {
    line: u32,
    own: u32,
    words: Vec<String>,
    branches: Branches,
}

/// The commands of a file.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let tokens = tokens(text);
    let mut run = Run { left: MOST, called: called(&tokens), labels: labels(&tokens), all: &tokens, ..Run::default() };
    run.block(&tokens, 0);
    run.commands
}

pub(super) fn read(text: &str, depth: usize) -> Taken {
    let mut taken = Taken::default();
    for Command { line, own, words, branches } in commands(text.trim_start_matches('\u{feff}')) {
        let from = taken.steps.len();
        taken.command(line, &words, None, Place { language: Language::Batch, depth });
        taken.place(from, [line, own], &branches);
    }
    taken.steps.sort_by_key(|step| step.line);
    taken
}

/// Whether a batch file hands itself to PowerShell: such files are scripts of both.
pub(super) fn is_powershell(text: &str) -> bool {
    let hands_over = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.contains("powershell") && ["%0", "%~f0", "%~dpnx0", "%~s0"].iter().any(|itself| line.contains(itself))
    };
    let assigns = |line: &str| {
        line.trim_start()
            .strip_prefix('$')
            .is_some_and(|rest| rest.split_once('=').is_some_and(|(name, _)| variables::is_name(name.trim())))
    };
    text.lines().any(hands_over) && text.lines().any(assigns)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word {
        text: String,
        /// Whether any of it stood in quotation marks.
        quoted: bool,
    },
    /// `&`, `&&`, `|` or `||`.
    Then,
    Open,
    Close,
    /// The end of a line.
    End,
}

/// A token and its line.
type Spot = (u32, Token);

struct Lexer<'a> {
    characters: Peekable<Chars<'a>>,
    line: u32,
    word: Option<(u32, String, bool)>,
    depth: usize,
    /// Parentheses that are open and are letters.
    letters: usize,
    found: Vec<Spot>,
}

fn tokens(text: &str) -> Vec<Spot> {
    let mut lexer =
        Lexer { characters: text.chars().peekable(), line: 1, word: None, depth: 0, letters: 0, found: Vec::new() };
    while let Some(c) = lexer.characters.next() {
        lexer.one(c);
    }
    lexer.end_word();
    lexer.found
}

impl Lexer<'_> {
    fn one(&mut self, c: char) {
        match c {
            '\n' => {
                self.end(Token::End);
                self.line += 1;
                self.letters = 0;
            }
            '^' => self.escaped(),
            '"' => self.quoted(),
            '>' | '<' => self.redirection(),
            '&' | '|' => {
                self.characters.next_if_eq(&c);
                self.end(Token::Then);
            }
            '(' if self.is_compared() => {
                self.letters += 1;
                self.push(c);
            }
            ')' if self.letters > 0 => {
                self.letters -= 1;
                self.push(c);
            }
            // Elsewhere it is a letter like others.
            '(' if self.word.as_ref().is_none_or(|(_, text, _)| is_before_block(text)) => {
                self.end(Token::Open);
                self.depth += 1;
            }
            ')' if self.depth > 0 => {
                self.depth -= 1;
                self.end(Token::Close);
            }
            ':' if self.word.is_none() && self.is_first() && self.characters.peek() == Some(&':') => {
                self.rest_of_line()
            }
            c if c.is_whitespace() => self.end_word(),
            c => self.push(c),
        }
    }

    /// Whether a side of a comparison begins here: `if (%1)==(on)`.
    fn is_compared(&self) -> bool {
        match (&self.word, self.found.last()) {
            (Some((_, text, _)), _) => text.ends_with("=="),
            (None, Some((_, Token::Word { text, .. }))) => {
                ["if", "@if", "not", "/i"].iter().any(|word| text.eq_ignore_ascii_case(word))
            }
            (None, _) => false,
        }
    }

    /// Whether a command begins here.
    fn is_first(&self) -> bool {
        !matches!(self.found.last(), Some((_, Token::Word { .. })))
    }

    fn rest_of_line(&mut self) {
        while self.characters.next_if(|c| *c != '\n').is_some() {}
    }

    fn push(&mut self, c: char) {
        let line = self.line;
        self.word.get_or_insert_with(|| (line, String::new(), false)).1.push(c);
    }

    fn end_word(&mut self) {
        let Some((line, text, quoted)) = self.word.take() else { return };
        let is_comment = !quoted && self.is_first() && text.trim_start_matches('@').eq_ignore_ascii_case("rem");
        self.found.push((line, Token::Word { text, quoted }));
        if is_comment {
            self.rest_of_line();
        }
    }

    fn end(&mut self, token: Token) {
        self.end_word();
        self.found.push((self.line, token));
    }

    /// `^` takes the next character as it is, and the next line as a part of this one.
    fn escaped(&mut self) {
        self.characters.next_if_eq(&'\r');
        match self.characters.next() {
            Some('\n') => {
                self.line += 1;
                self.end_word();
            }
            Some(c) => self.push(c),
            None => {}
        }
    }

    /// A text in quotation marks; it ends on its line at the latest. Programs take `\"` as a mark of the text itself.
    fn quoted(&mut self) {
        let line = self.line;
        self.word.get_or_insert_with(|| (line, String::new(), false)).2 = true;
        let mut inner = false;
        while let Some(c) = self.characters.next_if(|c| *c != '\n') {
            match c {
                '\\' if self.characters.peek() == Some(&'"') => {
                    self.characters.next();
                    let goes_on = self.characters.peek().is_some_and(|next| !next.is_whitespace());
                    // `"HKLM\X\" /v` ends a key, and begins or ends nothing inside.
                    if !inner && !goes_on {
                        self.push('\\');
                        return;
                    }
                    inner = !inner;
                    self.push('"');
                }
                '"' => return,
                c => self.push(c),
            }
        }
    }

    /// `>nul`, `2>&1`, `>> "a b"`: where output goes is no word of the command.
    fn redirection(&mut self) {
        if self.word.as_ref().is_some_and(|(_, text, _)| matches!(text.as_str(), "0" | "1" | "2")) {
            self.word = None;
        }
        self.end_word();
        while self.characters.next_if(|c| ['>', '<', '&'].contains(c)).is_some() {}
        while self.characters.next_if(|c| [' ', '\t'].contains(c)).is_some() {}
        let mut quoted = false;
        while let Some(c) = self.characters.next_if(|c| *c != '\n' && (quoted || !" \t\r&|)".contains(*c))) {
            quoted ^= c == '"';
        }
    }
}

/// Whether a bracket after this word is a block without a space between.
fn is_before_block(word: &str) -> bool {
    ["else", "do", "in"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// The labels that the file calls.
fn called(tokens: &[Spot]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pair in tokens.windows(2) {
        if let [(_, Token::Word { text: call, .. }), (_, Token::Word { text: label, .. })] = pair
            && call.trim_start_matches('@').eq_ignore_ascii_case("call")
            && let Some(label) = label.strip_prefix(':')
        {
            found.insert(label.to_ascii_lowercase());
        }
    }
    found
}

/// Where the lines begin that labels name; of two of one name the first counts.
fn labels(tokens: &[Spot]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (at, (_, token)) in tokens.iter().enumerate() {
        let begins = at == 0 || matches!(tokens.get(at - 1), Some((_, Token::End)));
        if let (true, Token::Word { text, .. }) = (begins, token)
            && let Some(name) = text.strip_prefix(':')
        {
            found.entry(name.to_ascii_lowercase()).or_insert(at);
        }
    }
    found
}

/// A variable of a loop: its name with its percent signs, and what it stands for.
type Variable = (String, String);

#[derive(Default)]
struct Run<'a> {
    variables: BTreeMap<String, String>,
    /// Those of the loops around.
    loops: Vec<Variable>,
    /// The arguments of the subroutine that runs, and the line that calls it.
    call: Option<(u32, Vec<String>)>,
    called: BTreeSet<String>,
    /// Where the lines begin that labels name.
    labels: BTreeMap<String, usize>,
    /// The subroutines that have run, and those that run.
    ran: BTreeSet<String>,
    running: Vec<String>,
    all: &'a [Spot],
    conditions: Conditions,
    commands: Vec<Command>,
    /// How much may still be written out.
    left: usize,
}

impl Run<'_> {
    fn block(&mut self, tokens: &[Spot], depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let mut at = 0;
        // The conditions of this block that are open: they end with the line.
        let mut open = 0;
        while let Some((_, token)) = tokens.get(at) {
            let word = if let Token::Word { text, .. } = token { text.trim_start_matches('@') } else { "" };
            match (token, word.to_ascii_lowercase().as_str()) {
                (Token::Open, _) => {
                    let end = end_of_block(tokens, at + 1, [&Token::Open, &Token::Close]);
                    self.block(tokens.get(at + 1..end).unwrap_or_default(), depth + 1);
                    at = end + 1;
                }
                (Token::Word { .. }, "") => at += 1,
                (Token::Word { .. }, "else") => {
                    self.conditions.otherwise();
                    at += 1;
                }
                (Token::Word { .. }, "if") => {
                    let Condition { subject, with, is, len } = condition(tokens.get(at + 1..).unwrap_or_default());
                    self.conditions.begin_compared(subject, with, is);
                    open += 1;
                    at += 1 + len;
                }
                (Token::Word { .. }, "for") => at = self.head(tokens, at, depth + 1),
                (Token::Word { .. }, label) if label.starts_with(':') => {
                    let name = label.trim_start_matches(':');
                    let rest = tokens.get(at..).unwrap_or_default();
                    // What is called runs when it is called.
                    let is_called = depth == 0 && self.called.contains(name);
                    at += if is_called { end_of_routine(rest) } else { end_of_line(rest) };
                }
                (Token::Word { .. }, _) => {
                    let end = at + end_of_command(tokens.get(at..).unwrap_or_default());
                    self.command(tokens.get(at..end).unwrap_or_default(), depth);
                    at = end;
                }
                (Token::End, _) => {
                    (0..std::mem::take(&mut open)).for_each(|_| self.conditions.end());
                    at += 1;
                }
                (Token::Then | Token::Close, _) => at += 1,
            }
        }
        (0..open).for_each(|_| self.conditions.end());
    }

    /// `for ... in (...) do ...`, and where what follows its body begins.
    fn head(&mut self, tokens: &[Spot], from: usize, depth: usize) -> usize {
        let next = from + 1;
        let is = |at: usize, wanted: &str| matches!(tokens.get(at), Some((_, Token::Word { text, .. })) if text.eq_ignore_ascii_case(wanted));
        let line = end_of_line(tokens.get(from..).unwrap_or_default());
        let Some(word_in) = (next..from + line).find(|at| is(*at, "in")) else { return next };
        if !matches!(tokens.get(word_in + 1), Some((_, Token::Open))) {
            return next;
        }
        let list_end = end_of_block(tokens, word_in + 2, [&Token::Open, &Token::Close]);
        if !is(list_end + 1, "do") {
            return next;
        }
        let body_from = list_end + 2;
        let (body, behind) = if matches!(tokens.get(body_from), Some((_, Token::Open))) {
            let end = end_of_block(tokens, body_from + 1, [&Token::Open, &Token::Close]);
            (tokens.get(body_from + 1..end), end + 1)
        } else {
            let end = body_from + end_of_line(tokens.get(body_from..).unwrap_or_default());
            (tokens.get(body_from..end), end)
        };
        let words = |from: usize, to: usize| -> Vec<String> {
            let words = tokens.get(from..to).unwrap_or_default().iter();
            words
                .filter_map(|(_, token)| if let Token::Word { text, .. } = token { Some(text.clone()) } else { None })
                .collect()
        };
        let options = words(next, word_in);
        let Some(variable) = options.iter().find(|word| word.starts_with('%')) else { return next };
        let option = options.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let list: Vec<String> = words(word_in + 2, list_end).iter().flat_map(|word| self.put_in(word, true)).collect();
        self.each(variable, elements(&option, &list), body.unwrap_or_default(), depth);
        behind
    }

    /// The body of a loop once for each word, or once where its words are not known.
    fn each(&mut self, variable: &str, list: Option<Vec<String>>, body: &[Spot], depth: usize) {
        let Some(list) = list else { return self.block(body, depth) };
        for (at, word) in list.into_iter().enumerate() {
            // The first time is the file's own text.
            let cost = if at == 0 { 0 } else { body.len() + 1 };
            let Some(left) = self.left.checked_sub(cost) else { break };
            self.left = left;
            self.loops.push((variable.to_owned(), word));
            self.block(body, depth);
            self.loops.pop();
        }
    }

    fn command(&mut self, tokens: &[Spot], depth: usize) {
        let Some((line, _)) = tokens.first() else { return };
        let mut words = Vec::new();
        let mut given = false;
        for (_, token) in tokens {
            let Token::Word { text, quoted } = token else { continue };
            given |= self.call.is_some() && has_argument(text);
            words.extend(self.put_in(text, !quoted));
        }
        if let Some(first) = words.first_mut() {
            *first = first.trim_start_matches('@').to_owned();
        }
        let name = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        if name == "set" {
            return self.note(words.get(1..).unwrap_or_default());
        }
        if name == "call"
            && let Some(label) = words.get(1).and_then(|label| label.strip_prefix(':'))
        {
            return self.routine(*line, label, words.get(2..).unwrap_or_default(), depth + 1);
        }
        // What a caller gives is judged where it gives it.
        let own = *line;
        let line = self.call.as_ref().filter(|_| given).map_or(own, |(line, _)| *line);
        self.commands.push(Command { line, own, words, branches: self.conditions.open.clone() });
    }

    /// Runs the lines from a label on, with what the call gives it.
    fn routine(&mut self, line: u32, label: &str, arguments: &[String], depth: usize) {
        let label = label.to_ascii_lowercase();
        if depth > DEEPEST || self.left == 0 || self.running.contains(&label) {
            return;
        }
        let Some(from) = self.labels.get(&label).copied() else { return };
        let rest = self.all.get(from + 1..).unwrap_or_default();
        let body = rest.get(..end_of_routine(rest)).unwrap_or_default();
        // The first time is the file's own text, as far as no other label follows.
        let again = !self.ran.insert(label.clone());
        let is_label = |at: &usize| matches!(body.get(at - 1..=*at), Some([(_, Token::End), (_, Token::Word { text, .. })]) if text.starts_with(':'));
        let own = (1..body.len()).find(is_label).unwrap_or(body.len());
        let free = if again { 0 } else { own };
        self.left = self.left.saturating_sub(body.len() - free + usize::from(again));
        if self.left == 0 {
            return;
        }
        self.running.push(label);
        // What a call within a call gives is judged at the outermost line.
        let line = self.call.as_ref().map_or(line, |(outer, _)| *outer);
        let before = self.call.replace((line, arguments.to_vec()));
        self.block(body, self.running.len());
        self.call = before;
        self.running.pop();
    }

    /// `set NAME=text`, `set "NAME=text"`, `set /a NAME=1`.
    fn note(&mut self, words: &[String]) {
        let option = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let (sum, asks) = (option == "/a", option == "/p");
        let text = words.get(usize::from(sum || asks)..).unwrap_or_default().join(" ");
        let Some((name, value)) = text.split_once('=') else { return };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let known =
            !asks && !value.contains(['%', '!']) && value.len() <= LONGEST && (!sum || value.parse::<u64>().is_ok());
        if known {
            self.variables.insert(name, value.to_owned());
        } else {
            self.variables.remove(&name);
        }
    }

    /// A word with the variables that are known; one that stood in no quotation marks may become several.
    fn put_in(&self, word: &str, splits: bool) -> Vec<String> {
        let text = variables::put_in(word, &['%', '!'], |from| self.variable(from));
        if splits && text.contains(' ') && text != word {
            return text.split_whitespace().map(str::to_owned).collect();
        }
        vec![text]
    }

    /// What stands at the beginning of a text: how long it is, and its value where that is known.
    fn variable(&self, from: &str) -> (usize, Option<String>) {
        // `%%i`, `%%~i`; and what the innermost loop says of it.
        if let Some(rest) = from.strip_prefix("%%") {
            let plain = rest.trim_start_matches('~');
            let name = plain.chars().next().map_or(0, char::len_utf8);
            let length = 2 + (rest.len() - plain.len()) + name;
            let wanted = plain.get(..name).unwrap_or_default();
            let value = self.loops.iter().rev().find(|(variable, _)| variable.trim_start_matches('%') == wanted);
            return (length, value.map(|(_, value)| value.clone()));
        }
        // `%1`, `%~1`.
        if let Some(rest) = from.strip_prefix('%') {
            let plain = rest.trim_start_matches('~');
            if let Some(digit) = plain.chars().next().and_then(|c| c.to_digit(10)) {
                let length = 1 + (rest.len() - plain.len()) + 1;
                let at = usize::try_from(digit).ok().and_then(|digit| digit.checked_sub(1));
                let value =
                    self.call.as_ref().and_then(|(_, arguments)| Some(arguments.get(at?).cloned().unwrap_or_default()));
                return (length, value);
            }
        }
        let (mark, inner) = from.split_at(1);
        let known = inner.split_once(mark).and_then(|(name, _)| {
            let value = self.variables.get(&name.to_ascii_lowercase())?;
            Some((name.len() + 2, Some(value.clone())))
        });
        known.unwrap_or((1, None))
    }
}

/// Whether a word has an argument of a subroutine in it.
fn has_argument(text: &str) -> bool {
    let after = |rest: &str| rest.trim_start_matches('~').starts_with(|c: char| c.is_ascii_digit());
    text.match_indices('%').any(|(at, _)| text.get(at + 1..).is_some_and(after))
}

/// What a loop goes over; `None` where only a running script knows it.
fn elements(option: &str, list: &[String]) -> Option<Vec<String>> {
    let unknown = |word: &String| word.contains(['*', '?', '%', '!', '\'', '`']);
    if ["/f", "/d", "/r"].contains(&option) || list.iter().any(unknown) {
        return None;
    }
    let words: Vec<String> = list
        .iter()
        .flat_map(|word| word.split([',', ';']))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    if option != "/l" {
        return Some(words);
    }
    let numbers: Vec<u32> = words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [from, step, to] = numbers.as_slice() else { return None };
    let step = usize::try_from(*step).ok().filter(|step| *step > 0)?;
    Some((*from..=*to).step_by(step).take(MOST).map(|number| number.to_string()).collect())
}

/// What stands behind an `if`.
struct Condition {
    subject: String,
    /// Nothing where it is no comparison for equality.
    with: String,
    is: bool,
    /// Of how many words it is.
    len: usize,
}

/// The condition that begins here.
fn condition(tokens: &[Spot]) -> Condition {
    let word = |at: usize| match tokens.get(at) {
        Some((_, Token::Word { text, .. })) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    let prefix = (0..tokens.len()).take_while(|at| ["/i", "not"].contains(&word(*at).as_str())).count();
    let is = !(0..prefix).any(|at| word(at) == "not");
    let [first, second, third] = [0, 1, 2].map(|at| word(prefix + at));
    let whole = |words: usize| {
        let subject: Vec<String> = (0..words).map(|at| word(prefix + at)).collect();
        Condition { subject: subject.join(" "), with: String::new(), is, len: prefix + words }
    };
    let compared = |subject: &str, with: &str, is: bool, words: usize| {
        let [subject, with] = [subject, with].map(|text| text.trim_matches('"').to_owned());
        Condition { subject, with, is, len: prefix + words }
    };
    match (first.as_str(), first.split_once("=="), second.as_str()) {
        ("exist" | "defined" | "errorlevel" | "cmdextversion", ..) => whole(2),
        (_, Some((subject, "")), with) => compared(subject, with, is, 2),
        (_, Some((subject, with)), _) => compared(subject, with, is, 1),
        (subject, None, "==" | "equ") => compared(subject, &third, is, 3),
        (subject, None, "neq") => compared(subject, &third, !is, 3),
        (_, None, "lss" | "leq" | "gtr" | "geq") => whole(3),
        (subject, None, second) => match second.strip_prefix("==") {
            Some(with) => compared(subject, with, is, 2),
            None => whole(1),
        },
    }
}

fn end_of_command(tokens: &[Spot]) -> usize {
    tokens
        .iter()
        .position(|(_, token)| matches!(token, Token::Then | Token::End | Token::Close))
        .unwrap_or(tokens.len())
        .max(1)
}

/// Where the line ends that begins here: blocks may hold more lines.
fn end_of_line(tokens: &[Spot]) -> usize {
    let mut depth = 0_u32;
    for (at, (_, token)) in tokens.iter().enumerate() {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => return at,
            Token::Close => depth -= 1,
            Token::End if depth == 0 => return at,
            _ => {}
        }
    }
    tokens.len()
}

/// Where a subroutine ends that begins here: `exit /b` or `goto` outside of blocks.
fn end_of_routine(tokens: &[Spot]) -> usize {
    let mut depth = 0_u32;
    let mut first = true;
    for (at, (_, token)) in tokens.iter().enumerate() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word { text, .. } if first && depth == 0 => {
                let word = text.trim_start_matches('@').to_ascii_lowercase();
                if word == "exit" || word == "goto" || word.starts_with("goto:") {
                    return at;
                }
            }
            _ => {}
        }
        first = matches!(token, Token::End | Token::Then | Token::Open | Token::Close);
    }
    tokens.len()
}
