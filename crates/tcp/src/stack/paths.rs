//! What ICMP has said of paths, for the connections that follow (RFC 1191, section 6.1; RFC 8201, section 5.2).

use core::net::IpAddr;

use fullpipe_units::Instant;

use super::{Core, Parts};
use crate::socket::Socket;

/// Peers whose paths are remembered; the one that was learnt longest ago makes room. Nobody, where nothing is known of paths but
/// what each connection learns.
const PATHS: usize = if cfg!(feature = "path-search") { 8 } else { 0 };

/// A path that takes less than the device.
#[derive(Clone, Copy, Debug)]
struct Path {
    addr: IpAddr,
    /// The largest IP packet.
    mtu: u16,
    learnt_at: Instant,
}

impl Path {
    /// RFC 1191, section 6.3, and RFC 8201, section 4: for ten minutes; then the path may have become wider.
    const fn is_known(&self, now: Instant) -> bool {
        const TEN_MINUTES_NS: u64 = 600_000_000_000;
        now.as_nanos() < self.learnt_at.as_nanos().saturating_add(TEN_MINUTES_NS)
    }
}

/// The paths that are known.
#[derive(Debug)]
pub(super) struct Paths([Option<Path>; PATHS]);

impl Paths {
    pub(super) const fn new() -> Self {
        Self([None; PATHS])
    }

    fn find(&self, now: Instant, addr: IpAddr) -> Option<&Path> {
        self.0.iter().flatten().find(|path| path.addr == addr && path.is_known(now))
    }

    fn note(&mut self, path: Path) {
        let own = self.0.iter().position(|known| known.is_some_and(|known| known.addr == path.addr));
        let age = |at: &usize| self.0[*at].map_or(0, |known| 1 + known.learnt_at.as_nanos());
        let at = own.or_else(|| (0..PATHS).min_by_key(age)).unwrap_or(0);
        if let Some(place) = self.0.get_mut(at) {
            *place = Some(path);
        }
    }
}

impl Core {
    /// ICMP has lowered the segment size of the connection in entry `at` to `size`, with `overhead` of headers.
    pub(super) fn note_path(&mut self, now: Instant, parts: &mut Parts<'_>, at: u16, size: u16, overhead: u32) {
        let Some(addr) = parts.table.socket(at).map(|socket| socket.tuple.remote.addr) else { return };
        let mtu = u16::try_from(u32::from(size) + overhead).unwrap_or(u16::MAX);
        self.paths.note(Path { addr, mtu, learnt_at: now });
    }

    /// A new connection, told what is known of its path.
    pub(super) fn on_known_path(&self, now: Instant, mut socket: Socket) -> Socket {
        if let Some(path) = self.paths.find(now, socket.tuple.remote.addr) {
            socket.begin_at(Self::mss_within(&socket.tuple, path.mtu), path.learnt_at);
        }
        socket
    }

    /// The largest segment of a connection to be opened, by its path.
    #[cfg(feature = "fast-open")]
    pub(super) fn path_mss(&self, now: Instant, tuple: &crate::socket::Tuple) -> u16 {
        let path = self.paths.find(now, tuple.remote.addr);
        path.map_or(u16::MAX, |path| Self::mss_within(tuple, path.mtu))
    }
}

#[cfg(all(test, feature = "path-search"))]
mod tests {
    use super::*;

    #[test]
    fn the_path_learnt_longest_ago_makes_room_and_all_are_forgotten() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let addr = |last: u8| IpAddr::from([192, 0, 2, last]);
        let mut paths = Paths::new();
        for last in 0..9 {
            paths.note(Path { addr: addr(last), mtu: 1_280, learnt_at: at(last.into()) });
        }
        assert!(paths.find(at(9), addr(0)).is_none());
        assert!((1..9).all(|last| paths.find(at(9), addr(last)).is_some()));
        paths.note(Path { addr: addr(1), mtu: 1_006, learnt_at: at(9) });
        assert_eq!(paths.find(at(608), addr(1)).map(|path| path.mtu), Some(1_006));
        assert!(paths.find(at(608), addr(7)).is_none());
        assert!(paths.find(at(609), addr(1)).is_none());
    }
}
