//! gzip and zstd, recognised by their first bytes. What is *not* here: the algorithms (flate2 with zlib-rs; Zstandard's own library,
//! three times as fast as the one without C, which a page has to make do with).

#[cfg(any(test, target_family = "wasm"))]
mod frames;

use std::{
    fmt,
    io::{self, Read},
};

use flate2::read::MultiGzDecoder;

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

/// Whether unpacking fails for a window that is larger than Zstandard's library takes unasked, 128 MiB (its
/// `ZSTD_WINDOWLOG_LIMIT_DEFAULT`; the error has no code of its own here).
pub(crate) fn wants_long_window(compression: Compression, error: &io::Error) -> bool {
    compression == Compression::Zstd && error.to_string().contains("too much memory")
}

pub(crate) fn start(compression: Compression, stream: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(stream)),
        #[cfg(not(target_family = "wasm"))]
        Compression::Zstd => Box::new(zstd::Decoder::new(stream)?),
        #[cfg(target_family = "wasm")]
        Compression::Zstd => Box::new(frames::Frames::new(stream)),
    })
}
