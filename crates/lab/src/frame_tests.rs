//! Segments of a frame against an independent reading of what they must be.

use proptest::prelude::*;

use super::*;

const SEQ: u32 = u32::MAX - 2_000;
const ID: u16 = 0xfffe;

/// A super-packet as Linux hands it over: lengths of the whole, checksum of the pseudo header only.
fn super_packet(version: u8, mss: u16, payload: &[u8], flags: u8) -> Vec<u8> {
    let ip_len = if version == 4 { 20 } else { 40 };
    // Timestamps and padding: 32 bytes of TCP header.
    let l4_len = 32 + payload.len();
    let mut packet = vec![0; ip_len + 32];
    if version == 4 {
        packet[0] = 0x45;
        packet[1] = Ecn::Ect0 as u8;
        put_word(&mut packet, 2, (ip_len + l4_len) as u16);
        put_word(&mut packet, 4, ID);
        packet[6] = 0x40;
        packet[9] = 6;
        packet[12..20].copy_from_slice(&[10, 80, 0, 1, 10, 80, 0, 2]);
    } else {
        packet[0] = 0x60;
        packet[1] = (Ecn::Ect0 as u8) << 4;
        put_word(&mut packet, 4, l4_len as u16);
        packet[6] = 6;
        packet[8..40].copy_from_slice(&[0xfd; 32]);
    }
    let tcp = &mut packet[ip_len..];
    tcp[4..8].copy_from_slice(&SEQ.to_be_bytes());
    tcp[12] = 8 << 4;
    tcp[13] = flags;
    let partial = checksum::fold(pseudo_sum(&packet, l4_len));
    put_word(&mut packet, ip_len + TCP_CHECKSUM, partial);
    packet.extend_from_slice(payload);

    let gso_type = if version == 4 { GSO_TCPV4 } else { GSO_TCPV6 };
    let vnet = VnetHeader {
        flags: NEEDS_CSUM,
        gso_type: gso_type | GSO_ECN,
        hdr_len: (ip_len + 32) as u16,
        gso_size: mss,
        csum_start: ip_len as u16,
        csum_offset: TCP_CHECKSUM as u16,
    };
    [&vnet.to_bytes()[..], &packet].concat()
}

fn pseudo_sum(packet: &[u8], l4_len: usize) -> u64 {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    checksum::add(l4_len as u64 + 6, addresses)
}

fn frame(bytes: Vec<u8>) -> Option<Rc<Frame>> {
    let len = bytes.len();
    Frame::new(bytes.into(), len, Rc::default())
}

/// What a run looks like when written: its offload header and the packet.
fn written(frame: &Frame, run: Run) -> (VnetHeader, Vec<u8>) {
    let mut scratch = [0; VNET_LEN + HEADER_MAX];
    let (header, payload) = frame.gather(run, &mut scratch);
    let vnet = VnetHeader::parse(header.first_chunk().unwrap());
    (vnet, [&header[VNET_LEN..], payload].concat())
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

proptest! {
    #[test]
    fn each_segment_is_a_packet_of_its_own(
        v6: bool, mss in 100_u16..9_000, len in 1_usize..60_000, flags in 0_u8..=255,
    ) {
        let version = if v6 { 6 } else { 4 };
        let ip_len = if v6 { 40 } else { 20 };
        let payload = payload(len);
        let frame = frame(super_packet(version, mss, &payload, flags)).unwrap();
        let mut seen = Vec::new();
        let last = frame.segments() - 1;
        for index in 0..=last {
            let packet = frame.segment(index);
            prop_assert_eq!(packet.len(), frame.wire_len(index) as usize);
            let (ip, tcp) = packet.split_at(ip_len);
            if v6 {
                prop_assert_eq!(usize::from(word(ip, 4)), tcp.len());
            } else {
                prop_assert_eq!(usize::from(word(ip, 2)), packet.len());
                prop_assert_eq!(word(ip, 4), ID.wrapping_add(index));
                prop_assert_eq!(checksum::complement(ip), 0);
            }
            prop_assert_eq!(!checksum::fold(checksum::add(pseudo_sum(&packet, tcp.len()), tcp)), 0);
            let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
            prop_assert_eq!(seq, SEQ.wrapping_add(seen.len() as u32));
            let mut expected = flags;
            if index != last { expected &= !(TCP_FIN | TCP_PSH); }
            if index != 0 { expected &= !TCP_CWR; }
            prop_assert_eq!(tcp[13], expected);
            prop_assert!(tcp.len() - 32 <= usize::from(mss));
            seen.extend_from_slice(&tcp[32..]);
        }
        prop_assert_eq!(seen, payload);
    }

    #[test]
    fn a_run_stands_for_the_same_segments_as_its_parts(
        v6: bool, mss in 100_u16..2_000, segments in 2_u16..30, cut in 1_u16..29, short in 0_u16..100,
    ) {
        let len = usize::from(mss * segments - short.min(mss - 1));
        let version = if v6 { 6 } else { 4 };
        let whole = frame(super_packet(version, mss, &payload(len), TCP_PSH | TCP_CWR)).unwrap();
        prop_assert_eq!(whole.segments(), segments);
        let cut = cut.min(segments - 1);
        for (first, count) in [(0, cut), (cut, segments - cut)] {
            let (vnet, packet) = written(&whole, Run { first, count, ecn: whole.ecn() });
            // The kernel that gets it will cut it again: into what the whole was to be cut into.
            let again = frame([&vnet.to_bytes()[..], &packet].concat()).unwrap();
            prop_assert_eq!(again.segments(), count);
            for index in 0..count {
                prop_assert_eq!(again.segment(index), whole.segment(first + index));
            }
        }
    }

    #[test]
    fn any_bytes_are_a_frame_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), gso: bool) {
        let mut bytes = bytes;
        if gso && bytes.len() > 24 {
            // Plausible enough to get past the first checks.
            bytes[..10].copy_from_slice(&VnetHeader {
                flags: NEEDS_CSUM, gso_type: GSO_TCPV4, hdr_len: 40, gso_size: 10, csum_start: 20, csum_offset: 16,
            }.to_bytes());
            bytes[10] = 0x45;
        }
        if let Some(frame) = frame(bytes) {
            for index in 0..frame.segments() {
                prop_assert_eq!(frame.segment(index).len(), frame.wire_len(index) as usize);
            }
        }
    }
}

#[test]
fn a_mark_changes_the_ecn_field_and_nothing_else() {
    for version in [4, 6] {
        let frame = frame(super_packet(version, 1_000, &payload(3_000), 0)).unwrap();
        assert_eq!(frame.ecn(), Ecn::Ect0);
        let (_, plain) = written(&frame, Run { first: 1, count: 1, ecn: Ecn::Ect0 });
        let (_, mut marked) = written(&frame, Run { first: 1, count: 1, ecn: Ecn::Ce });
        if version == 4 {
            assert_eq!(checksum::complement(&marked[..20]), 0);
            assert_eq!(marked[1], Ecn::Ce as u8);
            marked[1] = plain[1];
            marked[10..12].copy_from_slice(&plain[10..12]);
        } else {
            assert_eq!(marked[1] >> 4, Ecn::Ce as u8);
            marked[1] = plain[1];
        }
        assert_eq!(marked, plain);
    }
}

#[test]
fn a_mark_on_a_whole_packet_keeps_its_header_checksum_right() {
    let mut packet = vec![0; 60];
    packet[0] = 0x45;
    packet[1] = Ecn::Ect1 as u8;
    put_word(&mut packet, 2, 60);
    let sum = checksum::complement(&packet[..20]);
    put_word(&mut packet, 10, sum);
    let frame = frame([&[0; VNET_LEN][..], &packet].concat()).unwrap();
    let (_, marked) = written(&frame, Run { first: 0, count: 1, ecn: Ecn::Ce });
    assert_eq!(marked[1], Ecn::Ce as u8);
    assert_eq!(checksum::complement(&marked[..20]), 0);
}

#[test]
fn a_buffer_comes_back_when_its_last_segment_is_gone() {
    let pool = Rc::new(Pool::default());
    let mut buffer = pool.take();
    let bytes = super_packet(4, 1_448, &payload(40_000), 0);
    buffer[..bytes.len()].copy_from_slice(&bytes);
    let frame = Frame::new(buffer, bytes.len(), Rc::clone(&pool)).unwrap();
    let other = Rc::clone(&frame);
    drop(frame);
    assert_eq!((pool.held(), pool.free.borrow().len()), (BUFFER, 0));
    drop(other);
    assert_eq!((pool.held(), pool.free.borrow().len()), (0, 1));
}

#[test]
fn link_local_multicast_is_known() {
    let mut v4 = vec![0; 20];
    v4[0] = 0x45;
    v4[16..20].copy_from_slice(&[224, 0, 0, 22]);
    let mut v6 = vec![0; 40];
    v6[0] = 0x60;
    v6[24..26].copy_from_slice(&[0xff, 0x02]);
    for mut packet in [v4, v6] {
        let with_header = |packet: &[u8]| frame([&[0; VNET_LEN], packet].concat()).unwrap();
        assert!(with_header(&packet).is_link_local_multicast());
        let last = if packet.len() == 20 { 18 } else { 25 };
        packet[last] = 0x0e;
        assert!(!with_header(&packet).is_link_local_multicast());
    }
}

/// The packet of a super-packet's headers and payload, as one that is not cut up.
fn plain(version: u8, payload: &[u8], change: impl FnOnce(&mut [u8])) -> Rc<Frame> {
    let mut bytes = super_packet(version, 1_448, payload, TCP_ACK);
    bytes[..VNET_LEN].fill(0);
    let ip_len = if version == 4 { 20 } else { 40 };
    let tcp = &mut bytes[VNET_LEN + ip_len..];
    tcp[20..32].copy_from_slice(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    change(tcp);
    frame(bytes).unwrap()
}

#[test]
fn only_an_acknowledgement_that_does_nothing_else_can_be_left_out() {
    for version in [4, 6] {
        let bare = plain(version, &[], |_| ()).acknowledges();
        assert!(bare.is_some());
        assert_eq!(plain(version, &[], |tcp| tcp[TCP_FLAGS] |= TCP_CWR).acknowledges(), bare);
        assert_ne!(plain(version, &[], |tcp| tcp[1] = 9).acknowledges(), bare, "another port is another connection");
        assert_eq!(plain(version, b"data", |_| ()).acknowledges(), None);
        assert_eq!(plain(version, &[], |tcp| tcp[TCP_FLAGS] |= TCP_FIN).acknowledges(), None);
        assert_eq!(plain(version, &[], |tcp| tcp[22] = TCP_SACK).acknowledges(), None);
        assert_eq!(plain(version, &[], |tcp| tcp[23] = 99).acknowledges(), None, "an option that overruns");
    }
}
