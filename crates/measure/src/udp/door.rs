//! Where datagram clients come in: one UDP port beside the TCP one.
//!
//! A greeting carries no cookie, so that only its address tells whose it is. Tests of one client that wait for greetings
//! therefore take turns; those of different clients wait side by side, and nobody's silence keeps another out. Each gets a socket of its own,
//! bound to the same port and connected to the client, which the kernel prefers from then on.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Mutex, MutexGuard, PoisonError},
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

/// Greetings that are kept for a test until it looks.
const MOST_GREETINGS: usize = 256;

/// The UDP port.
#[derive(Debug)]
pub(crate) struct Door {
    socket: UdpSocket,
    /// The clients for whose greetings a test waits, and those that came while another test looked.
    waiting: Mutex<HashMap<IpAddr, VecDeque<Greeting>>>,
}

/// Where a greeting came from, and its answer.
type Greeting = (SocketAddr, [u8; 4]);

/// The door for one client: a test holds it until all its greetings have come.
#[derive(Debug)]
pub(crate) struct Doorkeeper<'a> {
    door: &'a Door,
    /// The address that the client knows, and the client's.
    local: SocketAddr,
    client: IpAddr,
}

impl Door {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = bind(address)?;
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Self { socket, waiting: Mutex::default() })
    }

    /// Waits for the turn of a test whose control connection has these two ends, among those of the same client.
    pub(crate) fn hold(
        &self,
        (local, peer): (SocketAddr, SocketAddr),
        patience: Patience<'_>,
    ) -> Result<Doorkeeper<'_>, MeasureError> {
        loop {
            patience.check_cancelled()?;
            if let Entry::Vacant(place) = self.waiting().entry(peer.ip()) {
                place.insert(VecDeque::new());
                return Ok(Doorkeeper { door: self, local, client: peer.ip() });
            }
            if patience.is_over() {
                let operation = "waiting for other tests with datagrams to begin";
                return Err(MeasureError::Timeout { peer, operation, after: patience.total() });
            }
            thread::sleep(LOOK);
        }
    }

    /// Keeps a datagram for the test that waits for it, if it is a greeting and there is one.
    fn keep(&self, datagram: &[u8], from: SocketAddr) {
        let Some(reply) = reply(datagram) else { return };
        if let Some(greetings) = self.waiting().get_mut(&from.ip()).filter(|all| all.len() < MOST_GREETINGS) {
            greetings.push_back((from, reply));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<IpAddr, VecDeque<Greeting>>> {
        // Nothing is left half done under this lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Doorkeeper<'_> {
    /// A socket for the next greeting of this client, if there is one; waits a moment.
    pub(crate) fn answer(&self) -> io::Result<Option<UdpSocket>> {
        let is_empty = self.door.waiting().get(&self.client).is_none_or(VecDeque::is_empty);
        if is_empty {
            let mut datagram = [0u8; 64];
            match self.door.socket.recv_from(&mut datagram) {
                Ok((len, from)) => self.door.keep(datagram.get(..len).unwrap_or_default(), from),
                Err(error) if fullpipe_probe::is_pause(&error) => {}
                // What ICMP says of an earlier client.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        let Some((from, reply)) = self.next() else { return Ok(None) };
        let socket = bind(self.local)?;
        socket.connect(from)?;
        self.hand_over(&socket, from)?;
        socket.send(&reply)?;
        Ok(Some(socket))
    }

    fn next(&self) -> Option<Greeting> {
        self.door.waiting().get_mut(&self.client)?.pop_front()
    }

    /// Between its binding and its connection the new socket gets whatever comes to the port: greetings of other clients
    /// are theirs.
    fn hand_over(&self, socket: &UdpSocket, from: SocketAddr) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let mut datagram = [0u8; 64];
        while let Ok((_, sender)) = socket.peek_from(&mut datagram) {
            if sender == from {
                break;
            }
            let Ok((len, sender)) = socket.recv_from(&mut datagram) else { break };
            self.door.keep(datagram.get(..len).unwrap_or_default(), sender);
        }
        socket.set_nonblocking(false)
    }
}

impl Drop for Doorkeeper<'_> {
    fn drop(&mut self) {
        self.door.waiting().remove(&self.client);
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
    fn a_silent_client_keeps_no_other_client_from_the_door() {
        let door = Door::open("127.0.0.1:0".parse().expect("an address")).expect("opened");
        let local = door.socket.local_addr().expect("an address");
        let patience = || Patience::new(Duration::from_secs(20));
        let silent = door.hold((local, "127.0.0.2:9".parse().expect("an address")), patience()).expect("held");
        let other = door.hold((local, "127.0.0.3:9".parse().expect("an address")), patience()).expect("held beside it");
        let client = UdpSocket::bind("127.0.0.3:0").expect("bound");
        client.send_to(&HELLO, local).expect("sent");
        // Whoever looks first, the greeting is the other's.
        assert!(silent.answer().expect("looked").is_none());
        let answered = (0..1000).find_map(|_| other.answer().expect("looked"));
        assert!(answered.is_some());
        let mut reply = [0u8; 4];
        client.recv(&mut reply).expect("answered");
        assert_eq!(reply, REPLY);
    }

    #[test]
    fn greetings_of_all_versions_are_answered_in_kind() {
        assert_eq!(reply(b"9876"), Some(*b"6789"));
        assert_eq!(reply(&123_456_789u32.to_le_bytes()), Some(987_654_321u32.to_le_bytes()));
        assert_eq!(reply(&123_456_789u32.to_be_bytes()), Some(987_654_321u32.to_be_bytes()));
        assert_eq!(reply(b"98765"), None);
        assert_eq!(reply(b"GET "), None);
    }
}
