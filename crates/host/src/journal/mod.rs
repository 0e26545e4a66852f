//! What was there before each change, on disk before the change is made.
//!
//! One SQLite file per machine. An entry is committed and synced (`synchronous = EXTRA`) before its write and marked
//! with what was read back after it, so that whatever moment the program ends at, [`crate::undo`] knows what to put
//! back. One program at a time changes settings: a lock file says who. Each row has a checksum, and a file beside the
//! journal says that it was begun, so that nothing that is lost passes for nothing that was done. What is *not* here: the
//! writes themselves.

mod begun;
mod damage;
mod error;
mod far;
mod lock;
mod record;
mod row;
mod schema;
mod state_dir;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};

pub use error::JournalError;
pub use far::FarRun;
pub use record::{Entry, EntryKind, EntryState, RunId, RunRecord, RunState, Trial};
pub use state_dir::{roots_state_dir, state_dir};

use crate::{Identity, trusted};
use lock::Lock;
use row::{EntryRow, RunRow, Stored};

/// The file in the state folder.
pub const FILE_NAME: &str = "journal.sqlite";

/// The journal of one machine.
pub struct Journal {
    connection: Connection,
    path: PathBuf,
    /// What is wrong with its rows.
    damage: Vec<String>,
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

/// What a run is recorded with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start<'a> {
    pub(crate) command: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) trial: Option<&'a Trial>,
    /// What is written into boot-time files once it is confirmed.
    pub(crate) pending: Option<&'a str>,
}

impl Journal {
    /// Opens the journal in a state folder to change settings, and locks it; makes both where they are missing. Waits a
    /// moment for another run to end.
    ///
    /// # Errors
    ///
    /// Where anything is wrong with it: nothing is added to a damaged journal.
    pub fn open(state_dir: &Path) -> Result<Self, JournalError> {
        Self::open_damaged(state_dir)?.require_sound()
    }

    /// As [`Journal::open`], for an undo: of a damaged journal, what can be read; [`Journal::damage`] tells the rest.
    ///
    /// # Errors
    ///
    /// Where nothing can be read, or the folder can't be used or trusted.
    pub fn open_damaged(state_dir: &Path) -> Result<Self, JournalError> {
        let dir = |source| JournalError::StateDir { path: state_dir.to_owned(), source };
        make_private(state_dir).map_err(dir)?;
        let state_dir = trusted_folder(state_dir)?;
        let lock = Lock::take(&state_dir)?;
        let path = state_dir.join(FILE_NAME);
        let is_begun = begun::is_marked(&state_dir).map_err(dir)?;
        let connection = connect(&path, OpenFlags::SQLITE_OPEN_CREATE)?;
        let damage = match schema::version(&connection, &path)? {
            0 if is_begun => return Err(JournalError::Lost { path }),
            0 => Vec::new(),
            _ => damage::look_for(&connection, &path)?,
        };
        if damage.is_empty() {
            schema::prepare(&connection, &path)?;
            begun::mark(&state_dir).map_err(dir)?;
        }
        Ok(Self { connection, path, damage, _lock: Some(lock) })
    }

    /// Opens the journal only to look, without the lock; `None` where there is none yet. Of a damaged one there is to be
    /// seen what can be read, see [`Journal::damage`].
    ///
    /// # Errors
    ///
    /// Where nothing can be read, or the folder can't be used or trusted.
    pub fn look(state_dir: &Path) -> Result<Option<Self>, JournalError> {
        let dir = |source| JournalError::StateDir { path: state_dir.to_owned(), source };
        match state_dir.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(source) => return Err(dir(source)),
        }
        let state_dir = trusted_folder(state_dir)?;
        let path = state_dir.join(FILE_NAME);
        let is_begun = begun::is_marked(&state_dir).map_err(dir)?;
        match path.try_exists() {
            Ok(false) if is_begun => return Err(JournalError::Lost { path }),
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(source) => return Err(dir(source)),
        }
        // Not read-only: what a killed run left half committed must be rolled back before it can be read.
        let connection = connect(&path, OpenFlags::empty())?;
        let damage = match schema::version(&connection, &path)? {
            0 if is_begun => return Err(JournalError::Lost { path }),
            // Somebody is about to begin it.
            0 => return Ok(None),
            1 => {
                // Only whoever may write can bring it to this version's layout.
                drop(connection);
                return Self::open(&state_dir).map(Some);
            }
            _ => damage::look_for(&connection, &path)?,
        };
        Ok(Some(Self { connection, path, damage, _lock: None }))
    }

    /// A journal that ends with the program, for hosts that do so too (the lab's namespaces).
    pub fn in_memory() -> Result<Self, JournalError> {
        let path = PathBuf::from(":memory:");
        let connection =
            Connection::open_in_memory().map_err(|source| JournalError::database("open", &path, source))?;
        schema::prepare(&connection, &path)?;
        Ok(Self { connection, path, damage: Vec::new(), _lock: None })
    }

    /// All runs, newest first; of a damaged journal those that can be read.
    pub fn history(&self) -> Result<Vec<RunRecord>, JournalError> {
        if !self.damage.is_empty() {
            return Ok(self.readable());
        }
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
        self.change_run(run, |row| {
            row.kept = true;
            (row.owner, row.deadline, row.pending) = (None, None, None);
        })
    }

    /// Puts a run that is on trial on other terms.
    ///
    /// # Errors
    ///
    /// Where it is not on trial (any more), or the journal can't be written.
    pub fn put_on_terms(&mut self, run: RunId, trial: &Trial) -> Result<(), JournalError> {
        if self.run(run)?.state != RunState::OnTrial {
            return Err(JournalError::NotOnTrial { run });
        }
        self.change_run(run, |row| (row.owner, row.deadline) = (Some(trial.owner.clone()), trial.deadline_ms))
    }

    /// Ends the trial of a run without a word on whether it stays: nobody waits for it any more.
    pub fn end_trial(&mut self, run: RunId) -> Result<(), JournalError> {
        self.change_run(run, |row| (row.owner, row.deadline, row.pending) = (None, None, None))
    }

    fn change_run(&self, run: RunId, edit: impl FnOnce(&mut RunRow)) -> Result<(), JournalError> {
        let changed = row::change(&self.connection, run.0, edit).map_err(|source| self.failed("write", source))?;
        if changed { Ok(()) } else { Err(JournalError::NoSuchRun { run }) }
    }

    /// Marks what is outstanding of a run as gone, because the namespace or the device that it was in no longer exists.
    pub fn forget(&mut self, run: RunId) -> Result<(), JournalError> {
        let entries = self.run(run)?.entries;
        entries
            .iter()
            .filter(|entry| entry.state.is_outstanding())
            .try_for_each(|entry| self.mark(entry.id, EntryState::Gone))
    }

    pub(crate) fn start_run(&self, start: Start<'_>, identity: &Identity) -> Result<RunId, JournalError> {
        let insert = || {
            let row = RunRow {
                id: row::next::<RunRow>(&self.connection)?,
                started: Timestamp::now().to_string(),
                command: start.command.to_owned(),
                host: start.host.map(str::to_owned),
                boot: identity.boot.clone(),
                namespace: identity.namespace.clone(),
                pid: std::process::id(),
                kept: false,
                owner: start.trial.map(|trial| trial.owner.clone()),
                deadline: start.trial.and_then(|trial| trial.deadline_ms),
                pending: start.pending.map(str::to_owned),
            };
            row.insert(&self.connection)
        };
        insert().map(RunId).map_err(|source| self.failed("write", source))
    }

    /// Records what shall be written. It is on disk when this returns.
    pub(crate) fn intend(&self, run: RunId, intent: &Intent<'_>) -> Result<EntryId, JournalError> {
        let insert = || {
            let row = EntryRow {
                id: row::next::<EntryRow>(&self.connection)?,
                run: run.0,
                kind: intent.kind.name().to_owned(),
                place: intent.place.to_owned(),
                before: intent.before.map(<[u8]>::to_vec),
                intended: intent.intended.map(<[u8]>::to_vec),
                read_back: None,
                mode: intent.mode,
                persisted: intent.persisted,
                state: EntryState::Intended.name().to_owned(),
            };
            row.insert(&self.connection)
        };
        insert().map(EntryId).map_err(|source| self.failed("write", source))
    }

    /// Marks an entry as written, with what was read back.
    pub(crate) fn written(&self, entry: EntryId, read_back: Option<&[u8]>) -> Result<(), JournalError> {
        self.change_entry(entry, |row| {
            row.state = EntryState::Written.name().to_owned();
            row.read_back = read_back.map(<[u8]>::to_vec);
        })
    }

    pub(crate) fn mark(&self, entry: EntryId, state: EntryState) -> Result<(), JournalError> {
        self.change_entry(entry, |row| row.state = state.name().to_owned())
    }

    /// Marks the value of an entry as one that lasts beyond a restart, or as one that does not after all.
    pub(crate) fn lasts(&self, entry: EntryId, lasts: bool) -> Result<(), JournalError> {
        self.change_entry(entry, |row| row.persisted = lasts)
    }

    /// The runs that are in force until somebody confirms them, newest first.
    pub fn on_trial(&self) -> Result<Vec<RunRecord>, JournalError> {
        let mut runs = self.history()?;
        runs.retain(|run| run.state == RunState::OnTrial);
        Ok(runs)
    }

    fn change_entry(&self, entry: EntryId, edit: impl FnOnce(&mut EntryRow)) -> Result<(), JournalError> {
        row::change(&self.connection, entry.0, edit).map(drop).map_err(|source| self.failed("write", source))
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

/// The real place of a state folder that nobody else could have written into.
fn trusted_folder(state_dir: &Path) -> Result<PathBuf, JournalError> {
    let check = || {
        let real = state_dir.canonicalize()?;
        trusted::folder(&real)?;
        [FILE_NAME, "journal.sqlite-journal", "journal.lock", "journal.begun"]
            .iter()
            .try_for_each(|name| trusted::file(&real.join(name)))?;
        Ok(real)
    };
    check().map_err(|source: std::io::Error| match source.kind() {
        // The system says the same of a folder that it does not let us into.
        std::io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
            JournalError::Untrusted { path: state_dir.to_owned(), why: source.to_string() }
        }
        _ => JournalError::StateDir { path: state_dir.to_owned(), source },
    })
}

/// The database, in a folder whose links are resolved.
fn connect(path: &Path, more: OpenFlags) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW | more;
    Connection::open_with_flags(path, flags).map_err(|source| JournalError::database("open", path, source))
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
