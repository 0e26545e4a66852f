//! One run of `cargo test`, by itself or beside others.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use xshell::{Shell, cmd};

use super::skipped::{SHOW, Skipped};

/// How long the output may stay open when cargo has ended.
const LINGER: Duration = Duration::from_secs(10);

/// Where the output goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    AsItComes,
    /// All at once, so that two runs' lines don't mix; results alone where all passed.
    AtItsEnd,
}

/// Whether a run yields to the others.
#[derive(Clone, Copy)]
pub(super) enum Priority {
    Normal,
    Low,
}

/// A run that has not begun.
pub(super) struct Run {
    command: Command,
    arguments: String,
}

/// What a run said, and how it ended.
pub(super) struct Ended {
    pub(super) arguments: String,
    pub(super) status: ExitStatus,
    /// Without what passing tests printed.
    pub(super) said: String,
    pub(super) skipped: Skipped,
}

impl Run {
    /// `cargo test` of what is `chosen` (`--lib`, `--manifest-path FILE`); `to_tests` goes to the test programs.
    pub(super) fn new(shell: &Shell, priority: Priority, chosen: &[String], to_tests: &[&str]) -> Self {
        let nice = match priority {
            Priority::Normal => "0",
            Priority::Low => "10",
        };
        // By the shell: it knows where set-up put what was missing.
        let cargo =
            cmd!(shell, "nice -n {nice} cargo test --locked --no-fail-fast {chosen...} -- {SHOW} {to_tests...}");
        Self { arguments: cargo.to_string(), command: Command::from(cargo) }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// No test ran, or one left a process behind that holds the output open: whoever waited for its end would wait for ever.
    pub(super) fn finish(mut self, show: Show) -> Result<Ended> {
        let (reader, writer) = io::pipe().context("make a pipe")?;
        self.command.stdin(Stdio::null()).stdout(writer.try_clone().context("share a pipe")?).stderr(writer);
        let began = Instant::now();
        let mut tests = self.command.spawn().with_context(|| format!("start {}", self.arguments))?;
        // It holds the pipe's other end.
        drop(self.command);
        let (send, ended) = mpsc::channel();
        thread::spawn(move || drop(send.send(pass_on(reader, show))));
        let status = tests.wait().with_context(|| format!("wait for {}", self.arguments))?;
        let Ok(said) = ended.recv_timeout(LINGER) else {
            bail!("{}: {status}, and a test left a process behind that holds the output", self.arguments);
        };
        let (said, skipped) = said?;
        let results: Vec<&str> =
            said.lines().filter(|line| line.starts_with("test ") && line.contains(" ... ")).collect();
        ensure!(!results.is_empty(), "{}: {status}, and ran no test:\n{said}", self.arguments);
        match show {
            Show::AsItComes => {}
            Show::AtItsEnd if status.success() => println!("{}", results.join("\n")),
            Show::AtItsEnd => print!("{said}"),
        }
        println!("{:.0} s: {}", began.elapsed().as_secs_f64(), self.arguments);
        Ok(Ended { arguments: self.arguments, status, said, skipped })
    }
}

/// Keeps what comes, line by line, but what passing tests printed, and prints it if wished; answers it at its end, with what
/// was skipped.
fn pass_on(reader: impl Read, show: Show) -> Result<(String, Skipped)> {
    let (mut reader, mut said, mut line) = (BufReader::new(reader), String::new(), Vec::new());
    let mut skipped = Skipped::default();
    while reader.read_until(b'\n', &mut line).context("read what the tests say")? > 0 {
        let text = String::from_utf8_lossy(&line);
        if skipped.shows(&text) {
            if show == Show::AsItComes {
                io::stdout().write_all(&line).context("pass on what the tests say")?;
            }
            said += &text;
        }
        line.clear();
    }
    Ok((said, skipped))
}
