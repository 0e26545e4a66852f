//! Why a mesh could not be measured or kept.

use std::{io, path::PathBuf};

use rusqlite::ErrorCode;

/// What went wrong, with the operation and the object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// The file of hosts can't be understood.
    #[error("{problem}; see `fullpipe help mesh` for the form of the file")]
    Hosts {
        /// What is wrong, with line and column where a line is wrong.
        problem: String,
    },
    /// The store can't be read or written.
    #[error("{operation} {}: {source}; name another with --store, or go without by --no-store", path.display())]
    Store {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: rusqlite::Error,
    },
    /// The store is a database of something else, or of a later version.
    #[error("opening {}: it has the layout {found}, and this version knows {known}; name another with --store", path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// The number that it has.
        found: i64,
        /// The number that is known.
        known: i64,
    },
    /// The folder of the store can't be made.
    #[error("making the folder of {}: {source}", path.display())]
    Folder {
        /// The store.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Somebody ended it.
    #[error("interrupted; what was measured is not kept")]
    Interrupted,
}

/// Whose fault it is, for whoever has to say it in an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A file that was given is something else.
    Input,
    /// No space is left.
    DiskFull,
    /// A right is missing.
    NoPermission,
    /// Somebody ended it.
    Interrupted,
    /// Anything else.
    System,
}

impl MeshError {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Hosts { .. } | Self::Layout { .. } => Fault::Input,
            Self::Interrupted => Fault::Interrupted,
            Self::Folder { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => Fault::DiskFull,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Fault::NoPermission,
                _ => Fault::System,
            },
            Self::Store { source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Fault::Input,
                Some(ErrorCode::DiskFull) => Fault::DiskFull,
                Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Fault::NoPermission,
                _ => Fault::System,
            },
        }
    }
}
