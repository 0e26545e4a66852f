//! Means and quantiles weighted by time. Not-a-number never enters: weights are spans and values sanitised counters.

/// The value below which `quantile` (0 to 1) of the weight lies; `None` without any weight.
pub(crate) fn quantile(weighted: impl IntoIterator<Item = (f64, f64)>, quantile: f64) -> Option<f64> {
    quantile_of(weighted.into_iter().filter(|&(_, weight)| weight > 0.0).collect(), quantile)
}

/// The same of a list, once for all that are listed: sorting takes 4 KB of code.
fn quantile_of(mut sorted: Vec<(f64, f64)>, quantile: f64) -> Option<f64> {
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let target = quantile * sorted.iter().map(|&(_, weight)| weight).sum::<f64>();
    let mut below = 0.0;
    for &(value, weight) in &sorted {
        below += weight;
        if below >= target {
            return Some(value);
        }
    }
    sorted.last().map(|&(value, _)| value)
}

/// The 0.5 quantile.
pub(crate) fn median(weighted: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    quantile(weighted, 0.5)
}

/// Standard deviation over mean; `None` with fewer than two values or a mean of zero.
pub(crate) fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt() / mean)
}

/// `part / whole`, 0 where there is no whole.
pub(crate) fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_time_not_samples() {
        let values = [(1.0, 9.0), (100.0, 1.0)];
        assert_eq!(median(values), Some(1.0));
        assert_eq!(quantile(values, 0.95), Some(100.0));
        assert_eq!(median([]), None);
        assert_eq!(median([(5.0, 0.0)]), None);
    }

    #[test]
    fn variation_of_equal_values_is_zero() {
        assert_eq!(variation(&[3.0, 3.0]), Some(0.0));
        assert_eq!(variation(&[3.0]), None);
        assert_eq!(variation(&[0.0, 0.0]), None);
    }
}
