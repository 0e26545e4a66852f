//! A C source file of a NetBurner device: the calls that set a socket's buffers, by their arguments.
//!
//! No compiler: a name is looked up among the file's own `#define`s, and what an expression gives is not worked out.

use std::collections::BTreeMap;

use super::{
    Place, RemarkKind,
    scan::{self, Scan},
    sheet::{Sheet, shown},
};
use crate::{Address, Family, lint::meant::is_slip};

/// The calls whose second argument is a number of buffers.
pub(super) const CALLS: [&str; 5] = [
    "SetSocketRxBuffers",
    "SetSocketTxBuffers",
    "setsocketackbuffers",
    "SetOutOfOrderBuffers",
    "SetSocketUnackBuffers",
];

/// The options of `setsockoption` that bound a connection.
const OPTIONS: [&str; 2] = ["SO_NONAGLE", "SO_NOPUSH"];

/// The longest list of arguments that is looked at, in characters.
const LONGEST: usize = 400;

pub(super) fn read(text: &str, sheet: &mut Sheet) {
    sheet.family(Family::NetBurner);
    let defines = defines(text, sheet);
    let mut scan = Scan::new(text);
    while let Some(c) = scan.peek() {
        if c.is_ascii_alphabetic() || c == '_' {
            let place = scan.place();
            let word = scan.take_while(is_word);
            if CALLS.contains(&word) {
                buffers(place, word, &mut scan, &defines, sheet);
            } else if let Some(meant) = meant_by(word) {
                if scan.rest().trim_start().starts_with('(') {
                    let words = format!("{word} is not a call of the device's library; did you mean {meant}?");
                    sheet.remark(RemarkKind::Misspelt, place, words);
                }
            } else if ["setsockoption", "clrsockoption"].contains(&word) {
                options(place, word == "setsockoption", &mut scan, sheet);
            }
        } else if c.is_ascii_digit() {
            scan.take_while(is_word);
        } else {
            skip_one(&mut scan);
        }
    }
}

/// The call that a word is a slip of.
fn meant_by(word: &str) -> Option<&'static str> {
    // Far shorter and longer words are most of a source.
    let near = |call: &&&str| call.len().abs_diff(word.len()) <= 3;
    CALLS.iter().filter(near).find(|call| is_slip(word, call)).copied()
}

/// Whether a setting is a call for buffers.
pub(crate) fn sets_buffers(knob: &Address) -> bool {
    matches!(knob, Address::Named { kind, name } if kind == "call" && CALLS.contains(&name.as_str()))
}

/// Whether a source calls anything that is a slip of a call.
pub(crate) fn has_slip(text: &str) -> bool {
    text.split(|c| !is_word(c)).any(|word| meant_by(word).is_some())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Passes one character, or a comment or a text as a whole.
fn skip_one(scan: &mut Scan<'_>) {
    if scan.eat_all("//") {
        scan.take_while(|c| c != '\n');
    } else if scan.eat_all("/*") {
        while !scan.rest().is_empty() && !scan.eat_all("*/") {
            scan.next();
        }
    } else {
        let mark = scan.next();
        if let Some(mark @ ('"' | '\'')) = mark {
            // A text ends on its line at the latest.
            while let Some(c) = scan.peek().filter(|c| *c != '\n') {
                scan.next();
                match c {
                    '\\' => drop(scan.next()),
                    _ if c == mark => break,
                    _ => {}
                }
            }
        }
    }
}

/// The names that the file itself gives to numbers.
fn defines<'a>(text: &'a str, sheet: &mut Sheet) -> BTreeMap<&'a str, &'a str> {
    let mut found = BTreeMap::new();
    for (number, line) in scan::lines(text) {
        let Some(rest) = line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"))
        else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
        let value = value.trim_matches(['(', ')']);
        if whole_number(value).is_none() {
            continue;
        }
        if name == "BUFFER_POOL_SIZE" {
            let knob = Address::Named { kind: "build".to_owned(), name: name.to_owned() };
            sheet.set(scan::place_of(number, line, name), knob, Some(value));
        }
        found.insert(name, value);
    }
    found
}

/// The arguments of a call, without their comments; `None` where no call follows.
fn arguments(scan: &mut Scan<'_>) -> Option<Vec<String>> {
    scan.skip_spaces();
    if !scan.eat('(') {
        return None;
    }
    let (mut arguments, mut depth, mut length) = (vec![String::new()], 0_u32, 0_usize);
    loop {
        if scan.rest().starts_with("/*") || scan.rest().starts_with("//") {
            skip_one(scan);
            continue;
        }
        let c = scan.next()?;
        length += 1;
        match c {
            ')' if depth == 0 => return Some(arguments.iter().map(|text| text.trim().to_owned()).collect()),
            ',' if depth == 0 => arguments.push(String::new()),
            ';' | '{' | '}' => return None,
            _ if length > LONGEST => return None,
            _ => {
                depth = match c {
                    '(' => depth + 1,
                    ')' => depth - 1,
                    _ => depth,
                };
                if let Some(argument) = arguments.last_mut() {
                    argument.push(c);
                }
            }
        }
    }
}

fn buffers(place: Place, call: &str, scan: &mut Scan<'_>, defines: &BTreeMap<&str, &str>, sheet: &mut Sheet) {
    let Some(arguments) = arguments(scan) else { return };
    let [socket, value] = arguments.as_slice() else {
        let words =
            format!("{call} takes two arguments, the socket and the number of buffers, and not {}", arguments.len());
        return sheet.remark(RemarkKind::Unread, place, words);
    };
    // `int SetSocketRxBuffers(int fd, int n);` is a declaration.
    if value.split_whitespace().count() > 1 && value.chars().all(|c| is_word(c) || c == ' ') {
        return;
    }
    let value = value.trim_matches(['(', ')']);
    let number = defines.get(value).copied().unwrap_or(value);
    let knob = Address::Named { kind: "call".to_owned(), name: call.to_owned() };
    match whole_number(number) {
        Some(number) => {
            sheet.sockets.entry(socket.clone()).or_default().note(call, u64::from(number));
            sheet.set(place, knob, Some(&number.to_string()));
        }
        None => {
            let words =
                format!("`{}` is no number that the file itself gives; the value of {call} is not known", shown(value));
            sheet.remark(RemarkKind::Unread, place, words);
        }
    }
}

fn options(place: Place, on: bool, scan: &mut Scan<'_>, sheet: &mut Sheet) {
    let Some(arguments) = arguments(scan) else { return };
    let [_, flags] = arguments.as_slice() else { return };
    for option in OPTIONS {
        if flags.split(|c| !is_word(c)).any(|word| word == option) {
            let knob = Address::Named { kind: "call".to_owned(), name: format!("setsockoption {option}") };
            sheet.set(place, knob, Some(if on { "on" } else { "off" }));
        }
    }
}

/// A number of C: decimal or hexadecimal, with or without a suffix.
fn whole_number(text: &str) -> Option<u32> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    hex.map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}
