//! A policer: a token bucket that drops what finds too few tokens, and delays nothing (RFC 2697 with one rate and one
//! burst). A decision, not a machine: it holds no packet.

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
        let since = self.filled_at.replace(now).map_or(0, |before| now.since(before).as_nanos());
        self.tokens = self.tokens.saturating_add(self.bps.saturating_mul(since)).min(self.full);
        let price = u128::from(bytes) * 8 * PARTS;
        let passes = self.tokens >= price;
        self.tokens -= if passes { price } else { 0 };
        passes
    }
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
}
