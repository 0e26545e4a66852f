//! Segments in UDP datagrams, as FreeBSD sends them.

use std::num::NonZeroU16;

use fullpipe_pair::{Flow, Link, Net, config, open, transfer};
use fullpipe_tcp::{
    heap::HeapStorage,
    profile::{Budgets, Profile},
    socket::SocketOptions,
    stack::{Device, Stack},
    wire::ip::{Addresses, Packet},
};

const UDP: u8 = 17;
const PORTS: [u16; 2] = [9_811, 7_811];
const RST: u8 = 4;

fn pair(seed: u64, link: Link, v6: bool, device: Device) -> (Net, [SocketOptions; 2]) {
    let profile = Profile::FREEBSD;
    let host = |at: usize| {
        let mut config = config(at as u8, v6, 1_500, profile);
        (config.udp_port, config.device) = (NonZeroU16::new(PORTS[at]), device);
        Stack::new(HeapStorage::new(4, 256, 1_548), config)
    };
    let net = Net::new(seed, [link; 2], [host(0), host(1)]);
    let options = |at: usize| SocketOptions {
        budgets: Budgets::all(40),
        udp_port: NonZeroU16::new(PORTS[1 - at]),
        ..SocketOptions::from_profile(&profile)
    };
    (net, [options(0), options(1)])
}

fn is_udp(_: u64, _: usize, bytes: &[u8]) {
    assert_eq!(Packet::parse(bytes).map(|packet| packet.protocol), Ok(UDP));
    assert!(bytes.len() <= 1_500, "8 bytes less than without");
}

#[test]
fn a_transfer_arrives_whole() {
    for (seed, v6) in [(1, false), (2, true), (3, false), (4, true)] {
        let splits = Device { mtu: 1_500, checksum_offload: true, burst: 65_000 };
        let device = if seed > 2 { splits } else { Device::plain(1_500) };
        let link = Link { loss: 20_000, reorder: 20_000, duplicate: 10_000, ..Link::clean(5_000) };
        let (mut net, options) = pair(seed, link, v6, device);
        net.trace = Some(is_udp);
        let ends = open(&mut net, v6, options);
        transfer(&mut net, ends, &mut [Flow::new(1, 300_000), Flow::new(2, 100_000)]);
    }
}

#[test]
fn another_port_is_another_connection() {
    let (mut net, options) = pair(7, Link::clean(1_000), false, Device::plain(1_500));
    let ends = open(&mut net, false, options);
    let (_, mut bytes) = net.recorded.iter().rev().find(|(to, _)| *to == 1).unwrap().clone();
    bytes[20..22].copy_from_slice(&1_u16.to_be_bytes());
    bytes[26..28].fill(0);
    let packet = Packet::parse(&bytes).unwrap();
    let sum = Addresses { src: packet.src, dst: packet.dst }.pseudo_header(UDP, packet.payload.len() as u32);
    let sum = sum.bytes(packet.payload).finish();
    bytes[26..28].copy_from_slice(&sum.to_be_bytes());
    net.inject(1, &bytes);
    let (to, answer) = net.recorded.last().unwrap();
    let udp = Packet::parse(answer).unwrap().payload;
    assert_eq!((*to, &udp[..4], udp[8 + 13] & RST), (0, &[0x1e, 0x83, 0, 1][..], RST), "a reset by the way it came");
    // Nobody takes that; the connection lives.
    net.cut();
    transfer(&mut net, ends, &mut [Flow::new(1, 10_000), Flow::new(2, 10_000)]);
}
