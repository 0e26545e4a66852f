//! The watch itself: looks, waits, and makes a frame of each interval.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use fullpipe_socket::Fixed;
use fullpipe_units::Micros;
use thiserror::Error;

use crate::{
    filter::Filter,
    frame::{Frame, Listener, Sort},
    meter::{Meter, Slice, Totals},
    notes::listen_queue,
    owner::Owner,
    source::{self, Ended, HostCounts, Source},
    story,
    table::{MOST_STORIES, Table},
    wire::SocketId,
};

/// A story holds so many intervals ...
const INTERVALS: u32 = 10;
/// ... of which each has at least so many looks at the busy connections, so that one interval alone is enough to judge by ...
const FEWEST_LOOKS: u32 = 9;
/// ... and where these are few and can be looked at one by one, as many as share out so many looks a second: with one in each round trip
/// the judge sees as much as a measurement does ...
const LOOKS_A_SECOND: u32 = 512;
/// ... but no more than one in this time, and no more in one interval than a story has room for.
const CLOSEST: Duration = Duration::from_millis(10);
const MOST_LOOKS_OF_INTERVAL: u32 = story::MOST_LOOKS as u32 / INTERVALS;
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
    /// There is no way to ask this system.
    #[error(
        "no way is known to ask this system for its connections; to look at a recording, give its file, and to measure \
         from here use `fullpipe check HOST`"
    )]
    Unknown,
    /// Anything else.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

/// Watches the TCP connections of this host; on Linux of the network namespace that it was made in.
pub struct Watcher {
    source: Box<dyn Source>,
    table: Table,
    filter: Filter,
    sort: Sort,
    limit: usize,
    interval: Duration,
    start: Instant,
    next: Instant,
    quick: Vec<SocketId>,
    counts: HostCounts,
    at: Micros,
    rounds: u64,
    /// What looking has taken.
    looked: Duration,
    /// Why nothing tells of those that end between two looks, where it was asked for.
    no_ends: Option<String>,
}

impl Watcher {
    /// Takes the first look.
    ///
    /// # Errors
    /// Where the system does not tell of its sockets.
    pub fn new(interval: Duration, filter: Filter, sort: Sort, limit: usize) -> Result<Self, WatchError> {
        let source = source::open()?;
        let start = Instant::now();
        let mut watcher = Self {
            table: Table::new(Micros::from(interval * INTERVALS), source.limits()),
            filter,
            sort,
            limit,
            interval,
            start,
            next: start,
            quick: Vec::new(),
            counts: source.counts(),
            source,
            at: Micros::ZERO,
            rounds: 0,
            looked: Duration::ZERO,
            no_ends: None,
        };
        watcher.look(Micros::ZERO, None)?;
        Ok(watcher)
    }

    /// Also counts what ends between two looks, which [`Self::next_metered`] then adds. Where that is not possible, [`Self::missing`]
    /// says why.
    pub fn follow_ends(&mut self) {
        self.no_ends = self.source.follow_ends().err();
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
        self.table.judge(&mut *self.source);
        self.looked += start.elapsed();
        let counted = self.counted();
        let totals = Totals {
            connections: self.table.len(),
            active: self.table.active,
            unjudged: self.table.active.saturating_sub(MOST_STORIES),
            full_listeners: self.table.full.len(),
            overflows: counted.overflows.unwrap_or(0),
            closed_windows: counted.closed_windows,
            hides_owners: self.source.hides_owners(),
            look_s: self.looked.saturating_sub(looked).as_secs_f64(),
            lost_ends: self.source.lost_ends(),
        };
        meter.add(self.table.slices(&*self.source), totals);
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
        let looks = looks(whole, self.quick.len(), self.source.reads_whole());
        for look in 1..=looks {
            if !wait_until(from + whole * look / looks, is_over) {
                return Ok(false);
            }
            let start = Instant::now();
            if look < looks {
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
        self.source.all(&mut |look| table.take(look, at))?;
        // What this look did not find any more has been reported by now, and is forgotten next.
        self.take_ends(meter);
        self.quick = self.table.end();
        self.at = at;
        self.rounds += 1;
        Ok(())
    }

    /// A look at all, of which those that have long been quiet are left out.
    fn look_at_lively(&mut self, at: Micros, meter: Option<&mut Meter>) -> Result<(), WatchError> {
        let lively = self.table.begin_lively(at);
        let table = &mut self.table;
        let gone = self.source.these(&lively, &mut |look| table.take(look, at))?;
        self.take_ends(meter);
        gone.into_iter().for_each(|cookie| self.table.forget(cookie));
        self.quick = self.table.end_lively();
        self.at = at;
        self.rounds += 1;
        Ok(())
    }

    /// Adds what ended, and only so much of it as no look has seen.
    fn take_ends(&mut self, mut meter: Option<&mut Meter>) {
        for ended in self.source.ended() {
            if let Some(meter) = meter.as_deref_mut() {
                add_end(meter, ended, &self.table, &*self.source);
            }
        }
    }

    fn look_quickly(&mut self) -> Result<(), WatchError> {
        let (table, start) = (&mut self.table, self.start);
        if !self.quick.is_empty() {
            self.source.these(&self.quick, &mut |look| table.take_quick(look, Micros::from(start.elapsed())))?;
        }
        Ok(())
    }

    fn frame(&mut self, before: Micros) -> Frame {
        self.table.judge(&mut *self.source);
        let (rows, matching) = self.table.rows(&mut *self.source, &self.filter, self.sort, self.limit);
        let dropped = self.counted().overflows;
        self.source.find(&mut self.table.full.iter().map(|full| full.handle));
        let listeners = self.table.full.iter().filter_map(|full| {
            Some(Listener {
                local: full.local,
                owner: self.source.owner(full.handle).cloned(),
                waiting: full.waiting,
                most: full.most,
                note: listen_queue(full.waiting, full.most, dropped, self.source.queue_setting())?,
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
            remarks: self.remarks(),
        };
        self.forget();
        frame
    }

    /// What the system counted since this was asked last.
    fn counted(&mut self) -> HostCounts {
        let now = self.source.counts();
        now.since(std::mem::replace(&mut self.counts, now))
    }

    fn forget(&mut self) {
        if self.rounds.is_multiple_of(FORGET) {
            let there = self.table.handles();
            self.source.keep(&|handle| there.contains(&handle));
        }
    }

    /// What else there is to know of the figures, and of what is done to have them.
    pub fn remarks(&self) -> Vec<String> {
        self.source.remarks()
    }

    /// What can't be seen, and what would show it.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = self.source.missing();
        if let Some(reason) = &self.no_ends {
            missing.push(format!("connections that begin and end between two looks: {reason}"));
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

fn add_end(meter: &mut Meter, ended: Ended, table: &Table, source: &dyn Source) {
    let (handle, [moved, segments]) = table.known(ended.cookie);
    let named = ended.process.map(|process| Owner { process, ..Owner::default() });
    let rest = |all: [u64; 2], known: [u64; 2]| [0, 1].map(|end| all[end].saturating_sub(known[end]));
    let slice = Slice {
        peer: ended.peer.to_canonical(),
        owner: handle.and_then(|handle| source.owner(handle)).or(named.as_ref()),
        moved: rest(ended.moved, moved),
        segments: rest(ended.segments, segments),
        // Of one that was looked at, it has been counted.
        rtt: ended.rtt_us.filter(|_| handle.is_none()).map(|us| Micros::new(us.into())),
        seconds: None,
        fixed: Fixed::default(),
    };
    meter.add_end(&slice, ended.end);
}

/// How many looks an interval as long as `whole` has, the one at all included, where `busy` connections are looked at.
fn looks(whole: Duration, busy: usize, reads_whole: bool) -> u32 {
    if busy == 0 || reads_whole {
        return FEWEST_LOOKS;
    }
    let budget = whole.as_secs_f64() * f64::from(LOOKS_A_SECOND) / busy as f64;
    let closest = whole.as_secs_f64() / CLOSEST.as_secs_f64();
    (budget.min(closest) as u32).clamp(FEWEST_LOOKS, MOST_LOOKS_OF_INTERVAL)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_not_waited_for() {
        assert!(!wait_until(Instant::now() + Duration::from_secs(600), &|| true));
        assert!(wait_until(Instant::now(), &|| false));
    }

    #[test]
    fn few_busy_connections_are_looked_at_more_often() {
        let second = Duration::from_secs(1);
        assert_eq!([1, 10, 16, 32, 64].map(|busy| looks(second, busy, false)), [51, 51, 32, 16, 9]);
        assert_eq!(looks(second, 0, false), 9, "nobody to look at");
        assert_eq!(looks(second, 1, true), 9, "each look reads the whole table");
        assert_eq!(looks(second / 5, 1, false), 20, "10 ms apart");
        assert_eq!(looks(second / 20, 1, false), 9);
        assert_eq!(looks(second * 60, 64, false), 51, "as much as a story holds");
    }
}
