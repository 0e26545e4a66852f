//! What a server logs: one shape for a person and for a program.

use std::{fmt, net::SocketAddr};

use fullpipe_units::{Bytes, Micros};
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
    /// What came of the test that ended.
    pub test: Option<TestFigures>,
}

/// What a test came to, at the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestFigures {
    /// The user whose password was accepted.
    pub user: Option<String>,
    /// The client's program.
    pub client: Option<String>,
    /// What the client calls the test.
    pub title: Option<String>,
    /// Data connections.
    pub connections: u64,
    /// How long the longest of them moved data.
    pub duration: Micros,
    /// Payload that this host received.
    pub received: Bytes,
    /// Payload that this host sent.
    pub sent: Bytes,
    /// Requests that were answered, where the ends answered each other instead of filling the path.
    pub requests: Option<u64>,
}

impl ServerEvent {
    /// Something that `peer` did, or that was done for it.
    pub fn with_peer(level: Level, kind: &'static str, peer: SocketAddr, text: &str) -> Self {
        // Errors of a connection name its peer themselves.
        let text = text.strip_prefix(&format!("{peer}: ")).unwrap_or(text);
        Self { level, kind, peer: Some(peer), text: clean(text), test: None }
    }

    /// Something of this host's own.
    pub fn own(level: Level, kind: &'static str, text: &str) -> Self {
        Self { level, kind, peer: None, text: clean(text), test: None }
    }
}

impl fmt::Display for TestFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, client, title, connections, duration, received, sent, requests } = self;
        if let Some(user) = user {
            write!(f, "{user}: ")?;
        }
        f.write_str(client.as_deref().unwrap_or("an unnamed client"))?;
        if let Some(title) = title {
            write!(f, " ({title})")?;
        }
        if let Some(requests) = requests {
            return write!(f, ": {requests} requests answered");
        }
        let plural = if *connections == 1 { "" } else { "s" };
        let seconds = duration.as_secs_f64();
        write!(
            f,
            ": {connections} stream{plural}, {seconds:.2} s, received {} B, sent {} B",
            received.get(),
            sent.get()
        )
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
