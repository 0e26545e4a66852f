//! What was read as rows for a user: value, default of that version, whether it is honoured, and what it does.

use serde::Serialize;

use super::{Merged, Place};
use crate::{
    Catalogue,
    catalogue::{self, Described, Honoured, Span},
};

/// One setting as `settings` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingRow {
    /// Setting, value, default, whether it is honoured, and meaning.
    #[serde(flatten)]
    pub described: Described,
    /// The unit of its numbers; `none` where they have none.
    pub unit: String,
    /// What a person should know of this version; empty where there is nothing.
    pub note: String,
    /// The file that tells the value, where it was read from one.
    pub file: Option<String>,
    /// Where in that file.
    pub place: Option<Place>,
}

/// The rows of all settings that the platform's catalogue knows, in the order of their addresses.
///
/// Where the version is not known, defaults are left out and `honoured` is `unknown`.
pub fn table(merged: &Merged) -> Vec<SettingRow> {
    let platform = &merged.settings.platform;
    let catalogue = Catalogue::for_family(platform.family);
    let rows = catalogue::describe(&merged.settings).into_iter().map(|described| {
        let knob = catalogue.and_then(|catalogue| catalogue.find(&described.knob));
        let span = catalogue.zip(knob).and_then(|(catalogue, knob)| catalogue.span(knob, &platform.version));
        let found = merged.places.get(&described.knob);
        SettingRow {
            unit: knob.map_or_else(String::new, |knob| knob.unit.clone()),
            note: span.map_or_else(String::new, note),
            file: found.map(|(file, _)| file.clone()),
            place: found.map(|(_, place)| *place),
            described,
        }
    });
    rows.collect()
}

/// What to know of a span. What its sources don't settle is said to be so: a hint, and not a fact.
fn note(span: &Span) -> String {
    if span.confirmed {
        return span.note.clone();
    }
    let honoured = match span.honoured {
        Honoured::Yes | Honoured::Partly => Some("it does".to_owned()),
        Honoured::Ignored => Some("it doesn't".to_owned()),
        Honoured::ReadOnly => Some("it is read-only".to_owned()),
        Honoured::Absent => Some("it has none".to_owned()),
        Honoured::Unknown => None,
    };
    let default = (span.default != "unknown").then(|| format!("the default is {}", span.default));
    let note = Some(span.note.clone()).filter(|note| !note.is_empty());
    let parts: Vec<String> = honoured.into_iter().chain(default).chain(note).collect();
    if parts.is_empty() { String::new() } else { format!("unverified: {}", parts.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{merge, read};

    #[test]
    fn what_sources_do_not_settle_is_told_as_a_hint() {
        let text = b"REGEDIT4\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\r\n\"TcpWindowSize\"=dword:00004470\r\n\"Tcp1323Opts\"=dword:00000003\r\n";
        let rows = |platform: &str| {
            let reading = read("x.reg", text).expect("read");
            table(&merge(&[reading], platform.parse().ok().as_ref()).expect("one machine's"))
        };
        let old = rows("windows-xp");
        assert!(
            old.iter().all(|row| row.described.honoured == Honoured::Yes && row.described.default.is_some()),
            "{old:?}"
        );
        let new = rows("windows-7");
        assert_eq!(new[0].described.honoured, Honoured::Unknown);
        assert!(new[0].note.starts_with("unverified: it doesn't; the default is absent; scaling follows"), "{new:?}");
    }
}
