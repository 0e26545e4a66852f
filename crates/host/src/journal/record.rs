//! What the journal tells of a run.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use rusqlite::{params, types::Type};
use serde::{Deserialize, Serialize};

use super::{
    EntryId, Journal,
    row::{EntryRow, RunRow, Stored},
};
use crate::Identity;

/// The number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub i64);

/// One run: a command that changed settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Its number.
    pub id: RunId,
    /// When it began.
    pub started: Timestamp,
    /// The command, for people.
    pub command: String,
    /// The name of the end that it changed, where it has one.
    pub host: Option<String>,
    /// The system that it changed.
    pub identity: Identity,
    /// The process that made it.
    pub pid: u32,
    /// What became of it.
    pub state: RunState,
    /// On what terms it is on trial, where it is or was.
    pub trial: Option<Trial>,
    /// What is written into boot-time files once it is confirmed.
    #[serde(skip)]
    pub(crate) pending: Option<String>,
    /// What it changed, in that order.
    pub entries: Vec<Entry>,
}

impl RunRecord {
    /// Whether it was one of those that a tune makes in turn to measure with and without it, and takes back; a run that a tune
    /// kept looks the same once it is undone.
    pub fn is_round(&self) -> bool {
        let of_a_tune = self.command == "serve" || self.command.starts_with("tune ");
        of_a_tune && self.state == RunState::Undone
    }
}

/// On what terms a run is in force until it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Whose guardian takes it back (see [`crate::guardian`]).
    pub owner: String,
    /// Until when, in milliseconds since the start of the machine; without, until its owner ends.
    pub deadline_ms: Option<i64>,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// In force, and nobody said that it shall stay.
    Open,
    /// In force until it is confirmed, or taken back by its guardian.
    OnTrial,
    /// In force and to stay.
    Kept,
    /// Nothing of it is left.
    Undone,
}

/// One change of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    #[serde(skip)]
    pub(crate) id: EntryId,
    /// What kind of place it is.
    pub kind: EntryKind,
    /// The address of a setting, the path of a file, a far run, a program or a socket.
    pub place: String,
    /// What was there; `None` where it was absent.
    #[serde(serialize_with = "text")]
    pub before: Option<Vec<u8>>,
    /// What was to be there.
    #[serde(serialize_with = "text")]
    pub intended: Option<Vec<u8>>,
    /// What was read back; meaningful once written.
    #[serde(serialize_with = "text")]
    pub read_back: Option<Vec<u8>>,
    /// The permission bits of a file that was there.
    pub mode: Option<u32>,
    /// The value lasts beyond a restart.
    pub persisted: bool,
    /// How far it got.
    pub state: EntryState,
}

/// What kind of place an entry tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A setting of the running system.
    Setting,
    /// A file that is read at boot.
    File,
    /// A run in the journal of a far host (see [`super::FarRun`]), with all that it changed.
    FarRun,
    /// What is in force as long as a process runs (see [`crate::Program`]).
    Program,
    /// The buffers of another process's socket (see [`crate::HeldSocket`]).
    Socket,
}

/// How far a change got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// Recorded; the write may or may not have happened.
    Intended,
    /// Written and read back.
    Written,
    /// Taken back.
    Undone,
    /// Gone by itself: the machine was started again, or the device or namespace no longer exists.
    Gone,
    /// Left to whoever changed it since.
    Left,
}

impl EntryKind {
    const ALL: [Self; 5] = [Self::Setting, Self::File, Self::FarRun, Self::Program, Self::Socket];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::File => "file",
            Self::FarRun => "far_run",
            Self::Program => "program",
            Self::Socket => "socket",
        }
    }
}

impl EntryState {
    const ALL: [Self; 5] = [Self::Intended, Self::Written, Self::Undone, Self::Gone, Self::Left];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Written => "written",
            Self::Undone => "undone",
            Self::Gone => "gone",
            Self::Left => "left",
        }
    }

    /// True while an undo has something to do.
    pub fn is_outstanding(self) -> bool {
        matches!(self, Self::Intended | Self::Written)
    }
}

impl Entry {
    /// A value as text.
    pub(crate) fn text(bytes: Option<&Vec<u8>>) -> Option<String> {
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Journal {
    pub(super) fn run_record(&self, run: RunId) -> rusqlite::Result<Option<RunRecord>> {
        let Some(row) = RunRow::find(&self.connection, run.0)? else { return Ok(None) };
        let rows = if self.damage.is_empty() {
            let mut statement = self.connection.prepare_cached("SELECT * FROM entries WHERE run = ?1 ORDER BY id")?;
            statement.query_map(params![run.0], EntryRow::checked)?.collect::<rusqlite::Result<Vec<_>>>()?
        } else {
            self.readable_entries(run)
        };
        let entries = rows.into_iter().map(entry).collect::<rusqlite::Result<Vec<_>>>()?;
        let outstanding = entries.iter().any(|entry| entry.state.is_outstanding());
        let state = match (outstanding, row.kept, &row.owner) {
            (false, ..) => RunState::Undone,
            (true, true, _) => RunState::Kept,
            (true, false, Some(_)) => RunState::OnTrial,
            (true, false, None) => RunState::Open,
        };
        let trial = row.owner.map(|owner| Trial { owner, deadline_ms: row.deadline });
        Ok(Some(RunRecord {
            id: run,
            started: row
                .started
                .parse()
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?,
            command: row.command,
            host: row.host,
            identity: Identity { boot: row.boot, namespace: row.namespace },
            pid: row.pid,
            state,
            trial,
            pending: row.pending,
            entries,
        }))
    }
}

fn entry(row: EntryRow) -> rusqlite::Result<Entry> {
    let strange = |what: &str| {
        let text = format!("`{what}` is no word of this journal's layout");
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, text.into())
    };
    Ok(Entry {
        id: EntryId(row.id),
        kind: EntryKind::ALL.into_iter().find(|known| known.name() == row.kind).ok_or_else(|| strange(&row.kind))?,
        state: EntryState::ALL
            .into_iter()
            .find(|known| known.name() == row.state)
            .ok_or_else(|| strange(&row.state))?,
        place: row.place,
        before: row.before,
        intended: row.intended,
        read_back: row.read_back,
        mode: row.mode,
        persisted: row.persisted,
    })
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn text<S: serde::Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    Entry::text(bytes.as_ref()).serialize(serializer)
}
