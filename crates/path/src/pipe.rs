//! What most hops are: a link of a fixed rate whose queue drops what does not fit, losses, and a wire that only delays.
//!
//! Such a hop is a FIFO: a packet's departure is known when the packet enters. All packets inside stand in one line until they
//! leave. The sizes of those that wait for the link are kept beside it, because the queue's room depends on them. Link, queue and
//! wire apart ([`Link`](crate::link::Link) and so on) do the same for all other hops, and a test compares the two.

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
    /// How many of it are lost.
    lost_inside: usize,
    /// What waited for the link when the last packet entered.
    waiting: VecDeque<Waiting>,
    /// Bytes of it.
    bytes: u64,
    /// When the link has done all that came.
    done: Instant,
    stats: QueueStats,
    waited_nanos: u128,
    longest_nanos: u64,
    pub(crate) lost: u64,
}

#[derive(Debug)]
struct Place<T> {
    /// When it leaves the wire.
    at: Instant,
    /// Lost behind the link: it takes its time there and does not leave.
    is_lost: bool,
    segment: Segment<T>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the link begins with it.
    until: Instant,
    len: u32,
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
            lost_inside: 0,
            waiting: VecDeque::new(),
            bytes: 0,
            done: Instant::ZERO,
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
        self.line.len() - self.lost_inside
    }

    /// The queue's counters. A packet's wait is counted when the packet enters.
    pub(crate) fn stats(&self) -> QueueStats {
        QueueStats {
            total_wait: Duration::from_nanos_u128(self.waited_nanos),
            max_wait: Duration::from_nanos(self.longest_nanos),
            ..self.stats
        }
    }

    /// Packets inside, the lost ones among them.
    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }

    /// When the last packet inside leaves.
    #[inline]
    pub(crate) fn last_departure(&self) -> Option<Instant> {
        self.line.back().map(|place| place.at)
    }

    #[inline]
    pub(crate) fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        while let Some(first) = self.waiting.front()
            && first.until <= now
        {
            self.bytes -= u64::from(first.len);
            self.waiting.pop_front();
        }
        let len = segment.len;
        let waiting = self.waiting.len() as u64;
        if !is_room(self.limit, waiting, self.bytes, len.into()) {
            self.stats.dropped_full += 1;
            return;
        }
        self.stats.enqueued += 1;
        self.stats.max_packets = self.stats.max_packets.max(waiting + 1);
        self.stats.max_bytes = self.stats.max_bytes.max(self.bytes + u64::from(len));
        // What finds the link idle does not wait.
        let begins = if self.done <= now {
            // The fraction of a nanosecond belongs to the busy period that has ended.
            self.clock.rest();
            now
        } else {
            self.waiting.push_back(Waiting { until: self.done, len });
            self.bytes += u64::from(len);
            self.done
        };
        let wait = begins.as_nanos() - now.as_nanos();
        self.stats.dequeued += 1;
        self.waited_nanos += u128::from(wait);
        self.longest_nanos = self.longest_nanos.max(wait);
        let nanos = self.clock.time_for(u64::from(len.saturating_add(self.overhead)));
        self.done = Instant::from_nanos(begins.as_nanos().saturating_add(nanos));
        let at = Instant::from_nanos(self.done.as_nanos().saturating_add(self.delay_nanos));
        let is_lost = self.loss.as_mut().is_some_and(LossProcess::loses);
        self.lost += u64::from(is_lost);
        self.lost_inside += usize::from(is_lost);
        self.line.push_back(Place { at, is_lost, segment });
    }

    /// The next packet that leaves by `now`. Packets may still enter before `now`.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>> {
        while self.line.front().is_some_and(|place| place.at <= now) {
            let Place { at, is_lost, segment } = self.line.pop_front()?;
            if !is_lost {
                return Some(Departure { at, segment, fate: Fate::Delivered });
            }
            self.lost_inside -= 1;
        }
        None
    }

    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.line.front().map(|place| place.at)
    }
}
