//! Whether a change helped: rates before and after, measured in alternation, compared as paired logarithms.
//!
//! Alternation makes a pair share what the path did at that time, and the logarithm makes "twice as fast" and "half as
//! fast" equally far from "no change". The interval is Student's t on the mean of `ln(after / before)`; the ratio is
//! its exponential, which is the ratio of the geometric means. What is *not* here: measuring, and undoing.

use fullpipe_units::Rate;
use serde::{Deserialize, Serialize};

/// One measurement without the change and one with it, next to each other in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The payload rate without the change.
    #[serde(rename = "before_bps")]
    pub before: Rate,
    /// The payload rate with it.
    #[serde(rename = "after_bps")]
    pub after: Rate,
}

/// When a change counts as shown, and when to stop measuring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// The ratio that the lower end of the interval must exceed.
    pub threshold: f64,
    /// An interval whose ends differ by no more than this factor is tight enough to say "not shown".
    pub tight: f64,
    /// No decision before this many pairs.
    pub least_pairs: usize,
    /// No measuring after this many.
    pub most_pairs: usize,
}

impl Default for Criteria {
    /// A gain of 3 % is the least that a user would notice in a transfer time; the interval is tight at 10 %; three to
    /// eight pairs.
    fn default() -> Self {
        Self { threshold: DEFAULT_THRESHOLD, tight: 1.10, least_pairs: 3, most_pairs: 8 }
    }
}

/// The ratio that the lower end of the interval must exceed, where the caller has no own wish.
pub const DEFAULT_THRESHOLD: f64 = 1.03;

/// What the pairs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The whole interval lies above the threshold: keep the change.
    Helped,
    /// The interval is as tight as it will get and doesn't clear the threshold: undo.
    NotShown,
    /// The whole interval lies below the inverse of the threshold: undo.
    Harmed,
    /// Too few pairs, or too scattered.
    NeedMorePairs,
}

/// The comparison of all pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Geometric mean of the rates without the change.
    pub before_bps: Rate,
    /// Geometric mean of the rates with it.
    pub after_bps: Rate,
    /// `after / before`; 1 where there is no pair.
    pub ratio: f64,
    /// Lower end of the 95 % interval; absent with fewer than two pairs.
    pub ratio_low: Option<f64>,
    /// Upper end of the 95 % interval; absent with fewer than two pairs.
    pub ratio_high: Option<f64>,
    /// How many pairs there are.
    pub pairs: usize,
    /// Whether the lower end clears the threshold.
    pub kept: bool,
}

/// Compares the pairs; `kept` says whether the lower end of the interval exceeds `threshold` (see
/// [`DEFAULT_THRESHOLD`]). Total: any rates, any number of pairs.
///
/// A rate of zero counts as 1 bit/s, since it has no logarithm: a path that carried nothing before and something after
/// is a gain without a meaningful ratio.
pub fn compare(pairs: &[Pair], threshold: f64) -> Proof {
    let logs = |rate: fn(&Pair) -> Rate| pairs.iter().map(move |pair| log_rate(rate(pair)));
    let (before, after) = (mean(logs(|p| p.before)), mean(logs(|p| p.after)));
    let differences: Vec<f64> = pairs.iter().map(|p| log_rate(p.after) - log_rate(p.before)).collect();
    let centre = mean(differences.iter().copied());
    let interval = half_width(&differences, centre).map(|half| (ratio(centre - half), ratio(centre + half)));
    Proof {
        before_bps: rate(before),
        after_bps: rate(after),
        ratio: ratio(centre),
        ratio_low: interval.map(|(low, _)| low),
        ratio_high: interval.map(|(_, high)| high),
        pairs: pairs.len(),
        kept: interval.is_some_and(|(low, _)| low > threshold),
    }
}

/// What to do now: decide, or measure another pair.
pub fn decide(pairs: &[Pair], criteria: &Criteria) -> Decision {
    let proof = compare(pairs, criteria.threshold);
    let at_bound = pairs.len() >= criteria.most_pairs;
    let (Some(low), Some(high)) = (proof.ratio_low, proof.ratio_high) else {
        return if at_bound { Decision::NotShown } else { Decision::NeedMorePairs };
    };
    if pairs.len() < criteria.least_pairs && !at_bound {
        Decision::NeedMorePairs
    } else if low > criteria.threshold {
        Decision::Helped
    } else if high * criteria.threshold < 1.0 {
        Decision::Harmed
    } else if at_bound || high <= low * criteria.tight {
        Decision::NotShown
    } else {
        Decision::NeedMorePairs
    }
}

fn log_rate(rate: Rate) -> f64 {
    (rate.bps().max(1) as f64).ln()
}

fn rate(log: f64) -> Rate {
    // A mean of zero is no pair at all, or nothing but rates of 0 or 1 bit/s.
    Rate::from_bps(if log > 0.0 { log.exp().round() as u64 } else { 0 })
}

/// The exponential, kept within what two 64-bit rates can give, so that it is finite in JSON.
fn ratio(log: f64) -> f64 {
    let most = (u64::MAX as f64).ln();
    log.clamp(-most, most).exp()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    if count == 0 { 0.0 } else { values.sum::<f64>() / count as f64 }
}

/// Half the width of the 95 % interval of the mean; `None` with fewer than two values.
fn half_width(values: &[f64], centre: f64) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|&n| n > 0)?;
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    let deviation = (squares / freedom as f64).sqrt();
    Some(student_t_975(freedom) * deviation / (values.len() as f64).sqrt())
}

/// The 0.975 quantile of Student's t (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2). Past 30 degrees of
/// freedom the value at 30 stands in: at most 4 % too wide, never too narrow.
fn student_t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    TABLE[freedom.clamp(1, TABLE.len()) - 1]
}

#[cfg(test)]
mod tests;
