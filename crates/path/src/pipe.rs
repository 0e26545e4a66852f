//! What most hops are: a link of a fixed rate whose queue drops what does not fit, losses, and a wire that only delays.
//!
//! All that is inside stands in one line, in the order of arrival, and does not move until it leaves: on the wire in front, behind it
//! what is being serialised, then what waits. Link, queue and wire apart ([`Link`](crate::link::Link) and so on) do the same for all
//! other hops, and a test compares the two.

use core::time::Duration;
use std::collections::VecDeque;

use fullpipe_units::Instant;

use crate::{Departure, Fate, LossProcess, QueueLimit, QueueStats, Segment, link::SerialClock, queue::is_room};

/// The line.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    clock: SerialClock,
    overhead: u32,
    limit: QueueLimit,
    delay: Duration,
    delay_nanos: u64,
    pub(crate) loss: Option<LossProcess>,
    line: VecDeque<Place<T>>,
    /// So many in front are on the wire; the next one is being serialised.
    on_wire: usize,
    /// When the last bit of that one leaves.
    done: Instant,
    /// Bytes that wait.
    bytes: u64,
    stats: QueueStats,
    waited_nanos: u128,
    longest_nanos: u64,
    pub(crate) lost: u64,
}

#[derive(Debug)]
struct Place<T> {
    /// When it leaves the wire; as long as it waits, when it came.
    at: Instant,
    /// Lost behind the link: it leaves with the one in front of it. The first in line never is.
    is_lost: bool,
    segment: Segment<T>,
}

impl<T> Pipe<T> {
    pub(crate) fn new(
        clock: SerialClock,
        overhead: u32,
        limit: QueueLimit,
        delay: Duration,
        loss: Option<LossProcess>,
    ) -> Self {
        Self {
            clock,
            overhead,
            limit,
            delay,
            delay_nanos: delay.as_nanos() as u64,
            loss,
            line: VecDeque::new(),
            on_wire: 0,
            done: Instant::ZERO,
            bytes: 0,
            stats: QueueStats::default(),
            waited_nanos: 0,
            longest_nanos: 0,
            lost: 0,
        }
    }

    pub(crate) const fn min_delay(&self) -> Duration {
        self.delay
    }

    pub(crate) fn inside(&self) -> usize {
        self.line.iter().filter(|place| !place.is_lost).count()
    }

    /// The queue's counters.
    pub(crate) fn stats(&self) -> QueueStats {
        QueueStats {
            total_wait: Duration::from_nanos_u128(self.waited_nanos),
            max_wait: Duration::from_nanos(self.longest_nanos),
            ..self.stats
        }
    }

    /// Does everything in front of the wire that was due until `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        while self.done <= now
            && let Some(place) = self.line.get_mut(self.on_wire)
        {
            let done = self.done;
            place.at = Instant::from_nanos(done.as_nanos().saturating_add(self.delay_nanos));
            self.on_wire += 1;
            if self.loss.as_mut().is_some_and(LossProcess::loses) {
                self.lose();
            }
            let Some(next) = self.line.get(self.on_wire) else {
                // The link falls idle; the fraction of a nanosecond belongs to the busy period that ends.
                self.clock.rest();
                return;
            };
            let wait = done.as_nanos().saturating_sub(next.at.as_nanos());
            let len = next.segment.len;
            self.bytes -= u64::from(len);
            self.stats.dequeued += 1;
            self.waited_nanos += u128::from(wait);
            self.longest_nanos = self.longest_nanos.max(wait);
            self.serve(done, len);
        }
    }

    /// What has just left the link is lost.
    #[cold]
    fn lose(&mut self) {
        self.lost += 1;
        if self.on_wire == 1 {
            self.line.pop_front();
            self.on_wire = 0;
        } else if let Some(place) = self.line.get_mut(self.on_wire - 1) {
            place.is_lost = true;
        }
    }

    #[inline]
    fn serve(&mut self, start: Instant, len: u32) {
        let nanos = self.clock.time_for(u64::from(len.saturating_add(self.overhead)));
        self.done = Instant::from_nanos(start.as_nanos().saturating_add(nanos));
    }

    #[inline]
    pub(crate) fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        self.advance(now);
        let len = segment.len;
        // What is being serialised does not wait.
        let busy = self.line.len() > self.on_wire;
        let waiting = (self.line.len() - self.on_wire - usize::from(busy)) as u64;
        if !is_room(self.limit, waiting, self.bytes, len.into()) {
            self.stats.dropped_full += 1;
            return;
        }
        self.line.push_back(Place { at: now, is_lost: false, segment });
        self.stats.enqueued += 1;
        self.stats.max_packets = self.stats.max_packets.max(waiting + 1);
        self.stats.max_bytes = self.stats.max_bytes.max(self.bytes + u64::from(len));
        if busy {
            self.bytes += u64::from(len);
        } else {
            self.stats.dequeued += 1;
            self.serve(now, len);
        }
    }

    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>> {
        if self.front().is_none_or(|at| at > now) {
            self.advance(now);
        }
        self.front().filter(|at| *at <= now)?;
        let Place { at, segment, .. } = self.line.pop_front()?;
        self.on_wire -= 1;
        while self.line.front().is_some_and(|place| place.is_lost) {
            self.line.pop_front();
            self.on_wire -= 1;
        }
        Some(Departure { at, segment, fate: Fate::Delivered })
    }

    /// When the first on the wire leaves.
    #[inline]
    fn front(&self) -> Option<Instant> {
        self.line.front().filter(|_| self.on_wire > 0).map(|place| place.at)
    }

    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let place = self.line.front()?;
        Some(if self.on_wire > 0 { place.at } else { self.done + self.delay })
    }
}
