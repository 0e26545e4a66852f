//! Windows: the table of connections with their processes, and the statistics of each (ESTATS, RFC 4898), which
//! `fullpipe_host::windows::connections` asks for.
//!
//! A connection's statistics are off until an administrator switches them on. So that is done for the first
//! [`MOST_KEPT`] connections, and undone when watching ends; without the right to, the table alone is shown, with those that
//! something else keeps. Nothing here was run on a real Windows; Wine has the table, and no statistics.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use fullpipe_host::windows::connections::{Connection, Counters, Statistics, StatisticsError, Watched};

use crate::{
    owner::Owner,
    source::{Each, Source},
    table::Owners,
    table_row::TableRow,
    watcher::WatchError,
    wire::SocketId,
};

/// Connections whose statistics are kept: each takes six calls to switch them on, and six for each look.
const MOST_KEPT: usize = 512;

/// The running system.
#[cfg(windows)]
pub(crate) fn open() -> Result<fullpipe_host::windows::connections::SystemStatistics, WatchError> {
    fullpipe_host::windows::connections::SystemStatistics::new().map_err(failed)
}

/// Whether a connection has statistics.
enum Kept {
    Yes(Box<Counters>),
    No,
    Gone,
}

/// The running system, or a test's.
pub(crate) struct Windows<S: Statistics> {
    watched: Watched<S>,
    connections: HashMap<u64, Connection>,
    cookies: HashMap<Connection, u64>,
    /// The number that the next connection gets: Windows has none.
    next: u64,
    /// Connections whose statistics are kept.
    kept: HashSet<u64>,
    /// Those of which they can't be had.
    refused: HashSet<u64>,
    /// Why not.
    lacks: Option<StatisticsError>,
    owners: HashMap<u64, Owner>,
}

impl<S: Statistics> Windows<S> {
    pub(crate) fn new(system: S) -> Self {
        Self {
            watched: Watched::new(system),
            connections: HashMap::new(),
            cookies: HashMap::new(),
            next: 1,
            kept: HashSet::new(),
            refused: HashSet::new(),
            lacks: None,
            owners: HashMap::new(),
        }
    }

    /// Numbers the connections of a table, and forgets those that are gone.
    fn number(&mut self, table: &[Connection]) {
        let there: HashSet<Connection> = table.iter().copied().collect();
        self.cookies.retain(|connection, _| there.contains(connection));
        for &connection in table {
            self.cookies.entry(connection).or_insert_with(|| {
                self.next += 1;
                self.next
            });
        }
        self.connections = self.cookies.iter().map(|(connection, cookie)| (*cookie, *connection)).collect();
        self.kept.retain(|cookie| self.connections.contains_key(cookie));
        self.refused.retain(|cookie| self.connections.contains_key(cookie));
        self.watched.keep(|connection| there.contains(connection));
    }

    /// The statistics of a connection, switched on where they are off.
    fn counters(&mut self, cookie: u64, connection: &Connection) -> Kept {
        let is_hopeless = matches!(self.lacks, Some(StatisticsError::Missing { .. }));
        let asked = if self.kept.contains(&cookie) {
            self.watched.system().counters(connection)
        } else if is_hopeless || self.refused.contains(&cookie) || self.kept.len() >= MOST_KEPT {
            return Kept::No;
        } else {
            self.watched.begin(connection)
        };
        match asked {
            Ok(counters) => {
                self.kept.insert(cookie);
                Kept::Yes(Box::new(counters))
            }
            Err(StatisticsError::Gone) => Kept::Gone,
            Err(error) => {
                self.kept.remove(&cookie);
                self.refused.insert(cookie);
                self.lacks = Some(error);
                Kept::No
            }
        }
    }

    /// A look at one; `None` where it ended meanwhile.
    fn look(&mut self, cookie: u64, connection: &Connection) -> Option<TableRow> {
        let id = SocketId {
            is_v6: connection.local.is_ipv6(),
            local: connection.local,
            peer: connection.remote,
            interface: 0,
            cookie,
        };
        let mut row = TableRow::new(id, connection.pid.into());
        match self.counters(cookie, connection) {
            Kept::Yes(counters) => add(&mut row, &counters),
            Kept::No => {}
            Kept::Gone => return None,
        }
        Some(row)
    }
}

/// What the statistics tell.
fn add(row: &mut TableRow, counters: &Counters) {
    let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    row.info = counters.info();
    row.unread = narrow(counters.receive.cur_app_r_queue as u64);
    let waits = [row.info.in_flight, row.info.not_sent].into_iter().flatten().map(fullpipe_units::Bytes::get);
    row.waiting = narrow(waits.fold(0, u64::saturating_add));
    row.segments = [counters.data.data_segs_out, row.info.retransmits.unwrap_or(0)];
}

fn failed(error: StatisticsError) -> WatchError {
    match error {
        StatisticsError::System { call, source } => WatchError::System { operation: call, source },
        other => {
            WatchError::System { operation: "asking Windows for its TCP connections", source: io::Error::other(other) }
        }
    }
}

impl<S: Statistics> Owners for Windows<S> {
    fn find(&mut self, handles: &mut dyn Iterator<Item = u64>) {
        for handle in handles {
            // A handle is the process's number; what is closing has none.
            let Some(pid) = u32::try_from(handle).ok().filter(|&pid| pid != 0) else { continue };
            let system = self.watched.system();
            self.owners.entry(handle).or_insert_with(|| {
                let process = system.program(pid).unwrap_or_default();
                Owner { process, pid, ..Owner::default() }
            });
        }
    }

    fn owner(&self, handle: u64) -> Option<&Owner> {
        self.owners.get(&handle)
    }
}

impl<S: Statistics + Send> Source for Windows<S> {
    fn all(&mut self, each: Each<'_>) -> Result<(), WatchError> {
        let table = self.watched.system().connections().map_err(failed)?;
        self.number(&table);
        for connection in &table {
            let Some(&cookie) = self.cookies.get(connection) else { continue };
            if let Some(row) = self.look(cookie, connection) {
                each(&row);
            }
        }
        Ok(())
    }

    fn these(&mut self, ids: &[SocketId], each: Each<'_>) -> Result<Vec<u64>, WatchError> {
        let mut gone = Vec::new();
        for id in ids {
            let connection = self.connections.get(&id.cookie).copied();
            match connection.and_then(|connection| self.look(id.cookie, &connection)) {
                Some(row) => each(&row),
                None => gone.push(id.cookie),
            }
        }
        Ok(gone)
    }

    fn queue_setting(&self) -> &'static str {
        "the largest queue of listeners"
    }

    fn keep(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.owners.retain(|handle, _| is_there(*handle));
    }

    fn hides_owners(&self) -> bool {
        self.owners.values().any(|owner| owner.process.is_empty())
    }

    fn missing(&self) -> Vec<String> {
        let figures = "rates, round trips, windows and verdicts";
        let mut missing = Vec::new();
        match &self.lacks {
            Some(StatisticsError::Denied) => missing.push(format!(
                "{figures} of {} connections: switching their statistics (ESTATS) on takes an elevated prompt (\"Run as \
                 administrator\")",
                self.refused.len()
            )),
            Some(error @ StatisticsError::Missing { .. }) => missing.push(format!("{figures}: {error}")),
            Some(error) if !self.refused.is_empty() => {
                missing.push(format!("{figures} of {} connections: {error}", self.refused.len()));
            }
            _ => {}
        }
        let beyond = self.connections.len().saturating_sub(self.kept.len() + self.refused.len());
        if self.kept.len() >= MOST_KEPT && beyond > 0 {
            missing
                .push(format!("{figures} of {beyond} connections: the statistics of the first {MOST_KEPT} are kept"));
        }
        if self.hides_owners() {
            missing.push("names of some processes: run as an administrator".to_owned());
        }
        missing
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks =
            vec!["untested on Windows: read as Microsoft documents it, and run on no real Windows so far".to_owned()];
        match self.watched.switched() {
            0 => {}
            count => remarks.push(format!(
                "the statistics (ESTATS) of {count} connections were off: they are on for this watch, and switched off when it \
                 ends"
            )),
        }
        remarks
    }
}

#[cfg(test)]
mod tests;
