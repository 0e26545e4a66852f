//! Advisories against what is depended on (RustSec), where their database can be fetched. `deny.toml` names those that are
//! known and why they don't matter here. What is *not* here: licences and sources, which tests look at without a network.

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::setup;

/// cargo-deny's own.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";

/// The lock files that programs and tests are built with.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// Looks for advisories; gives why that could not be done, which is no failure: a machine without a network may test.
///
/// # Errors
/// There is an advisory that `deny.toml` does not name.
pub(super) fn look(shell: &Shell) -> Result<Option<String>> {
    let skipped = |why: &str| Ok(Some(format!("advisories of dependencies: {why}")));
    // Before cargo-deny is built, which takes minutes.
    let reached = cmd!(shell, "git ls-remote {DATABASE} HEAD").quiet().ignore_stdout().ignore_stderr().run();
    if reached.is_err() {
        return skipped(&format!("{DATABASE} can't be reached"));
    }
    if let Some(why) = setup::advisories(shell) {
        return skipped(&format!("cargo-deny can't be built: {why}"));
    }
    // A manifest without a folder in front is one that cargo-deny does not find (its issue 636).
    let root = shell.current_dir();
    let config = root.join("deny.toml");
    if cmd!(shell, "cargo deny fetch --config {config} db").quiet().run().is_err() {
        return skipped(&format!("{DATABASE} can't be fetched"));
    }
    for manifest in MANIFESTS.map(|manifest| root.join(manifest)) {
        let check = ["check", "--disable-fetch", "--config"];
        cmd!(shell, "cargo deny --locked --manifest-path {manifest} {check...} {config} advisories")
            .run()
            .with_context(|| format!("an advisory against a dependency of {}", manifest.display()))?;
    }
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What comes of it where `git` and `cargo-deny` are programs that only say what they are asked, and fail at that word.
    fn looked(failing: &str) -> (Result<Option<String>>, String) {
        let shell = Shell::new().unwrap();
        let folder = shell.create_temp_dir().unwrap();
        let (asked, path) = (folder.path().join("asked"), shell.var("PATH").unwrap());
        for program in ["git", "cargo-deny"] {
            let file = folder.path().join(program);
            let says = format!("#!/bin/sh\necho {program} \"$@\" >> {}\n", asked.display());
            let fails = format!("for word; do test \"$word\" != '{failing}' || exit 1; done\n");
            shell.write_file(&file, says + &fails).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        shell.set_var("PATH", format!("{}:{path}", folder.path().display()));
        (look(&shell), shell.read_file(asked).unwrap())
    }

    #[test]
    fn an_advisory_fails_the_tests_and_a_database_that_can_not_be_had_does_not() {
        let (without, asked) = looked("ls-remote");
        assert!(without.unwrap().unwrap().ends_with("can't be reached"));
        assert!(!asked.contains("cargo-deny"), "{asked}");
        let (without, asked) = looked("fetch");
        assert!(without.unwrap().unwrap().ends_with("can't be fetched"));
        assert!(!asked.contains(" check "), "{asked}");
        let (found, _) = looked("check");
        assert!(found.unwrap_err().to_string().contains("advisory"));
        let (none, asked) = looked("nothing");
        assert_eq!(none.unwrap(), None);
        assert_eq!(asked.matches("check --disable-fetch").count(), MANIFESTS.len(), "{asked}");
        assert!(asked.lines().filter(|line| line.contains(" check ")).all(|line| line.ends_with(" advisories")));
    }
}
