//! Where results, progress and errors go: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use fullpipe_report::{Problem, json, text, text::Look};
use serde_json::Value;
use tracing::Level;

use crate::args::{Global, ProgressAs, When};

/// Columns where the terminal doesn't tell.
const DEFAULT_WIDTH: usize = 100;

/// How this run talks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    global: Global,
}

impl Output {
    pub(crate) fn new(global: Global) -> Self {
        match global.color {
            When::Auto => {}
            When::Always => ColorChoice::Always.write_global(),
            When::Never => ColorChoice::Never.write_global(),
        }
        Self { global }
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(self) -> bool {
        self.global.json
    }

    /// Whether progress may be drawn: for a person who looks on.
    pub(crate) fn shows_progress(self) -> bool {
        !self.global.json && !self.global.quiet && !self.tells_progress() && io::stderr().is_terminal()
    }

    /// Whether a program looks on.
    pub(crate) fn tells_progress(self) -> bool {
        self.global.progress == ProgressAs::Json && !self.global.quiet
    }

    /// Tells a program of progress, where one looks on.
    pub(crate) fn progress(self, command: &str, progress: &Value) {
        if self.tells_progress() {
            let line = json::progress(command, &jiff::Timestamp::now().to_string(), progress);
            // Nobody reads it where standard error is closed, and nothing depends on it.
            drop(write_all(&mut io::stderr().lock(), &format!("{line}\n")));
        }
    }

    /// Whether standard output is a terminal on which text can be drawn over text.
    pub(crate) fn can_redraw(self) -> bool {
        cfg!(unix) && !self.global.json && io::stdout().is_terminal()
    }

    /// Whether somebody can be asked.
    pub(crate) fn can_ask(self) -> bool {
        !self.global.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// How text shall look.
    pub(crate) fn look(self) -> Look {
        let unicode = speaks_unicode();
        let draws = unicode && io::stdout().is_terminal();
        Look { width: width(), unicode, draws, verbose: self.global.verbose }
    }

    /// Whether progress may have small charts.
    pub(crate) fn draws_progress(self) -> bool {
        self.shows_progress() && speaks_unicode()
    }

    /// Prints a result: one object under `--json`, else text.
    pub(crate) fn result(self, document: impl FnOnce() -> Value, text: impl FnOnce(Look) -> String) -> io::Result<()> {
        if self.global.json {
            self.raw(&json::to_string(&document()))
        } else {
            let text = text(self.look());
            forgive_closed(write_all(&mut AutoStream::auto(io::stdout().lock()), &text))
        }
    }

    /// Prints a page that is another program's input: as it is, or whole under `text` of a document.
    pub(crate) fn page(self, command: &str, page: &str) -> io::Result<()> {
        if self.global.json { self.raw(&json::to_string(&json::page(command, page))) } else { self.raw(page) }
    }

    /// Prints what has a format of its own, whether or not `--json` was given.
    pub(crate) fn verbatim(self, text: &str) -> io::Result<()> {
        self.raw(text)
    }

    /// Prints a part of what goes on and on; false when nobody reads it any more.
    pub(crate) fn stream(self, text: &str) -> io::Result<bool> {
        let written = if self.global.json {
            write_all(&mut io::stdout().lock(), text)
        } else {
            write_all(&mut AutoStream::auto(io::stdout().lock()), text)
        };
        let is_open = written.is_ok();
        forgive_closed(written).map(|()| is_open)
    }

    fn raw(self, text: &str) -> io::Result<()> {
        forgive_closed(write_all(&mut io::stdout().lock(), text))
    }

    /// Prints an error: as a document on standard output under `--json`, else as text on standard error.
    pub(crate) fn problem(self, command: &str, problem: &Problem) -> io::Result<()> {
        if self.global.json {
            self.raw(&json::to_string(&json::problem(command, problem)))
        } else {
            let text = text::problem(problem, self.look());
            forgive_closed(write_all(&mut AutoStream::auto(io::stderr().lock()), &text))
        }
    }

    /// Prints to standard error, also beside JSON, what nobody may miss.
    pub(crate) fn warning(self, text: &str) {
        // Where standard error is closed, the exit code still tells.
        drop(write_all(&mut AutoStream::auto(io::stderr().lock()), text));
    }

    /// Tells of something that happened while the command runs: a line for a person, or a JSON object on a line of its own
    /// with the time, both on standard error; nothing under `--quiet`.
    pub(crate) fn event(self, command: &str, level: Level, text: &str) {
        let word = match level {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "info",
        };
        if !self.global.json {
            let mark = if level > Level::WARN { String::new() } else { format!("{word}: ") };
            return self.remark(&format!("{mark}{text}\n"));
        }
        if !self.global.quiet {
            let line = json::event(command, &jiff::Timestamp::now().to_string(), word, text);
            drop(write_all(&mut io::stderr().lock(), &format!("{line}\n")));
        }
    }

    /// Prints a line for a person who looks on; nothing under `--json` or `--quiet`.
    pub(crate) fn remark(self, text: &str) {
        if !self.global.json && !self.global.quiet && !self.tells_progress() {
            // Nobody reads a remark where standard error is closed, and nothing depends on it.
            drop(write_all(&mut AutoStream::auto(io::stderr().lock()), text));
        }
    }
}

fn write_all(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Takes a closed pipe for the end of the reader's interest. SIGPIPE stays ignored, because dying from it in the
/// middle of a run would leave settings changed.
fn forgive_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe || is_closed_pipe(&error) => Ok(()),
        other => other,
    }
}

/// Columns to fill: what COLUMNS says, else what the terminal has.
fn width() -> usize {
    let columns_wanted = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns_wanted.filter(|columns| *columns > 0).unwrap_or_else(terminal_width)
}

#[cfg(unix)]
fn terminal_width() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(DEFAULT_WIDTH)
}

/// What Windows says of a pipe whose reader is gone, besides what the standard library knows: ERROR_PIPE_NOT_CONNECTED.
fn is_closed_pipe(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(233)
}

/// Of Windows' console it is not asked.
#[cfg(not(unix))]
fn terminal_width() -> usize {
    DEFAULT_WIDTH
}

/// Whether the locale says UTF-8 (POSIX: the first that is set of these three decides).
fn speaks_unicode() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}
