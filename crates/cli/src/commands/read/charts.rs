//! What a page shows of captures beside the document: a second look at the first connections. What is *not* here: drawing it.

use std::{ops::ControlFlow, path::Path};

use fullpipe_ingest::{Options, read_all};
use fullpipe_report::{CaptureList, MOST_DRAWN, html::Charts};

use crate::args::ReadArgs;

/// The charts of the connections that are shown first.
pub(super) fn chosen(args: &ReadArgs, list: &CaptureList) -> Charts {
    of_first(args, list, MOST_DRAWN)
}

/// The charts of the first `count` of them.
pub(super) fn of_first(args: &ReadArgs, list: &CaptureList, count: usize) -> Charts {
    if args.files.iter().any(|file| file == Path::new("-")) {
        let note = "No charts: they need a second pass over the capture, and a pipe can be read only once.";
        return Charts { note: Some(note.to_owned()), ..Charts::default() };
    }
    fullpipe_report::charts(list, count, |closer| {
        read_all(&args.files, Options::default(), closer, |_| ControlFlow::Continue(()))
    })
}
