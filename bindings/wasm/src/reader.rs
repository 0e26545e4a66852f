//! A capture as the page that `fullpipe read --html` would write of it.

use std::{
    io::{Cursor, Read},
    ops::ControlFlow,
    sync::Arc,
};

use fullpipe_capture::{Keep, Sink, Tracker};
use fullpipe_ingest::{Captures, Options, Source, read_each};
use fullpipe_page::{MOST_DRAWN, MOST_ON_PAGE, charts, html, json, list};

/// The bytes of a capture, which are read twice.
#[derive(Clone)]
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Reads a capture, as it lies on the disk. `seed` must be one that its author can't foresee.
///
/// # Errors
///
/// It is no capture, in words.
pub fn read(name: &str, seed: u64, bytes: Vec<u8>) -> Result<String, String> {
    let bytes = Shared(Arc::new(bytes));
    let mut tracker = Tracker::new(seed, Keep::default());
    let captures = through(name, &bytes, &mut tracker);
    if let Some(error) = captures.failed.first() {
        return Err(fullpipe_page::clean(&error.to_string()).into_owned());
    }
    let mut list = list(&captures, tracker.finish()).list;
    list.shown = MOST_ON_PAGE;
    list.sort();
    let charts = charts(&list, MOST_DRAWN, |closer| through(name, &bytes, closer));
    Ok(html::page(&json::captures("read", &list), charts))
}

/// Hands the capture to `sink`.
fn through(name: &str, bytes: &Shared, sink: &mut impl Sink) -> Captures {
    let size = bytes.as_ref().len() as u64;
    let stream: Box<dyn Read + Send> = Box::new(Cursor::new(bytes.clone()));
    let source = Source::new(name.to_owned(), stream, Some(size));
    read_each(core::iter::once(source), Options::default(), sink, |_| ControlFlow::Continue(()))
}
