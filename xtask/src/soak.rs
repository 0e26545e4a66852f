//! What takes long, in a loop with counts: the crash matrix with power failures and flipped bits, histories of key holders,
//! floods, messages of strangers, and every fuzz target.

mod crash;
mod disk;
mod draw;
mod power;
mod stage;
mod tally;

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

/// A part of it alone.
#[derive(clap::Subcommand)]
pub(crate) enum Only {
    /// Kill, I/O error, full disk and power failure at every point of every command that changes settings, and flipped bits of a
    /// journal.
    Crash {
        /// Kill at every system call, also at those that change nothing, and flip a bit in every byte.
        #[arg(long)]
        all: bool,
        /// Only as many points as this time is enough for, drawn at random.
        #[arg(long, value_name = "SECONDS")]
        seconds: Option<u64>,
        /// Only the cases whose name begins so (`apply`, `undo`, `confirm`, `guardian`, `reset`, `bits`,
        /// `power`).
        cases: Vec<String>,
    },
}

/// What a round has least of the time for: below it, starting the parts would take most of it.
const SHORTEST_ROUND: u64 = 120;
/// What a round has most: a failure late in a long run is found by the rounds before it.
const LONGEST_ROUND: u64 = 3600;

/// How much of a round each part has, in hundredths.
const CRASH: u64 = 40;
const HISTORIES: u64 = 15;
const STRANGERS: u64 = 10;
const FUZZ: u64 = 25;

/// Runs every part in turn, round after round, and prints what was tried; a failure ends it with its seed, input or point
/// named. Building comes before the time.
pub(crate) fn run(shell: &Shell, minutes: u32, only: Option<Only>) -> Result<()> {
    if let Some(Only::Crash { all, seconds, cases }) = only {
        return crash::run(shell, all, seconds, &cases);
    }
    let whole = u64::from(minutes) * 60;
    ensure!(whole > 0, "no time: give --minutes");
    cmd!(shell, "cargo test --locked --no-run --package fullpipe-tune --package fullpipe-measure").run()?;
    let fuzzing = Fuzzing::prepare(shell)?;
    let mut counts = BTreeMap::new();
    let (start, mut rounds) = (Instant::now(), 0);
    loop {
        let left = whole.saturating_sub(start.elapsed().as_secs());
        if rounds > 0 && left < SHORTEST_ROUND {
            break;
        }
        rounds += 1;
        let seconds = left.clamp(SHORTEST_ROUND, LONGEST_ROUND);
        eprintln!("soak: round {rounds}, {seconds} s");
        round(shell, seconds, &fuzzing, &mut counts).with_context(|| format!("round {rounds}"))?;
    }
    println!("soak: {rounds} rounds in {} s, without a failure", start.elapsed().as_secs());
    for (what, count) in &counts {
        println!("  {count:>12} {what}");
    }
    if let Fuzzing::Impossible(why) = fuzzing {
        println!("  not fuzzed: {why}");
    }
    Ok(())
}

fn round(shell: &Shell, seconds: u64, fuzzing: &Fuzzing, counts: &mut BTreeMap<String, u64>) -> Result<()> {
    let share = |hundredths: u64| (seconds * hundredths / 100).max(1);
    let mut add = |what: &str, count: u64| *counts.entry(what.to_owned()).or_default() += count;

    let points = share(CRASH).to_string();
    let crash = said(shell, &["cargo", "xtask", "soak", "crash", "--seconds", &points], &[])?;
    add("points of the crash matrix, none of them silent", number_before(&crash, "in all", "points")?);

    // Two in a second on two processors.
    let histories = (share(HISTORIES) * 2).to_string();
    let tune = |test: &'static str| {
        ["cargo", "test", "--locked", "--package", "fullpipe-tune", "--lib", test, "--", "--nocapture"]
    };
    let output = said(shell, &tune("random_histories"), &[("FULLPIPE_HISTORIES", &histories)])?;
    add("histories of two key holders", number_before(&output, "histories with", "histories")?);

    // Some 900 in a second on two processors.
    let cases = (share(STRANGERS) * 400).to_string();
    let output = said(shell, &tune("hostile"), &[("PROPTEST_CASES", &cases)])?;
    add("messages of strangers and orders of key holders who mean ill", cases.parse::<u64>()? * passed(&output)?);

    let flood =
        ["cargo", "test", "--locked", "--package", "fullpipe-measure", "--test", "it", "--", "--nocapture", "flood::"];
    let output = said(shell, &flood, &[])?;
    add("tests of floods of one address", passed(&output)?);

    if let Fuzzing::Of(targets) = fuzzing {
        let each = (share(FUZZ) / targets.len().max(1) as u64).max(1);
        for target in targets {
            add(&format!("inputs of the fuzz target {target}"), fuzz(shell, target, each)?);
        }
    }
    // The rest of the suite, for as long as there is time for a part of it, has its own random cases.
    if seconds >= LONGEST_ROUND {
        let more = [("PROPTEST_CASES", "20000"), ("FULLPIPE_ALL_PATHS", "1")];
        let output = said(shell, &["cargo", "test", "--locked", "--workspace", "--no-fail-fast"], &more)?;
        add("tests of the suite, with 20,000 cases of each property", passed(&output)?);
    }
    Ok(())
}

/// Runs a command and shows what it says; gives that, too. Its failure is one of the run.
fn said(shell: &Shell, words: &[&str], environment: &[(&str, &str)]) -> Result<String> {
    let (program, arguments) = words.split_first().context("no command")?;
    let output = cmd!(shell, "{program} {arguments...}").envs(environment.iter().copied()).ignore_status().output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{text}");
    ensure!(output.status.success(), "{}: {}", words.join(" "), output.status);
    Ok(text)
}

/// The number before a word, in the line that holds a mark.
fn number_before(text: &str, mark: &str, word: &str) -> Result<u64> {
    let line = text.lines().rfind(|line| line.contains(mark)).with_context(|| format!("no line with `{mark}`"))?;
    let before = line.split(word).next().unwrap_or_default();
    let number = before.split_whitespace().next_back().with_context(|| format!("no number in `{line}`"))?;
    number.parse().with_context(|| format!("no number in `{line}`"))
}

/// How many tests passed, as the test harness counts them; none is a failure, because then nothing was tried.
fn passed(text: &str) -> Result<u64> {
    let results = text.lines().filter(|line| line.starts_with("test result: ok."));
    let count = results.map(|line| number_before(line, "passed", "passed")).sum::<Result<u64>>()?;
    ensure!(count > 0, "no test ran");
    Ok(count)
}

/// Whether there is fuzzing.
enum Fuzzing {
    /// Of these targets, which are built.
    Of(Vec<String>),
    /// It lacks something.
    Impossible(&'static str),
}

impl Fuzzing {
    fn prepare(shell: &Shell) -> Result<Self> {
        if let Some(missing) = missing(shell) {
            eprintln!("soak: skipped every fuzz target: {missing}");
            return Ok(Self::Impossible(missing));
        }
        let listed = cmd!(shell, "cargo +nightly fuzz list").read().context("list the fuzz targets")?;
        cmd!(shell, "cargo +nightly fuzz build --sanitizer none --features libfuzzer").run()?;
        Ok(Self::Of(listed.lines().map(str::to_owned).collect()))
    }
}

/// Runs one fuzz target for so many seconds; gives how many inputs it was given.
fn fuzz(shell: &Shell, target: &str, seconds: u64) -> Result<u64> {
    eprintln!("soak: fuzz target {target} for {seconds} s");
    // What is found on the way goes to a folder that git ignores; only what was chosen stays in the corpus.
    let found = format!("target/fuzz-found/{target}");
    shell.create_dir(&found)?;
    let corpus = format!("fuzz/corpus/{target}");
    let time = format!("-max_total_time={seconds}");
    let words =
        ["cargo", "+nightly", "fuzz", "run", "--sanitizer", "none", "--features", "libfuzzer", target, &found, &corpus];
    let bounds = ["--", &time, "-timeout=10", "-rss_limit_mb=2048", "-max_len=16384"];
    let output = said(shell, &[&words[..], &bounds].concat(), &[])
        .with_context(|| format!("fuzz target {target}; the input is in fuzz/artifacts/{target}"))?;
    number_before(&output, "runs in", "runs")
}

/// What fuzzing needs and is not here, with the way to have it.
fn missing(shell: &Shell) -> Option<&'static str> {
    let works = |command: xshell::Cmd<'_>| command.quiet().ignore_stdout().ignore_stderr().run().is_ok();
    if !works(cmd!(shell, "cargo +nightly --version")) {
        return Some("no nightly toolchain is here (rustup toolchain install nightly --profile minimal)");
    }
    (!works(cmd!(shell, "cargo +nightly fuzz --version")))
        .then_some("cargo-fuzz is not here (cargo install cargo-fuzz)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_read_from_what_was_said() {
        let matrix =
            "apply   610 points (558 stopped it)  610 restored\nin all  15432 points (13877 stopped it)  1 restored\n";
        assert_eq!(number_before(matrix, "in all", "points").unwrap(), 15_432);
        assert_eq!(number_before("Done 1024 runs in 3 second(s)\n", "runs in", "runs").unwrap(), 1024);
        let two = "test result: ok. 2 passed; 0 failed\nx\ntest result: ok. 40 passed; 0 failed\n";
        assert_eq!(passed(two).unwrap(), 42);
        passed("test result: ok. 0 passed; 0 failed").expect_err("nothing was tried");
        number_before("nothing of it", "in all", "points").expect_err("no such line");
    }
}
