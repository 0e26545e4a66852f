//! Both probes over loopback, with nothing between the two ends but what they know of each other.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::AtomicBool,
    time::Duration,
};

use fullpipe_probe::{
    mtu::{self, FarEnd},
    train::{self, Prober},
};

const RTT: Duration = Duration::from_millis(1);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Two sockets that are connected to each other.
fn pair() -> (UdpSocket, UdpSocket) {
    let (near, far) = (UdpSocket::bind((HERE, 0)).unwrap(), UdpSocket::bind((HERE, 0)).unwrap());
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    (near, far)
}

#[test]
fn the_path_mtu_of_loopback_is_the_same_both_ways_and_no_black_hole() {
    let responder = mtu::Responder::start(HERE, SocketAddr::new(HERE, 0)).unwrap();
    let far =
        FarEnd { address: SocketAddr::new(HERE, responder.port()), token: responder.token(), mtu: responder.mtu() };
    let report = mtu::probe(HERE, far, RTT).unwrap();
    assert!(report.up.mtu.is_some_and(|mtu| mtu >= 1_280), "{report:?}");
    assert_eq!((report.up.mtu, report.up.black_hole), (report.down.mtu, false), "{report:?}");
}

#[test]
fn a_responder_answers_only_who_knows_its_token() {
    let responder = mtu::Responder::start(HERE, SocketAddr::new(HERE, 0)).unwrap();
    let address = SocketAddr::new(HERE, responder.port());
    let stranger = FarEnd { address, token: !responder.token(), mtu: Some(1_500) };
    let report = mtu::probe(HERE, stranger, RTT).unwrap();
    assert_eq!((report.up.mtu, report.down.mtu), (None, None));
    let (near, far) = pair();
    let _responder = train::Responder::start(far, [1; 8], None).unwrap();
    let measured = Prober::new(near, [2; 8], RTT).unwrap().towards(&AtomicBool::new(false)).unwrap();
    assert_eq!((measured.available.available_bps, measured.cancelled), (None, false));
    assert!(measured.available.trains > 0 && measured.available.lost == measured.available.datagrams);
}

#[test]
fn trains_find_a_rate_each_way_until_they_are_stopped() {
    let (near, far) = pair();
    let _responder = train::Responder::start(far, [1; 8], None).unwrap();
    let mut prober = Prober::new(near, [1; 8], RTT).unwrap();
    let never = AtomicBool::new(false);
    for measured in [prober.towards(&never).unwrap(), prober.from_there(&never).unwrap()] {
        assert!(measured.available.available_bps.is_some() && !measured.cancelled, "{measured:?}");
    }
    let stopped = prober.towards(&AtomicBool::new(true)).unwrap();
    assert_eq!((stopped.available.trains, stopped.cancelled), (0, true));
}
