//! A token bucket (RFC 2697 with one rate and one burst). A policer drops what finds too few tokens and delays nothing; a
//! shaper lets it wait. A decision, not a machine: it holds no packet.

use core::time::Duration;

use fullpipe_units::Instant;

use crate::PolicerSpec;

/// One token is a bit; so many parts of one are counted, because a nanosecond of any rate in bit/s is a whole number of
/// these.
const PARTS: u128 = 1_000_000_000;

/// The state of one token bucket.
#[derive(Clone, Debug)]
pub struct Policer {
    bps: u128,
    /// What the bucket holds at most.
    full: u128,
    tokens: u128,
    filled_at: Option<Instant>,
}

impl Policer {
    /// A full bucket.
    pub fn new(spec: PolicerSpec) -> Self {
        let full = u128::from(spec.burst.get()) * 8 * PARTS;
        Self { bps: u128::from(spec.rate.bps()), full, tokens: full, filled_at: None }
    }

    /// Whether a packet of `bytes` may pass at `now`; the times of calls don't run backwards.
    pub fn passes(&mut self, now: Instant, bytes: u32) -> bool {
        self.fill(now);
        let price = price(bytes);
        let passes = self.tokens >= price;
        self.tokens -= if passes { price } else { 0 };
        passes
    }

    /// Takes the tokens for a packet of `bytes` that comes at `now`; when there are enough of them, which is the time from
    /// which on the next one may ask. One that is larger than the bucket waits for what is missing all the same.
    pub(crate) fn passes_at(&mut self, now: Instant, bytes: u32) -> Instant {
        self.fill(now);
        let price = price(bytes);
        let missing = price.saturating_sub(self.tokens);
        if missing == 0 {
            self.tokens -= price;
            return now;
        }
        let wait = missing.div_ceil(self.bps.max(1));
        let at = now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        // Filled up to `at`: what the last nanosecond gave beyond the price stays.
        self.filled_at = Some(at);
        self.tokens = (self.tokens + self.bps * wait).saturating_sub(price);
        at
    }

    fn fill(&mut self, now: Instant) {
        let since = self.filled_at.replace(now).map_or(0, |before| now.since(before).as_nanos());
        self.tokens = self.tokens.saturating_add(self.bps.saturating_mul(since)).min(self.full);
    }
}

fn price(bytes: u32) -> u128 {
    u128::from(bytes) * 8 * PARTS
}

#[cfg(test)]
mod tests {
    use fullpipe_units::{Bytes, Rate};

    use super::*;

    /// 8 Mbit/s are 1,000 bytes a millisecond.
    fn policer() -> Policer {
        Policer::new(PolicerSpec { rate: Rate::from_bps(8_000_000), burst: Bytes::new(10_000) })
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut policer = policer();
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        let burst = (0..20).filter(|_| policer.passes(at(5), 1_000)).count();
        assert_eq!(burst, 10);
        // Twice the rate for a second: half of it passes.
        let passed = (1..=2_000).filter(|step| policer.passes(at(5 + step * 500), 1_000)).count();
        assert_eq!(passed, 1_000);
    }

    #[test]
    fn a_pause_fills_the_bucket_and_no_more() {
        let mut policer = policer();
        while policer.passes(Instant::from_nanos(0), 1_000) {}
        let late = Instant::from_nanos(3_600_000_000_000);
        assert_eq!((0..20).filter(|_| policer.passes(late, 1_000)).count(), 10);
    }

    #[test]
    fn a_shaper_lets_a_burst_through_at_once_and_then_the_rate() {
        let mut shaper = policer();
        let mut now = Instant::from_nanos(5_000);
        for step in 0..30_u64 {
            now = shaper.passes_at(now, 1_000);
            let after_burst = (step + 1).saturating_sub(10);
            assert_eq!(now, Instant::from_nanos(5_000 + after_burst * 1_000_000), "packet {step}");
        }
        // 4 ms of silence are good for 4 packets.
        let later = now + Duration::from_millis(4);
        let at = |shaper: &mut Policer| shaper.passes_at(later, 1_000);
        assert_eq!([at(&mut shaper), at(&mut shaper), at(&mut shaper), at(&mut shaper)], [later; 4]);
        assert_eq!(at(&mut shaper), later + Duration::from_millis(1));
    }

    #[test]
    fn a_packet_larger_than_the_bucket_is_late_and_not_lost() {
        let mut shaper = Policer::new(PolicerSpec { rate: Rate::from_bps(8_000_000), burst: Bytes::new(500) });
        let now = Instant::from_nanos(0);
        assert_eq!(shaper.passes_at(now, 1_500), now + Duration::from_millis(1));
    }
}
