//! A path MTU below the device's, announced or not.

use std::{io::Write, net::UdpSocket};

use fullpipe_lab::{Lab, Side};
use fullpipe_path::{Direction, HopSpec, IpVersions, MtuSpec, OversizeVerdict, PathHop};
use fullpipe_units::Micros;

use super::{address_of, bounded, connect, eventually, lab, listen, path, read_all, turn, udp};

/// Two hops, the second of which passes 1400 bytes.
fn narrow(oversize: OversizeVerdict) -> Lab {
    let wire = HopSpec { delay: Micros::from_millis(2), ..HopSpec::default() };
    let mut spec = path(wire.clone(), IpVersions::Both);
    let mtu = Some(MtuSpec { bytes: 1_400, oversize });
    spec.hops.push(PathHop { name: None, ab: HopSpec { mtu, ..wire.clone() }, ba: HopSpec { mtu, ..wire } });
    lab(&spec)
}

fn dont_fragment(socket: &UdpSocket) {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
    set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE).unwrap();
}

#[test]
fn a_black_hole_swallows_what_is_too_large_and_says_nothing() {
    let Some(_turn) = turn("a_black_hole_swallows_what_is_too_large_and_says_nothing") else { return };
    let lab = narrow(OversizeVerdict::Silent);
    let (from, to) = (udp(&lab, Side::A, false), udp(&lab, Side::B, false));
    dont_fragment(&from);
    let address = address_of(&lab, Side::B, false);
    // 28 bytes of IPv4 and UDP header: the first is 1400 bytes long, the others are larger.
    for payload in [1_372, 1_373, 1_472] {
        from.send_to(&vec![0; payload], address).unwrap();
    }
    let mut buffer = [0; 2_000];
    assert_eq!(to.recv(&mut buffer).unwrap(), 1_372);
    assert!(to.recv(&mut buffer).is_err(), "a packet larger than the path's MTU came through");
    assert_eq!(lab.path_stats(Direction::AToB)[1].black_holed, 2);
    // Nothing came back, neither as an error nor as a smaller path MTU.
    from.send_to(&[0; 1_472], address).unwrap();
}

#[test]
fn a_connection_learns_the_path_mtu_from_the_router() {
    let Some(_turn) = turn("a_connection_learns_the_path_mtu_from_the_router") else { return };
    let lab = narrow(OversizeVerdict::TooBig);
    for v6 in [false, true] {
        let address = address_of(&lab, Side::B, v6);
        let reader = read_all(&lab, listen(&lab, address));
        let mut stream = bounded(connect(&lab, address));
        assert_eq!(path_mtu(&stream, v6), 1_500);
        let sent: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        stream.write_all(&sent).unwrap();
        assert!(eventually(|| path_mtu(&stream, v6) == 1_400), "v6 {v6}: path MTU {}", path_mtu(&stream, v6));
        drop(stream);
        assert!(reader.join().unwrap().unwrap() == sent, "v6 {v6}: other bytes came out than went in");
    }
    assert!(lab.path_stats(Direction::AToB)[1].too_big > 0);
}

/// `tcpi_pmtu` is what these report for a connected socket.
fn path_mtu(stream: &std::net::TcpStream, v6: bool) -> u32 {
    use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
    if v6 { ipv6_mtu(stream).unwrap() } else { ip_mtu(stream).unwrap() }
}
