//! A data rate.

use core::{fmt, str::FromStr};

use crate::parse::{self, ParseUnitError, Scale};

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Rate(u64);

impl Rate {
    /// No data at all.
    pub const ZERO: Self = Self(0);

    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// The rate at which `bytes` move in `over`; `None` where `over` is zero.
    pub fn from_bytes(bytes: crate::Bytes, over: crate::Micros) -> Option<Self> {
        crate::window_limited_rate(bytes, over)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Rate {
    /// Three significant digits with a decimal prefix: `6.45 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, prefix) = match self.0 {
            0..1_000 => return write!(f, "{} bit/s", self.0),
            // From 999.5 on, three digits round up into the next prefix.
            1_000..999_500 => (1_000, "k"),
            999_500..999_500_000 => (1_000_000, "M"),
            999_500_000.. => (1_000_000_000, "G"),
        };
        parse::three_digits(f, self.0, divisor)?;
        write!(f, " {prefix}bit/s")
    }
}

/// Bits per second with an optional decimal prefix and unit: `100M`, `1.5G`, `723k`, `10Mbit/s`, `9600`.
impl FromStr for Rate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        const SCALES: &[Scale] = &[
            Scale { suffixes: &["", "bps", "bit", "bit/s"], factor: 1 },
            Scale { suffixes: &["k", "kbps", "kbit", "kbit/s"], factor: 1_000 },
            Scale { suffixes: &["m", "mbps", "mbit", "mbit/s"], factor: 1_000_000 },
            Scale { suffixes: &["g", "gbps", "gbit", "gbit/s"], factor: 1_000_000_000 },
            Scale { suffixes: &["t", "tbps", "tbit", "tbit/s"], factor: 1_000_000_000_000 },
        ];
        parse::scaled(text, SCALES, "a rate such as 100M or 1.5Gbit/s").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn shows_three_digits() {
        for (bps, text) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (609_391, "609 kbit/s"),
            (6_451_200, "6.45 Mbit/s"),
            (94_149_000, "94.1 Mbit/s"),
            (999_999, "1.00 Mbit/s"),
            (999_999_999, "1.00 Gbit/s"),
            (3_000_000_000, "3.00 Gbit/s"),
        ] {
            assert_eq!(Rate::from_bps(bps).to_string(), text);
        }
    }

    #[test]
    fn parses_the_usual_spellings() {
        for (text, bps) in [
            ("100M", 100_000_000),
            ("1.8m", 1_800_000),
            ("723k", 723_000),
            ("10 Mbit/s", 10_000_000),
            ("1.5Gbps", 1_500_000_000),
            ("9600", 9_600),
        ] {
            assert_eq!(text.parse(), Ok(Rate::from_bps(bps)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_rate() {
        for text in ["", "M", "-1M", "1..5M", "1e9", "10MB/s", "100MM", "99999999999999999999G"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
