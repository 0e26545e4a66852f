//! The catalogue: what each setting is, where it acts, what it costs, and who says so.
//!
//! One TOML file per platform under `data/`, compiled in and read once. A row whose fact nobody could confirm says so
//! (`confirmed = false`) and is never presented as a fact; what nobody knows is the word `unknown`. Adding a version of a
//! platform is a change of data only.

use std::{cmp::Ordering, sync::LazyLock};

use fullpipe_diagnose::Limiter;
use serde::{Deserialize, Serialize};

use crate::{Address, Family, Platform, TakesEffect, version};

/// All rows of one platform.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Which platforms.
    pub family: Family,
    /// The platform's versions, oldest first, where they are names; empty where they are dotted numbers.
    #[serde(default)]
    pub order: Vec<String>,
    /// What the rows were read from, for the documentation.
    pub about: String,
    /// FreeBSD: the first version whose /etc/sysctl.conf may have blanks around a `=`; before it the first word of a line is all
    /// that is read.
    #[serde(default)]
    pub first_word_before: Option<String>,
    /// Names that exist and have no row: none of them is a slip of another one.
    #[serde(default)]
    pub others: Vec<String>,
    /// The rows.
    #[serde(rename = "knob")]
    pub knobs: Vec<Knob>,
}

/// One setting of one platform.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Where it lives. A part that differs from machine to machine stands in angle brackets: `route <dst> window`.
    pub address: Address,
    /// What it does, in a sentence.
    pub meaning: String,
    /// What its value looks like: `three integers`, `boolean`, `name`.
    #[serde(rename = "type")]
    pub value_type: String,
    /// The unit of its numbers; `none` where they have none.
    pub unit: String,
    /// The values that it takes.
    pub range: String,
    /// How far one value reaches.
    pub scope: Scope,
    /// The limiters that it can lift.
    #[serde(default)]
    pub lifts: Vec<Limiter>,
    /// What raising or enabling it costs.
    pub costs: String,
    /// When a new value acts; absent where it never does or nobody knows.
    #[serde(default)]
    pub takes_effect: Option<TakesEffect>,
    /// A switch that every path wants on: what is lost where it is off, in a sentence.
    #[serde(default)]
    pub off: Option<String>,
    /// Whether other protocols have it and TCP does not: it acts, though not on TCP.
    #[serde(default)]
    pub other_protocols: bool,
    /// How it is undone by hand; `{address}` and `{from}` stand for the setting and its earlier value.
    pub undo: String,
    /// FreeBSD: the first version for which it is not known that the boot loader's line for it does nothing.
    #[serde(default)]
    pub no_tunable_before: Option<String>,
    /// FreeBSD: the first version on which a write does more than change the number that is shown: before it the boot loader
    /// alone sets what is there.
    #[serde(default)]
    pub only_at_start_before: Option<String>,
    /// What holds for which versions, oldest first and without gaps.
    #[serde(rename = "span")]
    pub spans: Vec<Span>,
    /// Where this comes from.
    pub sources: Vec<String>,
}

/// What holds for a run of versions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first version of the run; absent for "from the beginning".
    #[serde(default)]
    pub since: Option<String>,
    /// The first version after the run; absent for "still so".
    #[serde(default)]
    pub until: Option<String>,
    /// The value that the system starts with.
    pub default: String,
    /// Whether the system does what the value says.
    pub honoured: Honoured,
    /// What a person should know of these versions: why it is refused, what to use instead.
    #[serde(default)]
    pub note: String,
    /// False where the sources do not settle it: then it is a hint and not a fact.
    #[serde(default = "yes")]
    pub confirmed: bool,
}

const fn yes() -> bool {
    true
}

/// Whether a version does what a setting says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Honoured {
    /// It does.
    Yes,
    /// Partly; the note says how.
    Partly,
    /// The value is accepted and has no effect.
    Ignored,
    /// The value can be read and not written.
    ReadOnly,
    /// There is no such setting.
    Absent,
    /// Nobody could say.
    Unknown,
}

/// How far one value of a setting reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// The whole machine.
    Machine,
    /// One network namespace.
    Namespace,
    /// One route.
    Route,
    /// One network interface.
    Link,
    /// One socket: only the application can set it.
    Socket,
    /// Fixed when the system or the program is built.
    Build,
}

/// Why a setting is not worth writing on a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the version does with it.
    pub honoured: Honoured,
    /// The reason and the way out.
    pub reason: String,
    /// False where the sources do not settle it.
    pub confirmed: bool,
}

static CATALOGUES: LazyLock<Vec<Catalogue>> = LazyLock::new(|| {
    let files = [
        include_str!("../data/linux.toml"),
        include_str!("../data/windows.toml"),
        include_str!("../data/freebsd.toml"),
        include_str!("../data/macos.toml"),
        include_str!("../data/netburner.toml"),
    ];
    files.into_iter().map(load).collect()
});

fn load(text: &str) -> Catalogue {
    toml::from_str(text).expect("a compiled-in catalogue file is checked by a test")
}

impl Catalogue {
    /// Whether a name is one of another setting, that has no row.
    pub(crate) fn is_other(&self, knob: &Address) -> bool {
        let (Address::Sysctl(name) | Address::Registry { value: name, .. }) = knob else { return false };
        self.others.iter().any(|other| other.eq_ignore_ascii_case(name))
    }

    /// The catalogue of a platform family; `None` where there is none.
    pub fn for_family(family: Family) -> Option<&'static Self> {
        Self::all().find(|catalogue| catalogue.family == family)
    }

    /// All catalogues.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        CATALOGUES.iter()
    }

    /// Whether a version can be ordered among the platform's versions.
    pub fn knows_version(&self, version: &str) -> bool {
        version::compare(version, version, &self.order).is_some()
    }

    /// Whether `version` is `bound` or newer; `None` where one of them can't be ordered.
    pub fn is_at_least(&self, version: &str, bound: &str) -> Option<bool> {
        version::compare(version, bound, &self.order).map(Ordering::is_ge)
    }

    /// The row for a setting.
    pub fn find(&self, address: &Address) -> Option<&Knob> {
        self.knobs.iter().find(|knob| knob.matches(address))
    }

    /// What holds for a setting on a version; `None` where the catalogue has no row or can't order the version.
    pub fn at(&self, address: &Address, version: &str) -> Option<(&Knob, &Span)> {
        let knob = self.find(address)?;
        Some((knob, self.span(knob, version)?))
    }

    /// Whether a version's boot loader is known to do nothing with a line for a setting: it is no tunable there.
    pub fn is_no_tunable(&self, address: &Address, version: &str) -> bool {
        self.is_before(version, self.find(address).and_then(|knob| knob.no_tunable_before.as_deref()))
    }

    /// Whether a write on a version changes the number that is shown and nothing else, because it acts at the start alone.
    pub fn is_only_at_start(&self, address: &Address, version: &str) -> bool {
        self.is_before(version, self.find(address).and_then(|knob| knob.only_at_start_before.as_deref()))
    }

    /// Whether a version reads the first word of a line of sysctl.conf alone.
    pub fn reads_first_word(&self, version: &str) -> bool {
        self.is_before(version, self.first_word_before.as_deref())
    }

    fn is_before(&self, version: &str, bound: Option<&str>) -> bool {
        bound.is_some_and(|bound| self.is_at_least(version, bound) == Some(false))
    }

    /// What holds for a row of this catalogue on a version; `None` where the version can't be ordered.
    pub fn span<'a>(&self, knob: &'a Knob, version: &str) -> Option<&'a Span> {
        let compare = |bound: &str| version::compare(version, bound, &self.order);
        knob.spans.iter().find(|span| {
            let from_here = span.since.as_deref().is_none_or(|since| compare(since).is_some_and(Ordering::is_ge));
            let still = span.until.as_deref().is_none_or(|until| compare(until).is_some_and(Ordering::is_lt));
            from_here && still
        })
    }

    /// Why writing a setting on a version would do nothing; `None` where it would do something, or nobody knows.
    pub fn refusal(&self, address: &Address, version: &str) -> Option<Refusal> {
        let (_, span) = self.at(address, version)?;
        matches!(span.honoured, Honoured::Ignored | Honoured::ReadOnly | Honoured::Absent).then(|| Refusal {
            honoured: span.honoured,
            reason: span.note.clone(),
            confirmed: span.confirmed,
        })
    }
}

/// The catalogue of a platform.
pub(crate) fn for_platform(platform: &Platform) -> Option<&'static Catalogue> {
    Catalogue::for_family(platform.family)
}

impl Knob {
    /// Whether this row speaks of the setting at `address`.
    pub fn matches(&self, address: &Address) -> bool {
        let same = |pattern: &str, name: &str| is_placeholder(pattern) || pattern == name;
        match (&self.address, address) {
            (
                Address::Route { destination, attribute },
                Address::Route { destination: asked_destination, attribute: asked_attribute },
            ) => same(destination, asked_destination) && attribute == asked_attribute,
            (Address::Link { device, property }, Address::Link { device: asked_device, property: asked_property }) => {
                same(device, asked_device) && property == asked_property
            }
            (
                Address::TcpSetting { template, parameter },
                Address::TcpSetting { template: asked_template, parameter: asked_parameter },
            ) => same(template, asked_template) && parameter.eq_ignore_ascii_case(asked_parameter),
            // Windows' names don't tell upper case from lower case.
            (Address::Registry { key, value }, Address::Registry { key: asked_key, value: asked_value }) => {
                value.eq_ignore_ascii_case(asked_value) && same_key(key, asked_key)
            }
            (
                Address::Netsh { context, parameter },
                Address::Netsh { context: asked_context, parameter: asked_parameter },
            ) => same_context(context, asked_context) && parameter.eq_ignore_ascii_case(asked_parameter),
            (Address::Named { kind, name }, Address::Named { kind: asked_kind, name: asked_name }) => {
                kind == asked_kind && (is_placeholder(name) || name == asked_name)
            }
            (row, asked) => row == asked,
        }
    }

    /// All sources as one text.
    pub fn source(&self) -> String {
        self.sources.join("; ")
    }
}

/// Whether two contexts of netsh are the same; a row's last word may stand for any template.
pub(crate) fn same_context(row: &str, asked: &str) -> bool {
    let (row, asked): (Vec<&str>, Vec<&str>) = (row.split(' ').collect(), asked.split(' ').collect());
    row.len() == asked.len()
        && row.iter().zip(&asked).all(|(row, asked)| is_placeholder(row) || row.eq_ignore_ascii_case(asked))
}

/// Whether two registry keys are the same; a row's `{GUID}` stands for the interface of any adapter.
fn same_key(row: &str, asked: &str) -> bool {
    let (row, asked): (Vec<&str>, Vec<&str>) = (row.split('\\').collect(), asked.split('\\').collect());
    row.len() == asked.len()
        && row.iter().zip(&asked).all(|(row, asked)| {
            row.eq_ignore_ascii_case(asked) || (*row == "{GUID}" && asked.starts_with('{') && asked.ends_with('}'))
        })
}

/// Whether a part of a row's address stands for whatever the machine has there.
fn is_placeholder(part: &str) -> bool {
    part.starts_with('<') && part.ends_with('>')
}

/// One setting of one machine, as `settings` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Described {
    /// Which setting.
    pub knob: Address,
    /// Its value; `None` where it is absent.
    pub value: Option<String>,
    /// The value that this version starts with, where the catalogue knows it for a fact.
    pub default: Option<String>,
    /// Whether this version does what it says.
    pub honoured: Honoured,
    /// What it does.
    pub meaning: String,
}

/// What the catalogue says of each setting that was read from a machine, in the order of their addresses.
pub fn describe(settings: &crate::Settings) -> Vec<Described> {
    let Some(catalogue) = for_platform(&settings.platform) else { return Vec::new() };
    let rows = settings.values.iter().filter_map(|(address, value)| {
        let knob = catalogue.find(address)?;
        let span = catalogue.span(knob, &settings.platform.version);
        Some(Described {
            knob: address.clone(),
            value: value.clone(),
            default: span.filter(|span| span.confirmed).map(|span| span.default.clone()),
            honoured: span.filter(|span| span.confirmed).map_or(Honoured::Unknown, |span| span.honoured),
            meaning: knob.meaning.clone(),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_facts_and_its_sources() {
        for catalogue in Catalogue::all() {
            assert!(!catalogue.knobs.is_empty());
            for knob in &catalogue.knobs {
                let name = &knob.address;
                for text in [&knob.meaning, &knob.value_type, &knob.unit, &knob.range, &knob.costs, &knob.undo] {
                    assert!(!text.trim().is_empty(), "{name}: an empty field");
                }
                assert!(!knob.sources.is_empty(), "{name}: no source");
                assert!(knob.sources.iter().all(|source| source.len() > 5), "{name}: a source that says nothing");
                assert!(!knob.spans.is_empty(), "{name}: no versions");
                for span in &knob.spans {
                    assert!(!span.default.is_empty(), "{name}: an empty default; write `unknown`");
                    let refused = matches!(span.honoured, Honoured::Ignored | Honoured::ReadOnly | Honoured::Absent);
                    assert!(!refused || !span.note.is_empty(), "{name}: refused without a reason");
                }
            }
        }
    }

    #[test]
    fn spans_follow_one_another_without_gap_or_overlap() {
        for catalogue in Catalogue::all() {
            for knob in &catalogue.knobs {
                let name = &knob.address;
                let (first, last) = (&knob.spans[0], &knob.spans[knob.spans.len() - 1]);
                assert_eq!((&first.since, &last.until), (&None, &None), "{name}: the ends are open");
                for pair in knob.spans.windows(2) {
                    assert_eq!(pair[0].until, pair[1].since, "{name}");
                }
                for bound in knob.spans.iter().filter_map(|span| span.since.as_deref()) {
                    let known = version::compare(bound, bound, &catalogue.order);
                    assert_eq!(known, Some(Ordering::Equal), "{name}: version {bound}");
                }
            }
        }
    }

    #[test]
    fn each_address_has_one_row() {
        for catalogue in Catalogue::all() {
            for (at, knob) in catalogue.knobs.iter().enumerate() {
                let found = catalogue.find(&knob.address).map(|found| &found.address);
                assert_eq!(found, Some(&knob.address));
                let twins = catalogue.knobs.iter().skip(at + 1).filter(|other| other.address == knob.address);
                assert_eq!(twins.count(), 0, "{}", knob.address);
            }
        }
    }

    #[test]
    fn the_same_line_is_a_setting_on_one_kernel_and_dead_on_another() {
        let linux = Catalogue::for_family(Family::Linux).unwrap();
        let scale = Address::sysctl("net.ipv4.tcp_adv_win_scale");
        assert_eq!(linux.refusal(&scale, "6.1.0"), None);
        assert_eq!(linux.refusal(&scale, "6.6.0").unwrap().honoured, Honoured::Ignored);
        let recycle = Address::sysctl("net.ipv4.tcp_tw_recycle");
        assert_eq!(linux.refusal(&recycle, "4.12").unwrap().honoured, Honoured::Absent);
    }

    #[test]
    fn the_windows_registry_is_matched_whatever_the_case_and_the_adapter() {
        let windows = Catalogue::for_family(Family::Windows).unwrap();
        let key =
            r"registry hklm\system\currentcontrolset\services\tcpip\parameters\Interfaces\{0A1B-2C}\tcpackfrequency";
        assert_eq!(windows.find(&key.parse().unwrap()).unwrap().lifts, [Limiter::AckDelay]);
        let window = r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize".parse().unwrap();
        assert_eq!(windows.refusal(&window, "xp"), None);
        assert_eq!(windows.refusal(&window, "2012").unwrap().honoured, Honoured::Ignored);
        let rto = "tcpsetting Internet MinRtoMs".parse().unwrap();
        assert_eq!(windows.at(&rto, "10").unwrap().1.honoured, Honoured::ReadOnly);
        assert_eq!(windows.at(&rto, "2019").unwrap().1.honoured, Honoured::Yes);
        assert_eq!(windows.at(&rto, "2025").unwrap().1.honoured, Honoured::Unknown);
    }

    #[test]
    fn a_row_with_a_placeholder_speaks_of_every_route() {
        let linux = Catalogue::for_family(Family::Linux).unwrap();
        let window: Address = "route 10.80.0.0/24 window".parse().unwrap();
        assert_eq!(linux.find(&window).unwrap().lifts, [Limiter::ReceiveWindow]);
        let nonsense: Address = "route 10.80.0.0/24 colour".parse().unwrap();
        assert_eq!(linux.find(&nonsense), None);
    }
}
