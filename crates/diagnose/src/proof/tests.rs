//! Tests of the comparison.

use proptest::prelude::*;

use super::*;

fn pairs(rates: &[(u64, u64)]) -> Vec<Pair> {
    rates.iter().map(|&(b, a)| Pair { before: Rate::from_bps(b), after: Rate::from_bps(a) }).collect()
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough randomness for a simulation that replays from its seed.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Box-Muller.
    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn pair(&mut self, true_ratio: f64, scatter: f64) -> Pair {
        let noisy = |centre: f64, noise: f64| Rate::from_bps((centre * noise.exp()) as u64);
        let (a, b) = (self.normal() * scatter, self.normal() * scatter);
        Pair { before: noisy(50e6, a), after: noisy(50e6 * true_ratio, b) }
    }
}

const SEED: u64 = 7;

#[test]
fn a_clear_gain_is_kept_with_its_interval() {
    let proof = compare(&pairs(&[(6_400_000, 91_000_000), (6_410_000, 92_000_000), (6_390_000, 90_500_000)]), 1.03);
    assert!(proof.kept);
    assert!((proof.ratio - 14.25).abs() < 0.05, "{proof:?}");
    let (low, high) = (proof.ratio_low.unwrap(), proof.ratio_high.unwrap());
    assert!(low < proof.ratio && proof.ratio < high && low > 13.5 && high < 15.0, "{proof:?}");
    assert_eq!(proof.pairs, 3);
}

#[test]
fn the_interval_agrees_with_one_worked_by_hand() {
    // ln ratios 0.1, 0.2, 0.3: mean 0.2, s = 0.1, t(2) = 4.303: half width 4.303 x 0.1 / sqrt 3 = 0.24843.
    let base = 1e9_f64;
    let by = |log: f64| (base as u64, (base * log.exp()).round() as u64);
    let proof = compare(&pairs(&[by(0.1), by(0.2), by(0.3)]), 1.03);
    assert!((proof.ratio.ln() - 0.2).abs() < 1e-6);
    assert!((proof.ratio_low.unwrap().ln() - (0.2 - 0.24843)).abs() < 1e-4);
    assert!((proof.ratio_high.unwrap().ln() - (0.2 + 0.24843)).abs() < 1e-4);
    assert!(!proof.kept, "the lower end is below 1");
}

#[test]
fn no_interval_and_no_gain_without_two_pairs() {
    for few in [pairs(&[]), pairs(&[(1_000, 9_000_000)])] {
        let proof = compare(&few, 1.03);
        assert_eq!((proof.ratio_low, proof.ratio_high, proof.kept), (None, None, false));
        assert_eq!(decide(&few, &Criteria::default()), Decision::NeedMorePairs);
    }
    assert!((compare(&[], 1.03).ratio - 1.0).abs() < 1e-12);
}

#[test]
fn two_agreeing_pairs_are_still_too_few_to_decide() {
    assert_eq!(decide(&pairs(&[(10, 20), (10, 20)]), &Criteria::default()), Decision::NeedMorePairs);
}

#[test]
fn equal_rates_have_an_interval_without_width() {
    let same = pairs(&[(94_000_000, 94_000_000); 3]);
    let proof = compare(&same, 1.03);
    assert!((proof.ratio_low.unwrap() - 1.0).abs() < 1e-12 && (proof.ratio_high.unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(decide(&same, &Criteria::default()), Decision::NotShown);
}

#[test]
fn a_loss_of_rate_is_harm_and_not_kept() {
    let worse = pairs(&[(90_000_000, 45_000_000), (91_000_000, 45_100_000), (92_000_000, 46_000_000)]);
    assert_eq!(decide(&worse, &Criteria::default()), Decision::Harmed);
    assert!(!compare(&worse, 1.03).kept);
}

#[test]
fn scatter_asks_for_more_pairs_until_the_bound() {
    let rates = [(50, 90), (50, 40), (50, 75), (50, 45), (50, 80), (50, 48), (50, 85), (50, 42)];
    let scattered: Vec<(u64, u64)> = rates.iter().map(|&(b, a)| (b * 1_000_000, a * 1_000_000)).collect();
    assert_eq!(decide(&pairs(&scattered[..4]), &Criteria::default()), Decision::NeedMorePairs);
    assert_eq!(decide(&pairs(&scattered), &Criteria::default()), Decision::NotShown);
}

#[test]
fn a_rate_of_zero_neither_panics_nor_makes_an_infinite_ratio() {
    let from_nothing = pairs(&[(0, 90_000_000), (0, 91_000_000), (0, 90_000_000)]);
    let proof = compare(&from_nothing, 1.03);
    assert!(proof.kept && proof.ratio.is_finite() && proof.before_bps == Rate::ZERO, "{proof:?}");
    let dead = compare(&pairs(&[(0, 0); 3]), 1.03);
    assert!((dead.ratio - 1.0).abs() < 1e-12 && !dead.kept);
}

#[test]
fn the_json_keeps_the_names_that_others_rely_on() {
    let json = serde_json::to_value(compare(&pairs(&[(10, 20), (10, 21)]), 1.03)).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["after_bps", "before_bps", "kept", "pairs", "ratio", "ratio_high", "ratio_low"]);
}

#[test]
fn the_interval_covers_the_truth_19_times_in_20() {
    println!("seed {SEED}");
    let mut random = Random(SEED);
    for (count, scatter) in [(3, 0.02), (3, 0.2), (5, 0.1), (8, 0.3), (25, 0.1)] {
        const RUNS: usize = 4_000;
        let covered = (0..RUNS)
            .filter(|_| {
                let sample: Vec<Pair> = (0..count).map(|_| random.pair(1.5, scatter)).collect();
                let proof = compare(&sample, 1.03);
                proof.ratio_low.unwrap() <= 1.5 && 1.5 <= proof.ratio_high.unwrap()
            })
            .count();
        // The count is binomial(4000, 0.95) with deviation 13.8: five deviations on either side.
        assert!((3_731..=3_869).contains(&covered), "{covered} of {RUNS} with {count} pairs, scatter {scatter}");
    }
}

#[test]
fn looking_after_each_pair_still_seldom_finds_a_gain_where_there_is_none() {
    println!("seed {SEED}");
    let mut random = Random(SEED);
    let criteria = Criteria::default();
    for scatter in [0.01, 0.05, 0.2] {
        const RUNS: usize = 2_000;
        let found = (0..RUNS)
            .filter(|_| {
                let mut sample = Vec::new();
                loop {
                    sample.push(random.pair(1.0, scatter));
                    match decide(&sample, &criteria) {
                        Decision::NeedMorePairs => {}
                        other => break other == Decision::Helped,
                    }
                }
            })
            .count();
        // One side of a 95 % interval is 2.5 %; several looks may double or triple it, the threshold takes some back.
        assert!(found as f64 <= 0.08 * RUNS as f64, "{found} of {RUNS} at scatter {scatter}");
    }
}

proptest! {
    #[test]
    fn any_rates_give_finite_ordered_figures(
        rates in prop::collection::vec((any::<u64>(), any::<u64>()), 0..12), threshold in 0.5f64..3.0
    ) {
        let sample = pairs(&rates);
        let proof = compare(&sample, threshold);
        prop_assert!(proof.ratio.is_finite() && proof.ratio > 0.0);
        if let (Some(low), Some(high)) = (proof.ratio_low, proof.ratio_high) {
            prop_assert!(low.is_finite() && high.is_finite() && low <= proof.ratio && proof.ratio <= high);
            prop_assert_eq!(proof.kept, low > threshold);
        } else {
            prop_assert!(rates.len() < 2 && !proof.kept);
        }
    }

    #[test]
    fn decisions_end_at_the_bound(rates in prop::collection::vec((any::<u64>(), any::<u64>()), 8..12)) {
        prop_assert_ne!(decide(&pairs(&rates), &Criteria::default()), Decision::NeedMorePairs);
    }

    #[test]
    fn a_higher_threshold_never_keeps_more(
        rates in prop::collection::vec((1_000u64..1 << 40, 1_000u64..1 << 40), 2..8), low in 0.9f64..2.0, more in 0.0f64..2.0
    ) {
        let sample = pairs(&rates);
        prop_assert!(compare(&sample, low).kept || !compare(&sample, low + more).kept);
    }

    #[test]
    fn scaling_every_after_scales_the_ratio(
        rates in prop::collection::vec((1_000_000u64..1 << 40, 1_000_000u64..1 << 40), 2..8), factor in 2u64..9
    ) {
        let faster: Vec<_> = rates.iter().map(|&(b, a)| (b, a * factor)).collect();
        let (slow, fast) = (compare(&pairs(&rates), 1.03), compare(&pairs(&faster), 1.03));
        prop_assert!((fast.ratio / slow.ratio / factor as f64 - 1.0).abs() < 1e-9);
        prop_assert!(fast.kept || !slow.kept);
    }
}
