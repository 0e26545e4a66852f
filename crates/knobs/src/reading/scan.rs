//! Going through a text character by character with the place at hand. No grammar of its own.

use std::str::Chars;

use super::Place;

/// A position in a text. Each character is passed once, so that places cost no second look.
#[derive(Clone)]
pub(super) struct Scan<'a> {
    rest: Chars<'a>,
    place: Place,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), place: Place { line: 1, column: 1 } }
    }

    pub(super) const fn place(&self) -> Place {
        self.place
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest.as_str()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.place = Place { line: self.place.line.saturating_add(1), column: 1 };
        } else {
            self.place.column = self.place.column.saturating_add(1);
        }
        Some(c)
    }

    /// Passes `expected` where it is next.
    pub(super) fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.next();
        }
        found
    }

    /// Passes `expected` where it is next.
    pub(super) fn eat_all(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            expected.chars().for_each(|_| {
                self.next();
            });
        }
        found
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let whole = self.rest();
        while self.peek().is_some_and(&wanted) {
            self.next();
        }
        whole.get(..whole.len() - self.rest().len()).unwrap_or_default()
    }

    pub(super) fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }
}

/// The lines of a text with their numbers, counted from 1.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines())
}

/// The place at which `part`, a slice of `line`, begins.
pub(super) fn place_of(number: u32, line: &str, part: &str) -> Place {
    let offset = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..offset).unwrap_or_default();
    Place { line: number, column: u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1) }
}
