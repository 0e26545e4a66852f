//! Where datagram clients come in: one UDP port beside the TCP one.
//!
//! A greeting carries no cookie, so that only its address tells whose it is. Tests that wait for greetings therefore take
//! turns: while one holds the door, every greeting from its client's address is its own. Each gets a socket of its own,
//! bound to the same port and connected to the client, which the kernel prefers from then on.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    thread,
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};

use crate::{error::MeasureError, patience::Patience};

/// What a client greets with, and the answer (iperf3 3.12 and later).
pub(crate) const HELLO: [u8; 4] = *b"9876";
const REPLY: [u8; 4] = *b"6789";

/// The same before 3.12: numbers in the client's own byte order.
const OLD_HELLO: u32 = 123_456_789;
const OLD_REPLY: u32 = 987_654_321;

/// How long one look at the door takes.
const LOOK: Duration = Duration::from_millis(10);

/// The UDP port.
#[derive(Debug)]
pub(crate) struct Door {
    socket: Mutex<UdpSocket>,
}

/// The door while one test holds it.
#[derive(Debug)]
pub(crate) struct Doorkeeper<'a> {
    socket: MutexGuard<'a, UdpSocket>,
    /// The address that the client knows, and the client's.
    local: SocketAddr,
    client: IpAddr,
}

impl Door {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { socket: Mutex::new(bind(address)?) })
    }

    /// Waits for the turn of a test whose control connection has these two ends.
    pub(crate) fn hold(
        &self,
        (local, peer): (SocketAddr, SocketAddr),
        patience: Patience<'_>,
    ) -> Result<Doorkeeper<'_>, MeasureError> {
        loop {
            patience.check_cancelled()?;
            let socket = match self.socket.try_lock() {
                Ok(socket) => socket,
                // Nothing is left half done under this lock.
                Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
                Err(TryLockError::WouldBlock) if patience.is_over() => {
                    let operation = "waiting for other tests with datagrams to begin";
                    return Err(MeasureError::Timeout { peer, operation, after: patience.total() });
                }
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(LOOK);
                    continue;
                }
            };
            let failed = |source| MeasureError::Io { peer, operation: "waiting for datagrams", source };
            socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
            return Ok(Doorkeeper { socket, local, client: peer.ip() });
        }
    }
}

impl Doorkeeper<'_> {
    /// A socket for the next greeting of this client, if there is one; waits a moment.
    pub(crate) fn answer(&self) -> io::Result<Option<UdpSocket>> {
        let mut datagram = [0u8; 64];
        let (len, from) = match self.socket.recv_from(&mut datagram) {
            Ok(received) => received,
            Err(error) if crate::control::is_pause(&error) => return Ok(None),
            // What ICMP says of an earlier client.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(reply) = datagram.get(..len).and_then(reply).filter(|_| from.ip() == self.client) else {
            return Ok(None);
        };
        let socket = bind(self.local)?;
        socket.connect(from)?;
        socket.send(&reply)?;
        Ok(Some(socket))
    }
}

/// The answer to a greeting, if it is one.
fn reply(datagram: &[u8]) -> Option<[u8; 4]> {
    let hello: [u8; 4] = datagram.try_into().ok()?;
    match hello {
        HELLO => Some(REPLY),
        old if u32::from_be_bytes(old) == OLD_HELLO => Some(OLD_REPLY.to_be_bytes()),
        old if u32::from_le_bytes(old) == OLD_HELLO => Some(OLD_REPLY.to_le_bytes()),
        _ => None,
    }
}

/// Several sockets share the port: the one that is connected to a client gets that client's datagrams.
fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_of_all_versions_are_answered_in_kind() {
        assert_eq!(reply(b"9876"), Some(*b"6789"));
        assert_eq!(reply(&123_456_789u32.to_le_bytes()), Some(987_654_321u32.to_le_bytes()));
        assert_eq!(reply(&123_456_789u32.to_be_bytes()), Some(987_654_321u32.to_be_bytes()));
        assert_eq!(reply(b"98765"), None);
        assert_eq!(reply(b"GET "), None);
    }
}
