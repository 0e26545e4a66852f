//! Ethernet: frames of any bytes into a link whose stack wants to reach somebody.

use fullpipe_pair::{addr, config};
use fullpipe_tcp::{
    heap::HeapStorage,
    link::{Link, LinkSetup, Prefix},
    profile::Profile,
    socket::{Endpoint, SocketOptions},
    stack::Stack,
    wire::{
        arp,
        ethernet::{self, Mac},
        ip, ndp,
    },
};
use fullpipe_units::Instant;

const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
/// Answers, questions and packets that wait are bounded: four answers and three kinds for each of four neighbours.
const MOST: usize = 16;

/// Frames, each a byte that says what is made of it (1: it is for this station; 2: 5 s pass first; the next two bits: as it
/// is, an ARP message, an IPv6 packet, an IPv4 packet), a byte of length, and the bytes.
pub fn frames(data: &[u8]) {
    let Some((pick, mut rest)) = data.split_first() else { return };
    let v6 = pick & 1 != 0;
    let mut link: Link<4> = Link::new(LinkSetup {
        mac: OWN,
        prefixes: [Some(Prefix { addr: addr(v6, 1), bits: pick >> 1 }), None, None, None],
        gateway_v4: None,
        gateway_v6: None,
    });
    let mut stack = Stack::new(HeapStorage::new(2, 8, 1548), config(1, v6, 1500, Profile::DEFAULT));
    let mut now = Instant::from_nanos(1_000_000_000);
    let _in_the_end_it_gives_up =
        stack.connect(now, None, Endpoint::new(addr(v6, 2), 1_024), SocketOptions::from_profile(&Profile::DEFAULT));
    while let [how, len, tail @ ..] = rest {
        let (body, next) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = next;
        if how & 2 != 0 {
            now = Instant::from_nanos(now.as_nanos() + 5_000_000_000);
        }
        let frame = made(*how, body);
        if let Ok(Some(packet)) = link.on_frame(now, &frame) {
            let _taken_or_dropped = stack.on_packet(now, packet, false);
        }
        stack.on_timeout(now);
        link.on_timeout(now);
        while let Some(packet) = stack.poll_transmit(now) {
            let _sent_or_held = link.send(now, &packet);
        }
        let mut sent = 0;
        while let Some(frame) = link.poll_transmit() {
            // No question where this host has no address of that kind.
            assert!(frame.is_empty() || frame[6..12] == OWN.0, "a frame from somebody else");
            sent += 1;
            assert!(sent <= MOST, "frames without end");
        }
        assert!(link.next_timeout().is_none_or(|due| due > now), "a timer that stands still");
    }
}

fn made(how: u8, body: &[u8]) -> Vec<u8> {
    if how >> 2 & 3 == 0 {
        return body.to_vec();
    }
    let (ether_type, mut packet) = match how >> 2 & 3 {
        1 => (ethernet::ARP, [&[0, 1, 8, 0, 6, 4, 0][..], body].concat()),
        2 => (ethernet::IPV6, body.to_vec()),
        _ => (ethernet::IPV4, body.to_vec()),
    };
    packet.resize(packet.len().max(if ether_type == ethernet::ARP { arp::LEN } else { 0 }), 0);
    if ether_type == ethernet::IPV6 && packet.len() >= ndp::LEN {
        // So that the options are reached: the checksum and what must stand around it.
        let len = packet.len() - 40;
        (packet[0], packet[6], packet[7], packet[42], packet[43]) = (0x60, ip::ICMPV6, 255, 0, 0);
        packet[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        if let Ok(parsed) = ip::Packet::parse(&packet) {
            let addresses = ip::Addresses { src: parsed.src, dst: parsed.dst };
            let sum = addresses.pseudo_header(ip::ICMPV6, len as u32).bytes(parsed.payload).finish();
            packet[42..44].copy_from_slice(&sum.to_be_bytes());
        }
    }
    let dst = if how & 1 != 0 { OWN } else { Mac::BROADCAST };
    [&ethernet::header(dst, Mac([2, 0, 0, 0, 0, how >> 4]), ether_type)[..], &packet].concat()
}
