//! The virtual-time driver: two hosts, a path both ways, two applications, and one clock that leaps from event to event.

use std::rc::Rc;

use fullpipe_diagnose::{Buffer, End as EndFacts, ReceiverSample, RttSummary, SenderSample, Source, Transfer};
use fullpipe_path::{Departure, Direction, Fate, Machine as _, OneWay, Random};
use fullpipe_tcp::{
    congestion::Algorithm,
    socket::{Counts, Failure, Info},
};
use fullpipe_units::{Bytes, Instant, Micros, Rate};

use crate::{
    Outcome,
    end::End,
    outcome::Outcome as Done,
    packet::{HEAD, Packet},
    pcap::Capture,
    samples,
    spec::{HostSpec, SimError, Spec},
    truth::{Held, Ledger},
    writer::{Reading, Writer},
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
    world.open()?;
    world.go();
    Ok(world.outcome())
}

const SENDER: usize = 0;
const RECEIVER: usize = 1;

struct World<'s> {
    spec: &'s Spec,
    now: Instant,
    ends: [End; 2],
    /// From each host to the other.
    ways: [OneWay<Rc<Packet>>; 2],
    /// When each has something to do; kept, because asking costs.
    due: [Instant; 2],
    writer: Writer,
    reading: Reading,
    /// The packet that arrives; zeros but for its head.
    scratch: Vec<u8>,
    /// Packets that arrived: their memory is used again.
    spare: Vec<Rc<Packet>>,
    ledger: Ledger,
    /// What each end's interface saw.
    captures: Option<[Capture; 2]>,
    /// What the bottleneck adds to each packet.
    overhead: u64,
    started: Option<Instant>,
    connected: Option<Instant>,
    handshake: Option<Micros>,
    finished: Option<Instant>,
    failure: Option<Failure>,
    sample_at: Instant,
    sample_every: u64,
    sender_samples: Vec<SenderSample>,
    receiver_samples: Vec<ReceiverSample>,
    /// Received when the omitted time was over.
    omitted: Option<u64>,
    memory: [u64; 2],
    last: [Option<(Info, Counts)>; 2],
}

impl<'s> World<'s> {
    fn new(spec: &'s Spec) -> Result<Self, SimError> {
        let path = &spec.path;
        let key = |host: u64| {
            let seed = Random::seed_of(spec.seed.wrapping_add(host), "host").to_le_bytes();
            std::array::from_fn(|at| seed[at % 8])
        };
        let ends =
            [End::new(&spec.sender, 0, path.mtu, true, key(0)), End::new(&spec.receiver, 1, path.mtu, false, key(1))];
        let way = |direction: Direction| {
            let seed = Random::seed_of(spec.seed, direction.as_str());
            OneWay::new(&path.hops(direction), path.rtt(), path.path_mtu(), seed)
        };
        let hops = path.hops(Direction::AToB);
        let slowest = hops.iter().filter(|hop| hop.rate.is_some()).min_by_key(|hop| hop.drain());
        let total = (spec.time + Micros::from_millis(1)).get() * 1_000;
        let round_trip = path.rtt().get() * 1_000;
        Ok(Self {
            overhead: slowest.map_or(0, |hop| hop.overhead.into()),
            now: BEGIN,
            ends,
            ways: [way(Direction::AToB), way(Direction::BToA)],
            due: [Instant::FAR_FUTURE; 2],
            writer: Writer::new(spec),
            reading: Reading::new(spec),
            scratch: vec![0; 64 << 10],
            spare: Vec::new(),
            ledger: Ledger::new(),
            captures: spec.capture.then(Default::default),
            started: None,
            connected: None,
            handshake: None,
            finished: None,
            failure: None,
            sample_at: Instant::FAR_FUTURE,
            sample_every: (round_trip / 4).clamp(SHORTEST_NANOS, LONGEST_NANOS).max(total / MOST_SAMPLES),
            sender_samples: Vec::new(),
            receiver_samples: Vec::new(),
            omitted: None,
            memory: [0; 2],
            last: [None; 2],
            spec,
        })
    }

    fn open(&mut self) -> Result<(), SimError> {
        let (opens, answers) = if self.spec.receiver_opens { (RECEIVER, SENDER) } else { (SENDER, RECEIVER) };
        self.ends[answers].listen()?;
        self.ends[opens].connect(self.now, answers as u8)?;
        self.flush(opens);
        Ok(())
    }

    /// From event to event until the end.
    fn go(&mut self) {
        let mut deadline = Instant::from_nanos(BEGIN.as_nanos() + HANDSHAKE_NANOS);
        loop {
            if let Some(connected) = self.connected {
                deadline = connected + self.spec.time.into();
            }
            let at = self.next_event();
            if at > deadline {
                self.now = deadline;
                break;
            }
            self.now = self.now.max(at);
            self.step();
            if self.reading.ended || self.failure.is_some() {
                self.finished = self.reading.ended.then_some(self.now);
                break;
            }
        }
        self.read_sockets();
        if self.spec.series && self.started.is_some() {
            self.sample();
        }
    }

    fn next_event(&mut self) -> Instant {
        let never = Instant::FAR_FUTURE;
        let mut at = self.due[0].min(self.due[1]).min(self.sample_at);
        for end in &mut self.ends {
            let own = end.stack.next_timeout().unwrap_or(never).min(end.device.next().unwrap_or(never));
            at = at.min(own);
        }
        at.min(self.writer.next().unwrap_or(never)).min(self.reading.next().unwrap_or(never))
    }

    fn step(&mut self) {
        for way in [SENDER, RECEIVER] {
            if self.due[way] > self.now {
                continue;
            }
            while let Some(departure) = self.ways[way].poll_transmit(self.now) {
                self.arrived(way, departure);
            }
            self.due[way] = self.ways[way].next_timeout().unwrap_or(Instant::FAR_FUTURE);
        }
        for host in [SENDER, RECEIVER] {
            if self.ends[host].stack.next_timeout().is_some_and(|at| at <= self.now) {
                self.ends[host].stack.on_timeout(self.now);
                self.work(host);
            } else if self.ends[host].device.next().is_some_and(|at| at <= self.now) {
                self.work_device(host);
            }
        }
        if self.writer.next().is_some_and(|at| at <= self.now) {
            self.work(SENDER);
        }
        if self.reading.next().is_some_and(|at| at <= self.now) {
            self.work(RECEIVER);
        }
        self.account();
        if self.sample_at <= self.now {
            if self.spec.series {
                self.sample();
            } else {
                self.ledger.mark(self.now, self.busy());
            }
            self.sample_at = Instant::from_nanos(self.now.as_nanos() + self.sample_every);
        }
    }

    fn arrived(&mut self, way: usize, departure: Departure<Rc<Packet>>) {
        let packet = Packet::arrived(departure.segment);
        match departure.fate {
            Fate::Delivered => {
                if way == SENDER {
                    self.ledger.delivered(u64::from(packet.len) + self.overhead);
                }
                self.hand_over(1 - way, packet);
            }
            Fate::TooBig { mtu, .. } => self.hand_over(way, Rc::new(packet.too_big(mtu))),
        }
    }

    fn hand_over(&mut self, host: usize, packet: Rc<Packet>) {
        if !self.ends[host].device.is_free() {
            self.ends[host].device.inbox.push_back(packet);
            return self.work_device(host);
        }
        self.deliver(host, packet);
        self.work(host);
    }

    fn deliver(&mut self, host: usize, packet: Rc<Packet>) {
        if let Some(captures) = &mut self.captures {
            captures[host].push(self.now, &packet);
        }
        // Behind the headers it is zeros, as the payload is.
        self.scratch[..HEAD].copy_from_slice(&packet.head);
        // The stack counts what it drops.
        self.ends[host].stack.on_packet(self.now, &self.scratch[..packet.len as usize], true).ok();
        if host == RECEIVER && packet.is_pushed() {
            self.reading.pushed = true;
        }
        // A path that duplicates packets has another one.
        if Rc::strong_count(&packet) == 1 {
            self.spare.push(packet);
        }
        if self.connected.is_none() {
            self.see_connection();
        }
    }

    /// Notes the moment when both ends are connected.
    fn see_connection(&mut self) {
        for host in [SENDER, RECEIVER] {
            self.ends[host].accept(self.now);
        }
        let opens = if self.spec.receiver_opens { RECEIVER } else { SENDER };
        let is_open = |info: Option<Info>| info.is_some_and(|info| info.state.is_synchronized());
        if self.handshake.is_none() && is_open(self.ends[opens].info()) {
            self.handshake = Some(Micros::new(self.now.since(BEGIN).as_micros() as u64));
        }
        if is_open(self.ends[0].info()) && is_open(self.ends[1].info()) {
            self.connected = Some(self.now);
        }
    }

    /// The applications of a host act, and what the stack has to send leaves.
    fn work(&mut self, host: usize) {
        if host == SENDER {
            self.writer.work(self.now, &mut self.ends[SENDER]);
        } else {
            self.reading.work(self.now, &mut self.ends[RECEIVER]);
        }
        self.flush(host);
    }

    fn flush(&mut self, host: usize) {
        if !self.ends[host].device.is_free() {
            self.ends[host].device.has_more = true;
            return self.work_device(host);
        }
        let mut has_sent = false;
        while let Some(packet) = self.take(host) {
            self.ways[host].on_packet(self.now, packet.segment());
            has_sent = true;
        }
        if has_sent {
            self.due[host] = self.ways[host].next_timeout().unwrap_or(Instant::FAR_FUTURE);
        }
    }

    fn take(&mut self, host: usize) -> Option<Rc<Packet>> {
        let transmit = self.ends[host].stack.poll_transmit(self.now)?;
        let mut packet = self.spare.pop().unwrap_or_else(|| Rc::new(Packet::EMPTY));
        Rc::make_mut(&mut packet).set(&transmit);
        self.ends[host].note_syn(&packet);
        if let Some(captures) = &mut self.captures {
            captures[host].push(self.now, &packet);
        }
        if host == SENDER && self.started.is_none() && packet.payload() > 0 {
            self.started = Some(self.now);
            self.sample_at = self.now;
        }
        Some(packet)
    }

    fn launch(&mut self, host: usize, packet: Rc<Packet>) {
        self.ways[host].on_packet(self.now, packet.segment());
        self.due[host] = self.ways[host].next_timeout().unwrap_or(Instant::FAR_FUTURE);
    }

    /// One packet after the other, in or out, as the device has time. What has arrived goes first.
    fn work_device(&mut self, host: usize) {
        while !self.ends[host].device.is_busy(self.now) {
            if let Some(packet) = self.ends[host].device.inbox.pop_front() {
                self.ends[host].device.spend(self.now);
                self.deliver(host, packet);
                if host == SENDER {
                    self.writer.work(self.now, &mut self.ends[SENDER]);
                } else {
                    self.reading.work(self.now, &mut self.ends[RECEIVER]);
                }
                self.ends[host].device.has_more = true;
            } else if let Some(packet) = self.take(host) {
                self.ends[host].device.spend(self.now);
                self.launch(host, packet);
            } else {
                self.ends[host].device.has_more = false;
                return;
            }
        }
    }

    /// Who holds the sender now.
    fn account(&mut self) {
        if self.started.is_none() {
            return;
        }
        let Some(id) = self.ends[SENDER].socket else { return };
        let Some(socket) = self.ends[SENDER].stack.socket(id) else { return };
        self.failure = self.failure.or_else(|| socket.failure());
        let info = socket.info();
        let held_sent = socket.buffers().unacknowledged;
        let sent = socket.counts().bytes_sent;
        let state = self.held(&info, held_sent, sent);
        self.ledger.set(self.now, state);
        if self.omitted.is_none() && self.spec.omit > Micros::ZERO {
            let omit_until = self.started.map(|started| started + self.spec.omit.into());
            if omit_until.is_some_and(|until| self.now >= until) {
                self.omitted = self.received();
            }
        }
    }

    fn received(&mut self) -> Option<u64> {
        let id = self.ends[RECEIVER].socket?;
        Some(self.ends[RECEIVER].stack.socket(id)?.counts().bytes_received)
    }

    fn held(&mut self, info: &Info, held_sent: u16, sent: u64) -> Held {
        let is_quiet = self.due == [Instant::FAR_FUTURE; 2]
            && self.ends.iter().all(|end| end.device.next().is_none() && !end.device.is_busy(self.now));
        if is_quiet && info.outstanding > 0 && (info.unsent > 0 || self.writer.blocked || self.is_answering()) {
            let arrived = self.received() == Some(sent);
            let closed = info.snd_wnd < info.mss && info.outstanding == 0;
            return match (arrived, closed) {
                (_, true) => Held::ReceiveWindow,
                (true, _) => Held::AckDelay,
                (false, _) => Held::Timeout,
            };
        }
        if info.unsent == 0 {
            let waits = info.outstanding > 0 && self.is_answering();
            return if self.writer.blocked || waits { Held::SendBuffer } else { Held::Application };
        }
        let need = info.mss.min(info.unsent);
        let room = info.snd_wnd.saturating_sub(info.outstanding);
        let credit = info.cwnd.saturating_sub(info.in_flight);
        if self.ends[SENDER].unacknowledged.is_some_and(|budget| held_sent >= budget) {
            Held::SendBuffer
        } else if room < need && room <= credit {
            Held::ReceiveWindow
        } else if credit < need || room < need {
            Held::Congestion
        } else if self.ends[SENDER].device.is_busy(self.now) {
            Held::Device
        } else if self.writer.blocked {
            Held::SendBuffer
        } else if self.writer.awaits_answer() {
            // A small segment waits for an acknowledgement before the application can go on.
            Held::AckDelay
        } else {
            Held::Application
        }
    }

    /// Whether the next bytes depend on an answer that is due.
    fn is_answering(&self) -> bool {
        self.spec.application == crate::Application::Waits && !self.writer.is_done()
    }

    fn busy(&self) -> u64 {
        self.ends.iter().map(|end| end.device.busy_nanos).max().unwrap_or(0)
    }

    fn read_sockets(&mut self) {
        for host in [SENDER, RECEIVER] {
            let Some(id) = self.ends[host].socket else { continue };
            let Some(socket) = self.ends[host].stack.socket(id) else { continue };
            self.last[host] = Some((socket.info(), *socket.counts()));
        }
    }

    fn sample(&mut self) {
        self.ledger.mark(self.now, self.busy());
        self.read_sockets();
        let at = Micros::new(self.started.map_or(0, |started| self.now.since(started).as_micros() as u64));
        if let Some((info, counts)) = &self.last[SENDER] {
            self.sender_samples.push(samples::sender(at, info, counts, &self.writer, &self.ledger));
            self.memory[0] = self.memory[0].max(u64::from(info.outstanding + info.unsent));
        }
        if let Some((info, counts)) = &self.last[RECEIVER] {
            self.receiver_samples.push(samples::receiver(at, info, counts));
            self.memory[1] = self.memory[1].max(u64::from(info.readable).max(u64::from(info.rcv_wnd)));
        }
    }

    fn outcome(mut self) -> Done {
        let started = self.started.unwrap_or(self.now);
        self.ledger.mark(self.now, self.busy());
        let (sender, receiver) = (self.last[SENDER], self.last[RECEIVER]);
        let sent = sender.map(|(_, counts)| counts).unwrap_or_default();
        let got = receiver.map(|(_, counts)| counts.bytes_received).unwrap_or_default();
        let duration = Micros::new(self.now.since(started).as_micros() as u64);
        let spec = self.spec;
        let policed = spec.path.hops(Direction::AToB).iter().any(|hop| hop.police.is_some());
        let link = spec.path.bottleneck(Direction::AToB);
        let police = spec.path.hops(Direction::AToB).iter().filter_map(|hop| Some(hop.police?.rate)).min();
        let is_policed = policed && police < link.or(Some(Rate::from_bps(u64::MAX)));
        let full = if is_policed { police } else { link };
        let rtt_nanos = (spec.path.loaded_rtt(Direction::AToB, 2, 52).get() * 1_000).max(self.sample_every);
        let truth = self.ledger.truth(started, full.map(|rate| rate.bps() as f64), is_policed, rtt_nanos);
        let queues = self.ways[SENDER].stats().max_by_key(|hop| hop.queue.total_wait);
        let queue = queues.map(|hop| hop.queue).unwrap_or_default();
        let mss = sender.map_or(1_448, |(info, _)| info.mss).max(1);
        let steady = self.omitted.and_then(|omitted| {
            let span = duration.saturating_sub(spec.omit);
            Rate::of(Bytes::new(got.saturating_sub(omitted)), span)
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
        let [capture, receiver_capture] = self.captures.map_or([None, None], |captures| captures.map(Some));
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
            data_segments: sent.bytes_sent.div_ceil(mss.into()) + u64::from(sent.retransmits),
            capture,
            receiver_capture,
            failure: self.failure.map(|failure| format!("{failure:?}")),
        }
    }

    fn end_facts(&self, host: usize, spec: &HostSpec) -> EndFacts {
        let opened = (host == RECEIVER) == self.spec.receiver_opens;
        let congestion = match spec.profile.congestion {
            Algorithm::Cubic => "cubic",
            _ => "reno",
        };
        let send = Buffer { largest: Bytes::new(self.writer.limit), pinned: spec.send.pinned };
        let receive = Buffer { largest: Bytes::new(self.ends[host].receive_max), pinned: spec.receive.pinned };
        EndFacts {
            name: self.spec.names[host].clone(),
            platform: Some(spec.platform.clone()),
            syn: self.ends[host].syn,
            opened: Some(opened),
            congestion_control: Some(congestion.to_owned()),
            send_buffer: (host == SENDER).then_some(send),
            receive_buffer: (host == RECEIVER).then_some(receive),
            cpu_busy: None,
        }
    }
}
