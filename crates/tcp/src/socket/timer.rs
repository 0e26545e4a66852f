//! A socket's timers, and what happens when they expire.

use fullpipe_units::Instant;

use super::{Context, Failure, Fin, Phase, Probe, Socket, State, Syn};
use crate::{
    profile::Keepalive,
    time::{self, Millis, Stamp},
};

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
    /// The end of TIME-WAIT, and of FIN-WAIT-2 without an application.
    State,
    /// The peer is silent: keepalive (RFC 9293, section 3.8.4), and the age at which it is taken for dead.
    Silence,
    /// Partial segments under SO_NOPUSH have waited long enough.
    NoPush,
    /// Pacing lets the next segment leave.
    #[cfg(feature = "bbr")]
    Pace,
    /// RFC 9293, section 3.8.6.1, and the override of section 3.8.6.2.1. Something is outstanding or nothing is: it has the
    /// place of `Retransmit`.
    Persist,
}

/// Places for times: `Persist` has none of its own.
const COUNT: usize = Timer::Persist as usize;

/// A bit for each timer.
#[cfg(feature = "bbr")]
type Bits = u16;
#[cfg(not(feature = "bbr"))]
type Bits = u8;

impl Timer {
    const fn place(self) -> usize {
        if matches!(self, Self::Persist) { Self::Retransmit as usize } else { self as usize }
    }
}

/// The times at which they expire. They are kept as microseconds after a common point, which is moved as time goes by:
/// 71 minutes at most. What waits for longer than that looks back when it is called early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    base: Stamp,
    after_us: [u32; COUNT],
    /// A bit for each that is set; the time of the others means nothing.
    running: Bits,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self { base: Stamp::new(Instant::ZERO), after_us: [0; COUNT], running: 0 }
    }

    /// Sets a timer to expire `us` microseconds from now.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(super) fn set(&mut self, timer: Timer, now: Instant, us: u32) {
        let passed = self.passed(now);
        let after_us = match passed.checked_add(us) {
            Some(after_us) if self.running != 0 => after_us,
            _ => {
                for at in &mut self.after_us {
                    *at = at.saturating_sub(passed);
                }
                let moved = time::after(self.base.instant(), passed).max(now);
                self.base = Stamp::new(if self.running == 0 { now } else { moved });
                us
            }
        };
        self.after_us[timer.place()] = after_us;
        if matches!(timer, Timer::Retransmit | Timer::Persist) {
            self.stop(Timer::Retransmit);
            self.stop(Timer::Persist);
        }
        self.running |= 1 << timer as Bits;
    }

    /// From the common point to now. Rounded up: no timer expires early.
    #[inline]
    fn passed(&self, now: Instant) -> u32 {
        time::us_since(Instant::from_nanos(now.as_nanos().saturating_add(999)), self.base.instant())
    }

    /// Sets a timer to expire `us` microseconds from now, or with `other`, where that runs and expires sooner.
    #[inline]
    pub(super) fn set_no_later(&mut self, timer: Timer, now: Instant, us: u32, other: Timer) {
        let passed = self.passed(now);
        if self.is_set(other)
            && let Some(after_us) = passed.checked_add(us)
        {
            self.after_us[timer.place()] = after_us.min(self.after_us[other.place()].max(passed));
            self.running |= 1 << timer as Bits;
        } else {
            let limit_us = time::us_since(self.at(other), now);
            self.set(timer, now, us.min(limit_us));
        }
    }

    pub(super) const fn stop(&mut self, timer: Timer) {
        self.running &= !(1 << timer as Bits);
    }

    pub(super) const fn stop_all(&mut self) {
        self.running = 0;
    }

    pub(super) const fn is_set(&self, timer: Timer) -> bool {
        self.running & 1 << timer as Bits != 0
    }

    /// When a timer expires; far in the future where it is not set.
    pub(super) fn at(&self, timer: Timer) -> Instant {
        if self.is_set(timer) {
            time::after(self.base.instant(), self.after_us[timer.place()])
        } else {
            Instant::FAR_FUTURE
        }
    }

    /// When the first of them expires.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        if self.running == 0 {
            return Instant::FAR_FUTURE;
        }
        // The bit of `Persist` stands for the place of `Retransmit`. Few run at a time.
        let mut left = (self.running | self.running >> COUNT) & ((1 << COUNT) - 1);
        let mut first = u32::MAX;
        while left != 0 {
            first = first.min(self.after_us[left.trailing_zeros() as usize % COUNT]);
            left &= left - 1;
        }
        time::after(self.base.instant(), first)
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
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        let now = cx.now;
        if self.timers.next() > now {
            return;
        }
        if self.timers.take(Timer::State, now) {
            // While it is being opened, a connection's time for that is over.
            let is_opening = cfg!(feature = "platforms") && matches!(self.state, State::SynSent | State::SynReceived);
            self.end(cx, is_opening.then_some(Failure::TimedOut));
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
        if cfg!(feature = "keepalive") && self.timers.take(Timer::Silence, now) {
            self.on_silence(cx);
        }
        if self.timers.take(Timer::NoPush, now) {
            self.force_small = true;
            if !self.kept.no_push() {
                self.tx.mark_push(cx.pool);
            }
        }
        // What waited leaves at the next call.
        #[cfg(feature = "bbr")]
        self.timers.take(Timer::Pace, now);
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
        let answering = self.snd_wnd == 0 && self.silent_ms(cx.now) < self.rtt.rto(&cx.profile.rto) / 1_000;
        let tired = self.rtt.backoff() >= cx.profile.retries || self.user_timeout_passed(cx.now);
        if tired && (!answering || self.orphan) {
            return if cx.profile.resets_the_silent() {
                self.give_up(cx)
            } else {
                self.end(cx, Some(Failure::TimedOut))
            };
        }
        self.counts.note(|counts| counts.timeouts += 1);
        if cfg!(feature = "sack") && self.tx.reneged(cx.pool) {
            self.tx.forget_sacks(cx.pool);
        }
        self.enter_loss(cx);
        if self.fin == Fin::Waiting {
            self.fin = Fin::Due;
        }
        self.note_probe_timeout();
        self.probe_for_black_hole(cx);
        self.rtt.back_off();
        self.arm_retransmit(cx);
    }

    fn on_syn_timeout(&mut self, cx: &mut Context<'_, '_>) {
        let retries = match self.state {
            State::SynSent => self.kept.syn_retries,
            _ => cx.profile.syn_ack_retries,
        };
        if self.rtt.backoff() >= retries || self.user_timeout_passed(cx.now) {
            self.end(cx, Some(Failure::TimedOut));
            return;
        }
        self.syn = Syn::Again;
        self.counts.note(|counts| counts.timeouts += 1);
        self.counts.note(|counts| counts.retransmits += 1);
        self.rtt.back_off();
        // RFC 3168, section 6.1.1.1: a SYN that may have been lost for asking is retransmitted without.
        self.ecn_on = self.uses_ecn() && self.rtt.backoff() <= cx.profile.ecn_retries;
        if cx.profile.plain_syn_after().is_some_and(|after| self.rtt.backoff() >= after) && self.state == State::SynSent
        {
            (self.timestamps_on, self.sack_on, self.scaling, self.rcv_shift) = (false, false, false, 0);
        }
    }

    fn user_timeout_passed(&self, now: Instant) -> bool {
        let waited_ms = Millis::new(now).since(self.waiting_since);
        self.kept.user_timeout_ms().is_some_and(|limit| waited_ms >= limit)
    }

    /// `wait_us`, or less where the user timeout ends before: timers that double would hold a dead peer's buffers for
    /// up to twice as long (RFC 9293, section 3.8.3; Linux shortens them alike).
    #[inline]
    fn within_user_timeout(&self, wait_us: u32, now: Instant) -> u32 {
        let waited_ms = Millis::new(now).since(self.waiting_since);
        match self.kept.user_timeout_ms().map(|limit| limit.saturating_sub(waited_ms)) {
            // Over, and the connection lives: its peer answers.
            None | Some(0) => wait_us,
            Some(left_ms) => wait_us.min(left_ms.saturating_mul(1_000)),
        }
    }

    /// Holds a timer that runs already to a user timeout that was set meanwhile.
    pub(super) fn note_user_timeout(&mut self, now: Instant) {
        if self.timers.is_set(Timer::Retransmit) {
            let left_us = time::us_since(self.timers.at(Timer::Retransmit), now);
            let over = self.user_timeout_passed(now);
            self.timers.set(Timer::Retransmit, now, if over { 1 } else { self.within_user_timeout(left_us, now) });
        }
    }

    /// The peer is taken for dead. It gets a reset, in case it is not.
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
        // Unanswered probes end the connection as unanswered retransmissions do. One that its application has let go of
        // ends even though they are answered: RFC 6429 leaves that to whoever needs the memory.
        if self.probes_unanswered >= cx.profile.retries
            || (self.orphan && self.persist_backoff >= cx.profile.retries)
            || (self.probes_unanswered > 0 && self.user_timeout_passed(cx.now))
        {
            return self.give_up(cx);
        }
        if self.probes_unanswered == 0 {
            // The peer has answered all before: what waits for an answer begins here.
            self.waiting_since = Millis::new(cx.now);
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
        let wait = if self.probes_unanswered > 0 { self.within_user_timeout(wait, cx.now) } else { wait };
        self.timers.set(Timer::Persist, cx.now, wait);
    }

    /// RFC 6298, section 5.1: started when data leaves, unless it runs.
    #[inline]
    pub(super) fn arm_retransmit(&mut self, cx: &Context<'_, '_>) {
        let wait = self.within_user_timeout(self.rtt.rto(&cx.profile.rto), cx.now);
        self.timers.set(Timer::Retransmit, cx.now, wait);
    }

    /// How long the peer has been silent.
    fn silent_ms(&self, now: Instant) -> u32 {
        Millis::new(now).since(self.last_heard)
    }

    fn on_silence(&mut self, cx: &mut Context<'_, '_>) {
        let silent_ms = self.silent_ms(cx.now);
        if self.state != State::TimeWait && self.kept.reap_after_ms().is_some_and(|limit| silent_ms >= limit) {
            return self.give_up(cx);
        }
        // MUST-26: only where nothing has been heard, and (data under way probes by itself) nothing is to be sent.
        let is_idle = matches!(self.state, State::Established | State::CloseWait | State::FinWait2)
            && self.tx.outstanding() == 0
            && self.tx.unsent_bytes() == 0;
        if let Some(keepalive) = self.kept.keepalive()
            && is_idle
            && silent_ms >= idle_ms(keepalive)
        {
            if self.probes_unanswered >= keepalive.probes {
                return self.give_up(cx);
            }
            self.probes_unanswered += 1;
            self.probe = Probe::Window;
        }
        self.arm_silence(cx.now);
    }

    /// Starts the timer that silence lets expire. It is not moved by each arrival but looks back when it expires.
    pub(super) fn arm_silence(&mut self, now: Instant) {
        self.timers.stop(Timer::Silence);
        if !cfg!(feature = "keepalive") || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        let silent_ms = self.silent_ms(now);
        let keepalive = self.kept.keepalive().map(|keepalive| {
            let left_ms = idle_ms(keepalive).saturating_sub(silent_ms);
            let is_probing = self.probes_unanswered > 0 || left_ms == 0;
            if is_probing { keepalive.interval_s.max(1).saturating_mul(1_000) } else { left_ms }
        });
        let reap = self.kept.reap_after_ms().map(|limit| limit.saturating_sub(silent_ms));
        if let Some(wait_ms) = keepalive.into_iter().chain(reap).min() {
            self.timers.set(Timer::Silence, now, wait_ms.saturating_mul(1_000).max(1));
        }
    }

    /// After a timeout: one segment, slow start, and everything outstanding lost (RFC 5681, section 3.1; RFC 6298,
    /// section 5.4).
    fn enter_loss(&mut self, cx: &mut Context<'_, '_>) {
        use crate::congestion::CongestionControl as _;
        let mss = self.mss();
        // RFC 5681, section 3.1, equation 4: once for a flight, not for a retransmission of a retransmission.
        if self.phase == Phase::Open || self.tx.una.at_or_after(self.recover) {
            let flight = if cx.profile.reduces_window { self.window.cwnd } else { self.tx.outstanding() };
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
        if cfg!(any(feature = "cubic", feature = "bbr")) {
            let ack = crate::congestion::Ack { lost: mss, ..self.cc_ack(cx, 0, 0) };
            self.controller.on_timeout(&ack);
        }
    }
}

/// The silence before the first probe; what is distinguished from less, at the most.
fn idle_ms(keepalive: Keepalive) -> u32 {
    keepalive.idle_s.saturating_mul(1_000).min(1 << 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Timer; 4] = [Timer::Retransmit, Timer::DelayedAck, Timer::State, Timer::Silence];

    #[test]
    fn the_persist_timer_takes_the_place_of_the_retransmission_timer() {
        let mut timers = Timers::new();
        let now = Instant::from_nanos(5_000_000_000);
        timers.set(Timer::Retransmit, now, 1_000);
        timers.set(Timer::Persist, now, 3_000);
        assert!(timers.is_set(Timer::Persist) && !timers.is_set(Timer::Retransmit));
        assert_eq!(timers.next(), time::after(now, 3_000));
        timers.set(Timer::Retransmit, now, 2_000);
        assert!(!timers.is_set(Timer::Persist));
        assert_eq!(timers.next(), time::after(now, 2_000));
    }

    proptest! {
        /// Whatever is set when, each expires at its time to the microsecond: also after hours in which none ran.
        #[test]
        fn each_expires_at_its_time(
            steps in prop::collection::vec((0_usize..4, prop_oneof![0_u64..10_000_000, 0_u64..20_000_000_000_000], any::<u32>()), 1..60)
        ) {
            let (mut timers, mut now) = (Timers::new(), Instant::from_nanos(1));
            let mut model = [None; 4];
            for (which, passes_ns, us) in steps {
                now = Instant::from_nanos(now.as_nanos() + passes_ns);
                for (timer, at) in ALL.into_iter().zip(&mut model) {
                    let due = at.is_some_and(|at| at <= now);
                    let near = at.is_some_and(|at: Instant| at.as_nanos().abs_diff(now.as_nanos()) < 1_000);
                    let taken = timers.take(timer, now);
                    prop_assert!(taken == due || near, "{timer:?} at {at:?}, now {now:?}");
                    if taken || due {
                        timers.stop(timer);
                        *at = None;
                    }
                }
                timers.set(ALL[which], now, us);
                model[which] = Some(time::after(now, us));
                for (timer, at) in ALL.into_iter().zip(model) {
                    match at {
                        Some(at) => prop_assert!(timers.at(timer).as_nanos().abs_diff(at.as_nanos()) < 1_000),
                        None => prop_assert!(!timers.is_set(timer)),
                    }
                }
            }
        }
    }
}
