//! Listening: half-open connections, the queue to `accept`, and cookies when SYNs flood (RFC 4987).

use core::net::IpAddr;

use fullpipe_units::{Instant, SeqNum};

use super::{
    Core, Parts,
    table::{NIL, Role},
};
use crate::{
    hash::{self, Use},
    socket::{Reply, Socket, SocketOptions, Tuple},
    time::{self, Millis},
    wire::{
        ip,
        tcp::{Flags, Header, Options, Segment},
    },
};

/// A listening port.
#[derive(Debug)]
pub(super) struct Listener {
    /// The address; `None` for all.
    pub(super) addr: Option<IpAddr>,
    pub(super) port: u16,
    pub(super) options: SocketOptions,
    /// Connections that are half open or wait to be accepted, at the most.
    pub(super) backlog: u16,
    pub(super) waiting: u16,
    /// When a cookie was last sent.
    pub(super) cookie_sent: Option<Millis>,
}

impl Listener {
    /// Whether it listens at this very address, or, as the other, at all.
    pub(super) fn is_at(&self, addr: Option<IpAddr>) -> bool {
        match (self.addr, addr) {
            (Some(own), Some(addr)) => ip::is_same(own, addr),
            (own, addr) => own.is_none() && addr.is_none(),
        }
    }
}

/// Segment sizes that a cookie can remember.
const COOKIE_SIZES: [u16; 8] = [64, 256, 536, 1_024, 1_220, 1_440, 1_460, 8_960];

/// A cookie is good for this many periods of 64 s, the current one included.
const COOKIE_PERIODS: u32 = 2;

impl Core {
    /// A SYN for a listening port (RFC 9293, section 3.10.7.2, third).
    pub(super) fn on_syn(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        at: u16,
        tuple: &Tuple,
        segment: &Segment<'_>,
        reopened: Option<SeqNum>,
    ) {
        let Some(listener) = parts.table.listener(at) else { return };
        let options = listener.options;
        let full = listener.waiting >= listener.backlog;
        let by_cookie_alone = self.config.syn_cookies && self.config.syn_cookies_only;
        if full || (cfg!(feature = "cookies") && by_cookie_alone) {
            self.counts.note(|counts| counts.backlog_full += u32::from(full));
            if cfg!(feature = "cookies") && self.config.syn_cookies {
                listener.cookie_sent = Some(Millis::new(now));
                self.send_cookie(now, parts, tuple, segment);
            }
            return;
        }
        if !parts.table.has_free() {
            // Looked at before anything is made: data of the SYN would already hold a buffer.
            self.counts.note(|counts| counts.no_entry += 1);
            return;
        }
        let iss = match reopened {
            // RFC 9293, section 3.6.1, MAY-2: "a sequence number larger than the largest ... of the previous".
            Some(last) => last + 0x2_0000,
            None => SeqNum::new(hash::initial_sequence(self.config.key, now, tuple)),
        };
        let opening = self.opening(now, tuple, iss, options);
        #[cfg(feature = "fast-open")]
        let opening = self.grant(opening, segment);
        let mut cx = self.context(now, &mut parts.pool);
        let socket = Socket::accept(&cx, &opening, segment).open_early(&mut cx, segment);
        self.add(parts, at, socket);
    }

    /// Puts a new connection of listener `at` into the table, which must have a free entry.
    fn add(&self, parts: &mut Parts<'_>, at: u16, socket: Socket) {
        let hash = self.hash(&socket.tuple);
        let Some(child) = parts.table.take(Role::Connection(socket)) else { return };
        if let Some(entry) = parts.table.entry(child) {
            entry.parent = at;
        }
        if let Some(listener) = parts.table.listener(at) {
            listener.waiting += 1;
        }
        parts.table.link(child, hash);
        self.touched(parts, child);
    }

    /// The initial sequence number of a cookie: 5 bits of time, 3 of segment size, 24 of hash.
    fn cookie(&self, tuple: &Tuple, irs: SeqNum, period: u32, size: u32) -> u32 {
        let word = irs.get() ^ (period << 3 | size).wrapping_mul(0x9e37_79b9);
        let hash = hash::of_tuple(self.config.key, Use::Cookie, tuple, word) as u32;
        (period & 0x1f) << 27 | size << 24 | hash & 0x00ff_ffff
    }

    fn send_cookie(&mut self, now: Instant, parts: &mut Parts<'_>, tuple: &Tuple, segment: &Segment<'_>) {
        let asked = segment.options.mss.unwrap_or(self.config.profile.default_mss);
        let size = COOKIE_SIZES.iter().rposition(|size| *size <= asked).unwrap_or(0) as u32;
        let iss = self.cookie(tuple, segment.seq, period(now), size);
        self.counts.note(|counts| counts.cookies_sent += 1);
        let header = Header {
            src_port: tuple.local.port,
            dst_port: tuple.remote.port,
            seq: SeqNum::new(iss),
            ack: segment.seq + 1,
            flags: Flags::SYN.with(Flags::ACK),
            // The connection's own window comes with its first ACK.
            window: self.own_mss(tuple),
            options: Options { mss: Some(self.own_mss(tuple)), ..Options::default() },
        };
        self.queue_header(parts, tuple, &header);
    }

    /// An ACK for a listening port and no connection: is it the answer to a cookie? Returns whether it was.
    pub(super) fn on_cookie(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        at: u16,
        tuple: &Tuple,
        segment: &Segment<'_>,
    ) -> bool {
        if !cfg!(feature = "cookies") {
            return false;
        }
        let Some(listener) = parts.table.listener(at) else { return false };
        let options = listener.options;
        let recent = listener.cookie_sent.is_some_and(|sent| Millis::new(now).since(sent) < 128_000);
        if !recent || listener.waiting >= listener.backlog || !parts.table.has_free() {
            return false;
        }
        let (iss, irs) = (segment.ack - 1, segment.seq - 1);
        let size = iss.get() >> 24 & 7;
        let good =
            (0..COOKIE_PERIODS).any(|age| self.cookie(tuple, irs, period(now).wrapping_sub(age), size) == iss.get());
        if !good {
            return false;
        }
        self.counts.note(|counts| counts.cookies_taken += 1);
        let mss = COOKIE_SIZES[size as usize];
        let syn = Segment {
            seq: irs,
            flags: Flags::SYN,
            options: Options { mss: Some(mss), ..Options::default() },
            payload: &[],
            ..*segment
        };
        let opening = self.opening(now, tuple, iss, options);
        let mut cx = self.context(now, &mut parts.pool);
        let mut socket = Socket::from_cookie(&cx, &opening, &syn);
        let reply = socket.on_segment(&mut cx, segment, ip::Ecn::NotEct);
        debug_assert_eq!(reply, Reply::None);
        self.add(parts, at, socket);
        true
    }

    /// The next connection of listener `at` whose handshake is over.
    pub(super) fn take_accepted(&self, now: Instant, parts: &mut Parts<'_>, at: u16) -> Option<u16> {
        let child = parts.table.pop_acceptable(at)?;
        parts.table.entry(child)?.parent = NIL;
        if let Some(listener) = parts.table.listener(at) {
            listener.waiting -= 1;
        }
        let cx = self.context(now, &mut parts.pool);
        parts.table.socket(child)?.accepted(&cx);
        self.touched(parts, child);
        Some(child)
    }
}

/// The number of the period of 64 s.
fn period(now: Instant) -> u32 {
    (time::seconds(now) / 64) as u32
}
