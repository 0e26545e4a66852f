//! A capture file of a simulated connection: classic pcap with nanoseconds, raw IP, payload cut off.
//!
//! What is cut are zeros: lengths stay as they were on the wire, so that readers count payload as they would in any capture
//! with a short snapshot length.

use fullpipe_units::Instant;

use fullpipe_tcp::wire::tcp::OptionLayout;

use crate::packet::{Head, Whole};

/// What one end's interface saw.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    records: Vec<Record>,
}

/// One packet.
#[derive(Clone, Copy, Debug)]
struct Record {
    at: Instant,
    head: Head,
    len: u32,
}

/// `LINKTYPE_RAW`.
const RAW_IP: u32 = 101;
/// The magic number of files with nanoseconds.
const NANOSECONDS: u32 = 0xa1b2_3c4d;

impl Capture {
    /// Notes a packet, whose sender has this layout.
    pub(crate) fn push(&mut self, at: Instant, packet: &Whole, layout: &OptionLayout) {
        self.records.push(Record { at, head: packet.head(layout), len: packet.len });
    }

    /// Packets in it.
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing was seen.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The file.
    pub fn to_pcap(&self) -> Vec<u8> {
        let mut file = Vec::with_capacity(24 + self.records.len() * 76);
        for word in [NANOSECONDS, 2 | 4 << 16, 0, 0, 65_535, RAW_IP] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        for Record { at, head, len } in &self.records {
            let nanos = at.as_nanos();
            let seen = head.as_slice().len() as u32;
            for word in [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, seen, *len] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(head.as_slice());
        }
        file
    }
}
