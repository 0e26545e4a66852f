//! Segments that pass from one engine to another without becoming bytes: for simulations, whose packets nobody else reads.

use fullpipe_units::Instant;

use super::{
    Core, Dropped, Parts, Stack, Storage, Transmit,
    input::is_unicast,
    output::{Leaving, MAX_HEADERS, Next},
};
use crate::{
    socket::{Outgoing, Tuple},
    wire::{
        self,
        ip::{Addresses, Fields},
        tcp::{self, CHECKSUM_AT, Flags, Header, OptionLayout, Options, Segment},
    },
};

/// A TCP segment in an IP packet, as what it says.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Its addresses.
    pub addresses: Addresses,
    /// What else its IP header says.
    pub ip: Fields,
    /// The TCP header.
    pub header: Header,
    /// The length of both headers in bytes.
    pub header_len: u8,
    /// The length of its data in bytes.
    pub data_len: u32,
}

impl Datagram {
    /// The longest headers.
    pub const MAX_HEADERS: usize = MAX_HEADERS;

    /// The length of the packet in bytes.
    pub const fn len(&self) -> u32 {
        self.header_len as u32 + self.data_len
    }

    /// Whether there is nothing, which there never is.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The headers as a device gets them that completes checksums, and their length. `layout` is the sender's.
    pub fn headers(&self, layout: &OptionLayout) -> ([u8; MAX_HEADERS], usize) {
        let mut bytes = [0; MAX_HEADERS];
        let ip_len = self.addresses.header_len();
        let tcp_len = self.header.write(&mut bytes[ip_len..], layout);
        let len = tcp_len + self.data_len as usize;
        self.addresses.write(&mut bytes, self.ip, len);
        let sum = tcp::checksum(&self.addresses, len as u32).partial();
        wire::set_be16(&mut bytes, ip_len + CHECKSUM_AT, sum);
        (bytes, ip_len + tcp_len)
    }
}

/// A packet to send, before it is bytes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is looked at and gone")]
pub enum Departing<'a> {
    /// A connection's segment.
    Segment(Datagram),
    /// An answer that belongs to no connection.
    Answer(Transmit<'a>),
}

impl Core {
    fn datagram(&mut self, out: &Outgoing, tuple: &Tuple) -> Datagram {
        let addresses = Addresses::of(tuple);
        let mut header = out.header(tuple);
        let layout = &self.config.profile.layout;
        let tcp_len = if header.flags.has(Flags::SYN.with(Flags::RST)) {
            // What the layout leaves out is never sent, and fillers depend on it.
            header.options = header.options.laid_out(layout);
            header.write(&mut [0; tcp::MAX_HEADER], layout)
        } else {
            let Options { timestamps, sack, .. } = &header.options;
            20 + tcp::options_len(timestamps.is_some(), sack.as_slice().len())
        };
        let header_len = (addresses.header_len() + tcp_len) as u8;
        Datagram { addresses, ip: self.ip_fields(out.ecn()), header, header_len, data_len: out.run.len }
    }

    fn on_datagram(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        datagram: &Datagram,
        data: &[u8],
    ) -> Result<(), Dropped> {
        self.counts.note(|counts| counts.packets_in += 1);
        let Datagram { addresses, ip, header, .. } = datagram;
        if !self.is_local(addresses.dst) || !is_unicast(addresses.src) {
            self.counts.note(|counts| counts.dropped += 1);
            return Err(Dropped::Address);
        }
        self.on_tcp(now, parts, addresses, ip.ecn, &Segment::of(header, data));
        Ok(())
    }
}

impl<S: Storage> Stack<S> {
    /// The next packet to send, as [`poll_transmit`](Self::poll_transmit) gives it, before it is bytes.
    #[inline]
    pub fn poll_datagram(&mut self, now: Instant) -> Option<Departing<'_>> {
        let (core, mut parts) = self.parts();
        Some(match core.next_to_leave(now, &mut parts)? {
            Next::Segment(out, tuple) => Departing::Segment(core.datagram(&out, &tuple)),
            Next::Answer(run) => Departing::Answer(Transmit::new(Leaving::answer(run), parts.pool.into_shared())),
        })
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
}
