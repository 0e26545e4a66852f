//! Which TCP connections there are, and whether an application pinned their buffers, as Windows' own statistics of a
//! connection tell it (ESTATS, RFC 4898; since Vista).
//!
//! No call of Windows tells another program's SO_RCVBUF or SO_SNDBUF. What tells of it is how the connection acts:
//! [`judge`](Seen::judge) has the rules. The statistics of a connection are off until an administrator switches them on
//! for it, so [`observe`] does that where it is asked to wait, and switches off again what it switched on.
//!
//! This program's own connections under test tell of themselves (SIO_TCP_INFO); where Windows is older than that, [`info`] asks
//! here. The structures and
//! the calls follow Microsoft's documents; they were not run on a real Windows. Wine has no such statistics, and says so.

mod judge;
mod layout;
mod own;
#[cfg(windows)]
mod system;
#[cfg(any(windows, test))]
mod table;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    io,
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

pub use judge::{End, Seen, Verdict};
pub use layout::{Counters, DataRod, Group, ObsRecRod, PathRod, RecRod, SendBuffRod, SndCongRod};
pub use own::info;
#[cfg(windows)]
pub use own::lend;
#[cfg(windows)]
pub use system::SystemStatistics;

/// One established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The address and port of this host.
    pub local: SocketAddr,
    /// Those of the other.
    pub remote: SocketAddr,
    /// The process that it belongs to.
    pub pid: u32,
}

/// Whether the statistics of a connection are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// They are.
    On,
    /// They aren't.
    Off,
}

/// Why a connection's statistics can't be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatisticsError {
    /// This Windows (or Wine) has no such call.
    #[error("this system has no statistics of TCP connections (ESTATS): {call} is not in iphlpapi.dll")]
    Missing {
        /// The first call that is missing.
        call: &'static str,
    },
    /// They are off, and were not to be switched on.
    #[error("its statistics are off; --watch 5s, as an administrator, switches them on for that time")]
    Off,
    /// Not an administrator.
    #[error("switching its statistics on takes an elevated prompt (\"Run as administrator\")")]
    Denied,
    /// The connection ended meanwhile.
    #[error("it ended meanwhile")]
    Gone,
    /// Windows refused for another reason.
    #[error("{call}: {source}")]
    System {
        /// The call.
        call: &'static str,
        /// What Windows says.
        source: io::Error,
    },
}

/// What Windows is asked for; tests answer in its place.
pub trait Statistics {
    /// The established connections, of IPv4 and of IPv6.
    fn connections(&self) -> Result<Vec<Connection>, StatisticsError>;
    /// The file name of a process' program, where that may be known.
    fn program(&self, pid: u32) -> Option<String>;
    /// Whether a group of statistics is kept for a connection.
    fn collection(&self, connection: &Connection, group: Group) -> Result<Collection, StatisticsError>;
    /// Switches a group on or off for a connection.
    fn collect(&mut self, connection: &Connection, group: Group, to: Collection) -> Result<(), StatisticsError>;
    /// All groups of a connection.
    fn counters(&self, connection: &Connection) -> Result<Counters, StatisticsError>;
}

impl<S: Statistics> Statistics for &mut S {
    fn connections(&self) -> Result<Vec<Connection>, StatisticsError> {
        (**self).connections()
    }

    fn program(&self, pid: u32) -> Option<String> {
        (**self).program(pid)
    }

    fn collection(&self, connection: &Connection, group: Group) -> Result<Collection, StatisticsError> {
        (**self).collection(connection, group)
    }

    fn collect(&mut self, connection: &Connection, group: Group, to: Collection) -> Result<(), StatisticsError> {
        (**self).collect(connection, group, to)
    }

    fn counters(&self, connection: &Connection) -> Result<Counters, StatisticsError> {
        (**self).counters(connection)
    }
}

/// What is known of one connection.
#[derive(Debug)]
pub struct Observed {
    /// The connection.
    pub connection: Connection,
    /// The file name of its program.
    pub program: Option<String>,
    /// What its statistics tell, or why there are none.
    pub verdict: Result<Verdict, StatisticsError>,
}

/// How long connections are watched.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// For this time.
    pub time: Duration,
    /// Ends it early; what was seen until then is reported.
    pub cancel: &'a AtomicBool,
}

impl Watch<'_> {
    fn wait(&self) {
        const STEP: Duration = Duration::from_millis(50);
        let start = Instant::now();
        loop {
            let left = self.time.saturating_sub(start.elapsed());
            if left.is_zero() || self.cancel.load(Relaxed) {
                return;
            }
            thread::sleep(left.min(STEP));
        }
    }
}

/// Looks at every established connection. With `watch` the statistics are switched on for that time where they are off,
/// and read at both of its ends. `level` is the machine's automatic tuning level, where it is known.
pub fn observe(
    system: &mut impl Statistics,
    level: Option<&str>,
    watch: Option<Watch<'_>>,
) -> Result<Vec<Observed>, StatisticsError> {
    let connections = system.connections()?;
    let Some(watch) = watch else {
        let look = |connection: &Connection| {
            let kept = kept(system, connection).and_then(|()| system.counters(connection));
            kept.map(|counters| Seen { first: None, last: counters, elapsed: Duration::ZERO }.judge(level))
        };
        return Ok(connections.iter().map(|connection| observed(system, connection, look(connection))).collect());
    };
    let mut watched = Watched::new(&mut *system);
    let begin = |connection: &Connection| watched.begin(connection).map(|counters| (counters, Instant::now()));
    let first: Vec<_> = connections.iter().map(begin).collect();
    if first.iter().any(Result::is_ok) {
        watch.wait();
    }
    let verdicts = connections.iter().zip(first).map(|(connection, first)| -> Result<Verdict, StatisticsError> {
        let (first, at) = first?;
        let last = watched.system().counters(connection)?;
        // Of this connection: reading a thousand of them takes a time of its own.
        Ok(Seen { first: Some(first), last, elapsed: at.elapsed() }.judge(level))
    });
    let verdicts: Vec<_> = verdicts.collect();
    drop(watched);
    Ok(connections.iter().zip(verdicts).map(|(connection, verdict)| observed(system, connection, verdict)).collect())
}

fn observed(system: &impl Statistics, connection: &Connection, verdict: Result<Verdict, StatisticsError>) -> Observed {
    Observed { connection: *connection, program: system.program(connection.pid), verdict }
}

fn kept(system: &impl Statistics, connection: &Connection) -> Result<(), StatisticsError> {
    for group in Group::ALL {
        if system.collection(connection, group)? == Collection::Off {
            return Err(StatisticsError::Off);
        }
    }
    Ok(())
}

/// Statistics of connections that are switched on where they are off, and off again when it is dropped.
#[derive(Debug)]
pub struct Watched<S: Statistics> {
    system: S,
    switched: Vec<(Connection, Group)>,
}

impl<S: Statistics> Watched<S> {
    /// Of no connection yet.
    pub fn new(system: S) -> Self {
        Self { system, switched: Vec::new() }
    }

    /// Who is asked.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// Switches on what is off, and gives the counters.
    ///
    /// # Errors
    /// Without the right to, where the connection is gone, or where there are no such statistics.
    pub fn begin(&mut self, connection: &Connection) -> Result<Counters, StatisticsError> {
        switch_on(&mut self.system, connection, &mut self.switched)?;
        self.system.counters(connection)
    }

    /// How many connections have statistics that were switched on here.
    pub fn switched(&self) -> usize {
        self.switched.iter().map(|(connection, _)| connection).collect::<HashSet<_>>().len()
    }

    /// Forgets the connections that are gone: they took their statistics along.
    pub fn keep(&mut self, is_there: impl Fn(&Connection) -> bool) {
        self.switched.retain(|(connection, _)| is_there(connection));
    }
}

impl<S: Statistics> Drop for Watched<S> {
    fn drop(&mut self) {
        for (connection, group) in self.switched.drain(..) {
            // A connection that ended took its statistics along.
            drop(self.system.collect(&connection, group, Collection::Off));
        }
    }
}

/// Switches on those groups of a connection that are off, and adds them to `switched`.
fn switch_on(
    system: &mut impl Statistics,
    connection: &Connection,
    switched: &mut Vec<(Connection, Group)>,
) -> Result<(), StatisticsError> {
    for group in Group::ALL {
        if system.collection(connection, group)? == Collection::Off {
            system.collect(connection, group, Collection::On)?;
            switched.push((*connection, group));
        }
    }
    Ok(())
}
