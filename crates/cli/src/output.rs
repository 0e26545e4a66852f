//! Where results, progress and errors go: results to standard output, everything else to standard error.

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use fullpipe_report::{Problem, clean, json, text, text::Look};
use serde::Serialize;
use serde_json::Value;

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
            let line = json::progress(command, &now(), progress);
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
        Look { width: width(Stream::Output), unicode, draws, verbose: self.global.verbose }
    }

    /// Columns of the line that shows progress.
    pub(crate) fn progress_width(self) -> usize {
        width(Stream::Error)
    }

    /// Whether progress may have small charts.
    pub(crate) fn draws_progress(self) -> bool {
        self.shows_progress() && speaks_unicode()
    }

    /// Prints a result: one object under `--json`, else text.
    pub(crate) fn result<D: Serialize>(
        self,
        document: impl FnOnce() -> D,
        text: impl FnOnce(Look) -> String,
    ) -> io::Result<()> {
        if self.global.json {
            let mut into = BufWriter::new(io::stdout().lock());
            forgive_closed(json::write(&document(), &mut into).and_then(|()| into.flush()))
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

    /// Logs something that happened while the command runs, on a line of standard error with its time: text for a person, or
    /// a JSON object. Nothing under `--quiet` but what is wrong and what was asked for by `RUST_LOG`.
    pub(crate) fn event(self, event: &json::Event<'_>) {
        // Whose it is: only the program's own commands report by events without a target.
        let is_result = event.target.is_none();
        if is_result && (self.global.quiet || (!self.global.json && self.tells_progress())) {
            return;
        }
        let time = now();
        let line = if self.global.json { json::to_line(&json::event(event, &time)) } else { line(event, &time) };
        // Nobody reads it where standard error is closed, and nothing depends on it.
        drop(write_all(&mut AutoStream::auto(io::stderr().lock()), &line));
    }

    /// As [`Self::remark`], wrapped to the width.
    pub(crate) fn paragraph(self, text: &str) {
        self.remark(&text::paragraph(text, self.look()));
    }

    /// Prints a line for a person who looks on; nothing under `--json` or `--quiet`.
    pub(crate) fn remark(self, text: &str) {
        if !self.global.json && !self.global.quiet && !self.tells_progress() {
            // Nobody reads a remark where standard error is closed, and nothing depends on it.
            drop(write_all(&mut AutoStream::auto(io::stderr().lock()), text));
        }
    }
}

/// The time as RFC 3339 has it, to a millisecond.
pub(crate) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// `2026-11-25T13:50:40.123Z warning: 192.0.2.1:4711: turned away`.
fn line(event: &json::Event<'_>, time: &str) -> String {
    let mut line = time.to_owned();
    if event.level != "info" || event.target.is_some() {
        line += &format!(" {}:", event.level);
    }
    for who in [event.target, event.peer].into_iter().flatten() {
        line += &format!(" {who}:");
    }
    line += &format!(" {}", event.text);
    // What the program's own events carry besides is in their text already.
    for (name, value) in event.fields.iter().filter(|_| event.target.is_some()) {
        let value = match value.as_str() {
            Some(text) if !text.is_empty() && !text.contains(char::is_whitespace) => text.to_owned(),
            _ => value.to_string(),
        };
        line += &format!(" {name}={}", clean(&value));
    }
    line.push('\n');
    line
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
fn width(stream: Stream) -> usize {
    let columns_wanted = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns_wanted.filter(|columns| *columns > 0).unwrap_or_else(|| terminal_width(stream))
}

/// Where text goes.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Output,
    Error,
}

#[cfg(unix)]
fn terminal_width(stream: Stream) -> usize {
    let size = match stream {
        Stream::Output => rustix::termios::tcgetwinsize(io::stdout()),
        Stream::Error => rustix::termios::tcgetwinsize(io::stderr()),
    };
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(DEFAULT_WIDTH)
}

/// What Windows says of a pipe whose reader is gone, besides what the standard library knows: ERROR_PIPE_NOT_CONNECTED.
fn is_closed_pipe(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(233)
}

/// Of Windows' console it is not asked.
#[cfg(not(unix))]
fn terminal_width(_: Stream) -> usize {
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
