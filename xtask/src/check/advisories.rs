//! Advisories against what is depended on (RustSec), where cargo-deny is installed and their database can be fetched. `deny.toml`
//! names those that are known and why they don't matter here. What is *not* here: licences and sources, which tests look at without a
//! network.

use anyhow::Result;
use xshell::{Shell, cmd};

/// What they are called where they are named.
const NAME: &str = "advisories of dependencies";

/// Looks for advisories; gives what is to be said of them at the end of the tests.
///
/// None fails the tests: one that is published tonight is no fault of what was tested yesterday, and who tests without a network
/// can't look. `cargo deny check advisories` is what fails.
///
/// # Errors
/// There is no folder to run it in.
pub(super) fn look(shell: &Shell) -> Result<Option<String>> {
    let said = |what: &str| Ok(Some(format!("{NAME}: {what}")));
    if cmd!(shell, "cargo deny --version").quiet().ignore_stdout().ignore_stderr().run().is_err() {
        return said("not looked at without cargo-deny (cargo install cargo-deny)");
    }
    // A manifest without a folder in front is one that cargo-deny does not find (its issue 636).
    let root = shell.current_dir();
    let config = root.join("deny.toml");
    if cmd!(shell, "cargo deny fetch --config {config} db").quiet().run().is_err() {
        return said("not looked at, for their database can't be fetched");
    }
    let manifest = root.join("Cargo.toml");
    let check = ["check", "--disable-fetch", "--config"];
    if cmd!(shell, "cargo deny --locked --manifest-path {manifest} {check...} {config} advisories").run().is_err() {
        return said("there are some: see `cargo deny check advisories`");
    }
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What comes of it where cargo-deny is a program that only says what it is asked, and fails at that word.
    fn looked(failing: &str) -> (Result<Option<String>>, String) {
        let shell = Shell::new().unwrap();
        let folder = shell.create_temp_dir().unwrap();
        let (asked, path) = (folder.path().join("asked"), shell.var("PATH").unwrap());
        let file = folder.path().join("cargo-deny");
        let says = format!("#!/bin/sh\necho \"$@\" >> {}\n", asked.display());
        let fails = format!("for word; do test \"$word\" != '{failing}' || exit 1; done\n");
        shell.write_file(&file, says + &fails).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        shell.set_var("PATH", format!("{}:{path}", folder.path().display()));
        (look(&shell), shell.read_file(asked).unwrap())
    }

    #[test]
    fn advisories_are_named_and_what_can_not_be_looked_at_too() {
        let said = |failing: &str| {
            let (said, asked) = looked(failing);
            (said.unwrap().unwrap_or_default(), asked)
        };
        let (without, asked) = said("--version");
        assert!(without.contains("without cargo-deny") && !asked.contains("fetch"), "{without}: {asked}");
        let (without, asked) = said("fetch");
        assert!(without.contains("can't be fetched") && !asked.contains(" check "), "{without}: {asked}");
        let (found, _) = said("check");
        assert!(found.contains("there are some"), "{found}");
        let (none, asked) = said("nothing");
        assert_eq!(none, "");
        assert_eq!(asked.matches("check --disable-fetch").count(), 1, "{asked}");
        assert!(asked.lines().filter(|line| line.contains(" check ")).all(|line| line.ends_with(" advisories")));
    }
}
