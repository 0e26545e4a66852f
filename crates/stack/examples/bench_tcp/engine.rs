//! The engine: a driver on a TUN device, and an application that writes or reads blocks of 64 KB.

use std::{net::SocketAddr, time::Duration};

use fullpipe_stack::{Driver, HeapStorage, Port, Settings};
use fullpipe_tcp::{
    profile::{Budgets, Profile},
    socket::SocketOptions,
    stack::{SocketError, SocketId, Stack},
};

use crate::{
    Way,
    world::{Clocks, Figures, KERNEL, MTU, PORT, Result, STACK, World},
};

const BLOCK: usize = 64 << 10;
const DEVICE: &str = "engine";

/// The default pool, 43 buffers for everything: 64 KB.
pub(crate) fn small(world: &World, way: Way, span: Duration) -> Result<Figures> {
    run(world, way, span, |settings| settings.profile.budgets = Budgets::all(43))
}

/// The same with 724 buffers for everything, a mebibyte.
pub(crate) fn medium(world: &World, way: Way, span: Duration) -> Result<Figures> {
    run(world, way, span, |settings| {
        settings.profile.budgets = Budgets::all(724);
        settings.buffers = 4 * 724;
    })
}

/// As `fullpipe stack --profile linux`.
pub(crate) fn large(world: &World, way: Way, span: Duration) -> Result<Figures> {
    run(world, way, span, |settings| {
        settings.profile = Profile::LINUX;
        settings.buffers = 8_192;
    })
}

fn run(world: &World, way: Way, span: Duration, set: impl FnOnce(&mut Settings) + Send) -> Result<Figures> {
    let address = SocketAddr::new(STACK.into(), PORT);
    world.host().run(|| {
        let mut settings = Settings::new(&[address.ip()]);
        set(&mut settings);
        let port = Port::tun(DEVICE, MTU, &[(KERNEL.parse()?, 24)])?;
        let mut driver = Driver::new(port, &settings)?;
        let options = SocketOptions::from_profile(&settings.profile);
        let listener = driver.stack().listen(None, PORT, 1, options)?;
        let peer = world.kernel(way, address, span)?;
        let mut connection = None;
        driver.run_until(span, |stack, now| {
            connection = stack.accept(now, listener);
            connection.is_some()
        })?;
        let connection = connection.ok_or("the kernel did not connect")?;
        let clocks = Clocks::start();
        let mut block = vec![0x5a; BLOCK];
        let mut received = 0;
        let over =
            |stack: &mut Stack<HeapStorage>, now| exchange(stack, now, connection, way, &mut block, &mut received);
        driver.run_until(span * 2, over)?;
        let sent = peer.join().map_err(|_| "the kernel's end panicked")??;
        Ok(clocks.figures(if way == Way::Sends { sent } else { received }))
    })?
}

/// Does what the application can do now; whether the connection is over.
fn exchange(
    stack: &mut Stack<HeapStorage>,
    now: fullpipe_units::Instant,
    connection: SocketId,
    way: Way,
    block: &mut [u8],
    received: &mut u64,
) -> bool {
    loop {
        let result = match way {
            Way::Sends => stack.write(now, connection, block),
            Way::Receives => stack.read(now, connection, block),
        };
        match (way, result) {
            (Way::Sends, Ok(0)) | (_, Err(SocketError::WouldBlock)) => return false,
            (Way::Sends, Ok(_)) => {}
            (Way::Receives, Ok(0)) | (_, Err(_)) => return true,
            (Way::Receives, Ok(len)) => *received += len as u64,
        }
    }
}
