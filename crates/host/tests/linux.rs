//! The Linux host on the real kernel, in a namespace of the test's own.
#![cfg(target_os = "linux")]

mod common;
mod namespace;

use common::{address, change, options};
use fullpipe_host::{
    Host, HostError, Journal, Outcome, ROUTE_ATTRIBUTES, UndoOptions, Which, apply,
    linux::{
        LinuxHost,
        net::{Netlink, RouteSpec},
    },
    same_value, undo,
};
use fullpipe_knobs::{Address, Catalogue, Family};
use namespace::in_fresh_namespace;

/// A veth pair with addresses, and a route by a gateway for each family.
fn network() -> Netlink {
    let mut net = Netlink::open().expect("a socket");
    net.create_veth(["va", "vb"]).expect("a pair");
    for device in ["lo", "va", "vb"] {
        net.set_up(device).expect("up");
    }
    let link = net.link("va").expect("va").number;
    net.add_address(link, "10.1.0.1".parse().expect("an address"), 24).expect("added");
    net.add_address(link, "2001:db8:1::1".parse().expect("an address"), 64).expect("added");
    for (destination, gateway) in [("default", "10.1.0.2"), ("2001:db8:9::/48", "2001:db8:1::2")] {
        net.add_route(&RouteSpec {
            destination: destination.parse().expect("a destination"),
            link,
            gateway: Some(gateway.parse().expect("an address")),
            source: None,
            onlink: false,
            metrics: Vec::new(),
        })
        .expect("added");
    }
    net
}

/// Other values that a setting might take, nearest first.
fn others(name: &str, value: &str) -> Vec<String> {
    if name.ends_with("congestion_control") {
        return vec!["reno".into(), "cubic".into()];
    }
    let mut numbers: Vec<i64> = value.split(' ').map(|word| word.parse().expect("a number")).collect();
    let last = numbers.pop().expect("at least one");
    [last + 1, last - 1, last / 2 + 1, 1, 0, 2]
        .into_iter()
        .filter(|other| *other != last)
        .map(|other| {
            let all: Vec<_> = numbers.iter().chain([&other]).map(ToString::to_string).collect();
            all.join(" ")
        })
        .collect()
}

#[test]
fn every_writable_sysctl_of_the_catalogue_is_written_and_undone() {
    let outside = LinuxHost.settings().expect("read");
    in_fresh_namespace("every_writable_sysctl_of_the_catalogue_is_written_and_undone", || {
        let mut host = LinuxHost;
        let mut journal = Journal::in_memory().expect("a journal");
        let before = host.settings().expect("read");
        let (mut written, mut read_only, mut missing) = (0, Vec::new(), Vec::new());
        let catalogue = Catalogue::for_family(Family::Linux).expect("the catalogue");
        for knob in catalogue.knobs.iter().map(|knob| &knob.address) {
            let Address::Sysctl(name) = knob else { continue };
            match host.writable(knob) {
                Ok(()) => {}
                Err(HostError::ReadOnly { .. }) => {
                    read_only.push(name);
                    continue;
                }
                Err(HostError::Missing { .. }) => {
                    missing.push(name);
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            let old = host.read(knob).expect("readable").expect("there");
            let applied = others(name, &old).iter().find_map(|value| {
                let changes = [change(&mut host, name, Some(value))];
                apply(&mut host, &mut journal, &changes, &options()).ok()
            });
            let run = applied.unwrap_or_else(|| panic!("{name} takes no other value than {old}"));
            assert!(!run.applied.iter().any(|applied| applied.clamped()), "{name}");
            let report = undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
            assert!(report.is_complete(), "{report:?}");
            assert_eq!(host.read(knob).expect("readable").as_deref(), Some(old.as_str()), "{name}");
            written += 1;
        }
        println!("written and undone: {written}; read-only here: {read_only:?}; not here: {missing:?}");
        assert!(written > 30, "only {written}");
        assert_eq!(host.settings().expect("read").values, before.values);
    });
    let after = LinuxHost.settings().expect("read");
    let sysctls = |settings: &fullpipe_knobs::Settings| {
        settings
            .values
            .iter()
            .filter(|(at, _)| matches!(at, Address::Sysctl(_)))
            .map(|(at, v)| (at.clone(), v.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(sysctls(&after), sysctls(&outside), "another namespace was touched");
}

/// The one line that makes another route like that to `destination`.
fn copy_of(host: &mut LinuxHost, destination: &str) -> String {
    let routes = host.settings().expect("read").routes;
    let route = routes.into_iter().find(|route| route.destination == destination).expect("there");
    route.copy.expect("one next hop")
}

#[test]
fn a_route_for_one_destination_is_made_changed_and_undone() {
    in_fresh_namespace("a_route_for_one_destination_is_made_changed_and_undone", || {
        let mut net = network();
        let mut host = LinuxHost;
        let mut journal = Journal::in_memory().expect("a journal");
        let before = own_routes(&mut net);
        for (destination, like) in [
            ("192.0.2.0/24", "default"),
            ("192.0.2.7", "default"),
            ("10.1.0.9", "10.1.0.0/24"),
            ("2001:db8:9:1::/64", "2001:db8:9::/48"),
            ("2001:db8:1::9", "2001:db8:1::/64"),
        ] {
            let made = format!("{} mtu lock 1400 initcwnd 40 rto_min 300ms congctl reno", copy_of(&mut host, like));
            let place = format!("route {destination} made");
            let changes = [change(&mut host, &place, Some(&made))];
            apply(&mut host, &mut journal, &changes, &options()).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(host.read(&address(&place)).expect("read"), Some(made), "{place}");
            let route = net.route(destination.parse().expect("a destination")).expect("there");
            let other = net.route(like.parse().expect("a destination")).expect("there");
            assert_eq!(
                (route.link(), route.gateway(), route.source()),
                (other.link(), other.gateway(), other.source())
            );
            assert_eq!((route.metrics().len(), other.metrics().len()), (5, 0), "{destination}");
            let again = host.writable(&address(&place)).expect_err("one is there");
            assert!(again.to_string().contains("exactly this destination already"), "{again}");
            // What is set on it later goes first.
            let more = [change(&mut host, &format!("route {destination} initcwnd"), Some("50"))];
            apply(&mut host, &mut journal, &more, &options()).expect("set");
            let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
            assert!(report.is_complete() && report.entries.len() == 2, "{report:?}");
            assert_eq!(own_routes(&mut net), before, "{destination}");
        }
    });
}

#[test]
fn a_made_route_that_somebody_changed_is_left_alone_and_one_that_is_gone_is_back() {
    in_fresh_namespace("a_made_route_that_somebody_changed_is_left_alone_and_one_that_is_gone_is_back", || {
        let _net = network();
        let mut host = LinuxHost;
        let mut journal = Journal::in_memory().expect("a journal");
        let made = copy_of(&mut host, "default");
        let place = address("route 192.0.2.0/24 made");
        let changes = [change(&mut host, "route 192.0.2.0/24 made", Some(&made))];
        let run = |host: &mut LinuxHost, journal: &mut Journal| {
            apply(host, journal, &changes, &options()).expect("made").id.expect("a run")
        };
        let first = run(&mut host, &mut journal);
        host.write(&address("route 192.0.2.0/24 mtu"), Some("1300")).expect("by somebody else");
        let report = undo(&mut host, &mut journal, Which::Run(first), UndoOptions::default()).expect("looked");
        assert!(matches!(report.entries[0].outcome, Outcome::ChangedSince { .. }), "{report:?}");
        assert!(host.read(&place).expect("read").is_some(), "it is theirs");
        let report =
            undo(&mut host, &mut journal, Which::Run(first), UndoOptions { force: true, ..UndoOptions::default() })
                .expect("undone");
        assert!(matches!(report.entries[0].outcome, Outcome::Restored { was: Some(_), now: None }), "{report:?}");

        let second = run(&mut host, &mut journal);
        host.write(&place, None).expect("removed by somebody else");
        let report = undo(&mut host, &mut journal, Which::Run(second), UndoOptions::default()).expect("undone");
        assert_eq!(report.entries[0].outcome, Outcome::AlreadyBack);

        // Refused by the kernel, it leaves nothing behind: no such router is on the link.
        let wrong = [change(&mut host, "route 192.0.2.0/24 made", Some("via 203.0.113.1 dev va"))];
        let error = apply(&mut host, &mut journal, &wrong, &options()).expect_err("unreachable");
        assert!(error.to_string().contains("nothing was changed"), "{error}");
        let gone = [change(&mut host, "route 192.0.2.0/24 made", Some("via 10.1.0.2 dev nowhere0"))];
        apply(&mut host, &mut journal, &gone, &options()).expect_err("no such interface");
        assert!(host.read(&place).expect("read").is_none());
        assert!(journal.outstanding().expect("read").is_empty());
    });
}

#[test]
fn every_attribute_of_a_route_is_written_and_undone() {
    in_fresh_namespace("every_attribute_of_a_route_is_written_and_undone", || {
        let mut net = network();
        let mut host = LinuxHost;
        let mut journal = Journal::in_memory().expect("a journal");
        let before = own_routes(&mut net);
        for destination in ["default", "10.1.0.0/24", "2001:db8:9::/48", "2001:db8:1::/64"] {
            let mut together = Vec::new();
            for attribute in ROUTE_ATTRIBUTES {
                let place = format!("route {destination} {attribute}");
                let value = match attribute {
                    "congctl" => "reno",
                    "features" => "ecn",
                    "rto_min" | "rtt" | "rttvar" => "240ms",
                    "hoplimit" => "33",
                    "quickack" | "fastopen_no_cookie" => "1",
                    "mtu" => "lock 1400",
                    _ => "1300",
                };
                let changed = change(&mut host, &place, Some(value));
                assert_eq!(changed.from, None, "{place}");
                let run = apply(&mut host, &mut journal, std::slice::from_ref(&changed), &options()).expect(&place);
                let now = run.applied.first().and_then(|applied| applied.now.clone());
                assert!(same_value(&changed.knob, now.as_deref(), Some(value)), "{place}: {now:?}");
                undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
                assert_eq!(host.read(&changed.knob).expect("readable"), None, "{place}");
                together.push(changed);
            }
            apply(&mut host, &mut journal, &together, &options()).expect("all at once");
            for changed in &together {
                assert!(same_value(
                    &changed.knob,
                    host.read(&changed.knob).expect("read").as_deref(),
                    changed.to.as_deref()
                ));
            }
            let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
            assert!(report.is_complete(), "{report:?}");
            assert_eq!(own_routes(&mut net), before, "{destination}");
        }
    });
}

/// Every route but the link-local one, which the kernel adds by itself once it has made sure of the address.
fn own_routes(net: &mut Netlink) -> Vec<String> {
    let routes = net.routes().expect("listed").into_iter().map(|route| format!("{route:?}"));
    routes.filter(|route| !route.contains("Inet6(fe80::")).collect()
}

#[test]
fn one_attribute_leaves_the_others_as_they_are() {
    in_fresh_namespace("one_attribute_leaves_the_others_as_they_are", || {
        let _net = network();
        let mut host = LinuxHost;
        for (attribute, value) in [("mtu", "lock 1400"), ("initcwnd", "20"), ("congctl", "reno")] {
            host.write(&address(&format!("route default {attribute}")), Some(value)).expect("written");
        }
        host.write(&address("route default window"), Some("65000")).expect("written");
        host.write(&address("route default initcwnd"), None).expect("removed");
        let settings = host.settings().expect("read");
        let all: Vec<_> = ROUTE_ATTRIBUTES
            .iter()
            .filter_map(|attribute| settings.values.get(&address(&format!("route default {attribute}")))?.clone())
            .collect();
        assert_eq!(all, ["lock 1400", "65000", "reno"]);
        assert_eq!(settings.routes.last().and_then(|route| route.gateway.as_deref()), Some("10.1.0.2"));
    });
}

#[test]
fn links_are_written_and_undone() {
    in_fresh_namespace("links_are_written_and_undone", || {
        let _net = network();
        let mut host = LinuxHost;
        let mut journal = Journal::in_memory().expect("a journal");
        let before = host.settings().expect("read");
        let mut changes = vec![
            change(&mut host, "link va mtu", Some("9000")),
            change(&mut host, "link va txqueuelen", Some("77")),
            change(&mut host, "link va gso_max_size", Some("32768")),
            change(&mut host, "link va qdisc", Some("pfifo")),
        ];
        if before.values.contains_key(&address("link va offload tso")) {
            changes.push(change(&mut host, "link va offload tso", Some("off")));
            changes.push(change(&mut host, "link va offload gro", Some("on")));
            changes.push(change(&mut host, "link va offload tx-tcp6-segmentation", Some("on")));
        } else {
            println!("skipped the offloads: this kernel has no ethtool netlink family");
        }
        let run = apply(&mut host, &mut journal, &changes, &options()).expect("applied");
        assert!(run.applied.iter().all(|applied| !applied.clamped()), "{run:?}");
        assert_eq!(
            host.read(&address("link va offload tso")).expect("read").as_deref(),
            Some("tx-tcp6-segmentation"),
            "a group of which one is on"
        );
        let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(host.settings().expect("read").values, before.values);
    });
}

#[test]
fn what_cannot_be_written_says_why() {
    in_fresh_namespace("what_cannot_be_written_says_why", || {
        let _net = network();
        let mut host = LinuxHost;
        let text = |result: Result<(), HostError>| result.expect_err("refused").to_string();
        let read_only = text(host.write(&address("net.ipv4.tcp_available_congestion_control"), Some("reno")));
        assert!(read_only.contains("read-only in this network namespace"), "{read_only}");
        let missing = text(host.write(&address("net.ipv4.tcp_tw_recycle"), Some("1")));
        assert!(missing.contains("there is no such setting on Linux "), "{missing}");
        let refused = text(host.write(&address("net.ipv4.tcp_congestion_control"), Some("no_such_algorithm")));
        assert!(refused.contains("the system refused `no_such_algorithm`"), "{refused}");
        let gone = text(host.write(&address("route 10.77.0.0/16 window"), Some("65000")));
        assert!(gone.contains("there is no route to 10.77.0.0/16"), "{gone}");
        let link = text(host.write(&address("link nowhere0 mtu"), Some("1400")));
        assert!(link.contains("there is no link nowhere0"), "{link}");
        let kernel = text(host.write(&address("link va mtu"), Some("10")));
        assert!(kernel.contains("mtu less than device minimum"), "{kernel}");
        let ring = text(host.write(&address("link va ring rx"), Some("4096")));
        assert!(ring.contains("link va ring rx"), "{ring}");
        let outside = text(host.write(&address("kernel.core_pattern"), Some("x")));
        assert!(outside.contains("only sysctls below net."), "{outside}");
        assert!(text(host.write(&address("net.ipv4.tcp_ecn"), None)).contains("always has a value"));
        assert!(text(host.write(&address("route default speed"), Some("1"))).contains("rto_min"));
        assert_eq!(host.read(&address("net.ipv4.tcp_tw_recycle")).expect("looked"), None);
    });
}

#[test]
fn a_vector_of_which_the_kernel_took_a_half_is_put_back() {
    in_fresh_namespace("a_vector_of_which_the_kernel_took_a_half_is_put_back", || {
        let mut host = LinuxHost;
        let rmem = address("net.ipv4.tcp_rmem");
        let before = host.read(&rmem).expect("read");
        for half in ["8192 140000 0", "8192 140000 many", "8192 140000 99999999999999999999"] {
            host.write(&rmem, Some(half)).expect_err("the third number is refused");
            assert_eq!(host.read(&rmem).expect("read"), before, "{half}");
        }
    });
}

#[test]
fn undo_does_not_write_into_another_namespace() {
    in_fresh_namespace("undo_does_not_write_into_another_namespace", || {
        let mut journal = Journal::in_memory().expect("a journal");
        let changes = [change(&mut LinuxHost, "net.ipv4.tcp_slow_start_after_idle", Some("0"))];
        apply(&mut LinuxHost, &mut journal, &changes, &options()).expect("applied");
        let mut journal = std::thread::spawn(move || {
            in_fresh_namespace_with("another namespace", journal, |journal| {
                LinuxHost.write(&address("net.ipv4.tcp_slow_start_after_idle"), Some("0")).expect("the same by chance");
                let report =
                    undo(&mut LinuxHost, journal, Which::All, UndoOptions { force: true, ..UndoOptions::default() })
                        .expect("looked");
                assert!(
                    matches!(report.entries.as_slice(), [entry] if matches!(entry.outcome, Outcome::Elsewhere { .. })),
                    "{report:?}"
                );
                let here = LinuxHost.read(&address("net.ipv4.tcp_slow_start_after_idle")).expect("read");
                assert_eq!(here.as_deref(), Some("0"));
            })
        })
        .join()
        .expect("no panic");
        assert!(undo(&mut LinuxHost, &mut journal, Which::All, UndoOptions::default()).expect("undone").is_complete());
    });
}

/// Lends a value to a test in another namespace.
fn in_fresh_namespace_with<T: Send + 'static>(name: &str, value: T, test: impl FnOnce(&mut T) + Send + 'static) -> T {
    let shared = std::sync::Arc::new(std::sync::Mutex::new(Some(value)));
    let lent = std::sync::Arc::clone(&shared);
    in_fresh_namespace(name, move || {
        if let Some(value) = lent.lock().expect("not poisoned").as_mut() {
            test(value);
        }
    });
    shared.lock().expect("not poisoned").take().expect("given back")
}
