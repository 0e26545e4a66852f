//! Random early detection: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993.

use fullpipe_units::Instant;

use crate::{Random, RedSpec};

/// RED's own state. The average is a fraction of the queue's limit.
#[derive(Clone, Debug)]
pub(super) struct Red {
    spec: RedSpec,
    average: f64,
    /// Arrivals since the last drop or mark; spreads the drops evenly.
    count: u32,
    idle_since: Option<Instant>,
    random: Random,
}

/// The paper's `s`, the time that a small packet takes on the idle link, by which the average decays. It is fixed
/// instead of derived from the rate, because only the order of magnitude of the decay matters: 1 ms forgets half of
/// the average within about 350 ms of silence at the default weight.
const IDLE_STEP_NANOS: f64 = 1e6;

impl Red {
    pub(super) fn new(spec: RedSpec, random: Random) -> Self {
        Self { spec, average: 0.0, count: 0, idle_since: Some(Instant::ZERO), random }
    }

    pub(super) fn marks(&self) -> bool {
        self.spec.ecn
    }

    /// The queue became empty at `now`.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    /// Takes an arrival that finds the queue filled to `fraction` of its limit into the average, and says whether it
    /// has to announce congestion.
    pub(super) fn on_arrival(&mut self, now: Instant, fraction: f64) -> bool {
        let weight = self.spec.weight;
        match self.idle_since.take() {
            Some(since) if fraction <= 0.0 => {
                let steps = now.since(since).as_nanos() as f64 / IDLE_STEP_NANOS;
                self.average *= (1.0 - weight).powf(steps);
            }
            _ => self.average += weight * (fraction - self.average),
        }
        let RedSpec { min, max, probability, .. } = self.spec;
        let base = if self.average < min {
            self.count = 0;
            return false;
        } else if self.average < max {
            probability * (self.average - min) / (max - min)
        } else {
            // "Gentle": from `probability` at `max` to 1 at twice that.
            probability + (1.0 - probability) * ((self.average - max) / max).min(1.0)
        };
        self.count += 1;
        // Uniform instead of geometric gaps between drops (section 7 of the paper).
        let spread = base / (1.0 - f64::from(self.count) * base).max(f64::MIN_POSITIVE);
        let hit = self.random.chance(spread);
        if hit {
            self.count = 0;
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use crate::{Discipline, Ecn, Queue, QueueLimit, Refused, Segment};

    use super::*;

    /// Keeps `standing` packets waiting in a queue of 100 for `n` arrivals.
    fn stand(spec: RedSpec, standing: usize, n: u32, ecn: Ecn) -> Queue<u32> {
        let mut queue = Queue::new(QueueLimit::Packets(100), Discipline::Red(spec), 3);
        for i in 0..n {
            let now = Instant::from_nanos(u64::from(i) * 10_000);
            let pushed = queue.push(now, Segment { ecn, ..Segment::new(1500, i) });
            assert_ne!(pushed, Err(Refused::Full));
            while queue.len() > standing {
                assert!(queue.pop(now).is_some());
            }
        }
        queue
    }

    #[test]
    fn a_short_queue_loses_nothing() {
        assert_eq!(stand(RedSpec::default(), 10, 50_000, Ecn::NotEct).stats().dropped_red, 0);
    }

    #[test]
    fn a_standing_queue_is_thinned_by_its_probability() {
        // 33 of 100 waiting is half way between 1/6 and 1/2: base 0.05, and evenly spread gaps 1..20 of mean 10.5.
        let stats = stand(RedSpec::default(), 33, 50_000, Ecn::NotEct).stats();
        assert!((4_000..5_500).contains(&stats.dropped_red), "{stats:?}");
    }

    #[test]
    fn marks_replace_drops_for_capable_packets_only() {
        let spec = RedSpec { ecn: true, ..RedSpec::default() };
        let capable = stand(spec, 33, 50_000, Ecn::Ect0).stats();
        assert!(capable.marked > 1_000 && capable.dropped_red == 0, "{capable:?}");
        let not = stand(spec, 33, 50_000, Ecn::NotEct).stats();
        assert!(not.marked == 0 && not.dropped_red > 1_000, "{not:?}");
    }

    #[test]
    fn silence_lets_the_average_decay() {
        let mut red = Red::new(RedSpec { weight: 0.5, ..RedSpec::default() }, Random::new(1));
        for i in 0..20 {
            red.on_arrival(Instant::from_nanos(i), 0.9);
        }
        assert!(red.average > 0.8);
        red.on_idle(Instant::from_nanos(20));
        red.on_arrival(Instant::from_nanos(1_000_000_000), 0.0);
        assert!(red.average < 0.01, "{}", red.average);
    }
}
