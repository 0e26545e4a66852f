//! Why a capture can't be read, or not to its end.

use std::io;

use fullpipe_capture::NotACapture;

use crate::Compression;

/// Why a capture can't be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file can't be opened.
    #[error("can't open {name}: {source}")]
    Open {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// Reading it failed.
    #[error("can't read {name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// What was compressed is damaged or cut.
    #[error("can't decompress {name} ({compression}) beyond what was read: {source}")]
    Decompress {
        /// The file.
        name: String,
        /// How it is compressed.
        compression: Compression,
        /// Why.
        source: io::Error,
    },
    /// It was compressed over so long a distance that unpacking it takes gigabytes of memory, which no file gets here unasked.
    #[error(
        "{name} was compressed with `zstd --long`, and unpacking it takes a window of more than 128 MiB; unpack it first: `zstd -dc --long=31 FILE | fullpipe read -`"
    )]
    LongWindow {
        /// The file.
        name: String,
    },
    /// It is compressed in a way that is not read here.
    #[error("{name} is compressed by {by}; unpack it first: `{by} -dc FILE | fullpipe read -`")]
    Packed {
        /// The file.
        name: String,
        /// The program that unpacks it.
        by: &'static str,
    },
    /// It is something else.
    #[error("{name} is no capture: {reason}; give a file as `tcpdump -w` or Wireshark writes it")]
    NotACapture {
        /// The file.
        name: String,
        /// What it is instead.
        reason: NotACapture,
    },
}
