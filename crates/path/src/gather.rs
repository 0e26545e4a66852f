//! What holds packets back in front of a link: aggregation, as Wi-Fi and cellular links do it, and thinning of
//! acknowledgements, as satellite and cable modems do it. A decision about packets that are there already: it has no rate.

use core::time::Duration;
use std::collections::VecDeque;

use fullpipe_units::Instant;

use crate::{AggregateSpec, Segment, ThinSpec};

/// Releases packets in bunches: as soon as so many wait, or when the first has waited long enough.
#[derive(Debug)]
pub(crate) struct Aggregator<T> {
    packets: usize,
    hold: Duration,
    waiting: VecDeque<Segment<T>>,
    /// When the bunch leaves whatever its size.
    deadline: Instant,
    /// What has left and was not taken yet, with its time.
    out: VecDeque<(Instant, Segment<T>)>,
}

impl<T> Aggregator<T> {
    pub(crate) fn new(spec: AggregateSpec) -> Self {
        Self {
            packets: spec.packets.max(1) as usize,
            hold: spec.hold.into(),
            waiting: VecDeque::new(),
            deadline: Instant::FAR_FUTURE,
            out: VecDeque::new(),
        }
    }

    fn release(&mut self, at: Instant) {
        self.out.extend(self.waiting.drain(..).map(|segment| (at, segment)));
        self.deadline = Instant::FAR_FUTURE;
    }

    pub(crate) fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        self.expire(now);
        if self.waiting.is_empty() {
            self.deadline = now + self.hold;
        }
        self.waiting.push_back(segment);
        if self.waiting.len() >= self.packets {
            self.release(now);
        }
    }

    fn expire(&mut self, now: Instant) {
        if self.deadline <= now {
            self.release(self.deadline);
        }
    }

    /// The next packet that has left by `now`, and when.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Instant, Segment<T>)> {
        self.expire(now);
        self.out.pop_front()
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        let waiting = (self.deadline < Instant::FAR_FUTURE).then_some(self.deadline);
        self.out.front().map(|(at, _)| *at).or(waiting)
    }

    pub(crate) fn inside(&self) -> usize {
        self.waiting.len() + self.out.len()
    }
}

/// Lets the last of so many acknowledgements of a connection pass; an earlier one says nothing that it does not.
#[derive(Debug)]
pub(crate) struct Thinner<T> {
    every: u32,
    hold: Duration,
    /// The first to leave in front: all wait equally long.
    waiting: VecDeque<Waiting<T>>,
    out: VecDeque<(Instant, Segment<T>)>,
    pub(crate) dropped: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    connection: u32,
    seen: u32,
    deadline: Instant,
    segment: Segment<T>,
}

impl<T> Thinner<T> {
    pub(crate) fn new(spec: ThinSpec) -> Self {
        let (waiting, out) = (VecDeque::new(), VecDeque::new());
        Self { every: spec.every.max(1), hold: spec.hold.into(), waiting, out, dropped: 0 }
    }

    /// What is no acknowledgement alone passes at once, behind what waits: order is kept.
    pub(crate) fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        self.expire(now);
        let Some(connection) = segment.ack_of else {
            self.out.extend(self.waiting.drain(..).map(|waiting| (now, waiting.segment)));
            self.out.push_back((now, segment));
            return;
        };
        match self.waiting.iter().position(|waiting| waiting.connection == connection) {
            Some(at) => {
                let waiting = &mut self.waiting[at];
                self.dropped += 1;
                (waiting.seen, waiting.segment) = (waiting.seen + 1, segment);
                if waiting.seen >= self.every
                    && let Some(waiting) = self.waiting.remove(at)
                {
                    self.out.push_back((now, waiting.segment));
                }
            }
            None if self.every == 1 => self.out.push_back((now, segment)),
            None => {
                self.waiting.push_back(Waiting { connection, seen: 1, deadline: now + self.hold, segment });
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        while self.waiting.front().is_some_and(|waiting| waiting.deadline <= now) {
            let Some(waiting) = self.waiting.pop_front() else { return };
            self.out.push_back((waiting.deadline, waiting.segment));
        }
    }

    /// The next packet that has left by `now`, and when.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Instant, Segment<T>)> {
        self.expire(now);
        self.out.pop_front()
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.out.front().map(|(at, _)| *at).or_else(|| self.waiting.front().map(|waiting| waiting.deadline))
    }

    pub(crate) fn inside(&self) -> usize {
        self.waiting.len() + self.out.len()
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Micros;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn a_bunch_leaves_when_it_is_full_or_has_waited() {
        let mut bunches = Aggregator::new(AggregateSpec { packets: 3, hold: Micros::from_millis(10) });
        for (ms, name) in [(0, 'a'), (1, 'b'), (2, 'c'), (3, 'd')] {
            bunches.on_packet(at(ms), Segment::new(100, name));
        }
        let left: Vec<_> = std::iter::from_fn(|| bunches.take(at(3))).map(|(at, s)| (at, s.handle)).collect();
        assert_eq!(left, [(at(2), 'a'), (at(2), 'b'), (at(2), 'c')]);
        assert_eq!(bunches.next(), Some(at(13)));
        // However late the driver comes, the time is the planned one.
        bunches.on_packet(at(20), Segment::new(100, 'e'));
        assert_eq!(bunches.take(at(20)).map(|(at, s)| (at, s.handle)), Some((at(13), 'd')));
        assert_eq!(bunches.inside(), 1);
    }

    #[test]
    fn the_last_acknowledgement_of_several_passes_and_others_are_left_alone() {
        let mut thin = Thinner::new(ThinSpec { every: 3, hold: Micros::from_millis(10) });
        let ack = |connection, name| Segment { ack_of: Some(connection), ..Segment::new(52, name) };
        thin.on_packet(at(0), ack(1, 'a'));
        thin.on_packet(at(1), ack(2, 'x'));
        thin.on_packet(at(2), ack(1, 'b'));
        thin.on_packet(at(4), ack(1, 'c'));
        let left: Vec<_> = std::iter::from_fn(|| thin.take(at(4))).map(|(at, s)| (at, s.handle)).collect();
        assert_eq!(left, [(at(4), 'c')]);
        assert_eq!((thin.dropped, thin.next()), (2, Some(at(11))));
        assert_eq!(thin.take(at(12)).map(|(at, s)| (at, s.handle)), Some((at(11), 'x')));
        assert_eq!((thin.next(), thin.inside()), (None, 0));
        // Nothing overtakes what waits.
        thin.on_packet(at(20), ack(1, 'd'));
        thin.on_packet(at(21), Segment::new(52, 's'));
        let left: Vec<_> = std::iter::from_fn(|| thin.take(at(21))).map(|(at, s)| (at, s.handle)).collect();
        assert_eq!(left, [(at(21), 'd'), (at(21), 's')]);
    }
}
