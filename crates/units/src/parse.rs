//! Numbers with units, in and out, exactly: no floating point, so `0.1G` is a hundred million and not one less.

use core::fmt;

/// A text that is not a number with one of the known units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseUnitError {
    /// What would have been accepted, with an example.
    pub expected: &'static str,
    /// Whether the text was a number of the right shape that does not fit into 64 bits.
    pub too_large: bool,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = if self.too_large { "the number is too large; " } else { "" };
        write!(f, "{problem}expected {}", self.expected)
    }
}

impl core::error::Error for ParseUnitError {}

/// One unit: its spellings in lower case, and what it multiplies by.
pub(crate) struct Scale {
    pub(crate) suffixes: &'static [&'static str],
    pub(crate) factor: u64,
}

/// Reads `12`, `1.5M`, `80 ms`: digits, at most one point, then one of the suffixes in any case.
///
/// A fraction finer than one base unit is rounded down.
pub(crate) fn scaled(text: &str, scales: &[Scale], expected: &'static str) -> Result<u64, ParseUnitError> {
    let wrong = ParseUnitError { expected, too_large: false };
    let large = ParseUnitError { expected, too_large: true };
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let suffix = suffix.trim_start();
    let factor = scales
        .iter()
        .find(|scale| scale.suffixes.iter().any(|known| known.eq_ignore_ascii_case(suffix)))
        .ok_or(wrong)?
        .factor;

    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.ends_with('.')) {
        return Err(wrong);
    }
    let whole: u64 = whole.parse().map_err(|_| large)?;
    // Digits past the twelfth are below every unit's resolution.
    let (mut part, mut divisor) = (0_u128, 1_u128);
    for digit in fraction.bytes().take(12) {
        part = part * 10 + u128::from(digit - b'0');
        divisor *= 10;
    }
    let total = u128::from(whole) * u128::from(factor) + part * u128::from(factor) / divisor;
    u64::try_from(total).map_err(|_| large)
}

/// Writes `value / divisor` with three significant digits, rounded to nearest.
pub(crate) fn three_digits(f: &mut fmt::Formatter<'_>, value: u64, divisor: u64) -> fmt::Result {
    let scaled = value as f64 / divisor as f64;
    // 9.995 would round to 10.00 and 99.95 to 100.0: the thresholds keep three digits there too.
    let decimals = if scaled < 9.995 {
        2
    } else if scaled < 99.95 {
        1
    } else {
        0
    };
    write!(f, "{scaled:.decimals$}")
}

/// Writes `value` with a comma between groups of three digits.
pub(crate) fn thousands(f: &mut fmt::Formatter<'_>, value: u64) -> fmt::Result {
    if value >= 1_000 {
        thousands(f, value / 1_000)?;
        write!(f, ",{:03}", value % 1_000)
    } else {
        write!(f, "{value}")
    }
}

#[cfg(test)]
mod tests {
    use core::hint::black_box;
    use std::string::String;

    use proptest::prelude::*;

    use crate::{Bytes, Micros, Rate};

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in ".{0,24}") {
            let text: String = text;
            black_box(text.parse::<Rate>()).ok();
            black_box(text.parse::<Bytes>()).ok();
            black_box(text.parse::<Micros>()).ok();
        }

        #[test]
        fn a_plain_number_comes_back(value: u64) {
            prop_assert_eq!(std::format!("{value}").parse(), Ok(Bytes::new(value)));
        }
    }
}
