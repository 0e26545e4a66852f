//! Why a setting could not be read or written.

use std::io;

use fullpipe_knobs::Address;

/// The right that changing settings takes.
const NEEDED: &str = if cfg!(target_os = "linux") {
    "root, or CAP_NET_ADMIN in this network namespace"
} else if cfg!(windows) {
    "an elevated prompt (\"Run as administrator\")"
} else {
    "root"
};

/// Why a setting could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The address names nothing that this host could have.
    #[error("{address} names no setting here: {why}")]
    UnknownAddress {
        /// The address.
        address: Address,
        /// What is wrong with it.
        why: String,
    },
    /// The value is of the wrong form; nothing was written.
    #[error("can't set {address} to `{value}`: expected {expected}")]
    InvalidValue {
        /// The address.
        address: Address,
        /// The value.
        value: String,
        /// What the value must look like.
        expected: String,
    },
    /// The setting isn't on this system.
    #[error(
        "can't {operation} {address}: there is no such setting on {platform}; this version may not have it, its kernel \
         module may not be loaded, or it exists only outside this network namespace"
    )]
    Missing {
        /// `read` or `write`.
        operation: &'static str,
        /// The address.
        address: Address,
        /// The system and its version.
        platform: String,
    },
    /// The link or the route that carries the setting isn't there.
    #[error("can't {operation} {address}: {why}")]
    ObjectGone {
        /// `read` or `write`.
        operation: &'static str,
        /// The address.
        address: Address,
        /// What is missing, and how to see what there is.
        why: String,
    },
    /// The setting can be read and not written.
    #[error("can't write {address}: it is read-only {why}")]
    ReadOnly {
        /// The address.
        address: Address,
        /// Where, and what to do instead.
        why: &'static str,
    },
    /// The setting can't be made absent.
    #[error("can't remove {address}: it always has a value; give the value to write instead")]
    NeverAbsent {
        /// The address.
        address: Address,
    },
    /// The right is missing.
    #[error("can't {operation} {address}: {source}; this needs {NEEDED}")]
    NoPermission {
        /// `read` or `write`.
        operation: &'static str,
        /// The address.
        address: Address,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused the value; the old one is in force.
    #[error("the system refused `{value}` for {address}: {source}; the old value is still in force")]
    Refused {
        /// The address.
        address: Address,
        /// The value.
        value: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Group Policy decides on the setting.
    #[error(
        "can't set {address}: Group Policy sets `{policy}` to {value}, which wins over the local value; ask the domain's \
         administrator, or change it with gpedit.msc"
    )]
    Policy {
        /// The address.
        address: Address,
        /// The policy.
        policy: &'static str,
        /// What it says.
        value: String,
    },
    /// The place of the setting could not be read or written.
    #[error("can't {operation} {address}: {source}")]
    Inaccessible {
        /// `read` or `write`.
        operation: &'static str,
        /// The address.
        address: Address,
        /// The system's reason.
        source: io::Error,
    },
    /// A program of the system that reads or writes the setting failed.
    #[error("can't {operation} {address}: {program} says: {why}")]
    Program {
        /// `read` or `write`.
        operation: &'static str,
        /// The address.
        address: Address,
        /// The program.
        program: &'static str,
        /// What it said, or why it was not asked.
        why: String,
    },
    /// The network configuration could not be read or changed.
    #[cfg(target_os = "linux")]
    #[error("can't {operation} {address}: {source}")]
    Network {
        /// `read` or `write`.
        operation: &'static str,
        /// The address.
        address: Address,
        /// The reason.
        source: Box<crate::linux::net::NetError>,
    },
    /// The network configuration as a whole could not be read.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    NetworkTables(#[from] Box<crate::linux::net::NetError>),
    /// A file could not be read or written.
    #[error("can't {operation} {path}: {source}")]
    File {
        /// `read`, `write`, `list`.
        operation: &'static str,
        /// The file.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl HostError {
    /// True where what carried the setting is no longer there, so that there is nothing to restore.
    pub fn object_is_gone(&self) -> bool {
        matches!(self, Self::ObjectGone { .. } | Self::Missing { .. })
    }
}

#[cfg(target_os = "linux")]
impl From<crate::linux::net::NetError> for HostError {
    fn from(source: crate::linux::net::NetError) -> Self {
        Self::NetworkTables(Box::new(source))
    }
}
