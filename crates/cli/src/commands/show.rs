//! `fullpipe show`.

use fullpipe_host::{JournalError, RunId, SystemHost};
use fullpipe_report::{Standing, json, text};

use super::{
    Ended, journal, printed,
    status::{beside_boot_files, reading},
};
use crate::{args::ShowArgs, output::Output};

pub(super) fn run(args: &ShowArgs, output: Output) -> Ended {
    let named = args.run.filter(|_| !args.last).map(|run| RunId(i64::try_from(run).unwrap_or(i64::MAX)));
    let missing = || named.map_or(JournalError::NoRun, |run| JournalError::NoSuchRun { run });
    let Some(journal) = journal::look()? else { return Err(missing().into()) };
    let run = match named {
        Some(run) => journal.run(run)?,
        None => journal.history()?.into_iter().next().ok_or_else(missing)?,
    };
    let mut host = SystemHost::new();
    let shown = Standing::new(run, |entry| reading(&mut host, entry));
    let shown = beside_boot_files(&mut host, shown);
    printed(output.result(|| json::show("show", &shown), |look| text::show(&shown, look)))?;
    Ok(journal::exit_of(&journal, output))
}
