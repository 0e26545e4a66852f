//! The question before something is changed.

use std::io::{self, BufRead, Write};

use crate::{failure::Failure, output::Output};

/// Asks `question` unless `yes` was given; an error where the answer is no or nobody can be asked.
pub(crate) fn confirm(output: Output, yes: bool, question: &str) -> Result<(), Failure> {
    possible(output, yes)?;
    if yes {
        return Ok(());
    }
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.and_then(|()| io::stdin().lock().read_line(&mut answer)).map_err(|e| Failure::system("asking", &e))?;
    if is_yes(&answer) { Ok(()) } else { Err(Failure::declined()) }
}

/// Whether [`confirm`] will have an answer: `yes` was given, or somebody can be asked.
pub(crate) fn possible(output: Output, yes: bool) -> Result<(), Failure> {
    if yes || output.can_ask() { Ok(()) } else { Err(Failure::nobody_to_ask()) }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        for other in ["", "\n", "n\n", "yep\n", "no yes\n"] {
            assert!(!is_yes(other), "{other:?}");
        }
    }
}
