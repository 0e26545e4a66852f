//! Points in time and spans of it.

use core::{fmt, ops, str::FromStr, time::Duration};

use crate::parse::{self, ParseUnitError, Scale};

/// A point in time: nanoseconds since an origin that the caller chose.
///
/// Nanoseconds, because one full-size segment lasts 1.2 us at 10 Gbit/s and a link's clock must not round it away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// A time that never comes.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl ops::Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at [`Instant::FAR_FUTURE`].
    #[inline]
    fn add(self, span: Duration) -> Self {
        let nanos = span.as_secs().saturating_mul(1_000_000_000).saturating_add(span.subsec_nanos().into());
        Self(self.0.saturating_add(nanos))
    }
}

/// A span of time in microseconds, the resolution of every time that the product reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Micros(u64);

impl Micros {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A span of `us` microseconds.
    pub const fn new(us: u64) -> Self {
        Self(us)
    }

    /// A span of `ms` milliseconds; saturates.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// A span of `s` seconds; saturates.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// The span in microseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self - other`, zero where that is negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl ops::Add for Micros {
    type Output = Self;

    /// Saturates.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl From<Duration> for Micros {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Micros> for Duration {
    fn from(span: Micros) -> Self {
        Self::from_micros(span.0)
    }
}

impl fmt::Display for Micros {
    /// Three significant digits: `80.0 ms`, `412 us`, `1.50 s`; nothing is `0 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0 => return f.write_str("0 s"),
            1..1_000 => return write!(f, "{} us", self.0),
            // From 999.5 ms on, three digits round up to a second.
            1_000..999_500 => (1_000, "ms"),
            999_500.. => (1_000_000, "s"),
        };
        parse::three_digits(f, self.0, divisor)?;
        write!(f, " {unit}")
    }
}

/// A span with its unit: `80ms`, `1.5s`, `400us`, `2min`. A bare number other than zero is refused: of what?
impl FromStr for Micros {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        const SCALES: &[Scale] = &[
            Scale { suffixes: &["us"], factor: 1 },
            Scale { suffixes: &["ms"], factor: 1_000 },
            Scale { suffixes: &["s"], factor: 1_000_000 },
            Scale { suffixes: &["min", "m"], factor: 60_000_000 },
            Scale { suffixes: &["h"], factor: 3_600_000_000 },
        ];
        if text.trim() == "0" {
            return Ok(Self::ZERO);
        }
        parse::scaled(text, SCALES, "a time such as 80ms, 1.5s or 400us").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn shows_three_digits_and_a_unit() {
        for (us, text) in
            [(0, "0 s"), (412, "412 us"), (80_000, "80.0 ms"), (1_500_000, "1.50 s"), (90_000_000, "90.0 s")]
        {
            assert_eq!(Micros::new(us).to_string(), text);
        }
    }

    #[test]
    fn wants_a_unit() {
        assert_eq!("80ms".parse(), Ok(Micros::from_millis(80)));
        assert_eq!("0".parse(), Ok(Micros::ZERO));
        assert_eq!("0.5 s".parse(), Ok(Micros::from_millis(500)));
        assert!("80".parse::<Micros>().is_err());
    }

    #[test]
    fn instants_saturate() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO.since(Instant::from_nanos(5)), Duration::ZERO);
    }
}
