//! UDP (RFC 768), as far as TCP segments travel in its datagrams: FreeBSD's TCP over UDP.

#[cfg(feature = "platforms")]
use super::{Malformed, Writer, be16, ip::Addresses, ip::Packet};

/// The protocol number.
#[cfg(feature = "platforms")]
pub(crate) const PROTOCOL: u8 = 17;
/// The length of the header.
pub(crate) const HEADER: usize = 8;
/// The length of the longest header that is written.
pub(crate) const LONGEST: usize = if cfg!(feature = "platforms") { HEADER } else { 0 };
/// Where the checksum stands.
pub(crate) const CHECKSUM_AT: usize = 6;

/// A datagram that has arrived.
#[cfg(feature = "platforms")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) data: &'a [u8],
    /// Whether a checksum covers the data, and is right.
    pub(crate) is_verified: bool,
}

#[cfg(feature = "platforms")]
impl<'a> Datagram<'a> {
    /// Reads the payload of `packet`. `verified`: the device has looked at the checksum.
    pub(crate) fn parse(packet: &Packet<'a>, verified: bool) -> Result<Self, Malformed> {
        let bytes = packet.payload;
        let (src_port, dst_port) = (be16(bytes, 0)?, be16(bytes, 2)?);
        let (len, checksum) = (usize::from(be16(bytes, 4)?), be16(bytes, CHECKSUM_AT)?);
        let whole = bytes.get(..len).ok_or(Malformed::Truncated)?;
        let data = whole.get(HEADER..).ok_or(Malformed::Header)?;
        if src_port == 0 {
            // Nobody could be answered.
            return Err(Malformed::Header);
        }
        let is_covered = checksum != 0;
        if !is_covered && packet.src.is_ipv6() {
            // RFC 8200, section 8.1.
            return Err(Malformed::Checksum);
        }
        if is_covered && !verified {
            let sum = Addresses { src: packet.src, dst: packet.dst }.pseudo_header(PROTOCOL, len as u32);
            if !sum.bytes(whole).is_valid() {
                return Err(Malformed::Checksum);
            }
        }
        Ok(Self { src_port, dst_port, data, is_verified: is_covered })
    }
}

/// Writes a header without its checksum; `ports` are the source's and the destination's, `len` the datagram's length.
#[cfg(feature = "platforms")]
pub(crate) fn write(out: &mut [u8], ports: (u16, u16), len: usize) {
    let mut w = Writer::new(out);
    w.u16(ports.0);
    w.u16(ports.1);
    w.u16(u16::try_from(len).unwrap_or(u16::MAX));
    w.u16(0);
}

/// The checksum as a datagram tells it: zero would say that there is none.
pub(crate) const fn written(sum: u16) -> u16 {
    if sum == 0 { u16::MAX } else { sum }
}

#[cfg(all(test, feature = "platforms"))]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::{ip::Ecn, set_be16};

    fn packet(payload: &[u8]) -> Packet<'_> {
        let (src, dst) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        Packet { src, dst, protocol: PROTOCOL, ecn: Ecn::NotEct, ttl: 64, payload }
    }

    fn datagram(data: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER];
        bytes.extend_from_slice(data);
        let len = bytes.len();
        write(&mut bytes, (9811, 7), len);
        let whole = packet(&bytes);
        let sum = Addresses { src: whole.src, dst: whole.dst }.pseudo_header(PROTOCOL, len as u32);
        let sum = written(sum.bytes(&bytes).finish());
        set_be16(&mut bytes, CHECKSUM_AT, sum);
        bytes
    }

    #[test]
    fn what_is_written_is_read_back_and_damage_is_seen() {
        let mut bytes = datagram(b"segment");
        let read = Datagram::parse(&packet(&bytes), false).unwrap();
        assert_eq!((read.src_port, read.dst_port, read.data), (9811, 7, &b"segment"[..]));
        assert!(read.is_verified);
        bytes[9] ^= 1;
        assert_eq!(Datagram::parse(&packet(&bytes), false).unwrap_err(), Malformed::Checksum);
        // Without a checksum the segment has to prove itself.
        bytes[CHECKSUM_AT..HEADER].fill(0);
        assert!(!Datagram::parse(&packet(&bytes), false).unwrap().is_verified);
        assert!(!Datagram::parse(&packet(&bytes), true).unwrap().is_verified, "the device has seen no checksum");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>) {
            if let Ok(read) = Datagram::parse(&packet(&data), true) {
                prop_assert!(read.data.len() + HEADER <= data.len());
            }
        }
    }
}
