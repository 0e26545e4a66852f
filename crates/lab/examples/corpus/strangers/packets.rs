//! Just enough of a pcap file to know what was sent in it, without the reader that is judged, and to cut it.

use std::{collections::BTreeMap, fs, io, net::IpAddr, ops::Range, path::Path};

use serde::{Deserialize, Serialize};

/// A file of raw IP packets, as tcpdump writes it beside a TUN device.
pub(crate) struct Packets {
    bytes: Vec<u8>,
    /// Of each packet, header included.
    places: Vec<Range<usize>>,
}

/// What the connection with most payload from one host carried from there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    /// How often payload came from there after a packet with payload the other way: answers to requests.
    pub(crate) turns: u64,
    /// The most that was sent and not yet acknowledged here.
    pub(crate) most_in_flight: u64,
}

#[derive(Clone, Copy)]
struct Flow {
    first_us: u64,
    last_us: u64,
    payload: u64,
    base: u32,
    end: u32,
}

struct Segment {
    key: (IpAddr, u16, IpAddr, u16),
    seq: u32,
    ack: u32,
    acknowledges: bool,
    payload: u32,
    at_us: u64,
}

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const LINKTYPE_ETHERNET: u32 = 1;

impl Packets {
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let bytes = fs::read(file)?;
        let mut places = Vec::new();
        let mut at = FILE_HEADER;
        while at + RECORD_HEADER <= bytes.len() {
            let end = at + RECORD_HEADER + word(&bytes, at + 8) as usize;
            if end > bytes.len() {
                break;
            }
            places.push(at..end);
            at = end;
        }
        Ok(Self { bytes, places })
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Writes those that `keeps` wants, by number.
    pub(crate) fn write(&self, file: &Path, keeps: impl Fn(usize) -> bool) -> io::Result<()> {
        let mut out = self.bytes[..FILE_HEADER].to_vec();
        for (_, place) in self.places.iter().enumerate().filter(|(number, _)| keeps(*number)) {
            out.extend_from_slice(&self.bytes[place.clone()]);
        }
        fs::write(file, out)
    }

    /// Writes all of them as Ethernet frames of this VLAN.
    pub(crate) fn write_tagged(&self, file: &Path, vlan: u16) -> io::Result<()> {
        let mut out = self.bytes[..FILE_HEADER].to_vec();
        out[20..24].copy_from_slice(&LINKTYPE_ETHERNET.to_le_bytes());
        for place in &self.places {
            let record = &self.bytes[place.clone()];
            let protocol: u16 = if record[RECORD_HEADER] >> 4 == 6 { 0x86dd } else { 0x0800 };
            let mut header = Vec::from([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0]);
            header.extend(vlan.to_be_bytes());
            header.extend(protocol.to_be_bytes());
            out.extend_from_slice(&record[..8]);
            for at in [8, 12] {
                out.extend((word(record, at) + header.len() as u32).to_le_bytes());
            }
            out.extend(header);
            out.extend_from_slice(&record[RECORD_HEADER..]);
        }
        fs::write(file, out)
    }

    pub(crate) fn carried(&self, from: IpAddr) -> Option<Carried> {
        let mut flows: BTreeMap<(IpAddr, u16, IpAddr, u16), Flow> = BTreeMap::new();
        for segment in self.segments().filter(|segment| segment.payload > 0) {
            let flow = flows.entry(segment.key).or_insert(Flow {
                first_us: segment.at_us,
                last_us: segment.at_us,
                payload: 0,
                base: segment.seq,
                end: segment.seq,
            });
            flow.last_us = segment.at_us;
            flow.payload += u64::from(segment.payload);
            let end = segment.seq.wrapping_add(segment.payload);
            if end.wrapping_sub(flow.end) < 1 << 31 {
                flow.end = end;
            }
        }
        let (key, flow) = flows.iter().filter(|(key, _)| key.0 == from).max_by_key(|(_, flow)| flow.payload)?;
        let back = (key.2, key.3, key.0, key.1);
        let (mut sent, mut acked, mut most_in_flight) = (0, 0, 0);
        for segment in self.segments() {
            let ahead = |number: u32| Some(number.wrapping_sub(flow.base)).filter(|ahead| *ahead < 1 << 31);
            if segment.key == *key && segment.payload > 0 {
                sent = sent.max(ahead(segment.seq.wrapping_add(segment.payload)).unwrap_or(0));
            } else if segment.key == back && segment.acknowledges {
                acked = acked.max(ahead(segment.ack).unwrap_or(0));
            }
            most_in_flight = most_in_flight.max(sent.saturating_sub(acked));
        }
        let (mut turns, mut was_back) = (0, false);
        for segment in self.segments().filter(|segment| segment.payload > 0) {
            turns += u64::from(was_back && segment.key == *key);
            was_back = if segment.key == *key { false } else { was_back || segment.key == back };
        }
        Some(Carried {
            // Modulo 4 GB, which nothing here comes near.
            bytes: u64::from(flow.end.wrapping_sub(flow.base)),
            seconds: (flow.last_us - flow.first_us) as f64 / 1e6,
            turns,
            most_in_flight: most_in_flight.into(),
        })
    }

    fn segments(&self) -> impl Iterator<Item = Segment> {
        self.places.iter().filter_map(|place| segment(&self.bytes[place.clone()]))
    }
}

fn segment(record: &[u8]) -> Option<Segment> {
    let at_us = u64::from(word(record, 0)) * 1_000_000 + u64::from(word(record, 4));
    let length = word(record, 12);
    let ip = &record[RECORD_HEADER..];
    let (from, to, ip_header): (IpAddr, IpAddr, usize) = match ip.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
            (address(12)?, address(16)?, usize::from(ip[0] & 15) * 4)
        }
        _ => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
            (address(8)?, address(24)?, 40)
        }
    };
    let tcp = ip.get(ip_header..)?;
    let port = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
    let headers = ip_header as u32 + u32::from(tcp.get(12)? >> 4) * 4;
    Some(Segment {
        key: (from, port(0)?, to, port(2)?),
        seq: u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?),
        acknowledges: tcp.get(13)? & 0x10 != 0,
        ack: u32::from_be_bytes(tcp.get(8..12)?.try_into().ok()?),
        payload: length.saturating_sub(headers),
        at_us,
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
