//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, with options and extension headers. What is *not* here: waiting for
//! fragments, and checksums (offloads leave them wrong in captures of what the host itself sent).

use super::{fragments::Part, protocol};
use crate::{
    problem::ProblemKind,
    segment::{Address, Network, Sink},
    view::{View, Walked},
    walk::Walk,
};

/// What an IP header said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) network: Network,
}

impl Datagram {
    pub(crate) const fn ends(&self) -> [Address; 2] {
        [self.from, self.to]
    }
}

impl<S: Sink> Walk<'_, S> {
    /// An IP packet, whose version stands in its first byte.
    pub(crate) fn ip(&mut self, view: View<'_>) -> Walked {
        match view.u8(0)? >> 4 {
            4 => self.ipv4(view),
            6 => self.ipv6(view),
            _ => Err(ProblemKind::BadIp),
        }
    }

    #[inline]
    pub(crate) fn ipv4(&mut self, view: View<'_>) -> Walked {
        self.deeper()?;
        let header: [u8; 20] = view.array(0)?;
        let header_len = usize::from(header[0] & 0xF) * 4;
        if header[0] >> 4 != 4 || header_len < 20 {
            return Err(ProblemKind::BadIp);
        }
        // A length of 0 is that of a packet beyond 65,535 bytes that the card has yet to cut (BIG TCP), or of one whose
        // length the card has yet to write: then the frame's length is all there is.
        let length = match u16::from_be_bytes([header[2], header[3]]) {
            0 => view.len,
            length => u32::from(length),
        };
        if length < header_len as u32 {
            return Err(ProblemKind::BadIp);
        }
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let datagram = Datagram {
            from: mapped([header[12], header[13], header[14], header[15]]),
            to: mapped([header[16], header[17], header[18], header[19]]),
            network: Network {
                id: Some(u16::from_be_bytes([header[4], header[5]])),
                hop_limit: header[8],
                ecn: header[1] & 3,
                dont_fragment: fragment & 0x4000 != 0,
                length,
            },
        };
        let payload = within(view.skip(header_len)?, length - header_len as u32);
        if fragment & 0x3FFF == 0 {
            // Nearly all: not through what is called for all.
            if header[9] == protocol::TCP {
                return self.tcp(payload, &datagram);
            }
            return self.carried(header[9], payload, &datagram);
        }
        let id = u32::from(u16::from_be_bytes([header[4], header[5]]));
        let offset = u32::from(fragment & 0x1FFF) * 8;
        self.fragment(Part { id, offset, has_more: fragment & 0x2000 != 0 }, header[9], payload, &datagram)
    }

    #[inline]
    pub(crate) fn ipv6(&mut self, view: View<'_>) -> Walked {
        self.deeper()?;
        let header: [u8; 40] = view.array(0)?;
        if header[0] >> 4 != 6 {
            return Err(ProblemKind::BadIp);
        }
        let address = |at: usize| {
            let bits = header[at..at + 16].iter().fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
            Address(bits)
        };
        let rest = view.skip(40)?;
        // 0 is that of a jumbogram, whose length stands in an option (RFC 2675), or of a packet that the card has yet
        // to cut (BIG TCP).
        let payload_len = match u16::from_be_bytes([header[4], header[5]]) {
            0 => jumbo_length(header[6], rest).unwrap_or(rest.len),
            length => u32::from(length),
        };
        let datagram = Datagram {
            from: address(8),
            to: address(24),
            network: Network {
                id: None,
                hop_limit: header[7],
                ecn: header[1] >> 4 & 3,
                dont_fragment: true,
                length: payload_len.saturating_add(40),
            },
        };
        self.extensions(header[6], within(rest, payload_len), &datagram)
    }

    /// Follows the chain of extension headers to what the packet carries.
    #[inline]
    fn extensions(&mut self, mut next: u8, mut view: View<'_>, datagram: &Datagram) -> Walked {
        loop {
            let length = match next {
                protocol::HOP_BY_HOP
                | protocol::ROUTING
                | protocol::DESTINATION
                | protocol::MOBILITY
                | protocol::HIP
                | protocol::SHIM6 => (usize::from(view.u8(1)?) + 1) * 8,
                protocol::FRAGMENT => {
                    let field = view.u16(2)?;
                    let part = Part { id: view.u32(4)?, offset: u32::from(field & 0xFFF8), has_more: field & 1 != 0 };
                    let (carried, rest) = (view.u8(0)?, view.skip(8)?);
                    // An "atomic" fragment is a whole packet (RFC 6946).
                    if part.offset == 0 && !part.has_more {
                        (next, view) = (carried, rest);
                        continue;
                    }
                    return self.fragment(part, carried, rest, datagram);
                }
                _ => return self.carried(next, view, datagram),
            };
            next = view.u8(0)?;
            view = view.skip(length)?;
        }
    }

    /// What a whole packet carries, or the first part of one.
    pub(super) fn carried(&mut self, next: u8, view: View<'_>, datagram: &Datagram) -> Walked {
        match next {
            protocol::TCP => self.tcp(view, datagram),
            protocol::ICMP => self.icmp(view),
            protocol::ICMPV6 => self.icmpv6(view),
            protocol::AUTHENTICATION => {
                self.deeper()?;
                // RFC 4302, section 2.2: in units of 4 bytes, minus 2.
                let length = (usize::from(view.u8(1)?) + 2) * 4;
                self.extensions(view.u8(0)?, view.skip(length)?, datagram)
            }
            _ => self.tunnel(next, view, datagram),
        }
    }
}

/// The payload of an IP packet: the header's length rules, both over the padding of a frame and over a frame's length
/// that was lost when the capture was cut.
#[inline]
fn within(view: View<'_>, length: u32) -> View<'_> {
    View { len: length, ..view.first(length) }
}

const fn mapped(address: [u8; 4]) -> Address {
    Address(0xFFFF_0000_0000 | u32::from_be_bytes(address) as u128)
}

/// The jumbo payload option of a hop-by-hop header (RFC 2675, section 2): type 0xC2, length 4.
fn jumbo_length(next: u8, view: View<'_>) -> Option<u32> {
    if next != protocol::HOP_BY_HOP {
        return None;
    }
    let end = (usize::from(*view.bytes.get(1)?) + 1) * 8;
    let mut at = 2;
    while at < end {
        match *view.bytes.get(at)? {
            0 => at += 1,
            0xC2 => return view.u32(at + 2).ok(),
            _ => at += 2 + usize::from(*view.bytes.get(at + 1)?),
        }
    }
    None
}
