//! Each container around the same frames.

use fullpipe_capture::{NotACapture, ProblemKind, Reader};

use crate::made::{Got, ethernet, ipv4, join, pcap, read, read_in_pieces, tcp};

fn frame(seq: u32) -> Vec<u8> {
    ethernet(0x0800, &ipv4(6, &tcp(seq, 7)))
}

fn times(got: &Got) -> Vec<u64> {
    got.segments.iter().map(|kept| kept.segment.at_ns).collect()
}

/// The bytes of words in either order.
fn words(is_big: bool, words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| if is_big { word.to_be_bytes() } else { word.to_le_bytes() }).collect()
}

#[test]
fn pcap_is_read_in_both_orders_and_each_variant() {
    for is_big in [false, true] {
        for (magic, fraction, more_header, more_record) in [
            (0xA1B2_C3D4, 1000, 0, 0),
            (0xA1B2_3C4D, 1, 0, 0),
            (0xA12B_3C4D, 1, 0, 0),
            (0xA1B2_CD34, 1000, 0, 2),
            (0x1C00_01AC, 1, 1, 0),
            (0x1C00_01AB, 1000, 1, 0),
        ] {
            let version = if is_big { 2 << 16 | 4 } else { 4 << 16 | 2 };
            let mut file = words(is_big, &[magic, version, 0, 0, 65535, 1]);
            file.extend(words(is_big, &vec![0; more_header]));
            let frame = frame(1);
            file.extend(words(is_big, &[5, 6, frame.len() as u32, frame.len() as u32]));
            file.extend(words(is_big, &vec![3; more_record]));
            file.extend_from_slice(&frame);
            let got = read(&file);
            assert_eq!(times(&got), [5_000_000_000 + 6 * fraction], "{magic:x} {is_big}");
            assert_eq!(got.problems, []);
        }
    }
}

#[test]
fn old_versions_of_pcap_have_their_lengths_exchanged() {
    let frame = frame(1);
    for minor in [2, 3] {
        let mut file = words(false, &[0xA1B2_C3D4, minor << 16 | 2, 0, 0, 65535, 1]);
        file.extend(words(false, &[5, 0, 900, frame.len() as u32]));
        file.extend_from_slice(&frame);
        assert_eq!(read(&file).totals.bytes, 900);
    }
}

#[test]
fn aix_has_its_own_link_types_and_nanoseconds() {
    let frame = frame(1);
    let mut file = words(true, &[0xA1B2_C3D4, 2 << 16 | 2, 0, 0, 65535, 6]);
    file.extend(words(true, &[5, 123, frame.len() as u32, frame.len() as u32]));
    file.extend_from_slice(&frame);
    assert_eq!(times(&read(&file)), [5_000_000_123]);
}

#[test]
fn packets_beyond_the_part_that_is_looked_at_are_read_in_any_pieces() {
    let long = ethernet(0x0800, &ipv4(6, &tcp(1, 60_000)));
    let short = frame(2);
    let file = pcap(1, &[&long, &short, &long, &short]);
    for piece in [1, 7, 100, 16_384, 40_000, usize::MAX] {
        let got = read_in_pieces(&file, piece);
        let lengths: Vec<_> = got.segments.iter().map(|kept| kept.segment.payload_len).collect();
        assert_eq!(lengths, [60_000, 7, 60_000, 7], "pieces of {piece}");
        assert_eq!(got.problems, []);
    }
}

#[test]
fn a_file_cut_within_a_packet_keeps_those_before() {
    let file = pcap(1, &[&frame(1), &frame(2)]);
    for cut in 1..frame(2).len() + 16 {
        let got = read(&file[..file.len() - cut]);
        assert_eq!(got.segments.len(), 1);
        assert_eq!(got.problems[0].kind, ProblemKind::FileCut, "cut {cut} bytes");
    }
}

#[test]
fn a_length_that_lies_ends_the_reading_with_a_problem() {
    let mut file = pcap(1, &[&frame(1), &frame(2)]);
    let second = file.len() - frame(2).len() - 16;
    file[second + 8..second + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let got = read(&file);
    assert_eq!(got.segments.len(), 1);
    assert_eq!(got.problems[0].kind, ProblemKind::BadLength(u32::MAX));
    assert_eq!(got.problems.len(), 1);
}

#[test]
fn what_is_no_capture_is_refused_with_a_reason() {
    let error = |bytes: &[u8]| {
        let mut sink = Got::default();
        let mut reader = Reader::new();
        reader.read(bytes, &mut sink).and_then(|done| reader.finish(&bytes[done..], &mut sink)).unwrap_err()
    };
    assert_eq!(error(b""), NotACapture::Empty);
    assert_eq!(error(b"\xD4\xC3\xB2\xA1\x02"), NotACapture::TooShort(5));
    assert_eq!(error(b"GET / HTTP/1.1"), NotACapture::Magic(*b"GET "));
    assert_eq!(error(&words(false, &[0xA1B2_C3D4, 9, 0, 0, 0, 1])), NotACapture::Version(9));
    assert_eq!(
        error(b"GET / HTTP/1.1").to_string(),
        "it begins with 47 45 54 20, and neither pcap, pcapng nor snoop does"
    );
}

/// A block of pcapng.
fn block(is_big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = body.len() as u32 + 12;
    join(&[&words(is_big, &[kind, length]), &body, &words(is_big, &[length])])
}

fn section(is_big: bool) -> Vec<u8> {
    let version = if is_big { 1 << 16 } else { 1 };
    block(is_big, 0x0A0D_0D0A, &words(is_big, &[0x1A2B_3C4D, version, u32::MAX, u32::MAX]))
}

/// An interface with these options (code, value).
fn interface(is_big: bool, link: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = words(is_big, &[if is_big { link << 16 } else { link }, 0]);
    for (code, value) in options {
        let word = [*code, value.len() as u16].map(|half| if is_big { half.to_be_bytes() } else { half.to_le_bytes() });
        body.extend(word.concat());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(is_big, 1, &body)
}

fn packet(is_big: bool, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let header = words(is_big, &[interface, (ticks >> 32) as u32, ticks as u32, length, length]);
    block(is_big, 6, &join(&[&header, frame]))
}

#[test]
fn interfaces_of_pcapng_have_clocks_of_their_own() {
    for is_big in [false, true] {
        let offset = if is_big { 100_i64.to_be_bytes() } else { 100_i64.to_le_bytes() };
        let back = if is_big { (-100_i64).to_be_bytes() } else { (-100_i64).to_le_bytes() };
        let file = join(&[
            &section(is_big),
            &interface(is_big, 1, &[]),
            &interface(is_big, 1, &[(2, b"eth0"), (9, &[9]), (14, &offset)]),
            &interface(is_big, 101, &[(9, &[0x8A])]),
            &interface(is_big, 1, &[(9, &[12])]),
            &interface(is_big, 1, &[(9, &[0]), (14, &back)]),
            &packet(is_big, 0, 5_000_007, &frame(1)),
            &packet(is_big, 1, 7_000_000_001, &frame(2)),
            &packet(is_big, 2, 1536, &ipv4(6, &tcp(3, 1))),
            &packet(is_big, 3, 4_000_000_005_999, &frame(4)),
            &packet(is_big, 4, 103, &frame(5)),
            &packet(is_big, 4, 3, &frame(6)),
        ]);
        for piece in [1, 50, usize::MAX] {
            let got = read_in_pieces(&file, piece);
            assert_eq!(
                times(&got),
                [5_000_007_000, 107_000_000_001, 1_500_000_000, 4_000_000_005, 3_000_000_000, 0],
                "big {is_big}, pieces of {piece}"
            );
            assert_eq!(got.problems, []);
        }
    }
}

#[test]
fn interfaces_of_pcapng_tell_copies_apart() {
    let file = join(&[
        &section(false),
        &interface(false, 1, &[]),
        &interface(false, 1, &[]),
        &packet(false, 0, 1, &frame(1)),
        &packet(false, 1, 1, &frame(1)),
    ]);
    let got = read(&file);
    assert_ne!(got.segments[0].segment.link, got.segments[1].segment.link);
}

#[test]
fn sections_have_byte_orders_and_interfaces_of_their_own() {
    let file = join(&[
        &section(false),
        &interface(false, 1, &[]),
        &packet(false, 0, 1_000_000, &frame(1)),
        &section(true),
        &packet(true, 0, 2_000_000, &frame(2)),
        &interface(true, 101, &[]),
        &packet(true, 0, 3_000_000, &ipv4(6, &tcp(3, 1))),
    ]);
    let got = read(&file);
    assert_eq!(times(&got), [1_000_000_000, 3_000_000_000]);
    assert_eq!((got.problems[0].packet, got.problems[0].kind), (2, ProblemKind::UnknownInterface(0)));
    assert_eq!(got.segments[1].segment.number, 3);
}

#[test]
fn other_blocks_and_older_packets_are_understood() {
    let frame = frame(9);
    let length = frame.len() as u32;
    let old = join(&[&words(false, &[0xFFFF << 16, 0, 2_000_000, length, length]), &frame]);
    let file = join(&[
        &section(false),
        &block(false, 0xBAD, &[1; 40_000]),
        &interface(false, 1, &[]),
        &block(false, 2, &old),
        &block(false, 3, &join(&[&words(false, &[length]), &frame])),
        &block(false, 5, &[0; 8]),
    ]);
    for piece in [9, usize::MAX] {
        let got = read_in_pieces(&file, piece);
        assert_eq!(times(&got), [2_000_000_000, 2_000_000_000]);
        assert_eq!(got.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::NoTime]);
    }
}

#[test]
fn snoop_is_read() {
    let frame = frame(1);
    let length = frame.len() as u32;
    let mut file = join(&[b"snoop\0\0\0", &words(true, &[2, 4])]);
    for second in [1, 2] {
        file.extend(words(true, &[length, length, length + 26, 0, second, 5]));
        file.extend_from_slice(&frame);
        file.extend([0, 0]);
    }
    for piece in [1, usize::MAX] {
        assert_eq!(times(&read_in_pieces(&file, piece)), [1_000_005_000, 2_000_005_000]);
    }
}

#[test]
fn numbers_go_on_from_file_to_file() {
    let file = pcap(1, &[&frame(1)]);
    let mut got = Got::default();
    let mut reader = Reader::after(41);
    reader.read(&file, &mut got).unwrap();
    assert_eq!(got.segments[0].segment.number, 42);
}
