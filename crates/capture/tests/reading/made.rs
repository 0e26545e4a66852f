//! Builders of packets and files, and a sink that keeps what it gets.

use fullpipe_capture::{Problem, Reader, Segment, Sink, TooBig, Totals};

/// A segment that outlives its packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) segment: Segment<'static>,
    pub(crate) options: Vec<u8>,
}

/// All that a file gave.
#[derive(Debug, Default)]
pub(crate) struct Got {
    pub(crate) segments: Vec<Kept>,
    pub(crate) too_big: Vec<TooBig>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) totals: Totals,
}

impl Sink for Got {
    fn segment(&mut self, segment: &Segment<'_>) {
        self.segments.push(Kept { segment: Segment { options: &[], ..*segment }, options: segment.options.to_vec() });
    }

    fn too_big(&mut self, notice: &TooBig) {
        self.too_big.push(*notice);
    }
}

/// Reads a file in pieces of `piece` bytes.
pub(crate) fn read_in_pieces(file: &[u8], piece: usize) -> Got {
    let mut got = Got::default();
    let mut reader = Reader::new();
    let mut kept = Vec::new();
    for piece in file.chunks(piece) {
        kept.extend_from_slice(piece);
        let done = reader.read(&kept, &mut got).expect("it is a capture");
        kept.drain(..done);
        assert!(kept.len() <= Reader::KEPT, "{} bytes are kept", kept.len());
    }
    reader.finish(&kept, &mut got).expect("it is a capture");
    got.problems = reader.problems().listed().to_vec();
    got.totals = *reader.totals();
    got
}

pub(crate) fn read(file: &[u8]) -> Got {
    read_in_pieces(file, usize::MAX)
}

/// The one segment of a frame, captured whole, without problems.
pub(crate) fn one(link: u32, frame: &[u8]) -> Segment<'static> {
    let got = read(&pcap(link, &[frame]));
    assert_eq!(got.problems, []);
    assert_eq!(got.segments.len(), 1, "{got:?}");
    got.segments[0].segment
}

/// A pcap file with microseconds, the little end first; each packet a second after the other.
pub(crate) fn pcap(link: u32, packets: &[&[u8]]) -> Vec<u8> {
    let cut: Vec<_> = packets.iter().map(|packet| (*packet, packet.len())).collect();
    pcap_cut(link, &cut)
}

/// The same with lengths as sent.
pub(crate) fn pcap_cut(link: u32, packets: &[(&[u8], usize)]) -> Vec<u8> {
    let mut file = [0xA1B2_C3D4, 4 << 16 | 2, 0, 0, 262_144, link].map(u32::to_le_bytes).concat();
    for (number, (packet, length)) in packets.iter().enumerate() {
        file.extend([number as u32 + 1, 0, packet.len() as u32, *length as u32].map(u32::to_le_bytes).concat());
        file.extend_from_slice(packet);
    }
    file
}

/// A segment from port 1000 to port 80 with timestamps, `payload` bytes and this sequence number.
pub(crate) fn tcp(seq: u32, payload: usize) -> Vec<u8> {
    let mut bytes = [1000_u16, 80].map(u16::to_be_bytes).concat();
    bytes.extend(seq.to_be_bytes());
    bytes.extend(7_u32.to_be_bytes());
    bytes.extend([0x80, 0x18, 0x12, 0x34, 0, 0, 0, 0]);
    bytes.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    bytes.resize(32 + payload, 0xEE);
    bytes
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_part(protocol, payload, 0x4000, 20 + payload.len())
}

/// The same with flags and fragment offset, and a length of its own.
pub(crate) fn ipv4_part(protocol: u8, payload: &[u8], fragment: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![0x45, 0x02];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([0x12, 0x34]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([63, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend_from_slice(payload);
    bytes
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2.
pub(crate) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    ipv6_of(next, payload, payload.len())
}

/// The same with a length of its own.
pub(crate) fn ipv6_of(next: u8, payload: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = vec![0x60, 0x10, 0, 0];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([next, 64]);
    for last in [1, 2] {
        bytes.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// An Ethernet frame.
pub(crate) fn ethernet(carried: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    bytes.extend(carried.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A UDP datagram to this port.
pub(crate) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [54_321, port, payload.len() as u16 + 8, 0].map(u16::to_be_bytes).concat();
    bytes.extend_from_slice(payload);
    bytes
}

/// One after another.
pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}
