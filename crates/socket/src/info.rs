//! What a kernel says of one of its connections, in one shape for all systems.
//!
//! Each system's bytes are read by a pure function in a file of its own, compiled everywhere, so that its tests run
//! everywhere. What a system does not tell is absent, never zero.

pub mod freebsd;
pub mod linux;
pub mod macos;
pub mod windows;

use std::{io, net::SocketAddr, sync::OnceLock};

use fullpipe_units::{Bytes, Micros, Rate};

use crate::{Handle, sys};

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Whether both ends use timestamps.
    pub timestamps: Option<bool>,
    /// Whether both ends use selective acknowledgements.
    pub sack: Option<bool>,
    /// Whether both SYNs carried the window-scale option (RFC 7323, section 2.2).
    pub scaling: Option<bool>,
    /// The shift that this end announced; absent without scaling.
    pub own_shift: Option<u8>,
    /// The shift that the peer announced; absent without scaling.
    pub peer_shift: Option<u8>,
    /// The largest segment that this end sends.
    pub mss: Option<u32>,
    /// The MSS that this end announced, as the kernel keeps it.
    pub advertised_mss: Option<u32>,
    /// The path MTU that the kernel believes in.
    pub path_mtu: Option<u32>,
    /// The smoothed round-trip time; absent before the first measurement.
    pub rtt: Option<Micros>,
    /// The round-trip time's mean deviation (RFC 6298: RTTVAR).
    pub rtt_var: Option<Micros>,
    /// The smallest round-trip time.
    pub min_rtt: Option<Micros>,
    /// The congestion window.
    pub cwnd: Option<Bytes>,
    /// The slow-start threshold; absent while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// Sent and not acknowledged.
    pub in_flight: Option<Bytes>,
    /// In the send buffer and not yet sent.
    pub not_sent: Option<Bytes>,
    /// The window that the peer offers.
    pub send_window: Option<Bytes>,
    /// The window that this end offers.
    pub receive_window: Option<Bytes>,
    /// What automatic sizing of the receive buffer reckons with.
    pub receive_space: Option<Bytes>,
    /// The receive buffer, where it comes with the rest.
    pub receive_buffer: Option<Bytes>,
    /// The bytes in the send buffer, sent or not, where they come with the rest.
    pub send_queued: Option<Bytes>,
    /// Acknowledged since the connection began; on Linux with the SYN that this end sent.
    pub bytes_acked: Option<u64>,
    /// Received in order, read by the application or not.
    pub bytes_received: Option<u64>,
    /// Sent, with retransmissions.
    pub bytes_sent: Option<u64>,
    /// Retransmitted.
    pub bytes_retransmitted: Option<u64>,
    /// Segments that came, acknowledgements among them.
    pub segments_received: Option<u32>,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Segments that are held for lost now.
    pub lost: Option<u32>,
    /// Segments that arrived out of order.
    pub out_of_order: Option<u32>,
    /// How often reordering was seen.
    pub reordering_seen: Option<u32>,
    /// Duplicate arrivals that the peer reported (RFC 2883).
    pub dsacks: Option<u32>,
    /// Segments whose acknowledgement reported a congestion mark.
    pub delivered_ce: Option<u32>,
    /// The rate at which data was delivered last.
    pub delivery_rate: Option<Rate>,
    /// Whether the application had nothing to send while that was taken.
    pub delivery_app_limited: Option<bool>,
    /// The rate that the sender paces itself to.
    pub pacing_rate: Option<Rate>,
    /// The most that the application lets it pace to (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<Rate>,
    /// The state of congestion control, by Linux's number.
    pub congestion_state: Option<u8>,
    /// How long there was something to send or to be acknowledged.
    pub busy: Option<Micros>,
    /// How long the peer's window held the sender.
    pub rwnd_limited: Option<Micros>,
    /// How long the send buffer held the sender.
    pub sndbuf_limited: Option<Micros>,
}

impl Info {
    /// Asks the kernel about a connection.
    ///
    /// ```
    /// # use std::net::{TcpListener, TcpStream};
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?)?;
    /// let info = fullpipe_socket::Info::read(&stream)?;
    /// println!("round trip {:?}, {:?} in flight", info.rtt, info.in_flight);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The kernel's: `InvalidInput` or `Unsupported` from one that can't tell (Windows before 10 1703 and Server 2019), where no
    /// other place is named ([`ask_elsewhere`]).
    pub fn read(socket: &impl Handle) -> io::Result<Self> {
        // More than any kernel of today fills.
        let mut raw = [0u8; 512];
        let len = match sys::tcp_info(socket, &mut raw) {
            Ok(len) => len,
            Err(error) => {
                let Some(answer) = elsewhere(socket) else { return Err(error) };
                return answer.map_err(|other| io::Error::new(error.kind(), format!("{error}; {other}")));
            }
        };
        let raw = raw.get(..len).unwrap_or_default();
        #[cfg(target_os = "linux")]
        return Ok(linux::read(raw));
        #[cfg(windows)]
        return Ok(windows::read(raw));
        #[cfg(target_os = "freebsd")]
        return Ok(freebsd::read(raw));
        #[cfg(target_vendor = "apple")]
        return Ok(macos::read(raw));
        #[cfg(not(any(target_os = "linux", windows, target_os = "freebsd", target_vendor = "apple")))]
        return Err(io::ErrorKind::Unsupported.into());
    }
}

/// Asks for what the socket itself does not tell, by the addresses of its two ends.
pub type Elsewhere = fn(SocketAddr, SocketAddr) -> io::Result<Info>;

static ELSEWHERE: OnceLock<Elsewhere> = OnceLock::new();

/// Names another place that knows of connections, for systems whose sockets tell nothing of themselves: [`Info::read`] asks there
/// where the socket fails. The first one that is named stays.
pub fn ask_elsewhere(ask: Elsewhere) {
    // A second call has nothing to change.
    let _first_stays = ELSEWHERE.set(ask);
}

/// The other place's answer; `None` where none is named, or the socket is not connected.
fn elsewhere(socket: &impl Handle) -> Option<io::Result<Info>> {
    let ask = ELSEWHERE.get()?;
    let socket = socket2::SockRef::from(socket);
    let [local, remote] = [socket.local_addr(), socket.peer_addr()].map(|end| end.ok().and_then(|end| end.as_socket()));
    Some(ask(plain(local?), plain(remote?)))
}

/// IPv4 in the addresses of IPv6 is IPv4 to whoever lists connections.
fn plain(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    /// Only this test names another place: it stays for the whole process.
    #[test]
    fn what_a_socket_does_not_tell_is_asked_elsewhere_by_its_ends() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect(peer.local_addr().unwrap()).unwrap();
        Info::read(&udp).unwrap_err();
        ask_elsewhere(|local, remote| {
            assert!(local.ip().is_loopback() && remote.ip().is_loopback());
            Ok(Info { mss: Some(u32::from(remote.port())), ..Info::default() })
        });
        // No kernel has TCP's answer for a socket of UDP.
        assert_eq!(Info::read(&udp).unwrap().mss, Some(u32::from(peer.local_addr().unwrap().port())));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = u32::from(listener.local_addr().unwrap().port());
        assert_ne!(Info::read(&stream).unwrap().mss, Some(port), "the socket's own answer comes first");
    }

    #[test]
    fn addresses_of_ipv4_are_asked_for_as_such() {
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:5201".parse().unwrap();
        assert_eq!(plain(mapped), "192.0.2.1:5201".parse().unwrap());
    }
}

/// Numbers at offsets of what a kernel filled; absent beyond its end.
#[derive(Clone, Copy, Debug)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u8(self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    fn u16(self, offset: usize) -> Option<u16> {
        self.chunk(offset).map(u16::from_ne_bytes)
    }

    fn u32(self, offset: usize) -> Option<u32> {
        self.chunk(offset).map(u32::from_ne_bytes)
    }

    fn u64(self, offset: usize) -> Option<u64> {
        self.chunk(offset).map(u64::from_ne_bytes)
    }

    /// A number of bytes in four bytes.
    fn bytes(self, offset: usize) -> Option<Bytes> {
        self.u32(offset).map(|bytes| Bytes::new(bytes.into()))
    }

    /// The two halves of a byte as a C compiler lays out two fields of four bits: first, second.
    fn halves(self, offset: usize) -> Option<[u8; 2]> {
        let byte = self.u8(offset)?;
        let [low, high] = [byte & 0xf, byte >> 4];
        Some(if cfg!(target_endian = "little") { [low, high] } else { [high, low] })
    }

    fn chunk<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..)?.first_chunk().copied()
    }
}

/// Bytes per second as a rate.
fn rate(bytes_per_second: u64) -> Rate {
    Rate::from_bps(bytes_per_second.saturating_mul(8))
}
