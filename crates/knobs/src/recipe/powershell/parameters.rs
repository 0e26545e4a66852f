//! The parameters of a PowerShell function or script, as `param()` or its head gives them.

use super::{
    is_of_name,
    tokens::{Spot, Token, Word, tokens},
};

/// Whether a command is a list of parameters.
pub(super) fn is_param(word: &Word) -> bool {
    let lower = word.text.to_ascii_lowercase();
    !word.quoted && (lower == "param" || lower.starts_with("param("))
}

/// A body without its list of parameters.
pub(super) fn without_param(body: &[Spot]) -> &[Spot] {
    let at = body.iter().position(|(_, token)| matches!(token, Token::Word { text, quoted } if is_param(&Word { line: 0, text: text.clone(), quoted: *quoted })));
    let Some(at) = at else { return body };
    let inline = matches!(body.get(at), Some((_, Token::Word { text, .. })) if text.contains('('));
    body.get(at + if inline { 1 } else { 2 }..).unwrap_or_default()
}

/// `([string]$Name = 'a', $Value)`: the parameters, each with its default.
pub(super) fn parameters(list: &str) -> Vec<(String, Option<Word>)> {
    let inner = list.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map_or("", |(inner, _)| inner);
    let one = |text: &str| {
        // What stands in square brackets says what it may be.
        let mut rest = text.trim();
        while rest.starts_with('[') {
            rest = rest.get(end_of_brackets(rest)..)?.trim_start();
        }
        let (name, default) = match rest.split_once('=') {
            Some((name, default)) => (name, Some(default)),
            None => (rest, None),
        };
        let name = name.trim().strip_prefix('$')?.to_ascii_lowercase();
        let default = default.and_then(|default| match tokens(default.trim()).as_slice() {
            [(line, Token::Word { text, quoted })] => Some(Word { line: *line, text: text.clone(), quoted: *quoted }),
            _ => None,
        });
        (!name.is_empty() && name.bytes().all(is_of_name)).then_some((name, default))
    };
    at_commas(inner).into_iter().filter_map(one).collect()
}

/// Where the square bracket closes that a text begins with.
fn end_of_brackets(text: &str) -> usize {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth <= 1 => return at + 1,
            ']' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The parts of a text between commas that stand in no brackets and no quotation marks; comments are none of them.
fn at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut mark, mut comment) = (Vec::new(), 0, 0_i32, None, false);
    for (at, c) in text.char_indices() {
        match (mark, c) {
            _ if comment => {
                comment = c != '\n';
                if !comment {
                    from = at;
                }
            }
            (Some(open), c) if open == c => mark = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => mark = Some(c),
            (None, '#') if text.get(from..at).is_some_and(|before| before.trim().is_empty()) => comment = true,
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(text.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}
