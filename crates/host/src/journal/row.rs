//! The rows of the journal as they are stored, each with a checksum over all of it.
//!
//! SQLite sees a torn page and not a flipped bit. A row whose checksum is another one is damage, and nothing of it is
//! believed. What is *not* here: what a row means (`record`), and which rows ought to be there (`damage`).

use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

/// A row of `runs`.
#[derive(Clone, Debug)]
pub(super) struct RunRow {
    pub(super) id: i64,
    pub(super) started: String,
    pub(super) command: String,
    pub(super) host: Option<String>,
    pub(super) boot: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) pid: u32,
    pub(super) kept: bool,
    pub(super) owner: Option<String>,
    pub(super) deadline: Option<i64>,
    pub(super) pending: Option<String>,
}

/// A row of `entries`.
#[derive(Clone, Debug)]
pub(super) struct EntryRow {
    pub(super) id: i64,
    pub(super) run: i64,
    pub(super) kind: String,
    pub(super) place: String,
    pub(super) before: Option<Vec<u8>>,
    pub(super) intended: Option<Vec<u8>>,
    pub(super) read_back: Option<Vec<u8>>,
    pub(super) mode: Option<u32>,
    pub(super) persisted: bool,
    pub(super) state: String,
}

/// The rows of one table.
pub(super) trait Stored: Sized {
    const TABLE: &'static str;
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
    fn sum(&self) -> String;
    fn insert(&self, connection: &Connection) -> rusqlite::Result<i64>;
    fn update(&self, connection: &Connection) -> rusqlite::Result<()>;

    /// The row with this number, if it is there.
    fn find(connection: &Connection, id: i64) -> rusqlite::Result<Option<Self>> {
        let query = format!("SELECT * FROM {} WHERE id = ?1", Self::TABLE);
        connection.prepare_cached(&query)?.query_row(params![id], Self::checked).optional()
    }

    /// The row, where its checksum is right.
    fn checked(row: &Row<'_>) -> rusqlite::Result<Self> {
        let read = Self::read(row)?;
        let sum: String = row.get("sum")?;
        if sum == read.sum() {
            return Ok(read);
        }
        let text = format!("the checksum of row {} of {} is wrong", row.get::<_, i64>("id")?, Self::TABLE);
        Err(rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, text.into()))
    }
}

/// Changes a row and its checksum in one step. False where there is none.
pub(super) fn change<R: Stored>(connection: &Connection, id: i64, edit: impl FnOnce(&mut R)) -> rusqlite::Result<bool> {
    let Some(mut row) = R::find(connection, id)? else { return Ok(false) };
    edit(&mut row);
    row.update(connection)?;
    Ok(true)
}

/// Gives every row the checksum of what it holds.
pub(super) fn sum_all(connection: &Connection) -> rusqlite::Result<()> {
    fn all<R: Stored>(connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {}", R::TABLE))?;
        let rows = statement.query_map([], R::read)?.collect::<rusqlite::Result<Vec<_>>>()?;
        rows.iter().try_for_each(|row| row.update(connection))
    }
    all::<RunRow>(connection)?;
    all::<EntryRow>(connection)
}

impl Stored for RunRow {
    const TABLE: &'static str = "runs";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            started: row.get("started")?,
            command: row.get("command")?,
            host: row.get("host")?,
            boot: row.get("boot")?,
            namespace: row.get("namespace")?,
            pid: row.get("pid")?,
            kept: row.get("kept")?,
            owner: row.get("owner")?,
            deadline: row.get("deadline")?,
            pending: row.get("pending")?,
        })
    }

    fn sum(&self) -> String {
        let mut sum = Sum::new(Self::TABLE, self.id);
        sum.text(Some(&self.started));
        sum.text(Some(&self.command));
        for text in [&self.host, &self.boot, &self.namespace] {
            sum.text(text.as_deref());
        }
        sum.number(Some(i64::from(self.pid)));
        sum.number(Some(i64::from(self.kept)));
        sum.text(self.owner.as_deref());
        sum.number(self.deadline);
        sum.text(self.pending.as_deref());
        sum.finish()
    }

    fn insert(&self, connection: &Connection) -> rusqlite::Result<i64> {
        connection.execute(
            "INSERT INTO runs (id, started, command, host, boot, namespace, pid, kept, owner, deadline, pending, sum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                self.id,
                self.started,
                self.command,
                self.host,
                self.boot,
                self.namespace,
                self.pid,
                self.kept,
                self.owner,
                self.deadline,
                self.pending,
                self.sum()
            ],
        )?;
        Ok(self.id)
    }

    fn update(&self, connection: &Connection) -> rusqlite::Result<()> {
        let query = "UPDATE runs SET kept = ?2, owner = ?3, deadline = ?4, pending = ?5, sum = ?6 WHERE id = ?1";
        let values = params![self.id, self.kept, self.owner, self.deadline, self.pending, self.sum()];
        connection.execute(query, values).map(drop)
    }
}

impl Stored for EntryRow {
    const TABLE: &'static str = "entries";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            run: row.get("run")?,
            kind: row.get("kind")?,
            place: row.get("place")?,
            before: row.get("before")?,
            intended: row.get("intended")?,
            read_back: row.get("read_back")?,
            mode: row.get("mode")?,
            persisted: row.get("persisted")?,
            state: row.get("state")?,
        })
    }

    fn sum(&self) -> String {
        let mut sum = Sum::new(Self::TABLE, self.id);
        sum.number(Some(self.run));
        sum.text(Some(&self.kind));
        sum.text(Some(&self.place));
        for bytes in [&self.before, &self.intended, &self.read_back] {
            sum.bytes(bytes.as_deref());
        }
        sum.number(self.mode.map(i64::from));
        sum.number(Some(i64::from(self.persisted)));
        sum.text(Some(&self.state));
        sum.finish()
    }

    fn insert(&self, connection: &Connection) -> rusqlite::Result<i64> {
        connection.execute(
            "INSERT INTO entries (id, run, kind, place, before, intended, read_back, mode, persisted, state, sum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                self.id,
                self.run,
                self.kind,
                self.place,
                self.before,
                self.intended,
                self.read_back,
                self.mode,
                self.persisted,
                self.state,
                self.sum()
            ],
        )?;
        Ok(self.id)
    }

    fn update(&self, connection: &Connection) -> rusqlite::Result<()> {
        let query = "UPDATE entries SET read_back = ?2, state = ?3, persisted = ?4, sum = ?5 WHERE id = ?1";
        connection.execute(query, params![self.id, self.read_back, self.state, self.persisted, self.sum()]).map(drop)
    }
}

/// The number of the next row of a table: one more than any that there was (`AUTOINCREMENT`).
pub(super) fn next<R: Stored>(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(last::<R>(connection)?.saturating_add(1))
}

/// The highest number that a row of this table ever had.
pub(super) fn last<R: Stored>(connection: &Connection) -> rusqlite::Result<i64> {
    let query = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    Ok(connection.query_row(query, params![R::TABLE], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// SHA-256 over fields that each say how long they are, so that no two rows are one text.
struct Sum(Sha256);

impl Sum {
    fn new(table: &str, id: i64) -> Self {
        let mut sum = Self(Sha256::new());
        sum.text(Some(table));
        sum.number(Some(id));
        sum
    }

    fn bytes(&mut self, bytes: Option<&[u8]>) {
        // Absent and empty differ.
        let length = bytes.map_or(u64::MAX, |bytes| bytes.len() as u64);
        self.0.update(length.to_be_bytes());
        self.0.update(bytes.unwrap_or_default());
    }

    fn text(&mut self, text: Option<&str>) {
        self.bytes(text.map(str::as_bytes));
    }

    fn number(&mut self, number: Option<i64>) {
        self.bytes(number.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
    }

    fn finish(self) -> String {
        // Half of it is far more than chance takes.
        self.0.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
