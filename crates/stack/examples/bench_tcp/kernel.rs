//! The kernel's TCP at both ends, over its loopback with packets of the same size.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use rustix::net::sockopt::set_tcp_congestion;

use crate::{
    Way,
    world::{Clocks, Figures, MTU, PORT, Result, World, exchange},
};

pub(crate) fn run(world: &World, way: Way, span: Duration) -> Result<Figures> {
    world.ip(&["link", "set", "lo", "mtu", &MTU.to_string(), "up"])?;
    world.host().run(|| {
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let listener = TcpListener::bind(address)?;
        set_tcp_congestion(&listener, "cubic")?;
        let other = if way == Way::Sends { Way::Receives } else { Way::Sends };
        let peer = world.kernel(way, address, span)?;
        let (stream, _) = listener.accept()?;
        let clocks = Clocks::start();
        // The other end leaves first; what was under way then counts for nobody.
        let own = exchange(stream, other, span * 2).unwrap_or(0);
        let sent = peer.join().map_err(|_| "the kernel's end panicked")??;
        Ok(clocks.figures(if way == Way::Sends { sent } else { own }))
    })?
}
