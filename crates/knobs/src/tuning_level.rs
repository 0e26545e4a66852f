//! The levels of Windows' automatic tuning of receive windows, since Vista (Microsoft: Performance tuning network adapters).
//! What is *not* here: which level to choose, and how one is set.

use fullpipe_units::Bytes;

use crate::{Address, Settings, planner::sizing::UNSCALED};

/// The templates whose level a file may tell, those that connections get by themselves first.
const TEMPLATES: [&str; 5] = ["Internet", "InternetCustom", "Datacenter", "DatacenterCustom", "Custom"];
/// The level of a template that the machine sets itself.
pub(crate) const LOCAL: &str = "AutoTuningLevelLocal";
/// The level that Group Policy sets for all templates.
pub(crate) const GROUP_POLICY: &str = "AutoTuningLevelGroupPolicy";
/// Which of the two rules.
const EFFECTIVE: &str = "AutoTuningLevelEffective";

/// The setting that netsh has for the level of all templates.
pub(crate) fn for_all() -> Address {
    Address::netsh("tcp global", "autotuninglevel")
}

/// The level that a machine itself sets, as its files spell it: netsh's word, else that of the templates, since netsh sets
/// the level of all of them.
pub(crate) fn local(settings: &Settings) -> Option<&str> {
    let value = |knob: &Address| settings.values.get(knob)?.as_deref();
    let of_template = |template: &&str| value(&Address::tcp_setting(template, LOCAL));
    value(&for_all()).or_else(|| TEMPLATES.iter().find_map(of_template))
}

/// A level of Group Policy, which wins over the local one for all templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Which; `None` where the files don't tell.
    pub(crate) level: Option<TuningLevel>,
    /// The setting that tells it.
    pub(crate) knob: Option<Address>,
}

impl Policy {
    /// The policy that rules by a machine's files; `None` where none does.
    pub(crate) fn in_force(settings: &Settings) -> Option<Self> {
        // Templates that hold no values of their own report neither.
        let reported = |name: &'static str| {
            settings.values.iter().filter_map(move |(knob, value)| match knob {
                Address::TcpSetting { parameter, .. } if parameter == name => {
                    Some((knob, value.as_deref().filter(|value| !value.is_empty())?))
                }
                _ => None,
            })
        };
        let of_policy = reported(GROUP_POLICY).find_map(|(knob, value)| Some((knob, TuningLevel::named(value)?)));
        let rules = if reported(EFFECTIVE).next().is_some() {
            reported(EFFECTIVE).any(|(_, effective)| effective.eq_ignore_ascii_case("GroupPolicy"))
        } else {
            of_policy.is_some()
        };
        rules.then(|| Self { level: of_policy.map(|(_, level)| level), knob: of_policy.map(|(knob, _)| knob.clone()) })
    }
}

/// A level; the larger one gives the larger windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    fn a_level_is_read_from_whichever_file_tells_it() {
        let mut settings = Settings::default();
        assert_eq!(local(&settings), None);
        let template = |name: &str| Address::tcp_setting(name, LOCAL);
        settings.values.insert(template("Custom"), Some("Disabled".to_owned()));
        settings.values.insert(template("Internet"), Some("Restricted".to_owned()));
        assert_eq!(local(&settings), Some("Restricted"));
        settings.values.insert(for_all(), Some("normal".to_owned()));
        assert_eq!(local(&settings), Some("normal"));
    }

    #[test]
    fn the_largest_windows_are_those_of_the_documents() {
        let largest = TuningLevel::ALL.map(|level| level.largest_window().get());
        assert_eq!(largest, [65_535, 262_140, 1_048_560, 16_776_960, 1_073_725_440]);
        assert_eq!(TuningLevel::named("highlyrestricted"), Some(TuningLevel::HighlyRestricted));
        assert_eq!(TuningLevel::named("default"), None);
    }
}
