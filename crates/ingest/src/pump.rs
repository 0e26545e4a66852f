//! Piece by piece from a source into the reader, along with it or on a thread ahead of it. What is *not* here: opening.

use std::{
    io::{self, Read},
    ops::ControlFlow,
    sync::mpsc::{self, Receiver, SyncSender},
    thread,
};

use fullpipe_capture::{Reader, Sink};

use crate::{Error, Options, Outcome, Progress, Reading, Source, decompress};

/// How many pieces there are when a thread reads ahead: one being read, one being looked at, one on its way.
const PIECES: usize = 3;

/// Reads one source to its end. Its packets' numbers go on after `before`; `progress` is called after each piece, and can
/// stop it.
pub fn read_source<S: Sink>(
    source: Source,
    before: u64,
    options: Options,
    sink: &mut S,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, Error> {
    let position = source.position();
    let Source { name, stream, compression, size, .. } = source;
    let is_ahead = match options.reading {
        Reading::Along => false,
        Reading::Ahead => true,
        Reading::AheadIfCompressed => compression.is_some(),
    };
    let mut pieces = if is_ahead {
        ahead(stream, options.piece)
    } else {
        Pieces::Along { stream, piece: Piece::new(options.piece) }
    };
    let mut reader = Reader::after(before);
    let mut kept = Vec::with_capacity(Reader::KEPT);
    let not_a_capture = |reason| Error::NotACapture { name: name.clone(), reason };
    let (mut failure, mut was_stopped) = (None, false);
    loop {
        let mut piece = match pieces.next() {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) => {
                failure = Some(error);
                break;
            }
        };
        let bytes = piece.after(&kept);
        let done = reader.read(bytes, sink).map_err(not_a_capture)?;
        kept.clear();
        kept.extend_from_slice(&bytes[done..]);
        pieces.give_back(piece);
        let packets = before + reader.totals().packets;
        if progress(&Progress { file: 0, bytes: position.bytes(), of: size, packets }).is_break() {
            was_stopped = true;
            break;
        }
    }
    let broken = failure.map(|source| match compression {
        Some(compression) if decompress::wants_long_window(compression, &source) => {
            Error::LongWindow { name: name.clone() }
        }
        Some(compression) => Error::Decompress { name: name.clone(), compression, source },
        None => Error::Read { name: name.clone(), source },
    });
    if was_stopped {
        kept.clear();
    }
    match (reader.finish(&kept, sink), broken) {
        // Nothing was read: then why not is what counts.
        (Err(_), Some(broken)) => Err(broken),
        (Err(reason), None) if !was_stopped => Err(not_a_capture(reason)),
        (_, broken) => Ok(Outcome {
            before,
            place: 0,
            lasted_ns: 0,
            totals: *reader.totals(),
            problems: reader.problems().clone(),
            compression,
            broken,
            was_stopped,
            name,
        }),
    }
}

/// What a kernel copies at once.
const PAGE: usize = 4_096;
/// Where in a page pieces begin, far from where they do in a file (a multiple of a page, and the four bytes that told how it is compressed).
/// Kernels copy with `rep movsb`, and AMD's Zen 4 does that at a quarter of its speed where the target lies in its page 1 to 12 bytes behind
/// the source in its own, as in what allocators map: 2.9 GB/s for 11.
const BEGIN: usize = PAGE / 2;

/// A buffer with room at its front for what the piece before left.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Piece {
    fn new(size: usize) -> Self {
        let bytes = vec![0; Reader::KEPT + PAGE + size.max(1)];
        let is_at = bytes.as_ptr().addr().wrapping_add(Reader::KEPT);
        let begin = Reader::KEPT + BEGIN.wrapping_sub(is_at) % PAGE;
        Self { bytes, begin, end: begin }
    }

    /// As much as one call gives: from a live pipe, what has come.
    fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        let room = self.bytes.len() - PAGE - Reader::KEPT;
        loop {
            match stream.read(&mut self.bytes[self.begin..self.begin + room]) {
                Ok(count) => {
                    self.end = self.begin + count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What was read, with what was kept before it.
    fn after(&mut self, kept: &[u8]) -> &[u8] {
        let start = self.begin - kept.len();
        self.bytes[start..self.begin].copy_from_slice(kept);
        &self.bytes[start..self.end]
    }
}

enum Pieces {
    Along { stream: Box<dyn Read + Send>, piece: Piece },
    Ahead { filled: Receiver<io::Result<Piece>>, empty: SyncSender<Piece> },
}

impl Pieces {
    fn next(&mut self) -> io::Result<Option<Piece>> {
        match self {
            Self::Along { stream, piece } => {
                let count = piece.fill(stream)?;
                Ok((count > 0).then(|| std::mem::take(piece)))
            }
            // The thread ends by hanging up.
            Self::Ahead { filled, .. } => filled.recv().ok().transpose(),
        }
    }

    fn give_back(&mut self, used: Piece) {
        match self {
            Self::Along { piece, .. } => *piece = used,
            Self::Ahead { empty, .. } => {
                // Nobody there any more: then it has read all.
                drop(empty.send(used));
            }
        }
    }
}

/// Starts the thread that reads ahead. It ends with the source, or when nobody listens any more.
fn ahead(mut stream: Box<dyn Read + Send>, size: usize) -> Pieces {
    let (to_pump, filled) = mpsc::sync_channel(PIECES);
    let (empty, from_pump) = mpsc::sync_channel::<Piece>(PIECES);
    for _ in 0..PIECES {
        drop(empty.send(Piece::new(size)));
    }
    thread::spawn(move || {
        while let Ok(mut piece) = from_pump.recv() {
            let filled = match piece.fill(&mut stream) {
                Ok(0) => break,
                Ok(_) => Ok(piece),
                Err(error) => Err(error),
            };
            let is_last = filled.is_err();
            if to_pump.send(filled).is_err() || is_last {
                break;
            }
        }
    });
    Pieces::Ahead { filled, empty }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_begin_in_the_middle_of_a_page() {
        for size in [0, 1, 4_096, 256 * 1024] {
            let mut piece = Piece::new(size);
            assert_eq!(piece.bytes[piece.begin..].as_ptr().addr() % PAGE, BEGIN, "{size}");
            let read = piece.fill(&mut io::repeat(7)).unwrap();
            assert_eq!((read, piece.after(&[1, 2]).len()), (size.max(1), size.max(1) + 2));
            assert_eq!(piece.after(&[1, 2])[..3], [1, 2, 7]);
        }
    }
}
