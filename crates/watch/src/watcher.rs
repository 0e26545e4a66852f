//! The watch itself: looks, waits, and makes a frame of each interval.

use std::{
    fs, io, thread,
    time::{Duration, Instant},
};

use fullpipe_bpf::{BpfError, Ended, Ends, How};
use fullpipe_socket::Fixed;
use fullpipe_units::Micros;
use thiserror::Error;

use crate::{
    diag::Diag,
    filter::Filter,
    frame::{Frame, Listener, Sort},
    limits::Limits,
    meter::{End, Meter, Slice, Totals},
    notes::listen_queue,
    owner::Owner,
    processes::{Processes, fixed},
    table::{MOST_STORIES, Owners, Table},
};

/// A story holds so many intervals ...
const INTERVALS: u32 = 10;
/// ... of which each has so many looks at the busy connections, so that one interval alone is enough to judge by.
const LOOKS: u32 = 9;
/// Where connections are very many, those that have long been quiet are looked at once in so many intervals.
const BETWEEN: u64 = 5;
/// How long a signal waits for its answer at the most.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Owners of sockets that are gone are forgotten after so many intervals.
const FORGET: u64 = 16;

/// Why there is nothing to watch.
#[derive(Debug, Error)]
pub enum WatchError {
    /// The kernel has no `sock_diag` for TCP.
    #[error(
        "this kernel does not tell of its sockets: sock_diag for TCP (CONFIG_INET_DIAG, CONFIG_INET_TCP_DIAG) is neither \
         built in nor loaded; run `modprobe tcp_diag` as root, or measure with `fullpipe check HOST`"
    )]
    NoDiag,
    /// The kernel, or what confines this process, does not let it ask.
    #[error("asking sock_diag is not allowed here; run as root, or let the sandbox open AF_NETLINK sockets")]
    Denied,
    /// Anything else.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

/// Watches the TCP connections of the network namespace that it was made in.
pub struct Watcher {
    diag: Diag,
    table: Table,
    system: System,
    filter: Filter,
    sort: Sort,
    limit: usize,
    interval: Duration,
    start: Instant,
    next: Instant,
    quick: Vec<crate::wire::SocketId>,
    overflows: Option<u64>,
    at: Micros,
    rounds: u64,
    /// What looking has taken.
    looked: Duration,
    ends: Option<Ends>,
    /// Why nothing tells of those that end between two looks, where it was asked for.
    no_ends: Option<BpfError>,
}

impl Watcher {
    /// Takes the first look.
    ///
    /// # Errors
    /// Where the kernel does not tell of its sockets.
    pub fn new(interval: Duration, filter: Filter, sort: Sort, limit: usize) -> Result<Self, WatchError> {
        let limits = Limits::read(|name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok());
        let start = Instant::now();
        let mut watcher = Self {
            diag: Diag::open()?,
            table: Table::new(Micros::from(interval * INTERVALS), limits),
            system: System::default(),
            filter,
            sort,
            limit,
            interval,
            start,
            next: start,
            quick: Vec::new(),
            overflows: listen_overflows(),
            at: Micros::ZERO,
            rounds: 0,
            looked: Duration::ZERO,
            ends: None,
            no_ends: None,
        };
        watcher.look(Micros::ZERO, None)?;
        Ok(watcher)
    }

    /// Also counts what ends between two looks, which [`Self::next_metered`] then adds. Where that is not possible, [`Self::missing`]
    /// says why.
    pub fn follow_ends(&mut self) {
        match Ends::begin() {
            Ok(ends) => self.ends = Some(ends),
            Err(error) => self.no_ends = Some(error),
        }
    }

    /// Which connections the frames from now on show, and in which order.
    pub fn show(&mut self, filter: Filter, sort: Sort) {
        (self.filter, self.sort) = (filter, sort);
    }

    /// Waits for the end of the interval, with looks at the busy connections meanwhile, and says what it showed; `None` when
    /// `is_over` said so first.
    ///
    /// # Errors
    /// Where the kernel no longer tells.
    pub fn next_frame(&mut self, is_over: &dyn Fn() -> bool) -> Result<Option<Frame>, WatchError> {
        let before = self.at;
        Ok(self.next_look(is_over, None)?.then(|| self.frame(before)))
    }

    /// The same, but adds what the interval showed to `meter`; false when `is_over` said so first.
    ///
    /// # Errors
    /// Where the kernel no longer tells.
    pub fn next_metered(&mut self, is_over: &dyn Fn() -> bool, meter: &mut Meter) -> Result<bool, WatchError> {
        let looked = self.looked;
        if !self.next_look(is_over, Some(meter))? {
            return Ok(false);
        }
        let start = Instant::now();
        self.table.judge(&mut self.system);
        self.looked += start.elapsed();
        let totals = Totals {
            connections: self.table.len(),
            active: self.table.active,
            unjudged: self.table.active.saturating_sub(MOST_STORIES),
            full_listeners: self.table.full.len(),
            overflows: self.dropped().unwrap_or(0),
            hides_owners: self.system.processes.is_denied,
            look_s: self.looked.saturating_sub(looked).as_secs_f64(),
            lost_ends: self.ends.as_ref().and_then(|ends| ends.lost().ok()),
        };
        meter.add(self.table.slices(&self.system), totals);
        self.forget();
        Ok(true)
    }

    /// Waits for the end of the interval, with looks at the busy connections meanwhile; false when `is_over` said so first.
    /// What ended meanwhile goes to `meter`.
    fn next_look(&mut self, is_over: &dyn Fn() -> bool, mut meter: Option<&mut Meter>) -> Result<bool, WatchError> {
        // Where looking takes longer than the interval, the next one begins now.
        self.next = (self.next + self.interval).max(Instant::now());
        let from = Instant::now();
        let whole = self.next.saturating_duration_since(from);
        for look in 1..=LOOKS {
            if !wait_until(from + whole * look / LOOKS, is_over) {
                return Ok(false);
            }
            let start = Instant::now();
            if look < LOOKS {
                self.look_quickly()?;
                self.take_ends(meter.as_deref_mut());
            } else {
                self.look(Micros::from(self.start.elapsed()), meter.as_deref_mut())?;
            }
            self.looked += start.elapsed();
        }
        Ok(true)
    }

    fn look(&mut self, at: Micros, meter: Option<&mut Meter>) -> Result<(), WatchError> {
        if self.table.is_large() && !self.rounds.is_multiple_of(BETWEEN) {
            return self.look_at_lively(at, meter);
        }
        self.table.begin(at);
        let table = &mut self.table;
        self.diag.all(&mut |reading| table.take(reading, at))?;
        // What this look did not find any more has been told of by now, and is forgotten next.
        self.take_ends(meter);
        self.quick = self.table.end();
        self.at = at;
        self.rounds += 1;
        Ok(())
    }

    /// A look at all, of which those that have long been quiet are left out.
    fn look_at_lively(&mut self, at: Micros, meter: Option<&mut Meter>) -> Result<(), WatchError> {
        let mut gone = Vec::new();
        for id in self.table.begin_lively(at) {
            let table = &mut self.table;
            if !self.diag.one(&id, &mut |reading| table.take(reading, at))? {
                gone.push(id.cookie);
            }
        }
        self.take_ends(meter);
        gone.into_iter().for_each(|cookie| self.table.forget(cookie));
        self.quick = self.table.end_lively();
        self.at = at;
        self.rounds += 1;
        Ok(())
    }

    /// Adds what ended, and only so much of it as no look has seen.
    fn take_ends(&mut self, mut meter: Option<&mut Meter>) {
        let (table, processes) = (&self.table, &self.system.processes);
        let Some(ends) = &mut self.ends else { return };
        ends.drain(|ended| {
            if let Some(meter) = meter.as_deref_mut() {
                add_end(meter, ended, table, processes);
            }
        });
    }

    fn look_quickly(&mut self) -> Result<(), WatchError> {
        let (table, start) = (&mut self.table, self.start);
        for id in &self.quick {
            self.diag.one(id, &mut |reading| table.take_quick(reading, Micros::from(start.elapsed())))?;
        }
        Ok(())
    }

    fn frame(&mut self, before: Micros) -> Frame {
        self.table.judge(&mut self.system);
        let (rows, matching) = self.table.rows(&mut self.system, &self.filter, self.sort, self.limit);
        let dropped = self.dropped();
        self.system.find(&mut self.table.full.iter().map(|full| full.inode));
        let listeners = self.table.full.iter().filter_map(|full| {
            Some(Listener {
                local: full.local,
                owner: self.system.owner(full.inode).cloned(),
                waiting: full.waiting,
                most: full.most,
                note: listen_queue(full.waiting, full.most, dropped)?,
            })
        });
        let seconds = |time: Micros| time.get() as f64 / 1e6;
        let frame = Frame {
            time: None,
            at_s: seconds(self.at),
            interval_s: seconds(self.at.saturating_sub(before)),
            connections: self.table.len(),
            active: self.table.active,
            matching,
            rows,
            listeners: listeners.collect(),
            missing: self.missing(),
        };
        self.forget();
        frame
    }

    /// Connections that listeners dropped since this was asked last.
    fn dropped(&mut self) -> Option<u64> {
        let overflows = listen_overflows();
        let dropped = overflows.zip(self.overflows).map(|(now, before)| now.saturating_sub(before));
        self.overflows = overflows;
        dropped
    }

    fn forget(&mut self) {
        if self.rounds.is_multiple_of(FORGET) {
            let there = self.table.inodes();
            self.system.processes.keep(|inode| there.contains(&inode));
        }
    }

    /// What can't be seen, and what would show it.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.system.processes.is_denied {
            missing.push(
                "processes of other users, and which buffers they set: run as root, or with CAP_SYS_PTRACE and \
                 CAP_DAC_READ_SEARCH"
                    .to_owned(),
            );
        }
        if let Some(error) = &self.no_ends {
            missing.push(format!("connections that begin and end between two looks: {error}"));
        }
        if self.table.active > MOST_STORIES {
            missing.push(format!(
                "verdicts of {} active connections: the {MOST_STORIES} busiest are judged",
                self.table.active - MOST_STORIES
            ));
        }
        missing
    }
}

fn add_end(meter: &mut Meter, ended: Ended, table: &Table, processes: &Processes) {
    let (inode, [moved, segments]) = table.known(ended.cookie);
    let named = ended.process.map(|process| Owner { process, ..Owner::default() });
    let rest = |all: [u64; 2], known: [u64; 2]| [0, 1].map(|end| all[end].saturating_sub(known[end]));
    let slice = Slice {
        peer: ended.peer.to_canonical(),
        owner: inode.and_then(|inode| processes.owner(inode)).or(named.as_ref()),
        moved: rest(ended.moved, moved),
        segments: rest(ended.segments, segments),
        // Of one that was looked at, it has been counted.
        rtt: ended.rtt_us.filter(|_| inode.is_none()).map(|us| Micros::new(us.into())),
        seconds: None,
        fixed: Fixed::default(),
    };
    let end = match ended.how {
        How::Closed => End::Closed,
        How::ResetByPeer => End::Aborted("reset_by_peer"),
        How::ResetHere => End::Aborted("reset_here"),
        How::Refused => End::Aborted("refused"),
        How::TimedOut => End::Aborted("timed_out"),
        How::Failed => End::Aborted("failed"),
    };
    meter.add_end(&slice, end);
}

/// What the system says of sockets' owners.
#[derive(Debug, Default)]
struct System {
    processes: Processes,
}

impl Owners for System {
    fn find(&mut self, inodes: &mut dyn Iterator<Item = u32>) {
        self.processes.find(inodes);
    }

    fn owner(&self, inode: u32) -> Option<&Owner> {
        self.processes.owner(inode)
    }

    fn fixed(&mut self, inode: u32) -> Option<Fixed> {
        fixed(self.processes.owner(inode)?, inode)
    }
}

/// False when `is_over` said so first.
fn wait_until(time: Instant, is_over: &dyn Fn() -> bool) -> bool {
    loop {
        if is_over() {
            return false;
        }
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LONGEST_SLEEP));
    }
}

/// Connections that were dropped because a queue of a listener was full, of all listeners of this namespace.
fn listen_overflows() -> Option<u64> {
    count("ListenOverflows", &fs::read_to_string("/proc/thread-self/net/netstat").ok()?)
}

/// A counter of `TcpExt:`, whose first line has the names and whose second has the figures.
fn count(name: &str, netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let at = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows Last\nTcpExt: 1 22 3\nIpExt: A\nIpExt: 9\n";
        assert_eq!(count("ListenOverflows", text), Some(22));
        assert_eq!(count("Absent", text), None);
        assert_eq!(count("ListenOverflows", ""), None);
    }

    #[test]
    fn what_is_over_is_not_waited_for() {
        assert!(!wait_until(Instant::now() + Duration::from_secs(600), &|| true));
        assert!(wait_until(Instant::now(), &|| false));
    }
}
