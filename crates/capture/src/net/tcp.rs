//! The TCP header (RFC 9293, section 3.1). What is *not* here: options (their bytes are handed on as they are).

use fullpipe_units::SeqNum;

use super::Datagram;
use crate::{
    problem::ProblemKind,
    segment::{Endpoint, Flags, Flow, Segment, Sink},
    view::{View, Walked},
    walk::Walk,
};

/// The part of a header that is always there, up to the window: the checksum and the urgent pointer after it are not
/// needed.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    bytes: &'a [u8; 16],
    len: usize,
}

impl<'a> Header<'a> {
    #[inline]
    pub(super) fn parse(view: View<'a>) -> Result<Self, ProblemKind> {
        let bytes: &[u8; 16] = view.bytes.first_chunk().ok_or(ProblemKind::HeadersCut)?;
        let len = usize::from(bytes[12] >> 4) * 4;
        if len < 20 || len as u32 > view.len { Err(ProblemKind::BadTcp) } else { Ok(Self { bytes, len }) }
    }

    const fn field(self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    const fn number(self, at: usize) -> SeqNum {
        let [a, b, c, d] = [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]];
        SeqNum::new(u32::from_be_bytes([a, b, c, d]))
    }
}

impl<S: Sink> Walk<'_, S> {
    #[inline]
    pub(super) fn tcp(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        let header = Header::parse(view)?;
        self.decoder.totals.segments += 1;
        // In place: as part of a result it would be copied.
        self.sink.segment(&self.segment(header, view, datagram));
        Ok(())
    }

    /// The segment in `view`, whose length is that of the packet's whole payload.
    #[inline]
    pub(super) fn segment<'a>(&self, header: Header<'a>, view: View<'a>, datagram: &Datagram) -> Segment<'a> {
        let captured = header.len.min(view.bytes.len());
        Segment {
            number: self.number,
            at_ns: self.at_ns,
            flow: Flow {
                from: Endpoint { address: datagram.from, port: header.field(0) },
                to: Endpoint { address: datagram.to, port: header.field(2) },
                outer: self.outer,
            },
            network: datagram.network,
            link: self.stamp,
            seq: header.number(4),
            ack: header.number(8),
            flags: Flags(header.field(12) & 0x0FFF),
            window: header.field(14),
            payload_len: view.len - header.len as u32,
            options: view.bytes.get(20..captured).unwrap_or_default(),
            options_cut: captured < header.len,
        }
    }
}
