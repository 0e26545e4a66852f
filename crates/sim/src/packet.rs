//! A packet under way. Payload is zeros throughout, so that headers and a length are all there is to carry.

use fullpipe_path::{Ecn, Segment};
use fullpipe_tcp::{
    socket::Tuple,
    stack::{Datagram, Departing, Plain, Transmit},
    wire::{
        checksum::Checksum,
        ip,
        tcp::{Flags, OptionLayout},
    },
};

/// IPv6 without extensions, and TCP with all of its options; an ICMP error fits, too.
pub(crate) const HEAD: usize = Datagram::MAX_HEADERS;
/// All but ECN's, which come and go.
const ALL: Flags = Flags::FIN.with(Flags::SYN).with(Flags::RST).with(Flags::PSH).with(Flags::ACK).with(Flags::URG);
/// Traffic of nobody who is simulated.
pub(crate) const CROSS: u32 = u32::MAX;

/// An IP packet whose bytes beyond the head are zeros. Most are plain segments: these lie in the path's lines themselves, one behind the
/// other, so that thousands of them under way are read as they were written.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A plain segment.
    Plain {
        /// Whose it is.
        flow: u32,
        segment: Plain,
    },
    /// Any other packet.
    Whole(Box<Whole>),
}

/// A packet with all that it may say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) body: Body,
    pub(crate) len: u32,
    /// Whose it is.
    pub(crate) flow: u32,
}

/// What a packet says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// A TCP segment, which is no bytes: nobody reads them.
    Segment(Datagram),
    /// An answer, or a router's word.
    Bytes(Head),
    /// Nothing to anybody.
    Cross,
}

/// What a plain segment of a connection does not say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The two ends as its sender sees them.
    pub(crate) tuple: Tuple,
    pub(crate) ttl: u8,
}

/// The bytes of a packet that are not zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; HEAD],
    len: u8,
}

impl Head {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The packet of so many bytes that it begins.
    pub(crate) fn packet(&self, len: u32) -> Vec<u8> {
        let mut packet = self.as_slice().to_vec();
        packet.resize(len as usize, 0);
        packet
    }
}

impl Packet {
    /// Whose it is.
    #[inline]
    pub(crate) fn flow(&self) -> u32 {
        match self {
            Self::Plain { flow, .. } => *flow,
            Self::Whole(whole) => whole.flow,
        }
    }

    /// The length of the packet in bytes.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::Plain { segment, .. } => segment.len(),
            Self::Whole(whole) => whole.len,
        }
    }

    /// As the path sees it.
    #[inline]
    pub(crate) fn segment(self) -> Segment<Self> {
        let (ecn, is_only_ack) = match &self {
            Self::Plain { segment, .. } => (segment.ecn(), segment.data_len() == 0 && is_only_ack(segment.flags())),
            Self::Whole(whole) => match whole.datagram() {
                Some(datagram) => (datagram.ip.ecn, whole.is_only_ack()),
                None => (ip::Ecn::NotEct, false),
            },
        };
        let ecn = match ecn {
            ip::Ecn::NotEct => Ecn::NotEct,
            ip::Ecn::Ect0 => Ecn::Ect0,
            ip::Ecn::Ect1 => Ecn::Ect1,
            ip::Ecn::Ce => Ecn::Ce,
        };
        Segment { ecn, ack_of: is_only_ack.then(|| self.flow()), ..Segment::new(self.len(), self) }
    }

    /// As it leaves the path: a queue may have marked it.
    #[inline]
    pub(crate) fn arrived(segment: Segment<Self>) -> Self {
        let mut packet = segment.handle;
        if segment.ecn == Ecn::Ce {
            match &mut packet {
                Self::Plain { segment, .. } => segment.mark_ce(),
                Self::Whole(whole) => {
                    if let Body::Segment(datagram) = &mut whole.body {
                        datagram.ip.ecn = ip::Ecn::Ce;
                    }
                }
            }
        }
        packet
    }

    /// With all that it says.
    pub(crate) fn whole(&self, known: &Known) -> Whole {
        match self {
            Self::Plain { flow, segment } => {
                let datagram = segment.datagram(known.tuple, known.ttl);
                Whole { body: Body::Segment(datagram), len: datagram.len(), flow: *flow }
            }
            Self::Whole(whole) => **whole,
        }
    }

    /// Bytes of TCP payload; none where it is not TCP.
    #[inline]
    pub(crate) fn payload(&self) -> u32 {
        match self {
            Self::Plain { segment, .. } => segment.data_len(),
            Self::Whole(whole) => whole.datagram().map_or(0, |datagram| datagram.data_len),
        }
    }

    /// Whether it is a TCP segment with PSH.
    #[inline]
    pub(crate) fn is_pushed(&self) -> bool {
        match self {
            Self::Plain { segment, .. } => segment.flags().has(Flags::PSH),
            Self::Whole(whole) => whole.has(Flags::PSH),
        }
    }
}

/// Whether flags say that something is acknowledged, and nothing else.
#[inline]
fn is_only_ack(flags: Flags) -> bool {
    ALL.without(flags) == ALL.without(Flags::ACK)
}

impl Whole {
    pub(crate) const EMPTY: Self = Self { body: Body::Cross, len: 0, flow: 0 };

    /// Becomes a segment that leaves a stack.
    #[inline]
    pub(crate) fn set_segment(&mut self, departing: Departing<'_>, flow: u32) {
        self.flow = flow;
        if self.datagram().is_none() {
            self.body = Body::Segment(Datagram::EMPTY);
        }
        if let Body::Segment(datagram) = &mut self.body {
            departing.fill(datagram);
            self.len = datagram.len();
        }
    }

    /// Becomes an answer that leaves a stack.
    pub(crate) fn set_answer(&mut self, answer: &Transmit<'_>, flow: u32) {
        let mut head = Head { bytes: [0; HEAD], len: 0 };
        for byte in answer.data().flatten().take(HEAD) {
            head.bytes[usize::from(head.len)] = *byte;
            head.len += 1;
        }
        *self = Self { body: Body::Bytes(head), len: answer.len() as u32, flow };
    }

    /// Becomes traffic of so many bytes that nobody answers.
    pub(crate) fn set_cross(&mut self, len: u32) {
        *self = Self { body: Body::Cross, len, flow: CROSS };
    }

    /// The TCP segment that it is.
    #[inline]
    pub(crate) const fn datagram(&self) -> Option<&Datagram> {
        match &self.body {
            Body::Segment(datagram) => Some(datagram),
            _ => None,
        }
    }

    fn has(&self, flag: Flags) -> bool {
        self.datagram().is_some_and(|datagram| datagram.header.flags.has(flag))
    }

    /// Whether it acknowledges what came in order, and does nothing else.
    #[inline]
    fn is_only_ack(&self) -> bool {
        self.datagram().is_some_and(|datagram| {
            datagram.data_len == 0 && datagram.header.options.sack.is_empty() && is_only_ack(datagram.header.flags)
        })
    }

    /// Its bytes; `layout` is that of its sender.
    pub(crate) fn head(&self, layout: &OptionLayout) -> Head {
        match &self.body {
            Body::Segment(datagram) => {
                let (bytes, len) = datagram.headers(layout);
                Head { bytes, len: len as u8 }
            }
            Body::Bytes(head) => *head,
            Body::Cross => Head { bytes: [0; HEAD], len: 0 },
        }
    }

    /// Whether it is a TCP segment with SYN.
    #[inline]
    pub(crate) fn is_syn(&self) -> bool {
        self.has(Flags::SYN)
    }

    /// What a router whose next link takes `mtu` bytes says about this packet: "fragmentation needed" (RFC 1191), or
    /// "packet too big" (RFC 4443, section 3.2).
    pub(crate) fn too_big(&self, mtu: u32, layout: &OptionLayout) -> Self {
        let head = self.head(layout).bytes;
        if head[0] >> 4 == 6 { self.too_big_v6(&head, mtu) } else { self.too_big_v4(&head, mtu) }
    }

    fn too_big_v4(&self, own: &[u8; HEAD], mtu: u32) -> Self {
        const LEN: usize = 20 + 8 + 28;
        let mut head = [0; HEAD];
        let ip: [u8; 12] = [0x45, 0, 0, LEN as u8, 0, 0, 0, 0, 64, 1, 0, 0];
        head[..12].copy_from_slice(&ip);
        // The router stands in for the destination: it has no address of its own.
        head[12..16].copy_from_slice(&own[16..20]);
        head[16..20].copy_from_slice(&own[12..16]);
        let sum = Checksum::new().bytes(&head[..20]).finish();
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        (head[20], head[21]) = (3, 4);
        head[26..28].copy_from_slice(&(mtu.min(65_535) as u16).to_be_bytes());
        head[28..LEN].copy_from_slice(&own[..28]);
        let sum = Checksum::new().bytes(&head[20..LEN]).finish();
        head[22..24].copy_from_slice(&sum.to_be_bytes());
        Self { body: Body::Bytes(Head { bytes: head, len: LEN as u8 }), len: LEN as u32, flow: self.flow }
    }

    fn too_big_v6(&self, own: &[u8; HEAD], mtu: u32) -> Self {
        // The packet's own header and the first eight bytes of TCP: ports and sequence number.
        const BODY: usize = 8 + 40 + 8;
        const LEN: usize = 40 + BODY;
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, BODY as u8, 58, 64]);
        head[8..24].copy_from_slice(&own[24..40]);
        head[24..40].copy_from_slice(&own[8..24]);
        head[40] = 2;
        head[44..48].copy_from_slice(&mtu.to_be_bytes());
        head[48..LEN].copy_from_slice(&own[..48]);
        // RFC 8200, section 8.1: the sum covers addresses, length and protocol.
        let pseudo = Checksum::new().bytes(&head[8..40]).bytes(&[0, 0, 0, BODY as u8, 0, 0, 0, 58]);
        let sum = pseudo.bytes(&head[40..LEN]).finish();
        head[42..44].copy_from_slice(&sum.to_be_bytes());
        Self { body: Body::Bytes(Head { bytes: head, len: LEN as u8 }), len: LEN as u32, flow: self.flow }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_tcp::wire::tcp::SackBlock;
    use fullpipe_units::SeqNum;

    use super::*;

    /// With timestamps or without: a path that thins acknowledgements must not leave it out.
    #[test]
    fn what_reports_a_gap_is_more_than_an_acknowledgement() {
        let mut datagram = Datagram::EMPTY;
        datagram.header.flags = Flags::ACK;
        let ack_of = |datagram| {
            let whole = Whole { body: Body::Segment(datagram), len: 52, flow: 3 };
            Packet::Whole(Box::new(whole)).segment().ack_of
        };
        assert_eq!(ack_of(datagram), Some(3));
        datagram.header.options.sack.push(SackBlock { start: SeqNum::new(1), end: SeqNum::new(2) });
        assert_eq!(ack_of(datagram), None);
    }
}
