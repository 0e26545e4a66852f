//! A verdict in words.

use fullpipe_diagnose::{Confidence, Detail, Limiter, limit_words, percent};
use fullpipe_units::Rate;

/// `receive window (window-scale shift 0), 97 % of the time`. `or` are the limiters that could not be distinguished from it.
pub fn verdict(limiter: Limiter, detail: Option<Detail>, or: &[Limiter], share: f64, confidence: Confidence) -> String {
    let mut text = limit_words(limiter, detail);
    for alternative in or {
        text += &format!(" or {}", alternative.words());
    }
    if limiter == Limiter::InsufficientEvidence {
        return text;
    }
    text += &format!(", {} of the time", percent(share));
    match confidence {
        Confidence::High => {}
        Confidence::Medium => text += "; fairly sure",
        Confidence::Low => text += "; not sure",
    }
    text
}

/// A rate in Mbit/s with three figures or all before the point, for a matrix whose unit is said once: `9.41`, `94.1`, `941`.
pub fn mbps(rate: Rate) -> String {
    let mbps = rate.bps() as f64 / 1e6;
    let digits = if mbps < 10.0 { 2 } else { usize::from(mbps < 100.0) };
    format!("{mbps:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_called_unsure() {
        let text = |limiter, share, confidence| verdict(limiter, None, &[], share, confidence);
        assert_eq!(text(Limiter::InsufficientEvidence, 1.0, Confidence::Low), "not enough evidence");
        assert_eq!(text(Limiter::Path, 0.995, Confidence::Low), "path, 99 % of the time; not sure");
    }
}
