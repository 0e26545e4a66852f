//! Links, addresses and routes on the real kernel, in a namespace of the test's own.
#![cfg(target_os = "linux")]

mod namespace;

use std::net::IpAddr;

use fullpipe_host::linux::net::{Destination, NetError, Netlink, OUR_QDISC_MAJOR, RouteMetric, RouteSpec};
use namespace::in_fresh_namespace;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn to(text: &str) -> Destination {
    text.parse().expect("a destination")
}

/// A veth pair, up, with addresses of both families.
fn pair() -> Netlink {
    let mut net = Netlink::open().expect("a socket");
    net.create_veth(["va", "vb"]).expect("a pair");
    net.set_up("va").expect("up");
    net.set_up("vb").expect("up");
    let link = net.link("va").expect("listed").number;
    net.add_address(link, ip("10.1.0.1"), 24).expect("an IPv4 address");
    net.add_address(link, ip("2001:db8:1::1"), 64).expect("an IPv6 address");
    net
}

#[test]
fn a_fresh_namespace_has_a_loopback_that_is_down() {
    in_fresh_namespace("a_fresh_namespace_has_a_loopback_that_is_down", || {
        let mut net = Netlink::open().expect("a socket");
        let loopback = net.link("lo").expect("lo");
        assert!(loopback.loopback && !loopback.up);
        net.set_up("lo").expect("up");
        assert!(net.link("lo").expect("lo").up);
    });
}

#[test]
fn links_take_mtu_and_queue_length() {
    in_fresh_namespace("links_take_mtu_and_queue_length", || {
        let mut net = pair();
        net.set_mtu("va", 1400).expect("set");
        net.set_txqueuelen("va", 77).expect("set");
        let link = net.link("va").expect("va");
        assert_eq!((link.mtu, link.txqueuelen, link.up), (1400, 77, true));
        assert_eq!(net.link("vb").expect("vb").mtu, 1500);
    });
}

#[test]
fn an_ipv6_address_is_usable_at_once() {
    in_fresh_namespace("an_ipv6_address_is_usable_at_once", || {
        let _net = pair();
        // Binding to a tentative address fails with EADDRNOTAVAIL.
        std::net::TcpListener::bind("[2001:db8:1::1]:0").expect("not tentative");
    });
}

#[test]
fn a_route_carries_every_metric_that_bounds_tcp() {
    in_fresh_namespace("a_route_carries_every_metric_that_bounds_tcp", || {
        let mut net = pair();
        let link = net.link("va").expect("va").number;
        let metrics = vec![
            RouteMetric::Mtu(1400),
            RouteMetric::Window(65_000),
            RouteMetric::Advmss(1300),
            RouteMetric::Reordering(7),
            RouteMetric::Hoplimit(33),
            RouteMetric::InitCwnd(20),
            RouteMetric::RtoMin(250),
            RouteMetric::InitRwnd(30),
            RouteMetric::QuickAck(1),
            RouteMetric::CcAlgo("reno".to_owned()),
        ];
        for (destination, gateway) in [("10.9.0.0/16", "10.1.0.2"), ("2001:db8:9::/48", "2001:db8:1::2")] {
            let spec = RouteSpec {
                destination: to(destination),
                link,
                gateway: Some(ip(gateway)),
                source: None,
                onlink: false,
                metrics: metrics.clone(),
            };
            net.add_route(&spec).expect("added");
            let route = net.route(to(destination)).expect("listed");
            assert_eq!(route.metrics(), metrics, "{destination}");
            assert_eq!(route.gateway(), Some(ip(gateway)));
            assert_eq!(route.link(), Some(link));
        }
    });
}

#[test]
fn replacing_metrics_leaves_the_rest_of_a_route_alone() {
    in_fresh_namespace("replacing_metrics_leaves_the_rest_of_a_route_alone", || {
        let mut net = pair();
        for destination in ["10.1.0.0/24", "2001:db8:1::/64"] {
            let before = net.route(to(destination)).expect("the kernel's own route");
            let all_before = net.routes().expect("listed").len();
            let window = vec![RouteMetric::Window(30_000)];
            net.replace_metrics(to(destination), window.clone()).expect("replaced");
            let during = net.route(to(destination)).expect("still there");
            assert_eq!(during.metrics(), window);
            assert_eq!(during.message().header, before.message().header);
            net.replace_metrics(to(destination), Vec::new()).expect("replaced");
            assert_eq!(net.route(to(destination)).expect("still there"), before);
            assert_eq!(net.routes().expect("listed").len(), all_before, "{destination}");
        }
    });
}

#[test]
fn a_missing_link_or_route_is_named() {
    in_fresh_namespace("a_missing_link_or_route_is_named", || {
        let mut net = pair();
        let link = net.set_mtu("nowhere0", 1400).expect_err("no such link");
        assert!(matches!(&link, NetError::NoSuchLink { device } if device == "nowhere0"), "{link}");
        let route = net.replace_metrics(to("10.99.0.0/16"), Vec::new()).expect_err("no such route");
        assert!(matches!(&route, NetError::NoSuchRoute { destination } if destination == "10.99.0.0/16"), "{route}");
    });
}

#[test]
fn a_refusal_carries_the_kernels_own_words() {
    in_fresh_namespace("a_refusal_carries_the_kernels_own_words", || {
        let error = pair().set_mtu("va", 10).expect_err("too small");
        assert!(error.to_string().contains("mtu less than device minimum"), "{error}");
    });
}

#[test]
fn a_queueing_discipline_is_replaced_and_given_back() {
    in_fresh_namespace("a_queueing_discipline_is_replaced_and_given_back", || {
        let mut net = pair();
        let link = net.link("va").expect("va").number;
        let before = net.root_qdisc(link).expect("read");
        net.set_root_qdisc("va", Some("pfifo")).expect("attached");
        let ours = net.root_qdisc(link).expect("read").expect("one");
        assert_eq!((ours.kind.as_str(), ours.major), ("pfifo", OUR_QDISC_MAJOR));
        net.set_root_qdisc("va", Some("bfifo")).expect("attached");
        let kernels_choice = before.clone().expect("noqueue");
        net.set_root_qdisc("va", Some(&kernels_choice.kind)).expect("given back");
        assert_eq!(net.root_qdisc(link).expect("read"), before);
        let error = net.set_root_qdisc("va", Some("no_such_qdisc")).expect_err("unknown kind");
        assert!(error.to_string().contains("no_such_qdisc"), "{error}");
        assert_eq!(net.root_qdisc(link).expect("read"), before);
    });
}

#[test]
fn a_socket_stays_in_the_namespace_in_which_it_was_opened() {
    in_fresh_namespace("a_socket_stays_in_the_namespace_in_which_it_was_opened", || {
        let mut outer = pair();
        let inner = std::thread::spawn(move || {
            in_fresh_namespace("inner", || {
                assert!(Netlink::open().expect("a socket").link("va").is_err());
            });
            outer.link("va").map(|link| link.mtu)
        });
        assert_eq!(inner.join().expect("no panic").expect("still the outer one"), 1500);
    });
}
