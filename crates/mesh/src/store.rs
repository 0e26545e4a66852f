//! Earlier runs, in an SQLite file or a PostgreSQL database: one layout, and one set of queries.

#[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
mod postgres;
mod sqlite;
#[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
mod tls;

use std::{collections::BTreeMap, path::Path};

use fullpipe_diagnose::Limiter;
use fullpipe_units::{Micros, Rate};
use jiff::Timestamp;

use crate::{Cell, Hosts, MeshError, error::StoreError};

/// The layout that this version writes.
const LAYOUT: i64 = 1;

/// The tables, with `KEY` where the two databases spell a counted key differently.
const TABLES: &str = "
CREATE TABLE runs (
    id      KEY,
    mesh    TEXT NOT NULL,               -- the name in the file of hosts
    started TEXT NOT NULL                -- RFC 3339, UTC
);
CREATE TABLE directions (
    run      BIGINT NOT NULL REFERENCES runs (id),
    sender   TEXT NOT NULL,
    receiver TEXT NOT NULL,
    rate_bps BIGINT,                     -- NULL: it could not be measured
    rtt_us   BIGINT,
    limiter  TEXT,
    error    TEXT,                       -- with a rate: who could not measure it, so that the other end did
    PRIMARY KEY (run, sender, receiver)
);
CREATE INDEX runs_of_mesh ON runs (mesh, id);
";

/// How many earlier runs a direction is held against.
const RUNS: i64 = 10;

/// How many directions are written by one statement: a server is asked once for so many.
const ROWS: usize = 100;

/// The columns of a direction.
const COLUMNS: usize = 7;

/// The store.
pub struct Store {
    database: Box<dyn Database>,
}

/// What runs the queries.
trait Database {
    /// What it is called in messages.
    fn name(&self) -> String;

    fn begin(&mut self) -> Result<(), StoreError>;

    fn commit(&mut self) -> Result<(), StoreError>;

    fn roll_back(&mut self);

    /// The rows of a query, whose parameters are `$1`, `$2` ... in this order.
    fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError>;

    /// Makes the tables where nothing is; the number of the layout that is there.
    fn prepare(&mut self) -> Result<i64, StoreError>;

    /// Whether this user may keep a run.
    fn may_write(&mut self) -> Result<bool, StoreError>;
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Null,
    Whole(i64),
    Text(String),
}

type Row = Vec<Value>;

/// A run that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRun {
    /// Its number.
    pub number: i64,
    /// When it began (RFC 3339, UTC).
    pub started: String,
    /// What it found, by sender and receiver.
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
    /// Why it could not be measured; with a rate: who could not, so that the other end did.
    pub error: Option<String>,
}

impl Store {
    /// Opens a store, and makes it where it is missing: a file, or a database where `place` is a URL
    /// (`postgres://user@host:port/database`). A password that the URL leaves out is that of the variable `PGPASSWORD`.
    ///
    /// # Errors
    /// Where it can't be reached, read or written, or is something else.
    pub fn open(place: &Path) -> Result<Self, MeshError> {
        let database: Box<dyn Database> = match place.to_str().filter(|text| is_url(text)) {
            None => Box::new(sqlite::Sqlite::open(place)?),
            #[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
            Some(url) => Box::new(postgres::Postgres::new(url)?),
            #[cfg(not(all(feature = "postgres", not(target_vendor = "apple"))))]
            Some(_) => return Err(MeshError::NoPostgres),
        };
        let mut store = Self { database };
        let found = store.within("opening", |database| database.prepare())?;
        if found == LAYOUT {
            return Ok(store);
        }
        Err(MeshError::Layout { store: store.database.name(), found, known: LAYOUT })
    }

    /// Whether a run could be kept: a server may let somebody only read.
    ///
    /// # Errors
    /// Where it may not be written, or can't be reached any more.
    pub fn check_writable(&mut self) -> Result<(), MeshError> {
        if self.within("opening", |database| database.may_write())? {
            return Ok(());
        }
        Err(MeshError::ReadOnly { store: self.database.name() })
    }

    /// Keeps a run, all of it or nothing, and gives its number.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn keep(&mut self, hosts: &Hosts, started: Timestamp, cells: &[Cell]) -> Result<i64, MeshError> {
        let rows: Vec<[Value; COLUMNS - 1]> = cells.iter().map(|cell| columns(hosts, cell)).collect();
        self.within("writing", |database| {
            let values = [text(&hosts.name), Value::Text(started.to_string())];
            let made = database.rows("INSERT INTO runs (mesh, started) VALUES ($1, $2) RETURNING id", &values)?;
            let run = made.first().map_or(0, |row| whole(&row[0]).unwrap_or_default());
            for rows in rows.chunks(ROWS) {
                let values: Row =
                    rows.iter().flat_map(|row| [Value::Whole(run)].into_iter().chain(row.clone())).collect();
                database.rows(&insert(rows.len()), &values)?;
            }
            Ok(run)
        })
    }

    /// The rates of the last runs of a mesh, by sender and receiver, newest first; ten of each direction at most.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn rates(&mut self, mesh: &str) -> Result<BTreeMap<(String, String), Vec<Rate>>, MeshError> {
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
    pub fn runs(&mut self, mesh: &str, most: i64) -> Result<Vec<EarlierRun>, MeshError> {
        let rows = self.within("reading", |database| {
            database.rows(
                "SELECT id, started, sender, receiver, rate_bps, rtt_us, limiter, error FROM runs \
                 LEFT JOIN directions ON run = id \
                 WHERE id IN (SELECT id FROM runs WHERE mesh = $1 ORDER BY id DESC LIMIT $2)",
                &[text(mesh), Value::Whole(most)],
            )
        })?;
        let mut runs: BTreeMap<i64, EarlierRun> = BTreeMap::new();
        for mut row in rows {
            let mut next = || row.drain(..1).next().unwrap_or(Value::Null);
            let number = whole(&next()).unwrap_or_default();
            let started = string(next()).unwrap_or_default();
            let run = runs.entry(number).or_insert(EarlierRun { number, started, cells: Vec::new() });
            // A run in which nothing was measured has one row, of nothing.
            let [Some(from), Some(to)] = [next(), next()].map(string) else { continue };
            let [rate, rtt] = [next(), next()].map(|figure| whole(&figure).and_then(|n| u64::try_from(n).ok()));
            let [limiter, error] = [next(), next()].map(string);
            let (rate, rtt) = (rate.map(Rate::from_bps), rtt.map(Micros::new));
            run.cells.push(EarlierCell { from, to, rate, rtt, limiter, error });
        }
        let mut runs: Vec<EarlierRun> = runs.into_values().rev().collect();
        // Not by the database, whose order of names depends on its locale.
        runs.iter_mut().for_each(|run| run.cells.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
        Ok(runs)
    }

    /// One transaction: all that `work` does or nothing of it.
    fn within<T>(
        &mut self,
        operation: &'static str,
        work: impl FnOnce(&mut dyn Database) -> Result<T, StoreError>,
    ) -> Result<T, MeshError> {
        let database = self.database.as_mut();
        let done = database.begin().and_then(|()| work(database)).and_then(|done| database.commit().map(|()| done));
        done.map_err(|source| {
            self.database.roll_back();
            MeshError::Store { operation, store: self.database.name(), source }
        })
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// Writes so many directions.
fn insert(rows: usize) -> String {
    let row = |row: usize| {
        let values: Vec<String> = (1..=COLUMNS).map(|column| format!("${}", row * COLUMNS + column)).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!(
        "INSERT INTO directions (run, sender, receiver, rate_bps, rtt_us, limiter, error) VALUES {}",
        rows.join(", ")
    )
}

/// The columns of a direction behind `run`.
fn columns(hosts: &Hosts, cell: &Cell) -> [Value; COLUMNS - 1] {
    let [from, to] = [cell.from, cell.to].map(|place| text(&hosts.hosts[place].name));
    let found = cell.found.as_ref().ok();
    let error = cell.found.as_ref().err().cloned().or_else(|| hosts.one_sided(cell));
    // Their integers have a sign.
    let figure =
        |number: Option<u64>| number.map_or(Value::Null, |n| Value::Whole(i64::try_from(n).unwrap_or(i64::MAX)));
    [
        from,
        to,
        figure(found.map(|found| found.rate.bps())),
        figure(found.and_then(|found| found.rtt).map(Micros::get)),
        found.and_then(|found| word(found.limiter)).map_or(Value::Null, Value::Text),
        error.map_or(Value::Null, |why| text(&why)),
    ]
}

/// PostgreSQL's text has no zero bytes, and what a host printed may.
fn text(text: &str) -> Value {
    Value::Text(text.replace('\0', "\u{fffd}"))
}

fn string(value: Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn whole(value: &Value) -> Option<i64> {
    if let Value::Whole(number) = value { Some(*number) } else { None }
}

/// A limiter as the JSON spells it.
fn word(limiter: Limiter) -> Option<String> {
    serde_json::to_value(limiter).ok()?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

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
        vec![
            Cell { from: 0, to: 1, found: Ok(found), unable: None },
            Cell { from: 1, to: 0, found: Err("refused".to_owned()), unable: None },
        ]
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
    fn a_direction_that_one_end_alone_measured_says_so_beside_its_rate() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("mesh.sqlite")).unwrap();
        let unable = crate::Unable { host: 0, why: "no route".to_owned() };
        let cells: Vec<Cell> = cells(9).into_iter().map(|cell| Cell { unable: Some(unable.clone()), ..cell }).collect();
        store.keep(&hosts("x"), Timestamp::UNIX_EPOCH, &cells).unwrap();
        let kept = &store.runs("x", 1).unwrap()[0].cells;
        let said = "a can't measure to b, so b measured both directions: no route";
        assert_eq!((kept[0].rate.is_some(), kept[0].error.as_deref()), (true, Some(said)));
        assert_eq!((kept[1].rate, kept[1].error.as_deref()), (None, Some("refused")));
    }

    #[test]
    fn a_run_in_which_nothing_was_measured_is_one_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("mesh.sqlite")).unwrap();
        store.keep(&hosts("x"), Timestamp::UNIX_EPOCH, &[]).unwrap();
        let runs = store.runs("x", 5).unwrap();
        assert_eq!(runs.iter().map(|run| (run.number, run.cells.len())).collect::<Vec<_>>(), [(1, 0)]);
        assert!(store.rates("x").unwrap().is_empty());
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
