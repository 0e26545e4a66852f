//! Whom to measure against: `HOST[:PORT]`, resolved and connected within a deadline.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs},
    str::FromStr,
    sync::mpsc,
    thread,
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};

use crate::{
    error::MeasureError,
    patience::Patience,
    sys::{sockopt, wait},
};

/// iperf3's port, which serves both worlds.
pub const DEFAULT_PORT: u16 = 5201;

/// A host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port; [`DEFAULT_PORT`] where none was given.
    pub port: u16,
}

/// Which addresses of a name to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All, in the resolver's order.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    fn takes(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

impl FromStr for Target {
    type Err = MeasureError;

    /// `HOST`, `HOST:PORT`, `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]:5201`.
    fn from_str(text: &str) -> Result<Self, MeasureError> {
        let wrong = || MeasureError::BadTarget { text: crate::error::clean(text) };
        // An address with a zone would lose it here; and port 0 is refused below.
        if let Ok(address) = text.parse::<SocketAddr>()
            && address.port() != 0
            && !text.contains('%')
        {
            return Ok(Self { host: address.ip().to_string(), port: address.port() });
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self { host: address.to_string(), port: DEFAULT_PORT });
        }
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
        // A link-local address with its zone (`fe80::1%eth0`) goes to the resolver, which knows interface names.
        let is_zoned = |host: &str| {
            host.split_once('%').is_some_and(|(ip, zone)| ip.parse::<IpAddr>().is_ok() && zone.chars().all(is_name))
        };
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !is_zoned(bare) => (host, port.parse().map_err(|_| wrong())?),
            _ => (bare, DEFAULT_PORT),
        };
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.len() > 253 || port == 0 || !(is_zoned(host) || host.chars().all(is_name)) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Target {
    /// All addresses of the target, in the resolver's order. The resolver has no deadline of its own, so that it runs
    /// on a thread that may outlive the wait.
    pub(crate) fn resolve(&self, family: Family, patience: Patience<'_>) -> Result<Vec<SocketAddr>, MeasureError> {
        let (host, port) = (self.host.clone(), self.port);
        let (send, receive) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            // Nobody waits any more where the deadline has passed.
            drop(send.send(found));
        });
        let unknown = |source| MeasureError::UnknownName { host: self.host.clone(), source };
        while !patience.is_over() {
            patience.check_cancelled()?;
            match receive.recv_timeout(patience.slice()) {
                Ok(Ok(mut addresses)) => {
                    addresses.retain(|address| family.takes(address));
                    let none = addresses.is_empty();
                    return if none { Err(unknown(io::ErrorKind::NotFound.into())) } else { Ok(addresses) };
                }
                Ok(Err(source)) => return Err(unknown(source)),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(unknown(io::ErrorKind::Other.into())),
            }
        }
        Err(MeasureError::LookupTimeout { host: self.host.clone(), after: patience.total() })
    }
}

/// The largest segment of a control connection and of a conversation. Small enough for every path that carries IPv6
/// (RFC 8200, section 5: 1,280 bytes), so that a black hole for large packets does not swallow the words that tell of it.
const CONTROL_MSS: u16 = 1_200;

/// Connects to the first address that answers, for control.
pub(crate) fn connect_any(addresses: &[SocketAddr], patience: Patience<'_>) -> Result<TcpStream, MeasureError> {
    let mut failure = None;
    for (index, &peer) in addresses.iter().enumerate() {
        // What is left is shared by the addresses that are left.
        let rest = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        match connect_control(peer, patience.capped(patience.left() / rest)) {
            Ok(stream) => return Ok(stream),
            Err(error @ MeasureError::Cancelled) => return Err(error),
            // A refusal says more than the time-out of another address of the same name.
            Err(error) => {
                failure = Some(failure.filter(|f| matches!(f, MeasureError::Refused { .. })).unwrap_or(error))
            }
        }
    }
    Err(failure.unwrap_or(MeasureError::Cancelled))
}

/// Connects for control: with small segments in both directions, since the SYN announces them.
pub(crate) fn connect_control(peer: SocketAddr, patience: Patience<'_>) -> Result<TcpStream, MeasureError> {
    connect(peer, patience, |socket| {
        let failed = |source| MeasureError::Option { option: "TCP_MAXSEG", value: CONTROL_MSS.to_string(), source };
        sockopt::set_max_segment(socket, CONTROL_MSS).map_err(failed)
    })
}

/// Connects within the deadline; `prepare` sets options that must be there before the SYN.
pub(crate) fn connect(
    peer: SocketAddr,
    patience: Patience<'_>,
    prepare: impl FnOnce(&Socket) -> Result<(), MeasureError>,
) -> Result<TcpStream, MeasureError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::ConnectionRefused => MeasureError::Refused { peer },
        // A real server closes its listener between two tests, and with it what waited there.
        io::ErrorKind::ConnectionReset => MeasureError::Closed { peer, operation: "connecting" },
        io::ErrorKind::TimedOut => MeasureError::Timeout { peer, operation: "connecting", after: patience.total() },
        io::ErrorKind::PermissionDenied | io::ErrorKind::OutOfMemory => {
            MeasureError::Io { peer, operation: "connecting", source }
        }
        _ => MeasureError::Unreachable { peer, source },
    };
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
    prepare(&socket)?;
    socket.set_nonblocking(true).map_err(failed)?;
    match socket.connect(&peer.into()) {
        Err(error) if wait::is_connecting(&error) => wait_connected(&socket, patience, failed)?,
        done => done.map_err(failed)?,
    }
    socket.set_nonblocking(false).map_err(failed)?;
    guard_against_vanished_peer(&socket).map_err(failed)?;
    Ok(socket.into())
}

fn wait_connected(
    socket: &Socket,
    patience: Patience<'_>,
    failed: impl Fn(io::Error) -> MeasureError,
) -> Result<(), MeasureError> {
    while !patience.is_over() {
        patience.check_cancelled()?;
        let ready = wait::writable(socket, patience.slice()).map_err(&failed)?;
        // Windows before version 2004 does not end the wait of a connect that failed, but knows the error.
        match socket.take_error().map_err(&failed)? {
            Some(error) => return Err(failed(error)),
            None if ready => return Ok(()),
            None => {}
        }
    }
    Err(failed(io::ErrorKind::TimedOut.into()))
}

/// A peer that vanished without a word is noticed by keepalive probes on an idle connection and by the user timeout
/// (RFC 5482) on one with data outstanding, both after about half a minute; Windows takes a minute.
pub(crate) fn guard_against_vanished_peer(socket: &Socket) -> io::Result<()> {
    let probes = socket2::TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
    // Windows sends ten; only its newer versions take another number.
    #[cfg(not(windows))]
    let probes = probes.with_retries(4);
    socket.set_tcp_keepalive(&probes)?;
    sockopt::set_user_timeout(socket, 30_000)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_come_in_the_usual_forms() {
        for (text, host, port) in [
            ("far.example", "far.example", 5201),
            ("far:80", "far", 80),
            ("192.0.2.1", "192.0.2.1", 5201),
            ("192.0.2.1:99", "192.0.2.1", 99),
            ("2001:db8::1", "2001:db8::1", 5201),
            ("[2001:db8::1]:99", "2001:db8::1", 99),
            ("[::1]", "::1", 5201),
            ("fe80::1%eth0", "fe80::1%eth0", 5201),
            ("[fe80::1%eth0]:99", "fe80::1%eth0", 99),
            ("[fe80::1%2]:99", "fe80::1%2", 99),
        ] {
            let target = text.parse::<Target>().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(target, Target { host: host.to_owned(), port }, "{text}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in
            ["", ":5201", "far:", "far:0", "192.0.2.1:0", "[::1]:0", "far:99999", "a b", "far:5201:x", "http://far"]
        {
            assert!(matches!(text.parse::<Target>(), Err(MeasureError::BadTarget { .. })), "{text}");
        }
    }
}
