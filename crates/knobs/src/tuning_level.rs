//! The levels of Windows' automatic tuning of receive windows, since Vista (Microsoft: Performance tuning network adapters).
//! What is *not* here: which level to choose, and how one is set.

use fullpipe_units::Bytes;

use crate::planner::sizing::UNSCALED;

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningLevel {
    /// Windows don't grow, and no scale is offered.
    Disabled,
    /// They grow a little.
    HighlyRestricted,
    /// They grow to a megabyte.
    Restricted,
    /// The default.
    Normal,
    /// For research.
    Experimental,
}

impl TuningLevel {
    /// All of them, at the places of the numbers that `MSFT_NetTCPSetting` has for them.
    pub const ALL: [Self; 5] =
        [Self::Disabled, Self::HighlyRestricted, Self::Restricted, Self::Normal, Self::Experimental];

    /// The level of that name, as PowerShell, netsh or Group Policy spell it.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text))
    }

    /// As PowerShell spells it; netsh has the same words in small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::HighlyRestricted => "HighlyRestricted",
            Self::Restricted => "Restricted",
            Self::Normal => "Normal",
            Self::Experimental => "Experimental",
        }
    }

    /// The window scale (RFC 7323) that connections offer; `None` where they offer none.
    pub const fn scale(self) -> Option<u8> {
        match self {
            Self::Disabled => None,
            Self::HighlyRestricted => Some(2),
            Self::Restricted => Some(4),
            Self::Normal => Some(8),
            Self::Experimental => Some(14),
        }
    }

    /// The largest window that this scale can say.
    pub const fn largest_window(self) -> Bytes {
        let shift = match self.scale() {
            Some(scale) => scale,
            None => 0,
        };
        Bytes::new(UNSCALED.get() << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_windows_are_those_of_the_documents() {
        let largest = TuningLevel::ALL.map(|level| level.largest_window().get());
        assert_eq!(largest, [65_535, 262_140, 1_048_560, 16_776_960, 1_073_725_440]);
        assert_eq!(TuningLevel::named("highlyrestricted"), Some(TuningLevel::HighlyRestricted));
        assert_eq!(TuningLevel::named("default"), None);
    }
}
