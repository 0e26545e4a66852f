//! What other programs ask of this one without starting it: the documents that `--json` prints, and captures as lists.
//! What is *not* here: a terminal, signals, or anything that changes a setting.

use std::{ffi::OsString, num::NonZeroUsize, sync::atomic::AtomicBool};

use fullpipe_capture::{Filter, Filtered, Keep};
use fullpipe_ingest::{Captures, Options, Team};
use fullpipe_report::{CaptureList, Problem, json};
use serde_json::Value;

use crate::{
    args::{self, Command},
    commands::{plan, read, what_if},
    exit::Exit,
    failure::{self, Failure},
};

/// Who follows the connections of captures, behind the filter.
pub type Watcher = Filtered<Team>;

/// Why something could not be done, as the program says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind, message and hint.
    pub problem: Problem,
    /// What the program would end with.
    pub exit_code: u8,
}

impl Refusal {
    /// What was asked can't be understood.
    pub fn usage(text: &str) -> Self {
        Failure::new(Exit::Usage, text).into()
    }

    /// A file that was given can't be used, and what to do about it.
    pub fn input(text: &str, hint: &str) -> Self {
        Failure::new(Exit::InputInvalid, &format!("{text}; {hint}")).into()
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { problem: failure.problem(), exit_code: failure.exit.code() }
    }
}

/// The document that `fullpipe plan` or `fullpipe what-if` prints with `--json`. `words` are the command line without the
/// program's name: `plan`, `--rate`, `100M`. Simulations end early where `stop` is set, and nobody waits for what they would have said.
pub fn document(words: &[String], stop: &AtomicBool) -> Result<Value, Refusal> {
    let line: Vec<OsString> = ["fullpipe"].into_iter().map(Into::into).chain(words.iter().map(Into::into)).collect();
    let cli = args::parse(&line)
        .map_err(|error| Refusal { problem: failure::usage_problem(&error), exit_code: Exit::Usage.code() })?;
    let document = match &cli.command {
        Command::Plan(args) => plan::document(args),
        Command::WhatIf(args) => what_if::document(args, stop),
        _ => Err(Failure::new(Exit::Usage, "only `plan` and `what-if` are answered without a terminal")),
    };
    Ok(document?)
}

/// How captures are looked at.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// As `--filter` takes it.
    pub filter: Option<String>,
    /// As `--threads`.
    pub threads: Option<NonZeroUsize>,
    /// Whether the connections' samples are kept.
    pub timelines: bool,
}

/// What captures hold, in the order of `fullpipe read`; `read` hands them to the watcher.
pub fn captures(look: &Look, read: impl FnOnce(Options, &mut Watcher) -> Captures) -> Result<CaptureList, Refusal> {
    let filter: Filter = look
        .filter
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| {
            Failure::new(
                Exit::Usage,
                &format!("{:?} is no filter: {error}", look.filter.as_deref().unwrap_or_default()),
            )
        })?
        .unwrap_or_default();
    let keep = Keep { transfers: look.timelines };
    let mut list = read::look(filter, keep, look.threads.unwrap_or_else(read::usual_threads), read)?.list;
    list.shown = usize::MAX;
    list.sort();
    Ok(list)
}

/// The document that `fullpipe read` prints with `--json`.
pub fn captures_document(list: &CaptureList) -> Value {
    json::captures("read", list)
}
