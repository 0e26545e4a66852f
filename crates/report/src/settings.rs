//! What `settings` shows: the rows of a machine, with those that its catalogue doesn't know where all are asked for.

use fullpipe_host::windows::connections::{Observed, StatisticsError};
use fullpipe_knobs::{
    Address,
    catalogue::{Described, Honoured},
    reading::{Contradiction, Merged, Reading, SettingRow, table},
};

/// The settings of one machine, ready to be shown.
#[derive(Clone, Debug)]
pub struct SettingsList<'a> {
    /// Settings and, where they come from files, their places.
    pub merged: &'a Merged,
    /// The files; none where this host was read.
    pub readings: &'a [Reading],
    /// The rows to show, in the order of their addresses.
    pub rows: Vec<SettingRow>,
    /// How many are not shown, because they are absent or unknown to the catalogue.
    pub hidden: usize,
    /// Whether only a part was asked for.
    pub is_part: bool,
    /// The host's connections, where they were asked for.
    pub connections: Option<&'a Connections>,
}

/// The connections of this host, and what tells of pinned buffers.
#[derive(Debug)]
pub struct Connections {
    /// The machine's automatic tuning level, where it is known.
    pub level: Option<String>,
    /// The connections.
    pub observed: Vec<Observed>,
}

impl Connections {
    /// How many have a buffer that their application very likely set.
    pub(crate) fn pinned(&self) -> usize {
        let is_pinned = |one: &&Observed| {
            let ends = one.verdict.as_ref().map(|verdict| [verdict.receive.pinned, verdict.send.pinned]);
            ends.is_ok_and(|ends| ends.contains(&Some(true)))
        };
        self.observed.iter().filter(is_pinned).count()
    }

    /// Why no connection tells anything, where it is the same for all.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = |one: &Observed| one.verdict.as_ref().err().map(StatisticsError::to_string);
        let first = problem(self.observed.first()?)?;
        self.observed.iter().all(|one| problem(one).as_ref() == Some(&first)).then_some(first)
    }
}

impl<'a> SettingsList<'a> {
    /// The rows that have a value; with `all` also those that are absent and those that the catalogue doesn't know.
    pub fn new(merged: &'a Merged, readings: &'a [Reading], all: bool) -> Self {
        let mut rows = table(merged);
        let everything = merged.settings.values.len();
        if all {
            let unknown = merged.settings.values.iter().filter(|(knob, _)| {
                // Both are in the order of the addresses.
                rows.binary_search_by(|row| row.described.knob.cmp(knob)).is_err()
            });
            let unknown: Vec<_> = unknown
                .map(|(knob, value)| SettingRow {
                    described: Described {
                        knob: knob.clone(),
                        value: value.clone(),
                        default: None,
                        honoured: Honoured::Unknown,
                        meaning: String::new(),
                    },
                    unit: String::new(),
                    note: String::new(),
                    file: merged.places.get(knob).map(|(file, _)| file.clone()),
                    place: merged.places.get(knob).map(|(_, place)| *place),
                })
                .collect();
            rows.extend(unknown);
            rows.sort_by(|a, b| a.described.knob.cmp(&b.described.knob));
        } else {
            rows.retain(|row| row.described.value.is_some() || row.file.is_some());
        }
        let hidden = everything.saturating_sub(rows.len());
        Self { merged, readings, rows, hidden, is_part: false, connections: None }
    }

    /// Keeps the rows whose setting has `part` in its name, in any case.
    pub fn only(&mut self, part: &str) {
        let part = part.to_ascii_lowercase();
        self.keep(|_, row| row.described.knob.to_string().to_ascii_lowercase().contains(&part));
    }

    /// Keeps the rows whose value differs from the default.
    pub fn only_changed(&mut self) {
        self.keep(|list, row| list.is_default(row) == Some(false));
    }

    fn keep(&mut self, wanted: impl Fn(&Self, &SettingRow) -> bool) {
        let rows: Vec<SettingRow> = self.rows.iter().filter(|row| wanted(self, row)).cloned().collect();
        self.rows = rows;
        self.is_part = true;
    }

    /// Whether a row's value is the default; `None` where that is not known, or known in words only.
    pub(crate) fn is_default(&self, row: &SettingRow) -> Option<bool> {
        let values = &self.merged.settings.values;
        is_default(&row.described, |name| values.get(&Address::sysctl(name))?.as_deref())
    }

    pub(crate) fn contradictions(&self) -> &[Contradiction] {
        &self.merged.contradictions
    }
}

/// Whether the value is the default; `None` where the default is not known, or known in words only. `others` tells the value
/// of another setting, which a default may be.
fn is_default<'s>(described: &Described, others: impl Fn(&str) -> Option<&'s str>) -> Option<bool> {
    // What a version doesn't have has no default to differ from.
    let default = described.default.as_deref().filter(|_| described.honoured != Honoured::Absent)?;
    // `1500 on Ethernet, 65536 on lo`: each is a value, with where it holds.
    let defaults = || default.split([',', ';', ':']).map(|one| one.trim().split(" on ").next().unwrap_or_default());
    let Some(value) = described.value.as_deref() else { return (defaults().next() == Some("absent")).then_some(true) };
    if defaults().any(|one| same(value, one) || others(one).is_some_and(|other| same(value, other))) {
        return Some(true);
    }
    // One word or a list of numbers is a value; anything else tells about it.
    let is_value =
        |one: &str| one != "unknown" && (!one.contains(' ') || one.split(' ').all(|word| number(word).is_some()));
    defaults().all(is_value).then_some(false)
}

fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.split_whitespace(), b.split_whitespace());
    a.map(shape).eq(b.map(shape))
}

/// A word as it compares: numbers by their value, the rest without upper case.
fn shape(word: &str) -> Result<u64, String> {
    number(word).ok_or_else(|| word.to_ascii_lowercase())
}

fn number(word: &str) -> Option<u64> {
    let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("dword:"));
    hex.map_or_else(|| word.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compared_with_what_the_catalogue_has_as_a_value() {
        for (value, default, expected) in [
            (
                Some("4096\t131072\t33554432"),
                "4096 131072 33554432, the largest less on a machine with little memory",
                Some(true),
            ),
            (
                Some("4096 131072 16777216"),
                "4096 131072 33554432, the largest less on a machine with little memory",
                None,
            ),
            (Some("0"), "1", Some(false)),
            (Some("0x00000002"), "2", Some(true)),
            (Some("Normal"), "normal", Some(true)),
            (Some("bbr"), "cubic on most builds", Some(false)),
            (Some("cubic"), "cubic on most builds", Some(true)),
            (Some("1400"), "1500 on Ethernet, 65536 on lo", Some(false)),
            (Some("65536"), "1500 on Ethernet, 65536 on lo", Some(true)),
            (Some("fq"), "net.core.default_qdisc, noqueue on virtual devices", Some(true)),
            (Some("noqueue"), "net.core.default_qdisc, noqueue on virtual devices", Some(true)),
            (Some("pfifo_fast"), "net.core.default_qdisc, noqueue on virtual devices", Some(false)),
            (None, "absent: learned from the path", Some(true)),
            (Some("1"), "unknown", None),
        ] {
            let described = Described {
                knob: Address::sysctl("net.ipv4.tcp_rmem"),
                value: value.map(str::to_owned),
                default: Some(default.to_owned()),
                honoured: Honoured::Yes,
                meaning: String::new(),
            };
            let others = |name: &str| (name == "net.core.default_qdisc").then_some("fq");
            assert_eq!(is_default(&described, others), expected, "{value:?} {default}");
        }
    }
}
