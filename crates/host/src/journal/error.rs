//! Why the journal could not be used.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

use super::RunId;

/// Why the journal could not be used. Nothing was changed on the host where one of these comes before a write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another run is changing settings.
    #[error(
        "the journal in {} is locked by {}; wait for it to end, or end it", path.display(),
        pid.map_or("another run".to_owned(), |pid| format!("another run (process {pid})"))
    )]
    JournalLocked {
        /// The state folder.
        path: PathBuf,
        /// Who holds the lock, as far as its file tells.
        pid: Option<u32>,
    },
    /// The state folder can't be used.
    #[error("can't use the state folder {}: {source}; set FULLPIPE_STATE_DIR to a folder that you may write", path.display())]
    StateDir {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no place for state: no home folder is known.
    #[error("can't find a folder for the journal: neither HOME nor XDG_STATE_HOME is set; set FULLPIPE_STATE_DIR")]
    NoStateDir,
    /// No room for the journal, so nothing was written to the host.
    #[error("can't {operation} the journal {}: the disk is full; make room, or set FULLPIPE_STATE_DIR to another disk", path.display())]
    DiskFull {
        /// `open`, `read`, `write`.
        operation: &'static str,
        /// The journal's file.
        path: PathBuf,
        /// What the database says.
        source: rusqlite::Error,
    },
    /// The file is damaged or isn't a journal.
    #[error(
        "the journal {} is damaged or is no journal: {source}; move its folder away to go on, and what it held can't be undone",
        path.display()
    )]
    Corrupt {
        /// The journal's file.
        path: PathBuf,
        /// What the database says.
        source: rusqlite::Error,
    },
    /// Some of it is damaged.
    #[error(
        "the journal {} is damaged: {what}; `fullpipe undo` takes back what can be read, then move its folder away to go on",
        path.display()
    )]
    Damaged {
        /// The journal's file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It was begun, and nothing of it is left.
    #[error(
        "the journal {} was begun and is empty or missing: what it held can't be undone; move its folder away to go on",
        path.display()
    )]
    Lost {
        /// The journal's file.
        path: PathBuf,
    },
    /// Others could have written it.
    #[error(
        "the state folder {} can't be trusted: {why}; give it and what is in it to yourself alone, or set \
         FULLPIPE_STATE_DIR to another folder", path.display()
    )]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The journal was written by a newer version.
    #[error(
        "the journal {} has layout {found}, and this version knows those up to {known}; use the newer version that made it",
        path.display()
    )]
    TooNew {
        /// The journal's file.
        path: PathBuf,
        /// The layout's number in the file.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// There is no run of that number.
    #[error("there is no run {run} in the journal; `fullpipe history` lists them")]
    NoSuchRun {
        /// The number.
        run: RunId,
    },
    /// There is none at all.
    #[error("there is no run in the journal; `fullpipe apply`, `tune` and `reset` begin one")]
    NoRun,
    /// The run is not on trial.
    #[error("run {run} is not on trial: it was confirmed or taken back; `fullpipe status` tells what is in force")]
    NotOnTrial {
        /// The number.
        run: RunId,
    },
    /// Nothing is on trial.
    #[error("nothing is on trial; `fullpipe status` tells what is in force")]
    NoTrial,
    /// The host could not be asked who it is, without which nothing may be written.
    #[error("can't tell which system this is: {source}")]
    Host {
        /// The reason.
        source: Box<crate::HostError>,
    },
    /// Anything else that the database reports.
    #[error("can't {operation} the journal {}: {source}", path.display())]
    Database {
        /// `open`, `read`, `write`.
        operation: &'static str,
        /// The journal's file.
        path: PathBuf,
        /// What the database says.
        source: rusqlite::Error,
    },
}

impl JournalError {
    pub(super) fn database(operation: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { operation, path, source },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { path, source },
            // A header that no SQLite understands; our own statements at this point can't be at fault.
            Some(ErrorCode::Unknown) if operation == "open" => Self::Corrupt { path, source },
            // A row of a form that no version of ours writes.
            None if matches!(
                source,
                rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..)
            ) =>
            {
                Self::Corrupt { path, source }
            }
            _ => Self::Database { operation, path, source },
        }
    }
}
