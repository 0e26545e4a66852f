//! The socket calls, as far as scripts make them.

use std::net::{IpAddr, SocketAddr};

use fullpipe_tcp::{
    socket::{Endpoint, Failure, Info, Socket, SocketOptions, State},
    stack::{ListenerId, SocketError, SocketId},
};

use fullpipe_units::Instant;

use crate::{
    host::{self, Held, Host, NO_HOST},
    notices::Notices,
    options::Settings,
    ready::Epoll,
    space::{self, Part},
    times::Times,
};

/// What a call gives: a number, or an error's.
pub(crate) type Outcome = Result<i64, i32>;

/// What a file descriptor stands for.
#[derive(Debug)]
pub(crate) enum File {
    Socket(Box<SocketFile>),
    Epoll(Epoll),
}

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Neither connected nor listening.
    Fresh,
    Listening(ListenerId),
    Connected(SocketId),
}

/// A socket as the application holds it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) kind: Kind,
    pub(crate) is_nonblocking: bool,
    pub(crate) local_port: Option<u16>,
    pub(crate) options: SocketOptions,
    pub(crate) settings: Settings,
    /// Whether the application was notified that the connection came about.
    pub(crate) connect_told: bool,
    /// Whether the application was notified why the connection ended.
    pub(crate) failure_told: bool,
    pub(crate) is_read_shut: bool,
    pub(crate) is_write_shut: bool,
    /// Where to connect with the first write: TCP_FASTOPEN_CONNECT, and the peer's cookie is known.
    pub(crate) late_peer: Option<SocketAddr>,
    pub(crate) notices: Notices,
    pub(crate) times: Times,
    /// Bytes that had arrived when some last did, and when that was.
    pub(crate) last_data: (u64, Instant),
}

impl SocketFile {
    pub(crate) fn new(host: &Host) -> Self {
        Self {
            kind: Kind::Fresh,
            is_nonblocking: false,
            local_port: None,
            options: SocketOptions {
                unsent_low: host.flags.unsent_low,
                ..SocketOptions::from_profile(&host.flags.profile)
            },
            settings: Settings::default(),
            connect_told: false,
            failure_told: false,
            is_read_shut: false,
            is_write_shut: false,
            late_peer: None,
            notices: Notices::default(),
            times: Times::new(host.now),
            last_data: (0, host.now),
        }
    }
}

impl SocketFile {
    /// Whether a write looks for room again when it has sent what there was room for.
    const fn looks_again(&self) -> bool {
        self.options.unsent_low.is_some() || self.settings.send_space.is_some()
    }
}

impl Host {
    pub(crate) fn file(&mut self, fd: i32) -> Result<&mut SocketFile, i32> {
        match self.files.get_mut(&fd) {
            Some(File::Socket(file)) => Ok(file),
            Some(File::Epoll(_)) => Err(libc::EINVAL),
            None => Err(libc::EBADF),
        }
    }

    /// Why the connection of `fd` has ended, once.
    pub(crate) fn take_failure(&mut self, fd: i32) -> Option<i32> {
        let Kind::Connected(id) = self.file(fd).ok()?.kind else { return None };
        let failure = self.stack.socket(id)?.failure()?;
        let file = self.file(fd).ok()?;
        let is_news = !std::mem::replace(&mut file.failure_told, true);
        is_news.then(|| errno_of(failure, self.flags.profile.name))
    }

    /// Begins to connect; the SYN leaves with the next change. `fast` asks for fast open.
    fn open(&mut self, fd: i32, peer: SocketAddr, fast: bool) -> Result<SocketId, i32> {
        let file = self.file(fd)?;
        file.options.fast_open |= fast;
        let (options, port) = (file.options, file.local_port);
        let remote = Endpoint::new(IpAddr::to_canonical(&peer.ip()), peer.port());
        let id = self.stack.connect(self.now, port, remote, options).map_err(|_| libc::EADDRNOTAVAIL)?;
        self.file(fd)?.kind = Kind::Connected(id);
        Ok(id)
    }

    /// After a write took `taken` bytes: what `MSG_EOR` and `MSG_ZEROCOPY` ask for besides.
    fn wrote(&mut self, fd: i32, taken: i64, how: WriteHow) -> Result<(), i32> {
        let Kind::Connected(id) = self.file(fd)?.kind else { return Ok(()) };
        if how.flags & libc::MSG_EOR != 0 {
            self.stack.end_record(self.now, id).map_err(|_| libc::EPIPE)?;
        }
        let base = self.file(fd)?.settings.counted_from;
        if self.file(fd)?.settings.timestamping != 0 && taken > 0 {
            let end = self.stack.socket(id).map_or(0, end_of_stream);
            self.file(fd)?.times.wrote(end, end.wrapping_sub(base + 1) as u32);
            self.note_times();
        }
        if how.flags & libc::MSG_ZEROCOPY != 0 && self.file(fd)?.settings.tells_copies && taken > 0 {
            let end = self.stack.socket(id).map_or(0, end_of_stream);
            self.file(fd)?.notices.wrote(end);
        }
        Ok(())
    }

    /// The first and the last write of `fd` that are acknowledged and not reported yet.
    pub(crate) fn take_notice(&mut self, fd: i32) -> Option<(u32, u32)> {
        let Kind::Connected(id) = self.file(fd).ok()?.kind else { return None };
        let acked = self.stack.socket(id)?.counts().bytes_acked;
        self.file(fd).ok()?.notices.take(acked)
    }

    /// What `TCP_INQ` tells after a read: the bytes that can be read, or one where only the end can.
    pub(crate) fn readable_hint(&mut self, fd: i32) -> Option<u32> {
        let file = self.file(fd).ok()?;
        let Kind::Connected(id) = file.kind else { return None };
        let tells = file.settings.tells_readable;
        let info = self.stack.info(id).filter(|_| tells)?;
        let at_end = matches!(info.state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
        Some(if info.readable == 0 { at_end.into() } else { info.readable })
    }

    /// Where the connection stands, and the send buffer that its application has set, where that is how Linux counts.
    fn send_space(&mut self, fd: i32) -> Option<(Info, u32)> {
        let file = self.file(fd).ok()?;
        let (Kind::Connected(id), space) = (file.kind, file.settings.send_space?) else { return None };
        Some((self.stack.info(id)?, space))
    }

    /// Whether who waits for room in the send buffer has it.
    pub(crate) fn has_send_space(&mut self, fd: i32) -> bool {
        self.send_space(fd).is_none_or(|(info, space)| space::is_open(&info, space))
    }

    /// The bytes of `fd`'s stream that are acknowledged.
    pub(crate) fn acked(&mut self, fd: i32) -> u64 {
        let Ok(Kind::Connected(id)) = self.file(fd).map(|file| file.kind) else { return 0 };
        self.stack.socket(id).map_or(0, |socket| socket.counts().bytes_acked)
    }

    /// Notes what has been sent and acknowledged, and what holds each connection from now on.
    pub(crate) fn note_times(&mut self) {
        let (now, stack) = (self.now, &mut self.stack);
        for file in self.files.values_mut() {
            let File::Socket(file) = file else { continue };
            let Kind::Connected(id) = file.kind else { continue };
            if let Some(socket) = stack.socket(id) {
                file.times.note(now, socket, file.settings.timestamping);
            }
        }
    }

    /// Notes when data arrives.
    pub(crate) fn note_arrivals(&mut self) {
        let (now, stack) = (self.now, &mut self.stack);
        for file in self.files.values_mut() {
            let File::Socket(file) = file else { continue };
            let Kind::Connected(id) = file.kind else { continue };
            // The handshake's end counts as an arrival.
            let count = |socket: &Socket| socket.counts().bytes_received + u64::from(socket.is_open());
            let received = stack.socket(id).map_or(0, count);
            if received != file.last_data.0 {
                file.last_data = (received, now);
            }
        }
    }

    /// Data bytes that a SYN to `peer` would carry, were fast open asked for.
    fn syn_room(&mut self, fd: i32, peer: SocketAddr) -> Result<usize, i32> {
        let options = SocketOptions { fast_open: true, ..self.file(fd)?.options };
        let remote = Endpoint::new(IpAddr::to_canonical(&peer.ip()), peer.port());
        Ok(self.stack.syn_room(self.now, remote, &options).into())
    }

    pub(crate) fn state(&mut self, id: SocketId) -> State {
        self.stack.socket(id).map_or(State::Closed, |socket| socket.state())
    }
}

/// Where in its stream what an application has written ends.
fn end_of_stream(socket: &Socket) -> u64 {
    let (info, counts) = (socket.info(), socket.counts());
    counts.bytes_acked + u64::from(info.outstanding) + u64::from(info.unsent)
}

/// The error that an application reads for a failure.
fn errno_of(failure: Failure, profile: &str) -> i32 {
    match failure {
        // FreeBSD: what hard ICMP errors mean.
        Failure::Unreachable if profile == "freebsd" => libc::ECONNREFUSED,
        Failure::Refused => libc::ECONNREFUSED,
        Failure::Reset => libc::ECONNRESET,
        Failure::TimedOut => libc::ETIMEDOUT,
        Failure::Unreachable => libc::EHOSTUNREACH,
        _ => libc::ECONNABORTED,
    }
}

/// A new file descriptor for `file`; `fd` is a real one, which packetdrill may close by itself.
pub(crate) fn add(held: &mut Held, fd: i32, file: impl FnOnce(&Host) -> File) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    if fd < 0 {
        return Err(libc::EMFILE);
    }
    let file = file(host);
    host.files.insert(fd, file);
    Ok(i64::from(fd))
}

pub(crate) fn bind(held: &mut Held, fd: i32, address: SocketAddr) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    host.file(fd)?.local_port = Some(address.port());
    Ok(0)
}

/// The address of this end.
pub(crate) fn local(held: &mut Held, fd: i32) -> Result<SocketAddr, i32> {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let file = host.file(fd)?;
    let (kind, port) = (file.kind, file.local_port);
    let tuple = match kind {
        Kind::Connected(id) => host.stack.tuple(id),
        _ => None,
    };
    Ok(match tuple {
        Some(tuple) => SocketAddr::new(tuple.local.addr, tuple.local.port),
        None => SocketAddr::new(host.flags.local, port.unwrap_or(0)),
    })
}

pub(crate) fn listen(held: &mut Held, fd: i32, backlog: i32) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let file = host.file(fd)?;
    let (mut options, port) = (file.options, file.local_port.unwrap_or(0));
    if file.kind != Kind::Fresh {
        return Err(libc::EINVAL);
    }
    let key = file.settings.fast_open_key;
    options.fast_open |= host.flags.fast_listeners;
    host.use_fast_open_key(key.unwrap_or(host.flags.fast_open_key));
    // One more than asked for, as Linux counts.
    let backlog = u16::try_from(backlog.max(0)).unwrap_or(u16::MAX).saturating_add(1);
    let listener = host.stack.listen(None, port, backlog, options).map_err(|_| libc::EADDRINUSE)?;
    host.file(fd)?.kind = Kind::Listening(listener);
    Ok(0)
}

/// Waits for a connection; `make_fd` gives its file descriptor.
pub(crate) fn accept(held: Held, fd: i32, make_fd: impl FnOnce() -> i32) -> Result<(i32, SocketAddr), i32> {
    let mut listening = None;
    let attempt = |host: &mut Host| -> Option<Result<SocketId, i32>> {
        let file = match host.file(fd) {
            Ok(file) => file,
            Err(errno) => return Some(Err(errno)),
        };
        let Kind::Listening(listener) = file.kind else { return Some(Err(libc::EINVAL)) };
        listening = Some((file.options, file.settings.clone()));
        let is_nonblocking = file.is_nonblocking;
        match host.stack.accept(host.now, listener) {
            Some(id) => Some(Ok(id)),
            None => is_nonblocking.then_some(Err(libc::EAGAIN)),
        }
    };
    let (mut held, result) = host::wait_for(held, attempt);
    let id = result.unwrap_or(Err(libc::EAGAIN))?;
    let host = held.as_mut().ok_or(NO_HOST)?;
    let mut file = SocketFile::new(host);
    if let Some((options, settings)) = listening {
        (file.options, file.settings) = (options, settings);
    }
    (file.kind, file.connect_told) = (Kind::Connected(id), true);
    let peer = host.stack.tuple(id).map(|tuple| tuple.remote).ok_or(libc::ECONNABORTED)?;
    let child = make_fd();
    host.files.insert(child, File::Socket(Box::new(file)));
    host.changed();
    Ok((child, SocketAddr::new(peer.addr, peer.port)))
}

pub(crate) fn connect(mut held: Held, fd: i32, peer: SocketAddr) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let file = host.file(fd)?;
    let is_nonblocking = file.is_nonblocking;
    match file.kind {
        Kind::Listening(_) => return Err(libc::EOPNOTSUPP),
        Kind::Fresh if file.late_peer.is_some() => return Err(libc::EISCONN),
        Kind::Fresh => {
            let connects_late = file.settings.connects_late;
            if connects_late && host.syn_room(fd, peer)? > 0 {
                host.file(fd)?.late_peer = Some(peer);
                return Ok(0);
            }
            host.open(fd, peer, connects_late)?;
            host.changed();
            if is_nonblocking {
                return Err(libc::EINPROGRESS);
            }
        }
        Kind::Connected(_) if file.connect_told => return Err(libc::EISCONN),
        Kind::Connected(_) => {}
    }
    wait_for_handshake(held, fd, is_nonblocking)
}

/// `connect` to no address (`tcp_disconnect`): the connection is reset, and the socket as good as new.
pub(crate) fn disconnect(held: &mut Held, fd: i32) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    if let Kind::Connected(id) = host.file(fd)?.kind {
        // The connection may have ended long ago.
        let _ended = host.stack.abort(host.now, id);
    }
    let file = host.file(fd)?;
    if let Kind::Listening(_) = file.kind {
        return Err(libc::EOPNOTSUPP);
    }
    (file.kind, file.late_peer, file.options.fast_open) = (Kind::Fresh, None, false);
    (file.connect_told, file.failure_told, file.is_read_shut, file.is_write_shut) = (false, false, false, false);
    host.changed();
    Ok(0)
}

fn wait_for_handshake(held: Held, fd: i32, is_nonblocking: bool) -> Outcome {
    let attempt = |host: &mut Host| -> Option<Outcome> {
        let Kind::Connected(id) = host.file(fd).ok()?.kind else { return Some(Err(libc::EINVAL)) };
        if let Some(errno) = host.take_failure(fd) {
            return Some(Err(errno));
        }
        match host.state(id) {
            State::SynSent | State::SynReceived => is_nonblocking.then_some(Err(libc::EALREADY)),
            State::Closed => Some(Err(libc::ECONNABORTED)),
            _ => {
                host.file(fd).ok()?.connect_told = true;
                Some(Ok(0))
            }
        }
    };
    host::wait_for(held, attempt).1.unwrap_or(Err(libc::EINPROGRESS))
}

/// How a read is meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadHow {
    pub(crate) flags: i32,
}

impl ReadHow {
    const fn has(self, flag: i32) -> bool {
        self.flags & flag != 0
    }
}

pub(crate) fn read(held: Held, fd: i32, out: &mut [u8], how: ReadHow) -> Outcome {
    let attempt = |host: &mut Host| -> Option<Outcome> {
        match try_read(host, fd, out, how) {
            Err(libc::EAGAIN) => {
                let stays = host.file(fd).is_ok_and(|file| file.is_nonblocking) || how.has(libc::MSG_DONTWAIT);
                stays.then_some(Err(libc::EAGAIN))
            }
            outcome => Some(outcome),
        }
    };
    let (mut held, outcome) = host::wait_for(held, attempt);
    if let Some(host) = held.as_mut() {
        host.changed();
    }
    outcome.unwrap_or(Err(libc::EAGAIN))
}

fn try_read(host: &mut Host, fd: i32, out: &mut [u8], how: ReadHow) -> Outcome {
    let file = host.file(fd)?;
    if how.has(libc::MSG_ERRQUEUE) {
        return Err(libc::EAGAIN);
    }
    let Kind::Connected(id) = file.kind else {
        return Err(if file.late_peer.is_some() { libc::EAGAIN } else { libc::ENOTCONN });
    };
    let is_read_shut = file.is_read_shut;
    let now = host.now;
    let result = if how.has(libc::MSG_PEEK) {
        host.stack.peek(id, out)
    } else if how.has(libc::MSG_TRUNC) {
        // Linux: the bytes are dropped.
        let mut dropped = vec![0; out.len()];
        host.stack.read(now, id, &mut dropped)
    } else {
        host.stack.read(now, id, out)
    };
    match result {
        Ok(len) => Ok(len as i64),
        Err(SocketError::WouldBlock) if is_read_shut => Ok(0),
        Err(SocketError::WouldBlock) => Err(libc::EAGAIN),
        Err(SocketError::Failed(_)) => host.take_failure(fd).map_or(Ok(0), Err),
        Err(_) => Err(libc::ENOTCONN),
    }
}

/// How a write is meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteHow {
    pub(crate) flags: i32,
}

/// Writes to a socket that may have to be connected first: MSG_FASTOPEN and TCP_FASTOPEN_CONNECT on Linux, any such
/// write on FreeBSD.
pub(crate) fn write_to(mut held: Held, fd: i32, data: &[u8], how: WriteHow, peer: Option<SocketAddr>) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let is_freebsd = host.flags.profile.name == "freebsd";
    let file = host.file(fd)?;
    let is_nonblocking = file.is_nonblocking || how.flags & libc::MSG_DONTWAIT != 0;
    let (kind, late_peer) = (file.kind, file.late_peer.take());
    let asks = how.flags & libc::MSG_FASTOPEN != 0;
    let id = match kind {
        Kind::Fresh if is_freebsd && peer.is_some() => {
            let id = host.open(fd, peer.ok_or(libc::EDESTADDRREQ)?, false)?;
            let taken = host.stack.write(host.now, id, data).map_err(|_| libc::EPIPE)?;
            host.changed();
            return Ok(taken as i64);
        }
        Kind::Fresh if asks && !host.flags.profile.fast_open.client => return Err(libc::EOPNOTSUPP),
        Kind::Fresh if asks || late_peer.is_some() => {
            let peer = late_peer.or(peer).ok_or(libc::EOPNOTSUPP)?;
            let room = host.syn_room(fd, peer)?;
            let id = host.open(fd, peer, true)?;
            let first = &data[..data.len().min(room)];
            let taken = host.stack.write(host.now, id, first).map_err(|_| libc::EPIPE)?;
            host.wrote(fd, taken as i64, how)?;
            host.changed();
            if is_nonblocking {
                return if taken > 0 { Ok(taken as i64) } else { Err(libc::EINPROGRESS) };
            }
            // The rest waits for the handshake's end, as the caller does.
            let taken = taken + host.stack.write(host.now, id, &data[taken..]).map_err(|_| libc::EPIPE)?;
            wait_for_handshake(held, fd, false)?;
            let rest = &data[taken..];
            let more = if rest.is_empty() { 0 } else { write(host::hold(), fd, rest, how)? };
            return Ok(taken as i64 + more);
        }
        Kind::Connected(id) if asks => id,
        _ => return write(held, fd, data, how),
    };
    if host.state(id) == State::SynSent && is_nonblocking {
        return Err(libc::EALREADY);
    }
    write(held, fd, data, how)
}

pub(crate) fn write(held: Held, fd: i32, data: &[u8], how: WriteHow) -> Outcome {
    let outcome = write_data(held, fd, data, how);
    if let (Ok(taken), Some(host)) = (outcome, host::hold().as_mut()) {
        host.wrote(fd, taken, how)?;
    }
    outcome
}

fn write_data(held: Held, fd: i32, data: &[u8], how: WriteHow) -> Outcome {
    let more = how.flags & libc::MSG_MORE != 0;
    let (mut taken, mut unpushed, mut waits) = (0, 0, false);
    let attempt = |host: &mut Host| -> Option<Outcome> {
        loop {
            let rest = &data[taken..];
            let part = match host.send_space(fd) {
                Some((info, space)) => space::next(&info, space, rest.len(), unpushed),
                None => Some(Part { len: rest.len(), push: true }),
            };
            let is_open = !waits || host.has_send_space(fd);
            let Part { len, push } = part.filter(|_| is_open).unwrap_or(Part { len: 0, push: true });
            let len = match try_write(host, fd, &rest[..len], more || !push) {
                Ok(len) => len as usize,
                Err(errno) => return Some(if taken > 0 { Ok(taken as i64) } else { Err(errno) }),
            };
            taken += len;
            unpushed = if push { 0 } else { unpushed + len as u32 };
            host.changed();
            if taken == data.len() {
                return Some(Ok(taken as i64));
            }
            waits = len == 0;
            let looks_again = host.file(fd).is_ok_and(|file| file.looks_again());
            if waits || !looks_again {
                break;
            }
        }
        let is_nonblocking = host.file(fd).is_ok_and(|file| file.is_nonblocking) || how.flags & libc::MSG_DONTWAIT != 0;
        is_nonblocking.then_some(if taken > 0 { Ok(taken as i64) } else { Err(libc::EAGAIN) })
    };
    let outcome = host::wait_for(held, attempt).1;
    outcome.unwrap_or(if taken > 0 { Ok(taken as i64) } else { Err(libc::EAGAIN) })
}

fn try_write(host: &mut Host, fd: i32, data: &[u8], more: bool) -> Outcome {
    let file = host.file(fd)?;
    let is_write_shut = file.is_write_shut;
    let Kind::Connected(id) = file.kind else {
        return Err(if file.kind == Kind::Fresh { libc::EPIPE } else { libc::ENOTCONN });
    };
    if let Some(errno) = host.take_failure(fd) {
        return Err(errno);
    }
    if is_write_shut {
        return Err(libc::EPIPE);
    }
    let is_open = host.stack.socket(id).is_some_and(|socket| socket.is_open());
    if !is_open && matches!(host.state(id), State::SynSent | State::SynReceived) {
        // As on Linux and FreeBSD, writing waits for the handshake.
        return if host.file(fd)?.is_nonblocking { Err(libc::EAGAIN) } else { Ok(0) };
    }
    let now = host.now;
    let taken = if more { host.stack.write_more(now, id, data) } else { host.stack.write(now, id, data) };
    taken.map(|len| len as i64).map_err(|_| libc::EPIPE)
}

pub(crate) fn close(held: &mut Held, fd: i32) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    match host.files.remove(&fd).ok_or(libc::EBADF)? {
        File::Epoll(_) => {}
        File::Socket(file) => match file.kind {
            Kind::Fresh => {}
            Kind::Listening(listener) => host.stack.close_listener(host.now, listener),
            Kind::Connected(id) => {
                let now = host.now;
                // The connection may have ended long ago.
                let _ended =
                    if file.settings.lingers_not { host.stack.abort(now, id) } else { host.stack.close(now, id) };
            }
        },
    }
    host.changed();
    Ok(0)
}

pub(crate) fn shutdown(held: &mut Held, fd: i32, how: i32) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let file = host.file(fd)?;
    let kind = file.kind;
    match kind {
        Kind::Fresh => return Err(libc::ENOTCONN),
        Kind::Listening(listener) => {
            file.kind = Kind::Fresh;
            host.stack.close_listener(host.now, listener);
        }
        Kind::Connected(id) => {
            if matches!(host.state(id), State::Closed | State::TimeWait) {
                return Err(libc::ENOTCONN);
            }
            let file = host.file(fd)?;
            file.is_read_shut |= how != libc::SHUT_WR;
            if how != libc::SHUT_RD {
                file.is_write_shut = true;
                host.stack.shutdown_write(host.now, id).map_err(|_| libc::ENOTCONN)?;
            }
        }
    }
    host.changed();
    Ok(0)
}
