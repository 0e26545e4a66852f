//! An emulated path with the engine at one end (a) and a kernel at the other (b).

use std::{
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabOptions, preflight};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, Side};
use fullpipe_stack::{Host, Port, Settings};
use fullpipe_tcp::socket::SocketOptions;

/// Longer than anything here takes on a busy machine, so that no test hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Both ends.
pub(crate) struct World {
    pub(crate) engine: Host,
    pub(crate) lab: Lab,
}

/// What lies between the ends.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) hop: HopSpec,
    pub(crate) mtu: u16,
    pub(crate) seed: u64,
    /// Super-packets and partial checksums at both ends.
    pub(crate) offload: bool,
}

/// Whether this process may make a path; if not, it says so.
pub(crate) fn may_run(test: &str) -> bool {
    if let Err(error) = preflight() {
        println!("skipped {test}: {error}");
        return false;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped {test}: a test can't enter a user namespace, for its process has threads already");
        return false;
    }
    true
}

impl World {
    pub(crate) fn new(between: &Between, settings: impl FnOnce(&mut Settings)) -> Self {
        let hops = vec![PathHop { name: None, ab: between.hop.clone(), ba: between.hop.clone() }];
        // RFC 8200, section 5: IPv6 needs 1280 bytes.
        let ip = if between.mtu >= 1280 { IpVersions::Both } else { IpVersions::V4 };
        let path = PathSpec { mtu: between.mtu.into(), ip, hops };
        let options = LabOptions { offload: between.offload, keep_awake: false, ..LabOptions::default() };
        let (lab, tun) = Lab::join_bare(&path, between.seed, options, Side::A).unwrap();
        let own = [IpAddr::from(Side::A.ipv4()), IpAddr::from(Side::A.ipv6())];
        let mut chosen = Settings::new(&own);
        settings(&mut chosen);
        let engine = Host::start(Port::bare(tun, between.mtu, between.offload), chosen).unwrap();
        Self { engine, lab }
    }

    pub(crate) fn options(&self) -> SocketOptions {
        self.engine.default_options()
    }

    /// The kernel's address.
    pub(crate) fn kernel(&self, v6: bool, port: u16) -> SocketAddr {
        SocketAddr::new(address(Side::B, v6), port)
    }

    /// The engine's address.
    pub(crate) fn own(&self, v6: bool, port: u16) -> SocketAddr {
        SocketAddr::new(address(Side::A, v6), port)
    }

    /// The kernel listens.
    pub(crate) fn kernel_listens(&self, v6: bool, port: u16) -> TcpListener {
        let address = self.kernel(v6, port);
        self.lab.host(Side::B).run(|| TcpListener::bind(address)).unwrap().unwrap()
    }

    /// The kernel connects to the engine.
    pub(crate) fn kernel_connects(&self, v6: bool, port: u16) -> std::io::Result<TcpStream> {
        let address = self.own(v6, port);
        self.lab.host(Side::B).run(|| TcpStream::connect(address)).unwrap().inspect(cubic)
    }

    /// Whether the pool has all its buffers back, which may take a last acknowledgement.
    pub(crate) fn pool_is_whole(&self) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if self.engine.free_count() == self.engine.with(|stack, _| stack.pool().count()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

fn address(side: Side, v6: bool) -> IpAddr {
    if v6 { side.ipv6().into() } else { side.ipv4().into() }
}

/// CUBIC, whatever this machine's default is, and no read or write that never ends.
pub(crate) fn cubic(stream: &TcpStream) {
    rustix::net::sockopt::set_tcp_congestion(stream, "cubic").unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
}
