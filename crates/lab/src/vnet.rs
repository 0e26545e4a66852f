//! The virtio-net header that stands before each packet of a TUN device with `IFF_VNET_HDR`.
//!
//! Virtual I/O Device (VIRTIO) Version 1.2, section 5.1.6, in the legacy form of 10 bytes and native byte order that
//! TUN uses by default.

/// Bytes of the header.
pub const VNET_LEN: usize = 10;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum at `csum_start + csum_offset` holds the pseudo header only.
pub const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_F_DATA_VALID`: the checksum has been looked at and is right.
pub const DATA_VALID: u8 = 2;
/// `VIRTIO_NET_HDR_GSO_NONE`.
pub const GSO_NONE: u8 = 0;
/// `VIRTIO_NET_HDR_GSO_TCPV4`.
pub const GSO_TCPV4: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV6`.
pub const GSO_TCPV6: u8 = 4;
/// `VIRTIO_NET_HDR_GSO_ECN`: the first segment carries CWR, the others don't.
pub const GSO_ECN: u8 = 0x80;

/// What the header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`NEEDS_CSUM`] and others.
    pub flags: u8,
    /// [`GSO_NONE`], [`GSO_TCPV4`] or [`GSO_TCPV6`], perhaps with [`GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of all headers, a hint.
    pub hdr_len: u16,
    /// Payload bytes per segment.
    pub gso_size: u16,
    /// Where the checksum begins to count.
    pub csum_start: u16,
    /// Where it stands, from there.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Reads a header.
    pub fn parse(bytes: &[u8; VNET_LEN]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    /// Writes a header.
    pub fn to_bytes(self) -> [u8; VNET_LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, word) in [(2, self.hdr_len), (4, self.gso_size), (6, self.csum_start), (8, self.csum_offset)] {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let header =
            VnetHeader { flags: 1, gso_type: 0x81, hdr_len: 52, gso_size: 1448, csum_start: 20, csum_offset: 16 };
        assert_eq!(VnetHeader::parse(&header.to_bytes()), header);
    }
}
