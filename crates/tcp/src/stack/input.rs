//! Packets that arrive: which connection, listener or answer they lead to.

use core::net::IpAddr;

use fullpipe_units::{Instant, SeqNum};

use super::{Core, Parts, output::MAX_HEADERS, paths::Path};
#[cfg(feature = "platforms")]
use crate::wire::udp;
use crate::{
    pool::Purpose,
    profile::SynFin,
    socket::{Context, Endpoint, Reply, Socket, Tuple},
    wire::{
        Malformed, icmp,
        ip::{self, Packet},
        tcp::{Flags, Header, Options, Segment},
    },
};

/// Answers that may wait at one time: more are dropped, so that a flood of echoes or stray segments costs no more
/// than these buffers.
const MOST_ANSWERS: u16 = 16;

/// Why a packet that arrived was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dropped {
    /// It can't be read.
    Malformed(Malformed),
    /// It is for another host, or claims to be from a group or from nowhere (RFC 9293, section 3.9.2.3, MUST-57,
    /// MUST-63).
    Address,
    /// A protocol that this stack does not speak.
    Protocol,
}

/// Whether an address can be one host's.
pub(super) fn is_unicast(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => cfg!(feature = "ipv6") && !(v6.is_unspecified() || v6.is_multicast()),
    }
}

/// The connection that a segment in `packet` belongs to.
const fn segment_tuple(packet: &Packet<'_>, segment: &Segment<'_>) -> Tuple {
    Tuple::new(Endpoint::new(packet.dst, segment.dst_port), Endpoint::new(packet.src, segment.src_port))
}

impl Core {
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        bytes: &[u8],
        verified: bool,
    ) -> Result<(), Dropped> {
        self.counts.note(|counts| counts.packets_in += 1);
        let result = self.sort(now, parts, bytes, verified);
        if let Err(dropped) = result {
            self.counts.note(|counts| counts.dropped += 1);
            match dropped {
                Dropped::Malformed(Malformed::Checksum) => self.counts.note(|counts| counts.bad_checksums += 1),
                Dropped::Malformed(_) => self.counts.note(|counts| counts.malformed += 1),
                Dropped::Address | Dropped::Protocol => {}
            }
        }
        result
    }

    fn sort(&mut self, now: Instant, parts: &mut Parts<'_>, bytes: &[u8], verified: bool) -> Result<(), Dropped> {
        let packet = Packet::parse(bytes).map_err(Dropped::Malformed)?;
        if !self.is_local(packet.dst) || !is_unicast(packet.src) {
            return Err(Dropped::Address);
        }
        match packet.protocol {
            ip::TCP => {
                let segment = Segment::parse(&packet, verified).map_err(Dropped::Malformed)?;
                self.on_tcp(now, parts, &segment_tuple(&packet, &segment), packet.ecn, &segment);
                Ok(())
            }
            #[cfg(feature = "platforms")]
            udp::PROTOCOL if self.config.udp_port.is_some() => {
                let datagram = udp::Datagram::parse(&packet, verified).map_err(Dropped::Malformed)?;
                if self.config.udp_port.is_some_and(|own| own.get() != datagram.dst_port) {
                    return Err(Dropped::Protocol);
                }
                let inner = Packet { protocol: ip::TCP, payload: datagram.data, ..packet };
                // The datagram's checksum covers the segment; where there is none, the segment's own does.
                let segment = Segment::parse(&inner, datagram.is_verified).map_err(Dropped::Malformed)?;
                let tuple = segment_tuple(&packet, &segment).over_udp(datagram.src_port);
                self.on_tcp(now, parts, &tuple, packet.ecn, &segment);
                Ok(())
            }
            ip::ICMP | ip::ICMPV6 if (packet.protocol == ip::ICMPV6) == ip::is_v6(packet.dst) => {
                match icmp::Message::parse(&packet).map_err(Dropped::Malformed)? {
                    icmp::Message::EchoRequest(message) => self.on_echo(parts, &packet, message),
                    icmp::Message::Error(error) => self.on_icmp_error(now, parts, &error),
                    icmp::Message::Other => {}
                }
                Ok(())
            }
            _ => Err(Dropped::Protocol),
        }
    }

    pub(super) fn on_tcp(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        tuple: &Tuple,
        ecn: ip::Ecn,
        segment: &Segment<'_>,
    ) {
        let Some(at) = parts.table.find_again(tuple, || self.hash(tuple)) else {
            return self.on_stray(now, parts, tuple, segment, None);
        };
        self.on_connection(now, parts, at, ecn, segment);
    }

    /// A segment of the connection in entry `at`.
    #[inline]
    pub(super) fn on_connection(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        at: u16,
        ecn: ip::Ecn,
        segment: &Segment<'_>,
    ) {
        let reply = self.on_socket(now, parts, at, |socket, cx| socket.on_segment(cx, segment, ecn));
        #[cfg(feature = "fast-open")]
        self.note_fast_open(now, parts, at, Some(segment));
        if let Some(reply @ (Reply::Reset | Reply::Reopen(_))) = reply {
            self.answer(now, parts, at, segment, reply);
        }
    }

    /// What a connection's segment asks of the stack.
    fn answer(&mut self, now: Instant, parts: &mut Parts<'_>, at: u16, segment: &Segment<'_>, reply: Reply) {
        let Some((tuple, orphan)) = parts.table.socket(at).map(|socket| (socket.tuple, socket.is_orphan())) else {
            return;
        };
        // Where the application still holds the old connection, the new one needs an entry of its own.
        let has_room = orphan || parts.table.has_free();
        match reply {
            Reply::Reset => self.send_reset(parts, &tuple, segment),
            Reply::Reopen(last) if has_room && parts.table.find_listener(tuple.local).is_some() => {
                // The connection in TIME-WAIT makes room; what has arrived on it is still read.
                if orphan {
                    self.on_socket(now, parts, at, |socket, cx| socket.release(cx));
                    self.free_if_done(now, parts, at);
                } else {
                    self.on_socket(now, parts, at, |socket, cx| socket.leave_time_wait(cx));
                    parts.table.replace(at, self.hash(&tuple));
                }
                self.on_stray(now, parts, &tuple, segment, Some(last));
            }
            Reply::None | Reply::Reopen(_) => {}
        }
    }

    /// A segment of no connection: for a listener, or for nobody.
    fn on_stray(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        tuple: &Tuple,
        segment: &Segment<'_>,
        reopened: Option<SeqNum>,
    ) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return;
        }
        let listener = parts.table.find_listener(tuple.local);
        let takes_fin = self.config.profile.syn_fin() == SynFin::Syn;
        match listener {
            Some(_) if flags.has(Flags::SYN) && flags.has(Flags::ACK) && self.config.profile.drops_syn_ack() => {}
            // RFC 9293, section 3.10.7.2, second: no ACK can be right in LISTEN, unless a cookie was sent.
            Some(at) if flags.has(Flags::ACK) => {
                if flags.has(Flags::SYN) || !self.on_cookie(now, parts, at, tuple, segment) {
                    self.send_reset(parts, tuple, segment);
                }
            }
            Some(at) if flags.has(Flags::SYN) && (!flags.has(Flags::FIN) || takes_fin) => {
                self.on_syn(now, parts, at, tuple, segment, reopened);
            }
            Some(_) => {}
            // Section 3.10.7.1.
            None => self.send_reset(parts, tuple, segment),
        }
    }

    /// RFC 9293, section 3.10.7.1: the reset that a segment asks for.
    fn send_reset(&mut self, parts: &mut Parts<'_>, tuple: &Tuple, segment: &Segment<'_>) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.counts.note(|counts| counts.resets_sent += 1);
        let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
            (segment.ack, SeqNum::new(0), Flags::RST)
        } else {
            (SeqNum::new(0), segment.seq + segment.seq_len(), Flags::RST.with(Flags::ACK))
        };
        let (src_port, dst_port) = (tuple.local.port, tuple.remote.port);
        let header = Header { src_port, dst_port, seq, ack, flags, window: 0, options: Options::default() };
        self.queue_header(parts, tuple, &header);
    }

    /// RFC 1122, section 3.2.2.6; RFC 4443, section 4.2.
    fn on_echo(&mut self, parts: &mut Parts<'_>, packet: &Packet<'_>, message: &[u8]) {
        let addresses = ip::Addresses { src: packet.dst, dst: packet.src };
        let mut header = [0; MAX_HEADERS];
        let fields =
            ip::Fields { protocol: packet.protocol, ttl: self.config.profile.ttl, ecn: ip::Ecn::NotEct, id: 0 };
        let len = addresses.write(&mut header, fields, message.len());
        if let Some(id) = self.queue_answer(parts, &header[..len], message, Purpose::Normal) {
            let bytes = parts.pool.data_mut(id);
            icmp::make_echo_reply(bytes.get_mut(len..).unwrap_or(&mut []), &addresses);
        }
    }

    /// Queues a packet made of two parts; returns its buffer, if there was one and it was large enough.
    pub(super) fn queue_answer(
        &mut self,
        parts: &mut Parts<'_>,
        head: &[u8],
        tail: &[u8],
        purpose: Purpose,
    ) -> Option<u16> {
        let pool = &mut parts.pool;
        let fits = head.len() + tail.len() <= pool.buffer_size() && self.answers.count < MOST_ANSWERS;
        let Some(id) = (if fits { pool.take(purpose) } else { None }) else {
            self.counts.note(|counts| counts.answers_dropped += 1);
            return None;
        };
        pool.append(id, head, usize::MAX);
        pool.append(id, tail, usize::MAX);
        self.answers.push_back(pool, id);
        Some(id)
    }

    fn on_icmp_error(&mut self, now: Instant, parts: &mut Parts<'_>, error: &icmp::Error) {
        let tuple = Tuple::new(Endpoint::new(error.src, error.src_port), Endpoint::new(error.dst, error.dst_port));
        #[cfg(feature = "platforms")]
        let tuple = match error.udp_ports {
            None => tuple,
            Some((own, port)) if self.config.udp_port.is_some_and(|udp| udp.get() == own) => tuple.over_udp(port),
            Some(_) => return,
        };
        let hash = self.hash(&tuple);
        if let Some(at) = parts.table.find(&tuple, hash) {
            let overhead = if ip::is_v6(error.dst) { 60 } else { 40 } + tuple.between() as u32;
            let on_icmp =
                |socket: &mut Socket, cx: &mut Context<'_, '_>| socket.on_icmp(cx, error.reason, error.seq, overhead);
            if let Some(size) = self.on_socket(now, parts, at, on_icmp).flatten() {
                let mtu = u16::try_from(u32::from(size) + overhead).unwrap_or(u16::MAX);
                self.paths.note(Path { addr: error.dst, mtu, learnt_at: now });
            }
        }
    }
}
