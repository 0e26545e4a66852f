//! The layout of the journal's file, and its number.

use std::path::Path;

use rusqlite::Connection;

use super::JournalError;

/// The layout that this version writes (`PRAGMA user_version`).
const LAYOUT: i64 = 1;

const TABLES: &str = "
CREATE TABLE runs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    started   TEXT NOT NULL,             -- RFC 3339, UTC
    command   TEXT NOT NULL,
    host      TEXT,                      -- the name of the end, where it has one
    boot      TEXT,
    namespace TEXT,
    pid       INTEGER NOT NULL,
    kept      INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE entries (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    run       INTEGER NOT NULL REFERENCES runs (id),
    kind      TEXT NOT NULL,             -- setting, file
    place     TEXT NOT NULL,             -- an address, or a path
    before    BLOB,                      -- NULL: it was absent
    intended  BLOB,                      -- NULL: it shall be absent
    read_back BLOB,                      -- NULL until written, or where it then was absent
    mode      INTEGER,                   -- permission bits of a file that was there
    persisted INTEGER NOT NULL DEFAULT 0,
    state     TEXT NOT NULL              -- intended, written, undone, gone
);
CREATE INDEX entries_of_run ON entries (run, id);
";

/// Sets the database up so that what is committed is on disk, and makes the tables where the file is new.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let failed = |operation| move |source| JournalError::database(operation, path, source);
    // EXTRA syncs the folder too, so that a journal rolled forward can't come back after a power failure.
    connection
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON;")
        .map_err(failed("open"))?;
    if check(connection, path)? == 0 {
        connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;"))
            .map_err(failed("write"))?;
    }
    Ok(())
}

/// The number of the layout, 0 for a new file; refuses what is damaged, foreign or newer.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<i64, JournalError> {
    let failed = |source| JournalError::database("open", path, source);
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if found > LAYOUT {
        return Err(JournalError::TooNew { path: path.to_owned(), found, known: LAYOUT });
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict == "ok" {
        return Ok(found);
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(JournalError::database("open", path, rusqlite::Error::SqliteFailure(code, Some(verdict))))
}
