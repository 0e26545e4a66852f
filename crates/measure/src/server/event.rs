//! What a server logs: one shape for a person and for a program.

use std::{fmt, net::SocketAddr};

use tracing::Level;

use crate::error::clean;

/// Something of note at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// `INFO` for what is as it should be, `WARN` for what a client did wrong or was refused, `ERROR` for what this host failed
    /// at.
    pub level: Level,
    /// What happened, as a word.
    pub kind: &'static str,
    /// The client.
    pub peer: Option<SocketAddr>,
    /// What happened, as a sentence without the client's address and without control characters.
    pub text: String,
}

impl ServerEvent {
    /// Something that `peer` did, or that was done for it.
    pub fn with_peer(level: Level, kind: &'static str, peer: SocketAddr, text: &str) -> Self {
        // Errors of a connection name its peer themselves.
        let text = text.strip_prefix(&format!("{peer}: ")).unwrap_or(text);
        Self { level, kind, peer: Some(peer), text: clean(text) }
    }

    /// Something of this host's own.
    pub fn own(level: Level, kind: &'static str, text: &str) -> Self {
        Self { level, kind, peer: None, text: clean(text) }
    }
}

impl fmt::Display for ServerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) if !self.text.contains(&peer.to_string()) => write!(f, "{peer}: {}", self.text),
            _ => f.write_str(&self.text),
        }
    }
}
