//! Why a mesh could not be measured or kept.

use std::io;

use rusqlite::ErrorCode;

/// What a program says that was built without it, and the way to one that has it.
const WITHOUT_POSTGRES: &str = if cfg!(target_vendor = "apple") {
    "fullpipe keeps no store in PostgreSQL on macOS; name a file with --store, or run mesh on Linux or Windows"
} else {
    "this program was built without PostgreSQL, as packages and archives of releases are, to stay small; name a file with \
     --store, or build one that has it, in the sources of fullpipe: `cargo install --locked --path crates/cli --features \
     postgres`"
};

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
    #[error("{operation} {store}: {source}; name another with --store, or go without by --no-store")]
    Store {
        /// What was tried.
        operation: &'static str,
        /// The file, or the server and its database.
        store: String,
        /// Why it failed.
        source: StoreError,
    },
    /// The store is a database of something else, or of a later version.
    #[error("opening {store}: it has the layout {found}, and this version knows {known}; name another with --store")]
    Layout {
        /// The file, or the server and its database.
        store: String,
        /// The number that it has.
        found: i64,
        /// The number that is known.
        known: i64,
    },
    /// The server lets this user only read.
    #[error(
        "opening {store}: this user may read it, and not write; grant INSERT on all tables of its schema fullpipe, name \
         another with --store, or go without by --no-store"
    )]
    ReadOnly {
        /// The server and its database.
        store: String,
    },
    /// The URL of the store can't be used.
    #[error(
        "the URL of the store: {problem}; give postgres://user@host:port/database, with ?sslmode=verify-full where the way to \
         it is not trusted"
    )]
    Address {
        /// What is wrong with it.
        problem: String,
    },
    /// The program was built without it.
    #[error("{WITHOUT_POSTGRES}")]
    NoPostgres,
    /// The folder of the store can't be made.
    #[error("making the folder of {store}: {source}")]
    Folder {
        /// The store.
        store: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Somebody ended it.
    #[error("interrupted; what was measured is not kept")]
    Interrupted,
}

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file did.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The server did, or the way to it.
    #[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
    #[error("{}", postgres_said(.0))]
    Postgres(#[from] postgres::Error),
    /// Something was asked outside of a transaction.
    #[error("no transaction was begun")]
    NotBegun,
}

/// Whose fault it is, for whoever has to say it in an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The command line can't be understood.
    Usage,
    /// A file that was given is something else, or a database is not there.
    Input,
    /// No space is left.
    DiskFull,
    /// A right is missing, or a password is wrong.
    NoPermission,
    /// A server does not answer.
    Unreachable,
    /// Nothing listens at the server's port.
    Refused,
    /// A server's name has no address.
    NameUnknown,
    /// A server vanished.
    ConnectionLost,
    /// This build lacks it.
    Unsupported,
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
            Self::Address { .. } => Fault::Usage,
            Self::ReadOnly { .. } => Fault::NoPermission,
            Self::NoPostgres => Fault::Unsupported,
            Self::Interrupted => Fault::Interrupted,
            Self::Folder { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => Fault::DiskFull,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Fault::NoPermission,
                _ => Fault::System,
            },
            Self::Store { source, .. } => source.fault(),
        }
    }
}

impl StoreError {
    fn fault(&self) -> Fault {
        match self {
            Self::Sqlite(source) => match source.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Fault::Input,
                Some(ErrorCode::DiskFull) => Fault::DiskFull,
                Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Fault::NoPermission,
                _ => Fault::System,
            },
            #[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
            Self::Postgres(source) => postgres_fault(source),
            Self::NotBegun => Fault::System,
        }
    }
}

/// What PostgreSQL's error and its causes say, without the words of the Rust library.
#[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
pub(crate) fn postgres_said(error: &postgres::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let said: Vec<String> = causes.map(ToString::to_string).collect();
    if said.is_empty() { error.to_string() } else { said.join(": ") }
}

/// By the codes of PostgreSQL (its documentation, appendix A), or the operating system's error on the way there.
#[cfg(all(feature = "postgres", not(target_vendor = "apple")))]
fn postgres_fault(error: &postgres::Error) -> Fault {
    use postgres::error::SqlState;
    if let Some(code) = error.code() {
        return match code {
            code if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                || *code == SqlState::INSUFFICIENT_PRIVILEGE
                || *code == SqlState::READ_ONLY_SQL_TRANSACTION =>
            {
                Fault::NoPermission
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => Fault::Input,
            code if *code == SqlState::DISK_FULL => Fault::DiskFull,
            code if *code == SqlState::ADMIN_SHUTDOWN || *code == SqlState::CRASH_SHUTDOWN => Fault::ConnectionLost,
            _ => Fault::System,
        };
    }
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let of_system = causes.into_iter().find_map(|cause| cause.downcast_ref::<io::Error>());
    match of_system.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => Fault::Refused,
        Some(io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            Fault::Unreachable
        }
        // rustls has this one for a certificate that is not trusted.
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData) => Fault::NoPermission,
        // The standard library has no kind for a name without an address.
        Some(_) if of_system.is_some_and(|error| error.to_string().contains("lookup address")) => Fault::NameUnknown,
        Some(_) => Fault::ConnectionLost,
        None if error.is_closed() => Fault::ConnectionLost,
        // The library has no password, and the server wants one.
        None if error.to_string().contains("invalid configuration") => Fault::NoPermission,
        // It has no TLS, and the URL wants it.
        None if error.to_string().contains("TLS handshake") => Fault::NoPermission,
        None => Fault::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_postgres_says_how_to_get_one_with_it() {
        let said = MeshError::NoPostgres.to_string();
        assert!(said.contains("PostgreSQL") && said.contains("--store"), "{said}");
        assert!(cfg!(target_vendor = "apple") || said.contains("cargo install --locked --path crates/cli"), "{said}");
    }
}
