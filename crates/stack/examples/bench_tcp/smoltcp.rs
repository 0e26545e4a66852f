//! smoltcp with its own TUN interface, as its `examples/benchmark.rs` has it: the application touches no byte.

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::fd::AsRawFd,
    time::Duration,
};

use smoltcp::{
    iface::{Config, Interface, SocketSet},
    phy::{Medium, TunTapInterface, wait},
    socket::tcp::{CongestionControl, Socket, SocketBuffer},
    time::Instant,
    wire::{HardwareAddress, IpCidr},
};

use crate::{
    Way,
    world::{Clocks, Figures, KERNEL, MTU, PORT, Result, STACK, World},
};

const DEVICE: &str = "smoltcp";

/// The buffers of its own benchmark.
pub(crate) fn small(world: &World, way: Way, span: Duration) -> Result<Figures> {
    run(world, way, span, 65_535)
}

/// A mebibyte each way.
pub(crate) fn large(world: &World, way: Way, span: Duration) -> Result<Figures> {
    run(world, way, span, 1 << 20)
}

fn run(world: &World, way: Way, span: Duration, buffer: usize) -> Result<Figures> {
    let address = SocketAddr::new(STACK.into(), PORT);
    world.host().run(|| {
        let mut device = TunTapInterface::new(DEVICE, Medium::Ip)?;
        world.ip(&["address", "add", &format!("{KERNEL}/24"), "dev", DEVICE])?;
        world.ip(&["link", "set", DEVICE, "mtu", &MTU.to_string(), "up"])?;
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
        interface.update_ip_addrs(|addresses| {
            // The list is empty, and has room for one.
            addresses.push(IpCidr::new(Ipv4Addr::from(STACK).into(), 24)).ok();
        });
        let mut socket = Socket::new(SocketBuffer::new(vec![0; buffer]), SocketBuffer::new(vec![0; buffer]));
        socket.set_congestion_control(CongestionControl::Reno);
        socket.listen(PORT)?;
        let mut sockets = SocketSet::new(vec![]);
        let handle = sockets.add(socket);
        let peer = world.kernel(way, address, span)?;
        let (mut clocks, mut received) = (None, 0);
        loop {
            let now = Instant::now();
            interface.poll(now, &mut device, &mut sockets);
            let socket = sockets.get_mut::<Socket<'_>>(handle);
            if clocks.is_none() && socket.may_send() {
                clocks = Some(Clocks::start());
            }
            while way == Way::Sends && socket.can_send() {
                socket.send(|buffer| (buffer.len(), ()))?;
            }
            while way == Way::Receives && socket.can_recv() {
                received += socket.recv(|buffer| (buffer.len(), buffer.len()))? as u64;
            }
            if clocks.is_some() && (!socket.may_recv() || !socket.may_send()) {
                break;
            }
            match interface.poll_at(now, &sockets) {
                Some(at) if now < at => wait(device.as_raw_fd(), Some(at - now))?,
                Some(_) => {}
                None => wait(device.as_raw_fd(), Some(smoltcp::time::Duration::from_secs(1)))?,
            }
        }
        let sent = peer.join().map_err(|_| "the kernel's end panicked")??;
        let clocks = clocks.ok_or("the kernel did not connect")?;
        Ok(clocks.figures(if way == Way::Sends { sent } else { received }))
    })?
}
