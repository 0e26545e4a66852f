//! What a system must answer so that its connections can be watched, and which system this is.
//!
//! Linux has `sock_diag` (`linux.rs`), Windows a table and statistics of each connection (`windows.rs`), FreeBSD and macOS a
//! table by sysctl(3) each (`freebsd.rs`, `macos.rs`). All but the calls themselves is compiled and tested everywhere.

#[cfg(any(target_os = "freebsd", target_os = "macos", test))]
use std::collections::HashSet;
use std::net::IpAddr;

#[cfg(any(target_os = "freebsd", target_os = "macos", test))]
use crate::table_row::TableRow;
use crate::{limits::Limits, look::Look, meter::End, table::Owners, watcher::WatchError, wire::SocketId};

/// What takes one look.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&dyn Look);

/// Counted for all connections of the host together, since it started; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    /// Connections that were dropped because a queue of a listener was full.
    pub(crate) overflows: Option<u64>,
    /// How often a receive window here was closed: looks miss those that open again in between.
    pub(crate) closed_windows: Option<u64>,
}

impl HostCounts {
    /// What was counted since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Self {
            overflows: grown(self.overflows, before.overflows),
            closed_windows: grown(self.closed_windows, before.closed_windows),
        }
    }
}

/// A connection that ended between two looks, or was seen at some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// By which looks name it; `None` where it was at none.
    pub(crate) cookie: Option<u64>,
    pub(crate) peer: IpAddr,
    /// The name of the process that connected or closed it.
    pub(crate) process: Option<String>,
    /// Payload acknowledged and received, in bytes, since it began.
    pub(crate) moved: [u64; 2],
    /// Segments with payload sent, and retransmitted among them, since it began.
    pub(crate) segments: [u64; 2],
    /// The smoothed round trip.
    pub(crate) rtt_us: Option<u32>,
    pub(crate) end: End,
}

/// A system's own tables of TCP sockets, and whose they are.
pub(crate) trait Source: Owners + Send {
    /// Looks at every TCP socket.
    ///
    /// # Errors
    /// Where the system does not tell, or no longer.
    fn all(&mut self, each: Each<'_>) -> Result<(), WatchError>;
    /// Looks at these alone, and gives the cookies of those that are gone.
    ///
    /// # Errors
    /// Where the system no longer tells.
    fn these(&mut self, ids: &[SocketId], each: Each<'_>) -> Result<Vec<u64>, WatchError>;
    /// Whether a look at few takes as long as one at all.
    fn reads_whole(&self) -> bool {
        false
    }
    /// The settings that bound buffers of TCP.
    fn limits(&self) -> Limits {
        Limits::default()
    }
    /// What it counts for all connections together.
    fn counts(&self) -> HostCounts {
        HostCounts::default()
    }
    /// The setting that bounds queues of listeners.
    fn queue_setting(&self) -> &'static str;
    /// Forgets the owners of all sockets but these.
    fn keep(&mut self, is_there: &dyn Fn(u64) -> bool);
    /// Whether rights are missing to see processes of other users.
    fn hides_owners(&self) -> bool;
    /// What can't be seen, and what would show it.
    fn missing(&self) -> Vec<String>;
    /// Also reports connections that end, from now on.
    ///
    /// # Errors
    /// Why that can't be.
    fn follow_ends(&mut self) -> Result<(), String> {
        Err("this system does not tell of them".to_owned())
    }
    /// Those that ended since this was asked last, where they are followed.
    fn ended(&mut self) -> Vec<Ended> {
        Vec::new()
    }
    /// How many ended of which nothing is known, because they were too many between two times that [`Self::ended`] was asked.
    fn lost_ends(&self) -> Option<u64> {
        None
    }
    /// What else there is to know of the figures, and of what is done to have them.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Looks at those of `all` that are among `ids`, and gives the cookies of those that are not there: for systems whose tables are read
/// as a whole only.
#[cfg(any(target_os = "freebsd", target_os = "macos", test))]
pub(crate) fn among(all: impl Iterator<Item = TableRow>, ids: &[SocketId], each: Each<'_>) -> Vec<u64> {
    let mut wanted: HashSet<u64> = ids.iter().map(|id| id.cookie).collect();
    all.filter(|row| wanted.remove(&row.id.cookie)).for_each(|row| each(&row));
    wanted.into_iter().collect()
}

/// The first row after so many seconds with nine looks in each, one of them at all; after each look `change` is called.
#[cfg(test)]
pub(crate) fn watched(source: &mut dyn Source, seconds: u64, mut change: impl FnMut()) -> crate::frame::Row {
    use crate::{filter::Filter, frame::Sort, table::Table};
    use fullpipe_units::Micros;

    let mut table = Table::new(Micros::new(10_000_000), source.limits());
    for look in 0..=9 * seconds {
        let at = Micros::new(look * 1_000_000 / 9);
        if look.is_multiple_of(9) {
            table.begin(at);
            source.all(&mut |look| table.take(look, at)).unwrap();
            table.end();
            table.judge(source);
        } else {
            source.all(&mut |look| table.take_quick(look, at)).unwrap();
        }
        change();
    }
    table.rows(source, &Filter::default(), Sort::Worst, 10).0.remove(0)
}

/// This system's.
///
/// # Errors
/// Where it does not tell of its sockets.
pub(crate) fn open() -> Result<Box<dyn Source>, WatchError> {
    #[cfg(target_os = "linux")]
    return Ok(Box::new(crate::linux::Linux::open()?));
    #[cfg(windows)]
    return Ok(Box::new(crate::windows::Windows::new(crate::windows::open()?)));
    #[cfg(target_os = "freebsd")]
    return Ok(Box::new(crate::freebsd::FreeBsd::new(fullpipe_host::freebsd::SystemKernel)));
    #[cfg(target_os = "macos")]
    return Ok(Box::new(crate::macos::MacOs::new(fullpipe_host::freebsd::SystemKernel)));
    #[cfg(not(any(target_os = "linux", windows, target_os = "freebsd", target_os = "macos")))]
    Err(WatchError::Unknown)
}
