//! What applications hold: connections and listeners.

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use fullpipe_tcp::{
    socket::{Counts, Info, SocketOptions},
    stack::{ListenerId, OpenError, SocketError, SocketId},
};

use crate::{Host, StackError, host::Wake};

/// A connection. Dropping it closes it: what was written is still sent.
#[derive(Debug)]
pub struct Connection {
    host: Host,
    id: SocketId,
    peer: SocketAddr,
    limit: Option<Duration>,
}

impl Connection {
    pub(crate) fn new(host: Host, id: SocketId, peer: SocketAddr) -> Self {
        Self { host, id, peer, limit: None }
    }

    /// Its name in the stack.
    pub fn id(&self) -> SocketId {
        self.id
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The host that it belongs to.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// How long reading and writing wait; `None` for ever.
    pub fn set_timeout(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Takes as much of `data` as there is room for, at once: zero where there is none.
    ///
    /// # Errors
    /// The connection is over.
    pub fn try_write(&self, data: &[u8]) -> Result<usize, StackError> {
        let taken = self.host.with(|stack, now| stack.write(now, self.id, data));
        taken.map_err(|source| self.failed("writing to", source))
    }

    /// Copies what has arrived; `None` where nothing has, zero at the end of the peer's data.
    ///
    /// # Errors
    /// The connection is over.
    pub fn try_read(&self, out: &mut [u8]) -> Result<Option<usize>, StackError> {
        match self.host.with(|stack, now| stack.read(now, self.id, out)) {
            Ok(len) => Ok(Some(len)),
            Err(SocketError::WouldBlock) => Ok(None),
            Err(source) => Err(self.failed("reading from", source)),
        }
    }

    /// Waits until everything written was acknowledged, at most for `limit`; whether it came to that.
    ///
    /// # Errors
    /// The connection is over.
    pub fn flush_acknowledged(&self, limit: Option<Duration>) -> Result<bool, StackError> {
        let drained = self.host.wait_for(Wake::Anything, limit, |stack, _| {
            let Some(socket) = stack.socket(self.id) else { return Some(Err(SocketError::Gone)) };
            if let Some(failure) = socket.failure() {
                return Some(Err(SocketError::Failed(failure)));
            }
            let held = socket.buffers();
            (held.transmit == 0 && held.unacknowledged == 0).then_some(Ok(()))
        })?;
        drained.transpose().map(|drained| drained.is_some()).map_err(|source| self.failed("writing to", source))
    }

    /// Waits until the handshake is over, at most for `limit`; whether it came to that.
    ///
    /// # Errors
    /// There will be no connection.
    pub fn stands_within(&self, limit: Duration) -> Result<bool, StackError> {
        let stood = self.host.wait_for(Wake::News, Some(limit), |stack, _| match stack.socket(self.id) {
            None => Some(Err(SocketError::Gone)),
            Some(socket) => match socket.failure() {
                Some(failure) => Some(Err(SocketError::Failed(failure))),
                None => socket.state().is_synchronized().then_some(Ok(())),
            },
        })?;
        stood.transpose().map(|stood| stood.is_some()).map_err(|source| self.failed("connecting to", source))
    }

    /// Ends this end's direction; the other stays open.
    ///
    /// # Errors
    /// The connection is over.
    pub fn shutdown_write(&self) -> Result<(), StackError> {
        let closed = self.host.with(|stack, now| stack.shutdown_write(now, self.id));
        closed.map_err(|source| self.failed("closing the connection to", source))
    }

    /// Lets go: what was written is still sent.
    pub fn close(self) {}

    /// Resets the connection and drops everything.
    pub fn abort(&self) {
        self.host.with(|stack, now| stack.abort(now, self.id).ok());
    }

    /// Sets options: budgets, Nagle, push, keepalive.
    ///
    /// # Errors
    /// A budget out of range.
    pub fn set_options(&self, options: SocketOptions) -> Result<(), OpenError> {
        self.host.with(|stack, now| stack.set_options(now, self.id, options))
    }

    /// The connection's figures; `None` when it is over.
    pub fn info(&self) -> Option<Info> {
        self.host.with(|stack, _| stack.info(self.id))
    }

    /// What the connection has counted; `None` when it is over.
    pub fn counts(&self) -> Option<Counts> {
        self.host.with(|stack, _| stack.socket(self.id).map(|socket| *socket.counts()))
    }

    /// Copies what has arrived, waiting for it at most for `limit`; zero at the end of the peer's data.
    ///
    /// # Errors
    /// The connection is over, or nothing came in time.
    pub fn read_within(&self, out: &mut [u8], limit: Option<Duration>) -> Result<usize, StackError> {
        let read = self.host.wait_for(Wake::News, limit, |stack, now| match stack.read(now, self.id, out) {
            Err(SocketError::WouldBlock) => None,
            result => Some(result),
        })?;
        match read {
            Some(result) => result.map_err(|source| self.failed("reading from", source)),
            None => Err(self.late("reading from", limit)),
        }
    }

    /// Takes at least one byte of `data`, waiting for room at most for `limit`.
    ///
    /// # Errors
    /// The connection is over, or there was no room in time.
    pub fn write_within(&self, data: &[u8], limit: Option<Duration>) -> Result<usize, StackError> {
        let written = self.host.wait_for(Wake::News, limit, |stack, now| match stack.write(now, self.id, data) {
            Ok(0) if !data.is_empty() => None,
            result => Some(result),
        })?;
        match written {
            Some(result) => result.map_err(|source| self.failed("writing to", source)),
            None => Err(self.late("writing to", limit)),
        }
    }

    fn failed(&self, operation: &'static str, source: SocketError) -> StackError {
        StackError::Connection { operation, peer: self.peer, source }
    }

    fn late(&self, operation: &'static str, limit: Option<Duration>) -> StackError {
        StackError::TimedOut { operation, address: self.peer, seconds: limit.map_or(0.0, |limit| limit.as_secs_f64()) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.host.release(self.id);
    }
}

impl Read for Connection {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_within(out, self.limit)?)
    }
}

impl Write for Connection {
    /// Takes at least one byte; waits until there is room for it.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(self.write_within(data, self.limit)?)
    }

    /// Nothing waits here: what the windows allow has left.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A listening port. Dropping it resets what was not accepted.
#[derive(Debug)]
pub struct Listener {
    host: Host,
    id: ListenerId,
    address: SocketAddr,
}

impl Listener {
    pub(crate) fn new(host: Host, id: ListenerId, address: SocketAddr) -> Self {
        Self { host, id, address }
    }

    /// Where it listens: the stack's first address and the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes the next connection, waiting for it at most for `limit`; `None` where none came.
    ///
    /// # Errors
    /// The port is gone.
    pub fn accept(&self, limit: Option<Duration>) -> Result<Option<Connection>, StackError> {
        let accepted = self.host.wait_for(Wake::News, limit, |stack, now| {
            let id = stack.accept(now, self.id)?;
            let remote = stack.tuple(id)?.remote;
            Some((id, SocketAddr::new(remote.addr, remote.port)))
        })?;
        Ok(accepted.map(|(id, peer)| Connection::new(self.host.clone(), id, peer)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.host.with(|stack, now| stack.close_listener(now, self.id));
    }
}
