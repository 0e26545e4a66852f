//! Numbered sockets over one stack. No pointer comes here.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fullpipe_stack::{Connection, Host, Listener, Port, Settings, StackError};
use fullpipe_tcp::{
    link::{LinkSetup, Prefix},
    profile::{Budgets, Keepalive, Profile},
    socket::SocketOptions,
    wire::ethernet::Mac,
};

/// The first socket's number: a NetBurner's sockets follow its serial ports.
const FIRST: i32 = 5;
/// Sockets at the most.
const MOST: i32 = 32;
const TICK: Duration = Duration::from_millis(50);
const CONNECT_LIMIT: Duration = Duration::from_secs(75);
const WRITE_LIMIT: Duration = Duration::from_secs(10);
const MTU: u16 = 1500;

const SO_NONAGLE: i32 = 2;
const SO_NOPUSH: i32 = 4;

/// What a call returns: a number that is not negative, or why not.
pub(crate) type Call<T = i32> = Result<T, Code>;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Timeout,
    NoConnection,
    Closing,
    NoSuchSocket,
    NoneAvailable,
    Reset,
    Aborted,
}

impl Code {
    /// As the header has it.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Timeout => -1,
            Self::NoConnection => -2,
            Self::Closing => -3,
            Self::NoSuchSocket => -4,
            Self::NoneAvailable => -5,
            Self::Reset => -6,
            Self::Aborted => -7,
        }
    }

    fn from_error(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::TimedOut => Self::Timeout,
            ErrorKind::ConnectionReset => Self::Reset,
            ErrorKind::ConnectionAborted => Self::Aborted,
            ErrorKind::BrokenPipe => Self::Closing,
            _ => Self::NoConnection,
        }
    }
}

impl From<StackError> for Code {
    fn from(error: StackError) -> Self {
        Self::from_error(&error.into())
    }
}

struct Socket {
    kind: Kind,
    options: Mutex<SocketOptions>,
}

enum Kind {
    Connection(Connection),
    Listener(Listener),
}

struct Device {
    host: Host,
    sockets: BTreeMap<i32, Arc<Socket>>,
}

static DEVICE: Mutex<Option<Device>> = Mutex::new(None);

fn device() -> MutexGuard<'static, Option<Device>> {
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn host() -> Call<Host> {
    device().as_ref().map(|device| device.host.clone()).ok_or(Code::NoConnection)
}

fn socket(fd: i32) -> Call<Arc<Socket>> {
    let device = device();
    device.as_ref().and_then(|device| device.sockets.get(&fd).cloned()).ok_or(Code::NoSuchSocket)
}

fn add(kind: Kind, options: SocketOptions) -> Call {
    let mut device = device();
    let device = device.as_mut().ok_or(Code::NoConnection)?;
    let mut numbers = FIRST..FIRST + MOST;
    let fd = numbers.find(|fd| !device.sockets.contains_key(fd)).ok_or(Code::NoneAvailable)?;
    device.sockets.insert(fd, Arc::new(Socket { kind, options: Mutex::new(options) }));
    Ok(fd)
}

/// Ticks as a time; `default` for none.
fn time_of(ticks: u32, default: Option<Duration>) -> Option<Duration> {
    if ticks == 0 { default } else { Some(TICK * ticks) }
}

/// What the device carries.
#[derive(Clone, Copy)]
pub(crate) enum Carries {
    /// IP packets.
    Packets,
    /// Ethernet frames, to this station.
    Frames(Mac),
}

pub(crate) fn start(device_name: &str, own: &str, kernel: &str, prefix: i32, carries: Carries) -> Call {
    let started = open(device_name, own, kernel, prefix, carries).inspect_err(|why| eprintln!("fullpipe: {why}"));
    let host = started.map_err(|_| Code::NoConnection)?;
    *device() = Some(Device { host, sockets: BTreeMap::new() });
    Ok(0)
}

fn open(device_name: &str, own: &str, kernel: &str, prefix: i32, carries: Carries) -> Result<Host, String> {
    let ipv4 =
        |text: &str| -> Result<Ipv4Addr, String> { text.parse().map_err(|_| format!("{text:?} is no IPv4 address")) };
    let prefix = u8::try_from(prefix).ok().filter(|prefix| *prefix <= 32).ok_or("a prefix has 0 to 32 bits")?;
    let (own, kernel) = (ipv4(own)?, ipv4(kernel)?);
    let other_side = [(IpAddr::V4(kernel), prefix)];
    let port = match carries {
        Carries::Packets => Port::tun(device_name, MTU, &other_side),
        Carries::Frames(mac) if !mac.is_unicast() => return Err("that hardware address is no single station's".into()),
        Carries::Frames(mac) => {
            let prefixes = [Some(Prefix { addr: own.into(), bits: prefix }), None, None, None];
            // The kernel forwards, where it is set to.
            let setup = LinkSetup { mac, prefixes, gateway_v4: Some(kernel), gateway_v6: None };
            Port::tap(device_name, MTU, &other_side, setup)
        }
    };
    let port = port.map_err(|error| error.to_string())?;
    let settings = Settings { profile: Profile::NETBURNER, ..Settings::new(&[own.into()]) };
    Host::start(port, settings).map_err(|error| error.to_string())
}

pub(crate) fn stop(ticks: u32) {
    let Some(stopped) = device().take() else { return };
    let Device { host, sockets } = stopped;
    drop(sockets);
    if ticks > 0 {
        host.settle(TICK * ticks);
    }
}

pub(crate) fn connect(address: u32, local_port: u16, remote_port: u16, ticks: u32) -> Call {
    let host = host()?;
    let options = host.default_options();
    let peer = SocketAddr::from((Ipv4Addr::from_bits(address), remote_port));
    let limit = time_of(ticks, Some(CONNECT_LIMIT)).unwrap_or(CONNECT_LIMIT);
    if local_port != 0 {
        // The stack chooses ports at random, which RFC 6056 asks for.
        return Err(Code::NoneAvailable);
    }
    let connection = host.connect_with(peer, options, limit)?;
    add(Kind::Connection(connection), options)
}

pub(crate) fn listen(port: u16, max_pending: u8) -> Call {
    let host = host()?;
    let options = host.default_options();
    let backlog = u16::from(max_pending.max(1));
    let listener = host.listen(port, backlog, options).map_err(|_| Code::NoneAvailable)?;
    add(Kind::Listener(listener), options)
}

/// The new socket, and the peer's address and port.
pub(crate) fn accept(fd: i32, ticks: u16) -> Call<(i32, (u32, u16))> {
    let socket = socket(fd)?;
    let Kind::Listener(listener) = &socket.kind else { return Err(Code::NoSuchSocket) };
    let accepted = listener.accept(time_of(ticks.into(), None))?;
    let connection = accepted.ok_or(Code::Timeout)?;
    let options = options_of(&socket);
    // The listener's budgets may have changed since the connection began.
    connection.set_options(options).map_err(|_| Code::NoneAvailable)?;
    let peer = connection.peer();
    let address = match peer.ip() {
        IpAddr::V4(v4) => v4.to_bits(),
        IpAddr::V6(_) => 0,
    };
    Ok((add(Kind::Connection(connection), options)?, (address, peer.port())))
}

fn options_of(socket: &Socket) -> SocketOptions {
    *socket.options.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connection(socket: &Socket) -> Call<&Connection> {
    match &socket.kind {
        Kind::Connection(connection) => Ok(connection),
        Kind::Listener(_) => Err(Code::NoSuchSocket),
    }
}

pub(crate) fn read(fd: i32, out: &mut [u8], ticks: u32) -> Call {
    let socket = socket(fd)?;
    Ok(connection(&socket)?.read_within(out, time_of(ticks, None))? as i32)
}

pub(crate) fn write(fd: i32, data: &[u8]) -> Call {
    let socket = socket(fd)?;
    Ok(connection(&socket)?.write_within(data, Some(WRITE_LIMIT))? as i32)
}

pub(crate) fn write_all(fd: i32, data: &[u8]) -> Call {
    let mut done = 0;
    while done < data.len() {
        done += write(fd, &data[done..])? as usize;
    }
    Ok(done as i32)
}

pub(crate) fn close(fd: i32) -> Call {
    let closed = device().as_mut().and_then(|device| device.sockets.remove(&fd));
    closed.map(|_| 0).ok_or(Code::NoSuchSocket)
}

/// Changes a socket's options.
fn change(fd: i32, change: impl FnOnce(&mut SocketOptions)) -> Call {
    let socket = socket(fd)?;
    let mut options = socket.options.lock().unwrap_or_else(PoisonError::into_inner);
    let mut changed = *options;
    change(&mut changed);
    if let Kind::Connection(connection) = &socket.kind {
        connection.set_options(changed).map_err(|_| Code::NoneAvailable)?;
    }
    *options = changed;
    Ok(0)
}

pub(crate) fn set_flags(fd: i32, flags: i32, on: bool) -> Call {
    change(fd, |options| {
        if flags & SO_NONAGLE != 0 {
            options.no_nagle = on;
        }
        if flags & SO_NOPUSH != 0 {
            options.no_push = on;
        }
    })
}

pub(crate) fn flags(fd: i32) -> Call {
    let options = options_of(&*socket(fd)?);
    let bit = |set: bool, bit: i32| if set { bit } else { 0 };
    Ok(bit(options.no_nagle, SO_NONAGLE) | bit(options.no_push, SO_NOPUSH))
}

pub(crate) fn set_budget(fd: i32, buffers: i32, of: impl FnOnce(&mut Budgets) -> &mut u16) -> Call {
    let range = Budgets::UNSCALED;
    let buffers = u16::try_from(buffers).ok().filter(|buffers| range.contains(buffers)).ok_or(Code::NoneAvailable)?;
    change(fd, |options| *of(&mut options.budgets) = buffers)
}

pub(crate) fn set_user_timeout(fd: i32, ticks: u32) -> Call {
    let limit_ms = time_of(ticks, None).map(|limit| u32::try_from(limit.as_millis()).unwrap_or(u32::MAX - 1));
    change(fd, |options| options.user_timeout_ms = limit_ms)
}

/// The times are those of silence before the first probe, and between probes.
pub(crate) fn set_keepalive(fd: i32, ticks: [u32; 2], probes: u8) -> Call {
    const TICKS_PER_SECOND: u32 = 20;
    let [idle_s, interval_s] = ticks.map(|ticks| ticks.div_ceil(TICKS_PER_SECOND));
    if idle_s > 0 && (interval_s == 0 || probes == 0) {
        return Err(Code::NoneAvailable);
    }
    change(fd, |options| options.keepalive = (idle_s > 0).then_some(Keepalive { idle_s, interval_s, probes }))
}

pub(crate) fn free_count() -> u16 {
    host().map_or(0, |host| host.free_count())
}
