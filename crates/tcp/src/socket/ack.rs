//! What an acknowledgement does: the send queue, the round-trip time, loss recovery and the congestion window.

use fullpipe_units::SeqNum;

use super::{Context, Events, Fin, Phase, Socket, State, timer::Timer};
use crate::{
    congestion::{Ack, CongestionControl as _, RateSample, Recovery, Sample},
    divide,
    send::Delivered,
    time::{self, Millis},
    wire::tcp::{Flags, Segment},
};

impl Socket {
    /// RFC 9293, section 3.10.7.4, fifth: the ACK field, in a synchronized state. Returns false where the segment
    /// must be dropped.
    #[inline]
    pub(super) fn on_ack(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>) -> bool {
        let (una, nxt, ack) = (self.snd_una(), self.snd_nxt(), segment.ack);
        // RFC 5961, section 5.2: from SND.UNA - MAX.SND.WND to SND.NXT.
        let oldest = una - self.max_wnd;
        if ack.after(nxt) || ack.before(oldest) {
            self.challenge(cx);
            return false;
        }
        if ack.before(una) {
            // An old duplicate: its data may be new all the same.
            return true;
        }
        if ack == una && !self.has_outstanding() && self.is_undisturbed() && segment.options.sack.is_empty() {
            // Nothing waits for an acknowledgement: the peer sends, and this end does not.
            self.update_window(segment);
            return true;
        }
        self.take_ack(cx, segment, una);
        true
    }

    /// An acknowledgement that is not too old, nor beyond what was sent.
    #[inline(never)]
    fn take_ack(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>, una: SeqNum) {
        let ack = segment.ack;
        let flight = self.in_flight();
        let lost_before = self.delivered_and_lost().1;
        let was_outstanding = self.has_outstanding();
        let window_changed = self.update_window(segment);
        let mut delivered = Delivered::new(cx.now, self.rtt.min().unwrap_or(0));
        let mut duplicate = None;
        if self.uses_sack() && !segment.options.sack.is_empty() {
            duplicate = Self::reports_duplicate(segment);
            let blocks = segment.options.sack.as_slice();
            self.tx.sack(cx.pool, blocks, &mut delivered);
        }
        if ack.after(una) {
            self.take_acknowledged(cx, ack, &mut delivered);
        }
        let news = ack.after(una);
        // RFC 5681, section 2: what a duplicate acknowledgement is.
        let is_duplicate = !news
            && was_outstanding
            && segment.payload.is_empty()
            && !window_changed
            && !segment.flags.has(Flags::SYN.with(Flags::FIN));
        self.counts.note(|counts| counts.delivered = counts.delivered.wrapping_add(delivered.segments));
        let echoed_us = self.sample_rtt(cx, segment, &delivered, flight, news);
        if duplicate.is_some() {
            self.note_dsack();
        }
        self.tell_round_trip(cx, &delivered);
        self.recover_losses(
            cx,
            segment,
            &delivered,
            AckKind { news, is_duplicate, flight, una, lost_before, echoed_us },
        );
        self.rearm_after_ack(cx, news, was_outstanding);
    }

    /// Whether data or the FIN waits for an acknowledgement.
    pub(super) fn has_outstanding(&self) -> bool {
        self.tx.outstanding() > 0 || self.fin == Fin::Waiting
    }

    /// Whether an acknowledgement that tells no news changes nothing: no loss is being repaired, nothing was probed for, and
    /// neither marks nor rates count.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.phase == Phase::Open
            && !self.uses_ecn()
            && !self.rack.probe_is_out()
            && !self.probes_path()
            && self.delivery_is_unmeasured()
    }

    /// Bytes thought to be in the network.
    pub(super) fn in_flight(&self) -> u32 {
        self.tx.pipe().saturating_sub(self.reno_credit)
    }

    /// The send window (RFC 9293, section 3.10.7.4): not from old segments. Returns whether it changed.
    pub(super) fn update_window(&mut self, segment: &Segment<'_>) -> bool {
        let newer =
            self.snd_wl1.before(segment.seq) || (self.snd_wl1 == segment.seq && self.snd_wl2.at_or_before(segment.ack));
        if !newer {
            return false;
        }
        let window = u32::from(segment.window) << self.snd_shift;
        let changed = window != self.snd_wnd;
        if self.snd_wnd == 0 && window > 0 {
            self.persist_backoff = 0;
            self.timers.stop(Timer::Persist);
        }
        self.snd_wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        (self.snd_wl1, self.snd_wl2) = (segment.seq, segment.ack);
        changed
    }

    pub(super) fn take_acknowledged(&mut self, cx: &mut Context<'_, '_>, ack: SeqNum, delivered: &mut Delivered) {
        let before = self.tx.una;
        let data_ack = ack.earlier(self.tx.nxt);
        self.tx.acknowledge(cx.pool, data_ack, delivered);
        self.counts.note(|counts| counts.bytes_acked += u64::from(data_ack.distance_from(before)));
        self.waiting_since = Millis::new(cx.now);
        if ack == self.tx.nxt + 1 && self.fin != Fin::Open {
            self.fin = Fin::Done;
        }
        if self.is_write_open() {
            self.events.set(Events::WRITABLE);
        }
    }

    /// RFC 6298, section 3: Karn's rule by the send times of segments sent once, else by timestamps, where `SND.UNA` moved
    /// (RFC 7323, section 4.1). Returns what timestamps told.
    fn sample_rtt(
        &mut self,
        cx: &Context<'_, '_>,
        segment: &Segment<'_>,
        delivered: &Delivered,
        flight: u32,
        news: bool,
    ) -> Option<u32> {
        if delivered.bytes == 0 {
            return None;
        }
        // RFC 7323, appendix G: samples in a round trip when every second segment is acknowledged.
        let per_round = if cx.profile.smooths_each_ack() { 1 } else { flight.div_ceil(2 * self.mss()) };
        if let Some(sent_at) = delivered.clean_sent_at {
            self.rtt.sample(time::us_since(cx.now, sent_at), per_round);
        } else if let (true, true, Some(timestamps)) = (news, self.uses_timestamps(), segment.options.timestamps) {
            let ms = self.timestamp(cx.now).wrapping_sub(timestamps.echo);
            if timestamps.echo != 0 && ms < 1 << 20 {
                // The clock ticks once in a millisecond.
                let us = ms.max(1) * 1_000;
                self.rtt.sample(us, per_round);
                return Some(us);
            }
        }
        None
    }

    fn recover_losses(
        &mut self,
        cx: &mut Context<'_, '_>,
        segment: &Segment<'_>,
        delivered: &Delivered,
        kind: AckKind,
    ) {
        let mss = self.mss();
        let acked = if kind.news { self.tx.una.distance_from(kind.una) } else { 0 };
        let mut delivered_bytes = delivered.bytes;
        if kind.news {
            self.duplicate_acks = 0;
            if !self.uses_sack() {
                // Duplicate ACKs have reported these already.
                delivered_bytes = delivered_bytes.saturating_sub(self.reno_credit);
            }
            // The retransmission was acknowledged, and what duplicate ACKs had reported besides.
            self.reno_credit = self.reno_credit.saturating_sub(acked.saturating_sub(mss));
        } else if kind.is_duplicate && (!self.uses_sack() || delivered.sacked > 0) {
            self.duplicate_acks = self.duplicate_acks.saturating_add(1);
            if !self.uses_sack() {
                self.reno_credit = (self.reno_credit + mss).min(self.tx.pipe());
                delivered_bytes += mss;
            }
        }
        if self.probe_repaired(segment, delivered.bytes > 0) && self.phase == Phase::Open {
            // RFC 8985, section 7.4: a loss that the probe repaired is one all the same.
            self.reduce(cx, kind.flight);
            self.fall_to_threshold();
        }
        self.note_probe_acknowledged(cx);
        self.leave_recovery_if_over();
        if kind.news && self.phase == Phase::Recovery && !self.uses_sack() {
            // RFC 6582, section 3.2, step 3: a partial acknowledgement uncovers the next loss.
            self.tx.mark_first_lost(cx.pool);
        }
        let found = self.find_losses(cx, delivered);
        let found = found && !(self.phase == Phase::Open && self.probe_alone_is_lost(cx));
        match self.phase {
            Phase::Open if found => {
                self.enter_recovery(cx);
                if !self.controller.is_rate_based() && self.uses_sack() {
                    // RFC 9937, section 6: from the acknowledgement on that recovery starts with.
                    self.reduce_proportionally(delivered_bytes, false);
                }
            }
            _ if self.controller.is_rate_based() => {}
            Phase::Open => {
                self.react_to_ecn(cx, segment, kind);
                // RFC 5681, section 3.2, step 1: the first duplicate ACKs must not change the window.
                if kind.news {
                    self.grow_window(cx, delivered_bytes, kind.flight);
                }
            }
            Phase::Recovery => {
                self.reduce_proportionally(delivered_bytes, kind.news && !found);
                if kind.news && !self.uses_sack() {
                    // RFC 6582, section 3.2, step 3: the first unacknowledged segment leaves in any case.
                    self.window.cwnd = self.window.cwnd.max(self.in_flight() + mss);
                }
            }
            Phase::Loss => {
                let ack = self.cc_ack(cx, delivered_bytes, kind.flight);
                if self.window.in_slow_start() {
                    ack.slow_start(&mut self.window);
                }
            }
        }
        if self.phase == Phase::Open && kind.news {
            self.reno_credit = 0;
        }
        self.tell_rate(cx, delivered, delivered_bytes, kind);
    }

    /// Returns whether segments are deemed lost that were not before.
    fn find_losses(&mut self, cx: &mut Context<'_, '_>, delivered: &Delivered) -> bool {
        if self.rack_on(cx) {
            self.rack_update(cx, delivered);
            return self.rack_detect(cx);
        }
        if self.uses_sack() {
            let mss = self.mss();
            return self.tx.sacked > 0 && self.tx.mark_lost_by_count(cx.pool, mss);
        }
        // RFC 6582, section 3.2, step 2: not for duplicates of what a former recovery retransmitted.
        self.phase == Phase::Open
            && self.duplicate_acks >= 3
            && self.tx.una.at_or_after(self.recover)
            && self.tx.mark_first_lost(cx.pool)
    }

    /// The threshold after a congestion signal; ECN tells the peer that it was heard.
    fn reduce(&mut self, cx: &Context<'_, '_>, flight: u32) {
        let mss = self.mss();
        let flight = if cx.profile.reduces_window { self.window.cwnd } else { flight };
        self.window.ssthresh = self.controller.on_congestion(&self.window, cx.now, flight, mss);
        self.cwr_due = self.uses_ecn();
        self.cwr_until = self.tx.nxt;
    }

    /// Fast retransmit and fast recovery (RFC 5681, section 3.2; RFC 6675, section 5; RFC 9937).
    pub(super) fn enter_recovery(&mut self, cx: &Context<'_, '_>) {
        // RFC 5681, section 3.2, step 2: FlightSize is what was not acknowledged by number, whatever SACK has reported of it,
        // less what limited transmit added to the window.
        self.reduce(cx, self.tx.outstanding().min(self.window.cwnd));
        self.counts.note(|counts| counts.recoveries += 1);
        self.phase = Phase::Recovery;
        self.recover = self.tx.nxt;
        (self.prr_delivered, self.prr_out) = (0, 0);
        self.prr_flight = if cfg!(feature = "sack") { self.tx.outstanding().max(1) } else { 1 };
        if !self.controller.is_rate_based() {
            // The first retransmission leaves at once.
            self.window.cwnd = self.in_flight() + self.mss();
        }
        self.timers.stop(Timer::TailLoss);
        self.rack.forget_probe();
    }

    /// Proportional rate reduction (RFC 9937): an acknowledgement is safe where it moves `SND.UNA` and no further loss
    /// is found.
    fn reduce_proportionally(&mut self, delivered: u32, is_safe: bool) {
        let (mss, pipe, ssthresh) = (self.mss(), self.in_flight(), self.window.ssthresh);
        if !cfg!(feature = "sack") {
            // RFC 5681, section 3.2, steps 3 and 4: duplicate ACKs take from what is in flight instead of inflating the
            // window.
            self.window.cwnd = ssthresh;
            return;
        }
        if delivered == 0 {
            return;
        }
        self.prr_delivered = self.prr_delivered.saturating_add(delivered);
        let may_send = if pipe > ssthresh {
            let share = u64::from(self.prr_delivered) * u64::from(ssthresh);
            let share = divide::by(share + u64::from(self.prr_flight - 1), self.prr_flight);
            u32::try_from(share).unwrap_or(u32::MAX).saturating_sub(self.prr_out)
        } else {
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(delivered);
            (limit + if is_safe { mss } else { 0 }).min(ssthresh - pipe)
        };
        // The first retransmission leaves in any case.
        let may_send = may_send.max(if self.prr_out == 0 { mss } else { 0 });
        self.window.cwnd = (pipe + may_send).max(mss);
    }

    fn leave_recovery_if_over(&mut self) {
        if self.phase == Phase::Open || self.tx.una.before(self.recover) {
            return;
        }
        if self.phase == Phase::Recovery {
            // RFC 6582, section 3.2, step 3, full acknowledgement.
            self.fall_to_threshold();
            self.rack_after_recovery();
        }
        self.phase = Phase::Open;
        (self.duplicate_acks, self.reno_credit) = (0, 0);
    }

    /// RFC 3168, section 6.1.2: an echo halves the window as a loss would, once a round trip.
    fn react_to_ecn(&mut self, cx: &Context<'_, '_>, segment: &Segment<'_>, kind: AckKind) {
        if !(self.uses_ecn() && segment.flags.has(Flags::ECE)) || self.tx.una.before(self.cwr_until) {
            return;
        }
        self.counts.note(|counts| counts.ecn_reductions += 1);
        self.reduce(cx, kind.flight);
        self.fall_to_threshold();
    }

    /// What an algorithm gets, without a sample of the rate.
    pub(super) fn cc_ack(&self, cx: &Context<'_, '_>, acked: u32, prior_in_flight: u32) -> Ack {
        let limit = u32::from(cx.profile.slow_start_limit);
        let (delivered, lost_in_all) = self.delivered_and_lost();
        let (rate, rtt_us): (Option<RateSample>, _) = (None, None);
        Ack {
            now: cx.now,
            acked,
            mss: self.mss(),
            srtt_us: self.known_srtt(),
            slow_start_limit: (limit > 0).then_some(limit),
            linux_cubic: cx.profile.linux_cubic,
            cwnd: self.window.cwnd,
            in_flight: self.in_flight(),
            prior_in_flight,
            lost: 0,
            delivered,
            lost_in_all,
            recovery: match self.phase {
                Phase::Open => Recovery::Open,
                Phase::Recovery => Recovery::Fast,
                Phase::Loss => Recovery::Timeout,
            },
            rate,
            rtt_us,
            may_be_delayed: false,
            departs_in_us: 0,
        }
    }

    /// The smoothed round-trip time, once there is one.
    pub(super) fn known_srtt(&self) -> Option<u32> {
        Some(self.rtt.srtt()).filter(|us| *us > 0)
    }

    /// After a reduction, or when it is over. Where rates decide, the algorithm says what the window is.
    fn fall_to_threshold(&mut self) {
        if !self.controller.is_rate_based() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// What slow start's end is found by.
    fn tell_round_trip(&mut self, cx: &Context<'_, '_>, delivered: &Delivered) {
        if let Some(sent_at) = delivered.clean_sent_at.filter(|_| cfg!(feature = "cubic") && cx.profile.linux_cubic) {
            let (una, nxt, mss, srtt_us) = (self.tx.una, self.tx.nxt, self.mss(), self.rtt.srtt());
            let sample = Sample { now: cx.now, rtt_us: time::us_since(cx.now, sent_at), srtt_us, una, nxt, mss };
            self.controller.on_sample(&mut self.window, &sample);
        }
    }

    /// Whether the congestion window was used up in the flight under way, or half of it, while it doubles.
    pub(super) const fn is_window_used(&self) -> bool {
        let is_half_used = self.most_in_flight.saturating_mul(2) > self.window.cwnd;
        self.cwnd_limited || (self.window.in_slow_start() && is_half_used)
    }

    /// RFC 5681, section 3.1, and RFC 7661's point: a window that is not used proves nothing about the path.
    fn grow_window(&mut self, cx: &Context<'_, '_>, acked: u32, prior_in_flight: u32) {
        if acked == 0 || !self.is_window_used() {
            return;
        }
        let ack = self.cc_ack(cx, acked, prior_in_flight);
        self.controller.on_ack(&mut self.window, &ack);
        // Beyond the largest window that TCP can offer growth is noise.
        self.window.cwnd = self.window.cwnd.min(1 << 30);
    }

    fn rearm_after_ack(&mut self, cx: &Context<'_, '_>, news: bool, was_outstanding: bool) {
        if !self.has_outstanding() {
            // RFC 6298, section 5.2.
            if was_outstanding {
                self.timers.stop(Timer::Retransmit);
                self.timers.stop(Timer::TailLoss);
                self.timers.stop(Timer::Reorder);
            }
            if news {
                self.rtt.reset_backoff();
            }
            return;
        }
        if news {
            // Section 5.3.
            self.rtt.reset_backoff();
            self.arm_retransmit(cx);
            self.arm_tail_loss(cx);
        }
    }

    /// The FIN has been acknowledged: the state's part of it (RFC 9293, section 3.10.7.4, fifth).
    #[inline]
    pub(super) fn after_fin_acknowledged(&mut self, cx: &mut Context<'_, '_>) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.is_orphan() {
                    self.timers.set(Timer::State, cx.now, cx.profile.fin_wait_2_us);
                }
            }
            State::Closing => self.enter_time_wait(cx),
            State::LastAck => self.end(cx, None),
            _ => {}
        }
    }
}

/// What kind of acknowledgement is being handled.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckKind {
    news: bool,
    is_duplicate: bool,
    /// Bytes in flight before it.
    pub(super) flight: u32,
    /// `SND.UNA` before it.
    una: SeqNum,
    /// A round-trip time that only timestamps told.
    #[cfg_attr(not(feature = "bbr"), expect(dead_code, reason = "only algorithms that go by rates ask for it"))]
    pub(super) echoed_us: Option<u32>,
    /// Bytes lost in all before it.
    #[cfg_attr(not(feature = "bbr"), expect(dead_code, reason = "only samples of the rate ask for it"))]
    pub(super) lost_before: u32,
}
