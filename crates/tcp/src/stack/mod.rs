//! The stack: sockets behind one device that carries IP packets.
//!
//! It has the house's shape. Packets that arrive go to [`Stack::on_packet`], time to [`Stack::on_timeout`]; after
//! either, and after any call on a socket, [`Stack::poll_transmit`] gives packets until there is none, and
//! [`Stack::next_timeout`] tells when to come back. All memory is in the [`Storage`] that the caller gives.
//! What is *not* here: link layers ([`link`](crate::link) has one), routing (there is one device), waiting.

#[cfg(feature = "platforms")]
mod datagram;
mod error;
#[cfg(feature = "fast-open")]
mod fast;
mod inner;
mod input;
mod listen;
mod output;
mod paths;
mod setup;
mod table;

use core::net::IpAddr;

use fullpipe_units::Instant;

#[cfg(feature = "platforms")]
pub use self::datagram::{Datagram, Departing, Plain};
pub use self::{
    error::{OpenError, SocketError},
    input::Dropped,
    output::Transmit,
    setup::{Config, Device, StackMemory, Storage},
    table::Entry,
};
use self::{
    listen::Listener,
    table::{Heads, NIL, Role, Table},
};
use crate::{
    pool::{Pool, Queue},
    profile::Profile,
    socket::{Context, Endpoint, Events, Info, Socket, SocketOptions, State, Tuple, Writing},
    tally::Tally,
};

/// The name of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId {
    index: u16,
    generation: u16,
}

/// The name of a listening port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(SocketId);

/// What a stack has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StackCounts {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Packets that left.
    pub packets_out: u64,
    /// Packets dropped on arrival, of any cause.
    pub dropped: u64,
    /// Of these, for a wrong checksum.
    pub bad_checksums: u32,
    /// Of these, malformed otherwise.
    pub malformed: u32,
    /// Resets sent for segments of no connection.
    pub resets_sent: u32,
    /// SYNs that found the backlog full.
    pub backlog_full: u32,
    /// Cookies sent for them.
    pub cookies_sent: u32,
    /// Cookies that came back.
    pub cookies_taken: u32,
    /// Connections that found no free entry.
    pub no_entry: u32,
    /// Answers (resets, echoes) that found no buffer.
    pub answers_dropped: u32,
}

impl StackCounts {
    const NONE: Self = Self {
        packets_in: 0,
        packets_out: 0,
        dropped: 0,
        bad_checksums: 0,
        malformed: 0,
        resets_sent: 0,
        backlog_full: 0,
        cookies_sent: 0,
        cookies_taken: 0,
        no_entry: 0,
        answers_dropped: 0,
    };
}

/// What happened on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Of a connection.
    Socket(SocketId, Events),
    /// A connection can be accepted.
    Acceptable(ListenerId),
}

/// The stack's state besides sockets and buffers.
#[derive(Debug)]
#[repr(C)]
struct Core {
    next_id: u16,
    /// The answer that left last: its buffer is still being read.
    leaving: u16,
    /// Whole packets that wait to leave: answers that belong to no connection.
    answers: Queue,
    next_port: u16,
    counts: Tally<StackCounts>,
    config: Config,
    paths: paths::Paths,
    /// What is remembered of peers for fast open, and the key before the last change.
    #[cfg(feature = "fast-open")]
    peers: crate::fast_open::Cache,
    #[cfg(feature = "fast-open")]
    former_key: Option<crate::SecretKey>,
}

/// Everything that a call works on besides [`Core`].
struct Parts<'a> {
    pool: Pool<'a>,
    table: Table<'a>,
}

/// A host's IP and TCP over one device.
#[derive(Debug)]
#[repr(C)]
pub struct Stack<S> {
    heads: Heads,
    storage: S,
    core: Core,
}

impl<S: Storage> Stack<S> {
    /// A stack in `storage`, which nothing else has used.
    pub const fn new(storage: S, config: Config) -> Self {
        let core = Core {
            config,
            counts: Tally::new(StackCounts::NONE),
            answers: Queue::EMPTY,
            leaving: NIL,
            next_port: 0,
            next_id: 0,
            paths: paths::Paths::new(),
            #[cfg(feature = "fast-open")]
            peers: crate::fast_open::Cache::new(),
            #[cfg(feature = "fast-open")]
            former_key: None,
        };
        Self { storage, heads: Heads::new(), core }
    }

    fn parts(&mut self) -> (&mut Core, Parts<'_>) {
        let (pool, entries) = self.storage.parts();
        (&mut self.core, Parts { pool, table: Table { entries, heads: &mut self.heads } })
    }

    /// What was counted; without the feature `counts`, nothing.
    pub const fn counts(&self) -> &StackCounts {
        self.core.counts.or(&StackCounts::NONE)
    }

    /// The set-up.
    pub const fn config(&self) -> &Config {
        &self.core.config
    }

    /// The policy, to change it: what a handshake agrees upon counts from the next one on, timers and the like at once.
    pub const fn profile_mut(&mut self) -> &mut Profile {
        &mut self.core.config.profile
    }

    /// The pool: free buffers, high-water mark.
    pub fn pool(&mut self) -> Pool<'_> {
        self.storage.parts().0
    }

    /// The number of free packet buffers.
    pub fn free_count(&mut self) -> u16 {
        self.pool().free_count()
    }

    /// Buffers that connections and waiting answers hold, counted one by one. With [`free_count`](Self::free_count)
    /// it makes the whole pool, unless buffers leak.
    pub fn held_count(&mut self) -> u16 {
        let (core, parts) = self.parts();
        let held = |entry: &Entry| match &entry.role {
            Role::Connection(socket) => {
                let held = socket.buffers();
                held.receive + held.out_of_order + held.transmit + held.unacknowledged
            }
            _ => 0,
        };
        let answers = core.answers.count + u16::from(core.leaving != NIL);
        parts.table.entries.iter().map(held).sum::<u16>() + answers
    }

    /// Entries in use, by connections and listeners.
    pub const fn sockets_in_use(&self) -> u16 {
        self.heads.in_use()
    }

    /// Connections that still owe the peer something: data, the FIN, or the handshake. Those that only wait (for the
    /// peer's FIN, for the end of TIME-WAIT) don't count.
    pub fn unfinished(&mut self) -> u16 {
        let (_, parts) = self.parts();
        let owes = |entry: &&Entry| match &entry.role {
            Role::Connection(socket) => {
                !matches!(socket.state(), State::Closed | State::Established | State::FinWait2 | State::TimeWait)
                    || socket.buffers().transmit + socket.buffers().unacknowledged > 0
            }
            _ => false,
        };
        parts.table.entries.iter().filter(owes).count() as u16
    }

    /// Opens a connection (RFC 9293, section 3.10.1). Without a local port one is chosen (RFC 6056).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect(
        &mut self,
        now: Instant,
        local_port: Option<u16>,
        remote: Endpoint,
        options: SocketOptions,
    ) -> Result<SocketId, OpenError> {
        let (core, mut parts) = self.parts();
        core.connect(now, &mut parts, local_port, remote, options)
    }

    /// Listens on a port, at one address or all (RFC 9293, section 3.10.1). Connections get `options`; at most
    /// `backlog` are half open or wait to be accepted.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn listen(
        &mut self,
        addr: Option<IpAddr>,
        port: u16,
        backlog: u16,
        options: SocketOptions,
    ) -> Result<ListenerId, OpenError> {
        let (core, mut parts) = self.parts();
        core.check_budgets(&parts, &options)?;
        if addr.is_some_and(|addr| !core.is_local(addr)) {
            return Err(OpenError::NoAddress);
        }
        let clash = parts.table.entries.iter().any(
            |entry| matches!(&entry.role, Role::Listener(listener) if listener.port == port && listener.is_at(addr)),
        );
        if clash || port == 0 {
            let addr = addr.or(core.config.addresses[0]).unwrap_or(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED));
            return Err(OpenError::InUse(Endpoint { addr, port }));
        }
        let listener = Listener { addr, port, options, backlog: backlog.max(1), waiting: 0, cookie_sent: None };
        let at = parts.table.take(Role::Listener(listener)).ok_or(OpenError::NoEntry)?;
        parts.table.link_listener(at);
        Ok(ListenerId(parts.name(at)))
    }

    /// Changes what connections of a listener will get.
    ///
    /// # Errors
    /// A budget out of range; `NoEntry` where the listener is gone.
    pub fn set_listener_options(&mut self, listener: ListenerId, options: SocketOptions) -> Result<(), OpenError> {
        let (core, mut parts) = self.parts();
        core.check_budgets(&parts, &options)?;
        let at = parts.entry_of(listener.0).ok_or(OpenError::NoEntry)?;
        parts.table.listener(at).ok_or(OpenError::NoEntry)?.options = options;
        Ok(())
    }

    /// Takes the next connection whose handshake is over.
    pub fn accept(&mut self, now: Instant, listener: ListenerId) -> Option<SocketId> {
        let (core, mut parts) = self.parts();
        let at = parts.entry_of(listener.0)?;
        let child = core.take_accepted(now, &mut parts, at)?;
        Some(parts.name(child))
    }

    /// Whether a connection waits to be accepted.
    pub fn has_acceptable(&mut self, listener: ListenerId) -> bool {
        let (_, mut parts) = self.parts();
        let Some(at) = parts.entry_of(listener.0) else { return false };
        parts.table.has_acceptable(at)
    }

    /// Stops listening. Connections that were not accepted are reset.
    pub fn close_listener(&mut self, now: Instant, listener: ListenerId) {
        let (core, mut parts) = self.parts();
        let Some(at) = parts.entry_of(listener.0) else { return };
        for child in 0..parts.table.entries.len() as u16 {
            if parts.table.entry(child).is_some_and(|entry| entry.parent == at) {
                core.on_socket(now, &mut parts, child, |socket, cx| {
                    socket.close(cx);
                    socket.abort(cx);
                });
                parts.table.forget_parent(child);
            }
        }
        parts.table.unlink_listener(at);
        parts.table.give(at);
    }

    /// Copies what fits of `data` into the send queue and returns how much: zero where the budget or the pool is
    /// used up.
    ///
    /// # Errors
    /// `Gone`, `Failed`, or `Closed` where this end has closed.
    pub fn write(&mut self, now: Instant, id: SocketId, data: &[u8]) -> Result<usize, SocketError> {
        self.write_as(now, id, data, Writing::New)
    }

    /// Goes on with a write that waited for room: to an algorithm that goes by rates, an application that waits in one call has
    /// not run out of data.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    #[cfg(feature = "platforms")]
    pub fn write_on(&mut self, now: Instant, id: SocketId, data: &[u8]) -> Result<usize, SocketError> {
        self.write_as(now, id, data, Writing::GoesOn)
    }

    /// Writes as [`write`](Self::write) does, when more follows at once (`MSG_MORE`): what is less than a segment waits for
    /// that, or until something arrives, [`Profile::no_push_us`] at the most, and is not pushed. Without the feature `platforms`
    /// it is pushed, and leaves as after [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn write_more(&mut self, now: Instant, id: SocketId, data: &[u8]) -> Result<usize, SocketError> {
        self.write_as(now, id, data, Writing::More)
    }

    /// Lets go what waits for more data: under SO_NOPUSH, TCP_CORK, or after [`write_more`](Self::write_more).
    ///
    /// # Errors
    /// `Gone`.
    pub fn flush(&mut self, now: Instant, id: SocketId) -> Result<(), SocketError> {
        self.with(now, id, |socket, _| socket.flush())
    }

    /// So many segments of a connection leave next without waiting for more, where its profile gathers bursts
    /// (`tcp_push_one`).
    #[cfg(feature = "platforms")]
    pub fn push(&mut self, id: SocketId, segments: u8) {
        if let Some(socket) = self.open_socket(id) {
            socket.push(segments);
        }
    }

    fn write_as(&mut self, now: Instant, id: SocketId, data: &[u8], how: Writing) -> Result<usize, SocketError> {
        self.with(now, id, |socket, cx| {
            if let Some(failure) = socket.failure() {
                return Err(SocketError::Failed(failure));
            }
            if !socket.is_write_open() {
                return Err(SocketError::Closed);
            }
            Ok(socket.write(cx, data, how))
        })?
    }

    /// Ends a record: what is written next begins a segment of its own.
    ///
    /// # Errors
    /// `Gone`.
    pub fn end_record(&mut self, now: Instant, id: SocketId) -> Result<(), SocketError> {
        self.with(now, id, Socket::end_record)
    }

    /// Copies what has arrived into `out` and returns how much; zero at the end of the peer's data.
    ///
    /// # Errors
    /// `WouldBlock` where nothing has arrived, `Gone`, `Failed`.
    pub fn read(&mut self, now: Instant, id: SocketId, out: &mut [u8]) -> Result<usize, SocketError> {
        let mut rest = &mut *out;
        self.read_pieces(now, id, rest.len(), |piece| {
            let (front, back) = core::mem::take(&mut rest).split_at_mut(piece.len());
            front.copy_from_slice(piece);
            rest = back;
        })
    }

    /// Throws away up to `most` bytes of what has arrived, and returns how much: what Linux does for `MSG_TRUNC` (tcp(7)).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn discard(&mut self, now: Instant, id: SocketId, most: usize) -> Result<usize, SocketError> {
        self.read_pieces(now, id, most, |_| ())
    }

    #[inline]
    fn read_pieces(
        &mut self,
        now: Instant,
        id: SocketId,
        most: usize,
        take: impl FnMut(&[u8]),
    ) -> Result<usize, SocketError> {
        let (core, mut parts) = self.parts();
        let at = parts.connection_of(id).ok_or(SocketError::Gone)?;
        let mut cx = core.context(now, &mut parts.pool);
        let socket = parts.table.socket(at).ok_or(SocketError::Gone)?;
        let len = socket.read(&mut cx, most, take);
        let (failure, is_at_end) = (socket.failure(), socket.is_at_end());
        // Reading starts no timer and is no news: all that may follow is a larger window to tell of.
        if !socket.is_at_rest() {
            parts.table.make_ready(at);
        }
        match failure {
            _ if len > 0 || most == 0 || is_at_end && failure.is_none() => Ok(len),
            Some(failure) => Err(SocketError::Failed(failure)),
            None => Err(SocketError::WouldBlock),
        }
    }

    /// Copies what has arrived into `out` as [`read`](Self::read) does, and leaves it there.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn peek(&mut self, id: SocketId, out: &mut [u8]) -> Result<usize, SocketError> {
        let (_, mut parts) = self.parts();
        let at = parts.entry_of(id).ok_or(SocketError::Gone)?;
        let Some(socket) = parts.table.socket(at).filter(|socket| !socket.is_orphan()) else {
            return Err(SocketError::Gone);
        };
        match (socket.peek_into(&parts.pool, out), socket.failure()) {
            (0, Some(failure)) => Err(SocketError::Failed(failure)),
            (0, None) if !socket.is_at_end() && !out.is_empty() => Err(SocketError::WouldBlock),
            (len, _) => Ok(len),
        }
    }

    /// Lets `take` look at the first piece of what has arrived, in place; it returns how much of it is used up.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with(
        &mut self,
        now: Instant,
        id: SocketId,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, SocketError> {
        self.with(now, id, |socket, cx| {
            let piece = socket.peek(cx.pool);
            if piece.is_empty() {
                return match socket.failure() {
                    Some(failure) => Err(SocketError::Failed(failure)),
                    None if socket.is_at_end() => Ok(0),
                    None => Err(SocketError::WouldBlock),
                };
            }
            let used = take(piece).min(piece.len());
            socket.consume(cx, used);
            Ok(used)
        })?
    }

    /// Acknowledges now what waits for a delayed acknowledgement (`TCP_QUICKACK`).
    ///
    /// # Errors
    /// `Gone`.
    pub fn acknowledge(&mut self, now: Instant, id: SocketId) -> Result<(), SocketError> {
        self.with(now, id, |socket, _| socket.acknowledge())
    }

    /// Closes this end's direction; the other stays open (half close).
    ///
    /// # Errors
    /// `Gone`.
    pub fn shutdown_write(&mut self, now: Instant, id: SocketId) -> Result<(), SocketError> {
        self.with(now, id, |socket, _| socket.shutdown_write())
    }

    /// Lets go of a connection: what was written is still sent, then the name is gone.
    ///
    /// # Errors
    /// `Gone`.
    pub fn close(&mut self, now: Instant, id: SocketId) -> Result<(), SocketError> {
        self.with(now, id, |socket, cx| socket.close(cx))
    }

    /// Resets a connection and drops everything.
    ///
    /// # Errors
    /// `Gone`.
    pub fn abort(&mut self, now: Instant, id: SocketId) -> Result<(), SocketError> {
        self.with(now, id, |socket, cx| {
            socket.abort(cx);
            socket.close(cx);
        })
    }

    /// Sets a connection's options; budgets count from now on.
    ///
    /// # Errors
    /// `Gone` as `None`; a budget out of range.
    pub fn set_options(&mut self, now: Instant, id: SocketId, options: SocketOptions) -> Result<(), OpenError> {
        let (core, mut parts) = self.parts();
        core.check_budgets(&parts, &options)?;
        let at = parts.entry_of(id).ok_or(OpenError::NoEntry)?;
        core.on_socket(now, &mut parts, at, |socket, cx| socket.set_options(options, cx.now));
        Ok(())
    }

    /// A connection that its application has not let go.
    fn open_socket(&mut self, id: SocketId) -> Option<&mut Socket> {
        match self.storage.entries().get_mut(usize::from(id.index)) {
            Some(Entry { role: Role::Connection(socket), generation, .. })
                if *generation == id.generation && !socket.is_orphan() =>
            {
                Some(socket)
            }
            _ => None,
        }
    }

    /// A connection, to look at.
    pub fn socket(&mut self, id: SocketId) -> Option<&Socket> {
        self.open_socket(id).map(|socket| &*socket)
    }

    /// A connection's figures.
    pub fn info(&mut self, id: SocketId) -> Option<Info> {
        self.socket(id).map(Socket::info)
    }

    /// The two ends of a connection.
    pub fn tuple(&mut self, id: SocketId) -> Option<Tuple> {
        self.socket(id).map(|socket| socket.tuple)
    }

    /// Whether a write would take at least one byte.
    pub fn can_write(&mut self, id: SocketId) -> bool {
        let (_, mut parts) = self.parts();
        let Some(at) = parts.entry_of(id) else { return false };
        let pool = &parts.pool;
        parts.table.socket(at).is_some_and(|socket| socket.can_write(pool))
    }

    /// What has happened since the last call; call until there is none.
    pub fn poll_news(&mut self) -> Option<News> {
        let (_, mut parts) = self.parts();
        loop {
            let at = parts.table.pop_news()?;
            let name = parts.name(at);
            let parent = parts.table.entry(at)?.parent;
            let Some(socket) = parts.table.socket(at) else { continue };
            if parent != NIL {
                // Not the application's yet: it learns the rest when it has accepted.
                if socket.events.take(Events::CONNECTED) {
                    return Some(News::Acceptable(ListenerId(parts.name(parent))));
                }
                continue;
            }
            let events = core::mem::take(&mut socket.events);
            if !events.is_empty() {
                return Some(News::Socket(name, events));
            }
        }
    }

    /// Takes a packet from the device. `verified` tells that the device has checked the TCP checksum.
    ///
    /// # Errors
    /// Why the packet was dropped; it has been counted.
    pub fn on_packet(&mut self, now: Instant, packet: &[u8], verified: bool) -> Result<(), Dropped> {
        let (core, mut parts) = self.parts();
        core.on_packet(now, &mut parts, packet, verified)
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        let (core, mut parts) = self.parts();
        while let Some(at) = parts.table.pop_due(now) {
            core.on_socket(now, &mut parts, at, Socket::on_timeout);
        }
    }

    /// When [`on_timeout`](Self::on_timeout) has something to do; it may turn out to be nothing.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let due = Table { entries: self.storage.entries(), heads: &mut self.heads }.next_due();
        (due != Instant::FAR_FUTURE).then_some(due)
    }

    /// Whether asking for a packet may give one; where not, it would change nothing.
    #[inline]
    pub const fn may_transmit(&self) -> bool {
        self.heads.has_ready() || self.core.answers.count > 0 || self.core.leaving != NIL
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let (core, mut parts) = self.parts();
        let packet = core.poll_transmit(now, &mut parts)?;
        Some(Transmit::new(packet, parts.pool.into_shared()))
    }

    fn with<R>(
        &mut self,
        now: Instant,
        id: SocketId,
        call: impl FnOnce(&mut Socket, &mut Context<'_, '_>) -> R,
    ) -> Result<R, SocketError> {
        let (core, mut parts) = self.parts();
        let at = parts.connection_of(id).ok_or(SocketError::Gone)?;
        core.on_socket(now, &mut parts, at, call).ok_or(SocketError::Gone)
    }
}

impl Parts<'_> {
    #[inline]
    fn entry_of(&self, id: SocketId) -> Option<u16> {
        let entry = self.table.entries.get(usize::from(id.index))?;
        (entry.generation == id.generation && !matches!(entry.role, Role::Free)).then_some(id.index)
    }

    /// The entry of a connection that an application holds.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    #[cfg_attr(not(all(target_pointer_width = "32", not(target_family = "wasm"))), inline)]
    fn connection_of(&mut self, id: SocketId) -> Option<u16> {
        let at = self.entry_of(id)?;
        self.table.socket(at).is_some_and(|socket| !socket.is_orphan()).then_some(at)
    }

    fn name(&self, at: u16) -> SocketId {
        let generation = self.table.entries.get(usize::from(at)).map_or(0, |entry| entry.generation);
        SocketId { index: at, generation }
    }
}
