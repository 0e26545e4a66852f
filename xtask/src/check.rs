//! Formatting, lints and tests.

use anyhow::Result;
use xshell::{Shell, cmd};

use crate::setup;

/// The packages whose tests build and run for other systems.
const OTHER_SYSTEMS: &[&str] = &["fullpipe", "fullpipe-host"];

/// Runs every check, or the tests of some packages.
pub(crate) fn test(shell: &Shell, packages: &[String]) -> Result<()> {
    setup::peers(shell);
    // They are large: only where their tests are run.
    if packages.is_empty() || packages.iter().any(|name| OTHER_SYSTEMS.contains(&package_name(name).as_str())) {
        setup::other_systems(shell);
    }
    if !packages.is_empty() {
        let selected: Vec<String> =
            packages.iter().flat_map(|name| ["--package".to_owned(), package_name(name)]).collect();
        cmd!(shell, "cargo test --locked {selected...}").run()?;
        return Ok(());
    }
    setup::components(shell)?;
    cmd!(shell, "cargo fmt --all --check").run()?;
    cmd!(shell, "cargo clippy --locked --workspace --all-targets --quiet -- -D warnings").run()?;
    cmd!(shell, "cargo test --locked --workspace --no-fail-fast").run()?;
    replay(shell)
}

/// The fuzzer's crate is no member of the workspace, because only a nightly toolchain fuzzes; its corpora are replayed
/// with the workspace's toolchain, and beside its compiled dependencies.
fn replay(shell: &Shell) -> Result<()> {
    let target = cargo_metadata::MetadataCommand::new().no_deps().exec()?.target_directory;
    cmd!(shell, "cargo fmt --manifest-path fuzz/Cargo.toml --check").run()?;
    cmd!(shell, "cargo test --locked --manifest-path fuzz/Cargo.toml --target-dir {target}").run()?;
    Ok(())
}

/// Writes the generated files anew.
pub(crate) fn generate(shell: &Shell) -> Result<()> {
    let _env = shell.push_env("FULLPIPE_GENERATE", "1");
    cmd!(shell, "cargo test --locked --package fullpipe --test generated").run()?;
    Ok(())
}

/// `lab` is the package `fullpipe-lab`; `cli` is `fullpipe` itself.
fn package_name(room: &str) -> String {
    match room {
        "cli" => "fullpipe".to_owned(),
        "xtask" => room.to_owned(),
        _ if room.starts_with("fullpipe") => room.to_owned(),
        _ => format!("fullpipe-{room}"),
    }
}
