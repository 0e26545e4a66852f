//! Containers: from the bytes of a file, as they come, to packets with their times. What is *not* here: what is in the
//! packets, and where the bytes come from.

mod pcap;
mod pcapng;
mod snoop;

use crate::{
    problem::ProblemKind,
    segment::Sink,
    walk::{Decoder, Totals},
};

/// Why bytes are no capture that can be read. What is wrong within a capture is a [`crate::Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotACapture {
    /// There are none.
    #[error("it is empty")]
    Empty,
    /// It ends within the header of the file.
    #[error("it ends within the first header, after {0} bytes")]
    TooShort(usize),
    /// It begins with something else.
    #[error("it begins with {}, and neither pcap, pcapng nor snoop does", Hex(.0))]
    Magic([u8; 4]),
    /// A version that nobody has described.
    #[error("version {0} of its format is not known")]
    Version(u32),
}

/// Bytes as a user finds them in a hex dump.
struct Hex<'a>(&'a [u8; 4]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a:02x} {b:02x} {c:02x} {d:02x}")
    }
}

/// How many bytes of one packet are looked at: headers within headers and a few aggregated frames fit.
const HEAD: usize = 16 * 1024;

/// No packet is longer than this: BIG TCP goes up to 512 KiB (`GSO_MAX_SIZE`), jumbograms of a lab not much beyond.
const LONGEST: u32 = 16 << 20;

/// How far a format has got with the bytes that it was given.
pub(crate) enum Step {
    /// This many bytes are done with; there may be more at once.
    Took(usize),
    /// This many bytes are done with, or will be when they come: they needn't be kept.
    Skip(u64),
    /// The next packet or block isn't there as a whole.
    Wait,
}

#[derive(Clone, Debug)]
enum Format {
    /// Not even the magic number was there.
    Unknown,
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Snoop(snoop::Snoop),
    /// What follows can't be found any more.
    Lost,
}

/// Reads a capture piece by piece, in constant memory.
///
/// ```
/// # use fullpipe_capture::{Reader, Segment, Sink, TooBig};
/// # struct Count(u64);
/// # impl Sink for Count {
/// #     fn segment(&mut self, _: &Segment<'_>) { self.0 += 1; }
/// #     fn too_big(&mut self, _: &TooBig) {}
/// # }
/// # let file = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
/// let mut sink = Count(0);
/// let mut reader = Reader::new();
/// let mut kept = Vec::new();
/// for piece in file.chunks(10) {
///     kept.extend_from_slice(piece);
///     let done = reader.read(&kept, &mut sink)?;
///     kept.drain(..done);
/// }
/// reader.finish(&kept, &mut sink)?;
/// # assert_eq!(sink.0, 0);
/// # Ok::<(), fullpipe_capture::NotACapture>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    format: Format,
    /// Bytes that needn't be looked at.
    skip: u64,
    decoder: Decoder,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// The most that [`Reader::read`] leaves for the next time: a caller's buffer must hold more than that.
    pub const KEPT: usize = 2 * HEAD;

    /// A reader of a new file.
    pub fn new() -> Self {
        Self::after(0)
    }

    /// A reader of one of several files: its packets' numbers go on after `number`, the last one of the file before.
    pub fn after(number: u64) -> Self {
        Self { format: Format::Unknown, skip: 0, decoder: Decoder { before: number, ..Decoder::default() } }
    }

    /// Reads what `bytes` hold of the file and gives it to the sink; answers how many of them are done with. The
    /// others must come again, before what follows them.
    pub fn read<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<usize, NotACapture> {
        let mut at = 0;
        loop {
            let skipped = self.skip.min((bytes.len() - at) as u64) as usize;
            self.skip -= skipped as u64;
            at += skipped;
            let rest = &bytes[at..];
            let step = match &mut self.format {
                Format::Unknown if rest.len() < 4 => return Ok(at),
                Format::Unknown => match self.open(rest)? {
                    Some(header) => Step::Took(header),
                    None => return Ok(at),
                },
                Format::Pcap(pcap) => pcap.read(rest, &mut self.decoder, sink),
                Format::Pcapng(pcapng) => pcapng.read(rest, &mut self.decoder, sink),
                Format::Snoop(snoop) => snoop.read(rest, &mut self.decoder, sink),
                Format::Lost => return Ok(bytes.len()),
            };
            match step {
                Step::Took(taken) => at += taken,
                Step::Skip(count) => self.skip += count,
                Step::Wait if self.is_damaged() => {}
                Step::Wait => return Ok(at),
            }
            if self.is_damaged() {
                self.format = Format::Lost;
            }
        }
    }

    /// Says that nothing follows `rest`, which [`Reader::read`] left.
    pub fn finish<S: Sink>(&mut self, rest: &[u8], sink: &mut S) -> Result<(), NotACapture> {
        if matches!(self.format, Format::Unknown) {
            return Err(if rest.is_empty() { NotACapture::Empty } else { NotACapture::TooShort(rest.len()) });
        }
        if !matches!(self.format, Format::Lost) && (!rest.is_empty() || self.skip > 0) {
            self.decoder.problems.note(self.decoder.number(), ProblemKind::FileCut);
        }
        self.decoder.finish(sink);
        self.format = Format::Lost;
        Ok(())
    }

    /// What could not be read so far.
    pub const fn problems(&self) -> &crate::Problems {
        &self.decoder.problems
    }

    /// What was read so far.
    pub const fn totals(&self) -> &Totals {
        &self.decoder.totals
    }

    /// Recognises the format; the length of the header, `None` where it isn't there as a whole.
    fn open(&mut self, bytes: &[u8]) -> Result<Option<usize>, NotACapture> {
        if pcapng::is_section(bytes) {
            self.format = Format::Pcapng(pcapng::Pcapng::default());
            return Ok(Some(0));
        }
        if let Some(opened) = snoop::Snoop::open(bytes) {
            return Ok(opened?.map(|(snoop, header)| {
                self.format = Format::Snoop(snoop);
                header
            }));
        }
        match pcap::Pcap::open(bytes) {
            Some(opened) => Ok(opened?.map(|(pcap, header)| {
                self.format = Format::Pcap(pcap);
                header
            })),
            None => Err(NotACapture::Magic([bytes[0], bytes[1], bytes[2], bytes[3]])),
        }
    }

    const fn is_damaged(&self) -> bool {
        match &self.format {
            Format::Pcap(pcap) => pcap.is_damaged,
            Format::Pcapng(pcapng) => pcapng.is_damaged,
            Format::Snoop(snoop) => snoop.is_damaged,
            Format::Unknown | Format::Lost => false,
        }
    }
}

/// Four bytes at `at`, which must be there.
#[inline]
fn u32_at<const BIG: bool>(bytes: &[u8], at: usize) -> u32 {
    let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if BIG { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

/// Two bytes at `at`, which must be there.
#[inline]
fn u16_at<const BIG: bool>(bytes: &[u8], at: usize) -> u16 {
    let word = [bytes[at], bytes[at + 1]];
    if BIG { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
}
