//! BBR, version 1, as Linux 6.x ships it (draft-cardwell-iccrg-bbr-congestion-control-00): a model of the path, its rate and its
//! least round-trip time, decides how fast data leaves and how much of it is under way. Losses hardly matter to it.
//!
//! Rates are bytes per second, windows are bytes, times are milliseconds or microseconds modulo 2^32.

mod filter;
mod policer;
#[cfg(test)]
mod tests;

use self::{filter::Highest, policer::Policer};
use super::{Ack, CongestionControl, Recovery, Window, scaled};
use crate::{
    divide,
    time::{micros, millis},
};
use fullpipe_units::Instant;

/// Gains are in 256ths.
const ONE: u32 = 256;
/// 2 / ln 2: the least with which the rate doubles in a round trip.
const HIGH: u32 = ONE * 2885 / 1000 + 1;
/// Its inverse: one round trip drains what the start has queued.
const DRAIN: u32 = ONE * 1000 / 2885;
/// The window's gain: acknowledgements may be delayed and come in bunches.
const WINDOW: u32 = 2 * ONE;
/// The phases of the cycle: ask for more, drain what that has queued, cruise.
const PHASES: [u32; 8] = [ONE * 5 / 4, ONE * 3 / 4, ONE, ONE, ONE, ONE, ONE, ONE];
/// The path is full when the rate has not grown by a quarter for so many round trips.
const FULL_ROUNDS: u8 = 3;
/// Round trips for which the highest rate stands.
const RATE_ROUNDS: u32 = 10;
/// How long the least round-trip time stands, and how long a new one is looked for; ms.
const LEAST_MS: u32 = 10_000;
const PROBE_MS: u32 = 200;
/// Segments in flight meanwhile, and the least window.
const LEAST_SEGMENTS: u32 = 4;
/// Round trips for which the largest bunch of acknowledgements stands, twice; and what it counts for at the most; us.
const BUNCH_ROUNDS: u8 = 5;
const BUNCH_US: u32 = 100_000;
/// Beyond so many bytes the bunch is counted anew.
const BUNCH_MOST: u32 = 1 << 30;
/// Below this rate segments leave one by one; bytes per second.
const SINGLE_RATE: u32 = 150_000;
/// Before the first sample; us.
const NOMINAL_RTT_US: u32 = 1_000;

/// Where the model stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The rate doubles each round trip.
    #[default]
    Startup,
    /// What that has queued drains.
    Drain,
    /// The path is full; more is asked for in each cycle.
    ProbeBandwidth,
    /// Four segments in flight: the queue is empty, and the round-trip time the least.
    ProbeRtt,
}

/// BBR's state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bbr {
    mode: Mode,
    recovery: Recovery,
    /// Round trips, counted by deliveries, and where the current one ends.
    rounds: u32,
    round_end: u32,
    is_round_start: bool,
    rate: Highest,
    policer: Policer,
    /// The least round-trip time, and when it was seen.
    least_us: Option<u32>,
    least_at_ms: u32,
    /// When a search for a new one is over.
    probe_until_ms: Option<u32>,
    probe_round_done: bool,
    pacing: u32,
    gain: u32,
    window_gain: u32,
    is_timed: bool,
    has_begun: bool,
    /// The rate against which growth is held, and for how many round trips there was none.
    full_rate: u32,
    full_rounds: u8,
    is_full: bool,
    phase: u8,
    phase_at_us: u32,
    /// The window before a loss or a search took it away.
    prior_window: u32,
    conserves: bool,
    restarts: bool,
    bunch_at_us: u32,
    bunch: u32,
    bunches: [u32; 2],
    bunch_rounds: u8,
    bunch_at: u8,
}

impl Bbr {
    /// The rate of the path as far as it is known.
    fn bandwidth(&self) -> u32 {
        self.policer.rate().unwrap_or_else(|| self.rate.get())
    }

    /// A hundredth less than the estimate, times `gain`.
    fn paced(rate: u32, gain: u32) -> u32 {
        let rate = (u64::from(rate) * u64::from(gain)) >> 8;
        u32::try_from(divide::by(rate * 99, 100)).unwrap_or(u32::MAX)
    }

    /// What leaves at once: a millisecond's worth.
    fn burst(&self, mss: u32) -> u32 {
        let least = if self.pacing < SINGLE_RATE { 1 } else { 2 };
        ((self.pacing >> 10).min(65_535) / mss).clamp(least, 127) * mss
    }

    /// Bytes in flight at `rate` for the least round-trip time, times `gain`.
    fn product(&self, rate: u32, gain: u32, mss: u32) -> u32 {
        let Some(least_us) = self.least_us else { return 10 * mss };
        let bytes = scaled(rate, least_us, 1_000_000);
        let bytes = (u64::from(bytes) * u64::from(gain)).div_ceil(u64::from(ONE));
        u32::try_from(bytes).unwrap_or(u32::MAX).min(1 << 30)
    }

    /// ... with room for what either end keeps together.
    fn with_bursts(&self, bytes: u32, mss: u32) -> u32 {
        let segments = bytes.saturating_add(3 * self.burst(mss)).div_ceil(mss);
        let asks = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        (segments.next_multiple_of(2) + if asks { 2 } else { 0 }).saturating_mul(mss)
    }

    fn target(&self, rate: u32, gain: u32, mss: u32) -> u32 {
        self.with_bursts(self.product(rate, gain, mss), mss)
    }

    fn set_pacing(&mut self, window: &mut Window, ack: &Ack, gain: u32) {
        if let (false, Some(srtt_us)) = (self.is_timed, ack.srtt_us) {
            self.begin_pacing(window, Some(srtt_us));
        }
        let rate = Self::paced(self.bandwidth(), gain);
        if self.is_full || rate > self.pacing {
            self.pacing = rate;
        }
        // A rate of nothing would be for ever.
        window.pacing = Some(self.pacing.max(1));
    }

    fn begin_pacing(&mut self, window: &mut Window, srtt_us: Option<u32>) {
        self.is_timed = srtt_us.is_some();
        let rate = scaled(window.cwnd, 1_000_000, srtt_us.unwrap_or(NOMINAL_RTT_US).max(1));
        self.pacing = Self::paced(rate, HIGH).max(1);
        window.pacing = Some(self.pacing);
    }

    fn update_rate(&mut self, ack: &Ack) {
        self.is_round_start = false;
        let Some(sample) = ack.rate else { return };
        if is_at_or_after(sample.delivered_before, self.round_end) {
            self.round_end = ack.delivered;
            self.rounds = self.rounds.wrapping_add(1);
            self.is_round_start = true;
            self.conserves = false;
        }
        let is_cycling = self.mode == Mode::ProbeBandwidth;
        if self.policer.sample(ack, self.is_round_start, is_cycling) {
            self.enter_cycle(ack);
        }
        let rate = sample.bytes_per_second();
        if !sample.is_app_limited || rate >= self.rate.get() {
            self.rate.update(RATE_ROUNDS, self.rounds, rate);
        }
    }

    /// How much more was acknowledged than the rate explains: acknowledgements come in bunches, between which the window
    /// must last.
    fn update_bunches(&mut self, ack: &Ack) {
        if ack.acked == 0 || ack.rate.is_none() {
            return;
        }
        if self.is_round_start {
            self.bunch_rounds = (self.bunch_rounds + 1).min(31);
            if self.bunch_rounds >= BUNCH_ROUNDS {
                self.bunch_rounds = 0;
                self.bunch_at ^= 1;
                self.bunches[usize::from(self.bunch_at)] = 0;
            }
        }
        let now = micros(ack.now);
        let mut expected = scaled(self.bandwidth(), now.wrapping_sub(self.bunch_at_us), 1_000_000);
        if self.bunch <= expected || self.bunch.saturating_add(ack.acked) >= BUNCH_MOST {
            (self.bunch, self.bunch_at_us, expected) = (0, now, 0);
        }
        self.bunch += ack.acked.min(BUNCH_MOST);
        let extra = self.bunch - expected.min(self.bunch);
        let largest = &mut self.bunches[usize::from(self.bunch_at)];
        *largest = (*largest).max(extra.min(ack.cwnd));
    }

    fn bunch_room(&self) -> u32 {
        if !self.is_full {
            return 0;
        }
        self.bunches[0].max(self.bunches[1]).min(scaled(self.bandwidth(), BUNCH_US, 1_000_000))
    }

    /// What will be in the network when the next segment may leave.
    fn at_departure(&self, in_flight: u32, ack: &Ack) -> u32 {
        let departing = if self.gain > ONE { self.burst(ack.mss) } else { 0 };
        (in_flight + departing).saturating_sub(scaled(self.bandwidth(), ack.departs_in_us, 1_000_000))
    }

    fn update_phase(&mut self, ack: &Ack) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let now = micros(ack.now);
        let is_long = now.wrapping_sub(self.phase_at_us) > self.least_us.unwrap_or(u32::MAX);
        let in_flight = self.at_departure(ack.prior_in_flight, ack);
        let is_over = if self.gain == ONE {
            is_long
        } else if self.gain > ONE {
            is_long && (ack.lost > 0 || in_flight >= self.target(self.rate.get(), self.gain, ack.mss))
        } else {
            is_long || in_flight <= self.target(self.rate.get(), ONE, ack.mss)
        };
        if is_over {
            self.next_phase(now);
        }
    }

    fn next_phase(&mut self, now: u32) {
        self.phase = (self.phase + 1) % PHASES.len() as u8;
        self.phase_at_us = now;
    }

    /// The cycle begins at any phase but the draining one, so that flows don't act in step.
    fn enter_cycle(&mut self, ack: &Ack) {
        self.mode = Mode::ProbeBandwidth;
        let now = micros(ack.now);
        let drawn = (now ^ ack.delivered).wrapping_mul(0x9e37_79b9) >> 16;
        self.phase = 7 - (drawn % 7) as u8;
        self.next_phase(now);
    }

    fn look_whether_full(&mut self, ack: &Ack) {
        if self.is_full || !self.is_round_start || ack.rate.is_none_or(|sample| sample.is_app_limited) {
            return;
        }
        if self.rate.get() >= self.full_rate.saturating_add(self.full_rate / 4) {
            (self.full_rate, self.full_rounds) = (self.rate.get(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn drain(&mut self, window: &mut Window, ack: &Ack) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.ssthresh = self.target(self.rate.get(), ONE, ack.mss);
        }
        let in_flight = self.at_departure(ack.in_flight, ack);
        if self.mode == Mode::Drain && in_flight <= self.target(self.rate.get(), ONE, ack.mss) {
            self.enter_cycle(ack);
        }
    }

    fn update_least(&mut self, window: &mut Window, ack: &Ack) {
        let now = millis(ack.now);
        let is_old = now.wrapping_sub(self.least_at_ms) > LEAST_MS;
        if let Some(rtt_us) = ack.rtt_us
            && (self.least_us.is_none_or(|least| rtt_us <= least) || (is_old && !ack.may_be_delayed))
        {
            (self.least_us, self.least_at_ms) = (Some(rtt_us.max(1)), now);
        }
        if is_old && !self.restarts && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.keep_window(window);
            self.probe_until_ms = None;
        }
        if self.mode == Mode::ProbeRtt {
            window.is_app_limited = true;
            match self.probe_until_ms {
                None if ack.in_flight <= LEAST_SEGMENTS * ack.mss => {
                    self.probe_until_ms = Some(now.wrapping_add(PROBE_MS));
                    self.probe_round_done = false;
                    self.round_end = ack.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_round_done |= self.is_round_start;
                    if self.probe_round_done {
                        self.end_search(window, ack);
                    }
                }
            }
        }
        if ack.rate.is_some_and(|sample| sample.delivered > 0) {
            self.restarts = false;
        }
    }

    fn end_search(&mut self, window: &mut Window, ack: &Ack) {
        let now = millis(ack.now);
        if self.probe_until_ms.is_none_or(|until| !is_after(now, until)) {
            return;
        }
        self.least_at_ms = now;
        window.cwnd = window.cwnd.max(self.prior_window);
        if self.is_full {
            self.enter_cycle(ack);
        } else {
            self.mode = Mode::Startup;
        }
    }

    const fn update_gains(&mut self) {
        (self.gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH, HIGH),
            Mode::Drain => (DRAIN, HIGH),
            Mode::ProbeBandwidth if self.policer.is_known() => (ONE, WINDOW),
            Mode::ProbeBandwidth => (PHASES[self.phase as usize % PHASES.len()], WINDOW),
            Mode::ProbeRtt => (ONE, ONE),
        };
    }

    const fn keep_window(&mut self, window: &Window) {
        let is_cut = !matches!(self.recovery, Recovery::Open) || matches!(self.mode, Mode::ProbeRtt);
        if !is_cut || self.prior_window < window.cwnd {
            self.prior_window = window.cwnd;
        }
    }

    /// Grows the window towards its target, and cuts it where that is smaller.
    fn set_window(&mut self, window: &mut Window, ack: &Ack) {
        let least = LEAST_SEGMENTS * ack.mss;
        if ack.acked > 0 && !self.is_conserving(window, ack) {
            let target = self.product(self.bandwidth(), self.window_gain, ack.mss).saturating_add(self.bunch_room());
            let target = self.with_bursts(target, ack.mss);
            if self.is_full {
                window.cwnd = window.cwnd.saturating_add(ack.acked).min(target);
            } else if window.cwnd < target || ack.delivered < 10 * ack.mss {
                window.cwnd = window.cwnd.saturating_add(ack.acked);
            }
            window.cwnd = window.cwnd.max(least);
        }
        window.cwnd = window.cwnd.min(1 << 30);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(least);
        }
    }

    /// In the first round trip of recovery as much leaves as arrives; after it the window is what it was.
    fn is_conserving(&mut self, window: &mut Window, ack: &Ack) -> bool {
        let before = core::mem::replace(&mut self.recovery, ack.recovery);
        if ack.lost > 0 {
            window.cwnd = window.cwnd.saturating_sub(ack.lost).max(ack.mss);
        }
        if ack.recovery == Recovery::Fast && before != Recovery::Fast {
            self.conserves = true;
            self.round_end = ack.delivered;
            window.cwnd = ack.in_flight + ack.acked;
        } else if before != Recovery::Open && ack.recovery == Recovery::Open {
            window.cwnd = window.cwnd.max(self.prior_window);
            self.conserves = false;
        }
        if self.conserves {
            window.cwnd = window.cwnd.max(ack.in_flight + ack.acked);
        }
        self.conserves
    }

    #[cfg(test)]
    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }
}

/// Of counts and times that come round.
const fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

const fn is_at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

impl CongestionControl for Bbr {
    /// What arrives decides at each acknowledgement, in recovery, too.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !self.has_begun {
            (self.has_begun, self.gain, self.window_gain) = (true, HIGH, HIGH);
        }
        self.update_rate(ack);
        self.update_bunches(ack);
        self.update_phase(ack);
        self.look_whether_full(ack);
        self.drain(window, ack);
        self.update_least(window, ack);
        self.update_gains();
        self.set_pacing(window, ack, self.gain);
        self.set_window(window, ack);
    }

    fn on_congestion(&mut self, window: &Window, _: Instant, _: u32, _: u32) -> u32 {
        self.keep_window(window);
        window.ssthresh
    }

    fn on_timeout(&mut self, ack: &Ack) {
        self.recovery = Recovery::Timeout;
        self.full_rate = 0;
        self.is_round_start = true;
        if self.policer.sample(ack, true, self.mode == Mode::ProbeBandwidth) {
            self.enter_cycle(ack);
        }
    }

    fn on_established(&mut self, now: Instant, window: &mut Window, srtt_us: Option<u32>) {
        self.begin_pacing(window, srtt_us);
        self.least_us = srtt_us;
        (self.least_at_ms, self.bunch_at_us) = (millis(now), micros(now));
    }

    /// Data leaves after a pause of the application's: at the path's rate, not faster.
    fn on_restart(&mut self, window: &mut Window, ack: &Ack) {
        self.restarts = true;
        (self.bunch_at_us, self.bunch) = (micros(ack.now), 0);
        if self.mode == Mode::ProbeBandwidth {
            self.set_pacing(window, ack, ONE);
        } else if self.mode == Mode::ProbeRtt {
            self.end_search(window, ack);
        }
    }

    fn on_idle(&mut self, _: u32) {}

    fn is_rate_based(&self) -> bool {
        true
    }
}
