//! What waits for a link: the limit and the three disciplines.
//!
//! The packet that is being serialised has left the queue: a limit of 10 packets holds 10 beside that one, and the
//! queueing time ends when serialisation starts. (Linux counts the same way: a qdisc's limit does not include what
//! the device has taken.)

mod codel;
mod red;

use core::time::Duration;
use std::collections::VecDeque;

use fullpipe_units::Instant;

use self::{codel::CoDel, red::Red};
use crate::{Discipline, Ecn, QueueStats, Random, Segment};

/// How much may wait, in the unit that the limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets of any size.
    Packets(u64),
    /// Bytes of IP packets.
    Bytes(u64),
}

/// Why a queue did not take an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It did not fit.
    Full,
    /// Dropped early, to announce congestion.
    Early,
}

/// A queue with its discipline.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    store: Store<T>,
    limit: QueueLimit,
    discipline: State,
    /// All but the waits.
    stats: QueueStats,
    waited_nanos: u128,
    longest_nanos: u64,
}

/// The waiting packets, apart from the discipline so that it can take packets out while its own state changes.
#[derive(Clone, Debug)]
struct Store<T> {
    entries: VecDeque<(Instant, Segment<T>)>,
    bytes: u64,
}

#[derive(Clone, Debug)]
enum State {
    DropTail,
    Red(Red),
    CoDel(CoDel),
}

impl<T> Queue<T> {
    /// An empty queue. `seed` feeds RED's draws.
    pub fn new(limit: QueueLimit, discipline: Discipline, seed: u64) -> Self {
        let discipline = match discipline {
            Discipline::DropTail => State::DropTail,
            Discipline::Red(spec) => State::Red(Red::new(spec, Random::new(seed))),
            Discipline::CoDel(spec) => State::CoDel(CoDel::new(spec)),
        };
        Self {
            store: Store { entries: VecDeque::new(), bytes: 0 },
            limit,
            discipline,
            stats: QueueStats::default(),
            waited_nanos: 0,
            longest_nanos: 0,
        }
    }

    /// Takes a segment that arrives at `now`, or says why not; a refused segment is gone.
    #[inline]
    pub fn push(&mut self, now: Instant, mut segment: Segment<T>) -> Result<(), Refused> {
        let len = u64::from(segment.len);
        if let State::Red(red) = &mut self.discipline {
            // Full is judged first, so that a refused arrival's mark is not counted; the average sees every arrival.
            let (held, limit) = match self.limit {
                QueueLimit::Packets(limit) => (self.store.entries.len() as u64, limit),
                QueueLimit::Bytes(limit) => (self.store.bytes, limit),
            };
            let congested = red.on_arrival(now, held as f64 / limit as f64);
            if congested && fits(&self.store, self.limit, len) {
                if red.marks() && segment.ecn.is_capable() {
                    segment.ecn = Ecn::Ce;
                    self.stats.marked += 1;
                } else {
                    self.stats.dropped_red += 1;
                    return Err(Refused::Early);
                }
            }
        }
        if !fits(&self.store, self.limit, len) {
            self.stats.dropped_full += 1;
            return Err(Refused::Full);
        }
        self.store.bytes += len;
        self.store.entries.push_back((now, segment));
        self.stats.enqueued += 1;
        self.stats.max_packets = self.stats.max_packets.max(self.store.entries.len() as u64);
        self.stats.max_bytes = self.stats.max_bytes.max(self.store.bytes);
        Ok(())
    }

    /// A segment that arrives at `now` at an idle link with nothing in front of it: its serialisation starts at once. It is
    /// judged and counted as all others are.
    #[inline]
    pub fn pass(&mut self, now: Instant, segment: Segment<T>) -> Option<Segment<T>> {
        let len = u64::from(segment.len);
        let stats = &mut self.stats;
        let is_plain = matches!(self.discipline, State::DropTail) && self.store.entries.is_empty();
        if !is_plain || !fits(&self.store, self.limit, len) {
            self.push(now, segment).ok()?;
            return self.pop(now);
        }
        stats.enqueued += 1;
        stats.dequeued += 1;
        stats.max_packets = stats.max_packets.max(1);
        stats.max_bytes = stats.max_bytes.max(len);
        Some(segment)
    }

    /// The segment whose serialisation starts at `now`. CoDel may drop some on the way to it.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Segment<T>> {
        let (arrived, segment) = match &mut self.discipline {
            State::DropTail => self.store.take()?,
            State::Red(red) => {
                let taken = self.store.take()?;
                if self.store.entries.is_empty() {
                    red.on_idle(now);
                }
                taken
            }
            State::CoDel(codel) => codel.dequeue(now, &mut self.store, &mut self.stats)?,
        };
        let wait = now.as_nanos().saturating_sub(arrived.as_nanos());
        self.stats.dequeued += 1;
        self.waited_nanos += u128::from(wait);
        self.longest_nanos = self.longest_nanos.max(wait);
        Some(segment)
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.store.entries.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.store.entries.is_empty()
    }

    /// The counters so far.
    pub fn stats(&self) -> QueueStats {
        QueueStats {
            total_wait: Duration::from_nanos_u128(self.waited_nanos),
            max_wait: Duration::from_nanos(self.longest_nanos),
            ..self.stats
        }
    }
}

fn fits<T>(store: &Store<T>, limit: QueueLimit, len: u64) -> bool {
    is_room(limit, store.entries.len() as u64, store.bytes, len)
}

/// Whether a queue with so many packets and bytes takes another one of `len` bytes.
#[inline]
pub(crate) const fn is_room(limit: QueueLimit, packets: u64, bytes: u64, len: u64) -> bool {
    match limit {
        QueueLimit::Packets(limit) => packets < limit,
        QueueLimit::Bytes(limit) => bytes + len <= limit,
    }
}

impl<T> Store<T> {
    fn take(&mut self) -> Option<(Instant, Segment<T>)> {
        let entry = self.entries.pop_front()?;
        self.bytes -= u64::from(entry.1.len);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_limit_in_packets_counts_packets() {
        let mut queue = Queue::new(QueueLimit::Packets(2), Discipline::DropTail, 0);
        assert_eq!(queue.push(at(0), Segment::new(1500, 'a')), Ok(()));
        assert_eq!(queue.push(at(0), Segment::new(40, 'b')), Ok(()));
        assert_eq!(queue.push(at(0), Segment::new(40, 'c')), Err(Refused::Full));
        assert_eq!(queue.pop(at(5)).map(|segment| segment.handle), Some('a'));
        assert_eq!(queue.push(at(5), Segment::new(40, 'd')), Ok(()));
        let stats = queue.stats();
        assert_eq!((stats.enqueued, stats.dropped_full, stats.max_packets, stats.max_bytes), (3, 1, 2, 1540));
        assert_eq!(stats.max_wait.as_millis(), 5);
    }

    #[test]
    fn a_limit_in_bytes_counts_bytes() {
        let mut queue = Queue::new(QueueLimit::Bytes(1500), Discipline::DropTail, 0);
        assert_eq!(queue.push(at(0), Segment::new(1000, 'a')), Ok(()));
        assert_eq!(queue.push(at(0), Segment::new(501, 'b')), Err(Refused::Full));
        assert_eq!(queue.push(at(0), Segment::new(500, 'c')), Ok(()));
        assert_eq!(queue.len(), 2);
    }
}
