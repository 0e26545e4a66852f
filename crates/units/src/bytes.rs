//! A size.

use core::{fmt, str::FromStr};

use crate::parse::{self, ParseUnitError, Scale};

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The larger multiple of `unit` that is at least `self`; `self` where `unit` is zero or the result overflows.
    pub const fn round_up_to(self, unit: u64) -> Self {
        match self.0.checked_next_multiple_of(unit) {
            Some(bytes) => Self(bytes),
            None => self,
        }
    }
}

impl fmt::Display for Bytes {
    /// The exact number with thousands separated: `64,512 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::thousands(f, self.0)?;
        f.write_str(" B")
    }
}

/// Bytes with an optional unit. A bare `k`, `M` or `G` is binary, as in iperf3's `-w` and `-l` (`64k` = 65,536);
/// `kB`, `MB`, `GB` are decimal and `KiB`, `MiB`, `GiB` binary (IEC 80000-13).
impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        const SCALES: &[Scale] = &[
            Scale { suffixes: &["", "b"], factor: 1 },
            Scale { suffixes: &["k", "kib"], factor: 1 << 10 },
            Scale { suffixes: &["m", "mib"], factor: 1 << 20 },
            Scale { suffixes: &["g", "gib"], factor: 1 << 30 },
            Scale { suffixes: &["kb"], factor: 1_000 },
            Scale { suffixes: &["mb"], factor: 1_000_000 },
            Scale { suffixes: &["gb"], factor: 1_000_000_000 },
        ];
        parse::scaled(text, SCALES, "a size such as 64k, 1.5MB or 17520").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn shows_thousands() {
        assert_eq!(Bytes::new(64_512).to_string(), "64,512 B");
        assert_eq!(Bytes::new(0).to_string(), "0 B");
        assert_eq!(Bytes::new(1_000_007).to_string(), "1,000,007 B");
    }

    #[test]
    fn a_bare_prefix_is_binary_and_one_with_b_is_decimal() {
        for (text, bytes) in [
            ("64k", 65_536),
            ("64kB", 64_000),
            ("64KiB", 65_536),
            ("1.5MB", 1_500_000),
            ("0.5k", 512),
            ("17520", 17_520),
        ] {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn rounds_up_to_a_multiple() {
        assert_eq!(Bytes::new(1).round_up_to(4096), Bytes::new(4096));
        assert_eq!(Bytes::new(4096).round_up_to(4096), Bytes::new(4096));
        assert_eq!(Bytes::new(7).round_up_to(0), Bytes::new(7));
    }
}
