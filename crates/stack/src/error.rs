//! Why the stack could not do something.

use std::{io, net::SocketAddr};

use fullpipe_lab::LabError;
use fullpipe_tcp::{
    socket::Failure,
    stack::{OpenError, SocketError},
};

/// Why the stack could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// There is no device, or no right to it.
    #[error(transparent)]
    Port(#[from] LabError),
    /// A socket could not be opened.
    #[error("cannot {operation} {address}: {source}")]
    Open {
        /// What was tried.
        operation: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: OpenError,
    },
    /// A connection failed.
    #[error("{operation} {peer}: {source}")]
    Connection {
        /// What was tried.
        operation: &'static str,
        /// With whom.
        peer: SocketAddr,
        /// Why not.
        source: SocketError,
    },
    /// Nothing happened in time.
    #[error("{operation} {address}: nothing happened in {seconds:.1} s")]
    TimedOut {
        /// What was waited for.
        operation: &'static str,
        /// Where.
        address: SocketAddr,
        /// For how long.
        seconds: f64,
    },
    /// It was asked to stop.
    #[error("it was stopped before the end")]
    Stopped,
    /// The time that was given is over.
    #[error("the time was over before the end")]
    OutOfTime,
    /// A setting makes no stack.
    #[error("{0}")]
    Setting(String),
    /// The system failed.
    #[error("cannot {operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl StackError {
    pub(crate) fn system(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System { operation, source: source.into() }
    }
}

impl From<StackError> for io::Error {
    fn from(error: StackError) -> Self {
        let kind = match &error {
            StackError::Connection { source, .. } => kind_of(*source),
            StackError::TimedOut { .. } => io::ErrorKind::TimedOut,
            StackError::Stopped => io::ErrorKind::Interrupted,
            StackError::Open { source: OpenError::InUse(_), .. } => io::ErrorKind::AddrInUse,
            StackError::Open { source: OpenError::NoAddress, .. } => io::ErrorKind::AddrNotAvailable,
            StackError::Setting(_) => io::ErrorKind::InvalidInput,
            StackError::System { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The kind of a socket's error, as the operating system would have it.
pub fn kind_of(error: SocketError) -> io::ErrorKind {
    match error {
        SocketError::WouldBlock => io::ErrorKind::WouldBlock,
        SocketError::Closed => io::ErrorKind::BrokenPipe,
        SocketError::Failed(Failure::Refused) => io::ErrorKind::ConnectionRefused,
        SocketError::Failed(Failure::Reset) => io::ErrorKind::ConnectionReset,
        SocketError::Failed(Failure::TimedOut) => io::ErrorKind::TimedOut,
        SocketError::Failed(Failure::Unreachable) => io::ErrorKind::HostUnreachable,
        SocketError::Failed(Failure::Aborted) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::NotConnected,
    }
}
