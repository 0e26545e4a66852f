//! What was there before each change, on disk before the change is made.
//!
//! One SQLite file per machine. An entry is committed and synced (`synchronous = EXTRA`) before its write and marked
//! with what was read back after it, so that whatever moment the program ends at, [`crate::undo`] knows what to put
//! back. One program at a time changes settings: a lock file says who. What is *not* here: the writes themselves.

mod error;
mod lock;
mod record;
mod schema;
mod state_dir;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, params};

pub use error::JournalError;
pub use record::{Entry, EntryKind, EntryState, RunId, RunRecord, RunState};
pub use state_dir::state_dir;

use crate::Identity;
use lock::Lock;

/// The file in the state folder.
pub const FILE_NAME: &str = "journal.sqlite";

/// The journal of one machine.
pub struct Journal {
    connection: Connection,
    path: PathBuf,
    _lock: Option<Lock>,
}

/// An entry to record before its write.
pub(crate) struct Intent<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) place: &'a str,
    pub(crate) before: Option<&'a [u8]>,
    pub(crate) intended: Option<&'a [u8]>,
    /// The permission bits of a file that was there.
    pub(crate) mode: Option<u32>,
    /// The value lasts beyond a restart, by a drop-in of the same run.
    pub(crate) persisted: bool,
}

/// The number of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryId(pub(crate) i64);

impl Journal {
    /// Opens the journal in a state folder to change settings, and locks it; makes both where they are missing.
    pub fn open(state_dir: &Path) -> Result<Self, JournalError> {
        make_private(state_dir).map_err(|source| JournalError::StateDir { path: state_dir.to_owned(), source })?;
        let lock = Lock::take(state_dir)?;
        let path = state_dir.join(FILE_NAME);
        let connection = Connection::open(&path).map_err(|source| JournalError::database("open", &path, source))?;
        Self::prepare(connection, path, Some(lock))
    }

    /// Opens the journal only to look, without the lock; `None` where there is none yet.
    pub fn look(state_dir: &Path) -> Result<Option<Self>, JournalError> {
        let path = state_dir.join(FILE_NAME);
        match path.try_exists() {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(source) => return Err(JournalError::StateDir { path: state_dir.to_owned(), source }),
        }
        let failed = |source| JournalError::database("open", &path, source);
        // Not read-only: what a killed run left half committed must be rolled back before it can be read.
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
        schema::check(&connection, &path)?;
        Ok(Some(Self { connection, path, _lock: None }))
    }

    /// A journal that ends with the program, for hosts that do so too (the lab's namespaces).
    pub fn in_memory() -> Result<Self, JournalError> {
        let path = PathBuf::from(":memory:");
        let connection =
            Connection::open_in_memory().map_err(|source| JournalError::database("open", &path, source))?;
        Self::prepare(connection, path, None)
    }

    fn prepare(connection: Connection, path: PathBuf, lock: Option<Lock>) -> Result<Self, JournalError> {
        schema::prepare(&connection, &path)?;
        Ok(Self { connection, path, _lock: lock })
    }

    /// All runs, newest first.
    pub fn history(&self) -> Result<Vec<RunRecord>, JournalError> {
        self.records("SELECT id FROM runs ORDER BY id DESC")
    }

    /// The runs of which something is still in force, newest first: what an undo of everything would take back.
    pub fn outstanding(&self) -> Result<Vec<RunRecord>, JournalError> {
        let mut runs = self.history()?;
        runs.retain(|run| run.entries.iter().any(|entry| entry.state.is_outstanding()));
        Ok(runs)
    }

    /// One run.
    pub fn run(&self, run: RunId) -> Result<RunRecord, JournalError> {
        let found = self.run_record(run).map_err(|source| self.failed("read", source))?;
        found.ok_or(JournalError::NoSuchRun { run })
    }

    /// Marks a run as one to keep: it helped. It can still be undone by name.
    pub fn keep(&mut self, run: RunId) -> Result<(), JournalError> {
        let changed = self
            .connection
            .execute("UPDATE runs SET kept = 1 WHERE id = ?1", params![run.0])
            .map_err(|source| self.failed("write", source))?;
        if changed == 0 { Err(JournalError::NoSuchRun { run }) } else { Ok(()) }
    }

    /// Marks what is outstanding of a run as gone, because the namespace or the device that it was in no longer exists.
    pub fn forget(&mut self, run: RunId) -> Result<(), JournalError> {
        self.run(run)?;
        self.connection
            .execute(
                "UPDATE entries SET state = 'gone' WHERE run = ?1 AND state IN ('intended', 'written')",
                params![run.0],
            )
            .map(drop)
            .map_err(|source| self.failed("write", source))
    }

    pub(crate) fn start_run(
        &self,
        command: &str,
        host: Option<&str>,
        identity: &Identity,
    ) -> Result<RunId, JournalError> {
        self.connection
            .execute(
                "INSERT INTO runs (started, command, host, boot, namespace, pid) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    Timestamp::now().to_string(),
                    command,
                    host,
                    identity.boot,
                    identity.namespace,
                    std::process::id()
                ],
            )
            .map_err(|source| self.failed("write", source))?;
        Ok(RunId(self.connection.last_insert_rowid()))
    }

    /// Records what shall be written. It is on disk when this returns.
    pub(crate) fn intend(&self, run: RunId, intent: &Intent<'_>) -> Result<EntryId, JournalError> {
        self.connection
            .execute(
                "INSERT INTO entries (run, kind, place, before, intended, mode, persisted, state) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'intended')",
                params![
                    run.0,
                    intent.kind.name(),
                    intent.place,
                    intent.before,
                    intent.intended,
                    intent.mode,
                    intent.persisted
                ],
            )
            .map_err(|source| self.failed("write", source))?;
        Ok(EntryId(self.connection.last_insert_rowid()))
    }

    /// Marks an entry as written, with what was read back.
    pub(crate) fn written(&self, entry: EntryId, read_back: Option<&[u8]>) -> Result<(), JournalError> {
        self.connection
            .execute("UPDATE entries SET state = 'written', read_back = ?2 WHERE id = ?1", params![entry.0, read_back])
            .map(drop)
            .map_err(|source| self.failed("write", source))
    }

    pub(crate) fn mark(&self, entry: EntryId, state: EntryState) -> Result<(), JournalError> {
        self.connection
            .execute("UPDATE entries SET state = ?2 WHERE id = ?1", params![entry.0, state.name()])
            .map(drop)
            .map_err(|source| self.failed("write", source))
    }

    fn records(&self, query: &str) -> Result<Vec<RunRecord>, JournalError> {
        let read = || -> rusqlite::Result<Vec<RunRecord>> {
            let mut statement = self.connection.prepare(query)?;
            let ids = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
            ids.into_iter().filter_map(|id| self.run_record(RunId(id)).transpose()).collect()
        };
        read().map_err(|source| self.failed("read", source))
    }

    fn failed(&self, operation: &'static str, source: rusqlite::Error) -> JournalError {
        JournalError::database(operation, &self.path, source)
    }
}

/// Makes the folder for its owner only: plans tell a network's addresses.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests;
