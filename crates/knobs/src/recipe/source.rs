//! C and C++ sources: the calls by which a program sizes its own buffers, `setsockopt` of sockets and those of a NetBurner.
//!
//! No compiler: a name stands for the product of numbers that the file itself gives it.

use std::collections::BTreeMap;

use super::{Action, Problem, Step};
use crate::{
    Address,
    lint::meant,
    reading::{self, RemarkKind},
};

/// Whether a source sets anything that is read here.
pub(super) fn is_one(text: &str) -> bool {
    is_device(text) || text.contains("setsockopt")
}

/// Whether a source is for a NetBurner.
pub(super) fn is_device(text: &str) -> bool {
    [
        "SetSocketRxBuffers",
        "SetSocketTxBuffers",
        "setsocketackbuffers",
        "SetSocketUnackBuffers",
        "SetOutOfOrderBuffers",
        "SO_NONAGLE",
        "SO_NOPUSH",
    ]
    .iter()
    .any(|word| text.contains(word))
        || reading::netburner::has_slip(text)
}

pub(super) fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let is_device = is_device(text);
    let mut steps = if is_device { device(text) } else { Vec::new() };
    steps.extend(sockets(text));
    steps.sort_by_key(|step| step.line);
    (steps, if is_device { misspelt(text) } else { Vec::new() })
}

fn device(text: &str) -> Vec<Step> {
    let (calls, sockets) = reading::device_calls(text);
    // One socket alone can't empty the pool.
    let last = calls.found.iter().rev().find(|found| reading::netburner::sets_buffers(&found.knob));
    let together = last
        .filter(|_| calls.sockets.len() > 1)
        .map(|last| Step::new(last.place.line, Action::Sockets(calls.sockets.clone())));
    let found = calls.found.into_iter().filter_map(|found| {
        let step = Step::new(found.place.line, Action::Set(found.knob, found.value?));
        Some(Step { socket: sockets.of(found.place), ..step })
    });
    let unclear = calls.remarks.into_iter().filter(|remark| remark.kind == RemarkKind::Unread);
    let unclear = unclear.map(|remark| Step::new(remark.place.line, Action::Unclear(remark.message)));
    found.chain(unclear).chain(together).chain(loops(text)).collect()
}

/// The misspelt calls of a device's source: each is a setting that does not happen.
fn misspelt(text: &str) -> Vec<Problem> {
    let slips = reading::device_calls(text).0.remarks.into_iter().filter(|remark| remark.kind == RemarkKind::Misspelt);
    slips.map(|slip| Problem { line: slip.place.line, column: slip.place.column, message: slip.message }).collect()
}

/// The first call for buffers within each outermost loop, and how many times the loop runs.
fn loops(text: &str) -> Vec<Step> {
    let plain = without_comments(text);
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut steps, mut depth, mut open) = (Vec::new(), 0_usize, None);
    for (number, line) in (1..).zip(plain.lines()) {
        if let Some((name, value)) =
            definition(line).and_then(|(name, text)| Some((name, reading::netburner::product(text, &names)?)))
        {
            names.insert(name, value);
        }
        if open.is_none()
            && let Some(times) = head_of_loop(line, &names)
        {
            open = Some(Loop { depth, times, entered: false, reported: false });
        }
        let calls = ["SetSocketRxBuffers", "SetSocketTxBuffers", "SetSocketUnackBuffers", "setsocketackbuffers"];
        if let Some(inner) = open.as_mut().filter(|inner| !inner.reported)
            && calls.iter().any(|call| line.contains(call))
        {
            inner.reported = true;
            steps.push(Step::new(number, Action::Repeats(inner.times)));
        }
        for c in line.chars() {
            depth = match c {
                '{' => depth + 1,
                '}' => depth.saturating_sub(1),
                _ => depth,
            };
            let Some(inner) = open.as_mut() else { continue };
            inner.entered |= c == '{';
            if c == '}' && inner.entered && depth <= inner.depth {
                open = None;
            }
        }
        // A loop of one statement.
        if open.as_ref().is_some_and(|inner| !inner.entered && line.trim_end().ends_with(';')) {
            open = None;
        }
    }
    steps
}

/// A loop that is open.
struct Loop {
    /// How many braces were open before it.
    depth: usize,
    times: Option<u64>,
    entered: bool,
    reported: bool,
}

/// How many times a loop runs whose head is on a line; `None` where none is, `Some(None)` where the line doesn't say.
fn head_of_loop(line: &str, names: &BTreeMap<&str, u64>) -> Option<Option<u64>> {
    let line = line.trim_start().trim_start_matches('}').trim_start();
    let after = |word: &str| line.strip_prefix(word).map(str::trim_start).filter(|rest| rest.starts_with('('));
    if let Some(rest) = after("for") {
        // `for (int i = 0; i < COUNT; i++)`.
        let bound = rest.split(';').nth(1).and_then(|test| test.split_once('<'));
        let more = u64::from(bound.is_some_and(|(_, end)| end.starts_with('=')));
        let end = bound.and_then(|(_, end)| reading::netburner::product(end.trim_start_matches('='), names));
        return Some(end.map(|end| end.saturating_add(more)));
    }
    (after("while").is_some() || line == "do" || line.starts_with("do {")).then_some(None)
}

/// A source with blanks for its comments; its lines stay.
fn without_comments(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        plain.push_str(before);
        let end = match comment.get(..2) {
            Some("//") => comment.find('\n').unwrap_or(comment.len()),
            Some("/*") => comment.find("*/").map_or(comment.len(), |end| end + 2),
            _ => {
                plain.push('/');
                rest = comment.get(1..).unwrap_or_default();
                continue;
            }
        };
        let (gone, after) = comment.split_at(end);
        plain.extend(gone.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// `setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size)`.
fn sockets(text: &str) -> Vec<Step> {
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let mut steps = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or(line);
        if let Some((name, value)) =
            definition(line).and_then(|(name, text)| Some((name, reading::netburner::product(text, &names)?)))
        {
            names.insert(name, value);
        }
        let Some((_, call)) = line.split_once("setsockopt") else { continue };
        let arguments: Vec<&str> = call.split(',').map(str::trim).collect();
        let (Some(option), Some(value)) = (arguments.get(2), arguments.get(3)) else { continue };
        const BUFFERS: [&str; 2] = ["SO_RCVBUF", "SO_SNDBUF"];
        let is_slip = || BUFFERS.iter().any(|meant| meant::is_slip(option, meant));
        // `SO_RCVBUFFORCE` and the like are others.
        if !BUFFERS.contains(option) && !is_slip() {
            continue;
        }
        let name = value.rsplit(['&', ')', ' ', '*']).next().unwrap_or(value);
        let action = match names.get(name) {
            Some(bytes) => Action::Set(Address::Socket((*option).to_owned()), bytes.to_string()),
            None if is_slip() => Action::Set(Address::Socket((*option).to_owned()), name.to_owned()),
            None => Action::Unclear(format!("{option} is set to `{name}`, whose value the file doesn't tell")),
        };
        steps.push(Step::new(number, action));
    }
    steps
}

/// `int size = 1024 * 1024;` or `#define SIZE (1 << 20)`: a name and what it stands for.
fn definition(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("#define") {
        return rest.trim().split_once(char::is_whitespace);
    }
    let (left, right) = line.split_once('=')?;
    let name = left.split_whitespace().next_back()?;
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    plain.then(|| (name, right.split(';').next().unwrap_or(right)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_followed_to_the_numbers_that_the_file_gives() {
        let text = "#define SIZE (1 << 20)\nint half = 512 * 1024;\nsetsockopt(s, SOL_SOCKET, SO_RCVBUF, (char*)&half, sizeof(half));\nint all = SIZE;\nsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &all, sizeof all);\nsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &given, sizeof given);\nsetsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);\n// setsockopt(s, SOL_SOCKET, SO_SNDBUF, &all, 4);\n";
        let found: Vec<String> = read(text)
            .0
            .into_iter()
            .map(|step| match step.action {
                Action::Set(knob, value) => format!("{} {knob}={value}", step.line),
                Action::Unclear(_) => format!("{} unclear", step.line),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(found, ["3 socket SO_RCVBUF=524288", "5 socket SO_SNDBUF=1048576", "6 unclear"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(setsockopt|SetSocketRxBuffers|SO_RCVBUF|#define|int|a|=|<<|\\*|99|,|\\(|\\)|;|&| |\n){0,40}") {
            read(&text);
        }
    }
}
