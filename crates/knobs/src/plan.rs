//! What to set, where, and why.

use fullpipe_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Address;

/// An ordered list of changes, which is undone in reverse.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What to set, in this order.
    pub changes: Vec<Change>,
    /// What the plan leaves alone and why, conflicts that it found, and what it can't do here.
    pub notes: Vec<String>,
}

/// One setting to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The host to change, by the name that its `End` has.
    pub host: String,
    /// Which setting.
    pub knob: Address,
    /// What it is now; `None` where it is absent.
    pub from: Option<String>,
    /// What it shall be; `None` removes it.
    pub to: Option<String>,
    /// Why, as one sentence.
    pub reason: String,
    /// The arithmetic behind the value.
    pub arithmetic: String,
    /// The most memory that this can cost, with the connections assumed.
    pub memory_worst_case: Option<Bytes>,
    /// When it acts.
    pub takes_effect: TakesEffect,
    /// How it is undone, for a person who does it by hand.
    pub undo: String,
    /// Where the catalogue has it from.
    pub source: String,
}

/// When a change acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// On connections that are open already, too.
    Live,
    /// On connections opened from now on.
    NewConnections,
    /// When the interface is taken down and up.
    InterfaceRestart,
    /// When the machine starts again.
    Restart,
}
