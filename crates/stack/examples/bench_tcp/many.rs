//! Many connections at once: the kernel writes a little to each in turn, the engine reads what has come. Processor time of the
//! engine's thread for a byte, beside that of one connection.

use std::{
    io::{self, ErrorKind, Write},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fullpipe_stack::{Driver, Port, Settings};
use fullpipe_tcp::{
    profile::Budgets,
    socket::SocketOptions,
    stack::{News, SocketError},
};

use crate::world::{Clocks, Figures, KERNEL, MTU, PORT, Result, STACK, World, dial};

/// How many connections, and packet buffers for each: as many as the largest pool has for ten thousand.
pub(crate) const CASES: &[(u16, u16)] = &[(1, 6), (100, 6), (1_000, 6), (10_000, 6)];

const DEVICE: &str = "many";
/// What the kernel is given to send at a time: what a window of six buffers holds.
const WRITE: usize = 8 << 10;
/// The engine's pool has at most this many buffers.
const POOL: u32 = 64_000;

pub(crate) fn run(world: &World, connections: u16, budget: u16, span: Duration) -> Result<Figures> {
    let address = SocketAddr::new(STACK.into(), PORT);
    world.host().run(|| {
        let mut settings = Settings::new(&[address.ip()]);
        settings.profile.budgets = Budgets::all(budget);
        settings.sockets = connections + 8;
        settings.buffers = (u32::from(connections) * u32::from(budget) + 2_048).min(POOL) as u16;
        let port = Port::tun(DEVICE, MTU, &[(KERNEL.parse()?, 24)])?;
        // The kernel's 500 packets are too few for what so many windows let under way: what is measured would be losses.
        world.ip(&["link", "set", DEVICE, "txqueuelen", &(4 * POOL / u32::from(budget)).to_string()])?;
        let mut driver = Driver::new(port, &settings)?;
        let options = SocketOptions::from_profile(&settings.profile);
        let listener = driver.stack().listen(None, PORT, 64, options)?;
        let begin = Arc::new(AtomicBool::new(false));
        let begun = begin.clone();
        let peer = world.host().spawn("kernel", move || write(address, connections, &begun, span))?;
        let mut accepted = 0;
        driver.run_until(Duration::from_secs(60), |stack, now| {
            while stack.accept(now, listener).is_some() {
                accepted += 1;
            }
            accepted == connections
        })?;
        if accepted < connections {
            return Err(format!("{accepted} of {connections} connections came").into());
        }
        begin.store(true, Ordering::Relaxed);
        let (clocks, end) = (Clocks::start(), Instant::now() + span);
        let (mut received, mut block) = (0, vec![0; 1 << 16]);
        driver.run_until(span * 2, |stack, now| {
            while let Some(news) = stack.poll_news() {
                let News::Socket(id, _) = news else { continue };
                loop {
                    match stack.read(now, id, &mut block) {
                        Ok(0) | Err(SocketError::WouldBlock) => break,
                        Ok(len) => received += len as u64,
                        Err(_) => break,
                    }
                }
            }
            Instant::now() >= end
        })?;
        let figures = clocks.figures(received);
        peer.join().map_err(|_| "the kernel's end panicked")??;
        Ok(figures)
    })?
}

/// Connects, waits until it may begin, and writes to each connection that has room, in turn.
fn write(address: SocketAddr, connections: u16, begin: &AtomicBool, span: Duration) -> io::Result<()> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = dial(address)?;
        stream.set_nonblocking(true)?;
        streams.push(stream);
    }
    while !begin.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
    let (end, block) = (Instant::now() + span, [0x5a; WRITE]);
    while Instant::now() < end {
        let mut wrote = false;
        for stream in &mut streams {
            match stream.write(&block) {
                Ok(_) => wrote = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if !wrote {
            thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}
