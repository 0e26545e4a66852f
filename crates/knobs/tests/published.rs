//! The recipes that people published for the reference experiments, in our own lines: judged line by line, and planned
//! anew with what is right in them kept and what is wrong corrected.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::Path};

use fullpipe_knobs::{
    FrameSizes, Packets, Plan, PlatformRequest, Settings,
    export::export,
    lint::{Level, LintRequest, lint},
    plan_platform, reading,
    recipe::{Kind, read},
};

fn recipe(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recipes").join(name)).unwrap()
}

/// The findings of a recipe as `line rule`, those that are fine left out.
fn judged(name: &str, platform: &str, path: Option<(&str, &str)>) -> Vec<String> {
    let text = recipe(name);
    let request = LintRequest {
        platform: Some(platform.parse().unwrap()),
        path: path.map(|(rate, rtt)| (rate.parse().unwrap(), rtt.parse().unwrap())),
        ..LintRequest::default()
    };
    let findings = lint(Kind::from_file(name, &text).unwrap(), &text, &request);
    let faults = findings.iter().filter(|finding| finding.level > Level::Ok);
    faults.map(|finding| format!("{} {}", finding.line, finding.rule)).collect()
}

#[test]
fn each_published_recipe_is_judged_line_by_line() {
    let hsdpa = Some(("1.8M", "230ms"));
    let wan = Some(("100M", "80ms"));
    let lan = Some(("1G", "2ms"));
    let cases: [(&str, &str, _, &[&str]); 12] = [
        // 128,480 B is above 65,535 B and the script leaves Tcp1323Opts out, so that 17,520 B stayed in use.
        // XP also takes no more than 65,535 B for one adapter, scaling or not.
        (
            "hsdpa-add.reg",
            "windows-xp",
            hsdpa,
            &["5 needs-scaling", "6 needs-scaling", "11 needs-scaling", "11 not-accepted"],
        ),
        (
            "hsdpa-add.reg",
            "windows-7",
            hsdpa,
            &["5 does-nothing", "6 does-nothing", "7 not-documented", "10 not-documented", "11 does-nothing"],
        ),
        ("hsdpa-remove.reg", "windows-xp", hsdpa, &[]),
        ("server-2012.reg", "windows-2012", wan, &["4 does-nothing", "5 does-nothing"]),
        // On the custom template a level of 1,048,560 B is enough for 80 ms, and no gain; on a longer path it caps.
        ("server-2012.ps1", "windows-2012", wan, &["1 lowers-ceiling", "2 read-only", "3 harmful"]),
        ("server-2012.ps1", "windows-2012", Some(("1G", "80ms")), &["1 harmful", "2 read-only", "3 harmful"]),
        (
            "windows-10.bat",
            "windows-10",
            Some(("10G", "1ms")),
            &[
                "1 reset-is-no-undo",
                "2 harmful",
                "3 does-nothing",
                "4 read-only",
                "5 copied-advice",
                "6 does-nothing",
                "7 frame-for-mtu",
                "8 harmful",
            ],
        ),
        // inflight was still there, and net.isr.enable gone.
        ("gigabit/sysctl.conf", "freebsd-6.2", lan, &["6 not-there"]),
        ("gigabit/sysctl.conf", "freebsd-14.1", lan, &["5 not-there", "6 not-there"]),
        ("gigabit/sysctl.conf", "freebsd-6.2", Some(("1G", "20ms")), &["2 too-small", "3 too-small", "6 not-there"]),
        ("gigabit/loader.conf", "freebsd-6.2", lan, &[]),
        ("gigabit/rc.conf", "freebsd-6.2", lan, &["1 frame-for-mtu", "2 harmful"]),
    ];
    for (name, platform, path, expected) in cases {
        assert_eq!(judged(name, platform, path), expected, "{name} on {platform} for {path:?}");
    }
}

fn sizes(text: &str) -> Option<FrameSizes> {
    Some(text.parse().unwrap())
}

fn planned(platform: &str, path: (&str, &str), packets: &Packets, settings: Option<&Settings>) -> Plan {
    plan_platform(&PlatformRequest {
        settings,
        packets,
        ..PlatformRequest::new(platform.parse().unwrap(), path.0.parse().unwrap(), path.1.parse().unwrap())
    })
}

/// A platform, its path, its packets; the changes that come out, and words of the notes.
type Case<'a> = (&'a str, (&'a str, &'a str), &'a Packets, &'a [&'a str], &'a [&'a str]);

#[test]
fn each_scenario_is_planned_for_its_own_platform_and_what_was_wrong_is_corrected_with_its_reason() {
    let jumbo = Packets {
        device: Some("em0".to_owned()),
        here: sizes("16110"),
        peer: sizes("1514,4088,9014"),
        hops: Some(vec!["9216".parse().unwrap()]),
        ..Packets::default()
    };
    let xp_jumbo = Packets { device: None, here: sizes("1514,4088,9014"), peer: sizes("9000"), ..jumbo.clone() };
    let plain = Packets::default();
    let cases: [Case<'_>; 8] = [
        // Published: SO_RCVBUF of 1 to 1.5 MB in the application, which the level gives by itself; no registry.
        (
            "windows-2012",
            ("100M", "80ms"),
            &plain,
            &["autotuninglevel=normal", "SO_RCVBUF=2000000", "SO_SNDBUF=2000000"],
            &["ask for 2,000,000 B", "do nothing here: they ended with Server 2003", "netsh interface tcp reset"],
        ),
        // Published: 128,480 B. 44 segments are enough and need no scaling.
        (
            "windows-xp",
            ("1.8M", "230ms"),
            &plain,
            &["GlobalMaxTcpWindowSize=64240", "TcpWindowSize=64240"],
            &["128,480 B that some vendors advise", "RFC 7323", "seen to be ignored on XP"],
        ),
        (
            "windows-xp",
            ("7M", "40ms"),
            &plain,
            &["GlobalMaxTcpWindowSize=64240", "TcpWindowSize=64240"],
            &["SO_SNDBUF"],
        ),
        // Published: 262,144 B, maxsockbuf four times that, MTU 9014, all on a path whose time nobody measured.
        (
            "freebsd-6.2",
            ("1G", "1.04ms"),
            &jumbo,
            &[
                "kern.ipc.maxsockbuf=294912",
                "net.inet.tcp.recvspace=262144",
                "net.inet.tcp.sendspace=262144",
                "mtu=9000",
            ],
            &["four times", "sb_max_adj", "nmbclusters", "the window comes first", "inflight.enable"],
        ),
        (
            "windows-xp",
            ("1G", "1.04ms"),
            &xp_jumbo,
            &["Tcp1323Opts=1", "GlobalMaxTcpWindowSize=268800", "TcpWindowSize=268800", "MTU=9000"],
            &["Jumbo Packet 9014", "the window comes first"],
        ),
        // Published: 20 buffers on the LAN and no gain beyond; 40 over 25 Mbit/s. The article tells no round-trip time:
        // these are the scenarios' own, assumed on the LAN, and fitted to the time with 5 buffers on the line.
        (
            "netburner",
            ("100M", "500us"),
            &plain,
            &["SetSocketRxBuffers=20", "SetSocketTxBuffers=20", "SetSocketUnackBuffers=20"],
            &["of 256 buffers"],
        ),
        (
            "netburner",
            ("25M", "9400us"),
            &plain,
            &["SetSocketRxBuffers=40", "SetSocketTxBuffers=40", "SetSocketUnackBuffers=40"],
            &["SetOutOfOrderBuffers(fd, 39)"],
        ),
        (
            "windows-10",
            ("10G", "200us"),
            &plain,
            &["autotuninglevel=normal"],
            &["where tuning changed nothing", "neither is `netsh int ip reset`", "read-only"],
        ),
    ];
    for (platform, path, packets, changes, notes) in cases {
        let plan = planned(platform, path, packets, None);
        let last = |knob: String| knob.rsplit(['\\', ' ']).next().unwrap_or_default().to_owned();
        let found: Vec<String> = plan
            .changes
            .iter()
            .map(|change| format!("{}={}", last(change.knob.to_string()), change.to.as_deref().unwrap()))
            .collect();
        assert_eq!(found, changes, "{platform} {path:?}");
        for words in notes {
            assert!(plan.notes.iter().any(|note| note.contains(words)), "{platform}: {words}: {:#?}", plan.notes);
        }
        assert!(plan.changes.iter().all(|change| !change.source.is_empty() && !change.reason.is_empty()));
    }
}

#[test]
fn the_add_and_the_remove_script_of_hsdpa_come_out_of_an_export_of_the_machines_own_key() {
    let own = "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\r\n\"DataBasePath\"=hex(2):25,00,00,00\r\n\"Hostname\"=\"notebook\"\r\n\r\n";
    let platform = "windows-xp".parse().unwrap();
    let reading = reading::read("own.reg", own.as_bytes()).unwrap();
    let settings = reading::merge(&[reading], Some(&platform)).unwrap().settings;
    let plan = planned("windows-xp", ("1.8M", "230ms"), &Packets::default(), Some(&settings));
    let export = export(&plan, &platform, Some(&settings)).unwrap();
    let lines = |name: &str| {
        let file = export.files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("no {name}"));
        let text = file.text();
        assert_eq!(read(Kind::Registry, &text).1, []);
        text.lines().filter(|line| line.starts_with('"')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        lines("fullpipe.reg"),
        ["\"GlobalMaxTcpWindowSize\"=dword:0000faf0", "\"TcpWindowSize\"=dword:0000faf0"]
    );
    // The key was exported whole: what it doesn't list was absent, and the undo is exact.
    assert_eq!(lines("fullpipe-undo.reg"), ["\"TcpWindowSize\"=-", "\"GlobalMaxTcpWindowSize\"=-"]);
}
