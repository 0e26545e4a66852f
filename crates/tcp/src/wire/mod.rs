//! Packet formats: Ethernet, ARP, IPv4, IPv6, TCP, UDP around it, ICMP and neighbour discovery, read from untrusted bytes and written.
//!
//! Reading checks lengths once and gives plain values; nothing here panics on any input, and nothing here knows a
//! connection. What is *not* here: fragments (refused, see [`crate::refusals`]), IP options beyond skipping them.

pub mod arp;
pub mod checksum;
pub mod ethernet;
#[cfg(feature = "fast-open")]
pub mod fast_open;
pub mod icmp;
pub mod ip;
pub mod ndp;
pub mod tcp;
pub(crate) mod udp;

/// Why bytes are not a packet that this stack reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// Shorter than a header, or than the length that a header states.
    Truncated,
    /// A field holds what the format forbids: version, header length, total length.
    Header,
    /// A checksum does not match.
    Checksum,
    /// A fragment of a datagram (see [`crate::refusals`]).
    Fragment,
    /// An option whose length is impossible (RFC 9293, section 3.1, MUST-7).
    Option,
}

/// The two bytes at `at` in network order, or `Truncated`.
pub(crate) fn be16(data: &[u8], at: usize) -> Result<u16, Malformed> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Malformed::Truncated)?;
    Ok(u16::from_be_bytes(*bytes))
}

/// The four bytes at `at` in network order, or `Truncated`.
pub(crate) fn be32(data: &[u8], at: usize) -> Result<u32, Malformed> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Malformed::Truncated)?;
    Ok(u32::from_be_bytes(*bytes))
}

/// A header being written into a fixed array, front to back. What does not fit is cut, never a panic: the callers'
/// sums are checked by their tests.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if let Some(space) = self.out.get_mut(self.len..self.len + bytes.len()) {
            space.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

/// Overwrites the two bytes at `at`, if they exist.
pub(crate) fn set_be16(data: &mut [u8], at: usize, value: u16) {
    if let Some(field) = data.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}
