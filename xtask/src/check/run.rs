//! One run of `cargo test`, by itself or beside others.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use xshell::{Shell, cmd};

use super::skipped::{SHOW, Skipped};

/// How long the output may stay open when cargo has ended.
const LINGER: Duration = Duration::from_secs(10);

/// How long tests may say nothing. The longest of them builds for another system, at a low priority: 12 minutes on a busy machine.
const SILENCE: Duration = Duration::from_secs(20 * 60);

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

    /// Runs it to its end. A test program that hangs is ended, and has failed.
    ///
    /// # Errors
    /// No test ran, or one left a process behind that holds the output open: whoever waited for its end would wait for ever.
    pub(super) fn finish(self, show: Show) -> Result<Ended> {
        self.finish_within(show, SILENCE)
    }

    fn finish_within(mut self, show: Show, silence: Duration) -> Result<Ended> {
        let (reader, writer) = io::pipe().context("make a pipe")?;
        self.command.stdin(Stdio::null()).stdout(writer.try_clone().context("share a pipe")?).stderr(writer);
        let began = Instant::now();
        let mut tests = self.command.spawn().with_context(|| format!("start {}", self.arguments))?;
        // It holds the pipe's other end.
        drop(self.command);
        let (heard, lines) = mpsc::channel();
        let reading = thread::spawn(move || pass_on(reader, show, &heard));
        let linger = LINGER.min(silence);
        let (mut last, mut over) = (Instant::now(), None);
        loop {
            let word = lines.recv_timeout(linger);
            if word == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            if let Some(status) = tests.try_wait()? {
                // Not for ever, whatever it still says.
                if over.get_or_insert_with(Instant::now).elapsed() >= linger {
                    bail!("{}: {status}, and a test left a process behind that holds the output", self.arguments);
                }
            } else if word.is_ok() {
                last = Instant::now();
            } else if last.elapsed() >= silence {
                println!("{:.0} s without a word, ended: {}", silence.as_secs_f64(), self.arguments);
                end_children(tests.id())?;
                last = Instant::now();
            }
        }
        let status = tests.wait().with_context(|| format!("wait for {}", self.arguments))?;
        let (said, skipped) = reading.join().map_err(|_| anyhow!("what the tests say could not be read"))??;
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

/// Ends the test program that cargo runs; cargo says so, and goes on with the next one.
fn end_children(cargo: u32) -> Result<()> {
    let parent = cargo.to_string();
    Command::new("pkill").args(["-KILL", "--parent", &parent]).status().context("run pkill (Debian: procps)")?;
    Ok(())
}

/// Keeps what comes, line by line, but what passing tests printed, and prints it if wished; answers it at its end, with what
/// was skipped.
fn pass_on(reader: impl Read, show: Show, heard: &Sender<()>) -> Result<(String, Skipped)> {
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
        // Nobody listens any more where a process was left behind.
        heard.send(()).ok();
    }
    Ok((said, skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, silence: Duration) -> Result<Ended> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Run { command, arguments: "tests".to_owned() }.finish_within(Show::AtItsEnd, silence)
    }

    #[test]
    fn a_program_that_hangs_is_ended_and_the_next_one_runs() {
        let ended = run("echo 'test a ... ok'; sleep 600 || echo 'test b ... ok'; exit 1", Duration::from_millis(200));
        let ended = ended.unwrap();
        assert!(!ended.status.success());
        assert!(ended.said.contains("test b ... ok"), "{}", ended.said);
    }

    #[test]
    fn what_is_left_behind_is_not_waited_for() {
        for left in ["sleep 20", "for nth in $(seq 200); do echo said; sleep 0.1; done"] {
            let script = format!("echo 'test a ... ok'; ({left}) & exit 0");
            let error = run(&script, Duration::from_millis(200)).err().unwrap();
            assert!(error.to_string().contains("left a process behind"), "{error}");
        }
    }
}
