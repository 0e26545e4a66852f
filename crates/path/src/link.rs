//! A link: a queue, a shaper where there is one, and a serialiser.

use core::time::Duration;
use std::collections::VecDeque;

use fullpipe_units::{Instant, Rate};

use crate::{Departure, Fate, Machine, Policer, PolicerSpec, Queue, QueueStats, RateTrace, Segment, trace::TraceClock};

/// A queue and the serialiser that empties it, at a fixed rate or at a recorded one, or as slowly as a shaper lets it.
#[derive(Debug)]
pub struct Link<T> {
    clock: Clock,
    overhead: u32,
    shaper: Option<Policer>,
    queue: Queue<T>,
    /// What is being serialised, and when its last bit leaves.
    in_service: Option<(Instant, Segment<T>)>,
    /// Serialised but not yet polled.
    out: VecDeque<(Instant, Segment<T>)>,
}

/// How long packets take.
#[derive(Clone, Debug)]
enum Clock {
    Steady(SerialClock),
    Recorded(TraceClock),
}

/// Turns bits into nanoseconds without drift: what a division leaves over goes into the next packet.
#[derive(Clone, Debug)]
struct SerialClock {
    bps: u64,
    /// Below `bps`, in units of `1 / bps` nanoseconds.
    remainder: u64,
}

impl SerialClock {
    /// How long `bytes` take, given what the packets before them left over.
    fn time_for(&mut self, bytes: u64) -> Duration {
        // 2^32 bytes would need 65 bits here; packets are far below, and beyond the sum saturates.
        let scaled = (bytes * 8).saturating_mul(1_000_000_000).saturating_add(self.remainder);
        self.remainder = scaled % self.bps;
        Duration::from_nanos(scaled / self.bps)
    }
}

impl<T> Link<T> {
    /// An idle link of `rate` (above zero; zero counts as 1 bit/s) that adds `overhead` bytes to each packet.
    pub fn new(rate: Rate, overhead: u32, queue: Queue<T>) -> Self {
        Self {
            clock: Clock::Steady(SerialClock { bps: rate.bps().max(1), remainder: 0 }),
            overhead,
            shaper: None,
            queue,
            in_service: None,
            out: VecDeque::new(),
        }
    }

    /// An idle link whose rate changes as it was recorded.
    pub fn recorded(trace: RateTrace, overhead: u32, queue: Queue<T>) -> Self {
        let clock = Clock::Recorded(TraceClock::new(trace));
        Self { clock, overhead, shaper: None, queue, in_service: None, out: VecDeque::new() }
    }

    /// The same with a shaper before the serialiser.
    pub fn with_shaper(self, spec: Option<PolicerSpec>) -> Self {
        Self { shaper: spec.map(Policer::new), ..self }
    }

    /// The queue's counters.
    pub fn stats(&self) -> QueueStats {
        self.queue.stats()
    }

    /// Packets that wait, are being serialised or were not yet polled.
    pub fn inside(&self) -> usize {
        self.queue.len() + usize::from(self.in_service.is_some()) + self.out.len()
    }

    /// Does everything that was due until `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.in_service.as_ref().is_some_and(|(done, _)| *done <= now) {
            self.serve_until(now);
        }
    }

    fn serve_until(&mut self, now: Instant) {
        while self.in_service.as_ref().is_some_and(|(done, _)| *done <= now) {
            let Some((done, segment)) = self.in_service.take() else { return };
            self.out.push_back((done, segment));
            self.start(done);
        }
    }

    /// Begins with the next packet at `start`, right after the one before it.
    fn start(&mut self, start: Instant) {
        if let Some(segment) = self.queue.pop(start) {
            self.serve(start, segment);
        } else {
            // The link falls idle; the fraction of a nanosecond belongs to the busy period that ends.
            if let Clock::Steady(clock) = &mut self.clock {
                clock.remainder = 0;
            }
        }
    }

    fn serve(&mut self, start: Instant, segment: Segment<T>) {
        let length = segment.len.saturating_add(self.overhead);
        let start = self.shaper.as_mut().map_or(start, |shaper| shaper.passes_at(start, length));
        let done = match &mut self.clock {
            Clock::Steady(clock) => start + clock.time_for(u64::from(length)),
            Clock::Recorded(clock) => clock.ends(start, u64::from(length)),
        };
        self.in_service = Some((done, segment));
    }
}

impl<T> Machine<T> for Link<T> {
    fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        self.advance(now);
        // Through the queue even when the link is idle, so that its counters and its discipline see every packet.
        if self.queue.push(now, segment).is_ok() && self.in_service.is_none() {
            self.start(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>> {
        self.advance(now);
        if self.out.front()?.0 > now {
            return None;
        }
        let (at, segment) = self.out.pop_front()?;
        Some(Departure { at, segment, fate: Fate::Delivered })
    }

    fn next_timeout(&self) -> Option<Instant> {
        let waiting = self.out.front().map(|(at, _)| *at);
        waiting.or_else(|| self.in_service.as_ref().map(|(done, _)| *done))
    }
}
