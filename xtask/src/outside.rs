//! Programs started without what cargo says of the package that starts them. Tests have this file too.

use std::{env, ffi::OsStr, process::Command};

/// A program that does not learn which package's test, or which task, starts it. Build scripts that watch these variables
/// (`ring`'s) would run again in a cargo below, and all that needs them would be built anew beneath the tests that run
/// meanwhile.
pub(crate) fn outside(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os().filter(|(name, _)| says_which_package(name)) {
        command.env_remove(name);
    }
    command
}

pub(crate) fn says_which_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}
