//! The words of a PowerShell script, with what separates its commands.

use std::{iter::Peekable, str::Chars};

/// What stands between the elements of a list within a word; no script has it.
pub(super) const LIST: char = '\u{1f}';

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word {
        text: String,
        quoted: bool,
    },
    Pipe,
    /// The end of a command: `;` or, true, the end of a line.
    End(bool),
    Open,
    Close,
}

/// A token and its line.
pub(super) type Spot = (u32, Token);

/// A word, its line, and whether any of it stood in quotation marks.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) line: u32,
    pub(super) text: String,
    pub(super) quoted: bool,
}

struct Lexer<'a> {
    characters: Peekable<Chars<'a>>,
    line: u32,
    word: Option<Word>,
    found: Vec<Spot>,
}

pub(super) fn tokens(text: &str) -> Vec<Spot> {
    let mut lexer = Lexer { characters: text.chars().peekable(), line: 1, word: None, found: Vec::new() };
    while let Some(c) = lexer.next() {
        lexer.one(c);
    }
    lexer.end_word();
    lexer.found
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.characters.next()?;
        self.line += u32::from(c == '\n');
        Some(c)
    }

    fn one(&mut self, c: char) {
        let line = if c == '\n' { self.line - 1 } else { self.line };
        match c {
            '`' => match self.next() {
                // The command goes on in the next line.
                Some('\r') => {
                    self.next();
                    self.end_word();
                }
                Some('\n') => self.end_word(),
                Some(c) => self.push(c),
                None => {}
            },
            '\n' | ';' => self.end(line, Token::End(c == '\n')),
            '#' if self.word.is_none() => while self.characters.next_if(|c| *c != '\n').is_some() {},
            '<' if self.word.is_none() && self.characters.peek() == Some(&'#') => self.comment(),
            '"' | '\'' => self.quoted(c),
            '(' => self.raw('(', ')'),
            '{' if self.word.as_ref().is_some_and(|word| word.text.ends_with(['@', '$', '\\'])) => self.raw('{', '}'),
            '{' => self.end(line, Token::Open),
            '}' => self.end(line, Token::Close),
            '|' if self.characters.next_if_eq(&'|').is_some() => self.end(line, Token::End(false)),
            '|' => self.end(line, Token::Pipe),
            '&' if self.characters.next_if_eq(&'&').is_some() => self.end(line, Token::End(false)),
            // Calls what follows.
            '&' => self.end_word(),
            ',' => self.comma(),
            c if c.is_whitespace() => self.end_word(),
            c => self.push(c),
        }
    }

    fn push(&mut self, c: char) {
        let line = self.line;
        self.word.get_or_insert_with(|| Word { line, ..Word::default() }).text.push(c);
    }

    fn end_word(&mut self) {
        if let Some(Word { line, text, quoted }) = self.word.take() {
            self.found.push((line, Token::Word { text, quoted }));
        }
    }

    fn end(&mut self, line: u32, token: Token) {
        self.end_word();
        self.found.push((line, token));
    }

    /// `<# ... #>`.
    fn comment(&mut self) {
        while let Some(c) = self.next() {
            if c == '#' && self.characters.next_if_eq(&'>').is_some() {
                break;
            }
        }
    }

    /// A text in quotation marks, or one between `@"` and `"@`.
    fn quoted(&mut self, mark: char) {
        let line = self.line;
        let here = self.word.as_ref().is_some_and(|word| word.text == "@");
        let word = self.word.get_or_insert_with(|| Word { line, ..Word::default() });
        word.quoted = true;
        if here {
            word.text.clear();
        }
        while let Some(c) = self.next() {
            match c {
                _ if c == mark && here => {
                    if self.characters.next_if_eq(&'@').is_some() {
                        break;
                    }
                    self.push(c);
                }
                // Two marks are one of the text.
                _ if c == mark => {
                    if self.characters.next_if_eq(&mark).is_none() {
                        break;
                    }
                    self.push(c);
                }
                '`' if mark == '"' => {
                    if let Some(c) = self.next() {
                        self.push(c);
                    }
                }
                c => self.push(c),
            }
        }
    }

    /// What stands in brackets, as it is but without comments.
    fn raw(&mut self, open: char, close: char) {
        self.push(open);
        let (mut depth, mut mark, mut before) = (1_u32, None, open);
        while let Some(c) = self.next() {
            let is_comment = mark.is_none() && c == '#' && (before.is_whitespace() || "({;<".contains(before));
            if is_comment && before == '<' {
                self.comment();
            } else if is_comment {
                while self.characters.next_if(|c| *c != '\n').is_some() {}
            } else {
                self.push(c);
            }
            before = c;
            match (mark, c) {
                (Some(open), c) if open == c => mark = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => mark = Some(c),
                (None, c) if c == open => depth += 1,
                (None, c) if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
    }

    /// The words around a comma are one list, whatever space is between.
    fn comma(&mut self) {
        if self.word.is_none()
            && let Some((line, Token::Word { text, quoted })) =
                self.found.pop_if(|(_, last)| matches!(last, Token::Word { .. }))
        {
            self.word = Some(Word { line, text, quoted });
        }
        self.push(LIST);
        while let Some(c) = self.characters.next_if(|c| c.is_whitespace()) {
            self.line += u32::from(c == '\n');
        }
    }
}
