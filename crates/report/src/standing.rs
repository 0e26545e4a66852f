//! A run beside what the host reads now, and what it reads at boot.

use fullpipe_host::{Entry, EntryState, Overridden, RunRecord};

/// A run, and what is known of it besides.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The run.
    pub run: RunRecord,
    /// What the host reads now, an entry of the run each; empty where nobody looked.
    pub readings: Vec<Reading>,
    /// What keeps its boot-time files from deciding what is set at the next boot.
    pub overridden: Vec<Overridden>,
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
        Self { run, readings, overridden: Vec::new() }
    }

    /// The run as the journal has it.
    pub fn recorded(run: RunRecord) -> Self {
        Self { run, readings: Vec::new(), overridden: Vec::new() }
    }

    /// The same, with what other boot-time files make of it.
    #[must_use]
    pub fn with_overridden(self, overridden: Vec<Overridden>) -> Self {
        Self { overridden, ..self }
    }

    /// What keeps an entry from lasting beyond a reboot although it was to.
    pub(crate) fn not_lasting(&self, entry: &Entry) -> Option<&Overridden> {
        let is_lasting = entry.persisted && entry.state.is_outstanding();
        let concerning = self.overridden.iter().filter(|overridden| is_lasting && overridden.concerns(&entry.place));
        // The file that wins says more than the folder that nothing reads.
        concerning.max_by_key(|overridden| overridden.is_by_another())
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
