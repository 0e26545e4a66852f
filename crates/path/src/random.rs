//! Seeded randomness, one independent stream per element.

use rand_pcg::{Pcg64Mcg, rand_core::Rng as _};

/// A seeded generator (PCG XSL 128/64 MCG). The same seed gives the same path on every machine.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// A generator from `seed` alone.
    pub fn new(seed: u64) -> Self {
        let (mut high, mut low) = (seed, seed ^ 0x6a09_e667_f3bc_c908);
        Self(Pcg64Mcg::new(u128::from(split_mix(&mut high)) << 64 | u128::from(split_mix(&mut low))))
    }

    /// The seed of the stream `name` below `seed`.
    ///
    /// An element's stream depends on its own name and place only, so that adding another random element leaves its
    /// draws as they were.
    pub fn seed_of(seed: u64, name: &str) -> u64 {
        // FNV-1a spreads the name; the mixer then separates names that differ in one byte.
        let mut hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        hash ^= seed.rotate_left(32);
        split_mix(&mut hash) ^ seed
    }

    /// A number from 0 (inclusive) to 1 (exclusive), uniform.
    pub fn unit(&mut self) -> f64 {
        // 53 bits are the significand of an f64.
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with `probability` (0 to 1).
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number from the standard normal distribution, cut off at 4 standard deviations either way.
    pub fn normal(&mut self) -> f64 {
        // Box-Muller. 1 - unit() is never zero, so that the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        (radius * (core::f64::consts::TAU * self.unit()).cos()).clamp(-4.0, 4.0)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): turns neighbouring seeds into unrelated states.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_draws_and_a_neighbour_others() {
        let draws = |seed| {
            let mut random = Random::new(seed);
            [random.unit(), random.unit(), random.unit()].map(f64::to_bits)
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert_ne!(Random::seed_of(7, "loss"), Random::seed_of(7, "jitter"));
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let mut random = Random::new(1);
        let n = 100_000;
        let mean = (0..n).map(|_| random.unit()).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let (sum, squares) = (0..n).map(|_| random.normal()).fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        assert!((sum / f64::from(n)).abs() < 0.02, "{sum}");
        assert!((squares / f64::from(n) - 1.0).abs() < 0.02, "{squares}");
    }
}
