//! TCP segments (RFC 9293, section 3.1) and their options.

use fullpipe_units::SeqNum;
pub use fullpipe_units::TcpFlags as Flags;

#[cfg(feature = "fast-open")]
use super::fast_open::{self, FastOpen};
use super::{Malformed, Writer, be16, be32, checksum::Checksum, ip};

/// The longest TCP header: 15 words.
pub const MAX_HEADER: usize = 60;
/// Where the checksum stands in the header.
pub const CHECKSUM_AT: usize = 16;
/// The largest shift that the window-scale option may carry (RFC 7323, section 2.3).
pub const MAX_SHIFT: u8 = 14;

/// A timestamps option (RFC 7323, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub val: u32,
    /// The receiver's clock as last heard.
    pub echo: u32,
}

/// A run of sequence numbers that arrived: from the first, up to but not including the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// The first number of the run.
    pub start: SeqNum,
    /// The number after the last.
    pub end: SeqNum,
}

impl SackBlock {
    /// Whether it names nothing.
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Up to four SACK blocks in the order of the option (RFC 2018, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackBlock; Self::MOST],
}

impl SackBlocks {
    /// What 40 bytes of options hold; none where SACK is compiled out.
    pub const MOST: usize = if cfg!(feature = "sack") { 4 } else { 0 };

    /// No block.
    pub const EMPTY: Self =
        Self { blocks: [SackBlock { start: SeqNum::new(0), end: SeqNum::new(0) }; Self::MOST], len: 0 };

    /// Adds a block behind the others; the fifth and later are lost.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// Puts a block in front; the last falls out where there is no room.
    pub(crate) fn push_front(&mut self, block: SackBlock) {
        let kept = usize::from(self.len).min(Self::MOST.saturating_sub(1));
        for at in (0..kept).rev() {
            self.blocks[at + 1] = self.blocks[at];
        }
        if let Some(first) = self.blocks.first_mut() {
            *first = block;
            self.len = kept as u8 + 1;
        }
    }

    /// Keeps the blocks that `keep` takes.
    pub(crate) fn retain(&mut self, keep: impl Fn(&SackBlock) -> bool) {
        let mut kept = 0;
        for at in 0..usize::from(self.len) {
            let block = self.blocks[at];
            if keep(&block) {
                self.blocks[kept] = block;
                kept += 1;
            }
        }
        self.len = kept as u8;
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [SackBlock] {
        self.blocks.get_mut(..usize::from(self.len)).unwrap_or(&mut [])
    }

    /// Keeps the first `len` blocks.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u8::try_from(len).unwrap_or(u8::MAX));
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The options of a segment that this stack knows; others are skipped (RFC 9293, section 3.1, MUST-6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window-scale shift, as it stands in the option.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Fast open: a cookie, or a request for one.
    #[cfg(feature = "fast-open")]
    pub fast_open: Option<FastOpen>,
}

impl Options {
    /// None.
    pub(crate) const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::EMPTY,
        #[cfg(feature = "fast-open")]
        fast_open: None,
    };

    fn parse(mut data: &[u8]) -> Result<Self, Malformed> {
        let mut options = Self::default();
        loop {
            let (kind, len) = match *data {
                [] | [0, ..] => return Ok(options),
                [1, ref rest @ ..] => {
                    data = rest;
                    continue;
                }
                [kind, len, ..] => (kind, usize::from(len)),
                [_] => return Err(Malformed::Option),
            };
            if len < 2 {
                return Err(Malformed::Option);
            }
            let (option, rest) = data.split_at_checked(len).ok_or(Malformed::Option)?;
            data = rest;
            match (kind, len) {
                (2, 4) => options.mss = Some(be16(option, 2)?),
                (3, 3) => options.window_scale = Some(option[2]),
                (4, 2) => options.sack_permitted = true,
                (5, 10 | 18 | 26 | 34) if cfg!(feature = "sack") => {
                    for at in (2..len).step_by(8) {
                        let (start, end) = (SeqNum::new(be32(option, at)?), SeqNum::new(be32(option, at + 4)?));
                        options.sack.push(SackBlock { start, end });
                    }
                }
                (8, 10) if cfg!(feature = "timestamps") => {
                    options.timestamps = Some(Timestamps { val: be32(option, 2)?, echo: be32(option, 6)? });
                }
                #[cfg(feature = "fast-open")]
                (fast_open::KIND | fast_open::EXPERIMENT, _) => {
                    options.fast_open = FastOpen::parse(option).or(options.fast_open);
                }
                // A known kind with a length that it can't have.
                (2..=4, _) => return Err(Malformed::Option),
                (5, _) if cfg!(feature = "sack") => return Err(Malformed::Option),
                (8, _) if cfg!(feature = "timestamps") => return Err(Malformed::Option),
                _ => {}
            }
        }
    }

    /// What [`write`](Self::write) writes of them.
    #[cfg(feature = "platforms")]
    pub(crate) fn laid_out(self, layout: &OptionLayout) -> Self {
        let has = |kind| layout.order.contains(&kind);
        Self {
            mss: self.mss.filter(|_| has(OptionKind::Mss)),
            window_scale: self.window_scale.filter(|_| has(OptionKind::WindowScale)),
            sack_permitted: self.sack_permitted && has(OptionKind::SackPermitted),
            timestamps: self.timestamps.filter(|_| has(OptionKind::Timestamps)),
            ..self
        }
    }

    /// Writes the options, padded to whole words, and returns nothing: the writer knows the length.
    fn write(&self, w: &mut Writer<'_>, layout: &OptionLayout) {
        let start = w.len();
        let at = |w: &Writer<'_>| w.len() - start;
        for kind in layout.order {
            match kind {
                OptionKind::Mss => {
                    if let Some(mss) = self.mss {
                        w.put(&[2, 4]);
                        w.u16(mss);
                    }
                }
                OptionKind::WindowScale => {
                    if let Some(shift) = self.window_scale {
                        // An odd offset lets the shift end on an even one.
                        pad_to(w, at(w), 2, 1);
                        w.put(&[3, 3, shift]);
                    }
                }
                OptionKind::SackPermitted => {
                    if cfg!(feature = "sack") && self.sack_permitted {
                        if layout.pad_lone_sack && self.timestamps.is_none() {
                            pad_to(w, at(w), 4, 2);
                        }
                        w.put(&[4, 2]);
                    }
                }
                OptionKind::Timestamps => {
                    if let Some(timestamps) = self.timestamps.filter(|_| cfg!(feature = "timestamps")) {
                        // RFC 7323, appendix A: the values stand on word boundaries.
                        pad_to(w, at(w), 4, 2);
                        w.put(&[8, 10]);
                        w.u32(timestamps.val);
                        w.u32(timestamps.echo);
                    }
                }
            }
        }
        if !self.sack.is_empty() {
            pad_to(w, at(w), 4, 2);
            let blocks = self.sack.as_slice();
            w.put(&[5, 2 + 8 * blocks.len() as u8]);
            for block in blocks {
                w.u32(block.start.get());
                w.u32(block.end.get());
            }
        }
        #[cfg(feature = "fast-open")]
        if let Some(fast_open) = &self.fast_open {
            fast_open.write(w);
            if layout.fill_fast_open {
                pad_to(w, at(w), 4, 0);
            }
        }
        // RFC 9293, section 3.1, MUST-69: padding is of zeros, which read as the end of the list.
        while !at(w).is_multiple_of(4) {
            w.u8(0);
        }
    }
}

/// Writes no-operations until the offset is `offset` modulo `modulus`.
fn pad_to(w: &mut Writer<'_>, mut at: usize, modulus: usize, offset: usize) {
    while at % modulus != offset {
        w.u8(1);
        at += 1;
    }
}

/// An option that stands in a SYN; the timestamps stand in later segments too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Maximum segment size.
    Mss,
    /// Window scale.
    WindowScale,
    /// SACK permitted.
    SackPermitted,
    /// Timestamps.
    Timestamps,
}

/// How a platform lays its options out: part of its fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct OptionLayout {
    /// The order of the options. What is missing here is never sent.
    pub order: &'static [OptionKind],
    /// Whether SACK-permitted without timestamps fills a whole word.
    pub pad_lone_sack: bool,
    /// Whether no-operations fill the word after a fast-open option, instead of the list's end.
    pub fill_fast_open: bool,
}

/// A received TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: SeqNum,
    /// Acknowledgement number; significant with [`Flags::ACK`].
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Data.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads the payload of `packet`. `verified` tells that the device has checked the checksum.
    ///
    /// # Errors
    /// A segment that is too short, damaged (RFC 9293, section 3.1, MUST-3), or whose options have impossible lengths.
    pub fn parse(packet: &ip::Packet<'a>, verified: bool) -> Result<Self, Malformed> {
        let data = packet.payload;
        let fixed: &[u8; 20] = data.first_chunk().ok_or(Malformed::Truncated)?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        if header_len < 20 {
            return Err(Malformed::Header);
        }
        let options = data.get(20..header_len).ok_or(Malformed::Truncated)?;
        if !verified {
            let len = u32::try_from(data.len()).map_err(|_| Malformed::Header)?;
            let sum = ip::Addresses { src: packet.src, dst: packet.dst }.pseudo_header(ip::TCP, len);
            if !sum.bytes(data).is_valid() {
                return Err(Malformed::Checksum);
            }
        }
        Ok(Self {
            src_port: be16(fixed, 0)?,
            dst_port: be16(fixed, 2)?,
            seq: SeqNum::new(be32(fixed, 4)?),
            ack: SeqNum::new(be32(fixed, 8)?),
            flags: Flags::from_byte(fixed[13]),
            window: be16(fixed, 14)?,
            options: Options::parse(options)?,
            payload: data.get(header_len..).unwrap_or(&[]),
        })
    }

    /// The segment that this header and this data make.
    #[cfg(feature = "platforms")]
    pub(crate) const fn of(header: &Header, payload: &'a [u8]) -> Self {
        let &Header { src_port, dst_port, seq, ack, flags, window, options } = header;
        Self { src_port, dst_port, seq, ack, flags, window, options, payload }
    }

    /// How much of the sequence space the segment takes: its data, and one each for SYN and FIN.
    pub const fn seq_len(&self) -> u32 {
        self.payload.len() as u32 + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }
}

/// A TCP header to be written.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: SeqNum,
    /// Acknowledgement number.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// The window field, scaled already.
    pub window: u16,
    /// Options.
    pub options: Options,
}

impl Header {
    /// Writes the header with a checksum field of zero into the front of `out` and returns its length.
    pub fn write(&self, out: &mut [u8], layout: &OptionLayout) -> usize {
        let mut w = Writer::new(out);
        w.u16(self.src_port);
        w.u16(self.dst_port);
        w.u32(self.seq.get());
        w.u32(self.ack.get());
        w.u8(0);
        w.u8(self.flags.byte());
        w.u16(self.window);
        w.u32(0);
        self.options.write(&mut w, layout);
        let len = w.len();
        if let Some(offset) = out.get_mut(12) {
            *offset = ((len / 4) as u8) << 4;
        }
        len
    }
}

/// The space that the options of an ordinary segment take: what the sender must take off the MSS (RFC 6691).
pub const fn options_len(timestamps: bool, sack_blocks: usize) -> usize {
    let sack = if sack_blocks == 0 { 0 } else { 4 + 8 * sack_blocks };
    if timestamps { 12 + sack } else { sack }
}

/// Sums a header and data for its checksum field.
pub fn checksum(addresses: &ip::Addresses, len: u32) -> Checksum {
    addresses.pseudo_header(ip::TCP, len)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const LINUX: OptionLayout = OptionLayout {
        order: &[OptionKind::Mss, OptionKind::SackPermitted, OptionKind::Timestamps, OptionKind::WindowScale],
        pad_lone_sack: true,
        fill_fast_open: true,
    };

    fn written(options: Options, layout: &OptionLayout) -> Vec<u8> {
        let header = Header {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum::new(3),
            ack: SeqNum::new(4),
            flags: Flags::SYN,
            window: 5,
            options,
        };
        let mut out = std::vec![0; MAX_HEADER];
        let len = header.write(&mut out, layout);
        out.truncate(len);
        out
    }

    fn packet(payload: &[u8]) -> ip::Packet<'_> {
        let src = "192.0.2.1".parse().unwrap();
        let dst = "192.0.2.2".parse().unwrap();
        ip::Packet { src, dst, protocol: ip::TCP, ecn: ip::Ecn::NotEct, ttl: 64, payload }
    }

    fn syn_options() -> Options {
        Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { val: 9, echo: 0 }),
            ..Options::default()
        }
    }

    #[test]
    fn a_linux_syn_has_its_usual_bytes() {
        let all = written(syn_options(), &LINUX);
        assert_eq!(all[20..], [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7]);
        let plain = written(Options { timestamps: None, ..syn_options() }, &LINUX);
        assert_eq!(plain[20..], [2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]);
    }

    #[test]
    fn a_freebsd_syn_has_its_usual_bytes() {
        let layout = OptionLayout {
            order: &[OptionKind::Mss, OptionKind::WindowScale, OptionKind::SackPermitted, OptionKind::Timestamps],
            pad_lone_sack: false,
            fill_fast_open: false,
        };
        let all = written(syn_options(), &layout);
        assert_eq!(all[20..], [2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0]);
    }

    #[test]
    #[cfg(feature = "fast-open")]
    fn a_cookie_fills_the_option_space_to_its_end() {
        use super::super::fast_open::{Cookie, Format};
        let cookie = Cookie::new(&[7; 16]).unwrap();
        let fast_open = |cookie, format| Options { fast_open: Some(FastOpen { cookie, format }), ..syn_options() };
        let all = written(fast_open(cookie, Format::Standard), &LINUX);
        assert_eq!((all.len(), &all[40..42]), (MAX_HEADER, &[34, 18][..]));
        let read = Segment::parse(&packet(&all), true).unwrap().options;
        assert_eq!(read, fast_open(cookie, Format::Standard));
        let request = written(fast_open(Cookie::NONE, Format::Standard), &LINUX);
        assert_eq!(request[40..], [34, 2, 1, 1]);
        let old = written(fast_open(Cookie::new(&[1, 2, 3, 4]).unwrap(), Format::Experimental), &LINUX);
        assert_eq!(old[40..], [254, 8, 0xf9, 0x89, 1, 2, 3, 4]);
    }

    #[test]
    #[cfg(feature = "fast-open")]
    fn a_cookie_of_a_wrong_length_is_no_option() {
        for len in [1, 2, 3, 5, 7, 15, 17, 18, 37] {
            let mut bytes = std::vec![34, 2 + len];
            bytes.resize(2 + usize::from(len), 9);
            assert_eq!(Options::parse(&bytes), Ok(Options::default()), "{len}");
        }
        assert_eq!(Options::parse(&[34, 1]), Err(Malformed::Option));
        assert_eq!(Options::parse(&[254, 6, 0xf9, 0x88, 1, 1]), Ok(Options::default()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut sack = SackBlocks::EMPTY;
        for n in 0..3 {
            sack.push(SackBlock { start: SeqNum::new(n * 10), end: SeqNum::new(n * 10 + 5) });
        }
        let options = Options { timestamps: Some(Timestamps { val: 1, echo: 2 }), sack, ..Options::default() };
        let bytes = written(options, &LINUX);
        assert_eq!(bytes.len(), 20 + options_len(true, 3));
        let segment = Segment::parse(&packet(&bytes), true).unwrap();
        assert_eq!(segment.options, options);
        assert_eq!((segment.seq, segment.ack, segment.window), (SeqNum::new(3), SeqNum::new(4), 5));
    }

    #[test]
    fn options_that_lie_are_refused() {
        for bad in [&[2, 0][..], &[2, 1], &[2], &[2, 40, 0], &[5, 9, 0, 0, 0, 0, 0, 0, 0], &[3, 4, 0, 0]] {
            assert_eq!(Options::parse(bad), Err(Malformed::Option), "{bad:?}");
        }
        // What follows the end of the list is not read.
        assert_eq!(Options::parse(&[0, 2, 0]), Ok(Options::default()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut data: Vec<u8>, words in 0_u8..16) {
            if let Some(offset) = data.get_mut(12) {
                *offset = words << 4;
            }
            let _read_or_refused = Segment::parse(&packet(&data), true).is_ok();
            let _read_or_refused = Segment::parse(&packet(&data), false).is_ok();
        }
    }
}
