//! Which packets a wire loses. A decision, not a machine: it takes no time and holds nothing.

use crate::{LossSpec, Random};

/// The state of one loss process.
#[derive(Clone, Debug)]
pub struct LossProcess {
    spec: LossSpec,
    bad: bool,
    /// Packets judged so far.
    seen: u64,
    random: Random,
}

impl LossProcess {
    /// A process that draws from the stream `seed`; Gilbert-Elliott starts in the good state.
    pub fn new(spec: LossSpec, seed: u64) -> Self {
        Self { spec, bad: false, seen: 0, random: Random::new(seed) }
    }

    /// Draws for packets of others that went before. A row counts from the first packet that is told of.
    pub fn pass(&mut self, packets: u32) {
        if !matches!(self.spec, LossSpec::Row { .. }) {
            for _ in 0..packets {
                self.loses();
            }
        }
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        let number = self.seen;
        self.seen += 1;
        match self.spec {
            LossSpec::Bernoulli(probability) => self.random.chance(probability),
            LossSpec::GilbertElliott { p, r, good, bad } => {
                // The state changes before the packet is judged, as in the netem model that people compare with.
                let change = if self.bad { r } else { p };
                if self.random.chance(change) {
                    self.bad = !self.bad;
                }
                self.random.chance(if self.bad { bad } else { good })
            }
            LossSpec::Row { first, count } => number.checked_sub(first).is_some_and(|place| place < count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost packets and the number of separate bursts of them among `n`.
    fn run(spec: LossSpec, seed: u64, n: u32) -> (u32, u32) {
        let mut process = LossProcess::new(spec, seed);
        let (mut lost, mut bursts, mut before) = (0, 0, false);
        for _ in 0..n {
            let now = process.loses();
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        (lost, bursts)
    }

    #[test]
    fn bernoulli_loses_its_fraction() {
        let (lost, _) = run(LossSpec::Bernoulli(0.01), 42, 1_000_000);
        // Standard deviation 99.5: five of them.
        assert!((9_500..10_500).contains(&lost), "{lost} lost with seed 42");
    }

    #[test]
    fn the_certain_cases_are_certain() {
        assert_eq!(run(LossSpec::Bernoulli(0.0), 1, 1_000).0, 0);
        assert_eq!(run(LossSpec::Bernoulli(1.0), 1, 1_000).0, 1_000);
        assert_eq!(run(LossSpec::GilbertElliott { p: 0.0, r: 1.0, good: 0.0, bad: 1.0 }, 1, 1_000).0, 0);
    }

    #[test]
    fn a_row_is_lost_once_and_at_its_place() {
        let mut process = LossProcess::new(LossSpec::Row { first: 3, count: 2 }, 1);
        let lost: Vec<u32> = (0..1_000).filter(|_| process.loses()).collect();
        assert_eq!(lost, [3, 4]);
    }

    #[test]
    fn who_comes_later_meets_the_later_losses() {
        let spec = LossSpec::Bernoulli(0.1);
        let (mut first, mut later) = (LossProcess::new(spec, 7), LossProcess::new(spec, 7));
        later.pass(35);
        let lost = |process: &mut LossProcess| (0..200).map(|_| process.loses()).collect::<Vec<_>>();
        assert_eq!(lost(&mut first)[35..], lost(&mut later)[..165]);
    }

    #[test]
    fn gilbert_elliott_loses_its_stationary_fraction_in_bursts() {
        for seed in 1..=5 {
            let spec = LossSpec::GilbertElliott { p: 0.01, r: 0.25, good: 0.0, bad: 1.0 };
            let n = 1_000_000;
            let (lost, bursts) = run(spec, seed, n);
            let (mean, p, r) = (spec.mean(), 0.01, 0.25);
            // Losses correlate by rho = 1 - p - r per step, which widens the interval by (1 + rho) / (1 - rho).
            let variance = mean * (1.0 - mean) / f64::from(n) * (2.0 - p - r) / (p + r);
            let fraction = f64::from(lost) / f64::from(n);
            assert!((fraction - mean).abs() < 5.0 * variance.sqrt(), "{fraction} for {mean} with seed {seed}");
            let burst = f64::from(lost) / f64::from(bursts);
            assert!((burst - 1.0 / r).abs() < 0.2, "mean burst {burst} with seed {seed}");
        }
    }

    #[test]
    fn all_four_parameters_count() {
        let spec = LossSpec::GilbertElliott { p: 0.1, r: 0.3, good: 0.02, bad: 0.5 };
        assert!((spec.mean() - 0.14).abs() < 1e-12);
        let (lost, _) = run(spec, 9, 1_000_000);
        assert!((138_000..142_000).contains(&lost), "{lost} lost with seed 9");
    }
}
