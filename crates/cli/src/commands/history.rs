//! `fullpipe history`.

use fullpipe_host::{Journal, SystemHost};
use fullpipe_report::{Standing, json, text};

use super::{Ended, journal, printed, status::beside_boot_files};
use crate::{args::HistoryArgs, output::Output};

pub(super) fn run(args: &HistoryArgs, output: Output) -> Ended {
    let journal = journal::look()?;
    let mut runs = journal.as_ref().map_or_else(|| Ok(Vec::new()), Journal::history)?;
    runs.truncate(usize::try_from(args.limit.get()).unwrap_or(usize::MAX));
    let mut host = SystemHost::new();
    let runs: Vec<_> = runs.into_iter().map(|run| beside_boot_files(&mut host, Standing::recorded(run))).collect();
    printed(output.result(|| json::history("history", &runs), |look| text::history(&runs, journal::is_all(), look)))?;
    Ok(journal::exit_of_look("history", journal.as_ref(), output))
}
