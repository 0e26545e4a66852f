//! A C source file of a NetBurner device: the calls that set a socket's buffers, by their arguments.
//!
//! No compiler: a name is looked up among the file's own `#define`s, and what an expression gives is not worked out.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Place, RemarkKind,
    scan::{self, Scan},
    sheet::{Sheet, shown},
};
use crate::{Address, Family, lint::meant::is_slip, settings::SocketBuffers};

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
    read_with_sockets(text, sheet, &mut Sockets::default());
}

/// Which socket each call is for, by the place of the call.
#[derive(Default)]
pub(crate) struct Sockets {
    by_place: BTreeMap<(u32, u32), Spot>,
    /// The braces and parentheses that are open.
    depth: usize,
    parentheses: usize,
    /// The function, by its number, and how many `else` there were: what stands in the other branch is for none of both.
    function: usize,
    branch: usize,
    /// The names that stand outside of all functions and of the parentheses there.
    of_file: BTreeSet<String>,
    /// What each call sets: the name of its socket, the call, and the function, with the number.
    set: Vec<Call>,
    /// The names that stand for a socket of its own in each function.
    own: BTreeSet<String>,
}

/// Where a call stands: the name of its socket, the function, and for options the branch, which is 0 for buffers.
struct Spot {
    socket: String,
    function: usize,
    branch: usize,
}

/// A call that sizes the buffers of a socket.
struct Call {
    socket: String,
    name: &'static str,
    function: usize,
    count: u64,
}

impl Sockets {
    /// The socket that the call at a place is for, by a name that no other one of the file has.
    pub(crate) fn of(&self, place: Place) -> Option<String> {
        let Spot { socket, function, branch } = self.by_place.get(&(place.line, place.column))?;
        if *branch == 0 {
            return Some(self.whole_name(socket, *function));
        }
        let function = if self.of_file.contains(socket) { 0 } else { *function };
        Some(format!("{socket} {function} {branch}"))
    }

    /// A name that several functions have stands for one socket that they pass on, unless two of them make the same call for it:
    /// then each has one of its own. What the file declares outside of all is one.
    fn tell_apart(&mut self) {
        let mut functions: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
        for call in &self.set {
            functions.entry((&call.socket, call.name)).or_default().insert(call.function);
        }
        let own = functions
            .iter()
            .filter(|((socket, _), functions)| functions.len() > 1 && !self.of_file.contains(*socket))
            .map(|((socket, _), _)| (*socket).to_owned());
        self.own = own.collect();
    }

    fn whole_name(&self, socket: &str, function: usize) -> String {
        if self.own.contains(socket) { format!("{socket} {function}") } else { socket.to_owned() }
    }

    fn pass(&mut self, c: char) {
        self.function += usize::from(c == '{' && self.depth == 0);
        match c {
            '{' => self.depth += 1,
            '}' => self.depth = self.depth.saturating_sub(1),
            '(' => self.parentheses += 1,
            ')' => self.parentheses = self.parentheses.saturating_sub(1),
            _ => {}
        }
    }

    fn declare(&mut self, word: &str) {
        if self.depth == 0 && self.parentheses == 0 {
            self.of_file.insert(word.to_owned());
        }
    }

    /// The sockets, with what is said of each.
    fn buffers(&self) -> Vec<SocketBuffers> {
        let mut found: BTreeMap<String, SocketBuffers> = BTreeMap::new();
        for Call { socket, name, function, count } in &self.set {
            found.entry(self.whole_name(socket, *function)).or_default().note(name, *count);
        }
        found.into_values().collect()
    }

    fn note(&mut self, place: Place, socket: &str, of_branch: bool) {
        // The first branch is no buffers'.
        let branch = if of_branch { self.branch + 1 } else { 0 };
        let spot = Spot { socket: socket.to_owned(), function: self.here(), branch };
        self.by_place.insert((place.line, place.column), spot);
    }

    /// The function that is read; 0 outside of all.
    const fn here(&self) -> usize {
        if self.depth == 0 { 0 } else { self.function }
    }
}

pub(super) fn read_with_sockets(text: &str, sheet: &mut Sheet, sockets: &mut Sockets) {
    sheet.family(Family::NetBurner);
    let defines = defines(text, sheet);
    let mut scan = Scan::new(text);
    while let Some(c) = scan.peek() {
        sockets.pass(c);
        if c.is_ascii_alphabetic() || c == '_' {
            let place = scan.place();
            let word = scan.take_while(is_word);
            sockets.declare(word);
            if let Some(call) = CALLS.into_iter().find(|call| *call == word) {
                buffers(place, call, &mut scan, &defines, sheet, sockets);
            } else if word == "else" {
                sockets.branch += 1;
            } else if let Some(meant) = meant_by(word) {
                if scan.rest().trim_start().starts_with('(') {
                    let words = format!("{word} is not a call of the device's library; did you mean {meant}?");
                    sheet.remark(RemarkKind::Misspelt, place, words);
                }
            } else if ["setsockoption", "clrsockoption"].contains(&word) {
                options(place, word == "setsockoption", &mut scan, sheet, sockets);
            }
        } else if c.is_ascii_digit() {
            scan.take_while(is_word);
        } else {
            skip_one(&mut scan);
        }
    }
    sockets.tell_apart();
    sheet.sockets = sockets.buffers();
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
fn defines<'a>(text: &'a str, sheet: &mut Sheet) -> BTreeMap<&'a str, u64> {
    let mut found = BTreeMap::new();
    // What an `enum` that is open gives the next name.
    let mut next: Option<u64> = None;
    for (number, line) in scan::lines(text) {
        let line = line.split("//").next().unwrap_or(line);
        if let Some((name, value)) = constant(line).and_then(|(name, value)| Some((name, product(value, &found)?))) {
            if name == "BUFFER_POOL_SIZE" {
                let knob = Address::Named { kind: "build".to_owned(), name: name.to_owned() };
                sheet.set(scan::place_of(number, line, name), knob, Some(&value.to_string()));
            }
            found.insert(name, value);
        }
        let mut rest = line;
        if let Some((_, inside)) = line.split_once("enum").filter(|(before, _)| before.trim().is_empty()) {
            (next, rest) = (Some(0), inside.split_once('{').map_or("", |(_, inside)| inside));
        }
        let Some(mut value) = next else { continue };
        for name in rest.split(['{', '}', ';']).next().unwrap_or_default().split(',') {
            let (name, given) = name.split_once('=').map_or((name, None), |(name, given)| (name, Some(given)));
            if name.trim().is_empty() {
                continue;
            }
            value = given.and_then(|given| product(given, &found)).unwrap_or(value);
            found.insert(name.trim(), value);
            value = value.saturating_add(1);
        }
        next = Some(value).filter(|_| !rest.contains('}'));
    }
    found
}

/// `#define NAME 40`, `const int NAME = 40;`, `static constexpr int NAME{40};`.
fn constant(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define")) {
        let (name, value) = rest.trim().split_once(char::is_whitespace)?;
        return Some((name, value.split("/*").next().unwrap_or(value)));
    }
    let (left, value) = line.split_once('=').or_else(|| line.split_once('{'))?;
    let is_constant = left.split_whitespace().any(|word| word == "const" || word == "constexpr");
    let name = left.split_whitespace().next_back()?;
    (is_constant && name.chars().all(is_word)).then(|| (name, value.split([';', '}']).next().unwrap_or(value)))
}

/// A sum, a product or a shift of whole numbers and names.
pub(crate) fn product(text: &str, names: &BTreeMap<&str, u64>) -> Option<u64> {
    let text = text.trim();
    let text = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .filter(|rest| !rest.contains(['(', ')']))
        .unwrap_or(text)
        .trim();
    if let Some((first, rest)) = text.split_once('+') {
        return product(first, names)?.checked_add(product(rest, names)?);
    }
    if let Some((value, shift)) = text.split_once("<<") {
        return product(value, names)?.checked_mul(1_u64.checked_shl(shift.trim().parse().ok()?)?);
    }
    let factor = |text: &str| {
        let text = text.trim().trim_matches(['(', ')', ' ']);
        whole_number(text).map(u64::from).or_else(|| names.get(text).copied())
    };
    text.split('*').map(factor).try_fold(1_u64, |product, factor| product.checked_mul(factor?))
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

fn buffers(
    place: Place,
    call: &'static str,
    scan: &mut Scan<'_>,
    defines: &BTreeMap<&str, u64>,
    sheet: &mut Sheet,
    sockets: &mut Sockets,
) {
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
    sockets.note(place, socket, false);
    let knob = Address::Named { kind: "call".to_owned(), name: call.to_owned() };
    match product(value, defines).and_then(|number| u32::try_from(number).ok()) {
        Some(number) => {
            let function = sockets.here();
            sockets.set.push(Call { socket: socket.clone(), name: call, function, count: u64::from(number) });
            sheet.set(place, knob, Some(&number.to_string()));
        }
        None => {
            let words =
                format!("`{}` is no number that the file itself gives; the value of {call} is not known", shown(value));
            sheet.remark(RemarkKind::Unread, place, words);
        }
    }
}

fn options(place: Place, on: bool, scan: &mut Scan<'_>, sheet: &mut Sheet, sockets: &mut Sockets) {
    let Some(arguments) = arguments(scan) else { return };
    let [socket, flags] = arguments.as_slice() else { return };
    sockets.note(place, socket, true);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(text: &str) -> Vec<Option<u64>> {
        let mut sheet = Sheet::default();
        read(text, &mut sheet);
        sheet.sockets.iter().map(|socket| socket.receive).collect()
    }

    #[test]
    fn one_name_in_several_functions_is_one_socket_only_where_they_share_it() {
        let (a, b) = ("SetSocketRxBuffers(fd, 40);", "SetSocketRxBuffers(fd, 20);");
        let other = "SetSocketTxBuffers(fd, 20);";
        let in_two = |before: &str, one: &str, two: &str| {
            sockets(&format!("{before} void one() {{ int fd = c(); {one} }} void two(int fd) {{ if (x) {{ {two} }} }}"))
        };
        assert_eq!(in_two("", a, b), [Some(40), Some(20)]);
        assert_eq!(in_two("", a, other), [Some(40)], "each function sets a part");
        assert_eq!(in_two("static int fd = -1;", a, b), [Some(40)], "one for the whole file");
        assert_eq!(in_two("void two(int fd);", a, b), [Some(40), Some(20)], "a parameter is none of the file's");
        assert_eq!(sockets(&format!("void one() {{ {a} {b} }}")), [Some(40)]);
    }
}
