//! One hop: MTU, policer, thinning of acknowledgements, aggregation, queue, shaper, link, loss, duplication and the wire, in
//! this order.

use core::time::Duration;

use fullpipe_units::{Instant, Micros, bdp};

use crate::{
    DelayLine, Departure, Discipline, Fate, HopSpec, HopStats, LossProcess, Machine, MtuSpec, OversizeVerdict, Policer,
    Queue, QueueLimit, QueueSize, Random, Segment,
    gather::{Aggregator, Thinner},
    link::{Link, SerialClock},
    pipe::Pipe,
};

/// One hop in one direction.
#[derive(Debug)]
pub struct Hop<T> {
    index: usize,
    /// All there is, where the hop is plain; the stages below are not there then.
    pipe: Option<Pipe<T>>,
    /// Nothing is in front of the link.
    only_queues: bool,
    mtu: Option<MtuSpec>,
    policer: Option<Policer>,
    thinner: Option<Thinner<T>>,
    aggregator: Option<Aggregator<T>>,
    link: Option<Link<T>>,
    exit: Exit<T>,
    /// The arrival that was too big, for the chain to take back at once.
    refused: Option<Departure<T>>,
    counted: HopStats,
}

/// What is behind the link: losses, duplicates, and the wire.
#[derive(Debug)]
struct Exit<T> {
    loss: Option<LossProcess>,
    duplicate: Option<(f64, Random)>,
    wire: DelayLine<T>,
    lost: u64,
    duplicated: u64,
}

impl<T: Clone> Exit<T> {
    /// A segment whose last bit left the link at `at`.
    #[inline]
    fn enter(&mut self, at: Instant, segment: Segment<T>) {
        if self.loss.as_mut().is_some_and(LossProcess::loses) {
            self.lost += 1;
            return;
        }
        if self.duplicate.as_mut().is_some_and(|(probability, random)| random.chance(*probability)) {
            self.duplicated += 1;
            self.wire.on_packet(at, segment.clone());
        }
        self.wire.on_packet(at, segment);
    }
}

/// What a hop has to know about the path that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its number in its direction.
    pub(crate) index: usize,
    /// The path's round-trip time, for a queue measured in bandwidth-delay products.
    pub(crate) rtt: Micros,
    /// The largest packet that reaches it, for the least size of such a queue.
    pub(crate) mtu: u32,
    /// The seed of this hop in this direction.
    pub(crate) seed: u64,
}

impl<T: Clone> Hop<T> {
    pub(crate) fn new(spec: &HopSpec, place: Place) -> Self {
        let stream = |name| Random::seed_of(place.seed, name);
        let pipe = spec.rate.filter(|_| is_plain(spec)).map(|rate| {
            let limit = limit(spec, place.rtt, place.mtu);
            let loss = spec.loss.map(|loss| LossProcess::new(loss, stream("loss")));
            Pipe::new(SerialClock::new(rate), spec.overhead, limit, spec.delay.into(), loss)
        });
        Self::in_stages(spec, place, pipe)
    }

    /// The hop with a stage for each thing that it does, unless `pipe` does it all.
    fn in_stages(spec: &HopSpec, place: Place, pipe: Option<Pipe<T>>) -> Self {
        let stream = |name| Random::seed_of(place.seed, name);
        let is_in_stages = pipe.is_none();
        let link = spec.rate.filter(|_| is_in_stages).map(|rate| {
            let limit = limit(spec, place.rtt, place.mtu);
            let queue = Queue::new(limit, spec.queue.discipline, stream("red"));
            let link = match &spec.trace {
                Some(trace) => Link::recorded(trace.clone(), spec.overhead, queue),
                None => Link::new(rate, spec.overhead, queue),
            };
            link.with_shaper(spec.shape)
        });
        Self {
            index: place.index,
            pipe,
            only_queues: spec.mtu.is_none()
                && spec.police.is_none()
                && spec.thin_acks.is_none()
                && spec.aggregate.is_none(),
            mtu: spec.mtu,
            policer: spec.police.map(Policer::new),
            thinner: spec.thin_acks.map(Thinner::new),
            aggregator: spec.aggregate.map(Aggregator::new),
            link,
            exit: Exit {
                loss: spec.loss.filter(|_| is_in_stages).map(|loss| LossProcess::new(loss, stream("loss"))),
                duplicate: (spec.duplicate > 0.0).then(|| (spec.duplicate, Random::new(stream("duplicate")))),
                wire: DelayLine::new(
                    spec.delay,
                    spec.jitter.map(|jitter| (jitter, stream("jitter"))),
                    spec.reorder.map(|reorder| (reorder, stream("reorder"))),
                ),
                lost: 0,
                duplicated: 0,
            },
            refused: None,
            counted: HopStats::default(),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> HopStats {
        if let Some(pipe) = &self.pipe {
            return HopStats { inside: pipe.inside() as u64, lost: pipe.lost, queue: pipe.stats(), ..self.counted };
        }
        let link = self.link.as_ref();
        HopStats {
            inside: (link.map_or(0, Link::inside) + self.gathered() + self.exit.wire.inside()) as u64,
            lost: self.exit.lost,
            duplicated: self.exit.duplicated,
            thinned: self.thinner.as_ref().map_or(0, |thinner| thinner.dropped),
            queue: link.map(Link::stats).unwrap_or_default(),
            reordered: self.exit.wire.reordered(),
            ..self.counted
        }
    }

    /// Draws for packets of others that went before: see [`LossProcess::pass`].
    pub(crate) fn pass(&mut self, packets: u32) {
        let of_pipe = self.pipe.as_mut().and_then(|pipe| pipe.loss.as_mut());
        if let Some(loss) = of_pipe.or(self.exit.loss.as_mut()) {
            loss.pass(packets);
        }
    }

    /// The least time that a segment spends here, leaving serialisation aside.
    pub(crate) fn min_delay(&self) -> Duration {
        self.pipe.as_ref().map_or_else(|| self.exit.wire.min_delay(), Pipe::min_delay)
    }

    /// Whether a segment may leave here towards its sender, at the moment when it arrives.
    pub(crate) fn answers(&self) -> bool {
        self.mtu.is_some_and(|mtu| mtu.oversize == OversizeVerdict::TooBig)
    }

    /// Packets in its line, the lost ones among them, where departures are known; else 0.
    pub(crate) fn packets_inside(&self) -> usize {
        self.pipe.as_ref().map_or(0, Pipe::len)
    }

    /// When the last packet inside leaves, where that is known.
    pub(crate) fn last_departure(&self) -> Option<Instant> {
        self.pipe.as_ref()?.last_departure()
    }

    /// Whether each packet's departure is known when it enters.
    pub(crate) const fn knows_departures(&self) -> bool {
        self.pipe.is_some()
    }

    /// The segment that just arrived, if it was refused and its sender is to be notified.
    pub(crate) fn take_refused(&mut self) -> Option<Departure<T>> {
        self.refused.take()
    }

    fn gathered(&self) -> usize {
        let thinned = self.thinner.as_ref().map_or(0, Thinner::inside);
        thinned + self.aggregator.as_ref().map_or(0, Aggregator::inside)
    }

    /// Whether anything in front of the link holds packets back.
    const fn gathers(&self) -> bool {
        self.thinner.is_some() || self.aggregator.is_some()
    }

    /// Moves what was held back until `now` on to the link.
    fn advance(&mut self, now: Instant) {
        while let Some((at, segment)) = self.thinner.as_mut().and_then(|thinner| thinner.take(now)) {
            match &mut self.aggregator {
                Some(aggregator) => aggregator.on_packet(at, segment),
                None => self.enter_link(at, segment),
            }
        }
        while let Some((at, segment)) = self.aggregator.as_mut().and_then(|aggregator| aggregator.take(now)) {
            self.enter_link(at, segment);
        }
    }

    /// Does everything in front of the wire that was due until `now`.
    #[inline(never)]
    fn catch_up(&mut self, now: Instant) {
        if self.gathers() {
            self.advance(now);
        }
        if let Some(link) = &mut self.link {
            link.advance(now, |done, segment| self.exit.enter(done, segment));
        }
    }

    #[inline]
    fn enter_link(&mut self, at: Instant, segment: Segment<T>) {
        match &mut self.link {
            Some(link) => {
                link.advance(at, |done, segment| self.exit.enter(done, segment));
                link.on_packet(at, segment);
            }
            None => self.exit.enter(at, segment),
        }
    }
}

/// Whether a hop of some rate is what most are: see [`pipe`](crate::pipe).
fn is_plain(spec: &HopSpec) -> bool {
    let HopSpec { mtu, police, thin_acks, aggregate, trace, shape, jitter, reorder, duplicate, queue, .. } = spec;
    let in_front = mtu.is_some() || police.is_some() || thin_acks.is_some() || aggregate.is_some();
    let behind = jitter.is_some() || reorder.is_some() || *duplicate > 0.0;
    let is_steady = trace.is_none() && shape.is_none() && matches!(queue.discipline, Discipline::DropTail);
    is_steady && !in_front && !behind
}

/// The queue's limit in packets or bytes.
pub(crate) fn limit(spec: &HopSpec, rtt: Micros, mtu: u32) -> QueueLimit {
    let rate = spec.drain().unwrap_or_default();
    let mtu = u64::from(mtu);
    match spec.queue.size {
        QueueSize::Packets(packets) => QueueLimit::Packets(packets.into()),
        QueueSize::Bytes(bytes) => QueueLimit::Bytes(bytes.get()),
        QueueSize::Bdp { multiple, at_least } => {
            // `as` saturates, and a queue of 2^53 bytes need not be exact.
            let bytes = (bdp(rate, rtt).get() as f64 * multiple) as u64;
            QueueLimit::Bytes(bytes.max(u64::from(at_least) * mtu).max(mtu))
        }
        QueueSize::Time(span) => QueueLimit::Bytes(bdp(rate, span).get().max(mtu)),
    }
}

impl<T: Clone> Machine<T> for Hop<T> {
    #[inline]
    fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        self.counted.arrived += 1;
        if let Some(pipe) = &mut self.pipe {
            return pipe.on_packet(now, segment);
        }
        if self.only_queues {
            return self.enter_link(now, segment);
        }
        if let Some(mtu) = self.mtu.filter(|mtu| segment.len > mtu.bytes) {
            match mtu.oversize {
                OversizeVerdict::Silent => self.counted.black_holed += 1,
                OversizeVerdict::TooBig => {
                    self.counted.too_big += 1;
                    let fate = Fate::TooBig { mtu: mtu.bytes, hop: self.index };
                    self.refused = Some(Departure { at: now, segment, fate });
                }
            }
            return;
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, segment.len)) {
            self.counted.policed += 1;
            return;
        }
        if self.gathers() {
            self.advance(now);
            if let Some(thinner) = &mut self.thinner {
                thinner.on_packet(now, segment);
            } else if let Some(aggregator) = &mut self.aggregator {
                aggregator.on_packet(now, segment);
            }
            return self.advance(now);
        }
        self.enter_link(now, segment);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>> {
        let departure = match &mut self.pipe {
            Some(pipe) => pipe.poll_transmit(now),
            None => {
                if !self.exit.wire.has_due(now) {
                    self.catch_up(now);
                }
                self.exit.wire.poll_transmit(now)
            }
        }?;
        self.counted.delivered += 1;
        self.counted.delivered_bytes += u64::from(departure.segment.len);
        Some(departure)
    }

    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        if let Some(pipe) = &self.pipe {
            return pipe.next_timeout();
        }
        let wire = &self.exit.wire;
        if let Some(front) = wire.front_of_all() {
            return Some(front);
        }
        let link = self.link.as_ref().and_then(Link::next).map(|at| at + wire.min_delay());
        let next = match (link, wire.next_timeout()) {
            (Some(link), Some(wire)) => Some(link.min(wire)),
            (link, wire) => link.or(wire),
        };
        if !self.gathers() {
            return next;
        }
        let thinner = self.thinner.as_ref().and_then(Thinner::next);
        let aggregator = self.aggregator.as_ref().and_then(Aggregator::next);
        let held = thinner.into_iter().chain(aggregator).min().map(|at| at + wire.min_delay());
        next.into_iter().chain(held).min()
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::{Bytes, Rate};
    use proptest::prelude::*;

    use super::*;
    use crate::{LossSpec, QueueSpec, QueueStats};

    fn spec(rate_mbps: u64, delay_us: u64, size: QueueSize, loss: f64) -> HopSpec {
        HopSpec {
            rate: Some(Rate::from_bps(rate_mbps * 999_999)),
            overhead: 38,
            queue: QueueSpec { size, discipline: Discipline::DropTail },
            delay: Micros::new(delay_us),
            loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)),
            ..HopSpec::default()
        }
    }

    proptest! {
        #[test]
        fn a_plain_hop_does_in_one_line_what_others_do_in_stages(
            steps in prop::collection::vec((0_u64..200_000, 40_u32..1_500, any::<bool>()), 1..300),
            rate in 1_u64..1_000,
            delay in 0_u64..2_000,
            packets in any::<bool>(),
            loss in prop::sample::select(vec![0.0, 0.3]),
        ) {
            let size = if packets { QueueSize::Packets(5) } else { QueueSize::Bytes(Bytes::new(4_000)) };
            let (spec, rtt) = (spec(rate, delay, size, loss), Micros::new(2 * delay));
            let place = Place { index: 0, rtt, mtu: 1_500, seed: rate };
            let (mut line, mut stages) = (Hop::new(&spec, place), Hop::in_stages(&spec, place, None));
            prop_assert!(line.pipe.is_some());
            let mut now = 1_000_000;
            for (number, (gap, len, arrives)) in steps.into_iter().enumerate() {
                now += gap;
                let at = Instant::from_nanos(now);
                if arrives {
                    line.on_packet(at, Segment::new(len, number));
                    stages.on_packet(at, Segment::new(len, number));
                } else {
                    prop_assert_eq!(line.poll_transmit(at), stages.poll_transmit(at));
                }
                let (of_line, of_stages) = (line.next_timeout(), stages.next_timeout());
                // A packet that is lost keeps its place until it would have left.
                let is_sooner = loss > 0.0 && of_line.is_some_and(|line| of_stages.is_none_or(|stages| line < stages));
                prop_assert!(is_sooner || of_line == of_stages, "{:?}, {:?}", of_line, of_stages);
                // Waits and losses are counted when a packet enters; all else when it happens.
                let [of_line, of_stages] = [line.stats(), stages.stats()];
                prop_assert_eq!(of_line.inside + of_line.lost, of_stages.inside + of_stages.lost);
                prop_assert!(of_line.lost >= of_stages.lost && of_line.queue.dequeued >= of_stages.queue.dequeued);
                let HopStats { queue, .. } = of_stages;
                let counted_when_it_happens = HopStats {
                    inside: of_line.inside,
                    lost: of_line.lost,
                    queue: QueueStats {
                        dequeued: of_line.queue.dequeued,
                        total_wait: of_line.queue.total_wait,
                        max_wait: of_line.queue.max_wait,
                        ..queue
                    },
                    ..of_stages
                };
                prop_assert_eq!(of_line, counted_when_it_happens);
            }
            let end = Instant::from_nanos(now + 60_000_000_000);
            loop {
                let left = line.poll_transmit(end);
                prop_assert_eq!(&left, &stages.poll_transmit(end));
                if left.is_none() {
                    break;
                }
            }
            prop_assert_eq!(line.stats(), stages.stats());
        }
    }
}
