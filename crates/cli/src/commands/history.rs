//! `fullpipe history`.

use fullpipe_report::{json, text};

use super::{Ended, journal, printed};
use crate::{args::HistoryArgs, output::Output};

pub(super) fn run(args: &HistoryArgs, output: Output) -> Ended {
    let mut runs = match journal::look()? {
        Some(journal) => journal.history()?,
        None => Vec::new(),
    };
    runs.truncate(usize::try_from(args.limit.get()).unwrap_or(usize::MAX));
    printed(output.result(|| json::history("history", &runs), |look| text::history(&runs, look)))
}
