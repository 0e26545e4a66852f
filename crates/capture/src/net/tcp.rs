//! The TCP header (RFC 9293, section 3.1). What is *not* here: options (their bytes are handed on as they are).

use fullpipe_units::SeqNum;

use super::Datagram;
use crate::{
    problem::ProblemKind,
    segment::{Endpoint, Flags, Flow, Segment, Sink},
    view::{View, Walked},
    walk::Walk,
};

impl<S: Sink> Walk<'_, S> {
    #[inline]
    pub(super) fn tcp(&mut self, view: View<'_>, datagram: &Datagram) -> Walked {
        let segment = self.tcp_segment(view, datagram)?;
        self.decoder.totals.segments += 1;
        self.sink.segment(&segment);
        Ok(())
    }

    /// The segment in `view`, whose length is that of the packet's whole payload.
    #[inline]
    pub(super) fn tcp_segment<'a>(&self, view: View<'a>, datagram: &Datagram) -> Result<Segment<'a>, ProblemKind> {
        // All up to the window is needed; the checksum and the urgent pointer after it are not.
        let header: [u8; 16] = view.array(0)?;
        let header_len = usize::from(header[12] >> 4) * 4;
        if header_len < 20 || header_len as u32 > view.len {
            return Err(ProblemKind::BadTcp);
        }
        let end = |address, at: usize| Endpoint { address, port: u16::from_be_bytes([header[at], header[at + 1]]) };
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let captured = header_len.min(view.bytes.len());
        Ok(Segment {
            number: self.number,
            at_ns: self.at_ns,
            flow: Flow { from: end(datagram.from, 0), to: end(datagram.to, 2), outer: self.outer },
            network: datagram.network,
            link: self.stamp,
            seq: SeqNum::new(word(4)),
            ack: SeqNum::new(word(8)),
            flags: Flags(u16::from_be_bytes([header[12], header[13]]) & 0x0FFF),
            window: u16::from_be_bytes([header[14], header[15]]),
            payload_len: view.len - header_len as u32,
            options: view.bytes.get(20..captured).unwrap_or_default(),
            options_cut: captured < header_len,
        })
    }
}
