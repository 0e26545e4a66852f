//! A link: a queue, a shaper where there is one, and a serialiser.

use fullpipe_units::{Instant, Rate};

use crate::{Policer, PolicerSpec, Queue, QueueStats, RateTrace, Segment, trace::TraceClock};

/// A queue and the serialiser that empties it, at a fixed rate or at a recorded one, or as slowly as a shaper lets it.
///
/// It keeps nothing that it has serialised: `out` gets each segment with the time at which its last bit left.
#[derive(Debug)]
pub(crate) struct Link<T> {
    clock: Clock,
    overhead: u32,
    shaper: Option<Policer>,
    queue: Queue<T>,
    /// What is being serialised, and when its last bit leaves.
    in_service: Option<(Instant, Segment<T>)>,
}

/// How long packets take.
#[derive(Clone, Debug)]
enum Clock {
    Steady(SerialClock),
    Recorded(TraceClock),
}

/// Turns bits into nanoseconds without drift: what a division leaves over goes into the next packet.
#[derive(Clone, Debug)]
pub(crate) struct SerialClock {
    bps: u64,
    /// Below `bps`, in units of `1 / bps` nanoseconds.
    remainder: u64,
    /// Most packets are as long as the one before them, and a division takes longer than all else here.
    last: Taken,
}

/// How long so many bytes take.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    bytes: u64,
    nanos: u64,
    /// The rest, in units of `1 / bps` nanoseconds.
    rest: u64,
}

impl SerialClock {
    /// That of a link of `rate` (above zero; zero counts as 1 bit/s).
    pub(crate) fn new(rate: Rate) -> Self {
        Self { bps: rate.bps().max(1), remainder: 0, last: Taken::default() }
    }

    /// The link falls idle.
    #[inline]
    pub(crate) const fn rest(&mut self) {
        self.remainder = 0;
    }

    /// How many nanoseconds `bytes` take, given what the packets before them left over.
    #[inline]
    pub(crate) fn time_for(&mut self, bytes: u64) -> u64 {
        if bytes != self.last.bytes {
            // 2^32 bytes would need 65 bits here; packets are far below, and beyond the product saturates.
            let scaled = (bytes * 8).saturating_mul(1_000_000_000);
            self.last = Taken { bytes, nanos: scaled / self.bps, rest: scaled % self.bps };
        }
        let Taken { nanos, rest, .. } = self.last;
        let missing = self.bps - self.remainder;
        let is_one_more = rest >= missing;
        self.remainder = if is_one_more { rest - missing } else { self.remainder + rest };
        nanos + u64::from(is_one_more)
    }
}

impl<T> Link<T> {
    /// An idle link of `rate` that adds `overhead` bytes to each packet.
    pub(crate) fn new(rate: Rate, overhead: u32, queue: Queue<T>) -> Self {
        Self { clock: Clock::Steady(SerialClock::new(rate)), overhead, shaper: None, queue, in_service: None }
    }

    /// An idle link whose rate changes as it was recorded.
    pub(crate) fn recorded(trace: RateTrace, overhead: u32, queue: Queue<T>) -> Self {
        let clock = Clock::Recorded(TraceClock::new(trace));
        Self { clock, overhead, shaper: None, queue, in_service: None }
    }

    /// The same with a shaper before the serialiser.
    pub(crate) fn with_shaper(self, spec: Option<PolicerSpec>) -> Self {
        Self { shaper: spec.map(Policer::new), ..self }
    }

    /// The queue's counters.
    pub(crate) fn stats(&self) -> QueueStats {
        self.queue.stats()
    }

    /// Packets that wait or are being serialised.
    pub(crate) fn inside(&self) -> usize {
        self.queue.len() + usize::from(self.in_service.is_some())
    }

    /// When the last bit of what is being serialised leaves.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.in_service.as_ref().map(|(done, _)| *done)
    }

    /// Does everything that was due until `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, mut out: impl FnMut(Instant, Segment<T>)) {
        while let Some((done, segment)) = self.in_service.take_if(|(done, _)| *done <= now) {
            self.start(done);
            out(done, segment);
        }
    }

    /// A segment arrives; what was due until then has been done ([`advance`](Self::advance)).
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        if self.in_service.is_some() {
            self.queue.push(now, segment).ok();
        } else if let Some(segment) = self.queue.pass(now, segment) {
            self.serve(now, segment);
        }
    }

    /// Begins with the next packet at `start`, right after the one before it.
    #[inline]
    fn start(&mut self, start: Instant) {
        if let Some(segment) = self.queue.pop(start) {
            self.serve(start, segment);
        } else {
            // The link falls idle; the fraction of a nanosecond belongs to the busy period that ends.
            if let Clock::Steady(clock) = &mut self.clock {
                clock.rest();
            }
        }
    }

    #[inline]
    fn serve(&mut self, start: Instant, segment: Segment<T>) {
        let length = segment.len.saturating_add(self.overhead);
        let start = self.shaper.as_mut().map_or(start, |shaper| shaper.passes_at(start, length));
        let done = match &mut self.clock {
            Clock::Steady(clock) => {
                Instant::from_nanos(start.as_nanos().saturating_add(clock.time_for(u64::from(length))))
            }
            Clock::Recorded(clock) => clock.ends(start, u64::from(length)),
        };
        self.in_service = Some((done, segment));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_take_what_their_bits_take_with_nothing_lost_between_them(
            bps in prop_oneof![1_u64..10_000, 1_u64..1 << 40, Just(u64::MAX)],
            packets in prop::collection::vec((prop_oneof![Just(1_500_u64), Just(52), 0_u64..70_000], any::<bool>()), 1..60),
        ) {
            let mut clock = SerialClock::new(Rate::from_bps(bps));
            let (mut bits, mut nanos) = (0_u128, 0_u128);
            for (bytes, rests) in packets {
                if rests {
                    clock.rest();
                    (bits, nanos) = (0, 0);
                }
                bits += u128::from(bytes) * 8;
                nanos += u128::from(clock.time_for(bytes));
                prop_assert_eq!(nanos, bits * 1_000_000_000 / u128::from(bps));
            }
        }
    }
}
