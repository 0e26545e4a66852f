//! Controlled delay, RFC 8289. The names are those of its section 5.

use core::time::Duration;

use fullpipe_units::Instant;

use super::Store;
use crate::{CoDelSpec, Ecn, QueueStats, Segment};

/// RFC 8289, section 5.5: with one maximum-size packet or less waiting, the delay is not the queue's.
const MAXPACKET: u64 = 1514;

#[derive(Clone, Debug)]
pub(super) struct CoDel {
    target: Duration,
    interval: Duration,
    ecn: bool,
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

type Entry<T> = (Instant, Segment<T>);

impl CoDel {
    pub(super) fn new(spec: CoDelSpec) -> Self {
        Self {
            target: spec.target.into(),
            interval: spec.interval.into(),
            ecn: spec.ecn,
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    /// RFC 8289, section 5.6: `deque`.
    pub(super) fn dequeue<T>(
        &mut self,
        now: Instant,
        store: &mut Store<T>,
        stats: &mut QueueStats,
    ) -> Option<Entry<T>> {
        let (mut head, mut ok_to_drop) = self.dodequeue(now, store);
        if self.dropping {
            if !ok_to_drop {
                // The sojourn time fell below the target: leave the drop state.
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let entry = head.take()?;
                self.count = self.count.saturating_add(1);
                if let Some(marked) = self.mark_or_drop(entry, stats) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(marked);
                }
                (head, ok_to_drop) = self.dodequeue(now, store);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let marked = self.mark_or_drop(head.take()?, stats);
            head = match marked {
                Some(entry) => Some(entry),
                None => self.dodequeue(now, store).0,
            };
            self.dropping = true;
            // Section 5.6: resume near the last drop rate if the drop state was left only recently.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now.since(self.drop_next) < 16 * self.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        head
    }

    /// Section 5.5: `dodequeue`, the head and whether it may be dropped.
    fn dodequeue<T>(&mut self, now: Instant, store: &mut Store<T>) -> (Option<Entry<T>>, bool) {
        let Some(entry) = store.take() else {
            self.first_above_time = None;
            return (None, false);
        };
        let sojourn_time = now.since(entry.0);
        if sojourn_time < self.target || store.bytes <= MAXPACKET {
            self.first_above_time = None;
            return (Some(entry), false);
        }
        let since = *self.first_above_time.get_or_insert(now + self.interval);
        (Some(entry), now >= since)
    }

    /// The entry, marked, where it takes marks; nothing where it was dropped.
    fn mark_or_drop<T>(&self, mut entry: Entry<T>, stats: &mut QueueStats) -> Option<Entry<T>> {
        if self.ecn && entry.1.ecn.is_capable() {
            entry.1.ecn = Ecn::Ce;
            stats.marked += 1;
            return Some(entry);
        }
        stats.dropped_codel += 1;
        None
    }

    /// Section 5.4: the next drop comes `interval / sqrt(count)` later.
    fn control_law(&self, t: Instant) -> Instant {
        t + self.interval.div_f64(f64::from(self.count.max(1)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Discipline, Queue, QueueLimit};

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A link that sends one packet per millisecond, fed with one per millisecond on top of `standing` at the start.
    /// Returns the queue and the times at which something was dropped or marked.
    fn run(standing: u32, ms: u64, spec: CoDelSpec, ecn: Ecn) -> (Queue<()>, Vec<u64>) {
        let mut queue = Queue::new(QueueLimit::Packets(10_000), Discipline::CoDel(spec), 0);
        let segment = Segment { ecn, ..Segment::new(1500, ()) };
        for _ in 0..standing {
            queue.push(at(0), segment).unwrap();
        }
        let mut events = Vec::new();
        for t in 0..ms {
            queue.push(at(t), segment).unwrap();
            let before = queue.stats();
            queue.pop(at(t));
            let after = queue.stats();
            if (after.dropped_codel, after.marked) != (before.dropped_codel, before.marked) {
                events.push(t);
            }
        }
        (queue, events)
    }

    #[test]
    fn a_delay_below_the_target_is_left_alone() {
        let (queue, _) = run(3, 5_000, CoDelSpec::default(), Ecn::NotEct);
        assert_eq!(queue.stats().dropped_codel, 0);
    }

    #[test]
    fn a_standing_delay_is_dropped_faster_and_faster_until_it_is_gone() {
        let (queue, drops) = run(200, 5_000, CoDelSpec::default(), Ecn::NotEct);
        // The wait passes the target of 5 ms in the 5th ms; one interval of 100 ms later comes the first drop, then
        // 100 / sqrt(1), 100 / sqrt(2), 100 / sqrt(3) ms to the next ones.
        assert_eq!(drops[..4], [105, 205, 276, 334]);
        assert!(queue.len() < 10, "{} wait at the end", queue.len());
        let last = *drops.last().unwrap();
        assert!(last < 4_900, "drops go on at {last} ms though the delay is gone");
    }

    #[test]
    fn marks_replace_drops_for_capable_packets() {
        let spec = CoDelSpec { ecn: true, ..CoDelSpec::default() };
        let (queue, marks) = run(200, 1_000, spec, Ecn::Ect0);
        assert_eq!(queue.stats().dropped_codel, 0);
        assert_eq!(marks[..3], [105, 205, 276]);
        // Nobody slows down in this test, so the delay stands and marks go on.
        assert_eq!(queue.stats().marked, marks.len() as u64);
    }
}
