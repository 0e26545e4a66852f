//! What ICMP has said of paths, for the connections that follow (RFC 1191, section 6.1; RFC 8201, section 5.2).

use core::net::IpAddr;

use fullpipe_units::Instant;

/// Peers whose paths are remembered; the one that was learnt longest ago makes room. On a device without a heap, nobody: there each
/// connection learns for itself.
const PATHS: usize = if cfg!(feature = "alloc") { 8 } else { 0 };

/// A path that takes less than the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) addr: IpAddr,
    /// The largest IP packet.
    pub(super) mtu: u16,
    pub(super) learnt_at: Instant,
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

    pub(super) fn find(&self, now: Instant, addr: IpAddr) -> Option<&Path> {
        self.0.iter().flatten().find(|path| path.addr == addr && path.is_known(now))
    }

    pub(super) fn note(&mut self, path: Path) {
        let age = |known: &&mut Option<Path>| match known {
            Some(known) if known.addr != path.addr => known.learnt_at.as_nanos(),
            _ => 0,
        };
        if let Some(place) = self.0.iter_mut().min_by_key(age) {
            *place = Some(path);
        }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn the_path_learnt_longest_ago_makes_room_and_all_are_forgotten() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let addr = |last: u8| IpAddr::from([192, 0, 2, last]);
        let mut paths = Paths::new();
        for last in 1..10 {
            paths.note(Path { addr: addr(last), mtu: 1_280, learnt_at: at(last.into()) });
        }
        assert!(paths.find(at(10), addr(1)).is_none());
        assert!((2..10).all(|last| paths.find(at(10), addr(last)).is_some()));
        paths.note(Path { addr: addr(2), mtu: 1_006, learnt_at: at(10) });
        assert_eq!(paths.find(at(609), addr(2)).map(|path| path.mtu), Some(1_006));
        assert!(paths.find(at(609), addr(8)).is_none());
        assert!(paths.find(at(610), addr(2)).is_none());
    }
}
