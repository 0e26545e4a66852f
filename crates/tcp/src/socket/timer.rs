//! A socket's timers, and what happens when they expire.

use fullpipe_units::Instant;

use super::{Context, Failure, Fin, Phase, Probe, Socket, State, Syn};
use crate::time;

/// What a socket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// RFC 6298.
    Retransmit,
    /// RFC 8985, section 7: the tail loss probe.
    TailLoss,
    /// RFC 8985, section 6.3: a segment that is late but may only be out of order.
    Reorder,
    /// RFC 9293, section 3.8.6.3.
    DelayedAck,
    /// RFC 9293, section 3.8.6.1, and the override of section 3.8.6.2.1.
    Persist,
    /// RFC 9293, section 3.8.4.
    Keepalive,
    /// The end of TIME-WAIT, and of FIN-WAIT-2 without an application.
    State,
    /// The peer has been silent for too long.
    Reap,
    /// Partial segments under SO_NOPUSH have waited long enough.
    NoPush,
}

const COUNT: usize = 9;

/// The times at which they expire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    at: [Instant; COUNT],
    /// A bit for each that is set; the time of the others means nothing.
    running: u16,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self { at: [Instant::ZERO; COUNT], running: 0 }
    }

    pub(super) const fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
        self.running |= 1 << timer as u16;
    }

    pub(super) const fn stop(&mut self, timer: Timer) {
        self.running &= !(1 << timer as u16);
    }

    pub(super) const fn is_set(&self, timer: Timer) -> bool {
        self.running & 1 << timer as u16 != 0
    }

    /// When a timer expires; far in the future where it is not set.
    pub(super) const fn at(&self, timer: Timer) -> Instant {
        if self.is_set(timer) { self.at[timer as usize] } else { Instant::FAR_FUTURE }
    }

    pub(super) fn next(&self) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        let mut left = self.running;
        while left != 0 {
            next = next.min(self.at[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
        next
    }

    /// Whether `timer` has expired; if so it is stopped.
    fn take(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.at(timer) <= now;
        if due {
            self.stop(timer);
        }
        due
    }
}

impl Socket {
    /// Does what is due.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        let now = cx.now;
        if self.timers.next() > now {
            return;
        }
        if self.timers.take(Timer::State, now) {
            self.end(cx, None);
        }
        if cfg!(feature = "keepalive") && self.timers.take(Timer::Reap, now) {
            self.on_reap(cx);
        }
        if self.timers.take(Timer::DelayedAck, now) {
            self.ack_now = true;
        }
        if cfg!(feature = "sack") && self.timers.take(Timer::Reorder, now) {
            self.on_reorder_timeout(cx);
        }
        if cfg!(feature = "sack") && self.timers.take(Timer::TailLoss, now) {
            self.on_tail_loss_timeout(cx);
        }
        if self.timers.take(Timer::Retransmit, now) {
            self.on_retransmit_timeout(cx);
        }
        if self.timers.take(Timer::Persist, now) {
            self.on_persist(cx);
        }
        if cfg!(feature = "keepalive") && self.timers.take(Timer::Keepalive, now) {
            self.on_keepalive(cx);
        }
        if self.timers.take(Timer::NoPush, now) {
            self.force_small = true;
        }
    }

    fn on_retransmit_timeout(&mut self, cx: &mut Context<'_, '_>) {
        match self.state {
            State::Closed | State::TimeWait => return,
            State::SynSent | State::SynReceived => return self.on_syn_timeout(cx),
            _ => {}
        }
        if self.tx.outstanding() == 0 && self.fin != Fin::Waiting {
            return;
        }
        // RFC 9293, section 3.8.3: R2. A peer that keeps its window shut but answers is alive (section 3.8.6.1,
        // MUST-37); it is only asked again.
        let answering = self.snd_wnd == 0 && time::us_since(cx.now, self.last_heard) < self.rtt.rto(&cx.profile.rto);
        let tired = self.rtt.backoff() >= cx.profile.retries || self.user_timeout_passed(cx.now);
        if tired && !answering {
            return if cx.profile.resets_the_silent() {
                self.give_up(cx)
            } else {
                self.end(cx, Some(Failure::TimedOut))
            };
        }
        self.counts.timeouts += 1;
        if cfg!(feature = "sack") && self.tx.reneged(cx.pool) {
            self.tx.forget_sacks(cx.pool);
        }
        self.enter_loss(cx);
        if self.fin == Fin::Waiting {
            self.fin = Fin::Due;
        }
        self.probe_for_black_hole(cx);
        self.rtt.back_off();
        self.arm_retransmit(cx);
    }

    fn on_syn_timeout(&mut self, cx: &mut Context<'_, '_>) {
        let retries = match self.state {
            State::SynSent => self.options.syn_retries,
            _ => cx.profile.syn_ack_retries,
        };
        if self.rtt.backoff() >= retries || self.user_timeout_passed(cx.now) {
            self.end(cx, Some(Failure::TimedOut));
            return;
        }
        self.syn = Syn::Again;
        self.counts.timeouts += 1;
        self.counts.retransmits += 1;
        self.rtt.back_off();
        // RFC 3168, section 6.1.1.1: a SYN that may have been lost for asking is sent again without.
        self.ecn_on = self.uses_ecn() && self.rtt.backoff() < 2;
    }

    fn user_timeout_passed(&self, now: Instant) -> bool {
        let waited_ms = time::us_since(now, self.waiting_since) / 1_000;
        self.options.user_timeout_ms.is_some_and(|limit| waited_ms >= limit)
    }

    /// The peer is taken for dead. It is told, in case it is not.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_, '_>) {
        let tell = self.state.is_synchronized();
        self.end(cx, Some(Failure::TimedOut));
        self.reset_due = tell;
    }

    fn on_persist(&mut self, cx: &mut Context<'_, '_>) {
        if self.tx.outstanding() > 0 || (self.tx.unsent_bytes() == 0 && self.fin != Fin::Due) {
            return;
        }
        if self.snd_wnd > 0 {
            self.force_small = true;
            return;
        }
        // Unanswered probes end the connection as unanswered retransmissions do.
        if self.probes_unanswered >= cx.profile.retries
            || (self.probes_unanswered > 0 && self.user_timeout_passed(cx.now))
        {
            return self.give_up(cx);
        }
        self.probes_unanswered += 1;
        self.probe = Probe::Window;
        self.persist_backoff = self.persist_backoff.saturating_add(1);
        self.arm_persist(cx);
    }

    /// RFC 9293, section 3.8.6.1: the first probe after a retransmission timeout (SHLD-29), then exponentially less
    /// often (SHLD-30).
    pub(super) fn arm_persist(&mut self, cx: &Context<'_, '_>) {
        if self.timers.is_set(Timer::Persist) {
            return;
        }
        let rto = u64::from(self.rtt.rto(&cx.profile.rto)) << self.persist_backoff.min(16);
        let wait = u32::try_from(rto).unwrap_or(u32::MAX).min(cx.profile.rto.max_us);
        self.timers.set(Timer::Persist, time::after(cx.now, wait));
    }

    /// RFC 6298, section 5.1: started when data leaves, unless it runs.
    pub(super) fn arm_retransmit(&mut self, cx: &Context<'_, '_>) {
        self.timers.set(Timer::Retransmit, time::after(cx.now, self.rtt.rto(&cx.profile.rto)));
    }

    fn on_keepalive(&mut self, cx: &mut Context<'_, '_>) {
        let Some(keepalive) = self.options.keepalive else { return };
        if !matches!(self.state, State::Established | State::CloseWait | State::FinWait2) {
            return;
        }
        // MUST-26: only where nothing has been heard, and (data under way probes by itself) nothing is to be sent.
        let silent_ns = cx.now.as_nanos().saturating_sub(self.last_heard.as_nanos());
        let busy = self.tx.outstanding() > 0 || self.tx.unsent_bytes() > 0;
        if !busy && silent_ns >= u64::from(keepalive.idle_s) * 1_000_000_000 {
            if self.probes_unanswered >= keepalive.probes {
                return self.give_up(cx);
            }
            self.probes_unanswered += 1;
            self.probe = Probe::Window;
        }
        self.arm_silence_from(cx.now);
    }

    fn on_reap(&mut self, cx: &mut Context<'_, '_>) {
        let Some(limit_ms) = self.options.reap_after_ms else { return };
        if self.state == State::TimeWait {
            return;
        }
        if cx.now.as_nanos().saturating_sub(self.last_heard.as_nanos()) >= u64::from(limit_ms) * 1_000_000 {
            self.give_up(cx);
        } else {
            self.arm_silence_from(cx.now);
        }
    }

    pub(super) fn arm_silence(&mut self, cx: &Context<'_, '_>) {
        self.arm_silence_from(cx.now);
    }

    /// Options changed.
    pub(super) fn rearm_silence(&mut self, now: Instant) {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.arm_silence_from(now);
        }
    }

    /// The timers that silence lets expire. They are not moved by each arrival but look back when they expire.
    fn arm_silence_from(&mut self, now: Instant) {
        const S: u64 = 1_000_000_000;
        if !cfg!(feature = "keepalive") {
            return;
        }
        let heard = self.last_heard.as_nanos();
        match self.options.keepalive {
            Some(keepalive) => {
                let idle = heard.saturating_add(u64::from(keepalive.idle_s) * S);
                let interval = now.as_nanos().saturating_add(u64::from(keepalive.interval_s.max(1)) * S);
                let at = if self.probes_unanswered > 0 || idle <= now.as_nanos() { interval } else { idle };
                self.timers.set(Timer::Keepalive, Instant::from_nanos(at));
            }
            None => self.timers.stop(Timer::Keepalive),
        }
        match self.options.reap_after_ms {
            Some(limit) => {
                let at = heard.saturating_add(u64::from(limit) * 1_000_000).max(now.as_nanos() + 1);
                self.timers.set(Timer::Reap, Instant::from_nanos(at));
            }
            None => self.timers.stop(Timer::Reap),
        }
    }

    /// After a timeout: one segment, slow start, and everything outstanding lost (RFC 5681, section 3.1; RFC 6298,
    /// section 5.4).
    fn enter_loss(&mut self, cx: &mut Context<'_, '_>) {
        use crate::congestion::CongestionControl as _;
        let mss = self.mss();
        // RFC 5681, section 3.1, equation 4: once for a flight, not for a retransmission of a retransmission.
        if self.phase == Phase::Open || self.tx.una.at_or_after(self.recover) {
            let flight = self.tx.outstanding();
            self.window.ssthresh = self.controller.on_congestion(&self.window, cx.now, flight, mss);
        }
        self.window.cwnd = mss;
        self.phase = Phase::Loss;
        self.recover = self.tx.nxt;
        (self.duplicate_acks, self.reno_credit) = (0, 0);
        self.tx.mark_all_lost(cx.pool);
        self.rack.forget_probe();
        self.timers.stop(Timer::TailLoss);
        self.timers.stop(Timer::Reorder);
        self.cwr_due = self.uses_ecn();
    }
}
