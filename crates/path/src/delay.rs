//! A wire: delay, jitter and deliberate reordering.

use core::{cmp::Ordering, time::Duration};
use std::collections::{BinaryHeap, VecDeque};

use fullpipe_units::{Instant, Micros};

use crate::{Departure, Fate, JitterSpec, Machine, Random, ReorderBy, ReorderSpec, Segment, Spread};

/// Holds each segment for its delay.
#[derive(Debug)]
pub struct DelayLine<T> {
    delay: Duration,
    /// The same in nanoseconds.
    delay_nanos: u64,
    /// The least time that a segment can spend here: asked at every event.
    least: Duration,
    /// Neither jitter nor reordering: all wait equally long.
    is_plain: bool,
    jitter: Option<(JitterSpec, Random)>,
    reorder: Option<(ReorderSpec, Random)>,
    /// The last release in order: what keeps order waits for it.
    last: Instant,
    wire: Wire<T>,
    /// Taken out until enough others have passed; the earliest deadline is in front.
    held: VecDeque<Held<T>>,
    reordered: u64,
}

/// What is on its way, by release time.
#[derive(Debug)]
enum Wire<T> {
    /// Releases are in order of arrival.
    InOrder(VecDeque<(Instant, Segment<T>)>),
    /// Releases need sorting; the number breaks ties in order of arrival.
    Sorted(BinaryHeap<Sorted<T>>, u64),
}

#[derive(Debug)]
struct Sorted<T> {
    at: Instant,
    number: u64,
    segment: Segment<T>,
}

#[derive(Debug)]
struct Held<T> {
    to_pass: u32,
    deadline: Instant,
    segment: Segment<T>,
}

impl<T> DelayLine<T> {
    /// A wire of `delay`. Jitter and reordering come each with the seed of its own stream.
    pub fn new(delay: Micros, jitter: Option<(JitterSpec, u64)>, reorder: Option<(ReorderSpec, u64)>) -> Self {
        let sorted = reorder.is_some() || jitter.is_some_and(|(spec, _)| !spec.keep_order);
        let wire = if sorted { Wire::Sorted(BinaryHeap::new(), 0) } else { Wire::InOrder(VecDeque::new()) };
        Self {
            delay: delay.into(),
            delay_nanos: delay.get().saturating_mul(1_000),
            least: least(delay.into(), jitter.map(|(spec, _)| spec), reorder.map(|(spec, _)| spec)),
            is_plain: jitter.is_none() && reorder.is_none(),
            jitter: jitter.map(|(spec, seed)| (spec, Random::new(seed))),
            reorder: reorder.map(|(spec, seed)| (spec, Random::new(seed))),
            last: Instant::ZERO,
            wire,
            held: VecDeque::new(),
            reordered: 0,
        }
    }

    /// The least time that a segment can spend here.
    #[inline]
    pub const fn min_delay(&self) -> Duration {
        self.least
    }

    /// When the first leaves, where whatever enters later leaves later, too.
    #[inline]
    pub(crate) fn front_of_all(&self) -> Option<Instant> {
        self.wire.next().filter(|_| self.is_plain)
    }

    /// Whether the first leaves by `now`, and nothing that enters meanwhile does so before it.
    #[inline]
    pub(crate) fn has_due(&self, now: Instant) -> bool {
        self.front_of_all().is_some_and(|at| at <= now)
    }

    /// Segments taken out of order so far.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Segments on the wire.
    pub fn inside(&self) -> usize {
        self.held.len()
            + match &self.wire {
                Wire::InOrder(wire) => wire.len(),
                Wire::Sorted(wire, _) => wire.len(),
            }
    }

    /// Draws the release time of a segment that arrives at `now`.
    fn release(&mut self, now: Instant) -> Instant {
        let Some((spec, random)) = &mut self.jitter else { return now + self.delay };
        let offset = match spec.spread {
            Spread::Uniform(span) => span.as_secs_f64() * (2.0 * random.unit() - 1.0),
            Spread::Normal(sigma) => sigma.as_secs_f64() * random.normal(),
        };
        let delay = (self.delay.as_secs_f64() + offset).max(0.0);
        now + Duration::from_secs_f64(delay).max(self.delay_floor())
    }

    /// Rounding in floating point must not undercut [`min_delay`](Self::min_delay).
    fn delay_floor(&self) -> Duration {
        match &self.jitter {
            Some((JitterSpec { spread: Spread::Uniform(span), .. }, _)) => self.delay.saturating_sub((*span).into()),
            Some((JitterSpec { spread: Spread::Normal(sigma), .. }, _)) => {
                self.delay.saturating_sub(4 * Duration::from(*sigma))
            }
            None => self.delay,
        }
    }

    /// Lets those go whose deadline came before enough others had passed.
    #[inline]
    fn expire(&mut self, now: Instant) {
        while self.held.front().is_some_and(|held| held.deadline <= now) {
            let Some(held) = self.held.pop_front() else { return };
            self.wire.put(held.deadline, held.segment);
        }
    }
}

fn least(delay: Duration, jitter: Option<JitterSpec>, reorder: Option<ReorderSpec>) -> Duration {
    let jitter = jitter.map_or(Duration::ZERO, |spec| match spec.spread {
        Spread::Uniform(span) => span.into(),
        Spread::Normal(sigma) => 4 * Duration::from(sigma),
    });
    let earlier = match reorder {
        Some(ReorderSpec { by: ReorderBy::Earlier(span), .. }) => span.into(),
        _ => Duration::ZERO,
    };
    delay.saturating_sub(jitter).saturating_sub(earlier)
}

impl<T> Wire<T> {
    #[inline]
    fn put(&mut self, at: Instant, segment: Segment<T>) {
        match self {
            Self::InOrder(wire) => wire.push_back((at, segment)),
            Self::Sorted(wire, number) => {
                wire.push(Sorted { at, number: *number, segment });
                *number += 1;
            }
        }
    }

    #[inline]
    fn next(&self) -> Option<Instant> {
        match self {
            Self::InOrder(wire) => wire.front().map(|(at, _)| *at),
            Self::Sorted(wire, _) => wire.peek().map(|entry| entry.at),
        }
    }

    #[inline]
    fn take(&mut self) -> Option<(Instant, Segment<T>)> {
        match self {
            Self::InOrder(wire) => wire.pop_front(),
            Self::Sorted(wire, _) => wire.pop().map(|entry| (entry.at, entry.segment)),
        }
    }
}

impl<T> Machine<T> for DelayLine<T> {
    #[inline]
    fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        if self.is_plain {
            let at = Instant::from_nanos(now.as_nanos().saturating_add(self.delay_nanos));
            return self.wire.put(at, segment);
        }
        self.expire(now);
        let mut at = self.release(now);
        if self.jitter.as_ref().is_none_or(|(spec, _)| spec.keep_order) {
            at = at.max(self.last);
        }
        let chosen = match &mut self.reorder {
            Some((spec, random)) => random.chance(spec.probability).then_some(spec.by),
            None => None,
        };
        let Some(by) = chosen else {
            self.last = self.last.max(at);
            self.wire.put(at, segment);
            for held in &mut self.held {
                held.to_pass -= 1;
            }
            while self.held.front().is_some_and(|held| held.to_pass == 0) {
                let Some(held) = self.held.pop_front() else { return };
                self.wire.put(at.min(held.deadline), held.segment);
            }
            return;
        };
        self.reordered += 1;
        match by {
            ReorderBy::Later(span) => self.wire.put(at + span.into(), segment),
            ReorderBy::Earlier(span) => {
                let earlier = Instant::from_nanos(at.as_nanos().saturating_sub(Duration::from(span).as_nanos() as u64));
                self.wire.put(earlier.max(now), segment);
            }
            ReorderBy::Gap { packets, hold } => {
                // Free jitter may give a later packet the earlier release; a hold never ends before the one ahead.
                let ahead = self.held.back().map_or(Instant::ZERO, |held| held.deadline);
                let deadline = ahead.max(at + hold.into());
                self.held.push_back(Held { to_pass: packets.max(1), deadline, segment });
            }
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>> {
        if !self.is_plain {
            self.expire(now);
        }
        if self.wire.next()? > now {
            return None;
        }
        let (at, segment) = self.wire.take()?;
        Some(Departure { at, segment, fate: Fate::Delivered })
    }

    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        match (self.wire.next(), self.held.front()) {
            (Some(next), Some(held)) => Some(next.min(held.deadline)),
            (next, held) => next.or_else(|| held.map(|held| held.deadline)),
        }
    }
}

/// Reversed, because the heap gives its greatest first.
impl<T> Ord for Sorted<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Sorted<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Sorted<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Sorted<T> {}
