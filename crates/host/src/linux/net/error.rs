//! What can go wrong between us and the kernel's routing tables.

use std::io;

use netlink_packet_core::DecodeError;

/// Why a link, an address or a route could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The netlink socket could not be opened or used.
    #[error("can't {operation} a netlink socket: {source}; a sandbox (seccomp) may forbid AF_NETLINK")]
    Socket {
        /// `open`, `send to`, `receive from`.
        operation: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel refused a request.
    #[error("can't {operation} {object}: {source}{}", hint(.source, .reason))]
    Refused {
        /// What was to be done: `set the mtu of`.
        operation: &'static str,
        /// To what: `link eth0`.
        object: String,
        /// The errno.
        source: io::Error,
        /// The kernel's own words (extended acknowledgement), where it gave any.
        reason: Option<String>,
    },
    /// The kernel's answer could not be read.
    #[error("can't read the kernel's answer to the request to {operation} {object}: {source}")]
    Answer {
        /// What was to be done.
        operation: &'static str,
        /// To what.
        object: String,
        /// Where the answer goes wrong.
        source: DecodeError,
    },
    /// The tables kept changing while they were read.
    #[error("can't {operation} {object}: the table changed during each of {attempts} readings; try again later")]
    Unsteady {
        /// What was to be done.
        operation: &'static str,
        /// To what.
        object: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// There is no such link in this namespace.
    #[error("there is no link {device} in this network namespace; `ip link` lists those that there are")]
    NoSuchLink {
        /// The name.
        device: String,
    },
    /// There is no such route in the main table of this namespace.
    #[error("there is no route to {destination} in the main table of this network namespace; `ip route` lists them")]
    NoSuchRoute {
        /// The destination.
        destination: String,
    },
    /// The route is of a kind that can't be replaced attribute by attribute.
    #[error("can't change the metrics of the route to {destination}: {why}")]
    UnsupportedRoute {
        /// The destination.
        destination: String,
        /// Which kind, and the way out.
        why: &'static str,
    },
    /// A queueing discipline that somebody configured can't be put back by its name alone.
    #[error(
        "can't replace the queueing discipline of link {device}: `{kind} {handle:x}:` was configured by hand, and its \
         parameters could not be restored; change it with tc(8)"
    )]
    ForeignQdisc {
        /// The interface.
        device: String,
        /// The discipline in force.
        kind: String,
        /// The major number of its handle.
        handle: u16,
    },
}

impl NetError {
    /// The errno of a refusal or of the socket.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Socket { source, .. } | Self::Refused { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// The kernel's own words, and the way out.
fn hint(source: &io::Error, reason: &Option<String>) -> String {
    let mut text = String::new();
    if let Some(reason) = reason {
        text.push_str(&format!(" ({reason})"));
    }
    if source.kind() == io::ErrorKind::PermissionDenied {
        text.push_str("; this needs root or CAP_NET_ADMIN in this network namespace");
    }
    text
}
