//! Advisories against what is depended on (RustSec), where their database can be fetched. `deny.toml` names those that are
//! known and why they don't matter here. What is *not* here: licences and sources, which tests look at without a network.

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::setup;

/// cargo-deny's own.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";

/// The lock files that are shipped or tested with.
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
    if cmd!(shell, "cargo deny --config deny.toml fetch db").quiet().run().is_err() {
        return skipped(&format!("{DATABASE} can't be fetched"));
    }
    for manifest in MANIFESTS {
        cmd!(
            shell,
            "cargo deny --locked --manifest-path {manifest} --config deny.toml check --disable-fetch advisories"
        )
        .run()
        .with_context(|| format!("an advisory against a dependency of {manifest}"))?;
    }
    Ok(None)
}
