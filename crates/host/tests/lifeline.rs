//! A change that costs a way out of this machine, on the real kernel, in a namespace of the test's own.
#![cfg(target_os = "linux")]

mod common;
mod namespace;

use common::{change, options};
use fullpipe_host::{
    ApplyFault, Host, Journal, apply,
    linux::{
        LinuxHost,
        net::{Netlink, RouteSpec},
    },
};
use namespace::in_fresh_namespace;

#[test]
fn a_link_that_gets_too_small_for_ipv6_is_noticed_at_once_and_set_back() {
    in_fresh_namespace("a_link_that_gets_too_small_for_ipv6_is_noticed_at_once_and_set_back", || {
        let mut net = Netlink::open().expect("a socket");
        net.create_veth(["va", "vb"]).expect("a pair");
        net.set_up("va").expect("up");
        net.set_up("vb").expect("up");
        let link = net.link("va").expect("listed").number;
        net.add_address(link, "2001:db8:1::1".parse().expect("an address"), 64).expect("added");
        let spec = RouteSpec {
            destination: "::/0".parse().expect("a destination"),
            link,
            gateway: Some("2001:db8:1::2".parse().expect("an address")),
            source: None,
            onlink: false,
            metrics: Vec::new(),
        };
        net.add_route(&spec).expect("added");
        let mut host = LinuxHost::new();
        assert_eq!(host.lifelines().len(), 1, "{:?}", host.lifelines());
        let mut journal = Journal::in_memory().expect("a journal");
        // IPv6 takes 1280 bytes (RFC 8200, 5): below that the kernel takes the addresses away.
        let changes = [change(&mut host, "link va mtu", Some("1000"))];
        let error = apply(&mut host, &mut journal, &changes, &options()).expect_err("cut off");
        assert!(matches!(*error.fault, ApplyFault::Lifeline { is_back: false, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("the default route of IPv6") && text.contains("set that up again"), "{text}");
        assert_eq!(net.link("va").expect("listed").mtu, 1500, "{text}");
        assert!(journal.outstanding().expect("read").is_empty());
    });
}
