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
mod at_boot;
mod boot_files;
mod error;
mod export_folder;
pub mod folder;
pub mod freebsd;
pub mod guardian;
mod held;
pub mod journal;
mod left;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux looks at its ways out so far"))]
mod lifeline;
#[cfg(target_os = "linux")]
pub mod linux;
mod made;
pub mod persist;
mod plain_file;
mod program;
pub mod reset;
mod sysctl;
#[cfg(target_os = "linux")]
mod systemd;
mod trusted;
mod undo;
mod value;
pub mod windows;

pub use apply::{Applied, ApplyError, ApplyFault, ApplyOptions, Run, apply, confirm};
pub use at_boot::overridden_at_boot;
pub use error::HostError;
pub use export_folder::{ExportFolder, ExportFolderError};
pub use folder::FolderHost;
pub use held::{FixedBuffers, HeldSocket, Program};
pub use journal::{Entry, EntryKind, EntryState, FarRun, Journal, JournalError, RunId, RunRecord, RunState, Trial};
pub use left::{Left, left};
pub use lifeline::Lifeline;
pub use persist::{BootFile, Lasting, Overridden, no_survivor};
pub use program::Output;
pub use undo::{Outcome, UndoOptions, UndoReport, UndoneEntry, Which, undo};
pub use value::{ROUTE_ATTRIBUTES, canonical, same_value};

use std::path::Path;

use fullpipe_knobs::{Address, Change, Settings};
use serde::{Deserialize, Serialize};

/// The host that is the system this program runs on; each has `new()`.
#[cfg(target_os = "linux")]
pub type SystemHost = linux::LinuxHost;
/// The host that is the system this program runs on; each has `new()`.
#[cfg(windows)]
pub type SystemHost = windows::WindowsHost<windows::SystemRegistry, windows::SystemRunner>;
/// The host that is the system this program runs on; each has `new()`.
#[cfg(any(target_os = "freebsd", target_os = "macos"))]
pub type SystemHost = freebsd::BsdHost<freebsd::SystemKernel>;

/// A machine whose settings can be read and written. See the contract above.
pub trait Host {
    /// All settings that the catalogue knows for this platform, with routes, links and boot-time files.
    fn settings(&mut self) -> Result<Settings, HostError>;
    /// The value in force at `address`; `None` where it is absent.
    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError>;
    /// Puts `value` in force at `address`; `None` makes it absent.
    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError>;
    /// Says why a write at `address` can't succeed, as far as that can be determined without trying.
    fn writable(&mut self, address: &Address) -> Result<(), HostError>;
    /// Which running system this is, so that an undo never writes to another one.
    fn identity(&mut self) -> Result<Identity, HostError>;

    /// Whether the running system only shows this setting, and takes it over from a boot-time file when it starts: such a
    /// change is written into that file and nowhere else.
    fn is_taken_at_start(&mut self, address: &Address) -> Result<bool, HostError> {
        let _ = address;
        Ok(false)
    }

    /// The ways out that a change must not cost; none on a host that stands for another.
    fn lifelines(&mut self) -> Vec<Lifeline> {
        Vec::new()
    }

    /// Which of these are there no more.
    fn lost<'a>(&mut self, lifelines: &'a [Lifeline]) -> Option<&'a Lifeline> {
        lifelines.iter().find(|lifeline| lifeline.is_lost())
    }

    /// How a change is made to last beyond a restart. Unless a host says otherwise, sysctls go into a drop-in.
    fn lasting(&self, change: &Change) -> Lasting {
        persist::in_drop_in(change)
    }

    /// The boot-time files as they are to be, so that they say what [`Lasting::InFile`] changes say. `folder` is that of
    /// [`ApplyOptions::persist`], for a host that keeps a drop-in; nothing is written here.
    fn boot_files(&mut self, folder: &Path, changes: &[&Change]) -> Result<Vec<BootFile>, HostError> {
        persist::drop_in(folder, changes)
    }

    /// What keeps those boot-time files from deciding what these settings are at the next boot, and the way out of it.
    fn overridden(&mut self, folder: &Path, changes: &[&Change]) -> Result<Vec<Overridden>, HostError> {
        let _ = (folder, changes);
        Ok(Vec::new())
    }

    /// Whether `path` is a boot-time file that this host writes: an undo touches no other, whatever a journal says.
    fn keeps_boot_file(&self, path: &Path) -> bool {
        path == persist::sysctl_dir().join(persist::file_name())
    }
}

/// What tells one running system from another. What is unknown matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Differs after each start of the machine.
    pub boot: Option<String>,
    /// The network namespace (on Linux the inode of `/proc/thread-self/ns/net`), or the folder.
    pub namespace: Option<String>,
}
