//! A packet under way. Payload is zeros throughout, so that headers and a length are all there is to carry.

use std::rc::Rc;

use fullpipe_path::{Ecn, Segment};
use fullpipe_tcp::{
    stack::Transmit,
    wire::{checksum::Checksum, tcp::Flags},
};

/// IPv6 without extensions, and TCP with all of its options; an ICMP error fits, too.
pub(crate) const HEAD: usize = 100;
const TCP: u8 = 6;
/// All but ECN's, which come and go.
const ALL: Flags = Flags::FIN.with(Flags::SYN).with(Flags::RST).with(Flags::PSH).with(Flags::ACK).with(Flags::URG);
/// Traffic of nobody who is simulated.
pub(crate) const CROSS: u32 = u32::MAX;

/// An IP packet whose bytes beyond the head are zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) head: [u8; HEAD],
    pub(crate) head_len: u8,
    pub(crate) len: u32,
    /// Whose it is.
    pub(crate) flow: u32,
}

impl Packet {
    pub(crate) const EMPTY: Self = Self { head: [0; HEAD], head_len: 0, len: 0, flow: 0 };

    /// Becomes what leaves a stack.
    pub(crate) fn set(&mut self, transmit: &Transmit<'_>, flow: u32) {
        let headers = transmit.headers();
        let mut head_len = headers.len().min(HEAD);
        self.head[..head_len].copy_from_slice(&headers[..head_len]);
        if headers.is_empty() {
            // An answer that lies whole in a buffer.
            for byte in transmit.data().flatten().take(HEAD) {
                self.head[head_len] = *byte;
                head_len += 1;
            }
        }
        self.head[head_len..].fill(0);
        (self.head_len, self.len, self.flow) = (head_len as u8, transmit.len() as u32, flow);
    }

    /// Becomes traffic of so many bytes that nobody answers.
    pub(crate) fn set_cross(&mut self, len: u32) {
        *self = Self { len, flow: CROSS, ..Self::EMPTY };
    }

    const fn is_v6(&self) -> bool {
        self.head[0] >> 4 == 6
    }

    /// The length of the IP header.
    pub(crate) const fn ip_len(&self) -> usize {
        if self.is_v6() { 40 } else { 20 }
    }

    const fn is_tcp(&self) -> bool {
        (if self.is_v6() { self.head[6] } else { self.head[9] }) == TCP
    }

    const fn flags(&self) -> Flags {
        Flags::from_byte(self.head[self.ip_len() + 13])
    }

    const fn ecn_bits(&self) -> u8 {
        if self.is_v6() { self.head[1] >> 4 & 3 } else { self.head[1] & 3 }
    }

    /// As the path sees it.
    pub(crate) fn segment(self: Rc<Self>) -> Segment<Rc<Self>> {
        let ack_of = self.is_only_ack().then_some(self.flow);
        Segment { ecn: Ecn::from_bits(self.ecn_bits()), ack_of, ..Segment::new(self.len, self) }
    }

    /// Whether it acknowledges what came in order, and does nothing else.
    fn is_only_ack(&self) -> bool {
        let header_len = u32::from(self.head_len);
        // Timestamps and their two fillers are 12 bytes; what is longer reports what came out of order.
        self.len == header_len
            && header_len <= self.ip_len() as u32 + 32
            && self.is_tcp()
            && ALL.without(self.flags()) == ALL.without(Flags::ACK)
    }

    /// As it leaves the path: a queue may have marked it.
    pub(crate) fn arrived(segment: Segment<Rc<Self>>) -> Rc<Self> {
        let mut shared = segment.handle;
        if segment.ecn == Ecn::Ce && shared.ecn_bits() != Ecn::Ce as u8 {
            let packet = Rc::make_mut(&mut shared);
            if packet.is_v6() {
                packet.head[1] |= 3 << 4;
            } else {
                packet.head[1] |= 3;
                packet.head[10..12].fill(0);
                let sum = Checksum::new().bytes(&packet.head[..20]).finish();
                packet.head[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        shared
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    /// The TCP header.
    pub(crate) fn tcp(&self) -> &[u8] {
        self.head().get(self.ip_len()..).unwrap_or_default()
    }

    /// Bytes of TCP payload; none where it is not TCP.
    pub(crate) fn payload(&self) -> u32 {
        if !self.is_tcp() {
            return 0;
        }
        let tcp_len = u32::from(self.head[self.ip_len() + 12] >> 4) * 4;
        self.len.saturating_sub(self.ip_len() as u32 + tcp_len)
    }

    /// Whether it is a TCP segment with SYN.
    pub(crate) const fn is_syn(&self) -> bool {
        self.is_tcp() && self.flags().has(Flags::SYN)
    }

    /// Whether it is a TCP segment with PSH.
    pub(crate) const fn is_pushed(&self) -> bool {
        self.is_tcp() && self.flags().has(Flags::PSH)
    }

    /// What a router whose next link takes `mtu` bytes says about this packet: "fragmentation needed" (RFC 1191), or
    /// "packet too big" (RFC 4443, section 3.2).
    pub(crate) fn too_big(&self, mtu: u32) -> Self {
        if self.is_v6() { self.too_big_v6(mtu) } else { self.too_big_v4(mtu) }
    }

    fn too_big_v4(&self, mtu: u32) -> Self {
        const LEN: usize = 20 + 8 + 28;
        let mut head = [0; HEAD];
        let ip: [u8; 12] = [0x45, 0, 0, LEN as u8, 0, 0, 0, 0, 64, 1, 0, 0];
        head[..12].copy_from_slice(&ip);
        // The router stands in for the destination: it has no address of its own.
        head[12..16].copy_from_slice(&self.head[16..20]);
        head[16..20].copy_from_slice(&self.head[12..16]);
        let sum = Checksum::new().bytes(&head[..20]).finish();
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        (head[20], head[21]) = (3, 4);
        head[26..28].copy_from_slice(&(mtu.min(65_535) as u16).to_be_bytes());
        head[28..LEN].copy_from_slice(&self.head[..28]);
        let sum = Checksum::new().bytes(&head[20..LEN]).finish();
        head[22..24].copy_from_slice(&sum.to_be_bytes());
        Self { head, head_len: LEN as u8, len: LEN as u32, flow: self.flow }
    }

    fn too_big_v6(&self, mtu: u32) -> Self {
        // The packet's own header and the first eight bytes of TCP: ports and sequence number.
        const BODY: usize = 8 + 40 + 8;
        const LEN: usize = 40 + BODY;
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, BODY as u8, 58, 64]);
        head[8..24].copy_from_slice(&self.head[24..40]);
        head[24..40].copy_from_slice(&self.head[8..24]);
        head[40] = 2;
        head[44..48].copy_from_slice(&mtu.to_be_bytes());
        head[48..LEN].copy_from_slice(&self.head[..48]);
        // RFC 8200, section 8.1: the sum covers addresses, length and protocol.
        let pseudo = Checksum::new().bytes(&head[8..40]).bytes(&[0, 0, 0, BODY as u8, 0, 0, 0, 58]);
        let sum = pseudo.bytes(&head[40..LEN]).finish();
        head[42..44].copy_from_slice(&sum.to_be_bytes());
        Self { head, head_len: LEN as u8, len: LEN as u32, flow: self.flow }
    }
}
