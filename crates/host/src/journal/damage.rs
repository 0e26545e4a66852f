//! What is wrong with a journal's rows, and what can be read of them all the same.
//!
//! What is *not* here: the checksums themselves (`row`), and damage of the database as a whole, which `schema` finds.

use std::path::Path;

use rusqlite::Connection;

use super::{
    Journal, JournalError, RunId, RunRecord,
    row::{EntryRow, RunRow, Stored, last},
    schema,
};

/// Every row of ours takes more bytes than this: what tells of more rows than the file has room for is damaged itself.
const LEAST_ROW: u64 = 100;

/// Everything that is wrong with a journal, a sentence each.
pub(super) fn look_for(connection: &Connection, path: &Path) -> Result<Vec<String>, JournalError> {
    let mut found = match schema::check(connection, path) {
        Ok(()) => Vec::new(),
        // Single rows may be found all the same.
        Err(JournalError::Corrupt { source, .. }) => vec![source.to_string()],
        Err(error) => return Err(error),
    };
    if schema::version(connection, path)? > 1 {
        found.extend(of_rows(connection));
    }
    Ok(found)
}

fn of_rows(connection: &Connection) -> Vec<String> {
    let mut found = Vec::new();
    rows::<RunRow>(connection, &mut found);
    rows::<EntryRow>(connection, &mut found);
    found
}

fn rows<R: Stored>(connection: &Connection, found: &mut Vec<String>) {
    let last = match highest::<R>(connection) {
        Ok(last) => last,
        Err(error) => return found.push(format!("the table {} can't be read: {error}", R::TABLE)),
    };
    // No row is ever taken out, so each number up to the last one is there.
    let most = most(connection);
    for id in 1..=last.min(most) {
        match R::find(connection, id) {
            Ok(Some(_)) => {}
            Ok(None) => found.push(format!("row {id} of {} is missing", R::TABLE)),
            Err(error) => found.push(format!("row {id} of {} can't be read: {error}", R::TABLE)),
        }
        if found.len() > 20 {
            return found.push("and more".to_owned());
        }
    }
    if last > most {
        found.push(format!("{} rows of {} are more than can be", last, R::TABLE));
    }
}

/// The highest number of a row, whichever of the two places that tell it can be read.
fn highest<R: Stored>(connection: &Connection) -> rusqlite::Result<i64> {
    let query = format!("SELECT coalesce(max(id), 0) FROM {}", R::TABLE);
    let highest = connection.query_row(&query, [], |row| row.get(0));
    match (highest, last::<R>(connection)) {
        (Ok(highest), Ok(last)) => Ok(last.max(highest)),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(error), Err(_)) => Err(error),
    }
}

fn most(connection: &Connection) -> i64 {
    // Not what the file's own header tells of its size.
    let size = connection.path().and_then(|path| std::fs::metadata(path).ok()).map_or(1 << 20, |file| file.len());
    i64::try_from(size / LEAST_ROW).unwrap_or(i64::MAX)
}

impl Journal {
    /// What is wrong with this journal; empty where it is sound. Runs and entries that are damaged are left out of
    /// [`Journal::history`] and of an undo.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// An error where something is wrong.
    pub(crate) fn require_sound(self) -> Result<Self, JournalError> {
        if self.damage.is_empty() {
            return Ok(self);
        }
        Err(JournalError::Damaged { path: self.path.clone(), what: self.damage.join("; ") })
    }

    /// The runs that can be read, newest first, each with those of its entries that can be.
    pub(super) fn readable(&self) -> Vec<RunRecord> {
        let last = highest::<RunRow>(&self.connection).unwrap_or(i64::MAX).min(most(&self.connection));
        (1..=last).rev().filter_map(|id| self.run_record(RunId(id)).ok().flatten()).collect()
    }

    /// The entries of a run by their numbers alone, those left out that can't be read.
    pub(super) fn readable_entries(&self, run: RunId) -> Vec<EntryRow> {
        let last = highest::<EntryRow>(&self.connection).unwrap_or(i64::MAX).min(most(&self.connection));
        let entries = (1..=last).filter_map(|id| EntryRow::find(&self.connection, id).ok().flatten());
        entries.filter(|entry| entry.run == run.0).collect()
    }
}
