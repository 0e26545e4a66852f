//! What the journal tells of a run.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, params, types::Type};
use serde::{Deserialize, Serialize};

use super::{EntryId, Journal};
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
    /// What became of it.
    pub state: RunState,
    /// What it changed, in that order.
    pub entries: Vec<Entry>,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// In force, and nobody said that it shall stay.
    Open,
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
    /// The address of a setting, or the path of a file.
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
}

impl EntryKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::File => "file",
        }
    }
}

impl EntryState {
    const ALL: [Self; 4] = [Self::Intended, Self::Written, Self::Undone, Self::Gone];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Written => "written",
            Self::Undone => "undone",
            Self::Gone => "gone",
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
        let mut entries = self.connection.prepare_cached(
            "SELECT id, kind, place, before, intended, read_back, mode, persisted, state \
             FROM entries WHERE run = ?1 ORDER BY id",
        )?;
        let entries = entries.query_map(params![run.0], entry)?.collect::<rusqlite::Result<Vec<_>>>()?;
        let query = "SELECT started, command, host, boot, namespace, kept FROM runs WHERE id = ?1";
        let row = |row: &Row<'_>| {
            let outstanding = entries.iter().any(|entry| entry.state.is_outstanding());
            let state = match (outstanding, row.get("kept")?) {
                (false, _) => RunState::Undone,
                (true, true) => RunState::Kept,
                (true, false) => RunState::Open,
            };
            let started: String = row.get("started")?;
            Ok(RunRecord {
                id: run,
                started: started
                    .parse()
                    .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?,
                command: row.get("command")?,
                host: row.get("host")?,
                identity: Identity { boot: row.get("boot")?, namespace: row.get("namespace")? },
                state,
                entries: entries.clone(),
            })
        };
        self.connection.query_row(query, params![run.0], row).optional()
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let kind: String = row.get("kind")?;
    let state: String = row.get("state")?;
    let strange = |what: &str| {
        let text = format!("`{what}` is no word of this journal's layout");
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, text.into())
    };
    Ok(Entry {
        id: EntryId(row.get("id")?),
        kind: [EntryKind::Setting, EntryKind::File]
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| strange(&kind))?,
        place: row.get("place")?,
        before: row.get("before")?,
        intended: row.get("intended")?,
        read_back: row.get("read_back")?,
        mode: row.get("mode")?,
        persisted: row.get("persisted")?,
        state: EntryState::ALL.into_iter().find(|known| known.name() == state).ok_or_else(|| strange(&state))?,
    })
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn text<S: serde::Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    Entry::text(bytes.as_ref()).serialize(serializer)
}
