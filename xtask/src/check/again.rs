//! Tests that failed beside the others, run again alone.
//!
//! Most rooms measure a real kernel, or wait for a peer, in real time. Where a machine gives their tests no processor for
//! a moment, one of them fails that finds nothing wrong when it runs alone; where something is wrong, it fails again. So do
//! programs that ended before they could name a test: one without memory, or one that was not built. Tests of some rooms
//! know no clock: what fails there has failed.

use std::iter;

use anyhow::{Result, bail, ensure};
use xshell::Shell;

use super::run::{Ended, Priority, Run, Show};

/// The packages whose tests know no clock, no kernel and no peer.
const TIMELESS: &[&str] = &[
    "fullpipe-capture",
    "fullpipe-chart",
    "fullpipe-diagnose",
    "fullpipe-fuzz",
    "fullpipe-ingest",
    "fullpipe-knobs",
    "fullpipe-packetdrill",
    "fullpipe-page",
    "fullpipe-path",
    "fullpipe-report",
    "fullpipe-sim",
    "fullpipe-tcp",
    "fullpipe-units",
    "xtask",
];

/// A test program, as cargo says how to run it again, and which of its tests failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed {
    package: String,
    /// Of cargo: `--test NAME`, `--lib`.
    target: Vec<String>,
    /// None where the program ended before it could say: then all of that kind are run again.
    tests: Vec<String>,
}

/// What failed and may pass [`alone`].
///
/// # Errors
/// Something else failed; its words are in the error, which is the last that a log shows.
pub(super) fn disturbed(run: &Ended) -> Result<Vec<Failed>> {
    if run.status.success() {
        return Ok(Vec::new());
    }
    let failed = failures(&run.said);
    let may_be_disturbed = |failed: &Failed| !TIMELESS.contains(&failed.package.as_str()) || failed.tests.is_empty();
    if failed.is_empty() || !failed.iter().all(may_be_disturbed) {
        bail!("{}: {}\n{}", run.arguments, run.status, words_of_failures(&run.said));
    }
    Ok(failed)
}

/// Lines of a failed test, or of a compiler, that an error repeats.
const REPEATED: usize = 60;

/// What failed tests and cargo said of it.
fn words_of_failures(said: &str) -> String {
    let (mut found, mut left) = (Vec::new(), 0);
    for line in said.lines() {
        if line.starts_with("---- ") || line.starts_with("error") {
            left = REPEATED;
        } else if line.starts_with("test result: ") || line == "failures:" {
            left = 0;
        }
        if left > 0 {
            found.push(line);
            left -= 1;
        }
    }
    found.join("\n")
}

/// Runs each of them once more, one at a time; nothing else should run then.
pub(super) fn alone(shell: &Shell, failed: &[Failed]) -> Result<()> {
    for Failed { package, target, tests } in failed {
        let names = if tests.is_empty() { format!("{package} {}", target.join(" ")) } else { tests.join(", ") };
        println!("failed beside other tests, now alone: {names}");
        // Of the whole workspace, as before: a package alone is built of other features of its dependencies.
        let chosen: Vec<String> = iter::once("--workspace".to_owned()).chain(target.iter().cloned()).collect();
        let to_tests: Vec<&str> =
            ["--exact", "--test-threads", "1"].into_iter().chain(tests.iter().map(String::as_str)).collect();
        let run = Run::new(shell, Priority::Normal, &chosen, &to_tests).finish(Show::AsItComes)?;
        ensure!(run.status.success(), "{}: {}\n{}", run.arguments, run.status, words_of_failures(&run.said));
        println!("disturbed: failed beside other tests and passed alone: {names}");
    }
    Ok(())
}

/// How many test programs are named as the slowest.
const NAMED: usize = 10;

/// Names the test programs that took longest: there the suite's time is to be saved.
pub(super) fn print_slowest<'a>(said: impl Iterator<Item = &'a str>) {
    let slowest = slowest(said);
    if slowest.is_empty() {
        return;
    }
    println!("slowest test programs:");
    for (seconds, program) in slowest {
        println!("{seconds:>8.1} s  {program}");
    }
}

/// Test programs and the seconds that each took, slowest first.
fn slowest<'a>(said: impl Iterator<Item = &'a str>) -> Vec<(f64, &'a str)> {
    let (mut found, mut program) = (Vec::new(), "");
    for line in said.flat_map(str::lines) {
        if let Some(running) = line.trim_start().strip_prefix("Running ") {
            program = running.split_once(" (target/").map_or(running, |(_, path)| path.trim_end_matches(')'));
        } else if let Some((_, time)) = line.split_once("; finished in ") {
            found.extend(time.trim_end_matches('s').parse().ok().map(|seconds: f64| (seconds, program)));
        }
    }
    found.retain(|(seconds, _)| *seconds >= 1.0);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(NAMED);
    found
}

/// The test harness ends with a list of what failed; cargo then names the program.
fn failures(said: &str) -> Vec<Failed> {
    let (mut failed, mut listed) = (Vec::new(), Vec::new());
    let mut lines = said.lines();
    while let Some(line) = lines.next() {
        if line == "failures:" {
            // The first list has their output, the second one, which stays, their names.
            listed = lines.by_ref().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect();
        } else if line.trim_start().starts_with("Running ") || line.trim_start().starts_with("Doc-tests ") {
            listed.clear();
        } else if let Some((_, rest)) = line.split_once("to rerun pass `") {
            // `-p PACKAGE` comes first.
            let mut words = rest.split('`').next().unwrap_or_default().split_whitespace().skip(1).map(str::to_owned);
            failed.push(Failed {
                package: words.next().unwrap_or_default(),
                target: words.collect(),
                tests: std::mem::take(&mut listed),
            });
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
     Running tests/interop/main.rs (target/debug/deps/interop-1)

running 3 tests
test device::a ... FAILED
test device::b ... ok
test lives::c ... FAILED

failures:

---- device::a stdout ----
panicked
failures:

---- lives::c stdout ----
panicked

failures:
    device::a
    lives::c

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 24.38s

error: test failed, to rerun pass `-p fullpipe-stack --test interop`
     Running unittests src/lib.rs (target/debug/deps/fullpipe_tcp-1)

running 1 test
error: test failed, to rerun pass `-p fullpipe-tcp --lib`

Caused by:
  process didn't exit successfully: `target/debug/deps/fullpipe_tcp-1` (signal: 6, SIGABRT: process abort signal)
error: 2 targets failed:
    `-p fullpipe-stack --test interop`
    `-p fullpipe-tcp --lib`
";

    #[test]
    fn the_slowest_programs_come_first() {
        let quick = "     Running unittests src/lib.rs (target/debug/deps/quick-2)\n\ntest result: ok. 1 passed; finished in 1.25s\n";
        assert_eq!(slowest([quick, SAID].into_iter()), [(24.38, "debug/deps/interop-1"), (1.25, "debug/deps/quick-2")]);
    }

    #[test]
    fn an_error_repeats_what_failed_and_nothing_else() {
        let said = words_of_failures(SAID);
        assert!(
            said.starts_with("---- device::a stdout ----\npanicked\n---- lives::c stdout ----\npanicked\n"),
            "{said}"
        );
        assert!(said.contains("signal: 6") && !said.contains("... ok"), "{said}");
    }

    #[test]
    fn failures_are_read_with_their_program() {
        let of = |package: &str, target: &str, tests: &[&str]| Failed {
            package: package.to_owned(),
            target: target.split(' ').map(str::to_owned).collect(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
        };
        let stack = of("fullpipe-stack", "--test interop", &["device::a", "lives::c"]);
        assert_eq!(failures(SAID), [stack, of("fullpipe-tcp", "--lib", &[])]);
        assert_eq!(failures("test a ... ok\n"), []);
    }
}
