//! `fullpipe show`.

use fullpipe_host::{Journal, JournalError, RunId, SystemHost};
use fullpipe_report::{Standing, json, text};

use super::{
    Ended, journal, printed,
    status::{beside_boot_files, reading},
};
use crate::{args::ShowArgs, exit::Exit, output::Output};

pub(super) fn run(args: &ShowArgs, output: Output) -> Ended {
    let named = args.run.filter(|_| !args.last).map(|run| RunId(i64::try_from(run).unwrap_or(i64::MAX)));
    let missing = || named.map_or(JournalError::NoRun, |run| JournalError::NoSuchRun { run });
    let run = |journal: Option<&Journal>| match (journal, named) {
        (Some(journal), Some(run)) => journal.run(run),
        (Some(journal), None) => journal.history()?.into_iter().next().ok_or_else(missing),
        (None, _) => Err(missing()),
    };
    let journal = journal::look()?;
    let found = run(journal.as_ref());
    if found.is_err() && journal::exit_of_look("show", journal.as_ref(), output) == Exit::NoPermission {
        return Ok(Exit::NoPermission);
    }
    let (run, Some(journal)) = (found?, journal) else { return Err(missing().into()) };
    let mut host = SystemHost::new();
    let shown = Standing::new(run, |entry| reading(&mut host, entry));
    let shown = beside_boot_files(&mut host, shown);
    printed(output.result(|| json::show("show", &shown), |look| text::show(&shown, look)))?;
    Ok(journal::exit_of(&journal, output))
}
