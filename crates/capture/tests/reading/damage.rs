//! Bytes that nobody meant: no panic, no memory beyond what is kept, the same answer in any pieces.

use proptest::prelude::*;

use crate::made::{Got, ethernet, ipv4, ipv6, join, pcap, read_in_pieces, tcp, udp};
use fullpipe_capture::Reader;

/// One frame of many kinds.
fn frames() -> Vec<(u32, Vec<u8>)> {
    let inner = ipv4(6, &tcp(1, 3));
    let vxlan = udp(4789, &join(&[&[8, 0, 0, 0, 0, 0, 1, 0], &ethernet(0x0800, &inner)]));
    vec![
        (1, ethernet(0x0800, &inner)),
        (1, ethernet(0x8100, &join(&[&[0, 1, 0x86, 0xDD], &ipv6(6, &tcp(2, 3))]))),
        (1, ethernet(0x0800, &ipv4(17, &vxlan))),
        (1, ethernet(0x0800, &ipv4(47, &join(&[&[0x20, 0, 8, 0, 0, 0, 0, 1], &inner])))),
        (101, ipv6(0, &join(&[&[44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 9], &tcp(3, 3)]))),
        (127, join(&[&[0, 0, 8, 0, 0, 0, 0, 0, 8, 1, 0, 0], &[1; 20], &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0], &inner])),
        (239, join(&[&[2, 0, 0, 1, 59, 0, 9, 0], &inner])),
        (107, join(&[&[0x18, 0x41, 3, 0xCC], &inner])),
    ]
}

fn all(file: &[u8], piece: usize) -> Got {
    let mut got = Got::default();
    let mut reader = Reader::new();
    let mut kept = Vec::new();
    for piece in file.chunks(piece) {
        kept.extend_from_slice(piece);
        match reader.read(&kept, &mut got) {
            Ok(done) => drop(kept.drain(..done)),
            Err(_) => return got,
        }
        assert!(kept.len() <= Reader::KEPT);
    }
    reader.finish(&kept, &mut got).ok();
    got.problems = reader.problems().listed().to_vec();
    got.totals = *reader.totals();
    got
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_changed_anywhere_never_panic(
        kind in 0..8_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (link, frame) = frames().swap_remove(kind);
        let mut file = pcap(link, &[&frame, &frame, &frame]);
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        let end = cut.index(file.len() * 2).min(file.len());
        let (whole, pieces) = (all(&file[..end], usize::MAX), all(&file[..end], 37));
        prop_assert_eq!(whole.segments, pieces.segments);
        prop_assert_eq!(whole.problems, pieces.problems);
        prop_assert_eq!(whole.totals, pieces.totals);
    }

    #[test]
    fn any_bytes_after_a_header_never_panic(
        which in 0..4_usize,
        link in 0..300_u32,
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let headers = [
            pcap(link, &[]),
            join(&[&[0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0], &[255; 8], &[28, 0, 0, 0]]),
            join(&[b"snoop\0\0\0", &[0, 0, 0, 2, 0, 0, 0, 4]]),
            pcap(link, &[&bytes]),
        ];
        let file = join(&[&headers[which], &bytes]);
        let (whole, pieces) = (all(&file, usize::MAX), all(&file, 11));
        prop_assert_eq!(whole.segments, pieces.segments);
        prop_assert_eq!(whole.problems, pieces.problems);
    }

    #[test]
    fn each_link_type_survives_any_frame(link in 0..300_u32, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_in_pieces(&pcap(link, &[&bytes]), usize::MAX);
    }
}
