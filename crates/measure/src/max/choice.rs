//! Which of the mechanisms that were tried to use, and when to give it up: no sockets and no clock.

use super::{Harm, Mechanism, Trial};

/// What one mechanism did in its turns, or a connection in a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Deeds {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) processor_s: f64,
    /// Sent again (of a sender), or out of order (of a receiver).
    pub(super) astray: u64,
    pub(super) segments: u64,
    /// The largest that was seen; 0 where none was.
    pub(super) rtt_us: u32,
    /// Time in which the receiver's window held the senders back, all together; 0 where it is not known.
    pub(super) held_back_s: f64,
}

/// Of the segments; a path that loses more is no place to look for the last percent.
const ASTRAY_MORE: f64 = 0.001;

/// Below this number a share of one in a thousand says nothing.
const ASTRAY_LEAST: u64 = 10;

/// A sleep is at most half of it, so that a healthy timed drain stays below.
const RTT_MORE_US: f64 = 1_000.0;

/// Of the time.
const HELD_BACK_MORE: f64 = 0.25;

/// What a fast way may fall below a plain one before it counts as harm; turns of 50 ms differ by a tenth on their own.
const SLOWER: f64 = 0.8;

/// Rates so close count as the same; the cheaper one wins.
const SAME_RATE: f64 = 0.97;

impl Deeds {
    pub(super) fn add(&mut self, more: &Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.seconds += more.seconds;
        self.processor_s += more.processor_s;
        self.astray = self.astray.saturating_add(more.astray);
        self.segments = self.segments.saturating_add(more.segments);
        self.rtt_us = self.rtt_us.max(more.rtt_us);
        self.held_back_s += more.held_back_s;
    }

    pub(super) fn bps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }

    fn seconds_per_gb(&self) -> f64 {
        self.processor_s / (self.bytes.max(1) as f64 / 1e9)
    }

    fn astray_share(&self) -> f64 {
        self.astray as f64 / self.segments.max(1) as f64
    }

    fn held_back_share(&self) -> f64 {
        if self.seconds > 0.0 { self.held_back_s / self.seconds } else { 0.0 }
    }

    pub(super) fn trial(&self, mechanism: Mechanism) -> Trial {
        Trial { mechanism, rate_bps: self.bps() as u64, seconds_per_gb: self.seconds_per_gb() }
    }
}

/// What a connection suffers now that it did not with the plain mechanism.
pub(super) fn harm(plain: &Deeds, now: &Deeds) -> Option<Harm> {
    if now.astray >= ASTRAY_LEAST && now.astray_share() > plain.astray_share() + ASTRAY_MORE {
        return Some(Harm::Retransmissions);
    }
    if f64::from(now.rtt_us) > 2.0 * f64::from(plain.rtt_us) + RTT_MORE_US {
        return Some(Harm::RoundTrip);
    }
    // A fast sender is held back by the window of a receiver that is not as fast; that alone does no harm.
    let held_back = now.held_back_share() > plain.held_back_share() + HELD_BACK_MORE;
    (held_back && is_slower(plain, now)).then_some(Harm::Window)
}

/// As [`harm`], over a time in which a rate says something.
pub(super) fn lasting_harm(plain: &Deeds, now: &Deeds) -> Option<Harm> {
    harm(plain, now).or_else(|| is_slower(plain, now).then_some(Harm::Rate))
}

fn is_slower(plain: &Deeds, now: &Deeds) -> bool {
    now.bps() < plain.bps() * SLOWER
}

/// Which to use of those that were tried, the plain one first; and why.
pub(super) fn choose(tried: &[(Mechanism, Deeds)]) -> Option<(Mechanism, String)> {
    let (plain, first) = tried.first()?;
    if first.bytes == 0 {
        return Some((*plain, format!("nothing moved with {}: there is nothing to compare with", plain.name())));
    }
    let harmless: Vec<&(Mechanism, Deeds)> =
        tried.iter().filter(|(mechanism, deeds)| mechanism == plain || harm(first, deeds).is_none()).collect();
    let fastest = harmless.iter().map(|(_, deeds)| deeds.bps()).max_by(f64::total_cmp)?;
    let (mechanism, best) = harmless
        .into_iter()
        .filter(|(_, deeds)| deeds.bps() >= fastest * SAME_RATE)
        .min_by(|(_, a), (_, b)| a.seconds_per_gb().total_cmp(&b.seconds_per_gb()))?;
    let spoilt = tried.iter().filter_map(|(tried, deeds)| {
        let harm = harm(first, deeds).filter(|_| tried != plain)?;
        Some(format!("; not {}: {}", tried.name(), harm.name()))
    });
    let reason = if mechanism == plain {
        "nothing that was tried is faster or cheaper".to_owned()
    } else {
        format!("{:.2} times as fast as {} in the trials", best.bps() / first.bps().max(1.0), plain.name())
    };
    Some((*mechanism, reason + &spoilt.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second at so many Gbit/s.
    fn deeds(gbps: f64, processor_s: f64) -> Deeds {
        let bytes = (gbps * 1e9 / 8.0) as u64;
        Deeds { bytes, seconds: 1.0, processor_s, astray: 0, segments: bytes / 1_448, rtt_us: 25, held_back_s: 0.1 }
    }

    #[test]
    fn the_fastest_is_chosen_and_of_equals_the_cheapest() {
        let tried = [
            (Mechanism::Write, deeds(80.0, 0.9)),
            (Mechanism::Ring, deeds(99.0, 0.9)),
            (Mechanism::Splice, deeds(100.0, 0.6)),
            (Mechanism::Gather, deeds(101.0, 0.9)),
        ];
        let (mechanism, reason) = choose(&tried).unwrap();
        assert_eq!(
            (mechanism, reason.as_str()),
            (Mechanism::Splice, "1.25 times as fast as plain writes in the trials")
        );
        assert_eq!(choose(&tried[..1]).unwrap().0, Mechanism::Write);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn what_harms_is_not_chosen_however_fast_it_is() {
        let plain = (Mechanism::Wait, deeds(50.0, 0.5));
        let fast = deeds(100.0, 0.3);
        for (spoilt, words) in [
            (Deeds { astray: fast.segments / 500, ..fast }, "lost"),
            (Deeds { rtt_us: 1_100, ..fast }, "round-trip"),
            (Deeds { bytes: fast.bytes / 4, held_back_s: 0.9, ..fast }, "window"),
        ] {
            let (mechanism, reason) = choose(&[plain, (Mechanism::Drain, spoilt)]).unwrap();
            assert!(mechanism == Mechanism::Wait && reason.contains(words), "{reason}");
        }
        // A faster sender may well use a window up.
        let full = Deeds { held_back_s: 0.9, ..fast };
        assert_eq!(choose(&[plain, (Mechanism::Drain, full)]).unwrap().0, Mechanism::Drain);
        // A sleep of 250 us in each round trip is what a timed drain is.
        assert_eq!(choose(&[plain, (Mechanism::Drain, Deeds { rtt_us: 275, ..fast })]).unwrap().0, Mechanism::Drain);
    }

    #[test]
    fn a_path_that_loses_anyway_is_not_blamed_on_the_mechanism() {
        let loses = |deeds: Deeds| Deeds { astray: deeds.segments / 100, ..deeds };
        let (plain, now) = (loses(deeds(1.0, 0.5)), loses(deeds(1.2, 0.5)));
        assert_eq!(harm(&plain, &now), None);
        assert_eq!(lasting_harm(&plain, &Deeds { bytes: plain.bytes / 2, ..plain }), Some(Harm::Rate));
    }
}
