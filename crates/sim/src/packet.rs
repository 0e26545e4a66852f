//! A packet under way. Payload is zeros throughout, so that headers and a length are all there is to carry.

use std::rc::Rc;

use fullpipe_path::{Ecn, Segment};
use fullpipe_tcp::{stack::Transmit, wire::checksum::Checksum};

/// IPv4 without options, and TCP with all of its options; an ICMP error fits, too.
pub(crate) const HEAD: usize = 80;

/// An IPv4 packet whose bytes beyond the head are zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) head: [u8; HEAD],
    pub(crate) head_len: u8,
    pub(crate) len: u32,
}

impl Packet {
    pub(crate) const EMPTY: Self = Self { head: [0; HEAD], head_len: 0, len: 0 };

    /// Becomes what leaves a stack.
    pub(crate) fn set(&mut self, transmit: &Transmit<'_>) {
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
        (self.head_len, self.len) = (head_len as u8, transmit.len() as u32);
    }

    /// As the path sees it.
    pub(crate) fn segment(self: Rc<Self>) -> Segment<Rc<Self>> {
        Segment { ecn: Ecn::from_bits(self.head[1]), ..Segment::new(self.len, self) }
    }

    /// As it leaves the path: a queue may have marked it.
    pub(crate) fn arrived(segment: Segment<Rc<Self>>) -> Rc<Self> {
        let mut shared = segment.handle;
        if segment.ecn == Ecn::Ce && shared.head[1] & 3 != Ecn::Ce as u8 {
            let packet = Rc::make_mut(&mut shared);
            packet.head[1] |= 3;
            packet.head[10..12].fill(0);
            let sum = Checksum::new().bytes(&packet.head[..20]).finish();
            packet.head[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        shared
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    /// Bytes of TCP payload; none where it is not TCP.
    pub(crate) fn payload(&self) -> u32 {
        if self.head[9] != 6 {
            return 0;
        }
        let tcp_len = u32::from(self.head[32] >> 4) * 4;
        self.len.saturating_sub(20 + tcp_len)
    }

    /// Whether it is a TCP segment with SYN.
    pub(crate) fn is_syn(&self) -> bool {
        self.head[9] == 6 && self.head[33] & 2 != 0
    }

    /// Whether it is a TCP segment with PSH.
    pub(crate) fn is_pushed(&self) -> bool {
        self.head[9] == 6 && self.head[33] & 8 != 0
    }

    /// What a router whose next link takes `mtu` bytes says about this packet: "fragmentation needed" (RFC 1191).
    pub(crate) fn too_big(&self, mtu: u32) -> Self {
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
        Self { head, head_len: LEN as u8, len: LEN as u32 }
    }
}
