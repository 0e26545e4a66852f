//! Samples of the delivery rate for algorithms that ask for them, and segments that leave at the rate that these set.

use super::{Context, Socket, ack::AckKind, timer::Timer};
use crate::{
    congestion::CongestionControl as _,
    divide,
    send::Delivered,
    time::{self, Stamp},
};

/// So many segments leave unpaced at the start (`sch_fq`, and Linux after it).
const UNPACED: u8 = 10;

/// When segments leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// When the next burst may begin.
    at: Stamp,
    /// Bytes that still leave with the one that has begun.
    left: u32,
    unpaced: u8,
}

impl Socket {
    /// Whether samples are taken follows the algorithm.
    pub(super) fn take_samples(&mut self) {
        self.tx.rates.is_on = self.controller.is_rate_based();
    }

    /// Whether no samples are taken.
    pub(super) const fn delivery_is_unmeasured(&self) -> bool {
        !self.tx.rates.is_on
    }

    pub(super) const fn delivered_and_lost(&self) -> (u32, u32) {
        (self.tx.rates.delivered, self.tx.rates.lost)
    }

    /// The rate at which segments leave, in bytes per second, where one is set.
    pub(super) const fn pacing(&self) -> Option<u32> {
        self.window.pacing
    }

    /// Whether a segment may leave now; if not, a timer says when.
    #[inline]
    pub(super) fn may_depart(&mut self, cx: &Context<'_, '_>) -> bool {
        if self.window.pacing.is_none() || self.pacer.left > 0 || self.pacer.at.instant() <= cx.now {
            return true;
        }
        let wait_us = time::us_since(self.pacer.at.instant(), cx.now) + 1;
        self.timers.set(Timer::Pace, cx.now, wait_us);
        false
    }

    /// A segment leaves, with `more` bytes behind it. It takes the time that its bytes need at the rate; a burst of what Linux would
    /// hand to the device leaves at once, as far as the windows let it: what they let go later is another one.
    #[inline]
    pub(super) fn departs(&mut self, cx: &Context<'_, '_>, len: u32, more: u32) {
        let Some(rate) = self.window.pacing else { return };
        if self.pacer.unpaced < UNPACED {
            self.pacer.unpaced += 1;
            return;
        }
        let taken = divide::by(u64::from(len) * 1_000_000_000, rate.clamp(1, (1 << 31) - 1));
        if self.pacer.left == 0 {
            let at = self.pacer.at.instant();
            let mss = self.mss();
            let credit = self.window.cwnd.saturating_sub(self.in_flight()).min(more);
            self.pacer.left = self.burst().min(len + credit / mss * mss).max(len);
            if at < cx.now {
                // A timer that was late is made up for, by half of the burst at the most.
                let late = cx.now.as_nanos() - at.as_nanos();
                let half = divide::by(u64::from(self.pacer.left) * 500_000_000, rate.clamp(1, (1 << 31) - 1));
                let begin = cx.now.as_nanos() - late.min(half);
                self.pacer.at = Stamp::new(fullpipe_units::Instant::from_nanos(begin));
            }
        }
        let next = self.pacer.at.instant().as_nanos().saturating_add(taken);
        self.pacer.at = Stamp::new(fullpipe_units::Instant::from_nanos(next));
        self.pacer.left = self.pacer.left.saturating_sub(len);
    }

    /// What the device may take at once: paced, no more than a burst.
    pub(super) fn device_burst(&self, cx: &Context<'_, '_>, mss: u32) -> u32 {
        let most = cx.burst.max(mss);
        if self.window.pacing.is_some() { most.min(self.burst().max(mss)) } else { most }
    }

    /// The application writes, and what it wrote before has left, with room for more.
    pub(super) fn note_application_limit(&mut self, mss: u32) {
        let in_flight = self.in_flight();
        if self.tx.rates.is_on && self.tx.unsent_bytes() < mss && in_flight < self.window.cwnd && self.tx.lost == 0 {
            self.tx.rates.limited_by_application(in_flight);
        }
    }

    /// New data leaves, and nothing is in flight.
    #[inline]
    pub(super) fn tell_restart(&mut self, cx: &Context<'_, '_>) {
        if self.tx.rates.is_on && self.in_flight() == 0 && self.tx.rates.is_app_limited() {
            let ack = self.cc_ack(cx, 0, 0);
            self.controller.on_restart(&mut self.window, &ack);
        }
    }

    /// An acknowledgement, to an algorithm that goes by rates.
    #[inline]
    pub(super) fn tell_rate(&mut self, cx: &Context<'_, '_>, delivered: &Delivered, bytes: u32, kind: AckKind) {
        if !self.tx.rates.is_on {
            return;
        }
        let (rate, rtt_us) = self.tx.rates.sample(bytes, delivered);
        let mut ack = self.cc_ack(cx, bytes, kind.flight);
        (ack.rate, ack.rtt_us) = (rate, rtt_us.or(kind.echoed_us));
        ack.lost = ack.lost_in_all.wrapping_sub(kind.lost_before);
        ack.may_be_delayed =
            delivered.segments == 1 && bytes == kind.flight && bytes < ack.mss && self.tx.outstanding() == 0;
        ack.departs_in_us = time::us_since(self.pacer.at.instant(), cx.now);
        self.window.is_app_limited = false;
        self.controller.on_ack(&mut self.window, &ack);
        if self.window.is_app_limited {
            self.tx.rates.limited_by_application(ack.in_flight);
        }
    }
}
