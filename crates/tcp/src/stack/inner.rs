//! The stack's inner work, free of the kind of its storage: opening connections, calling sockets and what follows.

use core::net::IpAddr;

use fullpipe_units::{Instant, SeqNum};

use super::{
    Core, OpenError, Parts, SocketId, input, output,
    table::{NIL, Role},
};
use crate::{
    hash::{self, Use},
    pool::Pool,
    socket::{Context, Endpoint, Opening, Part, Socket, SocketOptions, Tuple},
    wire::{ip, tcp::Header},
};

impl Core {
    pub(super) fn context<'a, 'p>(&'a self, now: Instant, pool: &'a mut Pool<'p>) -> Context<'a, 'p> {
        Context { now, profile: &self.config.profile, pool, burst: self.config.device.burst }
    }

    /// By what the table finds a connection, where it does so by hash.
    pub(super) fn hash(&self, tuple: &Tuple) -> u64 {
        if cfg!(feature = "large-tables") { hash::of_tuple(self.config.key, Use::Table, tuple, 0) } else { 0 }
    }

    pub(super) fn is_local(&self, addr: IpAddr) -> bool {
        self.config.addresses.into_iter().flatten().any(|own| ip::is_same(own, addr))
    }

    /// Calls a connection and does what follows from any change: its timers, its wish to send, its news.
    #[inline]
    pub(super) fn on_socket<R>(
        &self,
        now: Instant,
        parts: &mut Parts<'_>,
        at: u16,
        call: impl FnOnce(&mut Socket, &mut Context<'_, '_>) -> R,
    ) -> Option<R> {
        let mut cx = self.context(now, &mut parts.pool);
        let result = call(parts.table.socket(at)?, &mut cx);
        self.touched(parts, at);
        Some(result)
    }

    #[cfg_attr(not(all(target_pointer_width = "32", not(target_family = "wasm"))), inline)]
    pub(super) fn touched(&self, parts: &mut Parts<'_>, at: u16) {
        let Some(socket) = parts.table.socket(at) else { return };
        let (due, news, rests) = (socket.next_timeout(), !socket.events.is_empty(), socket.is_at_rest());
        let acceptable = socket.unaccepted && (socket.state().is_synchronized() || socket.is_early());
        parts.table.schedule(at, due);
        if !rests {
            parts.table.make_ready(at);
        }
        if acceptable {
            parts.table.push_acceptable(at);
        }
        if news {
            parts.table.add_news(at);
        }
    }

    /// Frees the entry of a connection that is over and that nobody holds.
    pub(super) fn free_if_done(&self, now: Instant, parts: &mut Parts<'_>, at: u16) {
        let Some(socket) = parts.table.socket(at) else { return };
        if !socket.is_free() {
            return;
        }
        let tuple = socket.tuple;
        let mut cx = self.context(now, &mut parts.pool);
        socket.release(&mut cx);
        let hash = self.hash(&tuple);
        let parent = parts.table.entry(at).map_or(NIL, |entry| entry.parent);
        parts.table.remove_acceptable(at);
        if let Some(listener) = parts.table.listener(parent) {
            listener.waiting -= 1;
        }
        parts.table.unlink(at, hash);
        parts.table.give(at);
    }

    pub(super) fn check_budgets(&self, parts: &Parts<'_>, options: &SocketOptions) -> Result<(), OpenError> {
        let count = parts.pool.count();
        // Without scaling the window field ends at 65,535: 45 segments of 1460 bytes fill it.
        let mtu = if cfg!(feature = "platforms") { self.config.device.mtu } else { 1_500 };
        let unscaled = u16::MAX.div_ceil(mtu.saturating_sub(40).max(1));
        let receive = if self.config.profile.window_scaling { count } else { count.min(unscaled) };
        let budgets = options.budgets;
        let checks = [
            ("receive", budgets.receive, 1, receive),
            ("out_of_order", budgets.out_of_order, 0, count),
            ("transmit", budgets.transmit, 1, count),
            ("unacknowledged", budgets.unacknowledged, 1, count),
        ];
        match checks.into_iter().find(|(_, value, least, most)| value < least || value > most) {
            Some((budget, value, _, most)) => Err(OpenError::Budget { budget, value, most }),
            None => Ok(()),
        }
    }

    pub(super) fn own_mss(&self, tuple: &Tuple) -> u16 {
        Self::mss_within(tuple, self.config.device.mtu)
    }

    /// The data of a segment without options that makes an IP packet of `mtu` bytes.
    fn mss_within(tuple: &Tuple, mtu: u16) -> u16 {
        let headers = if ip::is_v6(tuple.remote.addr) { 60 } else { 40 };
        mtu.saturating_sub(headers + tuple.between() as u16).max(64)
    }

    pub(super) fn opening(&self, now: Instant, tuple: &Tuple, iss: SeqNum, options: SocketOptions) -> Opening {
        let ts_offset = hash::of_tuple(self.config.key, Use::TimestampOffset, tuple, 0) as u32;
        let own_mss = self.own_mss(tuple).min(options.max_segment.max(64));
        let (path_mss, path_learnt_at) = match self.paths.find(now, tuple.remote.addr) {
            Some(path) => (Self::mss_within(tuple, path.mtu).min(own_mss), path.learnt_at),
            None => (own_mss, now),
        };
        Opening { tuple: *tuple, iss, ts_offset, own_mss, path_mss, path_learnt_at, options, fast: Part::default() }
    }

    pub(super) fn connect(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        local_port: Option<u16>,
        remote: Endpoint,
        options: SocketOptions,
    ) -> Result<SocketId, OpenError> {
        self.check_budgets(parts, &options)?;
        if !input::is_unicast(remote.addr) || remote.port == 0 {
            // RFC 9293, section 3.9.2.3, MUST-46.
            return Err(OpenError::BadPeer(remote));
        }
        let same_family = |addr: &IpAddr| ip::is_v6(*addr) == ip::is_v6(remote.addr);
        let addr = self.config.addresses.into_iter().flatten().find(same_family).ok_or(OpenError::NoAddress)?;
        let tuple = match local_port {
            Some(port) => {
                let tuple = self.towards(Endpoint { addr, port }, remote, &options);
                if parts.table.find(&tuple, self.hash(&tuple)).is_some() {
                    return Err(OpenError::InUse(tuple.local));
                }
                tuple
            }
            None => self.ephemeral(parts, addr, remote, &options).ok_or(OpenError::NoPort)?,
        };
        let iss = SeqNum::new(hash::initial_sequence(self.config.key, now, &tuple));
        let opening = self.opening(now, &tuple, iss, options);
        #[cfg(feature = "fast-open")]
        let opening = self.offer(now, opening);
        let socket = Socket::connect(&self.context(now, &mut parts.pool), &opening);
        let hash = self.hash(&tuple);
        let at = parts.table.take(Role::Connection(socket)).ok_or(OpenError::NoEntry)?;
        parts.table.link(at, hash);
        self.touched(parts, at);
        Ok(parts.name(at))
    }

    /// The connection that `options` ask for between two ends.
    #[cfg(feature = "platforms")]
    const fn towards(&self, local: Endpoint, remote: Endpoint, options: &SocketOptions) -> Tuple {
        let tuple = Tuple::new(local, remote);
        match (self.config.udp_port, options.udp_port) {
            (Some(_), Some(port)) => tuple.over_udp(port.get()),
            _ => tuple,
        }
    }

    #[cfg(not(feature = "platforms"))]
    #[expect(clippy::unused_self, reason = "with other platforms the set-up tells of UDP")]
    const fn towards(&self, local: Endpoint, remote: Endpoint, _: &SocketOptions) -> Tuple {
        Tuple::new(local, remote)
    }

    /// A port that is free towards `remote` (RFC 6056, section 3.3.3: a hash of the peer, then one after the other).
    fn ephemeral(
        &mut self,
        parts: &Parts<'_>,
        addr: IpAddr,
        remote: Endpoint,
        options: &SocketOptions,
    ) -> Option<Tuple> {
        const FIRST: u32 = 49_152;
        const COUNT: u32 = 16_384;
        let seed = Tuple::new(Endpoint { addr, port: 0 }, remote);
        let offset = hash::of_tuple(self.config.key, Use::Port, &seed, 0) as u32;
        for _ in 0..COUNT {
            let port = FIRST + offset.wrapping_add(u32::from(self.next_port)) % COUNT;
            self.next_port = self.next_port.wrapping_add(1);
            let tuple = self.towards(Endpoint { addr, port: port as u16 }, remote, options);
            if parts.table.find(&tuple, self.hash(&tuple)).is_none() {
                return Some(tuple);
            }
        }
        None
    }

    /// Queues a segment that belongs to no connection.
    pub(super) fn queue_header(&mut self, parts: &mut Parts<'_>, tuple: &Tuple, header: &Header) {
        let mut bytes = [0; output::MAX_HEADERS];
        let len = self.write_headers(&mut bytes, tuple, header);
        self.queue_answer(parts, &bytes[..len], &[], crate::pool::Purpose::Urgent);
    }
}
