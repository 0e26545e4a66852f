//! IP in all its forms, tunnels, fragments, and messages about packets that were too big.

use fullpipe_capture::{Endpoint, Flow, ProblemKind, Segment};
use fullpipe_units::SeqNum;

use crate::made::{ethernet, ipv4, ipv4_part, ipv6, ipv6_of, join, one, pcap, pcap_cut, read, tcp, udp};

/// The segment that a packet (raw IP) carries.
fn carried(packet: &[u8]) -> Segment<'static> {
    one(101, packet)
}

#[test]
fn options_of_ip_and_extension_headers_are_looked_through() {
    let mut with_options = ipv4(6, &tcp(1, 9));
    with_options.splice(20..20, [7, 4, 4, 0]);
    with_options[0] = 0x46;
    with_options[3] += 4;
    assert_eq!(carried(&with_options).payload_len, 9);
    let extensions = join(&[
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 1, 4, 0, 0, 0, 0],
        &[6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &tcp(1, 9),
    ]);
    let segment = carried(&ipv6(0, &extensions));
    assert_eq!((segment.payload_len, segment.network.ecn, segment.network.hop_limit), (9, 1, 64));
    assert_eq!((segment.network.id, segment.network.dont_fragment), (None, true));
}

#[test]
fn lengths_beyond_16_bits_are_those_of_the_frame_or_of_the_jumbo_option() {
    let frame = ethernet(0x0800, &ipv4_part(6, &tcp(1, 30), 0x4000, 0));
    let got = read(&pcap_cut(1, &[(&frame, 14 + 20 + 32 + 180_000)]));
    assert_eq!(got.segments[0].segment.payload_len, 180_000);
    assert_eq!(got.segments[0].segment.network.length, 180_052);
    let frame = ethernet(0x86DD, &ipv6_of(6, &tcp(1, 30), 0));
    let got = read(&pcap_cut(1, &[(&frame, 14 + 40 + 32 + 180_000)]));
    assert_eq!(got.segments[0].segment.payload_len, 180_000);
    let length = (8 + 32 + 100_000_u32).to_be_bytes();
    let jumbo = join(&[&[6, 0, 0xC2, 4], &length, &tcp(1, 30)]);
    assert_eq!(carried(&ipv6_of(0, &jumbo, 0)).payload_len, 100_000);
}

#[test]
fn what_the_capture_cut_keeps_its_length() {
    let frame = ethernet(0x0800, &ipv4(6, &tcp(1, 1400)));
    for cut in [14 + 20 + 16, 14 + 20 + 20, 14 + 20 + 25, 14 + 20 + 32, 300] {
        let got = read(&pcap_cut(1, &[(&frame[..cut], frame.len())]));
        let kept = &got.segments[0];
        assert_eq!((kept.segment.payload_len, kept.segment.network.length), (1400, 1452), "cut at {cut}");
        assert_eq!(kept.segment.options_cut, cut < 14 + 20 + 32);
        assert_eq!(kept.options.len(), cut.saturating_sub(54).min(12));
    }
    for cut in 0..14 + 20 + 16 {
        let got = read(&pcap_cut(1, &[(&frame[..cut], frame.len())]));
        assert_eq!(got.segments, []);
        assert_eq!(got.problems[0].kind, ProblemKind::HeadersCut, "cut at {cut}");
    }
}

#[test]
fn headers_that_contradict_themselves_are_problems() {
    let kind = |packet: &[u8]| {
        let got = read(&pcap(101, &[packet]));
        assert_eq!(got.segments, []);
        got.problems[0].kind
    };
    let good = ipv4(6, &tcp(1, 9));
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        bad
    };
    assert_eq!(kind(&with(0, 0x44)), ProblemKind::BadIp);
    assert_eq!(kind(&with(0, 0x95)), ProblemKind::BadIp);
    assert_eq!(kind(&with(3, 19)), ProblemKind::BadIp);
    assert_eq!(kind(&with(32, 0x40)), ProblemKind::BadTcp);
    assert_eq!(kind(&with(3, 40)), ProblemKind::BadTcp);
}

fn inner() -> Vec<u8> {
    ipv4(6, &tcp(77, 3))
}

/// Both directions of one tunnel (the outer addresses exchanged) have one digest, whatever key each of them has.
fn tunnel(build: impl Fn(u8) -> Vec<u8>) {
    let there = carried(&build(1));
    let mut exchanged = build(1);
    let (from, to): (Vec<u8>, Vec<u8>) = (exchanged[12..16].to_vec(), exchanged[16..20].to_vec());
    exchanged[12..16].copy_from_slice(&to);
    exchanged[16..20].copy_from_slice(&from);
    assert_eq!((there.seq, there.payload_len), (SeqNum::new(77), 3));
    assert_ne!(there.flow.outer, 0);
    assert_eq!(there.flow.outer, carried(&exchanged).flow.outer);
    assert_eq!(there.flow.outer, carried(&build(2)).flow.outer);
}

#[test]
fn tunnels_are_entered() {
    tunnel(|_| ipv4(4, &inner()));
    tunnel(|_| ipv4(41, &ipv6(6, &tcp(77, 3))));
    tunnel(|_| ipv4(47, &join(&[&[0, 0, 8, 0], &inner()])));
    tunnel(|key| ipv4(47, &join(&[&[0xB0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, key, 0, 0, 0, 1], &inner()])));
    // A virtual switch's mirrored ports send what comes in with one key, and what goes out with another.
    tunnel(|way| ipv4(47, &join(&[&[0x20, 0, 0x65, 0x58, way, 0, 0, 0], &ethernet(0x0800, &inner())])));
    let erspan = join(&[&[0x10, 0, 0x88, 0xBE, 0, 0, 0, 1], &[0; 8], &ethernet(0x0800, &inner())]);
    tunnel(|_| ipv4(47, &erspan));
    let erspan_3 = join(&[&[0x10, 0, 0x22, 0xEB, 0, 0, 0, 1], &[0; 12], &ethernet(0x0800, &inner())]);
    tunnel(|_| ipv4(47, &erspan_3));
    let wireless = [&[0x88, 1][..], &[7; 20], &[0x30, 0, 0, 0, 0xAA, 0xAA, 3, 0, 0, 0, 8, 0], &inner()].concat();
    tunnel(|_| ipv4(47, &join(&[&[0, 0, 0x82, 0x40], &wireless])));
    // Web caches.
    tunnel(|_| ipv4(47, &join(&[&[0, 0, 0x88, 0x3E], &inner()])));
    tunnel(|_| ipv4(47, &join(&[&[0, 0, 0x88, 0x3E, 0, 0, 0, 1], &inner()])));
    tunnel(|_| ipv4(17, &udp(4754, &join(&[&[0, 0, 8, 0], &inner()]))));
    let pptp = join(&[&[0x30, 0x81, 0x88, 0x0B, 0, 50, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0xFF, 3, 0, 0x21], &inner()]);
    tunnel(|_| ipv4(47, &pptp));
    tunnel(|_| ipv4(97, &join(&[&[0x30, 0], &ethernet(0x0800, &inner())])));
    tunnel(|_| ipv4(137, &join(&[&[0, 1, 1, 64], &inner()])));
    tunnel(|_| ipv4(143, &ethernet(0x0800, &inner())));
}

#[test]
fn tunnels_over_udp_are_entered() {
    let vxlan = |key| join(&[&[8, 0, 0, 0, 0, 0, key, 0], &ethernet(0x0800, &inner())]);
    for port in [4789, 8472, 4790] {
        tunnel(|key| ipv4(17, &udp(port, &vxlan(key))));
    }
    tunnel(|key| ipv4(17, &udp(4790, &join(&[&[0x0C, 0, 0, 1, 0, 0, key, 0], &inner()]))));
    tunnel(|key| ipv4(17, &udp(6081, &join(&[&[1, 0, 8, 0, 0, 0, key, 0, 9, 9, 9, 0], &inner()]))));
    let bridged = |key| join(&[&[0, 0, 0x65, 0x58, 0, 0, key, 0], &ethernet(0x0800, &inner())]);
    tunnel(|key| ipv4(17, &udp(6081, &bridged(key))));
    tunnel(|end| ipv4(17, &udp(2152, &join(&[&[0x30, 255, 0, 55, 0, 0, 0, end], &inner()]))));
    let extended = [0x34, 255, 0, 63, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 1, 0];
    tunnel(|_| ipv4(17, &udp(2152, &join(&[&extended, &inner()]))));
    // A router's copies of both directions come from one port to one port; padding, a field of two bytes, and the end.
    let sniffed = [1, 0, 0, 1, 0, 13, 2, 7, 7, 1];
    tunnel(|_| ipv4(17, &udp(37_008, &join(&[&sniffed, &ethernet(0x0800, &inner())]))));
    // To a controller, as Cisco's access points write it: the control fields' bytes exchanged. Then in Ethernet.
    let mut frame = [&[0x11, 0x08][..], &[7; 20], &[0x76, 0x30, 0xAA, 0xAA, 3, 0, 0, 0, 8, 0]].concat();
    let wireless = [0, 0x20, 3, 0x20, 0, 0, 0, 0, 4, 0xBF, 0x23, 0, 0, 0, 0, 0];
    for control in [[0x11, 0x08], [0x08, 0x11]] {
        frame[..2].copy_from_slice(&control);
        frame[22..24].copy_from_slice(if control[0] == 0x08 { &[0x30, 0x76] } else { &[0x76, 0x30] });
        tunnel(|_| ipv4(17, &udp(5247, &join(&[&wireless, &frame, &inner()]))));
    }
    tunnel(|_| ipv4(17, &udp(5247, &join(&[&[0, 0x10, 2, 0, 0, 0, 0, 0], &ethernet(0x0800, &inner())]))));
    tunnel(|_| ipv4(17, &udp(6635, &join(&[&[0, 1, 1, 64], &inner()]))));
    // IPv6 around, and IPv4 in IPv6.
    let around = ipv6(17, &udp(4789, &vxlan(1)));
    assert_eq!(carried(&around).seq, SeqNum::new(77));
    assert_eq!(carried(&ipv6(4, &inner())).seq, SeqNum::new(77));
}

#[test]
fn tunnels_without_end_end() {
    let mut packet = ipv4(6, &tcp(1, 1));
    for _ in 0..40 {
        packet = ipv4(4, &packet);
    }
    assert_eq!(read(&pcap(101, &[&packet])).problems[0].kind, ProblemKind::TooDeep);
    let tags: Vec<u8> = [0, 1, 0x81, 0].repeat(100);
    assert_eq!(read(&pcap(1, &[&ethernet(0x8100, &tags)])).problems[0].kind, ProblemKind::TooDeep);
    let labels: Vec<u8> = [0, 1, 0, 64].repeat(100);
    assert_eq!(read(&pcap(1, &[&ethernet(0x8847, &labels)])).problems[0].kind, ProblemKind::TooDeep);
}

/// A segment of 32 + 3000 bytes in three fragments.
fn fragments() -> [Vec<u8>; 3] {
    let whole = tcp(55, 3000);
    let part = |at: usize, end: usize, more: u16| ipv4_part(6, &whole[at..end], more | (at / 8) as u16, 20 + end - at);
    [part(0, 1480, 0x2000), part(1480, 2960, 0x2000), part(2960, 3032, 0)]
}

#[test]
fn fragments_in_any_order_make_one_segment() {
    let parts = fragments();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let got = read(&pcap(101, &order.map(|at| &parts[at][..])));
        assert_eq!((got.segments.len(), &got.problems[..]), (1, &[][..]), "{order:?}");
        let kept = &got.segments[0];
        assert_eq!((kept.segment.number, kept.segment.seq), (3, SeqNum::new(55)));
        assert_eq!((kept.segment.payload_len, kept.segment.network.length), (3000, 3052));
        assert_eq!(kept.options.len(), 12);
        assert_eq!(got.totals.segments, 1);
    }
}

#[test]
fn fragments_of_ipv6_make_one_segment() {
    let whole = tcp(55, 2000);
    let first = ipv6(44, &join(&[&[6, 0, 0, 1, 0, 0, 0, 9], &whole[..1232]]));
    let last = ipv6(44, &join(&[&[6, 0, 0x04, 0xD0, 0, 0, 0, 9], &whole[1232..]]));
    let got = read(&pcap(101, &[&first, &last]));
    assert_eq!(got.segments[0].segment.payload_len, 2000);
    let atomic = ipv6(44, &join(&[&[6, 0, 0, 0, 0, 0, 0, 9], &whole]));
    assert_eq!(carried(&atomic).payload_len, 2000);
}

#[test]
fn fragments_that_never_come_are_a_problem_and_the_segment_is_kept() {
    let [first, _, last] = fragments();
    let got = read(&pcap(101, &[&first]));
    assert_eq!(got.segments[0].segment.payload_len, 1448);
    assert_eq!(got.problems[0].kind, ProblemKind::FragmentsMissing);
    let got = read(&pcap(101, &[&first, &last]));
    assert_eq!(got.segments[0].segment.payload_len, 3000, "the last one gave the length");
    // Others, two seconds later: the first ones are given out before them.
    let mut other = first.clone();
    other[4] = 9;
    let got = read(&pcap(101, &[&first, &ipv4(6, &tcp(1, 1)), &other]));
    let numbers: Vec<_> = got.segments.iter().map(|kept| kept.segment.number).collect();
    assert_eq!(numbers, [2, 1, 3]);
}

#[test]
fn a_flood_of_first_fragments_is_held_in_bounded_memory() {
    let [first, ..] = fragments();
    let packets: Vec<Vec<u8>> = (0..2000_u16)
        .map(|id| {
            let mut packet = first.clone();
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            packet
        })
        .collect();
    let packets: Vec<&[u8]> = packets.iter().map(|packet| &packet[..]).collect();
    let got = read(&pcap(101, &packets));
    assert_eq!(got.segments.len(), 2000);
    assert_eq!(got.problems.len(), 10, "only so many are listed");
}

#[test]
fn messages_about_packets_that_were_too_big_are_counted() {
    let end = |address: &str, port| Endpoint { address: address.parse::<std::net::IpAddr>().unwrap().into(), port };
    let quoted = ipv4(6, &tcp(900, 1400));
    let icmp = ipv4(1, &join(&[&[3, 4, 0, 0, 0, 0, 5, 0x14], &quoted[..28]]));
    let zero = ipv4(1, &join(&[&[3, 4, 0, 0, 0, 0, 0, 0], &quoted[..28]]));
    let unreachable = ipv4(1, &join(&[&[3, 1, 0, 0, 0, 0, 0, 0], &quoted[..28]]));
    let quoted = ipv6(6, &tcp(901, 1400));
    let icmpv6 = ipv6(58, &join(&[&[2, 0, 0, 0, 0, 0, 5, 0], &quoted[..60]]));
    let got = read(&pcap(101, &[&icmp, &zero, &unreachable, &icmpv6]));
    assert_eq!(got.problems, []);
    let notices: Vec<_> = got.too_big.iter().map(|notice| (notice.number, notice.seq.get(), notice.mtu)).collect();
    assert_eq!(notices, [(1, 900, Some(1300)), (2, 900, None), (4, 901, Some(1280))]);
    let about = Flow { from: end("10.0.0.1", 1000), to: end("10.0.0.2", 80), outer: 0 };
    assert_eq!(got.too_big[0].about, about);
    assert_eq!(got.too_big[2].about.from, end("2001:db8::1", 1000));
}
