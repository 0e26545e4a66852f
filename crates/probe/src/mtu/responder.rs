//! The side that answers: the probes of one prober, for at most a minute, to its address only.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{Header, Kind, Unfragmented};
use crate::{TOKEN_LEN, sys::is_too_big};

/// No search takes longer, and nobody keeps the socket beyond it.
const LONGEST: Duration = Duration::from_secs(60);

/// A search needs at most 40 sizes in each direction, three copies each.
const MOST_DATAGRAMS: u32 = 400;

/// A socket that answers probes, with its thread. Dropping it ends both.
#[derive(Debug)]
pub struct Responder {
    port: u16,
    token: [u8; TOKEN_LEN],
    mtu: Option<u32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Begins to answer `client` from the address `local`, at a port of the system's choice.
    ///
    /// # Errors
    /// The system has no socket, no random bytes or no thread.
    pub fn start(local: IpAddr, client: SocketAddr) -> io::Result<Self> {
        // A socket that listens on [::] sees IPv4 clients as ::ffff:192.0.2.1: the packets are IPv4's all the same.
        let (local, client) = (local.to_canonical(), SocketAddr::new(client.ip().to_canonical(), client.port()));
        let socket = Unfragmented::bind(SocketAddr::new(local, 0))?;
        let port = socket.socket.local_addr()?.port();
        let mut token = [0u8; TOKEN_LEN];
        getrandom::fill(&mut token).map_err(io::Error::other)?;
        // Asked by a socket of its own, as this one is not connected yet.
        let route = Unfragmented::bind(SocketAddr::new(local, 0))?;
        route.socket.connect(client)?;
        let stop = Arc::new(AtomicBool::new(false));
        let answering = Answering { socket, token, stop: Arc::clone(&stop), client: client.ip() };
        let thread = thread::Builder::new().name("probe-mtu".to_owned()).spawn(move || {
            // What fails here shows at the client as probes that nobody answers.
            drop(answering.run());
        })?;
        Ok(Self { port, token, mtu: route.path_mtu(), stop, thread: Some(thread) })
    }

    /// Where it answers.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What every datagram must begin with, as a number.
    #[must_use]
    pub fn token(&self) -> u64 {
        u64::from_be_bytes(self.token)
    }

    /// The MTU of the interface towards the client.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.mtu
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to return.
            drop(thread.join());
        }
    }
}

struct Answering {
    socket: Unfragmented,
    token: [u8; TOKEN_LEN],
    stop: Arc<AtomicBool>,
    client: IpAddr,
}

impl Answering {
    fn run(&self) -> io::Result<()> {
        let socket = &self.socket.socket;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        let until = Instant::now() + LONGEST;
        let mut buffer = vec![0u8; 65_536];
        let mut connected = false;
        let mut last_down = None;
        let mut count = 0;
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < until && count < MOST_DATAGRAMS {
            let (len, from) = match socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if is_too_big(&error) => {
                    // About an earlier, larger one where the kernel knows that the last one fits.
                    if let Some(last) = last_down.filter(|last: &Header| self.socket.is_refused(last.size.into())) {
                        self.report_too_big(last.number)?;
                    }
                    continue;
                }
                Err(_) => continue,
            };
            let header = buffer.get(..len).and_then(Header::parse);
            let Some(header) = header.filter(|header| header.token == self.token && from.ip() == self.client) else {
                continue;
            };
            if !connected {
                socket.connect(from)?;
                connected = true;
            }
            count += 1;
            match header.kind {
                Kind::Up => self.send(Header { kind: Kind::Arrived, ..header }, 0)?,
                Kind::Ask => {
                    last_down = Some(header);
                    self.send(Header { kind: Kind::Down, ..header }, u32::from(header.size))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn send(&self, header: Header, packet: u32) -> io::Result<()> {
        match self.socket.send(&header.datagram(packet, self.socket.overhead), packet) {
            Ok(false) => self.report_too_big(header.number),
            // A full queue, for example: the client asks again.
            Ok(true) | Err(_) => Ok(()),
        }
    }

    fn report_too_big(&self, number: u32) -> io::Result<()> {
        let size = self.socket.path_mtu().and_then(|mtu| u16::try_from(mtu).ok()).unwrap_or(0);
        let header = Header { token: self.token, kind: Kind::TooBig, number, size };
        self.socket.send(&header.datagram(0, self.socket.overhead), 0).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    #[test]
    fn a_client_that_is_seen_through_an_ipv6_socket_gets_answers_over_ipv4() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let own = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        // A server on [::] has its own address mapped, and its peer's as it was asked for.
        for client in [own, mapped] {
            let client = SocketAddr::new(client, socket.local_addr().unwrap().port());
            let responder = Responder::start(mapped, client).unwrap();
            let header = Header { token: responder.token, kind: Kind::Up, number: 1, size: 600 };
            socket.send_to(&header.datagram(600, 28), (own, responder.port())).unwrap();
            let mut buffer = [0; 2048];
            let len = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no answer to {client}: {error}"));
            let answer = Header::parse(&buffer[..len]).unwrap();
            assert_eq!((answer.kind, answer.number), (Kind::Arrived, 1));
        }
    }
}
