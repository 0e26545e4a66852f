//! Reading, applying, reading back and undoing the settings of a real machine.
//!
//! # The contract of a [`Host`]
//! - `read` tells what is in force now, not what a file says; absent is `None`, never an empty text.
//! - `write` changes what is in force now, and only the address given; `None` makes it absent again.
//! - A value that was read can be written back and reads the same.
//! - No call leaves a setting half written: it has the old value or the new one.
//! - Texts are canonical: single spaces, `200ms` for times of a route, `on` or `off` for offloads; see [`same_value`].
//!
//! Changes go through [`apply`] and [`undo`], which keep a [`Journal`]: what was there before is on disk before anything
//! is written. What is *not* here: what to set (`knobs`), and whether it helped (`tune`).

mod apply;
mod boot_files;
mod error;
pub mod folder;
pub mod journal;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod persist;
mod sysctl;
mod undo;
mod value;

pub use apply::{Applied, ApplyError, ApplyFault, ApplyOptions, Run, apply};
pub use error::HostError;
pub use folder::FolderHost;
pub use journal::{Entry, EntryKind, EntryState, Journal, JournalError, RunId, RunRecord, RunState};
pub use undo::{Outcome, UndoOptions, UndoReport, UndoneEntry, Which, undo};
pub use value::{ROUTE_ATTRIBUTES, canonical, same_value};

use fullpipe_knobs::{Address, Settings};
use serde::{Deserialize, Serialize};

/// A machine whose settings can be read and written. See the contract above.
pub trait Host {
    /// All settings that the catalogue knows for this platform, with routes, links and boot-time files.
    fn settings(&mut self) -> Result<Settings, HostError>;
    /// The value in force at `address`; `None` where it is absent.
    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError>;
    /// Puts `value` in force at `address`; `None` makes it absent.
    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError>;
    /// Says why a write at `address` can't succeed, as far as that can be told without trying.
    fn writable(&mut self, address: &Address) -> Result<(), HostError>;
    /// Which running system this is, so that an undo never writes to another one.
    fn identity(&mut self) -> Result<Identity, HostError>;
}

/// What tells one running system from another. What is unknown matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Differs after each start of the machine.
    pub boot: Option<String>,
    /// The network namespace (on Linux the inode of `/proc/thread-self/ns/net`), or the folder.
    pub namespace: Option<String>,
}
