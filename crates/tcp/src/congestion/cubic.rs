//! CUBIC (RFC 9438) in integers: times in milliseconds, windows in bytes.

use fullpipe_units::Instant;

use super::{Ack, CongestionControl, Sample, Window, hystart::HyStart};
use crate::{
    divide::by_small,
    time::{self, Stamp},
};

/// A window that grows with the cube of the time since the last loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic(Stage);

/// The first slow start, or what follows. They are never needed together, and a socket's memory is counted.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Start(HyStart),
    /// A loss has ended it before Linux saw its end, which it goes on to look for: what the window was, and is to be again, follows.
    Lost(HyStart, Peak),
    Epochs(Epochs),
}

/// What is known of the windows before the last loss: see [`Epochs`].
#[derive(Clone, Copy, Debug)]
struct Peak {
    w_max: u32,
    prior: u32,
}

/// The cubic's state.
#[derive(Clone, Copy, Debug, Default)]
struct Epochs {
    /// When the current epoch of congestion avoidance began; nothing before its first ACK.
    epoch: Stamp,
    in_epoch: bool,
    /// The window at which the last loss happened, after fast convergence (`W_max`).
    w_max: u32,
    /// The window that the cubic aims at in this epoch: `W_max`, or where the epoch began if that is larger.
    origin: u32,
    /// Milliseconds from the epoch to the origin (`K`).
    k_ms: u32,
    /// What Reno's window would be (`W_est`).
    w_est: u32,
    /// The window before the last reduction (`cwnd_prior`).
    prior: u32,
    /// Bytes by which the windows have yet to grow, times the window: the fractions of a byte.
    cubic_rest: u32,
    est_rest: u32,
    /// What only Linux has.
    linux: Linux,
}

/// Linux counts in segments, and looks at its curve now and then only.
#[derive(Clone, Copy, Debug, Default)]
struct Linux {
    /// The window, and the tick of the clock, when it last looked (`last_cwnd`, `last_time`).
    window: u32,
    tick: u32,
    /// So many segments are acknowledged until the window grows by one (`cnt`).
    every: u32,
    /// Segments acknowledged since the window grew (`snd_cwnd_cnt`), and since Reno's would have (`ack_cnt`).
    acked: u32,
    est_acked: u32,
}

/// A tick of the clock at 250 Hz, as most kernels have it; ms.
const TICK_MS: u16 = 4;
/// With the same window, Linux looks again after more than so many ticks (`HZ / 32`).
const LOOKS_AGAIN: u32 = 7;

impl Default for Stage {
    fn default() -> Self {
        Self::Start(HyStart::default())
    }
}

impl Cubic {
    /// The state after the first slow start, which is over with this.
    fn with_epochs<R>(&mut self, call: impl FnOnce(&mut Epochs) -> R) -> R {
        let mut epochs = match self.0 {
            Stage::Epochs(epochs) => epochs,
            Stage::Lost(_, Peak { w_max, prior }) => Epochs { w_max, prior, ..Epochs::default() },
            Stage::Start(_) => Epochs::default(),
        };
        let result = call(&mut epochs);
        self.0 = Stage::Epochs(epochs);
        result
    }
}

impl Epochs {
    fn start_epoch(&mut self, now: Instant, cwnd: u32, mss: u32) {
        (self.epoch, self.in_epoch) = (Stamp::new(now), true);
        self.w_est = cwnd;
        (self.cubic_rest, self.est_rest) = (0, 0);
        if cwnd < self.w_max {
            // Section 4.2: K = cbrt((W_max - cwnd_epoch) / C) seconds, C = 0.4, windows in segments. In milliseconds
            // under the root that is a factor of 10^9 / 0.4.
            self.k_ms = cube_root(u64::from(self.w_max - cwnd) * 2_500_000_000 / u64::from(mss.max(1)));
            self.origin = self.w_max;
        } else {
            self.k_ms = 0;
            self.origin = cwnd;
        }
    }

    /// `W_cubic(t) = C * (t - K)^3 + W_max` (section 4.2, figure 1), `t_ms` milliseconds into the epoch.
    fn w_cubic(&self, t_ms: u32, mss: u32) -> u32 {
        // 2^18 ms are four minutes; the cube then is far beyond any window, and nothing below overflows: the cube
        // has 54 bits, 43 after the division, 59 after the segment size.
        let distance = u64::from(t_ms.abs_diff(self.k_ms).min(1 << 18));
        let delta = (distance * distance * distance / 2_500) * u64::from(mss) / 1_000_000;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if t_ms < self.k_ms { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }

    /// Section 4.3: the window that Reno would have, with `alpha` = 3 * (1 - 0.7) / (1 + 0.7) = 9/17 until it has
    /// reached the window before the reduction, and 1 from then on.
    fn grow_estimate(&mut self, acked: u32, cwnd: u32, mss: u32) {
        let (numerator, denominator) = if self.w_est < self.prior { (9_u64, 17_u64) } else { (1, 1) };
        let (grown, rest) = share(acked, u64::from(mss) * numerator, u64::from(cwnd) * denominator, self.est_rest);
        self.w_est = self.w_est.saturating_add(grown);
        self.est_rest = rest;
    }
}

/// `acked * weight / whole`, and the remainder for the next time.
fn share(acked: u32, weight: u64, whole: u64, rest: u32) -> (u32, u32) {
    let whole = whole.max(1);
    let product = (u64::from(acked)).saturating_mul(weight).saturating_add(u64::from(rest));
    (u32::try_from(product / whole).unwrap_or(u32::MAX), u32::try_from(product % whole).unwrap_or(0))
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = ack.slow_start(window);
        }
        if acked == 0 {
            return;
        }
        self.with_epochs(|epochs| epochs.on_ack(window, ack, acked));
    }

    fn on_congestion(&mut self, window: &Window, _: Instant, flight: u32, mss: u32) -> u32 {
        let start = match self.0 {
            Stage::Start(hystart) | Stage::Lost(hystart, _) if hystart.looks_on() => Some(hystart),
            _ => None,
        };
        let threshold = self.with_epochs(|epochs| epochs.on_congestion(window.cwnd, flight, mss));
        if let (Some(hystart), Stage::Epochs(Epochs { w_max, prior, .. })) = (start, self.0) {
            self.0 = Stage::Lost(hystart, Peak { w_max, prior });
        }
        threshold
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        if let Stage::Start(hystart) | Stage::Lost(hystart, _) = &mut self.0 {
            hystart.on_sample(window, sample);
        }
    }

    fn on_timeout(&mut self, ack: &Ack) {
        // Linux begins anew (`bictcp_reset`): nothing is known of the path, and slow start ends as the first one does.
        if ack.linux_cubic {
            self.0 = Stage::Start(HyStart::after_timeout());
        }
    }

    fn on_idle(&mut self, us: u32) {
        // Section 5.8: time without data must not count.
        if let Stage::Epochs(epochs) = &mut self.0 {
            epochs.epoch = Stamp::new(time::after(epochs.epoch.instant(), us));
        }
    }
}

impl Epochs {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack, acked: u32) {
        if ack.linux_cubic {
            return self.on_ack_as_linux(window, ack, acked);
        }
        if !self.in_epoch {
            self.start_epoch(ack.now, window.cwnd, ack.mss);
        }
        self.grow_estimate(acked, window.cwnd, ack.mss);
        let t_ms = time::us_since(ack.now, self.epoch.instant()) / 1_000;
        // Section 4.2: the target is a round trip ahead, and at most half as much again.
        let target = self.w_cubic(t_ms.saturating_add(ack.srtt_us.unwrap_or(0) / 1_000), ack.mss);
        let target = target.clamp(window.cwnd, window.cwnd.saturating_add(window.cwnd / 2));
        if self.w_cubic(t_ms, ack.mss) < self.w_est {
            // Section 4.3: the Reno-friendly region.
            window.cwnd = window.cwnd.max(self.w_est);
        } else {
            // Sections 4.4, 4.5: (target - cwnd) / cwnd for each segment acknowledged.
            let whole = u64::from(window.cwnd);
            let (grown, rest) = share(acked, u64::from(target - window.cwnd), whole, self.cubic_rest);
            window.cwnd = window.cwnd.saturating_add(grown);
            self.cubic_rest = rest;
        }
    }

    /// `bictcp_update` and `tcp_cong_avoid_ai` of Linux.
    fn on_ack_as_linux(&mut self, window: &mut Window, ack: &Ack, acked: u32) {
        let mss = ack.mss.max(1);
        let (cwnd, acked) = ((window.cwnd / mss).max(1), acked.div_ceil(mss));
        let tick = by_small(u64::from(time::millis(ack.now)), TICK_MS) as u32;
        let passed = tick.wrapping_sub(self.linux.tick);
        self.linux.est_acked = self.linux.est_acked.saturating_add(acked);
        let is_new = !self.in_epoch;
        if is_new || self.linux.window != cwnd || passed > LOOKS_AGAIN {
            if is_new || passed > 0 {
                (self.linux.window, self.linux.tick) = (cwnd, tick);
                if is_new {
                    self.start_epoch(ack.now, window.cwnd, mss);
                    self.linux.est_acked = acked;
                }
                let t_ms =
                    (time::us_since(ack.now, self.epoch.instant())).saturating_add(ack.srtt_us.unwrap_or(0)) / 1_000;
                let target = self.w_cubic(t_ms, mss) / mss;
                self.linux.every = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
                // Where nothing was lost yet, nothing is known of the path, and the cubic would creep.
                if self.w_max == 0 {
                    self.linux.every = self.linux.every.min(20);
                }
            }
            // The window that Reno would have grows by 8/15 of a segment in a round trip, throughout.
            let round = (cwnd * 15 / 8).max(1);
            while self.linux.est_acked > round {
                self.linux.est_acked -= round;
                self.w_est = self.w_est.saturating_add(mss);
            }
            let est = self.w_est / mss;
            if est > cwnd {
                self.linux.every = self.linux.every.min(cwnd / (est - cwnd));
            }
        }
        let every = self.linux.every.max(2);
        if self.linux.acked >= every {
            self.linux.acked = 0;
            window.cwnd = window.cwnd.saturating_add(mss);
        }
        self.linux.acked += acked;
        let grown = self.linux.acked / every;
        self.linux.acked -= grown * every;
        window.cwnd = window.cwnd.saturating_add(grown.saturating_mul(mss));
    }

    fn on_congestion(&mut self, cwnd: u32, flight: u32, mss: u32) -> u32 {
        // Section 4.7, fast convergence: a flow that lost below its last maximum yields some more.
        self.w_max = if cwnd < self.w_max { (u64::from(cwnd) * 85 / 100) as u32 } else { cwnd };
        self.prior = cwnd;
        self.in_epoch = false;
        // Section 4.6: ssthresh = flight_size * 0.7, and at least two segments. A flight below the window means that
        // something else was limiting; one above it that recovery had let the window shrink already.
        let flight = flight.min(cwnd);
        ((u64::from(flight) * 7 / 10) as u32).max(2 * mss)
    }
}

/// The integer cube root: the largest `r` with `r^3 <= x`.
fn cube_root(x: u64) -> u32 {
    let mut root = 0_u64;
    let mut rest = x;
    // Three bits of `x` give one bit of the root.
    for shift in (0..=63).rev().step_by(3) {
        root <<= 1;
        let step = 3 * root * (root + 1) + 1;
        if rest >> shift >= step {
            rest -= step << shift;
            root += 1;
        }
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fullpipe_units::SeqNum;
    use proptest::prelude::*;

    use super::*;
    use crate::congestion::tests;

    const MSS: u32 = 1_000;

    fn ack(ms: u64, acked: u32) -> Ack {
        let now = Instant::ZERO + Duration::from_millis(ms);
        Ack { srtt_us: Some(100_000), ..tests::ack(now, acked, MSS) }
    }

    #[test]
    fn the_window_is_back_at_its_maximum_after_k() {
        // W_max = 1000 segments, reduced to 700: K = cbrt(300 / 0.4) = 9.086 s.
        let mut cubic = Cubic::default();
        let mut window = Window::new(1_000 * MSS, 0);
        window.cwnd = cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
        window.ssthresh = window.cwnd;
        assert_eq!(window.cwnd, 700 * MSS);
        let mut at_k = 0;
        for round in 0..140 {
            // A window a round trip, in ACKs of two segments.
            for _ in 0..window.cwnd / (2 * MSS) {
                cubic.on_ack(&mut window, &ack(round * 100, 2 * MSS));
            }
            if round == 91 {
                at_k = window.cwnd;
            }
        }
        assert!((980 * MSS..=1_002 * MSS).contains(&at_k), "{at_k}");
        // At 14 s: 1000 + 0.4 * (14 - 9.086)^3 = 1047.
        assert!((1_035 * MSS..=1_060 * MSS).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn a_short_path_grows_like_reno() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(20 * MSS, 0);
        window.cwnd = cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
        window.ssthresh = window.cwnd;
        // 60 rounds of 1 ms: 9/17 segments a round up to 20, then one a round: about 14 + 6 + 49.
        for round in 0..60 {
            for _ in 0..window.cwnd / MSS {
                let mut one = ack(round, MSS);
                one.srtt_us = Some(1_000);
                cubic.on_ack(&mut window, &one);
            }
        }
        assert!((60 * MSS..=72 * MSS).contains(&window.cwnd), "{}", window.cwnd);
    }

    /// Rounds of 100 ms, each with a window of acknowledgements of two segments, as Linux grows.
    fn linux_rounds(cubic: &mut Cubic, window: &mut Window, rounds: core::ops::Range<u64>) {
        for round in rounds {
            for _ in 0..window.cwnd / (2 * MSS) {
                cubic.on_ack(window, &Ack { linux_cubic: true, ..ack(round * 100, 2 * MSS) });
            }
        }
    }

    #[test]
    fn before_the_first_loss_linux_grows_by_a_twentieth_in_a_round_trip() {
        let mut window = Window::new(200 * MSS, 200 * MSS);
        linux_rounds(&mut Cubic::default(), &mut window, 0..10);
        // 1.05^10 = 1.63; the cubic alone adds less than a segment in a second.
        assert!((320 * MSS..=330 * MSS).contains(&window.cwnd), "{}", window.cwnd);
    }

    /// In round trips shorter than its looks (32 ms with the same window) it is behind.
    #[test]
    fn linux_grows_late_because_it_looks_seldom() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(11 * MSS, 0);
        cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
        window.cwnd = 8 * MSS;
        let mut windows = [0; 6];
        for (round, last) in (0..).zip(&mut windows) {
            for _ in 0..window.cwnd / MSS {
                cubic.on_ack(&mut window, &Ack { linux_cubic: true, srtt_us: Some(13_000), ..ack(round * 13, MSS) });
            }
            *last = window.cwnd / MSS;
        }
        // 8/15 of a segment in each round would be 8, 9, 9, 10, 10, 11.
        assert_eq!(windows, [8, 8, 8, 10, 10, 10]);
    }

    /// Acknowledgements of one round, a millisecond apart, of which none moves `SND.UNA`.
    fn reports(cubic: &mut Cubic, window: &mut Window, rtts_us: &[u32]) {
        for (ms, &rtt_us) in (1_000..).zip(rtts_us) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let (una, nxt) = (SeqNum::new(1), SeqNum::new(500_000));
            cubic.on_sample(window, &Sample { now, rtt_us, srtt_us: 35_000, una, nxt, mss: MSS });
        }
    }

    /// `hystart_update` is asked with each sample while the window is below the threshold, as it is where proportional rate reduction
    /// has made it small.
    #[test]
    fn linux_looks_for_the_end_of_slow_start_while_it_repairs_a_loss() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(437 * MSS, u32::MAX);
        // Three of the eight samples that a round needs.
        reports(&mut cubic, &mut window, &[35_000, 52_000, 52_000]);
        window.ssthresh = cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
        assert_eq!(window.ssthresh, 437 * 7 * MSS / 10);
        window.cwnd = 47 * MSS;
        reports(&mut cubic, &mut window, &[52_000; 20]);
        assert_eq!(window.ssthresh, 47 * MSS);
        // What follows grows towards the window before the loss.
        linux_rounds(&mut cubic, &mut window, 0..40);
        assert!(window.cwnd > 150 * MSS, "{}", window.cwnd);
    }

    #[test]
    fn what_found_the_end_of_slow_start_looks_no_further() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(437 * MSS, u32::MAX);
        reports(&mut cubic, &mut window, &[35_000; 20]);
        assert_eq!(window.ssthresh, 437 * MSS, "the train is as long as the path");
        window.ssthresh = cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
        window.cwnd = 47 * MSS;
        reports(&mut cubic, &mut window, &[52_000; 20]);
        assert_eq!(window.ssthresh, 437 * 7 * MSS / 10);
    }

    #[test]
    fn after_a_timeout_linux_begins_anew() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(1_000 * MSS, 0);
        cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
        cubic.on_timeout(&Ack { linux_cubic: true, ..ack(0, 0) });
        window.cwnd = 100 * MSS;
        // The cubic towards 1,000 segments would be at 300 after ten rounds.
        linux_rounds(&mut cubic, &mut window, 0..10);
        assert!((155 * MSS..=170 * MSS).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn the_estimate_of_reno_grows_by_half_a_segment_on_linux_throughout() {
        let with = |linux_cubic: bool| {
            let mut cubic = Cubic::default();
            let mut window = Window::new(20 * MSS, 0);
            window.cwnd = cubic.on_congestion(&window, Instant::ZERO, window.cwnd, MSS);
            for round in 0..60 {
                for _ in 0..window.cwnd / MSS {
                    cubic.on_ack(&mut window, &Ack { linux_cubic, srtt_us: Some(20_000), ..ack(round * 20, MSS) });
                }
            }
            window.cwnd / MSS
        };
        // 14 + 60 * 8 / 15 = 46, and 62 to 69 with a segment a round from 20 on.
        assert!((42..=47).contains(&with(true)), "{}", with(true));
        assert!(with(false) >= 60, "{}", with(false));
    }

    proptest! {
        #[test]
        fn the_root_is_the_root(x: u64) {
            let r = u128::from(cube_root(x));
            prop_assert!(r.pow(3) <= u128::from(x) && (r + 1).pow(3) > u128::from(x));
        }

        #[test]
        fn nothing_overflows_and_the_window_never_shrinks_on_an_ack(
            start in 1_u32..1 << 30, mss in 1_u32..65_536, ms: u32, srtt_us: u32, acked in 1_u32..1 << 30
        ) {
            let mut cubic = Cubic::default();
            let mut window = Window::new(start, 0);
            window.cwnd = cubic.on_congestion(&window, Instant::ZERO, start, mss);
            for step in 0..4 {
                let before = window.cwnd;
                let now = Instant::ZERO + Duration::from_millis(u64::from(ms) * step);
                cubic.on_ack(&mut window, &Ack { srtt_us: Some(srtt_us), ..tests::ack(now, acked, mss) });
                prop_assert!(window.cwnd >= before);
            }
        }
    }
}
