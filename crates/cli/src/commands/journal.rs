//! Where the commands find the journal.

use fullpipe_host::{Journal, journal};

use crate::failure::Failure;

/// The journal, only to look; `None` where nothing was ever changed.
pub(super) fn look() -> Result<Option<Journal>, Failure> {
    Ok(Journal::look(&journal::state_dir()?)?)
}

/// The journal, to undo: locked against every other run.
pub(super) fn open() -> Result<Journal, Failure> {
    Ok(Journal::open(&journal::state_dir()?)?)
}
