//! Each link layer around the same IPv4 packet.

use fullpipe_capture::{Flags, LinkStamp, ProblemKind};
use fullpipe_units::SeqNum;

use crate::made::{ethernet, ipv4, ipv6, join, one, pcap, read, tcp};

const SNAP_IPV4: [u8; 8] = [0xAA, 0xAA, 3, 0, 0, 0, 8, 0];

fn packet() -> Vec<u8> {
    ipv4(6, &tcp(100, 5))
}

/// The frame carries `packet`, and nothing around it is a tunnel.
fn carries(link: u32, before: &[u8]) {
    let segment = one(link, &join(&[before, &packet()]));
    assert_eq!((segment.seq, segment.payload_len, segment.flow.outer), (SeqNum::new(100), 5, 0), "link {link}");
}

#[test]
fn a_frame_tells_all_of_its_segment() {
    let got = read(&pcap(1, &[&ethernet(0x0800, &packet())]));
    let segment = got.segments[0].segment;
    assert_eq!((segment.number, segment.at_ns), (1, 1_000_000_000));
    assert_eq!(segment.flow.from.address, "10.0.0.1".parse::<std::net::IpAddr>().unwrap().into());
    assert_eq!(segment.flow.to.address, "10.0.0.2".parse::<std::net::IpAddr>().unwrap().into());
    assert_eq!((segment.flow.from.port, segment.flow.to.port), (1000, 80));
    assert_eq!((segment.seq, segment.ack), (SeqNum::new(100), SeqNum::new(7)));
    assert_eq!(segment.flags, Flags(0x18));
    assert_eq!((segment.window, segment.payload_len), (0x1234, 5));
    let network = segment.network;
    assert_eq!((network.id, network.hop_limit, network.ecn), (Some(0x1234), 63, 2));
    assert_eq!((network.dont_fragment, network.length), (true, 57));
    assert_eq!(got.segments[0].options, [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert!(!segment.options_cut);
    assert_ne!(segment.link, LinkStamp(0));
}

#[test]
fn padding_of_a_frame_is_no_payload() {
    let frame = ethernet(0x0800, &join(&[&ipv4(6, &tcp(1, 0)), &[0; 40]]));
    assert_eq!(one(1, &frame).payload_len, 0);
}

#[test]
fn tags_and_labels_are_looked_through() {
    carries(1, &ethernet(0x8100, &[0, 5, 8, 0]));
    carries(1, &ethernet(0x88A8, &[0, 5, 0x81, 0, 0, 6, 8, 0]));
    carries(1, &ethernet(0x9100, &[0, 5, 0x81, 0, 0, 6, 8, 0]));
    carries(1, &ethernet(0x8847, &[0, 1, 0, 64, 0, 2, 1, 64]));
    carries(1, &ethernet(0x8864, &[0x11, 0, 0, 9, 0, 59, 0, 0x21]));
    carries(1, &ethernet(0x8926, &[0, 0, 0, 0, 8, 0]));
    carries(1, &ethernet(0x893F, &[0, 0, 0, 0, 0, 0, 8, 0]));
    carries(1, &ethernet(0x88E7, &join(&[&[0, 0, 0, 9], &ethernet(0x0800, &[])])));
    carries(1, &ethernet(65, &SNAP_IPV4));
    // A pseudowire with its control word, and one without.
    carries(1, &ethernet(0x8847, &join(&[&[0, 1, 1, 64, 0, 0, 0, 0], &ethernet(0x0800, &[])])));
    let multicast = [0x11, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0];
    carries(1, &ethernet(0x8847, &join(&[&[0, 1, 1, 64], &multicast])));
}

#[test]
fn a_vlan_tells_copies_apart_but_not_connections() {
    let tagged = |number: u8| one(1, &ethernet(0x8100, &join(&[&[0, number, 8, 0], &packet()])));
    assert_eq!(tagged(5).flow, tagged(6).flow);
    assert_ne!(tagged(5).link, tagged(6).link);
}

#[test]
fn other_frames_of_a_wire_are_read() {
    let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    carries(10, &join(&[&[0x50], &addresses, &SNAP_IPV4]));
    carries(6, &join(&[&[0x10, 0x40], &addresses, &SNAP_IPV4]));
    let routed = [2, 0, 0, 0, 0, 2, 0x82, 0, 0, 0, 0, 1];
    carries(6, &join(&[&[0x10, 0x40], &routed, &[4, 0, 0, 1], &SNAP_IPV4]));
    carries(122, &join(&[&[0; 16], &SNAP_IPV4]));
    carries(100, &SNAP_IPV4);
    carries(100, &join(&[&[0xAA, 0xAA, 3, 0, 0x80, 0xC2, 0, 7, 0, 0], &ethernet(0x0800, &[])]));
    carries(281, &join(&[&addresses, &[0; 4], &[8, 0]]));
    carries(282, &join(&[&[0; 4], &ethernet(0x0800, &[])]));
    carries(240, &join(&[&[0; 4], &ethernet(0x0800, &[])]));
    carries(242, &join(&[&[7; 40], &[8, 0, 0, 0]]));
}

#[test]
fn what_has_no_wire_is_read() {
    for raw in [12, 14, 101, 228] {
        carries(raw, &[]);
    }
    assert_eq!(one(101, &ipv6(6, &tcp(3, 4))).payload_len, 4);
    assert_eq!(one(229, &ipv6(6, &tcp(3, 4))).payload_len, 4);
    carries(0, &[2, 0, 0, 0]);
    carries(0, &[0, 0, 0, 2]);
    carries(108, &[0, 0, 0, 2]);
    for family in [10, 23, 24, 28, 30] {
        let frame = join(&[&[family, 0, 0, 0], &ipv6(6, &tcp(3, 4))]);
        assert_eq!(one(0, &frame).payload_len, 4, "family {family}");
    }
    carries(113, &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0]);
    carries(113, &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0, 0, 5, 8, 0]);
    carries(276, &[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    carries(109, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    carries(117, &join(&[&[61, 2], &[0; 62]]));
    carries(239, &[2, 0, 0, 1, 5, 0, 10, 0, 0, 0, 0, 0, 61, 0, 9, 0]);
}

#[test]
fn a_cooked_interface_tells_copies_apart() {
    let on = |interface: u8| {
        let header = [8, 0, 0, 0, 0, 0, 0, interface, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        one(276, &join(&[&header, &packet()])).link
    };
    assert_ne!(on(3), on(4));
}

#[test]
fn ppp_is_read_in_each_framing() {
    carries(9, &[0xFF, 3, 0, 0x21]);
    carries(9, &[0, 0x21]);
    carries(9, &[0x21]);
    carries(50, &[0x0F, 0, 8, 0]);
    carries(51, &[0x11, 0, 0, 9, 0, 59, 0, 0x21]);
    carries(104, &[0x0F, 0, 8, 0]);
    carries(166, &[1, 3, 0, 0x21]);
    carries(204, &[0, 0xFF, 3, 0, 0x21]);
    carries(107, &[0x18, 0x41, 3, 0xCC]);
    carries(107, &[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0]);
    carries(107, &[0x18, 0x41, 8, 0]);
}

/// A data frame of a wireless network: control, flags, three addresses.
fn wifi(control: u8, flags: u8) -> Vec<u8> {
    join(&[&[control, flags, 0, 0], &[1; 6], &[2; 6], &[3; 6], &[0x10, 0]])
}

#[test]
fn wireless_data_frames_are_read() {
    carries(105, &join(&[&wifi(0x08, 1), &SNAP_IPV4]));
    carries(105, &join(&[&wifi(0x88, 1), &[0, 0], &SNAP_IPV4]));
    carries(105, &join(&[&wifi(0x88, 0x81), &[0, 0, 0, 0, 0, 0], &SNAP_IPV4]));
    carries(105, &join(&[&wifi(0x08, 3), &[4; 6], &SNAP_IPV4]));
    carries(127, &join(&[&[0, 0, 8, 0, 0, 0, 0, 0], &wifi(0x08, 1), &SNAP_IPV4]));
    // A time and flags, which say that the frame's header is padded to four bytes.
    let padded = [0, 0, 17, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20];
    carries(127, &join(&[&padded, &wifi(0x88, 1), &[0, 0, 0, 0], &SNAP_IPV4]));
    let prism = join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136]]);
    carries(119, &join(&[&prism, &wifi(0x08, 1), &SNAP_IPV4]));
    carries(163, &join(&[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 8], &wifi(0x08, 1), &SNAP_IPV4]));
    carries(192, &join(&[&[0, 0, 8, 0, 105, 0, 0, 0], &wifi(0x08, 1), &SNAP_IPV4]));
    // A driver that decrypts leaves the flag.
    carries(105, &join(&[&wifi(0x08, 0x41), &SNAP_IPV4]));
}

#[test]
fn frames_in_one_wireless_frame_are_told_apart() {
    let part = |seq| {
        let inner = join(&[&SNAP_IPV4, &ipv4(6, &tcp(seq, 1))]);
        let length = (inner.len() as u16).to_be_bytes();
        join(&[&[1; 6], &[2; 6], &length, &inner])
    };
    let mut first = part(1);
    first.resize(first.len().next_multiple_of(4), 0);
    let got = read(&pcap(105, &[&join(&[&wifi(0x88, 1), &[0x80, 0], &first, &part(2)])]));
    let seqs: Vec<_> = got.segments.iter().map(|kept| kept.segment.seq.get()).collect();
    assert_eq!((seqs, got.problems), (vec![1, 2], vec![]));
}

#[test]
fn an_encrypted_frame_is_a_problem_and_a_management_frame_is_none() {
    let encrypted = join(&[&wifi(0x08, 0x41), &[9; 60]]);
    let beacon = join(&[&wifi(0x80, 0), &[9; 60]]);
    // An acknowledgement ends with the receiver's address.
    let acknowledgement = [0xD4, 0, 0, 0, 7, 7, 7, 7, 7, 7];
    let got = read(&pcap(105, &[&encrypted, &beacon, &acknowledgement]));
    assert_eq!(got.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::Encrypted]);
}

#[test]
fn a_link_type_within_a_header_is_followed() {
    let header = [12, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0];
    carries(258, &header);
}

#[test]
fn a_link_type_that_is_not_read_is_named() {
    let got = read(&pcap(143, &[&packet()]));
    assert_eq!(got.segments, []);
    assert_eq!(got.problems[0].kind, ProblemKind::UnknownLink(143));
    assert_eq!(got.problems[0].kind.to_string(), "link type 143 (DOCSIS) is not read");
}
