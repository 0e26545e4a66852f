//! Packets that leave: headers around a socket's segment.

use core::net::IpAddr;

use fullpipe_units::Instant;

use super::{Core, Parts, table::NIL};
#[cfg(feature = "platforms")]
use crate::socket::takes_short_ways;
use crate::{
    pool::{Run, SharedPool, Slices},
    socket::{Outgoing, Tuple},
    wire::{
        self,
        checksum::Checksum,
        ip::{self, Addresses, Ecn},
        tcp::{self, CHECKSUM_AT, Header},
        udp,
    },
};

/// The longest IP, UDP and TCP headers together.
pub(super) const MAX_HEADERS: usize = ip::MAX_HEADER + udp::LONGEST + tcp::MAX_HEADER;

/// A packet without its data.
#[derive(Debug)]
pub(super) struct Leaving {
    header: [u8; MAX_HEADERS],
    header_len: u8,
    ip_len: u8,
    run: Run,
    segment: u16,
    /// The pseudo-header's sum, where the checksum of what follows the IP header is still to be made.
    sum: Option<Checksum>,
    /// Where that goes.
    checksum_at: u8,
    leave_to_device: bool,
}

/// Headers that were written.
struct Written {
    len: usize,
    ip_len: usize,
    /// Of the pseudo-header.
    sum: Checksum,
    checksum_at: usize,
}

/// What leaves next.
pub(super) enum Next<'a> {
    /// An answer that lies whole in a buffer.
    Answer(Run),
    /// A connection's segment.
    Segment(&'a Outgoing, &'a Tuple),
}

impl Core {
    pub(super) fn poll_transmit(&mut self, now: Instant, parts: &mut Parts<'_>) -> Option<Leaving> {
        self.leave(now, parts, |core, next| {
            Some(match next {
                Next::Answer(run) => Leaving::answer(run),
                Next::Segment(out, tuple) => core.around(out, tuple),
            })
        })
    }

    /// Gives what leaves to `make`, one after the other, until it has made something.
    #[inline]
    pub(super) fn leave<R>(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        mut make: impl FnMut(&mut Self, Next<'_>) -> Option<R>,
    ) -> Option<R> {
        if self.leaving != NIL {
            parts.pool.give(core::mem::replace(&mut self.leaving, NIL));
        }
        if let Some(id) = self.answers.pop_front(&mut parts.pool) {
            self.leaving = id;
            self.counts.note(|counts| counts.packets_out += 1);
            let len = parts.pool.slot(id).len();
            return make(self, Next::Answer(Run { first: id, offset: 0, len }));
        }
        while let Some(at) = parts.table.pop_ready() {
            let made = self.leave_socket(now, parts, at, &mut make);
            if made.is_some() {
                return made;
            }
        }
        None
    }

    /// The same of one connection, until another one is to send in between.
    #[inline]
    fn leave_socket<R>(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        at: u16,
        make: &mut impl FnMut(&mut Self, Next<'_>) -> Option<R>,
    ) -> Option<R> {
        let mut out = Outgoing::EMPTY;
        let (made, has_left) = loop {
            let mut cx = self.context(now, &mut parts.pool);
            let socket = parts.table.socket(at)?;
            if socket.tuple.udp_port().is_some() {
                // No device splits segments in datagrams.
                cx.burst = 0;
            }
            #[cfg(feature = "platforms")]
            let follows = takes_short_ways() && cx.burst == 0 && out.run.len > 0 && socket.poll_next(&mut cx, &mut out);
            #[cfg(not(feature = "platforms"))]
            let follows = false;
            if !(follows || socket.poll_transmit(&mut cx, &mut out)) {
                break (None, false);
            }
            #[cfg(feature = "fast-open")]
            self.add_cookie(now, parts, at, &mut out);
            self.counts.note(|counts| counts.packets_out += 1);
            let socket = parts.table.socket(at)?;
            let made = make(self, Next::Segment(&out, &socket.tuple));
            let rests = socket.is_at_rest();
            if made.is_some() || rests || parts.table.heads.has_ready() {
                if !rests {
                    // To the back of the line: the others send in between.
                    parts.table.make_ready(at);
                }
                break (made, true);
            }
        };
        let due = parts.table.socket(at)?.next_timeout();
        parts.table.schedule(at, due);
        if !has_left {
            self.free_if_done(now, parts, at);
        }
        made
    }

    /// Puts headers around a segment.
    fn around(&mut self, out: &Outgoing, tuple: &Tuple) -> Leaving {
        let mut bytes = [0; MAX_HEADERS];
        let written = self.write(&mut bytes, tuple, &out.header(tuple), out.ecn(), out.run.len as usize);
        Leaving {
            header: bytes,
            header_len: written.len as u8,
            ip_len: written.ip_len as u8,
            run: out.run,
            segment: out.segment,
            sum: Some(written.sum),
            checksum_at: written.checksum_at as u8,
            leave_to_device: self.config.device.checksum_offload && tuple.udp_port().is_none(),
        }
    }

    /// Writes all headers of a segment with `data_len` bytes of data.
    #[inline]
    fn write(&mut self, out: &mut [u8], tuple: &Tuple, header: &Header, ecn: Ecn, data_len: usize) -> Written {
        let addresses = Addresses::of(tuple);
        let ip_len = addresses.header_len();
        let tcp_at = ip_len + tuple.between();
        let tcp_len = header.write(&mut out[tcp_at..], &self.config.profile.layout);
        let (len, fields) = (tcp_at - ip_len + tcp_len + data_len, self.ip_fields(ecn));
        #[cfg(feature = "platforms")]
        if let Some(port) = tuple.udp_port() {
            let own = self.config.udp_port.map_or(0, core::num::NonZeroU16::get);
            udp::write(&mut out[ip_len..], (own, port), len);
            addresses.write(out, ip::Fields { protocol: udp::PROTOCOL, ..fields }, len);
            // The datagram's checksum stands for the segment's, as with FreeBSD.
            let sum = addresses.pseudo_header(udp::PROTOCOL, len as u32);
            return Written { len: tcp_at + tcp_len, ip_len, sum, checksum_at: ip_len + udp::CHECKSUM_AT };
        }
        addresses.write(out, fields, len);
        let sum = tcp::checksum(&addresses, len as u32);
        Written { len: tcp_at + tcp_len, ip_len, sum, checksum_at: ip_len + CHECKSUM_AT }
    }

    /// What the IP header of the next packet says.
    pub(super) const fn ip_fields(&mut self, ecn: Ecn) -> ip::Fields {
        self.next_id = self.next_id.wrapping_add(1);
        ip::Fields { protocol: ip::TCP, ttl: self.config.profile.ttl, ecn, id: self.next_id }
    }

    /// Writes the headers of a segment without data, checksum included; returns their length.
    pub(super) fn write_headers(&mut self, out: &mut [u8], tuple: &Tuple, header: &Header) -> usize {
        let Written { len, ip_len, sum, checksum_at } = self.write(out, tuple, header, Ecn::NotEct, 0);
        let sum = sum.bytes(&out[ip_len..len]).finish();
        wire::set_be16(out, checksum_at, if tuple.udp_port().is_some() { udp::written(sum) } else { sum });
        len
    }
}

impl Outgoing {
    pub(super) const fn ecn(&self) -> Ecn {
        if self.ect { Ecn::Ect0 } else { Ecn::NotEct }
    }

    pub(super) const fn header(&self, tuple: &Tuple) -> Header {
        Header {
            src_port: tuple.local.port,
            dst_port: tuple.remote.port,
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            options: self.options,
        }
    }
}

impl Addresses {
    /// Those of what leaves.
    pub(super) const fn of(tuple: &Tuple) -> Self {
        Self { src: tuple.local.addr, dst: tuple.remote.addr }
    }
}

impl Leaving {
    pub(super) const fn answer(run: Run) -> Self {
        let header = [0; MAX_HEADERS];
        Self { header, header_len: 0, ip_len: 0, run, segment: 0, sum: None, checksum_at: 0, leave_to_device: false }
    }
}

/// A packet to send: headers, then data in pieces where it lies.
#[derive(Debug)]
pub struct Transmit<'a> {
    packet: Leaving,
    pool: SharedPool<'a>,
}

impl<'a> Transmit<'a> {
    pub(super) fn new(mut packet: Leaving, pool: SharedPool<'a>) -> Self {
        if let Some(mut sum) = packet.sum {
            let value = if packet.leave_to_device {
                sum.partial()
            } else {
                sum = sum.bytes(&packet.header[usize::from(packet.ip_len)..usize::from(packet.header_len)]);
                for piece in pool.slices(packet.run) {
                    sum = sum.bytes(piece);
                }
                sum.finish()
            };
            let (at, ip_len) = (usize::from(packet.checksum_at), usize::from(packet.ip_len));
            let value = if cfg!(feature = "platforms") && at == ip_len + udp::CHECKSUM_AT {
                udp::written(value)
            } else {
                value
            };
            wire::set_be16(&mut packet.header, at, value);
        }
        Self { packet, pool }
    }

    /// IP and TCP headers. Empty for an answer that lies whole in the data.
    pub fn headers(&self) -> &[u8] {
        &self.packet.header[..usize::from(self.packet.header_len)]
    }

    /// The data behind the headers, in order.
    pub fn data(&self) -> Slices<'a> {
        self.pool.slices(self.packet.run)
    }

    /// Whom the packet is for.
    pub fn destination(&self) -> Option<IpAddr> {
        let header = if self.headers().is_empty() { self.data().next()? } else { self.headers() };
        match header.first()? >> 4 {
            4 => header.get(16..)?.first_chunk::<4>().map(|addr| (*addr).into()),
            _ => header.get(24..)?.first_chunk::<16>().map(|addr| (*addr).into()),
        }
    }

    /// The length of the whole packet in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.packet.header_len) + self.packet.run.len as usize
    }

    /// Whether there is nothing, which there never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of the IP header.
    pub fn ip_header_len(&self) -> usize {
        usize::from(self.packet.ip_len)
    }

    /// Data bytes per segment where the device has to split this packet; `None` where it is one segment.
    pub fn split_into(&self) -> Option<u16> {
        (self.packet.segment > 0 && self.packet.run.len > u32::from(self.packet.segment)).then_some(self.packet.segment)
    }

    /// Whether the device has to complete the TCP checksum.
    pub fn needs_checksum(&self) -> bool {
        self.packet.leave_to_device && self.packet.sum.is_some()
    }

    /// Copies the packet into `out` and returns its length; `None` where it does not fit.
    pub fn copy_to(&self, out: &mut [u8]) -> Option<usize> {
        let out = out.get_mut(..self.len())?;
        let (head, mut rest) = out.split_at_mut(usize::from(self.packet.header_len));
        head.copy_from_slice(self.headers());
        for piece in self.data() {
            let (front, back) = rest.split_at_mut_checked(piece.len())?;
            front.copy_from_slice(piece);
            rest = back;
        }
        Some(self.len())
    }
}
