//! What this machine had a far host change: remembered here, in force and journalled there.

use std::{fmt, str::FromStr};

use fullpipe_knobs::Change;

use super::{Entry, EntryKind, EntryState, Intent, Journal, JournalError, RunId, RunRecord, Start};
use crate::Identity;

/// A run in the journal of a far host, as an entry's place has it: `far.example:5201 run 7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarRun {
    /// The server there: a name or address, with its port.
    pub server: String,
    /// Its number there.
    pub run: RunId,
}

impl fmt::Display for FarRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} run {}", self.server, self.run)
    }
}

impl FromStr for FarRun {
    /// What was to be such a place.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.rsplit_once(" run ").and_then(|(server, run)| Some((server, run.parse().ok()?)));
        parts.map(|(server, run)| Self { server: server.to_owned(), run }).ok_or_else(|| text.to_owned())
    }
}

impl RunRecord {
    /// The far run that this one remembers, where it does and it may still be in force there.
    pub fn far(&self) -> Option<FarRun> {
        let entry =
            self.entries.iter().find(|entry| entry.kind == EntryKind::FarRun && entry.state.is_outstanding())?;
        entry.place.parse().ok()
    }
}

impl Journal {
    /// Remembers that `far` is about to be kept with these changes. It is on disk when this returns; without
    /// [`Journal::far_is_kept`] nobody knows whether it was.
    ///
    /// # Errors
    ///
    /// Where the journal can't be written.
    pub fn remember_far(
        &mut self,
        command: &str,
        host: &str,
        far: &FarRun,
        changes: &[Change],
    ) -> Result<RunId, JournalError> {
        let lines = |value: fn(&Change) -> Option<&str>| {
            let line = |change: &Change| format!("{} = {}\n", change.knob, value(change).unwrap_or("(absent)"));
            changes.iter().map(line).collect::<String>()
        };
        let start = Start { command, host: Some(host), ..Start::default() };
        let run = self.start_run(start, &Identity::default())?;
        // No interrupted run: nothing of it is in force here.
        self.keep(run)?;
        self.intend(
            run,
            &Intent {
                kind: EntryKind::FarRun,
                place: &far.to_string(),
                before: Some(lines(|change| change.from.as_deref()).as_bytes()),
                intended: Some(lines(|change| change.to.as_deref()).as_bytes()),
                mode: None,
                persisted: false,
            },
        )?;
        Ok(run)
    }

    /// Marks a remembered run as kept there.
    ///
    /// # Errors
    ///
    /// Where the journal can't be written, or has no such run.
    pub fn far_is_kept(&mut self, run: RunId) -> Result<(), JournalError> {
        self.far_entries(run)?.iter().try_for_each(|entry| self.written(entry.id, entry.intended.as_deref()))
    }

    /// Marks a remembered run as undone there.
    ///
    /// # Errors
    ///
    /// Where the journal can't be written, or has no such run.
    pub fn far_is_undone(&mut self, run: RunId) -> Result<(), JournalError> {
        self.far_entries(run)?.iter().try_for_each(|entry| self.mark(entry.id, EntryState::Undone))
    }

    fn far_entries(&self, run: RunId) -> Result<Vec<Entry>, JournalError> {
        let mut entries = self.run(run)?.entries;
        entries.retain(|entry| entry.kind == EntryKind::FarRun && entry.state.is_outstanding());
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::Address;

    use super::*;
    use crate::RunState;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for server in ["far.example:5201", "[2001:db8::7]:5301", "strange run 3:1"] {
            let far = FarRun { server: server.to_owned(), run: RunId(7) };
            assert_eq!(far.to_string().parse(), Ok(far));
        }
        assert_eq!("far.example".parse::<FarRun>(), Err("far.example".to_owned()));
        assert!("far.example run seven".parse::<FarRun>().is_err());
    }

    #[test]
    fn a_far_run_is_remembered_until_it_is_undone_there() {
        let mut journal = Journal::in_memory().unwrap();
        let change = Change::unexplained(
            "far.example".to_owned(),
            Address::Sysctl("net.ipv4.tcp_wmem".to_owned()),
            Some("4096 16384 77824".to_owned()),
            Some("4096 16384 4000000".to_owned()),
        );
        let far = FarRun { server: "far.example:5201".to_owned(), run: RunId(7) };
        let run = journal.remember_far("tune far.example", "far.example", &far, &[change]).unwrap();
        assert_eq!(journal.run(run).unwrap().far(), Some(far.clone()));
        journal.far_is_kept(run).unwrap();
        let kept = journal.run(run).unwrap();
        assert_eq!((kept.state, kept.far()), (RunState::Kept, Some(far)));
        assert_eq!(kept.entries[0].read_back.as_deref(), Some(b"net.ipv4.tcp_wmem = 4096 16384 4000000\n".as_slice()));
        journal.far_is_undone(run).unwrap();
        let undone = journal.run(run).unwrap();
        assert_eq!((undone.state, undone.far()), (RunState::Undone, None));
        assert!(journal.outstanding().unwrap().is_empty());
    }
}
