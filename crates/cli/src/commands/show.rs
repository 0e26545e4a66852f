//! `fullpipe show`.

use fullpipe_host::{JournalError, RunId, SystemHost};
use fullpipe_report::{Standing, json, text};

use super::{Ended, journal, printed, status::reading};
use crate::{args::ShowArgs, output::Output};

pub(super) fn run(args: &ShowArgs, output: Output) -> Ended {
    let run = RunId(i64::try_from(args.run).unwrap_or(i64::MAX));
    let Some(journal) = journal::look()? else { return Err(JournalError::NoSuchRun { run }.into()) };
    let mut host = SystemHost::new();
    let shown = Standing::new(journal.run(run)?, |entry| reading(&mut host, entry));
    printed(output.result(|| json::show("show", &shown), |look| text::show(&shown, look)))?;
    Ok(journal::exit_of(&journal, output))
}
