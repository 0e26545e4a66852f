//! Socket options and what else scripts ask about a socket.

use std::{collections::BTreeMap, num::NonZeroU16};

use fullpipe_tcp::{SecretKey, profile::Keepalive, socket::State};

use crate::{
    calls::{Kind, Outcome},
    flags,
    host::{BUFFERS, Held, Host, NO_HOST},
    info,
};

/// What was set on a socket besides what the engine knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// What was set, to be read back.
    values: BTreeMap<(i32, i32), i32>,
    /// SO_LINGER with no time: closing resets.
    pub(crate) lingers_not: bool,
    /// TCP_FASTOPEN_CONNECT: opening waits for the first write.
    pub(crate) connects_late: bool,
    /// SO_ZEROCOPY.
    pub(crate) tells_copies: bool,
    /// TCP_INQ.
    pub(crate) tells_readable: bool,
    /// SO_SNDBUF as Linux counts it: data, and what each packet takes besides.
    pub(crate) send_space: Option<u32>,
    /// SO_TIMESTAMPING: what it asks for, and where in the stream the count of bytes begins.
    pub(crate) timestamping: i32,
    pub(crate) counted_from: u64,
    /// TCP_FASTOPEN_KEY.
    pub(crate) fast_open_key: Option<SecretKey>,
}

/// `SOCK_MIN_SNDBUF`: two packets of 2 KiB.
const LEAST_SEND_SPACE: u32 = 2 * (2_048 + 256);

/// SO_MEMINFO's number of words.
const MEMINFO_BYTES: usize = 36;
const SO_MEMINFO: i32 = 55;
const TCP_CC_INFO: i32 = 26;
const TCP_FASTOPEN_CONNECT: i32 = 30;
const TCP_FASTOPEN_KEY: i32 = 33;
const TCP_NOTSENT_LOWAT: i32 = 25;
/// The option, and the control message, of times of sending.
pub(crate) const SO_TIMESTAMPING: i32 = 37;
/// FreeBSD's, by their numbers and 1000.
const TCP_NOOPT: i32 = 1_008;
const TCP_KEEPINIT: i32 = 1_128;
const TCP_REMOTE_UDP_ENCAPS_PORT: i32 = 1_071;
/// The option, and the control message, of `TCP_INQ`.
pub(crate) const TCP_INQ: i32 = 36;

impl Host {
    /// Applies a socket's options to its connection, if it has one.
    fn apply(&mut self, fd: i32) -> Outcome {
        let file = self.file(fd)?;
        let (kind, options) = (file.kind, file.options);
        match kind {
            Kind::Connected(id) => self.stack.set_options(self.now, id, options).map_err(|_| libc::EINVAL)?,
            Kind::Listening(id) => self.stack.set_listener_options(id, options).map_err(|_| libc::EINVAL)?,
            Kind::Fresh => {}
        }
        self.changed();
        Ok(0)
    }

    /// Bytes of a socket's receive buffer. FreeBSD rounds it up to whole segments once their size is agreed upon.
    fn receive_space(&mut self, kind: Kind) -> i32 {
        let space = self.flags.receive_space;
        let agreed = match kind {
            Kind::Connected(id) if self.flags.profile.name == "freebsd" => self.stack.info(id),
            _ => None,
        };
        let space = match agreed.filter(|info| info.state != State::SynSent) {
            Some(info) => space.next_multiple_of(info.mss.max(1)),
            None => space,
        };
        i32::try_from(space).unwrap_or(i32::MAX)
    }
}

pub(crate) fn set(held: &mut Held, fd: i32, name: (i32, i32), value: &[u8]) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let is_linux = host.flags.profile.name == "linux";
    let usual = host.flags.keepalive;
    let tunnels = host.flags.udp_port.is_some();
    let usual_low = host.flags.unsent_low;
    let acked = host.acked(fd);
    let file = host.file(fd)?;
    let number = match (name.0, value) {
        // Options of IP may be bytes.
        (libc::SOL_IP, [byte]) => Some((*byte).into()),
        _ => value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)),
    };
    if let (libc::SOL_SOCKET, libc::SO_LINGER) = name {
        let word = |at: usize| value.get(at..at + 4).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0));
        file.settings.lingers_not = word(0) && !word(4);
        return Ok(0);
    }
    if let (libc::SOL_TCP, TCP_FASTOPEN_KEY) = name {
        let key = SecretKey(*value.first_chunk().filter(|_| value.len() == 16).ok_or(libc::EINVAL)?);
        file.settings.fast_open_key = Some(key);
        if let Kind::Listening(_) = file.kind {
            host.use_fast_open_key(key);
        }
        return Ok(0);
    }
    if let (libc::SOL_TCP, TCP_REMOTE_UDP_ENCAPS_PORT) = name {
        // Only before there is a connection, and where the system has a port for it.
        let port = number.and_then(|number| u16::try_from(number).ok()).ok_or(libc::EINVAL)?;
        if file.kind != Kind::Fresh || (port > 0 && !tunnels) {
            return Err(libc::EINVAL);
        }
        file.options.udp_port = NonZeroU16::new(port);
        return Ok(0);
    }
    let Some(number) = number else {
        return if name == (libc::SOL_TCP, libc::TCP_CONGESTION) { Ok(0) } else { Err(libc::EINVAL) };
    };
    file.settings.values.insert(name, number);
    let unsigned = number.max(0).unsigned_abs();
    let keepalive = file.options.keepalive.unwrap_or(usual);
    match name {
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
            file.options.budgets.receive = flags::segments(unsigned, None);
            if is_linux {
                file.settings.values.insert(name, number.saturating_mul(2));
            }
        }
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            file.options.budgets.transmit = flags::segments(unsigned, None);
            if is_linux {
                file.settings.values.insert(name, number.saturating_mul(2));
                file.settings.send_space = Some(unsigned.saturating_mul(2).max(LEAST_SEND_SPACE));
                // That decides, not the number of buffers.
                file.options.budgets.transmit = BUFFERS;
            }
        }
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => file.options.keepalive = (number != 0).then_some(keepalive),
        (libc::SOL_TCP, TCP_FASTOPEN_CONNECT) => {
            file.settings.connects_late = number != 0;
            if !host.flags.profile.fast_open.client {
                return Err(libc::EOPNOTSUPP);
            }
            return Ok(0);
        }
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY) => file.settings.tells_copies = number != 0,
        (libc::SOL_TCP, TCP_INQ) => file.settings.tells_readable = number != 0,
        (libc::SOL_TCP, libc::TCP_FASTOPEN) => file.options.fast_open = number != 0,
        (libc::SOL_TCP, libc::TCP_SYNCNT) => {
            file.options.syn_retries = u8::try_from(number).map_err(|_| libc::EINVAL)?;
        }
        (libc::SOL_TCP, libc::TCP_MAXSEG) => {
            file.options.max_segment = u16::try_from(number).map_err(|_| libc::EINVAL)?;
        }
        (libc::SOL_TCP, TCP_NOOPT) => file.options.no_options = number != 0,
        (libc::SOL_TCP, TCP_KEEPINIT) => file.options.open_timeout_ms = Some(unsigned.saturating_mul(1_000)),
        (libc::SOL_TCP, libc::TCP_NODELAY) => {
            file.options.no_nagle = number != 0;
            let kind = file.kind;
            host.apply(fd)?;
            if let (Kind::Connected(id), true) = (kind, number != 0) {
                // Linux: what is corked leaves, once.
                host.stack.flush(host.now, id).map_err(|_| libc::EINVAL)?;
                host.changed();
            }
            return Ok(0);
        }
        (libc::SOL_TCP, TCP_NOTSENT_LOWAT) => {
            let mark = number.cast_unsigned();
            file.options.unsent_low = if mark > 0 { Some(mark) } else { usual_low };
        }
        (libc::SOL_SOCKET, SO_TIMESTAMPING) => {
            (file.settings.timestamping, file.settings.counted_from) = (number, acked);
            return Ok(0);
        }
        (libc::SOL_TCP, libc::TCP_CORK) => {
            file.options.corked = number != 0;
        }
        (libc::SOL_TCP, libc::TCP_USER_TIMEOUT) => file.options.user_timeout_ms = (unsigned > 0).then_some(unsigned),
        (libc::SOL_TCP, libc::TCP_KEEPIDLE) => {
            file.options.keepalive = Some(Keepalive { idle_s: unsigned, ..keepalive })
        }
        (libc::SOL_TCP, libc::TCP_KEEPINTVL) => {
            file.options.keepalive = Some(Keepalive { interval_s: unsigned, ..keepalive });
        }
        (libc::SOL_TCP, libc::TCP_KEEPCNT) => {
            let probes = u8::try_from(unsigned).map_err(|_| libc::EINVAL)?;
            file.options.keepalive = Some(Keepalive { probes, ..keepalive });
        }
        // Not in the engine. Fast open falls back to opening as always.
        (libc::SOL_TCP, libc::TCP_MD5SIG) => return Err(libc::ENOPROTOOPT),
        _ => return Ok(0),
    }
    host.apply(fd)
}

/// Writes the option's value into `out` and returns its length.
pub(crate) fn read(host: &mut Host, fd: i32, name: (i32, i32), out: &mut [u8]) -> Outcome {
    let file = host.file(fd)?;
    let stored = file.settings.values.get(&name).copied();
    let kind = file.kind;
    let number = match name {
        (libc::SOL_TCP, libc::TCP_INFO) => {
            let bytes = info::tcp_info(host, fd)?;
            return Ok(copy(&bytes, out));
        }
        (libc::SOL_TCP, TCP_CC_INFO) => return Ok(0),
        (libc::SOL_SOCKET, SO_MEMINFO) => return Ok(copy(&[0; MEMINFO_BYTES], out)),
        (libc::SOL_SOCKET, libc::SO_ERROR) => host.take_failure(fd).unwrap_or(0),
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => stored.unwrap_or_else(|| host.receive_space(kind)),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => stored.unwrap_or(host.flags.send_space as i32),
        (libc::SOL_TCP, libc::TCP_MAXSEG) => match kind {
            Kind::Connected(id) => host.stack.info(id).map_or(536, |info| info.mss as i32),
            _ => stored.unwrap_or(536),
        },
        (libc::SOL_TCP, TCP_KEEPINIT) => (file.options.open_timeout_ms.unwrap_or(0) / 1_000) as i32,
        (libc::SOL_TCP, libc::TCP_KEEPIDLE) => file.options.keepalive.unwrap_or(host.flags.keepalive).idle_s as i32,
        (libc::SOL_TCP, libc::TCP_KEEPINTVL) => {
            file.options.keepalive.unwrap_or(host.flags.keepalive).interval_s as i32
        }
        (libc::SOL_TCP, libc::TCP_KEEPCNT) => file.options.keepalive.unwrap_or(host.flags.keepalive).probes.into(),
        (libc::SOL_TCP, TCP_REMOTE_UDP_ENCAPS_PORT) => match kind {
            Kind::Connected(id) => host.stack.tuple(id).and_then(|tuple| tuple.udp_port()).map_or(0, i32::from),
            _ => file.options.udp_port.map_or(0, |port| port.get().into()),
        },
        (libc::SOL_IP, libc::IP_TTL) => stored.unwrap_or_else(|| host.flags.profile.ttl.into()),
        _ => stored.unwrap_or(0),
    };
    Ok(copy(&number.to_ne_bytes(), out))
}

fn copy(bytes: &[u8], out: &mut [u8]) -> i64 {
    let len = bytes.len().min(out.len());
    out[..len].copy_from_slice(&bytes[..len]);
    len as i64
}

/// `F_GETFL` and `F_SETFL`.
pub(crate) fn control(held: &mut Held, fd: i32, command: i32, argument: i32) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let file = host.file(fd)?;
    match command {
        libc::F_GETFL => Ok(i64::from(libc::O_RDWR | if file.is_nonblocking { libc::O_NONBLOCK } else { 0 })),
        libc::F_SETFL => {
            file.is_nonblocking = argument & libc::O_NONBLOCK != 0;
            Ok(0)
        }
        _ => Err(libc::EINVAL),
    }
}

/// SIOCOUTQNSD: bytes written and not sent.
const SIOCOUTQNSD: u64 = 0x894b;

/// `SIOCINQ`, `SIOCOUTQ`, `SIOCOUTQNSD`: the number asked for.
pub(crate) fn query(held: &mut Held, fd: i32, request: u64) -> Result<i32, i32> {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let Kind::Connected(id) = host.file(fd)?.kind else { return Err(libc::EINVAL) };
    let info = host.stack.info(id).ok_or(libc::EINVAL)?;
    let handshake = matches!(info.state, State::SynSent | State::SynReceived);
    Ok(match request {
        libc::FIONREAD if handshake => 0,
        libc::FIONREAD => info.readable as i32,
        libc::TIOCOUTQ => (info.outstanding + info.unsent) as i32,
        SIOCOUTQNSD => info.unsent as i32,
        _ => return Err(libc::EINVAL),
    })
}
