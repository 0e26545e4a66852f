//! `fullpipe lab`.

pub(super) mod list;
pub(super) mod run;
pub(super) mod shell;

use std::{fs, path::Path};

use fullpipe_path::Scenario;

use crate::{exit::Exit, failure::Failure};

/// Gets the rights that a lab needs. Comes before any thread: a user namespace is entered by a process with one.
pub(super) fn enter() -> Result<(), Failure> {
    Ok(fullpipe_lab::enter_user_namespace()?)
}

/// The scenario of that name, or the one in that file: a text with a `/` or ending in `.toml` is a file.
fn scenario(named: &str) -> Result<Scenario, Failure> {
    let path = Path::new(named);
    if !named.contains('/') && path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(Scenario::named(named)?);
    }
    let text = fs::read_to_string(path).map_err(|error| {
        let message = format!("reading the scenario {named}: {error}; `fullpipe lab list` shows those that come along");
        Failure::new(Exit::ScenarioInvalid, &message)
    })?;
    Ok(Scenario::parse(&text, named)?)
}
