//! What was read as rows for a user: value, default of that version, whether it is honoured, and what it does.

use serde::Serialize;

use super::{Merged, Place};
use crate::{
    Catalogue,
    catalogue::{self, Described},
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
    let catalogue = Catalogue::of(&platform.family);
    let rows = catalogue::describe(&merged.settings).into_iter().map(|described| {
        let knob = catalogue.and_then(|catalogue| catalogue.find(&described.knob));
        let span = catalogue.zip(knob).and_then(|(catalogue, knob)| catalogue.span(knob, &platform.version));
        let found = merged.places.get(&described.knob);
        SettingRow {
            unit: knob.map_or_else(String::new, |knob| knob.unit.clone()),
            note: span.filter(|span| span.confirmed).map_or_else(String::new, |span| span.note.clone()),
            file: found.map(|(file, _)| file.clone()),
            place: found.map(|(_, place)| *place),
            described,
        }
    });
    rows.collect()
}
