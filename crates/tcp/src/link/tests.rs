//! Neighbours that answer, move, forge and flood.

use std::{vec, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::{
    SecretKey,
    profile::Profile,
    socket::{Endpoint, SocketOptions},
    stack::{Config, Device, Stack, StackMemory},
};

const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PEER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const FORGER: Mac = Mac([2, 0, 0, 0, 0, 9]);
const V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);

fn v6(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)
}

type TestLink = Link<4>;
type TestStack = Stack<StackMemory<4, 16>>;

fn link() -> TestLink {
    let prefixes =
        [Some(Prefix { addr: V4.into(), bits: 24 }), Some(Prefix { addr: v6(1).into(), bits: 64 }), None, None];
    Link::new(LinkSetup { mac: OWN, prefixes, gateway_v4: Some(GATEWAY), gateway_v6: None })
}

fn stack() -> TestStack {
    let mut config = Config::new(V4.into(), Device::plain(1500), SecretKey([7; 16]));
    config.addresses[1] = Some(v6(1).into());
    Stack::new(StackMemory::new(), config)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
}

/// Opens a connection and offers its SYN to the link: the header it got.
fn syn_to(link: &mut TestLink, stack: &mut TestStack, now: Instant, peer: IpAddr) -> Option<[u8; HEADER]> {
    stack.connect(now, None, Endpoint::new(peer, 80), SocketOptions::from_profile(&Profile::DEFAULT)).unwrap();
    let packet = stack.poll_transmit(now).unwrap();
    link.send(now, &packet)
}

fn frame(dst: Mac, src: Mac, ether_type: u16, body: &[u8]) -> Vec<u8> {
    [&ethernet::header(dst, src, ether_type)[..], body].concat()
}

fn arp_frame(dst: Mac, message: arp::Message) -> Vec<u8> {
    let mut body = [0; 46]; // with Ethernet's padding
    message.write(&mut body);
    frame(dst, message.sender_mac, ethernet::ARP, &body)
}

fn reply(mac: Mac) -> Vec<u8> {
    let operation = arp::Operation::Reply;
    arp_frame(OWN, arp::Message { operation, sender_mac: mac, sender: PEER_V4, target_mac: OWN, target: V4 })
}

fn request(mac: Mac, sender: Ipv4Addr) -> Vec<u8> {
    let (operation, target_mac) = (arp::Operation::Request, Mac::default());
    arp_frame(Mac::BROADCAST, arp::Message { operation, sender_mac: mac, sender, target_mac, target: V4 })
}

fn parsed(bytes: &[u8]) -> (Mac, arp::Message) {
    let frame = Frame::parse(bytes).unwrap();
    assert_eq!((frame.src, frame.ether_type), (OWN, ethernet::ARP));
    (frame.dst, arp::Message::parse(frame.payload).unwrap())
}

#[test]
fn a_packet_waits_until_its_neighbour_answers() {
    let (mut link, mut stack) = (link(), stack());
    assert_eq!(syn_to(&mut link, &mut stack, at(0), PEER_V4.into()), None);
    let (dst, question) = parsed(link.poll_transmit().unwrap());
    assert_eq!((dst, question.operation), (Mac::BROADCAST, arp::Operation::Request));
    assert_eq!((question.sender, question.sender_mac, question.target), (V4, OWN, PEER_V4));
    assert!(link.poll_transmit().is_none());
    assert_eq!(link.on_frame(at(1), &reply(PEER)), Ok(None));
    let sent = link.poll_transmit().unwrap().to_vec();
    let sent = Frame::parse(&sent).unwrap();
    assert_eq!((sent.dst, sent.src, sent.ether_type), (PEER, OWN, ethernet::IPV4));
    let packet = Packet::parse(sent.payload).unwrap();
    assert_eq!(packet.dst, IpAddr::V4(PEER_V4));
    assert!(crate::wire::tcp::Segment::parse(&packet, false).is_ok(), "the checksum is complete");
    assert!(link.poll_transmit().is_none());
    assert!(syn_to(&mut link, &mut stack, at(2), PEER_V4.into()).is_some(), "the next one goes at once");
}

#[test]
fn what_is_beyond_the_link_goes_to_the_gateway() {
    let (mut link, mut stack) = (link(), stack());
    syn_to(&mut link, &mut stack, at(0), Ipv4Addr::new(198, 51, 100, 7).into());
    assert_eq!(parsed(link.poll_transmit().unwrap()).1.target, GATEWAY);
    assert_eq!(syn_to(&mut link, &mut stack, at(0), Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7).into()), None);
    assert_eq!(link.counts().unsent, 1, "there is no IPv6 gateway");
}

#[test]
fn who_does_not_answer_is_asked_three_times_a_second_apart() {
    let (mut link, mut stack) = (link(), stack());
    syn_to(&mut link, &mut stack, at(0), PEER_V4.into());
    let mut asked = Vec::new();
    let mut now = at(0);
    loop {
        while link.poll_transmit().is_some() {
            asked.push(now.as_nanos() / 1_000_000_000);
        }
        let Some(next) = link.next_timeout() else { break };
        now = next;
        link.on_timeout(now);
    }
    assert_eq!(asked, [1, 2, 3]);
    assert_eq!(link.counts().unreachable, 1);
    assert_eq!(link.on_frame(now, &reply(PEER)), Ok(None));
    assert_eq!(link.neighbour(PEER_V4.into()), None, "nobody asks any more");
}

#[test]
fn whoever_asks_for_this_host_is_answered_and_remembered() {
    let mut link = link();
    assert_eq!(link.on_frame(at(0), &request(PEER, PEER_V4)), Ok(None));
    let (dst, answer) = parsed(link.poll_transmit().unwrap());
    assert_eq!((dst, answer.operation), (PEER, arp::Operation::Reply));
    assert_eq!((answer.sender, answer.sender_mac, answer.target, answer.target_mac), (V4, OWN, PEER_V4, PEER));
    assert_eq!(link.neighbour(PEER_V4.into()), Some(PEER));
    // A probe asks for nobody (RFC 5227): it is answered, and there is nothing to remember.
    link.on_frame(at(1), &request(FORGER, Ipv4Addr::UNSPECIFIED)).unwrap();
    assert_eq!(parsed(link.poll_transmit().unwrap()).1.target_mac, FORGER);
    assert_eq!(link.neighbour(Ipv4Addr::UNSPECIFIED.into()), None);
}

#[test]
fn an_unasked_reply_replaces_nobody_who_works() {
    let (mut link, mut stack) = (link(), stack());
    syn_to(&mut link, &mut stack, at(0), PEER_V4.into());
    link.on_frame(at(1), &reply(PEER)).unwrap();
    for forged in [reply(FORGER), request(FORGER, PEER_V4)] {
        link.on_frame(at(2), &forged).unwrap();
        assert_eq!(link.neighbour(PEER_V4.into()), Some(PEER));
    }
    assert_eq!(link.counts().ignored, 2);
    // Once stale, the known one is asked itself, and its answer counts.
    link.on_timeout(at(31_000));
    while link.poll_transmit().is_some() {}
    link.on_frame(at(31_001), &reply(FORGER)).unwrap();
    assert_eq!(parsed(link.poll_transmit().unwrap()).0, PEER, "asked directly");
    link.on_frame(at(31_002), &reply(PEER)).unwrap();
    assert_eq!(link.neighbour(PEER_V4.into()), Some(PEER));
}

#[test]
fn a_neighbour_that_moved_is_found_again() {
    let (mut link, mut stack) = (link(), stack());
    syn_to(&mut link, &mut stack, at(0), PEER_V4.into());
    link.on_frame(at(1), &reply(PEER)).unwrap();
    link.on_timeout(at(31_000));
    assert!(syn_to(&mut link, &mut stack, at(31_000), PEER_V4.into()).is_some(), "stale is used");
    link.on_timeout(at(36_001));
    while link.poll_transmit().is_some() {}
    link.on_frame(at(36_002), &reply(FORGER)).unwrap();
    assert_eq!(link.neighbour(PEER_V4.into()), Some(FORGER), "it answered the question");
}

#[test]
fn a_flood_of_strangers_displaces_nobody() {
    let (mut link, mut stack) = (link(), stack());
    syn_to(&mut link, &mut stack, at(0), PEER_V4.into());
    link.on_frame(at(1), &reply(PEER)).unwrap();
    for last in 10..250 {
        link.on_frame(at(2), &request(FORGER, Ipv4Addr::new(192, 0, 2, last))).unwrap();
    }
    assert_eq!(link.neighbour(PEER_V4.into()), Some(PEER));
    assert_eq!(link.counts().unanswered, 240 - ANSWERS as u32);
    // Who is wanted takes the place of who only asked.
    assert_eq!(syn_to(&mut link, &mut stack, at(3), GATEWAY.into()), None);
    link.poll_transmit().unwrap();
    assert_eq!(link.neighbour(PEER_V4.into()), Some(PEER));
}

#[test]
fn ipv6_asks_the_group_and_answers_it() {
    let (mut link, mut stack) = (link(), stack());
    assert_eq!(syn_to(&mut link, &mut stack, at(0), v6(2).into()), None);
    let question = link.poll_transmit().unwrap().to_vec();
    let question = Frame::parse(&question).unwrap();
    assert_eq!(question.dst, Mac([0x33, 0x33, 0xff, 0, 0, 2]));
    let packet = Packet::parse(question.payload).unwrap();
    assert_eq!(ndp::Message::parse(&packet), Ok(Some(ndp::Message::Solicitation { target: v6(2), mac: Some(OWN) })));
    let mut body = [0; ndp::LEN];
    let answer = ndp::Message::Advertisement { target: v6(2), mac: Some(PEER), solicited: true, replaces: true };
    answer.write(&mut body, v6(2), v6(1));
    assert_eq!(link.on_frame(at(1), &frame(OWN, PEER, ethernet::IPV6, &body)), Ok(None));
    assert_eq!(Frame::parse(link.poll_transmit().unwrap()).unwrap().dst, PEER);
    // The peer looks for duplicates of this host's address.
    let probe = ndp::Message::Solicitation { target: v6(1), mac: None };
    let group = ndp::solicited_node(v6(1));
    let len = probe.write(&mut body, Ipv6Addr::UNSPECIFIED, group);
    link.on_frame(at(2), &frame(Mac::of_group(group), FORGER, ethernet::IPV6, &body[..len])).unwrap();
    let announced = link.poll_transmit().unwrap().to_vec();
    let packet = Packet::parse(Frame::parse(&announced).unwrap().payload).unwrap();
    assert_eq!(packet.dst, IpAddr::V6(ALL_NODES));
    let Ok(Some(ndp::Message::Advertisement { target, solicited, .. })) = ndp::Message::parse(&packet) else {
        panic!("no advertisement")
    };
    assert_eq!((target, solicited), (v6(1), false));
}

#[test]
fn messages_from_beyond_the_link_are_refused() {
    let mut body = [0; ndp::LEN];
    ndp::Message::Solicitation { target: v6(1), mac: Some(PEER) }.write(&mut body, v6(2), v6(1));
    body[7] = 254; // a router has forwarded it
    let forwarded = frame(OWN, PEER, ethernet::IPV6, &body);
    let refused = link().on_frame(at(0), &forwarded);
    assert_eq!(refused, Err(DroppedFrame::Malformed(Malformed::Header)));
}

#[test]
fn packets_for_others_and_for_everybody_do_not_reach_the_stack() {
    let mut link = link();
    let body = [0x45; 40];
    let get =
        |link: &mut TestLink, dst| link.on_frame(at(0), &frame(dst, PEER, ethernet::IPV4, &body)).map(|p| p.is_some());
    assert_eq!(get(&mut link, OWN), Ok(true));
    assert_eq!(get(&mut link, FORGER), Err(DroppedFrame::Address));
    assert_eq!(get(&mut link, Mac::BROADCAST), Err(DroppedFrame::Address));
    assert_eq!(link.counts().dropped, 2);
}

proptest! {
    #[test]
    fn any_frame_is_taken_or_dropped(kind in 0_u8..4, mut data: Vec<u8>, ms in 0_u64..100_000) {
        let mut link = link();
        let mut stack = stack();
        syn_to(&mut link, &mut stack, at(0), PEER_V4.into());
        let ether_type = [ethernet::ARP, ethernet::IPV4, ethernet::IPV6, 1][usize::from(kind)];
        if kind == 0 {
            data.splice(0..0, vec![0, 1, 8, 0, 6, 4, 0, 2]);
        }
        let _taken_or_dropped = link.on_frame(at(ms), &data).is_ok();
        let _taken_or_dropped = link.on_frame(at(ms), &frame(OWN, PEER, ether_type, &data)).is_ok();
        link.on_timeout(at(ms + 1));
        // Bounded, whatever came: answers, questions and packets that waited.
        let frames = core::iter::from_fn(|| link.poll_transmit().map(<[u8]>::len)).take(20).count();
        prop_assert!(frames < 20);
    }
}
