//! Segments that pass from one engine to another without becoming bytes: for simulations, whose packets nobody else reads.

use core::{
    net::{IpAddr, Ipv4Addr},
    ops::ControlFlow,
};

use fullpipe_units::{Instant, SeqNum};

use super::{
    Core, Dropped, Parts, SocketId, Stack, Storage, Transmit,
    input::is_unicast,
    output::{Leaving, Next},
};
use crate::{
    socket::{Endpoint, Outgoing, Tuple},
    wire::{
        self,
        ip::{self, Addresses, Ecn, Fields},
        tcp::{self, CHECKSUM_AT, Flags, Header, OptionLayout, Options, Segment, Timestamps},
    },
};

/// A TCP segment in an IP packet, as what it says. What travels over UDP does not travel so.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Its addresses and ports, as its sender sees them.
    pub tuple: Tuple,
    /// What else its IP header says.
    pub ip: Fields,
    /// The TCP header.
    pub header: Header,
    /// The length of both headers in bytes.
    pub header_len: u8,
    /// The length of its data in bytes.
    pub data_len: u32,
}

const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl Datagram {
    /// None yet.
    pub const EMPTY: Self = Self {
        tuple: Tuple::new(Endpoint::new(NOBODY, 0), Endpoint::new(NOBODY, 0)),
        ip: Fields { protocol: ip::TCP, ttl: 0, ecn: Ecn::NotEct, id: 0 },
        header: Header {
            src_port: 0,
            dst_port: 0,
            seq: SeqNum::new(0),
            ack: SeqNum::new(0),
            flags: Flags::from_byte(0),
            window: 0,
            options: Options::NONE,
        },
        header_len: 0,
        data_len: 0,
    };

    /// The longest headers.
    pub const MAX_HEADERS: usize = ip::MAX_HEADER + tcp::MAX_HEADER;

    /// The length of the packet in bytes.
    pub const fn len(&self) -> u32 {
        self.header_len as u32 + self.data_len
    }

    /// Whether there is nothing, which there never is.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The headers as a device gets them that completes checksums, and their length. `layout` is the sender's.
    pub fn headers(&self, layout: &OptionLayout) -> ([u8; Self::MAX_HEADERS], usize) {
        let mut bytes = [0; Self::MAX_HEADERS];
        let addresses = Addresses::of(&self.tuple);
        let ip_len = addresses.header_len();
        let tcp_len = self.header.write(&mut bytes[ip_len..], layout);
        let len = tcp_len + self.data_len as usize;
        addresses.write(&mut bytes, self.ip, len);
        let sum = tcp::checksum(&addresses, len as u32).partial();
        wire::set_be16(&mut bytes, ip_len + CHECKSUM_AT, sum);
        (bytes, ip_len + tcp_len)
    }
}

/// A segment as most are, in few bytes: neither SYN nor RST, and no options but timestamps. Whose it is and with what TTL it left is kept
/// by whoever carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    seq: SeqNum,
    ack: SeqNum,
    timestamps: Timestamps,
    data_len: u16,
    window: u16,
    id: u16,
    /// The header's byte of flags.
    flags: u8,
    marks: u8,
}

/// The marks of a plain segment: it has timestamps, and goes over IPv6; the others are its ECN codepoint.
const TIMESTAMPS: u8 = 1 << 2;
const IPV6: u8 = 1 << 3;
const ECN: u8 = 0b11;

impl Plain {
    /// What leaves between these addresses, where it is like that.
    #[inline]
    fn of(out: &Outgoing, is_v6: bool, id: u16) -> Option<Self> {
        let Options { mss: None, window_scale: None, sack_permitted: false, timestamps, sack, .. } = &out.options
        else {
            return None;
        };
        #[cfg(feature = "fast-open")]
        if out.options.fast_open.is_some() {
            return None;
        }
        let data_len = u16::try_from(out.run.len).ok()?;
        if !sack.is_empty() || out.flags.has(Flags::SYN.with(Flags::RST)) {
            return None;
        }
        let marks = if timestamps.is_some() { TIMESTAMPS } else { 0 } | if is_v6 { IPV6 } else { 0 } | out.ecn() as u8;
        Some(Self {
            seq: out.seq,
            ack: out.ack,
            timestamps: timestamps.unwrap_or(Timestamps { val: 0, echo: 0 }),
            data_len,
            window: out.window,
            id,
            flags: out.flags.byte(),
            marks,
        })
    }

    /// Its flags.
    #[inline]
    pub const fn flags(&self) -> Flags {
        Flags::from_byte(self.flags)
    }

    /// The length of its data in bytes.
    #[inline]
    pub const fn data_len(&self) -> u32 {
        self.data_len as u32
    }

    /// The length of both headers in bytes.
    #[inline]
    const fn header_len(&self) -> u8 {
        let ip = if self.marks & IPV6 == 0 { 20 } else { 40 };
        (ip + 20 + tcp::options_len(self.marks & TIMESTAMPS != 0, 0)) as u8
    }

    /// The length of the packet in bytes.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.header_len() as u32 + self.data_len()
    }

    /// Whether there is nothing, which there never is.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ECN codepoint.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.marks & ECN)
    }

    /// A queue has marked it.
    #[inline]
    pub const fn mark_ce(&mut self) {
        self.marks = self.marks & !ECN | Ecn::Ce as u8;
    }

    #[inline]
    fn options(&self) -> Options {
        Options { timestamps: (self.marks & TIMESTAMPS != 0).then_some(self.timestamps), ..Options::NONE }
    }

    /// The same in many bytes, between the two ends that its sender sees.
    pub fn datagram(&self, tuple: Tuple, ttl: u8) -> Datagram {
        let (&Self { seq, ack, window, id, .. }, flags) = (self, self.flags());
        let (src_port, dst_port) = (tuple.local.port, tuple.remote.port);
        Datagram {
            tuple,
            ip: Fields { protocol: ip::TCP, ttl, ecn: self.ecn(), id },
            header: Header { src_port, dst_port, seq, ack, flags, window, options: self.options() },
            header_len: self.header_len(),
            data_len: self.data_len(),
        }
    }

    /// As a connection takes it, which doesn't ask for ports.
    #[inline]
    fn segment<'a>(&self, data: &'a [u8]) -> Segment<'a> {
        let (&Self { seq, ack, window, .. }, flags) = (self, self.flags());
        Segment { src_port: 0, dst_port: 0, seq, ack, flags, window, options: self.options(), payload: data }
    }
}

/// A segment to send, before it is bytes.
#[derive(Debug)]
pub struct Departing<'a> {
    core: &'a mut Core,
    out: &'a Outgoing,
    tuple: &'a Tuple,
}

impl Departing<'_> {
    /// The segment in few bytes.
    ///
    /// # Errors
    /// It is not [`Plain`]: itself.
    #[inline]
    pub fn plain(self) -> Result<Plain, Self> {
        let id = self.core.next_id.wrapping_add(1);
        let Some(plain) = Plain::of(self.out, ip::is_v6(self.tuple.remote.addr), id) else { return Err(self) };
        self.core.next_id = id;
        Ok(plain)
    }

    /// Puts it into `into`.
    #[inline]
    pub fn fill(self, into: &mut Datagram) {
        self.core.fill_datagram(into, self.out, self.tuple);
    }
}

impl Core {
    #[inline]
    fn fill_datagram(&mut self, into: &mut Datagram, out: &Outgoing, tuple: &Tuple) {
        (into.tuple, into.header) = (*tuple, out.header(tuple));
        (into.ip, into.data_len) = (self.ip_fields(out.ecn()), out.run.len);
        let tcp_len = if out.flags.has(Flags::SYN.with(Flags::RST)) {
            // What the layout leaves out is never sent, and fillers depend on it.
            let layout = &self.config.profile.layout;
            into.header.options = out.options.laid_out(layout);
            into.header.write(&mut [0; tcp::MAX_HEADER], layout)
        } else {
            20 + tcp::options_len(out.options.timestamps.is_some(), out.options.sack.as_slice().len())
        };
        into.header_len = (Addresses::of(tuple).header_len() + tcp_len) as u8;
    }

    #[inline]
    fn on_datagram(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        datagram: &Datagram,
        data: &[u8],
    ) -> Result<(), Dropped> {
        self.counts.note(|counts| counts.packets_in += 1);
        let Datagram { tuple: Tuple { local: src, remote: dst, .. }, ip, header, .. } = datagram;
        let segment = Segment::of(header, data);
        if let Some(at) = parts.table.same_as_last(dst, src) {
            // A connection's addresses have been looked at.
            self.on_connection(now, parts, at, ip.ecn, &segment);
        } else if self.is_local(dst.addr) && is_unicast(src.addr) {
            self.on_tcp(now, parts, &Tuple::new(*dst, *src), ip.ecn, &segment);
        } else {
            self.counts.note(|counts| counts.dropped += 1);
            return Err(Dropped::Address);
        }
        Ok(())
    }

    #[inline]
    fn on_plain(&mut self, now: Instant, parts: &mut Parts<'_>, id: SocketId, plain: &Plain, data: &[u8]) -> bool {
        if parts.entry_of(id).is_none() || parts.table.socket(id.index).is_none() {
            return false;
        }
        self.counts.note(|counts| counts.packets_in += 1);
        self.on_connection(now, parts, id.index, plain.ecn(), &plain.segment(data));
        true
    }
}

impl<S: Storage> Stack<S> {
    /// The packets to send, as [`poll_transmit`](Self::poll_transmit) gives them one after the other, before they are bytes:
    /// segments go to `take`, as long as it asks for more, and an answer that belongs to no connection is returned; call again then.
    #[inline]
    pub fn poll_datagrams(
        &mut self,
        now: Instant,
        mut take: impl FnMut(Departing<'_>) -> ControlFlow<()>,
    ) -> Option<Transmit<'_>> {
        let (core, mut parts) = self.parts();
        let answer = core.leave(now, &mut parts, |core, next| match next {
            Next::Segment(out, tuple) => take(Departing { core, out, tuple }).is_break().then_some(None),
            Next::Answer(run) => Some(Some(run)),
        })?;
        answer.map(|run| Transmit::new(Leaving::answer(run), parts.pool.into_shared()))
    }

    /// Takes a packet that is not bytes, with its data.
    ///
    /// # Errors
    /// As [`on_packet`](Self::on_packet).
    #[inline]
    pub fn on_datagram(&mut self, now: Instant, datagram: &Datagram, data: &[u8]) -> Result<(), Dropped> {
        let (core, mut parts) = self.parts();
        core.on_datagram(now, &mut parts, datagram, data)
    }

    /// Reads what is known of so many packet buffers that acknowledgements of a connection give back next, and of as many that it sends and
    /// takes next, and makes of them a sum that says nothing. Whoever goes from one connection to the next does this before a connection's
    /// packets: its slots are then fetched all at once, where otherwise one acknowledgement after the other would wait for memory.
    pub fn touch(&mut self, id: SocketId, buffers: u16) -> u32 {
        let (_, mut parts) = self.parts();
        let Some(at) = parts.entry_of(id) else { return 0 };
        parts.table.socket(at).map_or(0, |socket| socket.touch(&parts.pool, buffers))
    }

    /// Takes a plain segment of a connection, with its data; whether there is that connection. Where not,
    /// [`on_datagram`](Self::on_datagram) finds out whose it is.
    #[inline]
    pub fn on_plain(&mut self, now: Instant, id: SocketId, plain: &Plain, data: &[u8]) -> bool {
        let (core, mut parts) = self.parts();
        core.on_plain(now, &mut parts, id, plain, data)
    }
}
