//! A run beside what the host reads now, and what it reads at boot.

use fullpipe_host::{Entry, EntryKind, EntryState, Overridden, RunRecord};

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

    /// Whether an entry is to last beyond a reboot: a setting does as long as a boot-time file of its run is there, where the run
    /// wrote any.
    pub(crate) fn persists(&self, entry: &Entry) -> bool {
        entry.persisted && !self.has_lost_its_file(entry)
    }

    /// What keeps an entry from lasting beyond a reboot although it was to.
    pub(crate) fn not_lasting(&self, entry: &Entry) -> Option<String> {
        if !entry.persisted || !entry.state.is_outstanding() {
            return None;
        }
        if self.has_lost_its_file(entry) {
            return Some("gone after a reboot: its boot-time file is no longer there".to_owned());
        }
        let concerning = self.overridden.iter().filter(|overridden| overridden.concerns(&entry.place));
        // The file that wins says more than the folder that nothing reads.
        concerning.max_by_key(|overridden| overridden.is_by_another()).map(Overridden::instead)
    }

    /// Whether a setting is still in force, and the boot-time files of its run were taken back or are gone.
    fn has_lost_its_file(&self, entry: &Entry) -> bool {
        let is_gone = |(index, file): (usize, &Entry)| {
            let taken_back = matches!(file.state, EntryState::Undone | EntryState::Gone);
            taken_back || self.readings.get(index) == Some(&Reading::Other(None))
        };
        let mut files = self.run.entries.iter().enumerate().filter(|(_, file)| file.kind == EntryKind::File).peekable();
        let is_setting = entry.kind == EntryKind::Setting && entry.state.is_outstanding();
        is_setting && files.peek().is_some() && files.all(is_gone)
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
