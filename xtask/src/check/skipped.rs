//! Tests that said why they can't run here. The test harness shows what a passing test printed only where it is asked to, and
//! then all of it: here only what was skipped comes out, by name.

use anyhow::{Result, ensure};

/// What the harness is asked for.
pub(super) const SHOW: &str = "--show-output";

/// Ends of the reasons that set-up takes away, where it may install what is missing.
const BROUGHT: [&str; 5] = [" is missing", " is not installed", " is not here", " are not here", "there is no "];

/// Goes through what a test run prints, line by line.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    /// Within what passing tests printed.
    hides: bool,
    /// Test and reason of each.
    found: Vec<String>,
}

impl Skipped {
    /// Whether the line is to be seen.
    pub(super) fn shows(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if line == "successes:" {
            self.hides = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.hides = false;
        } else if self.hides
            && let Some(name) = line.strip_prefix("skipped")
        {
            self.found.push(name.trim_start_matches([':', ' ']).to_owned());
        }
        !self.hides
    }

    /// Notes what is no test and could not be looked at.
    pub(super) fn note(&mut self, what: String) {
        self.found.push(what);
    }

    /// Takes over what another run found.
    pub(super) fn add(&mut self, other: Self) {
        self.found.extend(other.found);
    }

    /// Names them.
    ///
    /// # Errors
    /// This is CI (`CI` is set), and one lacks what set-up should have brought.
    pub(super) fn tell(mut self) -> Result<()> {
        self.found.sort();
        self.found.dedup();
        if self.found.is_empty() {
            println!("no test was skipped");
            return Ok(());
        }
        println!("skipped on this machine:");
        for name in &self.found {
            println!("  {name}");
        }
        let lacking = self.lacking();
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        ensure!(!is_ci || lacking.is_empty(), "skipped in CI, which could run them:\n{}", lacking.join("\n"));
        Ok(())
    }

    fn lacking(&self) -> Vec<&str> {
        let is_lacking = |name: &&String| BROUGHT.iter().any(|part| name.contains(part));
        self.found.iter().filter(is_lacking).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_named_and_the_rest_of_what_passing_tests_print_is_hidden() {
        let said = "\
test a ... ok
test b ... ok

successes:

---- a stdout ----
skipped a: iperf3 is not installed

---- b stdout ----
skipped: b: this machine was too busy for the lab 3 times
test result of another program

successes:
    a
    b

failures:

---- c stdout ----
skipped is a word in c

failures:
    c

test result: FAILED. 2 passed; 1 failed";
        let mut skipped = Skipped::default();
        let shown: Vec<&str> = said.lines().filter(|line| skipped.shows(line)).collect();
        assert_eq!(skipped.found, ["a: iperf3 is not installed", "b: this machine was too busy for the lab 3 times"]);
        assert_eq!(skipped.lacking(), ["a: iperf3 is not installed"]);
        assert_eq!(shown.len(), 12, "{shown:#?}");
        assert!(shown.contains(&"test b ... ok") && shown.contains(&"skipped is a word in c"));
    }
}
