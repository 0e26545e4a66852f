//! Captures: containers, link layers, tunnels and TCP, and the connections above them.

use fullpipe_capture::{Keep, Reader, Segment, Sink, TooBig, Tracker};

/// What a reader gave, as far as two readings of one file must agree on it.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    segments: Vec<(Segment<'static>, Vec<u8>)>,
    too_big: Vec<TooBig>,
}

impl Sink for Seen {
    fn segment(&mut self, segment: &Segment<'_>) {
        assert!(segment.options.len() <= 40, "TCP has no more room for options");
        assert!(segment.payload_len <= segment.network.length, "a payload beyond its packet");
        self.segments.push((Segment { options: &[], ..*segment }, segment.options.to_vec()));
    }

    fn too_big(&mut self, notice: &TooBig) {
        self.too_big.push(*notice);
    }
}

/// Reads a file in pieces of `piece` bytes; what no capture is ends early.
fn read<S: Sink>(file: &[u8], piece: usize, sink: &mut S) -> Reader {
    let mut reader = Reader::new();
    let mut kept = Vec::new();
    for piece in file.chunks(piece) {
        kept.extend_from_slice(piece);
        let Ok(done) = reader.read(&kept, sink) else { return reader };
        kept.drain(..done);
        assert!(kept.len() <= Reader::KEPT, "{} bytes are kept", kept.len());
    }
    reader.finish(&kept, sink).ok();
    reader
}

/// A file is the same whole and in pieces, and what it holds can be followed. The first byte is the length of a piece.
pub fn capture(data: &[u8]) {
    let Some((piece, file)) = data.split_first() else { return };
    let (mut whole, mut pieces) = (Seen::default(), Seen::default());
    let one = read(file, usize::MAX, &mut whole);
    let other = read(file, usize::from(*piece) + 1, &mut pieces);
    assert_eq!(whole, pieces);
    assert_eq!(one.totals(), other.totals());
    assert_eq!(one.problems().listed(), other.problems().listed());
    let mut tracker = Tracker::new(1, Keep::default());
    read(file, usize::MAX, &mut tracker);
    assert_eq!(tracker.finish().segments, one.totals().segments);
}
