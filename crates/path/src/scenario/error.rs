//! What is wrong with a scenario, and where.

use std::{borrow::Cow, ops::Range};

/// A scenario that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// No scenario of that name comes with the program.
    #[error("no scenario is named `{name}`; give a file or one of {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The text is not a scenario, or describes an impossible one.
    #[error("scenario {origin}, line {line}, column {column}: {message}")]
    Invalid {
        /// The file or name that the text came from.
        origin: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// Which field, what is wrong with it, and what is allowed.
        message: String,
    },
    /// Not an end of a path.
    #[error("`{text}` is not a host of a scenario; the hosts are `a` and `b`")]
    Side {
        /// What was given.
        text: String,
    },
}

impl ScenarioError {
    /// A problem with what stands at `span` (bytes) of `text`.
    pub(super) fn at(origin: &str, text: &str, span: Range<usize>, message: &str) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let start_of_line = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[start_of_line..].chars().count() + 1;
        // The parser's own messages may run over several lines, the first of which says it.
        let message = message.lines().next().unwrap_or_default();
        // ... and name a table by the type that it becomes.
        let message = message
            .split_once("expected struct ")
            .map_or_else(|| message.into(), |(what, _)| Cow::from(format!("{what}expected a table")));
        if message == "duplicate key" {
            let key = text.get(span).unwrap_or_default();
            let message = format!("`{key}` is there twice");
            return Self::Invalid { origin: origin.to_owned(), line, column, message };
        }
        let message = match key_before(&before[start_of_line..]) {
            Some(key) if !message.contains(&format!("`{key}`")) => format!("`{key}`: {message}"),
            _ => message.into_owned(),
        };
        Self::Invalid { origin: origin.to_owned(), line, column, message }
    }
}

/// The key whose value begins where `line` is cut off.
fn key_before(line: &str) -> Option<&str> {
    let keys = line.trim_end().strip_suffix('=')?.trim_end();
    let start = keys.rfind(|c: char| c == ',' || c == '{' || c.is_whitespace()).map_or(0, |before| before + 1);
    keys.get(start..).filter(|key| !key.is_empty())
}
