//! What takes long: every fuzz target for its share of the time, then the crash matrix, property tests with many more
//! cases, and the scenarios over and over.

mod crash;
mod disk;
mod power;
mod stage;
mod tally;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
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
        /// Only the cases whose name begins so (`apply`, `undo`, `confirm`, `guardian`, `reset`, `bits`,
        /// `power`).
        cases: Vec<String>,
    },
}

/// Fuzzes for half of the time and repeats the rest for the other half; a failure ends it with its seed, input or point
/// named.
pub(crate) fn run(shell: &Shell, minutes: u32, only: Option<Only>) -> Result<()> {
    if let Some(Only::Crash { all, cases }) = only {
        return crash::run(shell, all, &cases);
    }
    let end = Instant::now() + Duration::from_secs(u64::from(minutes) * 60);
    fuzz(shell, u64::from(minutes) * 30)?;
    let _cases = shell.push_env("PROPTEST_CASES", "20000");
    let _histories = shell.push_env("FULLPIPE_HISTORIES", "1000");
    let _paths = shell.push_env("FULLPIPE_ALL_PATHS", "1");
    let mut round = 0;
    while Instant::now() < end {
        round += 1;
        eprintln!("soak: round {round}");
        crash::run(shell, false, &[])?;
        cmd!(shell, "cargo test --locked --workspace --no-fail-fast").run()?;
    }
    println!("soak: {round} rounds of the crash matrix and of every test in {minutes} minutes, without a failure");
    Ok(())
}

/// Runs each fuzz target for its share of `seconds`; where fuzzing can't be done, that is said and the tests go on.
fn fuzz(shell: &Shell, seconds: u64) -> Result<()> {
    if let Some(missing) = missing(shell) {
        eprintln!("soak: skipped every fuzz target: {missing}");
        return Ok(());
    }
    let listed = cmd!(shell, "cargo +nightly fuzz list").read().context("list the fuzz targets")?;
    let targets: Vec<&str> = listed.lines().collect();
    cmd!(shell, "cargo +nightly fuzz build --sanitizer none --features libfuzzer").run()?;
    let share = (seconds / targets.len().max(1) as u64).max(1).to_string();
    for target in targets {
        eprintln!("soak: fuzz target {target} for {share} s");
        // What is found on the way goes to a folder that git ignores; only what was chosen stays in the corpus.
        let found = format!("fuzz/target/found/{target}");
        shell.create_dir(&found)?;
        let corpus = format!("fuzz/corpus/{target}");
        let bounds = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=16384"];
        cmd!(
            shell,
            "cargo +nightly fuzz run --sanitizer none --features libfuzzer {target} {found} {corpus} -- -max_total_time={share} {bounds...}"
        )
        .run()
        .with_context(|| format!("fuzz target {target}; the input is in fuzz/artifacts/{target}"))?;
    }
    Ok(())
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
