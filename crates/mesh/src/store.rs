//! Earlier runs, in an SQLite file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use fullpipe_diagnose::Limiter;
use fullpipe_units::{Micros, Rate};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{Cell, Hosts, MeshError};

/// The layout that this version writes (`PRAGMA user_version`).
const LAYOUT: i64 = 1;

const TABLES: &str = "
CREATE TABLE runs (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    mesh    TEXT NOT NULL,               -- the name in the file of hosts
    started TEXT NOT NULL                -- RFC 3339, UTC
);
CREATE TABLE directions (
    run      INTEGER NOT NULL REFERENCES runs (id),
    sender   TEXT NOT NULL,
    receiver TEXT NOT NULL,
    rate_bps INTEGER,                    -- NULL: it could not be measured
    rtt_us   INTEGER,
    limiter  TEXT,
    error    TEXT,
    PRIMARY KEY (run, sender, receiver)
) WITHOUT ROWID;
CREATE INDEX runs_of_mesh ON runs (mesh, id);
";

/// How long another command that writes is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// How many earlier runs a direction is held against.
const RUNS: i64 = 10;

/// The store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A run that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRun {
    /// Its number.
    pub number: i64,
    /// When it began (RFC 3339, UTC).
    pub started: String,
    /// What it found.
    pub cells: Vec<EarlierCell>,
}

/// A direction of a run that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierCell {
    /// Who sent.
    pub from: String,
    /// Who received.
    pub to: String,
    /// Payload rate; `None`: it could not be measured.
    pub rate: Option<Rate>,
    /// Round-trip time without load.
    pub rtt: Option<Micros>,
    /// What limited it, as the JSON spells it.
    pub limiter: Option<String>,
    /// Why it could not be measured.
    pub error: Option<String>,
}

impl Store {
    /// Opens a store, and makes it where it is missing.
    ///
    /// # Errors
    /// Where it can't be read or written, or is something else.
    pub fn open(path: &Path) -> Result<Self, MeshError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|source| MeshError::Folder { path: path.to_owned(), source })?;
        }
        let failed = |source| MeshError::Store { operation: "opening", path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(WAIT).map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON; BEGIN IMMEDIATE;").map_err(failed)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
        match (found, tables) {
            (0, 0) => connection.execute_batch(&format!("{TABLES} PRAGMA user_version = {LAYOUT};")).map_err(failed)?,
            (LAYOUT, _) => {}
            _ => return Err(MeshError::Layout { path: path.to_owned(), found, known: LAYOUT }),
        }
        connection.execute_batch("COMMIT").map_err(failed)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    fn failed(&self, operation: &'static str) -> impl Fn(rusqlite::Error) -> MeshError {
        move |source| MeshError::Store { operation, path: self.path.clone(), source }
    }

    /// Keeps a run, all of it or nothing, and gives its number.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn keep(&mut self, hosts: &Hosts, started: Timestamp, cells: &[Cell]) -> Result<i64, MeshError> {
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<i64> {
            let change = self.connection.transaction()?;
            change.execute(
                "INSERT INTO runs (mesh, started) VALUES (?1, ?2)",
                params![hosts.name, started.to_string()],
            )?;
            let run = change.last_insert_rowid();
            for cell in cells {
                let [from, to] = [cell.from, cell.to].map(|place| hosts.hosts[place].name.as_str());
                let found = cell.found.as_ref().ok();
                change.execute(
                    "INSERT INTO directions (run, sender, receiver, rate_bps, rtt_us, limiter, error) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![
                        run,
                        from,
                        to,
                        found.map(|found| stored(found.rate.bps())),
                        found.and_then(|found| found.rtt).map(|rtt| stored(rtt.get())),
                        found.and_then(|found| word(found.limiter)),
                        cell.found.as_ref().err(),
                    ],
                )?;
            }
            change.commit()?;
            Ok(run)
        };
        write().map_err(|source| MeshError::Store { operation: "writing", path, source })
    }

    /// The rates of the last runs of a mesh, by sender and receiver, newest first; ten of each direction at most.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn rates(&self, mesh: &str) -> Result<BTreeMap<(String, String), Vec<Rate>>, MeshError> {
        let mut rates: BTreeMap<_, Vec<Rate>> = BTreeMap::new();
        for run in self.runs(mesh, RUNS)? {
            for cell in run.cells {
                rates.entry((cell.from, cell.to)).or_default().extend(cell.rate);
            }
        }
        Ok(rates)
    }

    /// The last runs of a mesh, newest first.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn runs(&self, mesh: &str, most: i64) -> Result<Vec<EarlierRun>, MeshError> {
        let read = || -> rusqlite::Result<Vec<EarlierRun>> {
            let mut runs =
                self.connection.prepare("SELECT id, started FROM runs WHERE mesh = ?1 ORDER BY id DESC LIMIT ?2")?;
            let mut cells = self.connection.prepare(
                "SELECT sender, receiver, rate_bps, rtt_us, limiter, error FROM directions WHERE run = ?1 \
                 ORDER BY sender, receiver",
            )?;
            let mut found = Vec::new();
            let rows =
                runs.query_map(params![mesh, most], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            for row in rows {
                let (number, started) = row?;
                let cells = cells.query_map([number], |row| {
                    let number =
                        |at: usize| row.get::<_, Option<i64>>(at).map(|n| n.and_then(|n| u64::try_from(n).ok()));
                    Ok(EarlierCell {
                        from: row.get(0)?,
                        to: row.get(1)?,
                        rate: number(2)?.map(Rate::from_bps),
                        rtt: number(3)?.map(Micros::new),
                        limiter: row.get(4)?,
                        error: row.get(5)?,
                    })
                })?;
                found.push(EarlierRun { number, started, cells: cells.collect::<rusqlite::Result<_>>()? });
            }
            Ok(found)
        };
        read().map_err(self.failed("reading"))
    }
}

/// SQLite's integers have a sign.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limiter as the JSON spells it.
fn word(limiter: Limiter) -> Option<String> {
    serde_json::to_value(limiter).ok()?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Found;

    fn hosts(name: &str) -> Hosts {
        format!("name = '{name}'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n").parse().unwrap()
    }

    fn cells(mbps: u64) -> Vec<Cell> {
        let found = Found {
            rate: Rate::from_bps(mbps * 1_000_000),
            rtt: Some(Micros::new(80_000)),
            limiter: Limiter::SendBuffer,
        };
        vec![Cell { from: 0, to: 1, found: Ok(found) }, Cell { from: 1, to: 0, found: Err("refused".to_owned()) }]
    }

    #[test]
    fn what_was_kept_is_read_by_whoever_opens_the_store_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/mesh.sqlite");
        let started: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        for mbps in [100, 200] {
            Store::open(&path).unwrap().keep(&hosts("x"), started, &cells(mbps)).unwrap();
        }
        let mut store = Store::open(&path).unwrap();
        store.keep(&hosts("other"), started, &cells(7)).unwrap();
        let runs = store.runs("x", 5).unwrap();
        assert_eq!(runs.iter().map(|run| run.number).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((runs[0].started.as_str(), runs[0].cells.len()), ("2026-01-02T03:04:05Z", 2));
        assert_eq!(runs[0].cells[0].limiter.as_deref(), Some("send_buffer"));
        assert_eq!((runs[0].cells[1].rate, runs[0].cells[1].error.as_deref()), (None, Some("refused")));
        assert_eq!(store.runs("x", 1).unwrap().len(), 1);
        let rates = store.rates("x").unwrap();
        let of = |from: &str, to: &str| {
            rates[&(from.to_owned(), to.to_owned())].iter().map(|rate| rate.bps() / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!((of("a", "b"), of("b", "a")), (vec![200, 100], vec![]));
    }

    #[test]
    fn another_database_or_a_later_layout_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other.sqlite");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
        assert!(matches!(Store::open(&other), Err(MeshError::Layout { found: 0, .. })));
        let later = folder.path().join("later.sqlite");
        Connection::open(&later).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
        assert!(matches!(Store::open(&later), Err(MeshError::Layout { found: 2, .. })));
        let text = folder.path().join("text");
        fs::write(&text, "no database, but a text that is long enough to have a header of its own.\n".repeat(20))
            .unwrap();
        let error = Store::open(&text).err().unwrap();
        assert_eq!(error.fault(), crate::Fault::Input);
        let error = error.to_string();
        assert!(
            error.starts_with("opening ") && error.contains("not a database") && error.contains("--no-store"),
            "{error}"
        );
        let message = Store::open(Path::new("/dev/null/mesh.sqlite")).err().unwrap().to_string();
        assert!(message.starts_with("making the folder"), "{message}");
    }
}
