//! Why a measurement failed, and whose fault it was.

use std::{fmt, io, net::SocketAddr, time::Duration};

use fullpipe_units::Bytes;

/// Why a measurement, or a conversation with the far end, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The text names no peer.
    #[error("`{text}` is not a target; expected HOST, HOST:PORT, 192.0.2.1:5201 or [2001:db8::1]:5201")]
    BadTarget {
        /// What was given.
        text: String,
    },
    /// The test that was asked for is impossible.
    #[error("{field} of the test can't be {value}: {reason}")]
    BadSpec {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        reason: &'static str,
    },
    /// The name has no address.
    #[error("looking up `{host}`: no address ({source}); check the spelling, or give an address")]
    UnknownName {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Nothing at the address answers, or there is no route to it.
    #[error("connecting to {peer}: {source}; check the address, routes and firewalls on the way")]
    Unreachable {
        /// The address.
        peer: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The host is there and nothing listens on the port.
    #[error("connecting to {peer}: refused; start `fullpipe serve` there, or check the port")]
    Refused {
        /// The address.
        peer: SocketAddr,
    },
    /// The same, of an iperf 2 server.
    #[error("connecting to {peer}: refused; start `iperf -s` there (iperf 2), or `fullpipe serve -p {}`, or check the port", peer.port())]
    NoIperf2 {
        /// The address.
        peer: SocketAddr,
    },
    /// The peer did not answer in time.
    #[error("{operation} with {peer}: no answer within {} s", .after.as_secs_f64())]
    Timeout {
        /// The peer.
        peer: SocketAddr,
        /// What was going on.
        operation: &'static str,
        /// How long it had.
        after: Duration,
    },
    /// The name was not resolved in time.
    #[error("looking up `{host}`: no answer within {} s; check the resolver, or give an address", .after.as_secs_f64())]
    LookupTimeout {
        /// The name.
        host: String,
        /// How long it had.
        after: Duration,
    },
    /// The server is measuring somebody else, or has as many clients as it allows.
    #[error("{peer} is busy with another test; try again later (a fullpipe server takes several clients at once)")]
    Busy {
        /// The peer.
        peer: SocketAddr,
    },
    /// An iperf3 server answered once and then closed its port.
    #[error(
        "{peer} answered one session and then closed its port, as `iperf3 -s -1` does, and this takes several; start it \
         without -1, or start `fullpipe serve` there"
    )]
    OneTest {
        /// The peer.
        peer: SocketAddr,
    },
    /// Something else listens there.
    #[error("{peer} is {foreign}, not a fullpipe or iperf3 server; check the port")]
    NotAServer {
        /// The peer.
        peer: SocketAddr,
        /// What it seems to be.
        foreign: Foreign,
    },
    /// What connected to our server is no client of it.
    #[error("{peer} is {foreign}, not a fullpipe or iperf3 client")]
    NotAClient {
        /// The peer.
        peer: SocketAddr,
        /// What it seems to be.
        foreign: Foreign,
    },
    /// The peer is an iperf3 server, which can't do what was asked.
    #[error("{peer} is a foreign iperf3 server, and {operation} needs `fullpipe serve` at the far end")]
    NeedsFullpipe {
        /// The peer.
        peer: SocketAddr,
        /// What was asked.
        operation: &'static str,
    },
    /// The peer speaks a later or earlier version of the conversation.
    #[error(
        "{peer} speaks version {theirs} of the fullpipe protocol and this end version {ours}; update the older one"
    )]
    VersionMismatch {
        /// The peer.
        peer: SocketAddr,
        /// Its version.
        theirs: u64,
        /// Ours.
        ours: u64,
    },
    /// The connection ended in the middle.
    #[error("{operation} with {peer}: the peer closed the connection; {}", if *operation == HANDSHAKE {
        "is its process still running, and is it no iperf 2 server, which ends like this (`fullpipe measure --iperf2` speaks to it)?"
    } else {
        "is its process still running?"
    })]
    Closed {
        /// The peer.
        peer: SocketAddr,
        /// What was going on.
        operation: &'static str,
    },
    /// The server reported an error of its own.
    #[error("{peer} gave up the test: {} (iperf3 error {code}, errno {errno})", meaning(*.code))]
    ServerError {
        /// The peer.
        peer: SocketAddr,
        /// iperf3's error code.
        code: i32,
        /// The errno of the server, 0 where there was none.
        errno: i32,
    },
    /// Somebody stopped the server.
    #[error("{peer} was stopped during the test")]
    Terminated {
        /// The peer.
        peer: SocketAddr,
    },
    /// The peer said something that can't be understood.
    #[error("{operation} with {peer}: {problem}")]
    BadMessage {
        /// The peer.
        peer: SocketAddr,
        /// What was going on.
        operation: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The peer announced a message larger than any that belongs here.
    #[error("{operation} with {peer}: a message of {bytes} bytes where at most {limit} belong")]
    TooLarge {
        /// The peer.
        peer: SocketAddr,
        /// What was going on.
        operation: &'static str,
        /// The announced length.
        bytes: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// No payload moved for a long time.
    #[error("test with {peer}: no payload moved for {} s; the path or the far end stopped", .after.as_secs_f64())]
    Stalled {
        /// The peer.
        peer: SocketAddr,
        /// For how long.
        after: Duration,
    },
    /// The test of a client came to what this server allows.
    #[error("test with {peer}: it reached the {limit} that this server allows")]
    OverLimit {
        /// The client.
        peer: SocketAddr,
        /// The most that is allowed.
        limit: Bytes,
    },
    /// The far end's request handler refused or failed a request.
    #[error("{peer} refused the request `{request}`: {message}")]
    Refusal {
        /// The peer.
        peer: SocketAddr,
        /// The name of the request.
        request: String,
        /// The kind of the refusal, a word for programs.
        kind: String,
        /// The reason, for persons.
        message: String,
    },
    /// This end's socket does not take an option that was asked for.
    #[error("setting {option} to {value} on this end: {source}")]
    Option {
        /// Which option.
        option: &'static str,
        /// The value.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// The caller stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Cancelled,
    /// The address can't be listened on.
    #[error("listening on {address}: {source}; {}", bind_hint(.source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed an operation.
    #[error("{operation} with {peer}: {source}")]
    Io {
        /// The peer.
        peer: SocketAddr,
        /// What was going on.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What a client does first.
pub(crate) const HANDSHAKE: &str = "the handshake";

/// Whose fault an error was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The far end, or the path to it.
    Peer,
    /// What this end was asked to do.
    Local,
    /// The operating system of this end.
    Os,
}

/// What listens where a server was expected, or speaks where a client was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// A web server or browser.
    Http,
    /// Secure shell.
    Ssh,
    /// Something that begins with a TLS handshake.
    Tls,
    /// The older iperf, where it does anything else than its TCP test.
    Iperf2,
    /// Accepts connections and says nothing.
    Silent,
    /// Something else; what it said, cleaned of control characters.
    Other(String),
}

impl MeasureError {
    /// Whose fault it was.
    pub fn fault(&self) -> Fault {
        match self {
            Self::BadTarget { .. } | Self::BadSpec { .. } | Self::Cancelled | Self::Option { .. } => Fault::Local,
            Self::Bind { .. } | Self::Io { .. } | Self::LookupTimeout { .. } => Fault::Os,
            _ => Fault::Peer,
        }
    }

    /// A word for programs: `refused`, `timeout`, `busy`, ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BadTarget { .. } => "bad_target",
            Self::BadSpec { .. } => "bad_spec",
            Self::UnknownName { .. } => "unknown_name",
            Self::Unreachable { .. } => "unreachable",
            Self::Refused { .. } | Self::NoIperf2 { .. } => "refused",
            Self::Timeout { .. } | Self::LookupTimeout { .. } => "timeout",
            Self::Busy { .. } => "busy",
            Self::OneTest { .. } => "one_test",
            Self::NotAServer { .. } => "not_a_server",
            Self::NotAClient { .. } => "not_a_client",
            Self::NeedsFullpipe { .. } => "needs_fullpipe",
            Self::VersionMismatch { .. } => "version_mismatch",
            Self::Closed { .. } => "closed",
            Self::ServerError { .. } => "server_error",
            Self::Terminated { .. } => "terminated",
            Self::BadMessage { .. } => "bad_message",
            Self::TooLarge { .. } => "too_large",
            Self::Stalled { .. } => "stalled",
            Self::OverLimit { .. } => "over_limit",
            Self::Refusal { .. } => "refusal",
            Self::Option { .. } => "option",
            Self::Cancelled => "cancelled",
            Self::Bind { .. } => "bind",
            Self::Io { .. } => "io",
        }
    }
}

impl Foreign {
    /// What speaks, judged by its first bytes.
    pub(crate) fn named_by(first: &[u8]) -> Self {
        const WEB: [&[u8]; 9] =
            [b"HTTP/", b"GET ", b"POST ", b"HEAD ", b"PUT ", b"OPTIONS ", b"DELETE ", b"CONNECT ", b"PRI * HTTP"];
        let starts = |prefix: &[u8]| first.starts_with(prefix);
        if first.is_empty() {
            Self::Silent
        } else if WEB.iter().any(|word| starts(word)) {
            Self::Http
        } else if starts(b"SSH-") {
            Self::Ssh
        } else if starts(&[0x16, 0x03]) || starts(&[0x15, 0x03]) {
            Self::Tls
        } else if first.len() >= 24 && (starts(b"0123456789") || Self::is_iperf2_header(first)) {
            Self::Iperf2
        } else {
            Self::Other(clean(&String::from_utf8_lossy(first)))
        }
    }

    /// iperf 2.x opens with a 32-bit word of flags, then the number of threads and its port in 32 bits each, all big endian
    /// (`client_hdr_v1` of its include/payloads.h); a cookie is text.
    fn is_iperf2_header(first: &[u8]) -> bool {
        let is_some = |number: &[u8]| number.iter().any(|byte| *byte != 0);
        matches!(first, [_, _, _, _, 0, 0, _, _, 0, 0, _, _, ..] if is_some(&first[6..8]) && is_some(&first[10..12]))
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http => f.write_str("something that speaks HTTP"),
            Self::Ssh => f.write_str("something that speaks SSH"),
            Self::Tls => f.write_str("something that speaks TLS"),
            Self::Iperf2 => f.write_str("an iperf 2 that began no TCP test (`serve` takes those; or use iperf3 or fullpipe there)"),
            Self::Silent => f.write_str(
                "something that accepts and stays silent, as an iperf 2 server does (`fullpipe measure --iperf2` speaks to one; \
                 or run iperf3 or fullpipe there)",
            ),
            Self::Other(text) => write!(f, "something that says `{text}`"),
        }
    }
}

/// Text from a peer, fit for a terminal and a log: no control characters (nor those that turn the writing direction),
/// at most 400 characters.
pub(crate) fn clean(text: &str) -> String {
    const LONGEST: usize = 400;
    let safe = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns { '.' } else { c }
    };
    text.chars().take(LONGEST).map(safe).collect()
}

/// What iperf3 means by a code that it sends after SERVER_ERROR (the ones that servers really send).
fn meaning(code: i32) -> &'static str {
    match code {
        5 => "the duration is out of its range",
        6 => "too many streams",
        7 => "the block size is out of its range",
        8 => "the socket buffer size is out of its range",
        10 | 123 => "it can't set the MSS",
        12 => "the omitted time is out of its range",
        13 => "it does not offer what was asked",
        27 => "the total rate is over its limit",
        37 | 160 => "the test is longer than it allows",
        114 => "it can't read the parameters",
        116 | 117 => "the exchange of results failed",
        118 => "waiting on its sockets failed",
        122 => "it can't set TCP_NODELAY",
        124 | 141 => "it can't set the socket buffers",
        125 | 126 => "it can't set the type of service",
        132 => "it can't set the processor affinity",
        134 => "it can't set the congestion control",
        142 => "it wants a user name and password",
        144 => "it received no payload",
        200..=208 => "one of its data connections failed",
        _ => "an error of its own",
    }
}

/// The way out where an address can't be listened on.
fn bind_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "ports below 1024 need root or CAP_NET_BIND_SERVICE: give one from 1024 on",
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address",
        _ => "is another server running there? Stop it, or give another port",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_listened_on_comes_with_its_own_way_out() {
        let address = SocketAddr::from(([0, 0, 0, 0], 80));
        let message = |kind: io::ErrorKind| MeasureError::Bind { address, source: kind.into() }.to_string();
        assert!(message(io::ErrorKind::PermissionDenied).contains("below 1024"));
        assert!(message(io::ErrorKind::AddrNotAvailable).contains("no interface"));
        assert!(message(io::ErrorKind::AddrInUse).contains("another server"));
    }

    #[test]
    fn strangers_are_named() {
        assert_eq!(Foreign::named_by(b"GET / HTTP/1.1\r\n"), Foreign::Http);
        assert_eq!(Foreign::named_by(b"SSH-2.0-OpenSSH_9.2"), Foreign::Ssh);
        assert_eq!(Foreign::named_by(&[0x16, 3, 1, 2, 0]), Foreign::Tls);
        assert_eq!(Foreign::named_by(b""), Foreign::Silent);
        assert_eq!(Foreign::named_by(b"220 mail\x1b[2J"), Foreign::Other("220 mail.[2J".to_owned()));
        let iperf2 = [0u8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x13, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xfc, 0x18];
        assert_eq!(Foreign::named_by(&iperf2), Foreign::Iperf2);
        // `-R` and `--full-duplex` of 2.1.8 set more flags.
        let reverse = [b'D', 0, 0, b'x', 0, 0, 0, 1, 0, 0, 0x14, 0xb5, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xfc, 0x18];
        assert_eq!(Foreign::named_by(&reverse), Foreign::Iperf2);
        let closed = MeasureError::Closed { peer: "192.0.2.1:5001".parse().unwrap(), operation: HANDSHAKE };
        assert!(closed.to_string().contains("iperf 2"), "{closed}");
        // Its users learn what to run instead, whichever end it is.
        for older in [Foreign::Iperf2, Foreign::Silent] {
            let words = older.to_string();
            assert!(words.contains("iperf3") && words.contains("fullpipe"), "{words}");
        }
    }

    #[test]
    fn text_of_the_peer_can_not_drive_a_terminal() {
        assert_eq!(clean("a\x1b]0;x\x07\u{202e}b\n"), "a.]0;x..b.");
        assert_eq!(clean(&"x".repeat(500)).len(), 400);
    }

    #[test]
    fn an_error_names_operation_object_and_way_out() {
        let peer = "192.0.2.1:5201".parse().unwrap();
        let error = MeasureError::Refused { peer };
        assert_eq!(
            error.to_string(),
            "connecting to 192.0.2.1:5201: refused; start `fullpipe serve` there, or check the port"
        );
        assert_eq!(error.fault(), Fault::Peer);
        let peer = "192.0.2.1:5001".parse().unwrap();
        assert_eq!(
            MeasureError::NoIperf2 { peer }.to_string(),
            "connecting to 192.0.2.1:5001: refused; start `iperf -s` there (iperf 2), or `fullpipe serve -p 5001`, or check the port"
        );
    }
}
