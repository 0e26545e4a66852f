//! The round-trip time and the retransmission timeout (RFC 6298).

use crate::{IS_DEVICE, profile::Rto};

/// The estimator of one connection. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    /// Smoothed round-trip time, zero before the first sample.
    srtt: u32,
    rttvar: u32,
    /// How often the timer has expired in a row: the timeout is doubled as often.
    backoff: u8,
    /// Whether the SYN had to be retransmitted.
    is_syn_lost: bool,
    /// The least sample so far; `u32::MAX` before the first.
    min: u32,
}

impl Rtt {
    /// RFC 6298, section 2.1: before a sample the timeout is the initial one.
    pub(crate) const fn new() -> Self {
        Self { srtt: 0, rttvar: 0, backoff: 0, is_syn_lost: false, min: u32::MAX }
    }

    /// Takes a sample, of which about `per_round` arrive each round trip.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(crate) fn sample(&mut self, us: u32, per_round: u32) {
        // A day's round trip is a broken clock.
        let us = us.clamp(1, 1 << 30);
        self.min = self.min.min(us);
        if self.srtt == 0 {
            // Section 2.2.
            self.srtt = us;
            self.rttvar = us / 2;
        } else {
            // Section 2.3, with alpha = 1/8 and beta = 1/4, spread over a round's samples (RFC 7323, appendix G).
            // All are below 2^30, so that sums and differences fit 32 bits.
            let n = per_round.clamp(1, 1 << 16) as i32;
            let (srtt, rttvar) = (self.srtt as i32, self.rttvar as i32);
            let error = us as i32 - srtt;
            let change = error.abs() - rttvar;
            // Linux takes each sample with its full weight: a shift is enough there.
            let (change, error) =
                if n == 1 && !IS_DEVICE { (change / 4, error / 8) } else { (change / (4 * n), error / (8 * n)) };
            self.rttvar = (rttvar + change).clamp(0, 1 << 30) as u32;
            self.srtt = (srtt + error).clamp(1, 1 << 30) as u32;
        }
        // Section 5: a sample ends the backing off.
        self.backoff = 0;
    }

    /// The timeout, backed off.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(crate) fn rto(&self, rto: &Rto) -> u32 {
        let doubled = self.base(rto).saturating_mul(1 << self.backoff.min(31));
        // The first SYN's timeout is the initial one alone.
        let is_first = self.srtt == 0 && self.backoff == 0;
        let added = if adds_margin(rto) && !is_first { rto.margin_us } else { 0 };
        doubled.saturating_add(added).min(rto.max_us)
    }

    /// The timeout before backing off.
    fn base(&self, rto: &Rto) -> u32 {
        if self.srtt > 0 {
            // Section 2.3: RTO = SRTT + max(G, 4 * RTTVAR). Sections 2.4, 2.5.
            let least = if adds_margin(rto) { 0 } else { rto.margin_us };
            let margin = self.rttvar.saturating_mul(4).min(1 << 31).max(least);
            (self.srtt + margin).max(rto.min_us).min(rto.max_us)
        } else if self.is_syn_lost {
            rto.initial_us.max(rto.after_lost_syn_us)
        } else {
            rto.initial_us
        }
    }

    /// Section 5.5: the timer expired.
    pub(crate) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// New data was acknowledged without a sample: the path works.
    pub(crate) const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Section 5.7: the SYN's timer expired and the handshake is over.
    pub(crate) const fn after_lost_syn(&mut self) {
        self.is_syn_lost = true;
        self.backoff = 0;
    }

    pub(crate) const fn srtt(&self) -> u32 {
        self.srtt
    }

    pub(crate) const fn rttvar(&self) -> u32 {
        self.rttvar
    }

    pub(crate) const fn min(&self) -> Option<u32> {
        if self.min == u32::MAX { None } else { Some(self.min) }
    }

    pub(crate) const fn backoff(&self) -> u8 {
        self.backoff
    }
}

/// What only other platforms do.
const fn adds_margin(rto: &Rto) -> bool {
    cfg!(feature = "platforms") && rto.adds_margin
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTO: Rto = Rto {
        initial_us: 1_000_000,
        min_us: 1_000,
        margin_us: 1_000,
        adds_margin: false,
        max_us: 60_000_000,
        after_lost_syn_us: 3_000_000,
    };

    #[test]
    fn the_first_sample_makes_three_round_trips() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.rto(&RTO), 1_000_000);
        rtt.sample(80_000, 1);
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto(&RTO)), (80_000, 40_000, 240_000));
    }

    #[test]
    fn expiry_doubles_up_to_the_bound_and_a_sample_ends_it() {
        let mut rtt = Rtt::new();
        for expected in [2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000, 60_000_000, 60_000_000] {
            rtt.back_off();
            assert_eq!(rtt.rto(&RTO), expected);
        }
        rtt.sample(1_000, 1);
        assert_eq!(rtt.rto(&RTO), 3_000);
    }

    /// FreeBSD: SYNs wait 1 s and then 2.2 s; with a round-trip time of 100 ms it is 0.5 s and then 0.8 s.
    #[test]
    fn a_margin_that_is_added_comes_on_top_of_the_doubling() {
        let rto = Rto { margin_us: 200_000, adds_margin: true, ..RTO };
        let mut rtt = Rtt::new();
        assert_eq!(rtt.rto(&rto), 1_000_000);
        rtt.back_off();
        assert_eq!(rtt.rto(&rto), 2_200_000);
        rtt.sample(100_000, 1);
        assert_eq!(rtt.rto(&rto), 500_000);
        rtt.back_off();
        assert_eq!(rtt.rto(&rto), 800_000);
    }

    proptest! {
        #[test]
        fn the_timeout_stays_in_its_bounds(samples in prop::collection::vec((any::<u32>(), any::<u32>()), 0..50)) {
            let mut rtt = Rtt::new();
            for (us, per_round) in samples {
                rtt.sample(us, per_round);
                prop_assert!((RTO.min_us..=RTO.max_us).contains(&rtt.rto(&RTO)));
            }
        }
    }
}
