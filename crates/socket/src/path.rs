//! What is known of a path before its buffers are computed.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use fullpipe_units::{Micros, sizing::UNSCALED};
use socket2::SockRef;

use crate::{Handle, Info};

/// A path as its ends see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The round-trip time: the smallest that the kernel measured, else what it averages, else how long `connect` took.
    pub rtt: Option<Micros>,
    /// The path MTU; where the system doesn't tell, what the segments need (a path may carry more).
    pub mtu: Option<u32>,
    /// The largest segment.
    pub mss: Option<u32>,
    /// Whether both ends scale their windows. Without, none is larger than 65,535 bytes.
    pub scaling: Option<bool>,
    /// The shift that this end announced: it bounds the window for as long as the connection lives.
    pub own_shift: Option<u8>,
}

impl Path {
    /// A path whose round-trip time is known, and nothing else.
    pub fn of_rtt(rtt: Micros) -> Self {
        Self { rtt: Some(rtt), ..Self::default() }
    }

    /// Asks the kernel about a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(socket: &impl Handle) -> io::Result<Self> {
        let is_v6 = SockRef::from(socket).peer_addr()?.as_socket_ipv6().is_some_and(|peer| {
            // IPv4 underneath.
            peer.ip().to_ipv4_mapped().is_none()
        });
        Ok(Self::from_info(&Info::read(socket)?, is_v6))
    }

    /// Connects, asks the kernel about that connection, and closes it. The far end sees a connection without any data.
    ///
    /// ```
    /// # use std::{net::TcpListener, time::Duration};
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let address = listener.local_addr()?;
    /// let path = fullpipe_socket::Path::to(address, Duration::from_secs(3))?;
    /// assert!(path.rtt.is_some());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// That nobody answers there in time.
    pub fn to(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let start = Instant::now();
        let stream = TcpStream::connect_timeout(&address, patience)?;
        let took = Micros::from(start.elapsed());
        // A kernel that can't tell leaves what the clock tells.
        let seen = Self::read(&stream).unwrap_or_default();
        Ok(Self { rtt: seen.rtt.or(Some(took)), ..seen })
    }

    pub(crate) fn from_info(info: &Info, is_v6: bool) -> Self {
        let headers = if is_v6 { 60 } else { 40 } + if info.timestamps == Some(true) { 12 } else { 0 };
        Self {
            rtt: info.min_rtt.or(info.rtt),
            mtu: info.path_mtu.or_else(|| info.mss.map(|mss| mss.saturating_add(headers))),
            mss: info.mss,
            scaling: info.scaling.or_else(|| is_beyond_unscaled(info).then_some(true)),
            own_shift: info.own_shift,
        }
    }

    /// What a later look tells, on top of what is known.
    pub(crate) fn refined(self, later: Self) -> Self {
        Self {
            rtt: later.rtt.or(self.rtt),
            mtu: later.mtu.or(self.mtu),
            mss: later.mss.or(self.mss),
            scaling: later.scaling.or(self.scaling),
            // Each connection has its own.
            own_shift: later.own_shift,
        }
    }
}

/// Whether a window is larger than a header without scaling can say: where a system does not tell of the option (Windows),
/// that proves that both SYNs carried it (RFC 7323, section 2.2).
fn is_beyond_unscaled(info: &Info) -> bool {
    [info.send_window, info.receive_window].into_iter().flatten().any(|window| window > UNSCALED)
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Bytes;

    use super::*;

    #[test]
    fn a_window_above_65535_proves_that_windows_are_scaled() {
        let window = |bytes| Info { send_window: Some(Bytes::new(bytes)), ..Info::default() };
        assert_eq!(Path::from_info(&window(65_535), false).scaling, None);
        assert_eq!(Path::from_info(&window(65_536), false).scaling, Some(true));
        let own = Info { receive_window: Some(Bytes::new(131_328)), ..window(64_240) };
        assert_eq!(Path::from_info(&own, false).scaling, Some(true));
        assert_eq!(Path::from_info(&Info { scaling: Some(false), ..own }, false).scaling, Some(false));
    }

    #[test]
    fn a_system_that_tells_no_mtu_has_one_that_its_segments_need() {
        let info = Info { mss: Some(1_448), timestamps: Some(true), ..Info::default() };
        assert_eq!(Path::from_info(&info, false).mtu, Some(1_500));
        assert_eq!(Path::from_info(&Info { mss: Some(1_428), ..info }, true).mtu, Some(1_500));
        assert_eq!(Path::from_info(&Info { path_mtu: Some(9_000), ..info }, false).mtu, Some(9_000));
    }

    #[test]
    fn the_smallest_round_trip_counts() {
        let info = Info { rtt: Some(Micros::from_millis(90)), ..Info::default() };
        assert_eq!(Path::from_info(&info, false).rtt, Some(Micros::from_millis(90)));
        let info = Info { min_rtt: Some(Micros::from_millis(80)), ..info };
        assert_eq!(Path::from_info(&info, false).rtt, Some(Micros::from_millis(80)));
    }
}
