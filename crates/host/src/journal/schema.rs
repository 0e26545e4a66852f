//! The layout of the journal's file, and its number.

use std::path::Path;

use rusqlite::Connection;

use super::{JournalError, row};

/// The layout that this version writes (`PRAGMA user_version`). 2 came with checksums and trials.
const LAYOUT: i64 = 2;

const TABLES: &str = "
CREATE TABLE runs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    started   TEXT NOT NULL,             -- RFC 3339, UTC
    command   TEXT NOT NULL,
    host      TEXT,                      -- the name of the end, where it has one
    boot      TEXT,
    namespace TEXT,
    pid       INTEGER NOT NULL,
    kept      INTEGER NOT NULL DEFAULT 0,
    owner     TEXT,                      -- on trial: whose guardian takes it back
    deadline  INTEGER,                   -- on trial: until then, in ms since that start of the machine
    pending   TEXT,                      -- what is to last beyond a restart once it is confirmed (JSON)
    sum       TEXT NOT NULL
);
CREATE TABLE entries (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    run       INTEGER NOT NULL REFERENCES runs (id),
    kind      TEXT NOT NULL,             -- setting, file, far_run, program, socket
    place     TEXT NOT NULL,             -- an address, a path, or a server and its run
    before    BLOB,                      -- NULL: it was absent
    intended  BLOB,                      -- NULL: it shall be absent
    read_back BLOB,                      -- NULL until written, or where it then was absent
    mode      INTEGER,                   -- permission bits of a file that was there
    persisted INTEGER NOT NULL DEFAULT 0,
    state     TEXT NOT NULL,             -- intended, written, undone, gone, left
    sum       TEXT NOT NULL
);
CREATE INDEX entries_of_run ON entries (run, id);
";

/// From layout 1, whose rows had no sum: they get the one of what they hold.
const FROM_1: &str = "
ALTER TABLE runs ADD COLUMN owner TEXT;
ALTER TABLE runs ADD COLUMN deadline INTEGER;
ALTER TABLE runs ADD COLUMN pending TEXT;
ALTER TABLE runs ADD COLUMN sum TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN sum TEXT NOT NULL DEFAULT '';
";

/// Sets the database up so that what is committed is on disk, and makes the tables where the file is new.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let failed = |operation| move |source| JournalError::database(operation, path, source);
    // EXTRA syncs the folder too, so that a journal rolled forward can't come back after a power failure.
    connection
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON;")
        .map_err(failed("open"))?;
    match version(connection, path)? {
        0 => connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;"))
            .map_err(failed("write")),
        1 => {
            check(connection, path)?;
            let renew = || {
                let change = connection.unchecked_transaction()?;
                change.execute_batch(FROM_1)?;
                row::sum_all(&change)?;
                change.execute_batch(&format!("PRAGMA user_version = {LAYOUT};"))?;
                change.commit()
            };
            renew().map_err(failed("write"))
        }
        _ => Ok(()),
    }
}

/// The number of the layout, 0 for a new file; refuses a newer one.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64, JournalError> {
    let failed = |source| JournalError::database("open", path, source);
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if (0..=LAYOUT).contains(&found) {
        return Ok(found);
    }
    // A number that was damaged with the rest of the file says nothing of its age.
    check(connection, path)?;
    Err(JournalError::TooNew { path: path.to_owned(), found, known: LAYOUT })
}

/// Refuses a file whose structure is damaged. The indices count, too: what they miss would not be found.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let failed = |source| JournalError::database("open", path, source);
    let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict == "ok" {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(JournalError::database("open", path, rusqlite::Error::SqliteFailure(code, Some(verdict))))
}
