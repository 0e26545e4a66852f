//! RACK-TLP (RFC 8985): losses found by time, and a probe for a lost tail.

use fullpipe_units::{Instant, SeqNum};

use super::{Context, Phase, Probe, Socket, timer::Timer};
use crate::{
    send::{Delivered, sent_after},
    time::{self, Stamp},
    wire::tcp::{SackBlock, Segment},
};

/// How soon a tail loss probe may leave. On a path of 20 us twice the round-trip time is less than a busy host takes to
/// get to the segment: each probe would be for nothing. Linux's least is two ticks (TCP_TIMEOUT_MIN), 2 ms at 1000 Hz.
const LEAST_PROBE_US: u32 = 2_000;

/// Linux counts from no less.
#[cfg(feature = "platforms")]
const LEAST_OVERTAKEN: u8 = 3;

/// The algorithm's variables (RFC 8985, section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// The delivered segment that was sent last: when, its end, and its round-trip time.
    sent_at: Stamp,
    end: SeqNum,
    rtt_us: u32,
    /// The highest sequence number delivered (`RACK.fack`).
    forward: SeqNum,
    order: Order,
    /// By how many segments one has been overtaken, at the most.
    #[cfg(feature = "platforms")]
    overtaken: u8,
    /// The reordering window in quarters of the least round-trip time, and how long it stays widened.
    window_quarters: u8,
    window_persist: u8,
    /// While it does, another widening is taken once a round trip: when this is acknowledged.
    dsack_round: SeqNum,
    /// The tail loss probe under way: its end, and whether it was a retransmission.
    probe: TailProbe,
    probe_end: SeqNum,
}

/// What deliveries have shown of the order in which segments arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// Nothing has been delivered.
    #[default]
    Unknown,
    Kept,
    Changed,
}

/// A tail loss probe under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TailProbe {
    #[default]
    None,
    /// Of new data.
    New,
    /// Of data that was sent before.
    Again,
}

impl Rack {
    pub(super) const fn forget_probe(&mut self) {
        self.probe = TailProbe::None;
    }

    pub(super) const fn probe_is_out(&self) -> bool {
        !matches!(self.probe, TailProbe::None)
    }

    pub(super) const fn note_probe(&mut self, end: SeqNum, probe: TailProbe) {
        (self.probe, self.probe_end) = (probe, end);
    }

    /// Section 6.2, steps 1 to 3.
    #[inline]
    fn update(&mut self, delivered: &Delivered, una: SeqNum, now: Instant, mss: u32) {
        let Some(latest) = delivered.latest else { return };
        if self.order == Order::Unknown || sent_after(latest.sent_at, latest.end, self.sent_at.instant(), self.end) {
            (self.sent_at, self.end) = (Stamp::new(latest.sent_at), latest.end);
            self.rtt_us = time::us_since(now, latest.sent_at);
        }
        if self.order == Order::Unknown {
            // Nothing came before what an acknowledgement reports first, however much it is.
            (self.order, self.forward) = (Order::Kept, una);
        } else if let Some(end) = delivered.lowest_clean.filter(|end| end.before(self.forward)) {
            self.order = Order::Changed;
            // From the front of the one to the end of the foremost that came before it (`tcp_check_sack_reordering`).
            self.note_overtaken(self.forward.distance_from(end).div_ceil(mss) + 1);
        }
        self.forward = self.forward.later(latest.end).later(una);
    }

    #[cfg(feature = "platforms")]
    fn note_overtaken(&mut self, segments: u32) {
        self.overtaken = self.overtaken.max(u8::try_from(segments).unwrap_or(u8::MAX));
    }

    #[cfg(not(feature = "platforms"))]
    #[expect(clippy::unused_self, reason = "without other platforms nobody counts")]
    const fn note_overtaken(&self, _: u32) {}

    /// By how many segments one has been overtaken, at the most.
    #[cfg(feature = "platforms")]
    pub(super) fn reordering(&self) -> u8 {
        self.overtaken.max(LEAST_OVERTAKEN)
    }

    /// Section 6.2, step 4: how much longer than the latest delivery's round trip a segment may take.
    fn reorder_window_us(&self, in_recovery: bool, three_sacked: bool, srtt_us: u32, min_rtt_us: u32) -> u32 {
        if self.order != Order::Changed && (in_recovery || three_sacked) {
            return 0;
        }
        (min_rtt_us / 4).saturating_mul(u32::from(self.window_quarters.max(1))).min(srtt_us)
    }
}

impl Socket {
    /// Whether losses are found by time.
    pub(super) const fn rack_on(&self, cx: &Context<'_, '_>) -> bool {
        self.uses_sack() && cx.profile.rack
    }

    /// Whether the first SACK block reports a duplicate (RFC 2883, section 4).
    pub(super) fn reports_duplicate(segment: &Segment<'_>) -> Option<SackBlock> {
        let blocks = segment.options.sack.as_slice();
        let first = *blocks.first()?;
        let old = first.end.at_or_before(segment.ack);
        let inside = |outer: &SackBlock| first.start.at_or_after(outer.start) && first.end.at_or_before(outer.end);
        (old || blocks.get(1).is_some_and(inside)).then_some(first)
    }

    /// Section 6.2, step 4: a retransmission that was not needed widens the reordering window.
    pub(super) fn note_dsack(&mut self) {
        let una = self.tx.una;
        if self.rack.window_persist > 0 && una.before(self.rack.dsack_round) {
            return;
        }
        self.rack.dsack_round = self.tx.nxt;
        self.rack.window_quarters = self.rack.window_quarters.max(1).saturating_add(1);
        self.rack.window_persist = 16;
    }

    /// A recovery without a DSACK: after sixteen the window is narrow again.
    pub(super) const fn rack_after_recovery(&mut self) {
        self.rack.window_persist = self.rack.window_persist.saturating_sub(1);
        if self.rack.window_persist == 0 {
            self.rack.window_quarters = 1;
        }
    }

    #[inline]
    pub(super) fn rack_update(&mut self, cx: &Context<'_, '_>, delivered: &Delivered) {
        self.rack.update(delivered, self.tx.una, cx.now, self.mss());
    }

    /// Section 6.2, step 5. Returns whether any segment was found lost.
    #[inline]
    pub(super) fn rack_detect(&mut self, cx: &mut Context<'_, '_>) -> bool {
        if self.rack.order == Order::Unknown {
            return false;
        }
        let min_rtt = self.rtt.min().unwrap_or(0);
        let three = self.tx.sacked >= 3 * self.mss();
        let reorder = self.rack.reorder_window_us(self.phase != Phase::Open, three, self.rtt.srtt(), min_rtt);
        let allowed = self.rack.rtt_us.saturating_add(reorder);
        let latest = (self.rack.sent_at.instant(), self.rack.end);
        let (any, wait) = self.tx.mark_lost_by_time(cx.pool, latest, cx.now, allowed);
        match wait {
            Some(us) => self.timers.set(Timer::Reorder, cx.now, us),
            None => self.timers.stop(Timer::Reorder),
        }
        any
    }

    /// Section 6.3: the reordering timer.
    pub(super) fn on_reorder_timeout(&mut self, cx: &mut Context<'_, '_>) {
        if self.rack_detect(cx) && self.phase == Phase::Open && !self.probe_alone_is_lost(cx) {
            self.enter_recovery(cx);
        }
    }

    /// Section 7.2: when a tail loss probe is due, if at all.
    pub(super) fn arm_tail_loss(&mut self, cx: &Context<'_, '_>) {
        if !cfg!(feature = "sack") {
            return;
        }
        let wanted = self.rack_on(cx)
            && self.phase == Phase::Open
            && self.has_outstanding()
            && self.tx.sacked == 0
            && !self.rack.probe_is_out();
        if !wanted {
            return self.timers.stop(Timer::TailLoss);
        }
        let srtt = self.rtt.srtt();
        let mut wait = if srtt > 0 { srtt.saturating_mul(2).max(LEAST_PROBE_US) } else { 1_000_000 };
        if self.tx.outstanding() <= self.mss() {
            // One segment: the peer may delay its acknowledgement.
            wait = wait.saturating_add(200_000);
        }
        // Where the retransmission timeout would come first, the probe takes its place: it costs no window.
        self.timers.set_no_later(Timer::TailLoss, cx.now, wait, Timer::Retransmit);
    }

    /// Section 7.3.
    pub(super) fn on_tail_loss_timeout(&mut self, cx: &Context<'_, '_>) {
        let alive = self.state.can_send() && self.has_outstanding();
        if alive && self.phase == Phase::Open && !self.rack.probe_is_out() {
            self.probe = Probe::TailLoss;
            // "TLP_send_probe ... re-arm the RTO".
            self.arm_retransmit(cx);
        }
    }

    /// Section 7.4: what an acknowledgement says about the probe. Returns whether the probe repaired a loss.
    pub(super) fn probe_repaired(&mut self, segment: &Segment<'_>, news: bool) -> bool {
        let end = self.rack.probe_end;
        if !cfg!(feature = "sack") || !self.rack.probe_is_out() || segment.ack.before(end) {
            return false;
        }
        if self.rack.probe == TailProbe::New {
            self.rack.forget_probe();
            return false;
        }
        if Self::reports_duplicate(segment).is_some_and(|block| block.end.at_or_before(end)) {
            // The original and the probe both arrived.
            self.rack.forget_probe();
            return false;
        }
        if segment.ack.after(end) {
            self.rack.forget_probe();
            return true;
        }
        // A duplicate ACK without SACK news: the peer had it already.
        if !news && segment.options.sack.is_empty() && segment.payload.is_empty() {
            self.rack.forget_probe();
        }
        false
    }
}
