//! `fullpipe history`.

use fullpipe_host::Journal;
use fullpipe_report::{json, text};

use super::{Ended, journal, printed};
use crate::{args::HistoryArgs, output::Output};

pub(super) fn run(args: &HistoryArgs, output: Output) -> Ended {
    let journal = journal::look()?;
    let mut runs = journal.as_ref().map_or_else(|| Ok(Vec::new()), Journal::history)?;
    runs.truncate(usize::try_from(args.limit.get()).unwrap_or(usize::MAX));
    printed(output.result(|| json::history("history", &runs), |look| text::history(&runs, journal::is_all(), look)))?;
    Ok(journal::exit_of_look("history", journal.as_ref(), output))
}
