//! Short connections as their follower left them: nothing in them is judged, and they are summed up when somebody asks
//! for them. Of 200,000 connections a person looks at twenty. What is *not* here: which these are (`entry`).

use super::{entry::Entry, journal::Journal};
use crate::{Key, Slot, Table, connection::Connection};

/// The lists of one part's connections.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    table: Table<Entry>,
    journal: Journal,
}

impl Listed {
    pub(super) const fn new(table: Table<Entry>, journal: Journal) -> Self {
        Self { table, journal }
    }

    /// The connection of a slot of this part, followed through its list.
    pub(crate) fn connection(&self, slot: Slot) -> Option<(&Key, Box<Connection>)> {
        Some((self.table.key(slot), self.table.value(slot).restore(&self.journal)?))
    }
}
