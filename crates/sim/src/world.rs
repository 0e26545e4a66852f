//! The virtual-time driver: two hosts, a path both ways, two applications, and one clock that moves from event to event.

mod rounds;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use core::time::Duration;

use fullpipe_diagnose::{Buffer, End as EndFacts, ReceiverSample, RttSummary, SenderSample, Source, Transfer};
use fullpipe_path::{Departure, Direction, Fate, HopSpec, Machine as _, OneWay, Random};
use fullpipe_tcp::socket::{Counts, Failure, Info};
use fullpipe_units::{Bytes, Instant, Micros, Rate};

use rounds::Ahead;

use crate::{
    Outcome,
    end::Said,
    flow::{Flow, OBSERVED, RECEIVER, SENDER, Wires},
    outcome::Outcome as Done,
    packet::Packet,
    samples,
    spec::{Cross, HostSpec, SimError, Spec},
    truth::{Held, Ledger},
};

/// When a simulation begins: a clock at zero would make "never" and "at once" the same.
const BEGIN: Instant = Instant::from_nanos(1_000_000_000);
/// A connection that is not there by then never is.
const HANDSHAKE_NANOS: u64 = 240_000_000_000;
/// The most samples of a timeline, and the shortest and longest pause between two.
const MOST_SAMPLES: u64 = 4_000;
const SHORTEST_NANOS: u64 = 1_000_000;
const LONGEST_NANOS: u64 = 100_000_000;

/// Carries out a simulation.
///
/// # Errors
/// The connection can't be opened with these settings.
pub fn run(spec: &Spec) -> Result<Outcome, SimError> {
    let mut world = World::new(spec)?;
    world.go()?;
    Ok(world.outcome())
}

struct World<'s> {
    spec: &'s Spec,
    now: Instant,
    /// The first is the observed one.
    flows: Vec<Flow>,
    /// When connections have something to do, and their numbers. An entry may be older than what its connection plans now:
    /// a timer that was put off is asked again when the old time comes, so that an acknowledgement costs nothing here.
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    wires: Wires,
    cross: Option<CrossTraffic>,
    ledger: Ledger,
    /// The narrowest hop towards the receiver.
    narrowest: Option<HopSpec>,
    connected: Option<Instant>,
    /// When it is over.
    deadline: Instant,
    handshake: Option<Micros>,
    finished: Option<Instant>,
    failure: Option<Failure>,
    sample_at: Instant,
    sample_every: u64,
    sender_samples: Vec<SenderSample>,
    receiver_samples: Vec<ReceiverSample>,
    /// What was known to be delivered, by number or by SACK, at each sample of the last round trip.
    delivered: VecDeque<(Instant, u64)>,
    /// Received when the omitted time was over.
    omitted: Option<u64>,
    memory: [u64; 2],
    last: [Said; 2],
    /// From how many packets inside the path on connections act by rounds; `None` where they never do.
    rounds_from: Option<usize>,
    /// What the rest of the world does meanwhile, where it is ahead.
    ahead: Option<Ahead>,
}

/// Packets of nobody who is simulated.
struct CrossTraffic {
    spec: Cross,
    next: Instant,
    random: Random,
}

impl CrossTraffic {
    /// Packets come after between nothing and twice the mean, each as likely.
    fn plan(&mut self) {
        let mean = crate::application::nanos(self.spec.packet.into(), self.spec.rate) as f64;
        let gap = (2.0 * mean * self.random.unit()) as u64;
        self.next = Instant::from_nanos(self.next.as_nanos().saturating_add(gap));
    }
}

impl<'s> World<'s> {
    fn new(spec: &'s Spec) -> Result<Self, SimError> {
        let path = &spec.path;
        let key = |host: u64| {
            let seed = Random::seed_of(spec.seed.wrapping_add(host), "host").to_le_bytes();
            std::array::from_fn(|at| seed[at % 8])
        };
        let way = |direction: Direction| {
            let seed = Random::seed_of(spec.seed, direction.as_str());
            let mut way = OneWay::new(&path.hops(direction), path.rtt(), path.path_mtu(), seed);
            way.pass(spec.went_before[usize::from(direction == Direction::BToA)]);
            way
        };
        let round_trip = path.rtt().get() * 1_000;
        // The others open one after the other within the first round trip, so that they don't act in step.
        let count = u64::from(spec.flows.max(1));
        let flow = |number: u64| {
            let begins = Instant::from_nanos(BEGIN.as_nanos() + round_trip * number / count);
            Flow::new(spec, number as u32, [key(2 * number), key(2 * number + 1)], begins)
        };
        let slowest = path.hops(Direction::AToB).into_iter().filter(|hop| hop.rate.is_some());
        let total = (spec.time + Micros::from_millis(1)).get() * 1_000;
        let flows: Vec<Flow> = (0..count).map(flow).collect();
        let ways = [way(Direction::AToB), way(Direction::BToA)];
        let is_known = ways.iter().all(|way| way.knows_departures() && way.min_delay() > Duration::ZERO);
        let is_alone = spec.cross.is_none() && flows.iter().all(Flow::takes_no_time);
        Ok(Self {
            now: BEGIN,
            // With less than a packet for each connection, a round costs more than its events do.
            rounds_from: Some(flows.len()).filter(|count| *count > 1 && is_known && is_alone),
            ahead: None,
            flows,
            timers: BinaryHeap::new(),
            wires: Wires::new(ways, spec.capture),
            cross: spec.cross.map(|cross| CrossTraffic {
                spec: cross,
                next: BEGIN,
                random: Random::new(Random::seed_of(spec.seed, "cross")),
            }),
            ledger: Ledger::new(),
            narrowest: slowest.min_by_key(|hop| hop.drain()),
            connected: None,
            deadline: Instant::from_nanos(BEGIN.as_nanos() + HANDSHAKE_NANOS),
            handshake: None,
            finished: None,
            failure: None,
            sample_at: Instant::FAR_FUTURE,
            sample_every: (round_trip / 4).clamp(SHORTEST_NANOS, LONGEST_NANOS).max(total / MOST_SAMPLES),
            sender_samples: Vec::new(),
            receiver_samples: Vec::new(),
            delivered: VecDeque::new(),
            omitted: None,
            memory: [0; 2],
            last: [None; 2],
            spec,
        })
    }

    /// From event to event until the end.
    fn go(&mut self) -> Result<(), SimError> {
        self.flows[0].open(self.now, &mut self.wires)?;
        for number in 0..self.flows.len() {
            self.plan(number);
        }
        loop {
            if self.may_go_by_rounds() {
                self.go_by_rounds();
                if self.is_over() {
                    break;
                }
            }
            let at = self.next_event();
            if at > self.deadline {
                self.now = self.deadline;
                break;
            }
            self.now = self.now.max(at);
            self.step()?;
            if self.flows[0].reading.ended || self.failure.is_some() {
                self.finished = self.flows[0].reading.ended.then_some(self.now);
                break;
            }
        }
        self.read_sockets();
        if self.spec.series && self.wires.started.is_some() {
            self.sample_sender();
            self.sample_receiver(self.now);
        }
        Ok(())
    }

    fn next_event(&self) -> Instant {
        let timer = self.timers.peek().map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at);
        let cross = self.cross.as_ref().map_or(Instant::FAR_FUTURE, |cross| cross.next);
        self.wires.due[0].min(self.wires.due[1]).min(self.sample_at).min(timer).min(cross)
    }

    /// Sees to it that a connection is asked no later than it has something to do.
    fn plan(&mut self, number: usize) {
        let next = self.flows[number].next();
        self.plan_by(number, next);
    }

    /// The same, where this is all that may have become sooner.
    fn plan_by(&mut self, number: usize, next: Instant) {
        let flow = &mut self.flows[number];
        if next < flow.queued {
            flow.queued = next;
            self.timers.push(Reverse((next, number as u32)));
        }
    }

    fn step(&mut self) -> Result<(), SimError> {
        for way in [SENDER, RECEIVER] {
            while self.wires.due[way] <= self.now {
                if let Some(departure) = self.wires.ways[way].poll_transmit(self.now) {
                    self.arrived(way, departure);
                }
                self.wires.ask(way);
            }
        }
        while let Some(Reverse((at, number))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= self.now) {
            self.timers.pop();
            let flow = &mut self.flows[number as usize];
            // An entry that a sooner one has overtaken.
            if at != flow.queued {
                continue;
            }
            flow.queued = Instant::FAR_FUTURE;
            if flow.next() <= self.now {
                flow.on_timeout(self.now, &mut self.wires)?;
                if number == OBSERVED {
                    self.observe();
                }
            }
            self.plan(number as usize);
        }
        if self.cross.as_ref().is_some_and(|cross| cross.next <= self.now) {
            self.cross();
        }
        if self.wires.started.is_some() && self.sample_at == Instant::FAR_FUTURE {
            self.sample_at = self.now;
        }
        if self.sample_at <= self.now {
            self.sample_sender();
            self.sample_receiver(self.now);
            self.sample_at = Instant::from_nanos(self.now.as_nanos() + self.sample_every);
        }
        Ok(())
    }

    fn arrived(&mut self, way: usize, departure: Departure<Packet>) {
        if way == SENDER && departure.fate == Fate::Delivered {
            let overhead = self.narrowest.as_ref().map_or(0, |hop| hop.overhead.into());
            self.ledger.delivered(u64::from(departure.segment.len) + overhead);
        }
        let packet = Packet::arrived(departure.segment);
        let number = packet.flow();
        let Some(flow) = self.flows.get_mut(number as usize) else { return self.wires.recycle(packet) };
        let (host, packet) = match departure.fate {
            Fate::Delivered => (1 - way, packet),
            Fate::TooBig { mtu, .. } => {
                let refused = packet.whole(&flow.known(way));
                (way, Packet::Whole(Box::new(refused.too_big(mtu, &flow.ends[way].stack.config().profile.layout))))
            }
        };
        flow.hand_over(self.now, host, packet, &mut self.wires);
        let next = flow.next_of(host);
        if number == OBSERVED {
            // What arrives at a receiver that takes no time leaves its sender as it was.
            let is_of_sender = host == SENDER || !flow.takes_no_time();
            if self.connected.is_none() {
                self.see_connection();
            }
            if is_of_sender || self.awaits_omitted() {
                self.observe();
            }
        }
        self.plan_by(number as usize, next);
    }

    fn cross(&mut self) {
        let Some(cross) = &mut self.cross else { return };
        while cross.next <= self.now {
            let mut packet = self.wires.blank();
            packet.set_cross(cross.spec.packet);
            self.wires.launch(self.now, SENDER, Packet::Whole(packet));
            cross.plan();
        }
        self.wires.ask(SENDER);
    }

    /// Notes the moment when both ends are connected.
    fn see_connection(&mut self) {
        let is_open = |info: Option<Info>| info.is_some_and(|info| info.state.is_synchronized());
        let flow = &mut self.flows[0];
        if self.handshake.is_none() && is_open(flow.ends[flow.opens].info()) {
            self.handshake = Some(Micros::new(self.now.since(BEGIN).as_micros() as u64));
        }
        if is_open(flow.ends[0].info()) && is_open(flow.ends[1].info()) {
            self.connected = Some(self.now);
            self.deadline = self.now + self.spec.time.into();
        }
    }

    /// Whether what is received is still to be left out.
    fn awaits_omitted(&self) -> bool {
        self.omitted.is_none() && self.spec.omit > Micros::ZERO
    }

    /// Who holds the sender now.
    fn observe(&mut self) {
        let Some(started) = self.wires.started else { return };
        let Some(id) = self.flows[0].ends[SENDER].socket else { return };
        let Some(socket) = self.flows[0].ends[SENDER].stack.socket(id) else { return };
        self.failure = self.failure.or_else(|| socket.failure());
        let info = socket.info();
        let held_sent = socket.buffers().unacknowledged;
        let sent = socket.counts().bytes_sent;
        let state = self.held(&info, held_sent, sent);
        self.ledger.set(self.now, state);
        self.flows[0].writer.note_held(&info);
        self.ledger.count(self.now, self.flows[0].writer.counts_as_held);
        if self.awaits_omitted() {
            let omit_until = started + self.spec.omit.into();
            if self.now >= omit_until {
                self.omitted = self.received();
            }
        }
    }

    fn held(&mut self, info: &Info, held_sent: u16, sent: u64) -> Held {
        let is_answering = self.is_answering();
        let flow = &mut self.flows[0];
        // With others on the path, what is on its way can't be distinguished from theirs.
        let is_empty = match &self.ahead {
            None => self.wires.due == [Instant::FAR_FUTURE; 2],
            // What is just arriving is still on the path, as it is when events are handled one after the other.
            Some(ahead) => {
                let is_timer = self.wires.cause.is_timer();
                is_timer && self.wires.ways[SENDER].last_departure().is_none() && ahead.is_path_empty(self.now)
            }
        };
        let is_quiet = is_empty && flow.is_quiet(self.now);
        if is_quiet && info.outstanding > 0 && (info.unsent > 0 || flow.writer.blocked || is_answering) {
            let arrived = self.received() == Some(sent);
            let closed = info.snd_wnd < info.mss && info.outstanding == 0;
            return match (arrived, closed) {
                (_, true) => Held::ReceiveWindow,
                (true, _) => Held::AckDelay,
                (false, _) => Held::Timeout,
            };
        }
        if info.unsent == 0 {
            let waits = info.outstanding > 0 && is_answering;
            return if flow.writer.blocked || waits { Held::SendBuffer } else { Held::Application };
        }
        let need = info.mss.min(info.unsent);
        let room = info.snd_wnd.saturating_sub(info.outstanding);
        let credit = info.cwnd.saturating_sub(info.in_flight);
        if flow.ends[SENDER].unacknowledged.is_some_and(|budget| held_sent >= budget) {
            Held::SendBuffer
        } else if room < need && room <= credit {
            Held::ReceiveWindow
        } else if credit < need || room < need {
            Held::Congestion
        } else if flow.ends[SENDER].device.is_busy(self.now) {
            Held::Device
        } else if flow.writer.blocked {
            Held::SendBuffer
        } else if flow.writer.awaits_answer() {
            // A small segment waits for an acknowledgement before the application can go on.
            Held::AckDelay
        } else {
            Held::Application
        }
    }

    /// Payload of the observed connection that has arrived in order.
    fn received(&mut self) -> Option<u64> {
        match &self.ahead {
            None => self.flows[0].received(),
            Some(ahead) => ahead.received(self.now),
        }
    }

    /// Whether the next bytes depend on an answer that is due.
    fn is_answering(&self) -> bool {
        self.spec.application == crate::Application::Waits && !self.flows[0].writer.is_done()
    }

    fn read_sockets(&mut self) {
        for host in [SENDER, RECEIVER] {
            self.last[host] = self.flows[0].ends[host].said().or(self.last[host]);
        }
    }

    /// When that is on the timeline.
    fn since_start(&self, now: Instant) -> Micros {
        Micros::new(self.wires.started.map_or(0, |started| now.since(started).as_micros() as u64))
    }

    /// The moment in the books, and how the sender is where that is kept.
    fn sample_sender(&mut self) {
        self.ledger.mark(self.now, self.flows[0].busy());
        if !self.spec.series {
            return;
        }
        self.last[SENDER] = self.flows[0].ends[SENDER].said().or(self.last[SENDER]);
        let at = self.since_start(self.now);
        if let Some((info, counts)) = &self.last[SENDER] {
            let counted = self.ledger.counted_us(self.now);
            let mut sample = samples::sender(at, info, counts, &self.flows[0].writer, (&self.ledger, counted));
            self.delivered.push_back((self.now, counts.bytes_acked + u64::from(info.sacked)));
            let round_trip = u64::from(info.srtt_us) * 1_000;
            while self.delivered.get(1).is_some_and(|(at, _)| at.as_nanos() + round_trip <= self.now.as_nanos()) {
                self.delivered.pop_front();
            }
            if let (Some(first), Some(last)) = (self.delivered.front(), self.delivered.back()) {
                let span = Micros::new(last.0.since(first.0).as_micros() as u64);
                sample.delivery_rate_bps = Rate::from_bytes(Bytes::new(last.1.saturating_sub(first.1)), span);
            }
            self.sender_samples.push(sample);
            self.memory[0] = self.memory[0].max(u64::from(info.outstanding + info.unsent));
        }
    }

    /// How the receiver is `now`, where that is kept.
    fn sample_receiver(&mut self, now: Instant) {
        if !self.spec.series {
            return;
        }
        self.last[RECEIVER] = self.flows[0].ends[RECEIVER].said().or(self.last[RECEIVER]);
        if let Some((info, counts)) = &self.last[RECEIVER] {
            self.receiver_samples.push(samples::receiver(self.since_start(now), info, counts));
            self.memory[1] = self.memory[1].max(u64::from(info.readable).max(u64::from(info.rcv_wnd)));
        }
    }

    fn outcome(mut self) -> Done {
        let started = self.wires.started.unwrap_or(self.now);
        self.ledger.mark(self.now, self.flows[0].busy());
        let (sender, receiver) = (self.last[SENDER], self.last[RECEIVER]);
        let sent = sender.map(|(_, counts)| counts).unwrap_or_default();
        let got = receiver.map(|(_, counts)| counts.bytes_received).unwrap_or_default();
        let duration = Micros::new(self.now.since(started).as_micros() as u64);
        let spec = self.spec;
        let policer = spec.path.policer(Direction::AToB);
        let is_policed = policer.is_some();
        let full = policer.or_else(|| spec.path.bottleneck(Direction::AToB));
        let rtt_nanos = (spec.path.loaded_rtt(Direction::AToB, 2, 52).get() * 1_000).max(self.sample_every);
        let trace = self.narrowest.as_ref().and_then(|hop| hop.trace.clone()).filter(|_| !is_policed);
        // The link's clock begins with the first packet, which the handshake's start is near enough to.
        let carries = full.map(|rate| {
            move |from: Instant, to: Instant| match &trace {
                Some(trace) => trace.bits_between(BEGIN, from, to),
                None => rate.bps() as f64 * to.since(from).as_nanos() as f64 / 1e9,
            }
        });
        let carries = carries.as_ref().map(|carries| carries as &dyn Fn(Instant, Instant) -> f64);
        let truth = self.ledger.truth(started, carries, is_policed, rtt_nanos);
        let queues = self.wires.ways[SENDER].stats().max_by_key(|hop| hop.queue.total_wait);
        let queue = queues.map(|hop| hop.queue).unwrap_or_default();
        let mss = sender.map_or(1_448, |(info, _)| info.mss).max(1);
        let steady = self.omitted.and_then(|omitted| {
            let span = duration.saturating_sub(spec.omit);
            Rate::from_bytes(Bytes::new(got.saturating_sub(omitted)), span)
        });
        let transfer = Transfer {
            source: Source::Simulation,
            sender: self.end_facts(SENDER, &spec.sender),
            receiver: self.end_facts(RECEIVER, &spec.receiver),
            bytes: Bytes::new(got),
            duration_us: duration,
            idle_rtt: self.handshake.map(|rtt| RttSummary { min_us: rtt, p50_us: rtt, count: 1 }),
            path_mtu: Some(spec.path.path_mtu()),
            sender_samples: std::mem::take(&mut self.sender_samples),
            receiver_samples: std::mem::take(&mut self.receiver_samples),
            ..Transfer::default()
        };
        let [capture, receiver_capture] =
            self.wires.captures.take().map_or([None, None], |captures| captures.map(Some));
        let segments = |counts: &Counts| counts.bytes_sent.div_ceil(mss.into()) + u64::from(counts.retransmits);
        let of_others = self.flows.iter_mut().skip(1).filter_map(|flow| flow.ends[SENDER].said());
        let of_others = of_others.map(|(_, counts)| segments(&counts)).sum::<u64>();
        Done {
            transfer,
            truth,
            steady_bps: steady,
            finished: self.finished.map(|at| Micros::new(at.since(BEGIN).as_micros() as u64)),
            retransmits: sent.retransmits.into(),
            timeouts: sent.timeouts.into(),
            early_dropped: receiver.map_or(0, |(info, _)| info.early_dropped.into()),
            queue_delay: Micros::from(queue.mean_wait()),
            queue_max: Bytes::new(queue.max_bytes),
            memory: Bytes::new(self.memory.iter().sum()),
            data_segments: segments(&sent),
            segments_of_all: segments(&sent) + of_others,
            capture,
            receiver_capture,
            others: self.flows.iter_mut().skip(1).map(|flow| Bytes::new(flow.received().unwrap_or(0))).collect(),
            failure: self.failure.map(|failure| format!("{failure:?}")),
        }
    }

    fn end_facts(&self, host: usize, spec: &HostSpec) -> EndFacts {
        let opened = (host == RECEIVER) == self.spec.receiver_opens;
        let send = Buffer { largest: Bytes::new(self.flows[0].writer.limit), pinned: spec.send.pinned };
        let receive = Buffer { largest: Bytes::new(self.flows[0].ends[host].receive_max), pinned: spec.receive.pinned };
        EndFacts {
            name: self.spec.names[host].clone(),
            platform: Some(spec.platform.clone()),
            syn: self.flows[0].ends[host].syn,
            opened: Some(opened),
            congestion_control: Some(spec.profile.congestion.name().to_owned()),
            send_buffer: (host == SENDER).then_some(send),
            receive_buffer: (host == RECEIVER).then_some(receive),
            cpu_busy: None,
        }
    }
}
