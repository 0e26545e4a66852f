//! The path MTU by probing: UDP datagrams of each size that must not be fragmented, echoed by the far end.
//!
//! With `IP_PMTUDISC_PROBE` the kernel sets DF and ignores what it believes of the path, so that every size up to the
//! interface's is really sent (RFC 8899 without its timers). A size that is refused, here or by an ICMP "too big", is
//! distinguished from one that vanishes without a word while smaller ones pass: that is a black hole (RFC 2923, section 2.1).
//!
//! A datagram: the token of 8 bytes, the kind, a number of 32 bits, a size of 16 bits, padding.

mod responder;
mod search;

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use serde::Serialize;

pub use self::responder::Responder;
use self::search::Outcome;
use crate::{
    TOKEN_LEN, is_pause,
    sys::{fragment, is_too_big},
};

/// The path MTU of both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MtuReport {
    /// From the prober to the responder.
    pub up: PathMtu,
    /// From the responder to the prober.
    pub down: PathMtu,
}

/// The path MTU of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathMtu {
    /// The largest IP packet that arrived, in bytes; absent where not even small ones did (UDP may be blocked).
    pub mtu: Option<u32>,
    /// Larger packets than that vanished without a word.
    pub black_hole: bool,
    /// The MTU of the interface that sent, or what the kernel had learned of the path before, in bytes.
    pub interface_mtu: Option<u32>,
}

const HEADER_LEN: usize = 15;

/// The kinds of datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// "Did this arrive?"
    Up = 1,
    /// "It did."
    Arrived = 2,
    /// "Send me one of that size."
    Ask = 3,
    /// "Here it is."
    Down = 4,
    /// "That was too big, here or on the way; the size is what fits."
    TooBig = 5,
}

/// The beginning of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    token: [u8; TOKEN_LEN],
    kind: Kind,
    number: u32,
    /// Of an IP packet, in bytes.
    size: u16,
}

impl Header {
    /// A datagram that makes an IP packet of `packet` bytes, or as small as can be.
    fn datagram(&self, packet: u32, overhead: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend_from_slice(&self.token);
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.size.to_be_bytes());
        let payload = packet.saturating_sub(overhead) as usize;
        bytes.resize(payload.max(HEADER_LEN), 0);
        bytes
    }

    fn parse(datagram: &[u8]) -> Option<Self> {
        let (token, rest) = datagram.split_first_chunk::<TOKEN_LEN>()?;
        let (&kind, rest) = rest.split_first()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (size, _) = rest.split_first_chunk::<2>()?;
        let kinds = [Kind::Up, Kind::Arrived, Kind::Ask, Kind::Down, Kind::TooBig];
        Some(Self {
            token: *token,
            kind: kinds.into_iter().find(|known| *known as u8 == kind)?,
            number: u32::from_be_bytes(*number),
            size: u16::from_be_bytes(*size),
        })
    }
}

/// What the prober has to know of the responder at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarEnd {
    /// Where it answers.
    pub address: SocketAddr,
    /// What every datagram must begin with: [`Responder::token`].
    pub token: u64,
    /// [`Responder::mtu`].
    pub mtu: Option<u32>,
}

/// Finds the path MTU of both directions, from the address `local`; `rtt` is the round-trip time of the path. It takes some
/// round trips, and up to forty where large datagrams vanish without a word.
///
/// # Errors
/// Those of the socket. A responder that doesn't answer is none: no MTU is found then.
pub fn probe(local: IpAddr, far: FarEnd, rtt: Duration) -> io::Result<MtuReport> {
    let mut prober = Prober::new(SocketAddr::new(local, 0), far, rtt)?;
    let own_mtu = prober.socket.path_mtu();
    let up = search::search(own_mtu, prober.least(), |size| prober.up(size))?;
    let down = search::search(far.mtu, prober.least(), |size| prober.down(size))?;
    Ok(MtuReport { up, down })
}

/// A UDP socket whose datagrams are never fragmented.
#[derive(Debug)]
struct Unfragmented {
    socket: UdpSocket,
    /// IP and UDP headers.
    overhead: u32,
}

impl Unfragmented {
    fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        let is_v4 = match local.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
        };
        fragment::never_fragment(&socket, local.ip())?;
        Ok(Self { socket, overhead: if is_v4 { 28 } else { 48 } })
    }

    /// Sends a datagram that makes an IP packet of `packet` bytes. `false` where that is too big.
    ///
    /// An ICMP message about an earlier datagram is reported by whatever call comes next; what the kernel has learned
    /// tells whether it can be about this size.
    fn send(&self, datagram: &[u8], packet: u32) -> io::Result<bool> {
        const PENDING: usize = 4;
        for _ in 0..PENDING {
            match self.socket.send(datagram) {
                Ok(_) => return Ok(true),
                Err(error) if is_too_big(&error) && self.is_refused(packet) => return Ok(false),
                Err(error) if is_too_big(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        // As good as lost: the next copy tries again.
        Ok(true)
    }

    /// Whether a report that something was too big can be about a packet of that size.
    fn is_refused(&self, packet: u32) -> bool {
        self.path_mtu().is_none_or(|mtu| mtu < packet)
    }

    /// What the kernel believes, of a connected socket: the interface's MTU, or what an ICMP "too big" said.
    fn path_mtu(&self) -> Option<u32> {
        fragment::path_mtu(&self.socket, self.overhead == 28).filter(|&mtu| mtu >= 68)
    }
}

/// The side that asks.
struct Prober {
    socket: Unfragmented,
    token: [u8; TOKEN_LEN],
    number: u32,
    wait: Duration,
}

impl Prober {
    fn new(local: SocketAddr, far: FarEnd, rtt: Duration) -> io::Result<Self> {
        let socket = Unfragmented::bind(local)?;
        socket.socket.connect(far.address)?;
        // Twice the round trip, since the first large packets may find a queue, and time for both programs to wake up.
        Ok(Self { socket, token: far.token.to_be_bytes(), number: 0, wait: rtt * 2 + Duration::from_millis(100) })
    }

    /// What every path carries (RFC 791: 576 bytes must be accepted; RFC 8200: 1280 must pass).
    fn least(&self) -> u32 {
        if self.socket.overhead == 28 { 576 } else { 1280 }
    }

    fn up(&mut self, size: u32) -> io::Result<Outcome> {
        self.attempt(Kind::Up, size, size)
    }

    fn down(&mut self, size: u32) -> io::Result<Outcome> {
        self.attempt(Kind::Ask, size, 0)
    }

    /// Three copies, spread over the wait, so that one lost by chance is not taken for a limit.
    fn attempt(&mut self, kind: Kind, size: u32, packet: u32) -> io::Result<Outcome> {
        const COPIES: u32 = 3;
        self.number += 1;
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        let header = Header { token: self.token, kind, number: self.number, size };
        let datagram = header.datagram(packet, self.socket.overhead);
        for copy in 0..COPIES {
            if !self.socket.send(&datagram, packet)? {
                return Ok(Outcome::TooBig(self.socket.path_mtu()));
            }
            let part = if copy + 1 == COPIES { self.wait } else { self.wait / COPIES };
            if let Some(outcome) = self.answer(packet, Instant::now() + part)? {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Lost)
    }

    fn answer(&self, packet: u32, until: Instant) -> io::Result<Option<Outcome>> {
        let mut buffer = vec![0u8; 65_536];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.socket.set_read_timeout(Some(left))?;
            let count = match self.socket.socket.recv(&mut buffer) {
                Ok(count) => count,
                Err(error) if is_too_big(&error) && self.socket.is_refused(packet) => {
                    return Ok(Some(Outcome::TooBig(self.socket.path_mtu())));
                }
                Err(error) if is_too_big(&error) || is_pause(&error) => continue,
                // The far end's socket may be gone for a moment or for good; the wait tells.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            let header = buffer.get(..count).and_then(Header::parse);
            match header.filter(|header| header.token == self.token && header.number == self.number) {
                Some(Header { kind: Kind::Arrived | Kind::Down, .. }) => return Ok(Some(Outcome::Passed)),
                Some(Header { kind: Kind::TooBig, size, .. }) => {
                    return Ok(Some(Outcome::TooBig(Some(u32::from(size)).filter(|&size| size >= 68))));
                }
                _ => {}
            }
        }
    }
}

/// What becomes of a peer's datagram, for the fuzzer.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(datagram: &[u8]) {
    let Some(header) = Header::parse(datagram) else { return };
    assert_eq!(Header::parse(&header.datagram(0, 28)), Some(header));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_survives_and_a_datagram_has_the_size_of_its_packet() {
        let header = Header { token: *b"12345678", kind: Kind::Ask, number: 7, size: 1500 };
        assert_eq!(Header::parse(&header.datagram(0, 28)), Some(header));
        assert_eq!(header.datagram(1500, 28).len(), 1472);
    }

    proptest! {
        #[test]
        fn no_datagram_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            read_any(&bytes);
            prop_assert!(bytes.len() >= HEADER_LEN || Header::parse(&bytes).is_none());
        }
    }
}
