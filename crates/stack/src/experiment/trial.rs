//! One transfer between the engine, standing for a device at end a of a path, and the kernel at end b.
//!
//! The device is one thread: its processor does one thing at a time. It runs before all normal threads where it may,
//! because the device that it stands for shares its processor with nobody.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    num::NonZeroU64,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant as SystemInstant},
};

use fullpipe_lab::{CouldNotKeepUp, Lab, LabOptions, raise_priority};
use fullpipe_path::{PathSpec, Side};
use fullpipe_tcp::{
    heap::HeapStorage,
    profile::Profile,
    socket::{Counts, Endpoint, SocketOptions},
    stack::{SocketError, SocketId, Stack},
};
use fullpipe_units::Instant;

use crate::{Driver, Port, Settings, StackError, session::LOOK};

const PORT: u16 = 5001;
const BLOCK: usize = 64 << 10;

/// How the device's application writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Whenever there is room.
    Streams,
    /// So much at a time as its transmit budget holds, and then it waits until all of that was acknowledged.
    Waits,
}

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The device's policy.
    pub profile: Profile,
    /// The socket's options, budgets among them.
    pub options: SocketOptions,
    /// How long the device is busy with each packet.
    pub per_packet: Duration,
    /// Payload.
    pub bytes: u64,
    /// Whether the device sends it; else it receives.
    pub sends: bool,
    /// How it writes.
    pub application: Application,
    /// Give up after this.
    pub limit: Duration,
}

/// What came out.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// From the connection to the receiver's end of data.
    pub seconds: f64,
    /// From before the first SYN to the end, by the device's own clock: no packet of the transfer lies outside of it.
    pub device_seconds: f64,
    /// What the device's socket counted.
    pub counts: Counts,
    /// Bytes out of order that were dropped for want of budget.
    pub early_dropped: u32,
    /// Whether the path kept its promises.
    pub valid: bool,
}

/// Runs a trial, until `stop` is set.
///
/// # Errors
/// No lab can be made, the transfer fails, or it was stopped.
pub fn run(path: &PathSpec, seed: u64, trial: &Trial, stop: &AtomicBool) -> Result<Outcome, StackError> {
    // Wire-size packets at both ends: the device has no network card that helps.
    let options = LabOptions { offload: false, ..LabOptions::default() };
    let (lab, tun) = Lab::join_bare(path, seed, options, Side::A)?;
    let kernel = SocketAddr::new(lab.host(Side::B).address(), PORT);
    let listener = lab.host(Side::B).run(|| TcpListener::bind(kernel))?;
    let listener = listener.map_err(|source| StackError::system("listen", source))?;
    let (send, receive) = mpsc::channel();
    let (bytes, sends) = (trial.bytes, trial.sends);
    lab.host(Side::B).spawn("kernel-end", move || {
        // Nobody waits any more where the receiver is gone.
        send.send(kernel_end(&listener, bytes, !sends)).ok();
    })?;
    let port = Port::bare(tun, path.mtu as u16, false);
    let outcome = std::thread::scope(|scope| {
        let device = scope.spawn(|| Device::start(port, kernel, trial, stop)?.run(trial));
        device.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    });
    let mut outcome = outcome?;
    if trial.sends {
        let answer = receive.recv_timeout(trial.limit);
        let span = answer.map_err(io::Error::other).flatten();
        outcome.seconds =
            span.map_err(|source| StackError::system("receive at the kernel's end", source))?.as_secs_f64();
    }
    outcome.valid = valid(lab.valid());
    Ok(outcome)
}

/// Being late by half a round trip of a fast path is still less than what the machine's own timers do.
fn valid(result: Result<(), CouldNotKeepUp>) -> bool {
    result.is_ok()
}

/// The kernel's side: reads everything or sends everything; how long that took from the handshake on.
fn kernel_end(listener: &TcpListener, bytes: u64, sends: bool) -> io::Result<Duration> {
    raise_priority();
    let (mut stream, _) = listener.accept()?;
    let start = SystemInstant::now();
    rustix::net::sockopt::set_tcp_congestion(&stream, "cubic")?;
    if sends {
        send(&mut stream, bytes)?;
    } else {
        let mut block = vec![0; BLOCK];
        while stream.read(&mut block)? > 0 {}
    }
    Ok(start.elapsed())
}

fn send(stream: &mut TcpStream, mut bytes: u64) -> io::Result<()> {
    let block = vec![0x5a; BLOCK];
    while bytes > 0 {
        let len = bytes.min(BLOCK as u64) as usize;
        stream.write_all(&block[..len])?;
        bytes -= len as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// The device at work.
struct Device<'a> {
    driver: Driver,
    id: SocketId,
    peer: SocketAddr,
    stop: &'a AtomicBool,
    /// When it had said nothing yet.
    start: Instant,
}

impl<'a> Device<'a> {
    fn start(port: Port, peer: SocketAddr, trial: &Trial, stop: &'a AtomicBool) -> Result<Self, StackError> {
        raise_priority();
        // Without it, sleeps end up to 50 us late.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
        let own: [IpAddr; 2] = [Side::A.ipv4().into(), Side::A.ipv6().into()];
        let settings = Settings { profile: trial.profile, per_packet: trial.per_packet, ..Settings::new(&own) };
        let mut driver = Driver::new(port, &settings)?;
        let now = driver.now();
        let remote = Endpoint::new(peer.ip(), peer.port());
        let id = driver.stack().connect(now, None, remote, trial.options);
        let id = id.map_err(|source| StackError::Open { operation: "connect to", address: peer, source })?;
        let mut device = Self { driver, id, peer, stop, start: now };
        device.until(trial.limit, "connecting to", |stack, _, id| {
            Ok(stack.socket(id).ok_or(SocketError::Gone)?.state().is_synchronized())
        })?;
        Ok(device)
    }

    fn run(&mut self, trial: &Trial) -> Result<Outcome, StackError> {
        let start = SystemInstant::now();
        if trial.sends {
            self.send(trial)?;
        } else {
            let mut block = vec![0; BLOCK];
            self.until(trial.limit, "reading from", move |stack, now, id| {
                loop {
                    match stack.read(now, id, &mut block) {
                        Ok(0) => return Ok(true),
                        Ok(_) => {}
                        Err(SocketError::WouldBlock) => return Ok(false),
                        Err(error) => return Err(error),
                    }
                }
            })?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let socket = self.driver.stack().socket(self.id);
        let counts = socket.map(|socket| *socket.counts()).unwrap_or_default();
        let early_dropped = socket.map_or(0, |socket| socket.info().early_dropped);
        let device_seconds = self.driver.now().since(self.start).as_secs_f64();
        Ok(Outcome { seconds, device_seconds, counts, early_dropped, valid: true })
    }

    fn send(&mut self, trial: &Trial) -> Result<(), StackError> {
        let block = vec![0x5a; BLOCK];
        let mut left = trial.bytes;
        // What the application still has to hand over before it waits.
        let mut batch = 0;
        self.until(trial.limit, "writing to", move |stack, now, id| {
            loop {
                let socket = stack.socket(id).ok_or(SocketError::Gone)?;
                let (info, held) = (socket.info(), socket.buffers());
                if batch == 0 {
                    let waits = trial.application == Application::Waits;
                    if waits && held.transmit + held.unacknowledged > 0 {
                        return Ok(false);
                    }
                    let budget = u64::from(trial.options.budgets.transmit) * u64::from(info.mss);
                    batch = if waits { budget.min(left) } else { left };
                }
                if left == 0 {
                    return Ok(true);
                }
                let len = batch.min(BLOCK as u64) as usize;
                let taken = stack.write(now, id, &block[..len])? as u64;
                (batch, left) = (batch - taken, left - taken);
                if left == 0 {
                    stack.shutdown_write(now, id)?;
                    return Ok(true);
                }
                if taken == 0 {
                    return Ok(false);
                }
            }
        })?;
        self.until(trial.limit, "closing the connection to", |stack, _, id| {
            let socket = stack.socket(id).ok_or(SocketError::Gone)?;
            let held = socket.buffers();
            Ok(held.transmit + held.unacknowledged == 0 && stack.unfinished() == 0)
        })
    }

    /// Works until `done`; looks now and then whether it shall stop.
    fn until(
        &mut self,
        limit: Duration,
        operation: &'static str,
        mut done: impl FnMut(&mut Stack<HeapStorage>, Instant, SocketId) -> Result<bool, SocketError>,
    ) -> Result<(), StackError> {
        let (id, peer) = (self.id, self.peer);
        let end = SystemInstant::now() + limit;
        let mut failed = None;
        loop {
            let left = end.saturating_duration_since(SystemInstant::now()).min(LOOK);
            let reached = self.driver.run_until(left, |stack, now| {
                while stack.poll_news().is_some() {}
                done(stack, now, id).unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                })
            });
            let reached = reached.map_err(|source| StackError::system("use the port", source))?;
            return match failed {
                Some(source) => Err(StackError::Connection { operation, peer, source }),
                None if reached => Ok(()),
                None if self.stop.load(Relaxed) => Err(StackError::Stopped),
                None if left.is_zero() => {
                    Err(StackError::TimedOut { operation, address: peer, seconds: limit.as_secs_f64() })
                }
                None => continue,
            };
        }
    }
}
