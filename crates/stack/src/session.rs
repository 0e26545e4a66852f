//! What `fullpipe stack` does with a host: single transfers, small services, and a kernel of an emulated path as their peer.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabOptions};
use fullpipe_path::{Scenario, Side};
use fullpipe_tcp::socket::{Counts, Info, SocketOptions};

use crate::{Connection, Host, Port, Settings, StackError};

const BLOCK: usize = 64 << 10;
/// How often a thread that waits looks whether it shall stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// How long a FIN may take to be acknowledged, after the work.
const LINGER: Duration = Duration::from_secs(5);
/// Connections that a service lets wait.
const BACKLOG: u16 = 16;

/// What this end does on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Reads to the end and drops it.
    Discard,
    /// Sends so many bytes.
    Send(u64),
    /// Sends back what comes.
    Echo,
}

/// One connection's story.
#[derive(Clone, Debug)]
pub struct Session {
    /// The other end.
    pub peer: SocketAddr,
    /// Bytes written, all acknowledged where `failure` is absent.
    pub sent: u64,
    /// Bytes read.
    pub received: u64,
    /// From the handshake to the last acknowledgement or the end of the peer's data.
    pub seconds: f64,
    /// What the socket counted.
    pub counts: Counts,
    /// Its figures at the end.
    pub info: Option<Info>,
    /// Why it ended early.
    pub failure: Option<String>,
}

/// When to stop.
#[derive(Debug)]
pub struct Until<'a> {
    /// At this time.
    pub time: Instant,
    /// When this is set.
    pub stop: &'a AtomicBool,
}

impl Until<'_> {
    /// Whether there is still time, and how long to wait before the next look.
    ///
    /// # Errors
    /// There is none, or it was stopped.
    pub(crate) fn left(&self) -> Result<Duration, StackError> {
        let left = self.time.saturating_duration_since(Instant::now());
        match left {
            _ if self.stop.load(Relaxed) => Err(StackError::Stopped),
            Duration::ZERO => Err(StackError::OutOfTime),
            left => Ok(left.min(LOOK)),
        }
    }
}

/// Opens a connection and does `service` on it.
///
/// # Errors
/// There is no connection, or it was stopped before there was one. What ends one early is recorded in the session.
pub fn connect(
    host: &Host,
    peer: SocketAddr,
    options: SocketOptions,
    service: Service,
    until: &Until<'_>,
) -> Result<Session, StackError> {
    let connection = open(host, peer, options, until)?;
    let session = attend(connection, service, until);
    host.settle(LINGER);
    Ok(session)
}

/// Opens a connection and waits until it stands.
pub(crate) fn open(
    host: &Host,
    peer: SocketAddr,
    options: SocketOptions,
    until: &Until<'_>,
) -> Result<Connection, StackError> {
    let limit = until.time.saturating_duration_since(Instant::now());
    let connection = host.begin_connect(peer, options)?;
    let stood = loop {
        match until.left() {
            Err(error) => break Err(error),
            Ok(wait) if connection.stands_within(wait)? => break Ok(()),
            Ok(_) => {}
        }
    };
    match stood {
        Ok(()) => Ok(connection),
        Err(error) => {
            connection.abort();
            Err(match error {
                StackError::OutOfTime => {
                    StackError::TimedOut { operation: "connecting to", address: peer, seconds: limit.as_secs_f64() }
                }
                other => other,
            })
        }
    }
}

/// Listens and does `service` on each connection, until it is time or `connections` are over.
///
/// # Errors
/// The port can't be listened on, or the device is gone.
pub fn serve(
    host: &Host,
    port: u16,
    options: SocketOptions,
    service: Service,
    connections: Option<u32>,
    until: &Until<'_>,
) -> Result<Vec<Session>, StackError> {
    let listener = host.listen(port, BACKLOG, options)?;
    let sessions = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let mut left = connections.unwrap_or(u32::MAX);
        while let (Ok(wait), true) = (until.left(), left > 0) {
            let Some(connection) = listener.accept(Some(wait))? else { continue };
            left -= 1;
            scope.spawn(|| {
                let session = attend(connection, service, until);
                sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session);
            });
        }
        Ok::<_, StackError>(())
    })?;
    host.settle(LINGER);
    Ok(sessions.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Does the service to its end.
fn attend(connection: Connection, service: Service, until: &Until<'_>) -> Session {
    let start = Instant::now();
    let (mut sent, mut received) = (0, 0);
    let result = match service {
        Service::Discard => drain(&connection, &mut received, until, |_| Ok(())),
        Service::Send(bytes) => send(&connection, bytes, &mut sent, until),
        Service::Echo => drain(&connection, &mut received, until, |data| {
            write_all(&connection, data, until)?;
            sent += data.len() as u64;
            Ok(())
        }),
    };
    let result = result.and_then(|()| {
        connection.shutdown_write()?;
        while !connection.flush_acknowledged(Some(LOOK))? {
            until.left()?;
        }
        Ok(())
    });
    let seconds = start.elapsed().as_secs_f64();
    let (peer, info) = (connection.peer(), connection.info());
    let counts = connection.counts().unwrap_or_default();
    let failure = result.err().map(|error| {
        connection.abort();
        error.to_string()
    });
    Session { peer, sent, received, seconds, counts, info, failure }
}

fn send(connection: &Connection, bytes: u64, sent: &mut u64, until: &Until<'_>) -> Result<(), StackError> {
    let block = vec![0x5a; BLOCK];
    while *sent < bytes {
        let len = (bytes - *sent).min(BLOCK as u64) as usize;
        write_all(connection, &block[..len], until)?;
        *sent += len as u64;
    }
    connection.shutdown_write()?;
    // The peer's end of data, so that the figures are of the whole exchange.
    drain(connection, &mut 0, until, |_| Ok(()))
}

/// Reads to the end.
fn drain(
    connection: &Connection,
    received: &mut u64,
    until: &Until<'_>,
    mut use_it: impl FnMut(&[u8]) -> Result<(), StackError>,
) -> Result<(), StackError> {
    let mut block = vec![0; BLOCK];
    loop {
        let len = patiently(until, || connection.read_within(&mut block, Some(LOOK)))?;
        if len == 0 {
            return Ok(());
        }
        *received += len as u64;
        use_it(&block[..len])?;
    }
}

pub(crate) fn write_all(connection: &Connection, mut data: &[u8], until: &Until<'_>) -> Result<(), StackError> {
    while !data.is_empty() {
        let len = patiently(until, || connection.write_within(data, Some(LOOK)))?;
        data = &data[len..];
    }
    Ok(())
}

/// Tries again what only had no time. A connection that timed out is over, and is reported as it is.
pub(crate) fn patiently<R>(
    until: &Until<'_>,
    mut attempt: impl FnMut() -> Result<R, StackError>,
) -> Result<R, StackError> {
    loop {
        match attempt() {
            Err(StackError::TimedOut { .. }) => drop(until.left()?),
            other => return other,
        }
    }
}

/// An emulated path with a stack at end a and a kernel at end b.
#[derive(Debug)]
pub struct MadePath {
    // The stack goes before its path.
    host: Host,
    lab: Lab,
}

impl MadePath {
    /// Makes the path of `scenario`, with the settings of its host b in force.
    ///
    /// # Errors
    /// What is needed where a right is missing, else what the kernel refused.
    pub fn new(scenario: &Scenario, settings: Settings) -> Result<Self, StackError> {
        Self::with(scenario, settings, LabOptions::default())
    }

    /// The same with a choice of how the lab works.
    pub(crate) fn with(scenario: &Scenario, mut settings: Settings, options: LabOptions) -> Result<Self, StackError> {
        let path = &scenario.path;
        let (lab, tun) = Lab::join_bare(path, scenario.seed, options, Side::A)?;
        lab.host(Side::B).apply(&scenario.b.settings)?;
        settings.addresses = vec![Side::A.ipv4().into(), Side::A.ipv6().into()];
        let mtu = u16::try_from(path.mtu).unwrap_or(u16::MAX);
        let host = Host::start(Port::bare(tun, mtu, options.offload), settings)?;
        Ok(Self { host, lab })
    }

    /// The stack.
    pub fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The kernel's address.
    pub fn kernel(&self) -> IpAddr {
        self.lab.host(Side::B).address()
    }

    /// The stack's address of the same family.
    pub fn own(&self) -> IpAddr {
        if self.kernel().is_ipv6() { Side::A.ipv6().into() } else { Side::A.ipv4().into() }
    }

    /// The kernel takes one connection at `port`, sends `bytes` and reads to the end, on a thread that ends by itself.
    ///
    /// # Errors
    /// The port can't be listened on.
    pub fn kernel_serves(&self, port: u16, bytes: u64) -> Result<(), StackError> {
        let address = SocketAddr::new(self.kernel(), port);
        let listener = self.lab.host(Side::B).run(|| TcpListener::bind(address))?;
        let listener = listener.map_err(|source| StackError::system("listen at the kernel's end", source))?;
        self.lab.host(Side::B).spawn("kernel-end", move || exchange(listener.accept()?.0, bytes))?;
        Ok(())
    }

    /// The kernel connects to the stack's `port`, sends `bytes` and reads to the end.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn kernel_calls(&self, port: u16, bytes: u64) -> Result<thread::JoinHandle<io::Result<u64>>, StackError> {
        let address = SocketAddr::new(self.own(), port);
        let call = move || {
            let mut tries = 50;
            loop {
                match TcpStream::connect(address) {
                    // The stack is about to listen.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && tries > 0 => {
                        tries -= 1;
                        thread::sleep(LOOK);
                    }
                    Err(error) => return Err(error),
                    Ok(stream) => return exchange(stream, bytes),
                }
            }
        };
        Ok(self.lab.host(Side::B).spawn("kernel-end", call)?)
    }
}

/// Sends `bytes` and reads to the end; how much came.
fn exchange(stream: TcpStream, bytes: u64) -> io::Result<u64> {
    rustix::net::sockopt::set_tcp_congestion(&stream, "cubic")?;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let block = vec![0x5a; BLOCK];
            let mut left = bytes;
            while left > 0 {
                let len = left.min(BLOCK as u64);
                (&stream).write_all(&block[..len as usize])?;
                left -= len;
            }
            stream.shutdown(Shutdown::Write)
        });
        let mut block = vec![0; BLOCK];
        let mut received = 0;
        loop {
            match (&stream).read(&mut block)? {
                0 => break,
                len => received += len as u64,
            }
        }
        writer.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
        Ok(received)
    })
}
