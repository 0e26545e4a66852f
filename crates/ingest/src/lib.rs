//! The edge that reads captures: files, standard input and pipes, compressed or not, in pieces, into the pure reader of
//! `fullpipe-capture`. What is *not* here: what the bytes mean.
//!
//! Nothing is held as a whole: a buffer (or three, with reading ahead) is all the memory that a capture of any size
//! takes here. A live pipe (`tcpdump -U -w - | ...`) flows through: what has come is handed on before more is waited for.
#![forbid(unsafe_code)]

mod decompress;
mod error;
mod places;
mod pump;
mod source;
mod team;

use std::{num::NonZeroUsize, ops::ControlFlow, path::PathBuf};

use fullpipe_capture::{Problems, Sink, Totals};

use places::Places;

pub use decompress::Compression;
pub use error::Error;
pub use pump::read_source;
pub use source::Source;
pub use team::Team;

/// How captures are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes are asked for at once.
    ///
    /// 256 KiB stay in a core's second-level cache between the kernel's copy and the reader's look at them.
    pub piece: usize,
    /// Who reads.
    pub reading: Reading,
}

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The thread that also follows the connections.
    Along,
    /// A thread of its own, which also decompresses, up to two pieces ahead.
    Ahead,
    /// A thread of its own where there is something to decompress, which takes longer than all the rest.
    AheadIfCompressed,
}

impl Options {
    /// What goes well with a [`Team`] of so many threads.
    pub fn beside(threads: NonZeroUsize) -> Self {
        let reading = match threads.get() {
            1 => Reading::Along,
            2 => Reading::AheadIfCompressed,
            _ => Reading::Ahead,
        };
        Self { reading, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { piece: 256 * 1024, reading: Reading::Along }
    }
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which of the files, from 0.
    pub file: usize,
    /// How many bytes of it were read, as they lie on the disk.
    pub bytes: u64,
    /// Of how many; `None` for a pipe.
    pub of: Option<u64>,
    /// How many packets were read, of all files.
    pub packets: u64,
}

/// What was read of one file.
#[derive(Debug)]
pub struct Outcome {
    /// The file's name as it was given, or `standard input`.
    pub name: String,
    /// The number of the last packet of the files before.
    pub before: u64,
    /// Where it was taken: captures that overlap in time are of different places, numbered from 0, and a connection that is in
    /// two of them is followed once for each.
    pub place: usize,
    /// From its first TCP segment to the last one, in nanoseconds.
    pub lasted_ns: u64,
    /// What was in it.
    pub totals: Totals,
    /// What of it could not be read; the packets' numbers run on from file to file (see [`Captures::locate`]).
    pub problems: Problems,
    /// How it was compressed.
    pub compression: Option<Compression>,
    /// Why reading broke off before the end; what was read until then counts.
    pub broken: Option<Error>,
    /// Whether the progress callback asked to stop.
    pub was_stopped: bool,
}

/// What was read of several files.
#[derive(Debug, Default)]
pub struct Captures {
    /// Those that could be read, in order.
    pub files: Vec<Outcome>,
    /// Why the others could not.
    pub failed: Vec<Error>,
}

impl Captures {
    /// Which file a packet is in, and its number there: the sink sees numbers that run on from file to file.
    pub fn locate(&self, number: u64) -> Option<(&Outcome, u64)> {
        let file = self.files.iter().rev().find(|file| file.before < number)?;
        Some((file, number - file.before))
    }
}

/// Reads captures one after another; `-` is standard input. `progress` is called after each piece, and can stop it all.
pub fn read_all<S: Sink>(
    paths: &[PathBuf],
    options: Options,
    sink: &mut S,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Captures {
    read_each(paths.iter().map(|path| Source::open(path)), options, sink, progress)
}

/// Reads sources one after another, each of which is opened when its turn has come; otherwise as [`read_all`].
pub fn read_each<S: Sink>(
    sources: impl Iterator<Item = Result<Source, Error>>,
    options: Options,
    sink: &mut S,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Captures {
    let mut captures = Captures::default();
    let mut places = Places::default();
    let mut before = 0;
    for (file, source) in sources.enumerate() {
        let in_file = |progressed: &Progress| progress(&Progress { file, ..*progressed });
        let mut sink = places.next(sink);
        match source.and_then(|source| read_source(source, before, options, &mut sink, in_file)) {
            Ok(outcome) => {
                let outcome = Outcome { place: sink.place(), lasted_ns: sink.lasted_ns(), ..outcome };
                before += outcome.totals.packets;
                let was_stopped = outcome.was_stopped;
                captures.files.push(outcome);
                if was_stopped {
                    break;
                }
            }
            Err(error) => captures.failed.push(error),
        }
    }
    captures
}
