//! Edits of FreeBSD's boot-time files that change one value and leave every other byte as the administrator wrote it.
//!
//! `sysctl.conf` has `name=value` lines, `loader.conf` and `rc.conf` have assignments that may be quoted; `#` begins a
//! comment. The last assignment of a name is the one in force, so that one is edited; a name that is nowhere is added at
//! the end. What is *not* here: which file a setting belongs to (`boot.rs`).

use std::ops::Range;

/// The comment above the lines that are added.
const HEADING: &str = "# Set by fullpipe; `fullpipe undo` takes it back.";

/// How a file quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `name=value`, never quoted (sysctl.conf(5)).
    Plain,
    /// `name="value"` (loader.conf(5), and rc.conf(5) in the syntax of sh(1)).
    Quoted,
}

/// Why a file or a value is left alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    /// The value's text could mean something else in the file.
    #[error("`{0}` can't stand in a boot-time file: only letters, digits, spaces and `._,:/+-` can")]
    Value(String),
    /// The interface lives on the line for all interfaces.
    #[error("there is no {0}, and a new one would take the settings of ifconfig_DEFAULT from it; change it by hand")]
    Default(String),
    /// The line is more shell than an assignment.
    #[error("line {line} is more than one plain assignment ({text}); change it by hand")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is there.
        text: String,
    },
}

/// The value in force of a name, without its quotes.
pub(super) fn value<'a>(text: &'a str, name: &str, style: Style) -> Result<Option<&'a str>, EditError> {
    Ok(last(text, name, style)?.and_then(|at| text.get(at)))
}

/// The text with `name` set to `value`. Where it is so already, the very same text.
pub(super) fn set(text: &str, name: &str, value: &str, style: Style) -> Result<String, EditError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._,:/+-".contains(c);
    if value.is_empty() || !value.chars().all(plain) {
        return Err(EditError::Value(value.to_owned()));
    }
    if let Some(at) = last(text, name, style)? {
        let mut edited = text.to_owned();
        // An unquoted word of rc.conf ends at a blank.
        let bare = style == Style::Quoted && !text[..at.start].ends_with(['"', '\'']);
        let new = if bare && value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
        edited.replace_range(at, &new);
        return Ok(edited);
    }
    let mut edited = text.to_owned();
    if !edited.is_empty() && !edited.ends_with('\n') {
        edited.push('\n');
    }
    if !edited.lines().any(|line| line == HEADING) {
        let gap = if edited.is_empty() { "" } else { "\n" };
        edited.push_str(&format!("{gap}{HEADING}\n"));
    }
    edited.push_str(&match style {
        Style::Plain => format!("{name}={value}\n"),
        Style::Quoted => format!("{name}=\"{value}\"\n"),
    });
    Ok(edited)
}

/// Where the value of the last assignment of a name is.
fn last(text: &str, name: &str, style: Style) -> Result<Option<Range<usize>>, EditError> {
    let (mut found, mut start) = (None, 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let body = line.trim_end_matches(['\n', '\r']);
        if let Some(offset) = after_name(body, name, style) {
            let rest = &body[offset..];
            let at = match style {
                Style::Plain => plain_value(rest),
                Style::Quoted => {
                    quoted_value(rest).ok_or_else(|| EditError::Line { line: number, text: body.trim().to_owned() })?
                }
            };
            found = Some(start + offset + at.start..start + offset + at.end);
        }
        start += line.len();
    }
    Ok(found)
}

/// Where the text after `name=` begins, where the line assigns to that name. Only sysctl.conf has blanks around the `=`.
fn after_name(line: &str, name: &str, style: Style) -> Option<usize> {
    let rest = line.trim_start().strip_prefix(name)?;
    let rest = if style == Style::Plain { rest.trim_start() } else { rest };
    rest.strip_prefix('=').map(|rest| line.len() - rest.len())
}

/// Up to a comment, without blanks on either side.
fn plain_value(rest: &str) -> Range<usize> {
    let body = rest.split('#').next().unwrap_or_default();
    let start = body.len() - body.trim_start().len();
    start..start.max(body.trim_end().len())
}

/// What is between quotes, or a bare word; after it only blanks and a comment. `None` for anything else that a shell
/// would make something of.
fn quoted_value(rest: &str) -> Option<Range<usize>> {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (value, tail) = match quote {
        Some(quote) => {
            let end = rest[1..].find(quote)? + 1;
            (1..end, &rest[end + 1..])
        }
        None => {
            let end = rest.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(rest.len());
            (0..end, &rest[end..])
        }
    };
    let plain = !rest[value.clone()].contains(['$', '`', '\\', '"', '\'', ';', '&', '|']);
    let after = tail.trim_start();
    (plain && (after.is_empty() || (after.starts_with('#') && after.len() < tail.len()))).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SYSCTL: &str = "# $FreeBSD$\n#\n# tuned 2019, ask Ann\nkern.ipc.maxsockbuf=2097152  # for the NAS\n\nnet.inet.tcp.sendbuf_max = 262144\n#net.inet.tcp.recvbuf_max=1\nnet.inet.tcp.sendbuf_max=524288";

    #[test]
    fn comments_order_and_blanks_stay() {
        let edited = set(SYSCTL, "kern.ipc.maxsockbuf", "16777216", Style::Plain).expect("edited");
        assert_eq!(edited, SYSCTL.replace("=2097152  #", "=16777216  #"));
        let edited = set(SYSCTL, "net.inet.tcp.sendbuf_max", "1", Style::Plain).expect("edited");
        assert_eq!(edited, SYSCTL.replace("524288", "1"), "the last line is the one in force");
        let spaced = set("a.b = 7 \r\n", "a.b", "8", Style::Plain);
        assert_eq!(spaced.as_deref(), Ok("a.b = 8 \r\n"));
        assert_eq!(set(SYSCTL, "kern.ipc.maxsockbuf", "2097152", Style::Plain).as_deref(), Ok(SYSCTL));
    }

    #[test]
    fn what_is_nowhere_is_added_once_under_one_heading() {
        let first = set(SYSCTL, "net.inet.tcp.recvbuf_max", "8388608", Style::Plain).expect("edited");
        assert_eq!(first, format!("{SYSCTL}\n\n{HEADING}\nnet.inet.tcp.recvbuf_max=8388608\n"));
        let second = set(&first, "net.inet.tcp.cc.algorithm", "cubic", Style::Plain).expect("edited");
        assert_eq!(second, format!("{first}net.inet.tcp.cc.algorithm=cubic\n"));
        let loader = set("", "kern.ipc.nmbclusters", "262144", Style::Quoted).expect("edited");
        assert_eq!(loader, format!("{HEADING}\nkern.ipc.nmbclusters=\"262144\"\n"));
    }

    #[test]
    fn quotes_are_kept_as_they_are() {
        for (before, after) in [
            ("x=\"DHCP\"\n", "x=\"DHCP mtu 9000\"\n"),
            ("x='DHCP' # both\n", "x='DHCP mtu 9000' # both\n"),
            ("x=DHCP\n", "x=\"DHCP mtu 9000\"\n"),
            ("  x=\"\"\n", "  x=\"DHCP mtu 9000\"\n"),
            ("xy=1\n#x=2\n", &format!("xy=1\n#x=2\n\n{HEADING}\nx=\"DHCP mtu 9000\"\n")),
        ] {
            assert_eq!(set(before, "x", "DHCP mtu 9000", Style::Quoted).as_deref(), Ok(after), "{before}");
        }
        assert_eq!(value("x='a'\nx=\"b c\"\n", "x", Style::Quoted), Ok(Some("b c")));
    }

    #[test]
    fn what_is_more_shell_than_a_value_is_left_to_the_administrator() {
        for line in ["x=\"$y mtu 9\"", "x=\"a\"; y=2", "x=\"two", "x=`date`", "x=a\"b\"", "x=\"a\"b", "x=a&"] {
            let error = set(&format!("a=1\n{line}\n"), "x", "1", Style::Quoted).expect_err(line);
            assert!(matches!(error, EditError::Line { line: 2, .. }), "{error}");
        }
        for hostile in ["", "1\nrm=2", "1\"; reboot", "$(x)", "a#b", "é"] {
            assert_eq!(set("x=1\n", "x", hostile, Style::Quoted), Err(EditError::Value(hostile.into())));
        }
    }

    proptest! {
        #[test]
        fn only_the_value_changes(text in "([ax]=?[\"'#$ 1]{0,4}\n?){0,4}", value_set in "[a-z0-9]{1,4}") {
            for style in [Style::Plain, Style::Quoted] {
                let Ok(edited) = set(&text, "x", &value_set, style) else { continue };
                prop_assert_eq!(value(&edited, "x", style), Ok(Some(value_set.as_str())));
                prop_assert_eq!(set(&edited, "x", &value_set, style), Ok(edited.clone()));
                prop_assert_eq!(value(&edited, "a", style), value(&text, "a", style));
            }
        }
    }
}
