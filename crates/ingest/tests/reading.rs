//! Captures from files and pipes, compressed, cut and several at once.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a failed test")]

use std::{
    fs,
    io::{self, Read, Write},
    ops::ControlFlow,
    path::PathBuf,
    sync::mpsc,
};

use flate2::{Compression as Level, write::GzEncoder};
use fullpipe_capture::{NotACapture, ProblemKind, Segment, Sink, TooBig};
use fullpipe_ingest::{Captures, Compression, Error, Options, Progress, Reading, Source, read_all, read_source};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The numbers of the segments that came.
#[derive(Debug, Default)]
struct Numbers(Vec<u64>);

impl Sink for Numbers {
    fn segment(&mut self, segment: &Segment<'_>) {
        self.0.push(segment.number);
    }

    fn too_big(&mut self, _: &TooBig) {}
}

fn header() -> Vec<u8> {
    [0xA1B2_C3D4_u32, 4 << 16 | 2, 0, 0, 65535, 101].map(u32::to_le_bytes).concat()
}

/// A record with a segment of 500 bytes.
fn record() -> Vec<u8> {
    let mut record = [1_u32, 0, 540, 540].map(u32::to_le_bytes).concat();
    record.extend([0x45, 0, 0x02, 0x1C, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    record.extend([0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    record.resize(16 + 540, 7);
    record
}

fn capture(packets: usize) -> Vec<u8> {
    [header(), record().repeat(packets)].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

const AHEAD: Options = Options { piece: 5000, reading: Reading::Ahead };

fn on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Reads what is written into files, in both ways, which must agree.
fn read(files: &[&[u8]]) -> (Captures, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..files.len()).map(|number| folder.path().join(number.to_string())).collect();
    for (path, bytes) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    let (mut along, mut ahead) = (Numbers::default(), Numbers::default());
    let captures = read_all(&paths, Options::default(), &mut along, on);
    let others = read_all(&paths, AHEAD, &mut ahead, on);
    assert_eq!(along.0, ahead.0);
    assert_eq!(captures.files.len(), others.files.len());
    for (one, other) in captures.files.iter().zip(&others.files) {
        assert_eq!((one.totals, one.problems.listed()), (other.totals, other.problems.listed()));
        assert_eq!(one.broken.is_some(), other.broken.is_some());
    }
    assert_eq!(captures.failed.len(), others.failed.len());
    (captures, along.0)
}

#[test]
fn a_capture_of_many_pieces_is_read_whole() {
    let (captures, numbers) = read(&[&capture(3000)]);
    assert_eq!(numbers, (1..=3000).collect::<Vec<_>>());
    let file = &captures.files[0];
    assert_eq!((file.totals.packets, file.problems.total(), file.compression), (3000, 0, None));
}

#[test]
fn compressed_captures_are_told_by_their_first_bytes() {
    let bytes = capture(3000);
    // Several members or frames, and one to be skipped, as parallel compressors write.
    let (first, second) = bytes.split_at(700_001);
    let skipped = [&[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3][..]].concat();
    for (compressed, compression) in [
        (gzip(&bytes), Compression::Gzip),
        ([gzip(first), gzip(second)].concat(), Compression::Gzip),
        (zstd(&bytes), Compression::Zstd),
        ([skipped.clone(), zstd(first), skipped, zstd(second)].concat(), Compression::Zstd),
    ] {
        let (captures, numbers) = read(&[&compressed]);
        assert_eq!(numbers.len(), 3000);
        assert_eq!(captures.files[0].compression, Some(compression));
        assert!(captures.files[0].broken.is_none());
    }
}

#[test]
fn what_was_read_before_the_cut_counts() {
    let bytes = capture(3000);
    let (captures, numbers) = read(&[&bytes[..bytes.len() - 1]]);
    assert_eq!(numbers.len(), 2999);
    assert_eq!(captures.files[0].problems.listed()[0].kind, ProblemKind::FileCut);
    for compressed in [gzip(&bytes), zstd(&bytes)] {
        let (captures, numbers) = read(&[&compressed[..compressed.len() * 2 / 3]]);
        assert!(!numbers.is_empty() && numbers.len() < 3000, "{}", numbers.len());
        let broken = captures.files[0].broken.as_ref().unwrap();
        assert!(matches!(broken, Error::Decompress { .. }), "{broken}");
    }
}

#[test]
fn a_frame_that_wants_a_window_of_gigabytes_is_refused_with_the_way_out() {
    // RFC 8878, 3.1.1: no content size and no checksum, a window of 2^31 B; one last raw block of four bytes.
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x00, (31 - 10) << 3, 0x21, 0x00, 0x00, 0xD4, 0xC3, 0xB2, 0xA1];
    let (captures, _) = read(&[&frame]);
    let message = captures.failed[0].to_string();
    assert!(matches!(captures.failed[0], Error::LongWindow { .. }), "{message}");
    assert!(message.ends_with("unpack it first: `zstd -dc --long=31 FILE | fullpipe read -`"), "{message}");
}

#[test]
fn what_is_no_capture_is_refused_by_name() {
    let xz = b"\xFD7zXZ\0\0\x04";
    let (captures, _) = read(&[b"", b"abc", b"GET / HTTP/1.1", &gzip(b"what else"), b"\x1F\x8Bnothing", xz]);
    let messages: Vec<String> = captures.failed.iter().map(ToString::to_string).collect();
    assert_eq!(captures.files.len(), 0);
    assert!(matches!(captures.failed[0], Error::NotACapture { reason: NotACapture::Empty, .. }));
    assert!(matches!(captures.failed[1], Error::NotACapture { reason: NotACapture::TooShort(3), .. }));
    assert!(messages[2].contains("47 45 54 20") && messages[2].contains("tcpdump -w"), "{}", messages[2]);
    assert!(messages[3].contains("77 68 61 74"), "{}", messages[3]);
    assert!(matches!(captures.failed[4], Error::Decompress { .. }));
    assert!(
        messages[5].ends_with("compressed by xz; unpack it first: `xz -dc FILE | fullpipe read -`"),
        "{}",
        messages[5]
    );
}

#[test]
fn files_that_are_not_there_and_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("missing"), folder.path().to_owned()];
    let captures = read_all(&paths, Options::default(), &mut Numbers::default(), on);
    let messages: Vec<String> = captures.failed.iter().map(ToString::to_string).collect();
    assert!(messages[0].contains("missing"), "{messages:?}");
    assert_eq!(messages.len(), 2);
}

#[test]
fn numbers_run_on_from_file_to_file_and_are_found_again() {
    let (captures, numbers) = read(&[&capture(3), b"no capture", &gzip(&capture(2))]);
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let place = |number| captures.locate(number).map(|(file, number)| (file.name.clone(), number)).unwrap();
    assert!(place(3).0.ends_with('0') && place(3).1 == 3);
    assert!(place(4).0.ends_with('2') && place(4).1 == 1);
    assert_eq!(captures.failed.len(), 1);
}

#[test]
fn whoever_is_told_of_the_progress_can_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    fs::write(&path, capture(3000)).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    for reading in [Reading::Along, Reading::Ahead] {
        let mut reports = Vec::new();
        let mut sink = Numbers::default();
        let options = Options { piece: 100_000, reading };
        let captures = read_all(&[path.clone(), path.clone()], options, &mut sink, |progress| {
            reports.push(*progress);
            if progress.packets >= 1000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(captures.files[0].was_stopped && captures.files.len() == 1);
        assert_eq!(captures.files[0].problems.total(), 0, "stopping is no damage");
        assert!((1000..2000).contains(&sink.0.len()));
        assert!(reports.iter().all(|progress| progress.of == Some(size) && progress.bytes > 0));
    }
}

/// A pipe of which each read gives what was written at once.
struct Pipe(mpsc::Receiver<Vec<u8>>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Ok(bytes) = self.0.recv() else { return Ok(0) };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

#[test]
fn a_live_pipe_flows_without_waiting_for_more() {
    for reading in [Reading::Along, Reading::Ahead] {
        let (writer, pipe) = mpsc::sync_channel(1);
        // The magic number is read alone.
        writer.send(header()[..4].to_vec()).unwrap();
        let source = Source::new("pipe".to_owned(), Box::new(Pipe(pipe)), None).unwrap();
        let mut left = vec![record(), record(), header()[4..].to_vec()];
        let mut writer = Some(writer);
        let mut seen = Vec::new();
        let mut next = || match left.pop() {
            Some(bytes) => writer.as_ref().unwrap().send(bytes).unwrap(),
            None => writer = None,
        };
        let outcome =
            read_source(source, 0, Options { reading, ..Options::default() }, &mut Numbers::default(), |progress| {
                // Each piece is written only once the one before was read: waiting for more would never end.
                seen.push(progress.packets);
                next();
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(outcome.totals.segments, 2);
        assert_eq!(seen, [0, 0, 1, 2]);
    }
}
