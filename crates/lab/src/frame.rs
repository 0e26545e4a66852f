//! One packet as the kernel hands it over, up to 64 KB of it, and the wire-size segments that it stands for.
//!
//! A segment is a range of its frame: payload is never copied between the read from one device and the write to the
//! other. Headers are rewritten as Linux does when it segments in software (`tcp_gso_segment`), and checksums are left
//! to the receiving kernel, which gets `NEEDS_CSUM` just as from a network card that segments.
//! What is *not* here: when a segment leaves (`lane`), and which of them do (the path).

use std::{
    cell::{Cell, RefCell},
    io::{self, IoSlice},
    rc::Rc,
};

use fullpipe_path::Ecn;
use fullpipe_units::TcpFlags;

use crate::{
    checksum,
    tun::Tun,
    vnet::{GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, NEEDS_CSUM, VNET_LEN, VnetHeader},
};

/// The header and the largest packet that the kernel hands to a TUN device (`GSO_LEGACY_MAX_SIZE` of 65,536 bytes).
const BUFFER: usize = VNET_LEN + 65_536;
/// A packet up to this size is copied out of its buffer: acknowledgements must not hold 64 KB each.
const SMALL: usize = 4_096;
/// More header than any TCP segment has in practice: IPv6 (40) with 200 bytes of extensions and a full TCP header (60).
const HEADER_MAX: usize = 300;

/// TCP's number in IP headers.
const TCP: u8 = 6;
const TCP_FIN: u8 = TcpFlags::FIN.byte();
const TCP_PSH: u8 = TcpFlags::PSH.byte();
const TCP_ACK: u8 = TcpFlags::ACK.byte();
const TCP_CWR: u8 = TcpFlags::CWR.byte();
/// CWR and ECE: an echo is repeated in every acknowledgement.
const TCP_ECN: u8 = TcpFlags::CWR.with(TcpFlags::ECE).byte();
/// The option's kind (RFC 2018).
const TCP_SACK: u8 = 5;
const TCP_SEQ: usize = 4;
const TCP_DATA_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;

/// Where the buffers of dropped frames go to be used again, and how much memory frames hold.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: RefCell<Vec<Box<[u8]>>>,
    held: Cell<usize>,
}

impl Pool {
    fn take(&self) -> Box<[u8]> {
        self.free.borrow_mut().pop().unwrap_or_else(|| vec![0; BUFFER].into())
    }

    /// Bytes that frames hold now.
    pub(crate) fn held(&self) -> usize {
        self.held.get()
    }
}

/// Reads frames from a device into pooled buffers.
#[derive(Debug)]
pub(crate) struct Reader {
    landing: Box<[u8]>,
    pool: Rc<Pool>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        let pool = Rc::new(Pool::default());
        Self { landing: pool.take(), pool }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The next frame that waits at `tun`; `None` where none does.
    ///
    /// # Errors
    /// What the kernel says, and `InvalidData` for a packet that doesn't fit its own offload header.
    pub(crate) fn read(&mut self, tun: &Tun) -> io::Result<Option<Rc<Frame>>> {
        let Some(read) = tun.read(&mut self.landing)? else { return Ok(None) };
        let buffer = if read <= SMALL {
            self.landing[..read].into()
        } else {
            std::mem::replace(&mut self.landing, self.pool.take())
        };
        Frame::new(buffer, read, Rc::clone(&self.pool)).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Segments of one frame that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The number of the first, from 0.
    pub(crate) first: u16,
    /// How many.
    pub(crate) count: u16,
    /// The ECN field that they leave with.
    pub(crate) ecn: Ecn,
}

/// How a super-packet falls into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    ip_len: usize,
    header_len: usize,
    segment_payload: usize,
    payload: usize,
}

/// One packet as it was read, with its offload header.
#[derive(Debug)]
pub(crate) struct Frame {
    buffer: Box<[u8]>,
    len: usize,
    vnet: VnetHeader,
    split: Option<Split>,
    pool: Rc<Pool>,
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.pool.held.set(self.pool.held.get() - self.buffer.len());
        if self.buffer.len() == BUFFER {
            self.pool.free.borrow_mut().push(std::mem::take(&mut self.buffer));
        }
    }
}

impl Frame {
    /// `None` for what is no packet or contradicts its offload header.
    fn new(buffer: Box<[u8]>, len: usize, pool: Rc<Pool>) -> Option<Rc<Self>> {
        let vnet = VnetHeader::parse(buffer.get(..len)?.first_chunk()?);
        let packet = &buffer[VNET_LEN..len];
        let split = if vnet.gso_type == GSO_NONE {
            let whole = packet.first().map(|first| first >> 4);
            let fits = whole == Some(4) && packet.len() >= 20 || whole == Some(6) && packet.len() >= 40;
            fits.then_some(None)
        } else {
            Split::parse(vnet, packet).map(Some)
        };
        pool.held.set(pool.held.get() + buffer.len());
        let mut frame = Self { buffer, len, vnet, split: None, pool };
        frame.split = split?;
        Some(Rc::new(frame))
    }

    pub(crate) fn packet(&self) -> &[u8] {
        &self.buffer[VNET_LEN..self.len]
    }

    /// How many segments it stands for.
    pub(crate) fn segments(&self) -> u16 {
        self.split.map_or(1, |split| split.payload.div_ceil(split.segment_payload) as u16)
    }

    /// The length of a segment on the wire: IP header, TCP header and payload.
    pub(crate) fn wire_len(&self, index: u16) -> u32 {
        let len =
            self.split.map_or(self.len - VNET_LEN, |split| split.header_len + split.payload_range(index, 1).len());
        len as u32
    }

    /// Whether it goes to 224.0.0.0/24 (RFC 5771, section 4) or to ff02::/16 (RFC 4291, section 2.7).
    pub(crate) fn is_link_local_multicast(&self) -> bool {
        let packet = self.packet();
        if packet[0] >> 4 == 6 { packet[24..26] == [0xff, 0x02] } else { packet[16..19] == [224, 0, 0] }
    }

    /// The ECN field that it was sent with.
    pub(crate) fn ecn(&self) -> Ecn {
        let packet = self.packet();
        Ecn::from_bits(if packet[0] >> 4 == 6 { packet[1] >> 4 } else { packet[1] })
    }

    /// The connection that it acknowledges data of, where it does nothing else: no payload, no flag but ACK, and no report
    /// of what came out of order.
    pub(crate) fn acknowledges(&self) -> Option<u32> {
        let packet = self.packet();
        let (ip_len, protocol, addresses) = match packet.first()? >> 4 {
            4 => (usize::from(packet[0] & 15) * 4, packet.get(9)?, packet.get(12..20)?),
            _ => (40, packet.get(6)?, packet.get(8..40)?),
        };
        let tcp = packet.get(ip_len..)?;
        let header_len = usize::from(tcp.get(TCP_DATA_OFFSET)? >> 4) * 4;
        if *protocol != TCP || tcp.len() != header_len || tcp.get(TCP_FLAGS)? & !TCP_ECN != TCP_ACK {
            return None;
        }
        let mut options = tcp.get(20..)?;
        while let [kind, rest @ ..] = options {
            let len = match kind {
                0 => break,
                1 => 1,
                &TCP_SACK => return None,
                _ => usize::from(*rest.first()?).max(2),
            };
            options = options.get(len..)?;
        }
        // FNV-1a: a name for the connection, which nothing else depends on.
        let named = addresses.iter().chain(tcp.get(..4)?);
        Some(named.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)))
    }

    /// Writes the `count` segments from `first` on, with this ECN field, as one packet, which the kernel takes as that
    /// many segments.
    pub(crate) fn write(&self, tun: &Tun, run: Run) -> io::Result<()> {
        let mut scratch = [0; VNET_LEN + HEADER_MAX];
        let (header, payload) = self.gather(run, &mut scratch);
        tun.write(&[IoSlice::new(header), IoSlice::new(payload)])
    }

    /// One segment as it looks on the wire, its checksum complete.
    pub(crate) fn segment(&self, index: u16) -> Vec<u8> {
        let mut header = [0; VNET_LEN + HEADER_MAX];
        let run = Run { first: index, count: 1, ecn: self.ecn() };
        let (header, payload) = self.gather(run, &mut header);
        let mut packet = [&header[VNET_LEN..], payload].concat();
        let start = usize::from(self.vnet.csum_start);
        let at = start + usize::from(self.vnet.csum_offset);
        if self.vnet.flags & NEEDS_CSUM != 0 && at + 2 <= packet.len() {
            let sum = checksum::complement(&packet[start..]);
            packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }

    /// The offload header with the packet's headers, and the payload.
    fn gather<'a>(&'a self, run: Run, scratch: &'a mut [u8]) -> (&'a [u8], &'a [u8]) {
        let Run { first, count, ecn } = run;
        let Some(split) = self.split else { return self.gather_whole(ecn, scratch) };
        let payload = split.payload_range(first, count);
        let is_first = first == 0;
        let is_last = payload.end == split.payload;
        let header = &mut scratch[..VNET_LEN + split.header_len];
        let (vnet, headers) = header.split_at_mut(VNET_LEN);
        headers.copy_from_slice(&self.packet()[..split.header_len]);

        let (ip, tcp) = headers.split_at_mut(split.ip_len);
        let l4_len = (tcp.len() + payload.len()) as u16;
        rewrite_ip(ip, l4_len, first);
        set_ecn(ip, ecn);
        let old_l4_len = (self.len - VNET_LEN - split.ip_len) as u16;
        let partial = checksum::replace(word(tcp, TCP_CHECKSUM), old_l4_len, l4_len);
        put_word(tcp, TCP_CHECKSUM, partial);
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(payload.start as u32);
        tcp[TCP_SEQ..TCP_SEQ + 4].copy_from_slice(&seq.to_be_bytes());
        if !is_last {
            tcp[TCP_FLAGS] &= !(TCP_FIN | TCP_PSH);
        }
        if !is_first {
            tcp[TCP_FLAGS] &= !TCP_CWR;
        }

        let (gso_type, gso_size) = if count > 1 {
            let ecn = if is_first { self.vnet.gso_type & GSO_ECN } else { 0 };
            (self.vnet.gso_type & !GSO_ECN | ecn, self.vnet.gso_size)
        } else {
            (GSO_NONE, 0)
        };
        let hdr_len = split.header_len as u16;
        vnet.copy_from_slice(&VnetHeader { gso_type, gso_size, hdr_len, ..self.vnet }.to_bytes());
        let start = split.header_len + payload.start;
        (header, &self.packet()[start..start + payload.len()])
    }

    fn gather_whole<'a>(&'a self, ecn: Ecn, scratch: &'a mut [u8]) -> (&'a [u8], &'a [u8]) {
        let buffer = &self.buffer[..self.len];
        if ecn == self.ecn() {
            return buffer.split_at(VNET_LEN);
        }
        let ip_len = if buffer[VNET_LEN] >> 4 == 4 { 20 } else { 40 };
        let (header, rest) = buffer.split_at((VNET_LEN + ip_len).min(buffer.len()));
        let header_copy = &mut scratch[..header.len()];
        header_copy.copy_from_slice(header);
        set_ecn(&mut header_copy[VNET_LEN..], ecn);
        (header_copy, rest)
    }
}

impl Split {
    fn parse(vnet: VnetHeader, packet: &[u8]) -> Option<Self> {
        let version = match vnet.gso_type & !GSO_ECN {
            GSO_TCPV4 => 4,
            GSO_TCPV6 => 6,
            _ => return None,
        };
        let ip_len = usize::from(vnet.csum_start);
        let is_tcp = vnet.flags & NEEDS_CSUM != 0 && usize::from(vnet.csum_offset) == TCP_CHECKSUM;
        let fixed_header = if version == 4 { 20 } else { 40 };
        if packet.first()? >> 4 != version || !is_tcp || ip_len < fixed_header {
            return None;
        }
        let tcp_len = usize::from(packet.get(ip_len + TCP_DATA_OFFSET)? >> 4) * 4;
        let header_len = ip_len + tcp_len;
        let payload = packet.len().checked_sub(header_len)?;
        // The length field counts the header in IPv4 only.
        let counted = if version == 4 { packet.len() } else { packet.len() - 40 };
        let fits = tcp_len >= 20 && header_len <= HEADER_MAX && counted <= usize::from(u16::MAX);
        (fits && vnet.gso_size > 0 && payload > 0).then_some(Self {
            ip_len,
            header_len,
            segment_payload: usize::from(vnet.gso_size),
            payload,
        })
    }

    fn payload_range(&self, first: u16, count: u16) -> std::ops::Range<usize> {
        let start = usize::from(first) * self.segment_payload;
        start..(start + usize::from(count) * self.segment_payload).min(self.payload)
    }
}

/// Sets the lengths and, for IPv4, the identification of segment `index` and the header's checksum.
fn rewrite_ip(ip: &mut [u8], l4_len: u16, index: u16) {
    let header_len = ip.len() as u16;
    if ip[0] >> 4 == 4 {
        put_word(ip, 2, header_len + l4_len);
        put_word(ip, 4, word(ip, 4).wrapping_add(index));
        put_word(ip, 10, 0);
        put_word(ip, 10, checksum::complement(ip));
    } else {
        put_word(ip, 4, header_len - 40 + l4_len);
    }
}

/// Sets the ECN field and keeps an IPv4 header's checksum right.
fn set_ecn(ip: &mut [u8], ecn: Ecn) {
    let before = word(ip, 0);
    if ip[0] >> 4 == 4 {
        ip[1] = ip[1] & !0b11 | ecn as u8;
        let sum = checksum::replace(!word(ip, 10), before, word(ip, 0));
        put_word(ip, 10, !sum);
    } else {
        ip[1] = ip[1] & !0b0011_0000 | (ecn as u8) << 4;
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
