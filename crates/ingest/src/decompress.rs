//! gzip and zstd, recognised by their first bytes. What is *not* here: the algorithms (flate2 with zlib-rs, ruzstd: both
//! without C, since what they read comes from anywhere).

use std::{
    fmt,
    io::{self, Read},
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// How a capture is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    pub(crate) fn from_magic(magic: &[u8]) -> Option<Self> {
        match magic {
            [0x1F, 0x8B, ..] => Some(Self::Gzip),
            // A frame, or one to be skipped, which may come first.
            [0x28, 0xB5, 0x2F, 0xFD] | [0x50..=0x5F, 0x2A, 0x4D, 0x18] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The program that unpacks what begins so and is not unpacked here.
pub(crate) fn elsewhere(magic: &[u8]) -> Option<&'static str> {
    match magic {
        [0xFD, b'7', b'z', b'X'] => Some("xz"),
        [b'B', b'Z', b'h', b'1'..=b'9'] => Some("bzip2"),
        [0x04, 0x22, 0x4D, 0x18] => Some("lz4"),
        _ => None,
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

pub(crate) fn start(compression: Compression, stream: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(stream)),
        Compression::Zstd => Box::new(Frames { stream, decoder: FrameDecoder::new(), is_within: false }),
    }
}

/// All frames of a zstd file, one after another (`zstd` and `pzstd` write several).
struct Frames<R> {
    stream: R,
    decoder: FrameDecoder,
    is_within: bool,
}

impl<R: Read> Frames<R> {
    /// Begins the next frame; `false` at the end.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let mut magic = [0; 4];
            let first = self.stream.read(&mut magic)?;
            if first == 0 {
                return Ok(false);
            }
            self.stream.read_exact(&mut magic[first..])?;
            match self.decoder.init((&magic[..]).chain(&mut self.stream)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.stream.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_within {
                if !self.begin()? {
                    return Ok(0);
                }
                self.is_within = true;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                self.is_within = false;
                continue;
            }
            self.decoder
                .decode_blocks(&mut self.stream, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
    }
}
