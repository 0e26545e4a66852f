//! What leaves, and when: handshake, data, FIN, probes, acknowledgements.

use fullpipe_units::{Instant, SeqNum};

use super::{
    Context, Fin, Phase, Probe, Socket, State, Syn, base_options, rack::TailProbe, search::ProbeChoice,
    takes_short_ways, timer::Timer,
};
use crate::{
    IS_DEVICE,
    pool::Run,
    profile::{EcnPolicy, Nagle, Push},
    send::{Allowance, Chosen},
    time::{self, Millis, Stamp},
    wire::tcp::{Flags, Options, Timestamps},
};

/// So many acknowledgements that only report what is out of order leave at once.
pub(super) const SOON_REPORTED: u8 = 3;

/// A segment on its way out: everything but addresses, ports and checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) options: Options,
    pub(crate) run: Run,
    /// Data bytes per segment, where the run is longer than one.
    pub(crate) segment: u16,
    /// Whether the packet is ECN-capable.
    pub(crate) ect: bool,
}

impl Outgoing {
    /// None yet.
    pub(crate) const EMPTY: Self = Self {
        seq: SeqNum::new(0),
        ack: SeqNum::new(0),
        flags: Flags::from_byte(0),
        window: 0,
        options: Options::NONE,
        run: Run::EMPTY,
        segment: 0,
        ect: false,
    };
}

/// What leaves next of a connection whose sequence numbers are agreed upon.
#[derive(Clone, Copy, Debug)]
struct Choice {
    seq: SeqNum,
    flags: Flags,
    run: Run,
    /// See [`Outgoing`].
    segment: u16,
    ect: bool,
    /// Another acknowledgement follows.
    acks_again: bool,
}

impl Choice {
    /// A segment without data.
    const fn bare(seq: SeqNum, flags: Flags) -> Self {
        Self { seq, flags, run: Run::EMPTY, segment: 0, ect: false, acks_again: false }
    }
}

impl Socket {
    /// Whether asking for a segment would give none and change nothing.
    pub(crate) fn is_at_rest(&self) -> bool {
        // A small device asks: to know beforehand takes flash.
        !IS_DEVICE
            && self.tx.unsent_bytes() == 0
            && !self.ack_now
            && self.state == State::Established
            && self.fin == Fin::Open
            && !(self.reset_due || self.force_small)
            && self.burst_left == 0
            && self.tx.lost == 0
            && matches!(self.probe, Probe::None)
    }

    /// Puts the next segment that wants to leave into `out`; whether there is one.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, out: &mut Outgoing) -> bool {
        let is_half_open = matches!(self.state, State::SynSent | State::SynReceived);
        if is_half_open && !self.reset_due && matches!(self.syn, Syn::Due | Syn::Again) {
            self.count_sent();
            *out = self.make_syn(cx);
            return true;
        }
        let Some(choice) = self.choose_segment(cx) else { return false };
        self.count_sent();
        self.put_segment(cx, &choice, out);
        true
    }

    fn count_sent(&mut self) {
        self.counts.note(|counts| counts.segments_sent = counts.segments_sent.wrapping_add(1));
    }

    /// Makes of `out`, which has just left, the one that leaves right behind it in the same call, where that is as full, and all else
    /// is as it was: what [`poll_transmit`](Self::poll_transmit) would make in more steps. Whether it did.
    #[cfg(feature = "platforms")]
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_, '_>, out: &mut Outgoing) -> bool {
        let mss = self.mss();
        let (room, credit) = (self.window_room(), self.window.cwnd.saturating_sub(self.in_flight()));
        let was_data =
            out.run.len == mss && u32::from(out.segment) == mss && out.flags.without(Flags::PSH) == Flags::ACK;
        let is_steady = self.state == State::Established
            && self.fin == Fin::Open
            && (self.burst_left > 0 || !cx.profile.gathers_bursts)
            && self.tx.lost == 0
            && out.seq + mss == self.tx.nxt
            // From the second segment of a flight on the tail loss probe is where it was.
            && self.tx.outstanding() > mss
            && !(self.ack_now || self.cwr_due)
            && matches!(self.probe, Probe::None)
            && !Self::searches(cx)
            && self.is_undisturbed()
            && self.pacing().is_none();
        if !(was_data && is_steady && room.min(credit) >= mss) {
            return false;
        }
        let Some(chosen) = self.tx.send_whole(cx.pool, mss, cx.now) else { return false };
        self.burst_left = self.burst_left.saturating_sub(1);
        self.counts.note(|counts| counts.bytes_sent += u64::from(mss));
        self.count_sent();
        self.note_sent(mss);
        self.train = self.train.saturating_add(1);
        let flags = self.data_flags(cx, &chosen);
        self.note_usage(mss + mss > credit);
        (out.seq, out.run) = (chosen.seq, chosen.run);
        out.flags = out.flags.without(Flags::PSH).with(flags);
        true
    }

    fn choose_segment(&mut self, cx: &mut Context<'_, '_>) -> Option<Choice> {
        if self.reset_due {
            self.reset_due = false;
            return Some(Choice::bare(self.snd_nxt(), Flags::RST));
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived if !self.is_early() => {
                // In SYN-RECEIVED an unacceptable segment is answered with the ACK of the SYN.
                let answers = core::mem::take(&mut self.ack_now) && self.state == State::SynReceived;
                answers.then(|| Choice::bare(self.iss() + 1, Flags::default()))
            }
            _ => self.poll_synchronized(cx),
        }
    }

    /// The SYN, or the SYN-ACK.
    fn make_syn(&mut self, cx: &mut Context<'_, '_>) -> Outgoing {
        if self.syn == Syn::Again {
            self.fall_back();
        }
        let active = self.state == State::SynSent;
        let is_first = self.syn == Syn::Due;
        let run = if active && is_first { self.take_syn_data(cx) } else { Run::EMPTY };
        self.syn = Syn::Waiting;
        self.ack_now = false;
        if is_first || (!active && self.rtt.backoff() == 0) {
            self.last_data_sent = Stamp::new(cx.now);
        }
        self.arm_retransmit(cx);
        let flags = match (active, self.uses_ecn()) {
            // RFC 3168, section 6.1.1.
            (true, true) => Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            (true, false) => Flags::SYN,
            (false, true) => Flags::SYN.with(Flags::ACK).with(Flags::ECE),
            (false, false) => Flags::SYN.with(Flags::ACK),
        };
        // RFC 7323, section 2.2, and RFC 2018, section 2: in a SYN-ACK only what the SYN offered.
        // FreeBSD remembers little of a connection that is half open.
        let limit = if cx.profile.takes_unoffered() && !self.passive { u32::MAX } else { u16::MAX.into() };
        let window = self.rx.offer(cx.pool, limit);
        let window = if self.shut_until_accept(cx) { 0 } else { window };
        self.last_ack_sent = self.rx.nxt;
        let mut options = Options {
            mss: (!self.kept.no_options()).then(|| self.announced_mss()),
            window_scale: self.scaling.then_some(self.rcv_shift),
            sack_permitted: self.uses_sack(),
            ..base_options(self.timestamps(cx.now))
        };
        self.add_fast_open(&mut options);
        Outgoing {
            seq: self.iss(),
            ack: if active {
                SeqNum::new(0)
            } else if self.is_early() {
                self.rx.nxt
            } else {
                self.irs + 1
            },
            flags,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options,
            run,
            segment: 0,
            ect: false,
        }
    }

    fn poll_synchronized(&mut self, cx: &mut Context<'_, '_>) -> Option<Choice> {
        // What arrived out of order is reported (SACK) before data that would leave no room for telling it.
        if self.ack_now && (self.rx.has_sack() || self.duplicates_due > 0) {
            self.duplicates_due = self.duplicates_due.saturating_sub(1);
            return Some(Choice { acks_again: self.duplicates_due > 0, ..self.pure_ack() });
        }
        if self.state != State::TimeWait {
            let choice = self.poll_probe(cx).or_else(|| self.poll_lost(cx)).or_else(|| self.poll_new(cx));
            if let Some(choice) = choice.or_else(|| self.poll_fin(cx)) {
                return Some(choice);
            }
        }
        self.ack_now.then(|| self.pure_ack())
    }

    fn pure_ack(&self) -> Choice {
        Choice::bare(self.snd_nxt(), Flags::default())
    }

    fn poll_probe(&mut self, cx: &mut Context<'_, '_>) -> Option<Choice> {
        match core::mem::replace(&mut self.probe, Probe::None) {
            Probe::None => None,
            // From before the window, so that the peer must answer; without data, as Linux does it, which
            // leaves no byte outstanding that the peer had no room for.
            Probe::Window => Some(Choice::bare(self.snd_una() - 1, Flags::default())),
            Probe::TailLoss if !cfg!(feature = "sack") => None,
            Probe::TailLoss => {
                self.train = 0;
                self.counts.note(|counts| counts.probes += 1);
                // RFC 8985, section 7.3: new data if the peer's window takes it, else the last segment again.
                let mss = self.mss();
                let room = self.window_room();
                let allow = Allowance { bytes: room.min(mss), mss, burst: mss };
                if let Some(chosen) = self.tx.choose(cx.pool, allow) {
                    let out = self.send_new(cx, &chosen);
                    self.rack.note_probe(self.tx.nxt, TailProbe::New);
                    return Some(out);
                }
                if self.fin == Fin::Waiting {
                    // The FIN is the last that was sent.
                    self.rack.note_probe(self.tx.nxt + 1, TailProbe::Again);
                    return Some(Choice::bare(self.tx.nxt, Flags::FIN));
                }
                let chosen = self.tx.choose_last(cx.pool, mss)?;
                self.rack.note_probe(self.tx.nxt, TailProbe::Again);
                Some(self.send_again(cx, &chosen))
            }
        }
    }

    /// Bytes of new data that the peer's window takes.
    fn window_room(&self) -> u32 {
        self.snd_wnd.saturating_sub(self.tx.outstanding())
    }

    fn poll_lost(&mut self, cx: &mut Context<'_, '_>) -> Option<Choice> {
        if self.tx.lost == 0 {
            return None;
        }
        let mss = self.mss();
        let chosen = self.tx.choose_lost(cx.pool, mss)?;
        let first = chosen.seq == self.tx.una;
        let pipe = self.in_flight();
        let fits = pipe + chosen.run.len <= self.window.cwnd || pipe == 0;
        // What the window no longer covers waits, but for the first segment, which asks whether it opened.
        let covered = chosen.seq.distance_from(self.tx.una) < self.snd_wnd;
        if !fits || !(covered || first) || !self.may_depart(cx) {
            return None;
        }
        Some(self.send_again(cx, &chosen))
    }

    fn send_again(&mut self, cx: &mut Context<'_, '_>, chosen: &Chosen) -> Choice {
        self.tx.resent(cx.pool, chosen, cx.now);
        self.counts.note(|counts| counts.bytes_retransmitted += u64::from(chosen.run.len));
        self.counts.note(|counts| counts.retransmits += 1);
        self.note_sent(chosen.run.len);
        self.departs(cx, chosen.run.len, self.tx.lost);
        // The first segment's retransmission has a whole timeout to be acknowledged.
        if chosen.seq == self.tx.una || !self.timers.is_set(Timer::Retransmit) {
            self.arm_retransmit(cx);
        }
        let flags = self.data_flags(cx, chosen);
        // RFC 3168, section 6.1.5: retransmissions are not ECN-capable.
        Choice { run: chosen.run, segment: chosen.segment, ..Choice::bare(chosen.seq, flags) }
    }

    /// What only proportional rate reduction asks for.
    const fn note_sent(&mut self, len: u32) {
        if cfg!(feature = "sack") {
            self.prr_out = self.prr_out.saturating_add(len);
        }
    }

    #[inline]
    fn poll_new(&mut self, cx: &mut Context<'_, '_>) -> Option<Choice> {
        if self.tx.unsent_bytes() == 0 || !(self.state.can_send() || self.is_early()) {
            self.force_small = false;
            self.burst_left = 0;
            return None;
        }
        self.restart_if_idle(cx);
        let mss = self.mss();
        let (room, pipe) = (self.window_room(), self.in_flight());
        let credit = self.window.cwnd.saturating_sub(pipe);
        if self.awaits_room(cx, room, credit) {
            if credit < mss {
                self.note_usage(true);
            }
            self.burst_left = 0;
            return None;
        }
        match self.choose_probe(cx, room.min(credit)) {
            ProbeChoice::Send(probe) => return Some(self.send_new(cx, &probe)),
            ProbeChoice::Wait => return None,
            ProbeChoice::No => {}
        }
        if self.waits_for_burst(cx, room, credit) {
            if credit < room && credit <= self.tx.unsent_bytes() {
                self.note_usage(true);
            }
            return None;
        }
        let allow = Allowance { bytes: room.min(credit), mss, burst: self.device_burst(cx, mss) };
        if !self.may_depart(cx) {
            return None;
        }
        let chosen = self.tx.choose(cx.pool, allow);
        let Some(chosen) = chosen.filter(|chosen| self.may_leave(cx, chosen, room, credit)) else {
            if credit < mss {
                self.note_usage(true);
            }
            self.burst_left = 0;
            if !self.has_outstanding() {
                // Nothing will be acknowledged: only a timer gets this moving again.
                self.arm_persist(cx);
            }
            return None;
        };
        let choice = self.send_new(cx, &chosen);
        self.note_usage(chosen.run.len + mss > credit);
        Some(choice)
    }

    /// Whether the windows cut what would leave next, and an acknowledgement will come: what most questions after a burst end in, before
    /// all else is looked at.
    #[inline]
    fn awaits_room(&self, cx: &Context<'_, '_>, room: u32, credit: u32) -> bool {
        let allowed = room.min(credit);
        takes_short_ways()
            && allowed < self.mss()
            && (credit < room || allowed < self.max_wnd / 2)
            && self.has_outstanding()
            && !Self::searches(cx)
            && self.pacing().is_none()
            && self.tx.cuts(cx.pool, allowed)
    }

    /// Notes whether the congestion window is used up, which holds for a flight: the window may grow for all of it
    /// (`tcp_cwnd_validate`). Of the flights that didn't use it up the largest counts.
    #[inline]
    fn note_usage(&mut self, is_used_up: bool) {
        let flight = self.tx.outstanding();
        let is_larger = !self.cwnd_limited && flight > self.most_in_flight;
        if is_used_up || is_larger || self.tx.una.at_or_after(self.most_until) {
            (self.cwnd_limited, self.most_in_flight, self.most_until) = (is_used_up, flight, self.tx.nxt);
        }
    }

    /// Whether less may leave than Linux hands to the device at once, and the next acknowledgement is worth waiting for
    /// (`tcp_tso_should_defer`).
    fn waits_for_burst(&mut self, cx: &Context<'_, '_>, room: u32, credit: u32) -> bool {
        const SOON_US: u32 = 1_000;
        let mss = self.mss();
        if !(cfg!(feature = "platforms") && cx.profile.gathers_bursts && self.phase == Phase::Open) {
            return false;
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return false;
        }
        let allowed = room.min(credit);
        if allowed < mss || self.tx.unsent_bytes() <= mss || self.fin != Fin::Open {
            return false;
        }
        let part = self.snd_wnd.min(self.window.cwnd) / 3;
        let is_enough = allowed >= part || self.is_train_within(2, allowed / mss);
        if !is_enough && time::us_since(cx.now, self.last_data_sent.instant()) <= SOON_US {
            let srtt = self.rtt.srtt();
            let soon = self.tx.oldest_sent_at(cx.pool).is_some_and(|sent_at| {
                let expected = time::after(sent_at, srtt);
                expected <= cx.now || time::us_since(expected, cx.now) <= (srtt / 2).min(SOON_US)
            });
            if soon {
                return true;
            }
        }
        // The rest of the burst leaves with this segment.
        self.burst_left = self.train_segments(2).min(allowed / mss).saturating_sub(1).min(u8::MAX.into()) as u8;
        false
    }

    /// RFC 5681, section 4.1: after an idle time of more than a timeout, from the initial window again.
    fn restart_if_idle(&mut self, cx: &Context<'_, '_>) {
        use crate::congestion::CongestionControl as _;
        if self.has_outstanding() || self.phase != Phase::Open || self.controller.is_rate_based() {
            return;
        }
        let idle = time::us_since(cx.now, self.last_data_sent.instant());
        if idle > self.rtt.rto(&cx.profile.rto) && cx.profile.restart_after_idle {
            let initial = cx.profile.initial_window_bytes(self.mss());
            self.window.cwnd = self.window.cwnd.min(initial);
            self.controller.on_idle(idle);
            self.last_data_sent = Stamp::new(cx.now);
        }
    }

    /// Whether a segment that is not full may leave: silly-window avoidance (RFC 9293, section 3.8.6.2.1, MUST-38)
    /// and Nagle's algorithm (section 3.7.4, SHLD-7).
    fn may_leave(&mut self, cx: &Context<'_, '_>, chosen: &Chosen, room: u32, credit: u32) -> bool {
        let len = chosen.run.len;
        if len >= u32::from(chosen.segment) {
            return true;
        }
        let idle = !self.has_outstanding();
        let rest = self.tx.unsent_bytes() > len;
        if rest && len >= room.min(credit) {
            // The windows cut it. A congestion window opens by itself; the peer's is worth using from half of the
            // largest that it ever offered, or when the override timer says so.
            return len == room && (len >= self.max_wnd / 2 || (idle && core::mem::take(&mut self.force_small)));
        }
        if rest {
            // A buffer that no later write can fill.
            return true;
        }
        if self.fin != Fin::Open || core::mem::take(&mut self.force_small) {
            return true;
        }
        if self.gathers() {
            return !self.timers.is_set(Timer::NoPush);
        }
        let waits = match cx.profile.nagle() {
            Nagle::AnyOutstanding => !idle,
            Nagle::SmallOutstanding => self.small_end.after(self.tx.una),
        };
        self.kept.no_nagle() || !waits
    }

    #[inline]
    fn send_new(&mut self, cx: &mut Context<'_, '_>, chosen: &Chosen) -> Choice {
        if !self.has_outstanding() {
            self.waiting_since = Millis::new(cx.now);
        }
        if self.ack_now || self.timers.is_set(Timer::DelayedAck) {
            // Data that answers at once: so will the next, and carry the acknowledgement.
            self.quick_left = 0;
        }
        self.tell_restart(cx);
        self.tx.sent(cx.pool, chosen, cx.now);
        self.departs(cx, chosen.run.len, self.tx.unsent_bytes().min(self.window_room()));
        if cfg!(feature = "platforms") && chosen.run.len < u32::from(chosen.segment) {
            self.small_end = self.tx.nxt;
        }
        self.last_data_sent = Stamp::new(cx.now);
        self.counts.note(|counts| counts.bytes_sent += u64::from(chosen.run.len));
        self.note_sent(chosen.run.len);
        if cfg!(feature = "platforms") {
            self.train = self.train.saturating_add(1);
        }
        self.timers.stop(Timer::Persist);
        if !self.timers.is_set(Timer::Retransmit) {
            self.arm_retransmit(cx);
        }
        self.arm_tail_loss(cx);
        let mut flags = self.data_flags(cx, chosen);
        if self.cwr_due {
            // RFC 3168, section 6.1.2.
            self.cwr_due = false;
            flags = flags.with(Flags::CWR);
        }
        let (run, segment, ect) = (chosen.run, chosen.segment, self.uses_ecn());
        Choice { run, segment, ect, ..Choice::bare(chosen.seq, flags) }
    }

    /// PSH, and the FIN where it is due and this is the last data.
    #[inline]
    fn data_flags(&mut self, cx: &Context<'_, '_>, chosen: &Chosen) -> Flags {
        let is_last = chosen.seq + chosen.run.len == self.tx.end && self.tx.unsent_bytes() == 0;
        let push = match cx.profile.push() {
            Push::WriteEnd => chosen.push,
            Push::QueueEmpty => is_last,
            Push::TrainEnd => chosen.push || (self.train > 1 && self.is_train_over(cx.profile.least_train)),
        };
        if cfg!(feature = "platforms") && push {
            self.train = 0;
        }
        let fin = is_last && self.fin == Fin::Due && self.syn == Syn::Done;
        if fin {
            self.fin_leaves();
        }
        Flags::default().with_if(push && !self.kept.no_push(), Flags::PSH).with_if(fin, Flags::FIN)
    }

    /// Whether no further full segment can leave now.
    #[inline]
    fn is_train_over(&self, least: u8) -> bool {
        let credit = self.window.cwnd.saturating_sub(self.in_flight());
        let is_last = self.tx.unsent_bytes().min(self.window_room()).min(credit) < self.mss();
        is_last || self.is_train_within(least, self.train.into())
    }

    fn fin_leaves(&mut self) {
        self.fin = Fin::Waiting;
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
    }

    /// The FIN by itself, when all data has left and none of it is lost.
    fn poll_fin(&mut self, cx: &Context<'_, '_>) -> Option<Choice> {
        if self.fin != Fin::Due || self.syn != Syn::Done || self.tx.unsent_bytes() > 0 || self.tx.lost > 0 {
            return None;
        }
        if self.snd_wnd == 0 && !self.fin_was_sent() && self.tx.outstanding() == 0 {
            self.arm_persist(cx);
            return None;
        }
        if !self.has_outstanding() {
            self.waiting_since = Millis::new(cx.now);
        }
        let seq = self.tx.nxt;
        self.fin_leaves();
        if !self.timers.is_set(Timer::Retransmit) {
            self.arm_retransmit(cx);
        }
        self.arm_tail_loss(cx);
        Some(Choice::bare(seq, Flags::FIN))
    }

    /// Makes a segment of a synchronized connection, which acknowledges what has arrived.
    fn put_segment(&mut self, cx: &Context<'_, '_>, choice: &Choice, out: &mut Outgoing) {
        let &Choice { seq, flags, run, segment, ect, acks_again } = choice;
        let window = self.offered_window(cx);
        let mut options = base_options(self.timestamps(cx.now));
        if self.uses_sack() && run.len == 0 && !flags.has(Flags::RST) {
            // 40 bytes of options hold 4 blocks, or 3 beside timestamps (RFC 2018, section 3).
            options.sack = self.rx.sack_blocks(if self.uses_timestamps() { 3 } else { 4 });
        }
        self.last_ack_sent = self.rx.nxt;
        self.ack_now = acks_again;
        self.unacked_rx = 0;
        self.reports = self.reports.min(SOON_REPORTED);
        self.timers.stop(Timer::DelayedAck);
        // A reset offers nothing.
        let window = if flags.has(Flags::RST) { 0 } else { window };
        let flags = flags.with(Flags::ACK).with_if(self.echo_ce && self.uses_ecn(), Flags::ECE);
        *out = Outgoing { seq, ack: self.rx.nxt, flags, window, options, run, segment, ect };
    }

    /// Moves the right edge as far as it goes and returns the window field.
    pub(super) fn offered_window(&mut self, cx: &Context<'_, '_>) -> u16 {
        if self.shut_until_accept(cx) {
            return 0;
        }
        let limit = if cx.profile.takes_unoffered() { u32::MAX } else { self.window_limit() };
        let window = self.rx.offer(cx.pool, limit);
        u16::try_from(window >> self.rcv_shift).unwrap_or(u16::MAX)
    }

    const fn shut_until_accept(&self, cx: &Context<'_, '_>) -> bool {
        self.unaccepted && cx.profile.zero_window_until_accept
    }

    /// The application has taken the connection; a window that was shut until now opens.
    pub(crate) fn accepted(&mut self, cx: &Context<'_, '_>) {
        if core::mem::replace(&mut self.unaccepted, false) && cx.profile.zero_window_until_accept {
            self.ack_now = true;
        }
    }

    /// This end's clock as timestamps show it.
    pub(super) const fn timestamp(&self, now: Instant) -> u32 {
        time::millis(now).wrapping_add(self.ts_offset)
    }

    fn timestamps(&self, now: Instant) -> Option<Timestamps> {
        self.uses_timestamps().then(|| Timestamps { val: self.timestamp(now), echo: self.ts_recent })
    }

    /// Whether the profile lets this connection ask for ECN.
    pub(super) fn asks_for_ecn(cx: &Context<'_, '_>) -> bool {
        cfg!(feature = "ecn") && cx.profile.ecn == EcnPolicy::Request
    }
}
