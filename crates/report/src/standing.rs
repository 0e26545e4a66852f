//! A run of which something is in force, beside what the host reads now.

use fullpipe_host::{Entry, EntryState, RunRecord};

/// A run of which something is in force.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The run.
    pub run: RunRecord,
    /// What the host reads now, an entry of the run each.
    pub readings: Vec<Reading>,
}

/// What a host reads where a run had changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// What the run had put there.
    AsSet,
    /// Something else; `None` where it is absent.
    Other(Option<String>),
    /// It can't be read.
    Unreadable(String),
    /// Nobody looked: it is a file, or no longer in force.
    NotLooked,
}

impl Standing {
    /// The run with what the host reads now, asked from `read` by the place of each entry that is in force.
    pub fn new(run: RunRecord, mut read: impl FnMut(&Entry) -> Reading) -> Self {
        let readings = run
            .entries
            .iter()
            .map(|entry| if entry.state.is_outstanding() { read(entry) } else { Reading::NotLooked })
            .collect();
        Self { run, readings }
    }
}

/// Whether what was read back of an entry is known.
pub(crate) fn stands(entry: &Entry) -> bool {
    entry.state == EntryState::Written
}

/// A recorded value as text.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
