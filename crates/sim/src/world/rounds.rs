//! Many connections by rounds: each host does all that is known to happen to it, one host after the other, so that a thousand
//! connections' state passes through the processor's caches once in a round and not once for each packet.
//!
//! Where each packet's departure is known when it enters the path ([`OneWay::knows_departures`]), nothing that is sent later
//! changes it. All receivers go on until the last packet inside has arrived, then all senders, whose acknowledgements are known by
//! then. What they send is sorted by time before it enters the path. This is conservative parallel simulation (Chandy and Misra
//! 1979) on one thread, with the path's queue as lookahead. The result is that of going from event to event: tests compare the two.
//!
//! The observed connection's receiver goes first, because its end is the end of all, and its sender last, because what holds it
//! depends on what else is on its way.

use fullpipe_path::{Departure, Machine as _, OneWay};
use fullpipe_units::Instant;

use super::World;
use crate::{
    flow::{Cause, Flow, Kept, RECEIVER, SENDER, Wires},
    packet::Packet,
};

/// What arrives in a round.
#[derive(Debug, Default)]
struct Inbox {
    /// In the order of time.
    came: Vec<(Instant, Option<Packet>)>,
    /// How long they are.
    lengths: Vec<u32>,
    /// Their places there, one connection's after the other's.
    order: Vec<u32>,
    /// Where each connection's end.
    ends: Vec<u32>,
}

impl Inbox {
    /// Takes out of a way what leaves it until then.
    fn fill(&mut self, wires: &mut Wires, way: usize, until: Instant) {
        self.ends.fill(0);
        self.came.clear();
        self.lengths.clear();
        while let Some(Departure { at, segment, .. }) = wires.ways[way].depart_until(until) {
            self.lengths.push(segment.len);
            let packet = Packet::arrived(segment);
            if let Some(count) = self.ends.get_mut(packet.flow() as usize) {
                *count += 1;
                self.came.push((at, Some(packet)));
            }
        }
        let mut begin = 0;
        for end in &mut self.ends {
            begin += core::mem::replace(end, begin);
        }
        self.order.clear();
        self.order.resize(self.came.len(), 0);
        for (place, (_, packet)) in self.came.iter().enumerate() {
            let number = packet.as_ref().map_or(0, Packet::flow);
            let end = &mut self.ends[number as usize];
            self.order[*end as usize] = place as u32;
            *end += 1;
        }
    }

    /// Those of a connection, in the order of time.
    fn of(&mut self, number: usize) -> Arrivals<'_> {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let order = &self.order[begin as usize..self.ends[number] as usize];
        Arrivals { came: &mut self.came, order }
    }
}

/// What arrives at one host of a connection, and has not happened yet.
struct Arrivals<'a> {
    came: &'a mut [(Instant, Option<Packet>)],
    order: &'a [u32],
}

impl Arrivals<'_> {
    #[inline]
    fn next(&self) -> Option<(Instant, Cause)> {
        let place = *self.order.first()? as usize;
        Some((self.came[place].0, Cause::arrival(place)))
    }

    #[inline]
    fn take(&mut self) -> Option<Packet> {
        let (first, rest) = self.order.split_first()?;
        self.order = rest;
        self.came[*first as usize].1.take()
    }
}

/// What hosts sent in a round, to be put in the order of time.
#[derive(Debug, Default)]
struct Outbox {
    kept: Vec<Kept>,
    order: Vec<(Instant, Cause, u32)>,
    /// How many there are of each part of the round.
    parts: Vec<u32>,
}

impl Outbox {
    /// Puts what was sent after `from` in order: by parts of the round, of which there are as many, and then each part by itself.
    fn sort(&mut self, from: Instant, until: Instant) {
        let count = self.kept.len();
        let span = until.since(from).as_nanos() as u64 + 1;
        let scale = count as f64 / span as f64;
        let part = |at: Instant| (((at.as_nanos() - from.as_nanos()) as f64 * scale) as usize).min(count - 1);
        self.parts.clear();
        self.parts.resize(count, 0);
        self.kept.iter().for_each(|kept| self.parts[part(kept.at)] += 1);
        let mut begin = 0;
        for end in &mut self.parts {
            begin += core::mem::replace(end, begin);
        }
        self.order.clear();
        self.order.resize(count, (until, Cause::default(), 0));
        for (place, kept) in self.kept.iter().enumerate() {
            let end = &mut self.parts[part(kept.at)];
            self.order[*end as usize] = (kept.at, kept.cause, place as u32);
            *end += 1;
        }
        let mut begin = 0;
        for end in &self.parts {
            let end = *end as usize;
            if end - begin > 1 {
                self.order[begin..end].sort_unstable();
            }
            begin = end;
        }
    }
}

/// What happens to one host of a connection until the end of a round.
struct Events<'a> {
    number: u32,
    host: usize,
    arrivals: Arrivals<'a>,
    until: Instant,
    /// What has happened until then.
    clock: Instant,
}

impl Events<'_> {
    /// When and why something happens next, where the host itself has something to do at `timer`.
    #[inline]
    fn next(&self, timer: Instant) -> Option<(Instant, Cause)> {
        let timer = (timer.max(self.clock), Cause::timer(self.number));
        let next = self.arrivals.next().map_or(timer, |arrival| arrival.min(timer));
        Some(next).filter(|(at, _)| *at <= self.until)
    }

    /// That happens; when the host itself has something to do after it.
    #[inline]
    fn happen(&mut self, (at, cause): (Instant, Cause), flow: &mut Flow, wires: &mut Wires) -> Instant {
        (self.clock, wires.cause) = (at, cause);
        if cause.is_timer() {
            flow.on_timeout_of(at, self.host, wires);
        } else if let Some(packet) = self.arrivals.take() {
            flow.hand_over(at, self.host, packet, wires);
        }
        // Hosts whose devices take time go from event to event.
        flow.next_of_free(self.host)
    }
}

/// What the observed connection's sender has to know of the rest of the world, which is ahead of it.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Towards the receiver something is under way until then.
    forward_until: Instant,
    /// Towards the sender something is under way until the second time, from the first on.
    backward: Vec<(Instant, Instant)>,
    /// What the receiver had received, from when on.
    received: Vec<(Instant, u64)>,
}

impl Ahead {
    /// A new round, at whose beginning packets are under way until then.
    fn begin(&mut self, now: Instant, forward_until: Instant, backward_until: Option<Instant>) {
        self.forward_until = forward_until;
        self.backward.clear();
        self.backward.push((now, backward_until.unwrap_or(now)));
        self.received.clear();
    }

    fn last<T: Copy>(list: &[(Instant, T)], now: Instant) -> Option<T> {
        let place = list.partition_point(|(at, _)| *at <= now);
        list.get(place.checked_sub(1)?).map(|(_, what)| *what)
    }

    /// Payload that had arrived in order.
    pub(super) fn received(&self, now: Instant) -> Option<u64> {
        Self::last(&self.received, now)
    }

    /// Whether nothing was under way.
    pub(super) fn is_path_empty(&self, now: Instant) -> bool {
        self.forward_until <= now && Self::last(&self.backward, now).is_none_or(|until| until <= now)
    }
}

/// What is kept from round to round.
pub(super) struct Rounds {
    /// When each connection's hosts have something to do by themselves.
    timers: [Vec<Instant>; 2],
    inbox: Inbox,
    outbox: Outbox,
    /// Bytes that left the path towards the receiver, as the narrowest link counts them: until each sample of the round, and after
    /// the last one.
    passed: Vec<u64>,
    /// When something happened to the observed receiver that is looked at, and what.
    looks: Vec<(Instant, Cause)>,
    /// Handed to the world while the observed sender acts.
    ahead: Ahead,
}

impl World<'_> {
    /// Whether many connections can go on by rounds from here.
    pub(super) fn may_go_by_rounds(&self) -> bool {
        // Until the observed connection is open and its samples begin, there is no more to win than the first round trip.
        self.rounds_from.is_some_and(|least| self.wires.ways[SENDER].packets_inside() >= least)
            && self.connected.is_some()
            && self.sample_at != Instant::FAR_FUTURE
            && self.flows.iter().all(|flow| flow.begins.is_none())
    }

    /// Whether rounds have come to the end.
    pub(super) fn is_over(&self) -> bool {
        self.now >= self.deadline || self.finished.is_some() || self.failure.is_some()
    }

    /// From round to round until the end, or until too few packets are inside the path.
    pub(super) fn go_by_rounds(&mut self) {
        let timers = [SENDER, RECEIVER].map(|host| self.flows.iter_mut().map(|flow| flow.next_of(host)).collect());
        let mut rounds = Rounds {
            timers,
            inbox: Inbox { ends: vec![0; self.flows.len()], ..Inbox::default() },
            outbox: Outbox::default(),
            passed: Vec::new(),
            looks: Vec::new(),
            ahead: Ahead::default(),
        };
        // Far fewer than it took to begin, because going back and forth costs, too.
        let least = self.rounds_from.map_or(0, |least| least / 4);
        while !self.is_over() && self.wires.ways[SENDER].packets_inside() >= least {
            self.round(&mut rounds);
        }
        // Events go on from here.
        self.timers.clear();
        for number in 0..self.flows.len() {
            self.flows[number].queued = Instant::FAR_FUTURE;
            self.plan(number);
        }
        self.wires.ask(SENDER);
        self.wires.ask(RECEIVER);
    }

    fn round(&mut self, rounds: &mut Rounds) {
        let forward = &self.wires.ways[SENDER];
        let inside_until = forward.last_departure().unwrap_or(self.now);
        // Nothing is sent before anything happens, and what is sent then takes its time.
        let timers = rounds.timers.iter().flatten().copied();
        let arrivals = self.wires.ways.iter().filter_map(OneWay::next_timeout);
        let first = timers.chain(arrivals).min().unwrap_or(self.deadline).clamp(self.now, self.deadline);
        let until = inside_until.max(first + forward.min_delay()).min(self.deadline);

        // What is inside arrives.
        rounds.inbox.fill(&mut self.wires, SENDER, until);
        self.wires.kept = Some(core::mem::take(&mut rounds.outbox.kept));
        rounds.ahead.begin(self.now, inside_until, self.wires.ways[RECEIVER].last_departure());
        let until = self.receive_observed(rounds, until);
        self.pass(rounds, until);
        self.others(rounds, RECEIVER, until);

        // Acknowledgements go their way, and arrive.
        self.take_kept(rounds, until);
        for (at, _, place) in &rounds.outbox.order {
            let kept = &mut rounds.outbox.kept[*place as usize];
            if let Some(packet) = kept.packet.take() {
                self.wires.launch(*at, RECEIVER, packet);
            }
            rounds.ahead.backward.push((*at, self.wires.ways[RECEIVER].last_departure().unwrap_or(*at)));
        }
        rounds.outbox.kept.clear();
        rounds.inbox.fill(&mut self.wires, RECEIVER, until);
        self.wires.kept = Some(core::mem::take(&mut rounds.outbox.kept));
        self.others(rounds, SENDER, until);
        self.take_kept(rounds, until);
        self.ahead = Some(core::mem::take(&mut rounds.ahead));
        self.send_observed(rounds, until);
        rounds.ahead = self.ahead.take().unwrap_or_default();
    }

    fn take_kept(&mut self, rounds: &mut Rounds, until: Instant) {
        rounds.outbox.kept = self.wires.kept.take().unwrap_or_default();
        rounds.outbox.sort(self.now, until);
    }

    /// Sums up what has left the path towards the receiver by each sample of the round.
    fn pass(&self, rounds: &mut Rounds, until: Instant) {
        let overhead = self.narrowest.as_ref().map_or(0, |hop| u64::from(hop.overhead));
        let Rounds { inbox, passed, .. } = rounds;
        let (mut sample_at, mut bytes) = (self.sample_at, 0);
        passed.clear();
        for ((at, _), len) in inbox.came.iter().zip(&inbox.lengths) {
            while sample_at < *at {
                passed.push(core::mem::take(&mut bytes));
                sample_at = Instant::from_nanos(sample_at.as_nanos() + self.sample_every);
            }
            if *at > until {
                break;
            }
            bytes += u64::from(*len) + overhead;
        }
        passed.push(bytes);
    }

    /// All that happens to one host of each connection but the observed one.
    fn others(&mut self, rounds: &mut Rounds, host: usize, until: Instant) {
        let Rounds { timers, inbox, .. } = rounds;
        for (number, (flow, timer)) in self.flows.iter_mut().zip(&mut timers[host]).enumerate().skip(1) {
            let arrivals = inbox.of(number);
            if host == SENDER {
                flow.ends[SENDER].touch(arrivals.order.len());
            }
            let mut events = Events { number: number as u32, host, arrivals, until, clock: self.now };
            while let Some(next) = events.next(*timer) {
                *timer = events.happen(next, flow, &mut self.wires);
            }
        }
    }

    /// All that happens to the observed receiver; until when the round lasts, which is the end if that comes.
    fn receive_observed(&mut self, rounds: &mut Rounds, until: Instant) -> Instant {
        let awaits_omitted = self.awaits_omitted();
        let mut sample_at = self.sample_at;
        let Rounds { timers, inbox, ahead, looks, .. } = rounds;
        ahead.received.push((self.now, self.flows[0].received().unwrap_or(0)));
        looks.clear();
        let mut events = Events { number: 0, host: RECEIVER, arrivals: inbox.of(0), until, clock: self.now };
        let mut timer = timers[RECEIVER][0];
        loop {
            let next = events.next(timer);
            // A sample sees all that happened at its moment.
            while sample_at < next.map_or(Instant::FAR_FUTURE, |(at, _)| at) && sample_at <= events.until {
                self.sample_receiver(sample_at);
                sample_at = Instant::from_nanos(sample_at.as_nanos() + self.sample_every);
            }
            let Some((at, cause)) = next else { break };
            if awaits_omitted || cause.is_timer() {
                looks.push((at, cause));
            }
            let flow = &mut self.flows[0];
            timer = events.happen((at, cause), flow, &mut self.wires);
            ahead.received.push((at, flow.received().unwrap_or(0)));
            if flow.reading.ended {
                events.until = at;
            }
        }
        timers[RECEIVER][0] = timer;
        events.until
    }

    /// All that happens to the observed sender, while what the others send enters the path.
    fn send_observed(&mut self, rounds: &mut Rounds, until: Instant) {
        let Rounds { timers, inbox, outbox, passed, looks, .. } = rounds;
        let Outbox { kept, order, .. } = outbox;
        let (mut order, mut passed, mut looks) = (order.iter().peekable(), passed.iter(), looks.iter().peekable());
        let mut events = Events { number: 0, host: SENDER, arrivals: inbox.of(0), until, clock: self.now };
        let mut timer = timers[SENDER][0];
        loop {
            let next = events.next(timer);
            let look = looks.peek().map(|(at, _)| (*at, Cause::timer(0)));
            let soonest = next.into_iter().chain(look).min();
            let (at, cause) = soonest.unwrap_or((until, Cause::timer(u32::MAX)));
            // Samples of before, each with what has left the path by then.
            while self.sample_at < at || soonest.is_none() && self.sample_at <= until {
                let now = self.sample_at;
                self.ledger.delivered(passed.next().copied().unwrap_or(0));
                self.now = now;
                self.sample_sender();
                self.sample_at = Instant::from_nanos(now.as_nanos() + self.sample_every);
            }
            while let Some((at, _, place)) =
                order.next_if(|(sent, by, _)| soonest.is_none() || (*sent, *by) < (at, cause))
            {
                if let Some(packet) = kept[*place as usize].packet.take() {
                    self.wires.launch(*at, SENDER, packet);
                }
            }
            if soonest.is_none() {
                break;
            }
            self.now = at;
            if next == soonest {
                timer = events.happen((at, cause), &mut self.flows[0], &mut self.wires);
            } else if let Some((_, cause)) = looks.next() {
                self.wires.cause = *cause;
            }
            self.observe();
            if self.failure.is_some() {
                // The receiver is ahead of the end.
                let end = self.since_start(at);
                self.receiver_samples.retain(|sample| sample.at_us <= end);
                break;
            }
        }
        passed.for_each(|bytes| self.ledger.delivered(*bytes));
        timers[SENDER][0] = timer;
        kept.clear();
        if self.failure.is_none() {
            self.now = until;
            self.finished = self.flows[0].reading.ended.then_some(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_path::QueueSize;
    use fullpipe_units::{Bytes, Micros, Rate};
    use proptest::prelude::*;

    use super::*;
    use crate::{Application, HostSpec, Reader, Spec, knob};

    fn mbps(rate: u64) -> Rate {
        Rate::from_bps(rate * 1_000_000)
    }

    /// The outcome with rounds from so many packets inside the path on, or without any.
    fn outcome(spec: &Spec, rounds_from: Option<usize>) -> String {
        let mut world = World::new(spec).unwrap();
        assert_eq!(world.rounds_from, Some(spec.flows as usize), "{spec:?}");
        world.rounds_from = rounds_from;
        world.go().unwrap();
        format!("{:?}", world.outcome())
    }

    fn applications() -> impl Strategy<Value = Application> {
        prop_oneof![
            4 => Just(Application::BULK),
            1 => Just(Application::MEASURED),
            1 => (100_u64..20_000, 100_u32..20_000)
                .prop_map(|(kbps, write)| Application::Paced { rate: Rate::from_bps(kbps * 1_000), write }),
            1 => (1_u32..5_000, 1_u32..50_000, 0_u64..20_000).prop_map(|(request, response, think)| {
                Application::Responses { request, response, think: Micros::new(think) }
            }),
            1 => (2_u32..5_000).prop_map(|size| Application::Messages { size }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn rounds_give_what_events_one_after_the_other_give(
            (rate, rtt, queue, loss) in (1_u64..200, 1_u64..100, 3_u32..400, prop::sample::select(vec![0.0, 0.003, 0.05])),
            (flows, seed, capture, series, receiver_opens) in (2_u32..12, any::<u64>(), any::<bool>(), any::<bool>(), any::<bool>()),
            (bytes, omit) in (prop::option::of(1_u64..3_000_000), 0_u64..1_000),
            application in applications(),
            platforms in prop::array::uniform2(prop::sample::select(vec!["linux-6.18", "windows-10", "freebsd-14", "windows-xp"])),
            congestion in prop::sample::select(vec!["cubic", "reno", "bbr"]),
            is_slow in prop::bool::weighted(0.2),
        ) {
            let path = knob::path(mbps(rate), Micros::from_millis(rtt), loss, QueueSize::Packets(queue)).unwrap();
            let [sender, receiver] = platforms.map(|name| HostSpec::named(name).unwrap());
            let mut spec = Spec::new(path, sender, receiver);
            knob::set(&mut spec, "sender.congestion", congestion).unwrap();
            (spec.flows, spec.seed, spec.capture, spec.series) = (flows, seed, capture, series);
            (spec.receiver_opens, spec.bytes, spec.application) = (receiver_opens, bytes.map(Bytes::new), application);
            (spec.omit, spec.time) = (Micros::from_millis(omit), Micros::from_millis(1_500));
            if is_slow {
                spec.reader = Reader::Slow { rate: mbps(3), chunk: 4_000 };
            }
            let by_events = outcome(&spec, None);
            prop_assert_eq!(&outcome(&spec, Some(0)), &by_events);
            prop_assert_eq!(outcome(&spec, Some(flows as usize)), by_events);
        }
    }

    #[test]
    fn a_bulk_transfer_among_others_goes_by_rounds() {
        let path = knob::path(mbps(100), Micros::from_millis(20), 0.0, QueueSize::Packets(100)).unwrap();
        let mut spec = Spec::new(path, HostSpec::named("linux-6.18").unwrap(), HostSpec::named("linux-6.18").unwrap());
        (spec.flows, spec.time) = (5, Micros::from_secs(2));
        let mut world = World::new(&spec).unwrap();
        world.go().unwrap();
        // It would have gone on by events only as long as this is not so.
        assert!(world.may_go_by_rounds());
        assert_eq!(format!("{:?}", world.outcome()), outcome(&spec, None));
        // With cross traffic, or a hop whose departures are not known ahead, the driver goes from event to event.
        knob::set(&mut spec, "path.cross", "1M").unwrap();
        assert_eq!(World::new(&spec).unwrap().rounds_from, None);
        spec.cross = None;
        knob::set(&mut spec, "path.aggregate", "2ms").unwrap();
        assert_eq!(World::new(&spec).unwrap().rounds_from, None);
    }
}
