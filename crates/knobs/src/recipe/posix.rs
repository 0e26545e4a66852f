//! The commands of a shell script as they stand in it: words without quotation marks, where output goes, and
//! here-documents. What runs when is `loops`'.

use std::{iter::Peekable, mem::take, str::Chars};

use super::Branches;

/// One command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Command {
    /// The line that it is judged on: that of the call which gives it values.
    pub(super) line: u32,
    /// The line that it begins on.
    pub(super) own: u32,
    /// The line that it ends on.
    pub(super) end: u32,
    pub(super) words: Vec<String>,
    /// The file that its output goes into.
    pub(super) into: Option<String>,
    /// The lines of its here-document, each with its number.
    pub(super) here: Vec<(u32, String)>,
    /// Whether a pipe hands it the output of the command before.
    pub(super) piped: bool,
    pub(super) branches: Branches,
}

/// The commands of a script in the order in which they stand there.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let mut lexer = Lexer { characters: text.chars().peekable(), line: 1, ..Lexer::default() };
    while let Some(c) = lexer.next() {
        lexer.one(c);
    }
    lexer.end(false);
    lexer.found
}

/// What the next word is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Next {
    #[default]
    Word,
    /// Where output goes.
    Into,
    /// Where input comes from or what is said beside it, which is of no concern.
    Nothing,
    /// The text of the input itself.
    HereText,
    /// The word that ends a here-document.
    HereEnd,
}

struct Lexer<'a> {
    characters: Peekable<Chars<'a>>,
    line: u32,
    /// The word that is open, and the line that it begins on.
    word: Option<(u32, String)>,
    next: Next,
    command: Command,
    /// The words that end here-documents which begin behind this line, each with its command.
    waiting: Vec<(usize, String)>,
    found: Vec<Command>,
}

impl Default for Lexer<'_> {
    fn default() -> Self {
        Self {
            characters: "".chars().peekable(),
            line: 1,
            word: None,
            next: Next::Word,
            command: Command::default(),
            waiting: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.characters.next()?;
        self.line += u32::from(c == '\n');
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        self.characters.next_if_eq(&c).is_some()
    }

    /// The word that is open, or a new one.
    fn open(&mut self) -> &mut String {
        let line = self.line;
        &mut self.word.get_or_insert_with(|| (line, String::new())).1
    }

    fn push(&mut self, c: char) {
        self.open().push(c);
    }

    fn one(&mut self, c: char) {
        match c {
            '\\' => match self.next() {
                Some('\r') if self.characters.peek() == Some(&'\n') => drop(self.next()),
                Some('\n') | None => {}
                Some(c) => self.push(c),
            },
            '\'' => self.literal(),
            '"' => self.quoted(),
            '$' | '`' => self.substitution(c),
            '#' if self.word.is_none() => while self.characters.next_if(|c| *c != '\n').is_some() {},
            '\n' => {
                self.end(false);
                self.here_documents();
            }
            '&' if self.eat('>') => self.output(),
            '&' | ';' => {
                self.eat(c);
                self.end(false);
            }
            '|' => {
                let alternative = self.eat('|');
                self.eat('&');
                self.end(!alternative);
            }
            '(' => self.bracket(),
            ')' => self.end(false),
            '>' => self.output(),
            '<' => self.input(),
            c if c.is_whitespace() => self.end_word(),
            c => self.push(c),
        }
    }

    fn literal(&mut self) {
        self.open();
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            self.push(c);
        }
    }

    fn quoted(&mut self) {
        self.open();
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                '$' | '`' => self.substitution(c),
                c => self.push(c),
            }
        }
    }

    /// `$(...)`, `${...}` or what stands between backquotes, as it is.
    fn substitution(&mut self, c: char) {
        self.push(c);
        let (open, close) = match (c, self.characters.peek()) {
            ('$', Some('(')) => ('(', ')'),
            ('$', Some('{')) => ('{', '}'),
            ('`', _) => ('`', '`'),
            _ => return,
        };
        let mut depth = u32::from(open == close);
        while let Some(c) = self.next() {
            self.push(c);
            depth = match c {
                c if c == close => depth.saturating_sub(1),
                c if c == open => depth + 1,
                _ => depth,
            };
            if depth == 0 {
                return;
            }
        }
    }

    /// `name()`, `list=(a b)`, or the commands of another shell.
    fn bracket(&mut self) {
        let is_list = self.word.as_ref().is_some_and(|(_, word)| word.ends_with('='));
        if is_list {
            return self.list();
        }
        if (self.word.is_some() || !self.command.words.is_empty()) && self.eat(')') {
            if self.word.is_none() {
                self.word = self.command.words.pop().map(|word| (self.line, word));
            }
            for c in "()".chars() {
                self.push(c);
            }
            self.end_word();
            // The body may begin on this line.
            return self.end(false);
        }
        self.end(false);
    }

    /// The elements of `list=(a b)`, with what separates them as a control character.
    fn list(&mut self) {
        let (line, before) = self.word.take().unwrap_or((self.line, String::new()));
        let words = take(&mut self.command.words);
        loop {
            match self.next() {
                Some(')') | None => break,
                Some('\n') => self.end_word(),
                Some('(') => self.push('('),
                Some(c @ ('|' | '&' | ';' | '<' | '>')) => self.push(c),
                Some(c) => self.one(c),
            }
        }
        self.end_word();
        let elements = std::mem::replace(&mut self.command.words, words);
        self.word = Some((line, before + "(" + &elements.join(&ELEMENT.to_string()) + ")"));
    }

    fn end_word(&mut self) {
        let Some((line, word)) = self.word.take() else { return };
        match take(&mut self.next) {
            Next::Word => {
                if self.command.words.is_empty() {
                    (self.command.line, self.command.own) = (line, line);
                }
                self.command.words.push(word);
            }
            Next::Into => self.command.into = Some(word),
            Next::Nothing => {}
            Next::HereText => {
                self.command.here.extend((line..).zip(word.lines().map(str::to_owned)));
            }
            Next::HereEnd => self.waiting.push((self.found.len(), word)),
        }
    }

    /// Ends a command; `pipes` where its output goes to the next one.
    fn end(&mut self, pipes: bool) {
        self.end_word();
        self.next = Next::Word;
        let mut command = take(&mut self.command);
        command.end = self.line;
        // `> FILE` alone makes it empty; a here-document waits for its command.
        let any = !command.words.is_empty() || self.waiting.iter().any(|(at, _)| *at == self.found.len());
        if any {
            self.found.push(command);
        }
        self.command.piped = pipes && any;
    }

    /// `>`, `>>`, `>|`, `2>&1`.
    fn output(&mut self) {
        let is_descriptor = |word: &str| word.len() == 1 && word.starts_with(|c: char| c.is_ascii_digit());
        let descriptor = self.word.take_if(|(_, word)| is_descriptor(word));
        let other = descriptor.is_some_and(|(_, word)| word != "1");
        self.end_word();
        while self.eat('>') || self.eat('|') {}
        if self.eat('&') {
            while self.characters.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
            return;
        }
        self.next = if other { Next::Nothing } else { Next::Into };
    }

    /// `< FILE`, `<<< TEXT`, `<< WORD`.
    fn input(&mut self) {
        self.word.take_if(|(_, word)| word == "0");
        self.end_word();
        self.next = match (self.eat('<'), self.eat('<')) {
            (true, true) => Next::HereText,
            (true, false) => {
                self.eat('-');
                Next::HereEnd
            }
            _ => Next::Nothing,
        };
    }

    /// The lines of the here-documents that the line before announced.
    fn here_documents(&mut self) {
        for (at, end) in take(&mut self.waiting) {
            let mut lines = Vec::new();
            loop {
                let number = self.line;
                let mut text = String::new();
                let mut last = true;
                while let Some(c) = self.next() {
                    if c == '\n' {
                        last = false;
                        break;
                    }
                    text.push(c);
                }
                let is_end = text.trim() == end;
                if !(is_end || last && text.is_empty()) {
                    lines.push((number, text));
                }
                if is_end || last {
                    break;
                }
            }
            if let Some(command) = self.found.get_mut(at) {
                command.here = lines;
            }
        }
    }
}

/// Words that stand before a command and are none of it.
pub(super) fn is_before(word: &str) -> bool {
    ["do", "then", "else", "{", "if", "elif", "while", "until", "!"].contains(&word)
}

/// What stands between the elements of a list within a word; no script has it.
pub(super) const ELEMENT: char = '\u{1f}';

/// The elements of a word `(a b)` that a list was.
pub(super) fn elements(word: &str) -> Option<Vec<String>> {
    let inner = word.strip_prefix('(')?.strip_suffix(')')?;
    Some(inner.split(ELEMENT).filter(|element| !element.is_empty()).map(str::to_owned).collect())
}
