//! One connection: two hosts and their applications, on a path that others may share.

use core::ops::ControlFlow;

use fullpipe_path::{Machine as _, OneWay};
use fullpipe_tcp::wire::tcp::OptionLayout;
use fullpipe_units::Instant;

use crate::{
    application::Application,
    end::{End, note_syn},
    packet::{Body, Known, Packet, Whole},
    pcap::Capture,
    spec::{SimError, Spec},
    writer::{Next, Reading, Writer, ZEROS},
};

pub(crate) const SENDER: usize = 0;
pub(crate) const RECEIVER: usize = 1;
/// The connection that is looked at; others only take their share of the path.
pub(crate) const OBSERVED: u32 = 0;

/// What all connections send through.
#[derive(Debug)]
pub(crate) struct Wires {
    /// From each host to the other.
    pub(crate) ways: [OneWay<Packet>; 2],
    /// When each has something to do; kept, because asking costs.
    pub(crate) due: [Instant; 2],
    /// What each end's interface saw of the observed connection.
    pub(crate) captures: Option<[Capture; 2]>,
    /// When the observed sender first sent payload.
    pub(crate) started: Option<Instant>,
    /// What hosts send goes nowhere yet, and is kept here, where they act one after the other and not in the order of time.
    pub(crate) kept: Option<Vec<Kept>>,
    /// What they do it for.
    pub(crate) cause: Cause,
    /// Packets that were not plain, and arrived: their memory is used again.
    #[expect(clippy::vec_box, reason = "what is kept for use again is the boxes")]
    spare: Vec<Box<Whole>>,
}

/// What lets a host act. Of what happens at one moment, arrivals come first, in their order, then timers, by the number of their
/// connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause(u64);

impl Cause {
    const TIMER: u64 = 1 << 63;

    pub(crate) const fn arrival(place: usize) -> Self {
        Self(place as u64)
    }

    pub(crate) const fn timer(number: u32) -> Self {
        Self(Self::TIMER | number as u64)
    }

    pub(crate) const fn is_timer(self) -> bool {
        self.0 & Self::TIMER != 0
    }
}

/// A packet that goes its way later.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) at: Instant,
    pub(crate) cause: Cause,
    pub(crate) packet: Option<Packet>,
}

impl Wires {
    pub(crate) fn new(ways: [OneWay<Packet>; 2], captures: bool) -> Self {
        Self {
            ways,
            due: [Instant::FAR_FUTURE; 2],
            captures: captures.then(Default::default),
            started: None,
            kept: None,
            cause: Cause::default(),
            spare: Vec::new(),
        }
    }

    /// A packet to fill.
    #[inline]
    pub(crate) fn blank(&mut self) -> Box<Whole> {
        self.spare.pop().unwrap_or_else(|| Box::new(Whole::EMPTY))
    }

    /// A packet that nobody needs any more.
    #[inline]
    pub(crate) fn recycle(&mut self, packet: Packet) {
        if let Packet::Whole(whole) = packet {
            self.spare.push(whole);
        }
    }

    #[inline]
    pub(crate) fn launch(&mut self, now: Instant, way: usize, packet: Packet) {
        match &mut self.kept {
            None => self.ways[way].on_packet(now, packet.segment()),
            Some(kept) => kept.push(Kept { at: now, cause: self.cause, packet: Some(packet) }),
        }
    }

    /// Notes what a host of the observed connection sends.
    #[inline]
    fn note_departure(&mut self, now: Instant, host: usize, packet: &Packet, shown: Option<&(Known, OptionLayout)>) {
        if self.captures.is_some() || self.started.is_none() {
            self.note(now, host, packet, shown);
        }
    }

    #[inline(never)]
    fn note(&mut self, now: Instant, host: usize, packet: &Packet, shown: Option<&(Known, OptionLayout)>) {
        if let (Some(captures), Some((known, layout))) = (&mut self.captures, shown) {
            captures[host].push(now, &packet.whole(known), layout);
        }
        if host == SENDER && self.started.is_none() && packet.payload() > 0 {
            self.started = Some(now);
        }
    }

    /// Packets have gone that way.
    #[inline]
    pub(crate) fn ask(&mut self, way: usize) {
        self.due[way] = self.ways[way].next_timeout().unwrap_or(Instant::FAR_FUTURE);
    }
}

/// A connection.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// When something is due, as far as the driver knows; it may turn out to be nothing.
    pub(crate) queued: Instant,
    pub(crate) begins: Option<Instant>,
    /// Who opens it, and when, where that has not happened.
    pub(crate) opens: usize,
    pub(crate) reading: Reading,
    pub(crate) writer: Writer,
    pub(crate) ends: [End; 2],
}

impl Flow {
    /// The connection of that number in `spec`, which opens at `begins`.
    pub(crate) fn new(spec: &Spec, number: u32, keys: [[u8; 16]; 2], begins: Instant) -> Self {
        // The other end writes no more than a byte, but for requests.
        let asks = matches!(spec.application, Application::Responses { .. });
        let end = |host: usize, of| {
            let longest_write = if host == SENDER || asks { ZEROS.len() as u32 } else { 1 };
            let mut end = End::new(of, host as u8, &spec.path, host == SENDER, longest_write, keys[host], number);
            end.set_discards(host == RECEIVER && Reading::only_counts(spec));
            end
        };
        Self {
            ends: [end(SENDER, &spec.sender), end(RECEIVER, &spec.receiver)],
            writer: Writer::new(spec),
            reading: Reading::new(spec),
            opens: if spec.receiver_opens { RECEIVER } else { SENDER },
            begins: Some(begins),
            queued: Instant::FAR_FUTURE,
        }
    }

    /// Opens the connection.
    pub(crate) fn open(&mut self, now: Instant, wires: &mut Wires) -> Result<(), SimError> {
        self.begins = None;
        let (opens, answers) = (self.opens, 1 - self.opens);
        self.ends[answers].listen()?;
        self.ends[opens].connect(now, answers as u8)?;
        self.flush(now, opens, wires, u32::MAX);
        Ok(())
    }

    /// When the connection has something to do by itself.
    pub(crate) fn next(&mut self) -> Instant {
        let begins = self.begins.unwrap_or(Instant::FAR_FUTURE);
        begins.min(self.next_of(SENDER)).min(self.next_of(RECEIVER))
    }

    /// When a host or its application has.
    #[inline]
    pub(crate) fn next_of(&mut self, host: usize) -> Instant {
        let never = Instant::FAR_FUTURE;
        let device = self.ends[host].device.next().unwrap_or(never);
        device.min(self.next_of_free(host))
    }

    /// ... where its device takes no time.
    #[inline]
    pub(crate) fn next_of_free(&mut self, host: usize) -> Instant {
        let never = Instant::FAR_FUTURE;
        let application = self.next_of_application(host).unwrap_or(never);
        application.min(self.ends[host].stack.next_timeout().unwrap_or(never))
    }

    /// Whether neither host's device needs time for a packet.
    pub(crate) const fn takes_no_time(&self) -> bool {
        self.ends[SENDER].device.is_free() && self.ends[RECEIVER].device.is_free()
    }

    /// Does what is due.
    pub(crate) fn on_timeout(&mut self, now: Instant, wires: &mut Wires) -> Result<(), SimError> {
        if self.begins.is_some_and(|at| at <= now) {
            self.open(now, wires)?;
        }
        self.on_timeout_of(now, SENDER, wires);
        self.on_timeout_of(now, RECEIVER, wires);
        Ok(())
    }

    /// Does what is due at a host.
    // Not in line: copies in all callers push what is hot out of the instruction cache.
    #[inline(never)]
    pub(crate) fn on_timeout_of(&mut self, now: Instant, host: usize, wires: &mut Wires) {
        if self.ends[host].stack.next_timeout().is_some_and(|at| at <= now) {
            self.ends[host].stack.on_timeout(now);
            self.work(now, host, wires);
        } else if self.ends[host].device.next().is_some_and(|at| at <= now) {
            self.work_device(now, host, wires);
        }
        if self.next_of_application(host).is_some_and(|at| at <= now) {
            self.work(now, host, wires);
        }
    }

    #[inline]
    fn next_of_application(&self, host: usize) -> Option<Instant> {
        if host == SENDER { self.writer.next() } else { self.reading.next() }
    }

    /// A packet arrives at a host.
    pub(crate) fn hand_over(&mut self, now: Instant, host: usize, packet: Packet, wires: &mut Wires) {
        if !self.ends[host].device.is_free() {
            self.ends[host].device.inbox.push_back(packet);
            return self.work_device(now, host, wires);
        }
        self.deliver(now, host, packet, wires);
        self.work(now, host, wires);
    }

    /// What plain segments of a host don't say.
    pub(crate) fn known(&self, host: usize) -> Known {
        self.ends[host].known(host as u8, host == self.opens)
    }

    #[inline]
    fn deliver(&mut self, now: Instant, host: usize, packet: Packet, wires: &mut Wires) {
        if self.ends[host].number == OBSERVED
            && let Some(captures) = &mut wires.captures
        {
            let whole = packet.whole(&self.known(1 - host));
            captures[host].push(now, &whole, &self.ends[1 - host].stack.config().profile.layout);
        }
        match &packet {
            Packet::Plain { segment, .. } => {
                let data = &ZEROS[..segment.data_len() as usize];
                let End { stack, socket, .. } = &mut self.ends[host];
                if !socket.is_some_and(|id| stack.on_plain(now, id, segment, data)) {
                    self.deliver_whole(now, host, &packet.whole(&self.known(1 - host)));
                }
            }
            Packet::Whole(whole) => self.deliver_whole(now, host, whole),
        }
        if host == RECEIVER && packet.is_pushed() {
            self.reading.pushed = true;
        }
        wires.recycle(packet);
        if self.ends[host].socket.is_none() {
            self.ends[host].accept(now);
        }
    }

    fn deliver_whole(&mut self, now: Instant, host: usize, packet: &Whole) {
        // The stack counts what it drops.
        match &packet.body {
            Body::Segment(datagram) => {
                let data = &ZEROS[..datagram.data_len as usize];
                self.ends[host].stack.on_datagram(now, datagram, data).ok();
            }
            Body::Bytes(head) => _ = self.ends[host].stack.on_packet(now, &head.packet(packet.len), true),
            Body::Cross => {}
        }
    }

    /// The applications of a host act, and what the stack has to send leaves.
    fn work(&mut self, now: Instant, host: usize, wires: &mut Wires) {
        if host == RECEIVER {
            self.reading.work(now, &mut self.ends[RECEIVER]);
            self.flush(now, RECEIVER, wires, u32::MAX);
            return;
        }
        if self.writer.counts_as_linux() {
            // What an acknowledgement lets go has left when it wakes the writer (`tcp_data_snd_check`).
            self.leave(now, wires);
        }
        loop {
            match self.writer.work(now, &mut self.ends[SENDER]) {
                // What leaves while the writer waits may let its buffer grow, and wake it.
                Next::Rest => {
                    if !(self.leave(now, wires) && self.writer.waits_as_linux()) {
                        break;
                    }
                }
                Next::All => _ = self.let_go(now, wires, u32::MAX),
                Next::Piece(segments) => {
                    self.ends[SENDER].push(segments);
                    self.let_go(now, wires, segments.into());
                }
            }
        }
    }

    /// What the sender may send leaves while its writer does nothing; whether anything did.
    fn leave(&mut self, now: Instant, wires: &mut Wires) -> bool {
        let has_sent = self.let_go(now, wires, u32::MAX);
        if has_sent {
            self.writer.note_sent();
        }
        has_sent
    }

    /// What the sender may send leaves, so many packets at the most; whether anything did.
    fn let_go(&mut self, now: Instant, wires: &mut Wires, most: u32) -> bool {
        let has_sent = self.flush(now, SENDER, wires, most);
        self.writer.note_left(has_sent, &mut self.ends[SENDER]);
        has_sent
    }

    /// What the stack has to send leaves, so many packets at the most; whether anything did.
    fn flush(&mut self, now: Instant, host: usize, wires: &mut Wires, most: u32) -> bool {
        if !self.ends[host].device.is_free() {
            self.ends[host].device.has_more = true;
            self.work_device(now, host, wires);
            return false;
        }
        let has_sent = self.ends[host].stack.may_transmit() && self.depart(now, host, wires, most);
        if has_sent {
            wires.ask(host);
        }
        has_sent
    }

    /// What the stack has to send goes on its way, so many packets at the most; whether anything did.
    // Not in line, for the same reason as `on_timeout_of`.
    #[inline(never)]
    fn depart(&mut self, now: Instant, host: usize, wires: &mut Wires, most: u32) -> bool {
        let (number, mut sent) = (self.ends[host].number, 0);
        let is_observed = number == OBSERVED;
        let shown = (is_observed && wires.captures.is_some())
            .then(|| (self.known(host), self.ends[host].stack.config().profile.layout));
        let End { stack, syn, .. } = &mut self.ends[host];
        while stack.may_transmit() && sent < most {
            let answer = stack.poll_datagrams(now, |departing| {
                let packet = match departing.plain() {
                    Ok(segment) => Packet::Plain { flow: number, segment },
                    Err(departing) => {
                        let mut packet = wires.blank();
                        packet.set_segment(departing, number);
                        if packet.is_syn() {
                            note_syn(syn, &packet);
                        }
                        Packet::Whole(packet)
                    }
                };
                if is_observed {
                    wires.note_departure(now, host, &packet, shown.as_ref());
                }
                wires.launch(now, host, packet);
                sent += 1;
                if sent < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            let Some(answer) = answer else { break };
            let mut packet = wires.blank();
            packet.set_answer(&answer, number);
            let packet = Packet::Whole(packet);
            if is_observed {
                wires.note_departure(now, host, &packet, shown.as_ref());
            }
            wires.launch(now, host, packet);
            sent += 1;
        }
        sent > 0
    }

    /// One packet after the other, in or out, as the device has time. What has arrived goes first.
    fn work_device(&mut self, now: Instant, host: usize, wires: &mut Wires) {
        while !self.ends[host].device.is_busy(now) {
            if let Some(packet) = self.ends[host].device.inbox.pop_front() {
                self.ends[host].device.spend(now);
                self.deliver(now, host, packet, wires);
                if host == SENDER {
                    while self.writer.work(now, &mut self.ends[SENDER]) != Next::Rest {}
                } else {
                    self.reading.work(now, &mut self.ends[RECEIVER]);
                }
                self.ends[host].device.has_more = true;
            } else if self.depart(now, host, wires, 1) {
                self.ends[host].device.spend(now);
                wires.ask(host);
            } else {
                self.ends[host].device.has_more = false;
                return;
            }
        }
    }

    /// Whether neither host's device is at work or has something to do.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.ends.iter().all(|end| end.device.next().is_none() && !end.device.is_busy(now))
    }

    /// The most that either device was busy so far; ns.
    pub(crate) fn busy(&self) -> u64 {
        self.ends.iter().map(|end| end.device.busy_nanos).max().unwrap_or(0)
    }

    /// Payload that has arrived in order.
    pub(crate) fn received(&mut self) -> Option<u64> {
        let id = self.ends[RECEIVER].socket?;
        Some(self.ends[RECEIVER].stack.socket(id)?.counts().bytes_received)
    }
}
