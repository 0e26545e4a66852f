//! `fullpipe lab`.

pub(super) mod list;
#[cfg(target_os = "linux")]
pub(super) mod run;
#[cfg(target_os = "linux")]
pub(super) mod shell;

use std::{fs, path::Path};

use fullpipe_path::Scenario;

use crate::{exit::Exit, failure::Failure};

/// Why there is no emulated path on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn needs_linux() -> Failure {
    let message = "making a path needs Linux, whose network namespaces are its two hosts; to measure a real path from \
                   here, use `fullpipe check`";
    Failure::new(Exit::Unsupported, message)
}

/// Gets the rights that a lab needs. Comes before any thread: a user namespace is entered by a process with one.
#[cfg(target_os = "linux")]
pub(super) fn enter() -> Result<(), Failure> {
    Ok(fullpipe_lab::enter_user_namespace()?)
}

/// The scenario of that name, or the one in that file: a text with a `/` or ending in `.toml` is a file.
pub(super) fn scenario(named: &str) -> Result<Scenario, Failure> {
    let path = Path::new(named);
    if !named.contains('/') && path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(Scenario::named(named)?);
    }
    let text = fs::read_to_string(path).map_err(|error| {
        let message =
            format!("reading the scenario {named}: {error}; `fullpipe lab list` shows the built-in scenarios");
        Failure::new(Exit::ScenarioInvalid, &message)
    })?;
    let beside = |name: &str| fs::read_to_string(path.with_file_name(name)).map_err(|error| error.to_string());
    Ok(Scenario::parse_with(&text, named, &beside)?)
}
