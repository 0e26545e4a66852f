//! ARP for IPv4 over Ethernet (RFC 826).

use core::net::Ipv4Addr;

use super::{Malformed, Writer, be16, ethernet::Mac};

/// The length of a message.
pub const LEN: usize = 28;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has its address.
    Reply,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Request or reply.
    pub operation: Operation,
    /// The sender's hardware address.
    pub sender_mac: Mac,
    /// The sender's address; unspecified in a probe (RFC 5227, section 1.1).
    pub sender: Ipv4Addr,
    /// The target's hardware address, zeros in a request.
    pub target_mac: Mac,
    /// The target's address.
    pub target: Ipv4Addr,
}

impl Message {
    /// Reads a message; what follows it is padding.
    ///
    /// # Errors
    /// Other hardware, another protocol, an operation that is neither, or too few bytes.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; LEN] = data.first_chunk().ok_or(Malformed::Truncated)?;
        // Ethernet, IPv4, 6 and 4 bytes.
        if fixed[..6] != [0, 1, 8, 0, 6, 4] {
            return Err(Malformed::Header);
        }
        let operation = match be16(fixed, 6)? {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Malformed::Header),
        };
        let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, s0, s1, s2, s3, g, h, i, j, k, l, t0, t1, t2, t3] = *fixed;
        Ok(Self {
            operation,
            sender_mac: Mac([a, b, c, d, e, f]),
            sender: Ipv4Addr::new(s0, s1, s2, s3),
            target_mac: Mac([g, h, i, j, k, l]),
            target: Ipv4Addr::new(t0, t1, t2, t3),
        })
    }

    /// Writes the message into the front of `out` and returns its length.
    pub fn write(&self, out: &mut [u8]) -> usize {
        let mut w = Writer::new(out);
        w.put(&[0, 1, 8, 0, 6, 4, 0, if self.operation == Operation::Request { 1 } else { 2 }]);
        w.put(&self.sender_mac.0);
        w.put(&self.sender.octets());
        w.put(&self.target_mac.0);
        w.put(&self.target.octets());
        w.len()
    }
}
