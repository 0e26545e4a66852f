//! The published articles' own lines, as they are printed there: parsed, linted, and planned from.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::Path};

use fullpipe_knobs::{
    Address, Packets, Plan, PlatformRequest, Settings,
    lint::{Finding, Level, LintRequest, lint},
    plan_platform, reading,
    recipe::{Kind, read},
};

fn lines(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/articles").join(name)).unwrap()
}

fn findings(name: &str, platform: &str, path: Option<(&str, &str)>) -> Vec<Finding> {
    let text = lines(name);
    let request = LintRequest {
        platform: Some(platform.parse().unwrap()),
        path: path.map(|(rate, rtt)| (rate.parse().unwrap(), rtt.parse().unwrap())),
        ..LintRequest::default()
    };
    lint(Kind::from_file(name, &text).unwrap(), &text, &request)
}

/// `line rule`, those that are fine left out.
fn faults(name: &str, platform: &str, path: Option<(&str, &str)>) -> Vec<String> {
    let found = findings(name, platform, path);
    let faults = found.iter().filter(|finding| finding.level > Level::Ok);
    faults.map(|finding| format!("{} {}", finding.line, finding.rule)).collect()
}

#[test]
fn every_line_of_the_articles_gets_what_an_expert_would_say() {
    let wan = Some(("100M", "80ms"));
    let hsdpa = Some(("1.8M", "230ms"));
    let lan = Some(("1G", "1ms"));
    let cases: [(&str, &str, _, &[&str]); 19] = [
        ("000-reset.cmd", "windows-11", None, &["1 reset-is-no-undo"]),
        ("001-calls.c", "netburner", None, &[]),
        // 128,480 B needs scaling, which nothing switches on; for one adapter XP takes no more than 65,535.
        ("002-adapter.reg", "windows-xp", hsdpa, &["4 needs-scaling", "4 not-accepted"]),
        ("002-global.reg", "windows-xp", hsdpa, &["4 needs-scaling", "5 does-nothing"]),
        ("002-global.reg", "windows-11", None, &["4 does-nothing", "5 does-nothing"]),
        ("002-remove.inf", "windows-xp", None, &[]),
        // net.isr came with 5.1, and inflight, off before 5.2, is a limiter itself on a LAN.
        ("003/sysctl.conf", "freebsd-4.8", lan, &["1 needs-kernel-option", "6 harmful", "10 not-there"]),
        ("003/sysctl.conf", "freebsd-5.2", lan, &["1 needs-kernel-option", "6 harmful"]),
        // 5.3 gave inflight another name, and 6.0 net.isr.enable, as the line says itself.
        (
            "003/sysctl.conf",
            "freebsd-6.2",
            lan,
            &["1 needs-kernel-option", "6 not-there", "7 not-there", "9 not-there", "10 not-there"],
        ),
        (
            "003/sysctl.conf",
            "freebsd-14.1",
            lan,
            &["1 not-there", "2 not-there", "6 not-there", "7 not-there", "9 not-there", "10 not-there"],
        ),
        (
            "003/sysctl.conf",
            "freebsd-4.8",
            Some(("1G", "20ms")),
            &["1 needs-kernel-option", "3 too-small", "4 too-small", "6 estimated-window", "10 not-there"],
        ),
        // No Windows has a value MaxTcpWindowSize; 262,144 are 179.6 segments; and nothing sets a window below the maximum.
        ("003/xp.reg", "windows-xp", lan, &["4 only-a-ceiling", "4 not-whole-segments", "5 does-nothing"]),
        ("003/loader.conf", "freebsd-6.2", lan, &[]),
        ("003/rc.conf", "freebsd-6.2", lan, &["1 frame-for-mtu"]),
        // Internet can't be changed on Server 2012; Restricted is enough for this path and no gain.
        ("004-profile.ps1", "windows-2012", wan, &["2 read-only", "2 lowers-ceiling"]),
        ("004-custom.ps1", "windows-2012", wan, &["2 lowers-ceiling", "3 needs-filter"]),
        ("004-registry.reg", "windows-2012", wan, &["4 does-nothing", "5 does-nothing", "6 does-nothing"]),
        ("004-socket.cpp", "windows-2012", wan, &["4 pins-buffer", "5 pins-buffer"]),
        (
            "004-socket.cpp",
            "windows-2012",
            Some(("1G", "80ms")),
            &["4 too-small", "4 pins-buffer", "5 too-small", "5 pins-buffer"],
        ),
    ];
    for (name, platform, path, expected) in cases {
        assert_eq!(faults(name, platform, path), expected, "{name} on {platform} for {path:?}");
    }
}

#[test]
fn a_finding_has_its_line_its_setting_and_its_platform() {
    let found = findings("004-profile.ps1", "windows-2012", None);
    let read_only = found.iter().find(|finding| finding.rule == "read-only").unwrap();
    assert_eq!(read_only.platform.as_deref(), Some("windows-2012"));
    assert_eq!(read_only.knob.as_deref(), Some("tcpsetting Internet InitialCongestionWindowMss"));
    assert!(read_only.text.as_deref().unwrap().starts_with("Set-NetTCPSetting -SettingName Internet"), "{read_only:?}");
    // No advice to set there what can't be set there.
    assert!(
        found.iter().all(|finding| !finding.fix.as_deref().unwrap_or("").contains("Internet -AutoTuning")),
        "{found:?}"
    );
}

#[test]
fn every_line_of_the_articles_is_read() {
    for (name, count) in [
        ("001-calls.c", 6),
        ("002-remove.inf", 2),
        ("003/sysctl.conf", 10),
        ("003/loader.conf", 1),
        ("003/xp.reg", 4),
        ("003/rc.conf", 1),
        ("004-profile.ps1", 2),
        ("004-custom.ps1", 2),
        ("004-registry.reg", 3),
        ("004-socket.cpp", 2),
    ] {
        let text = lines(name);
        let (steps, problems) = read(Kind::from_file(name, &text).unwrap(), &text);
        assert_eq!((steps.len(), problems.len()), (count, 0), "{name}: {steps:?} {problems:?}");
    }
}

fn settings(names: &[&str], platform: &str) -> Settings {
    let readings: Vec<_> = names.iter().map(|name| reading::read(name, lines(name).as_bytes()).unwrap()).collect();
    reading::merge(&readings, Some(&platform.parse().unwrap())).unwrap().settings
}

fn planned(platform: &str, path: (&str, &str), packets: &Packets, settings: &Settings) -> Plan {
    plan_platform(&PlatformRequest {
        settings: Some(settings),
        packets,
        peer: Some("192.0.2.0/24"),
        ..PlatformRequest::new(platform.parse().unwrap(), path.0.parse().unwrap(), path.1.parse().unwrap())
    })
}

fn changes(plan: &Plan) -> Vec<String> {
    let last = |knob: &Address| knob.to_string().rsplit(['\\', ' ']).next().unwrap_or_default().to_owned();
    plan.changes
        .iter()
        .map(|change| format!("{}={}", last(&change.knob), change.to.as_deref().unwrap_or("-")))
        .collect()
}

#[test]
fn the_articles_own_files_are_planned_from() {
    let none = Packets::default();
    // 003: the article's window is enough on its LAN; its clusters are not enough for 16 connections of 2 x 262,144 B
    // only where the path asks for more, and its MTU is the driver's figure.
    let freebsd = settings(&["003/sysctl.conf", "003/loader.conf", "003/rc.conf"], "freebsd-6.2");
    assert_eq!(changes(&planned("freebsd-6.2", ("1G", "1ms"), &none, &freebsd)), [] as [&str; 0]);
    let far = planned("freebsd-6.2", ("1G", "10ms"), &none, &freebsd);
    assert_eq!(changes(&far)[0], "kern.ipc.nmbclusters=39936");
    assert_eq!(far.changes[0].from.as_deref(), Some("30720"));
    let jumbo = Packets {
        here: Some("16110".parse().unwrap()),
        peer: Some("1514,4088,9014".parse().unwrap()),
        hops: Some(Vec::new()),
        ..Packets::default()
    };
    let mtu = planned("freebsd-6.2", ("1G", "1ms"), &jumbo, &freebsd);
    assert_eq!(mtu.changes.last().unwrap().knob.to_string(), "link em0 mtu");
    // 004: autotuning reads normal, and the plan goes on from there.
    let server = settings(&["004-get-nettcpsetting.txt"], "windows-2012");
    let plan = planned("windows-2012", ("100M", "80ms"), &none, &server);
    assert!(!changes(&plan).iter().any(|change| change.starts_with("autotuninglevel")), "{:?}", changes(&plan));
    assert!(
        changes(&plan).contains(&"Custom=192.0.2.0/24".to_owned())
            && changes(&plan).contains(&"SO_RCVBUF=2000000".to_owned())
    );
    // 002: the adapter's own value is planned, too; 64,240 B is what the article's machine accepted.
    let xp = settings(&["002-adapter.reg"], "windows-xp");
    let plan = planned("windows-xp", ("1.8M", "230ms"), &none, &xp);
    let adapter = plan.changes.iter().find(|change| change.knob.to_string().contains("Interfaces")).unwrap();
    assert_eq!((adapter.from.as_deref(), adapter.to.as_deref()), (Some("128480"), Some("64240")));
}

#[test]
fn each_release_of_freebsd_is_named_the_settings_that_it_has() {
    let why = |line: u32, platform: &str| {
        let found = findings("003/sysctl.conf", platform, None);
        let of_line = found.into_iter().filter(|finding| finding.line == line);
        of_line.map(|finding| finding.message).collect::<String>()
    };
    for (line, platform, words) in [
        (10, "freebsd-4.8", "came with 5.1"),
        (10, "freebsd-6.2", "net.isr.direct"),
        (10, "freebsd-7.0", "net.isr.direct"),
        (10, "freebsd-14.1", "net.isr.dispatch"),
        (6, "freebsd-6.2", "net.inet.tcp.inflight.enable"),
        (1, "freebsd-6.2", "ifconfig em0 polling"),
    ] {
        assert!(why(line, platform).contains(words), "{line} on {platform}: {}", why(line, platform));
    }
    assert!(!why(10, "freebsd-7.0").contains("dispatch"), "{}", why(10, "freebsd-7.0"));
}

#[test]
fn a_plan_for_freebsd_speaks_of_what_the_release_has() {
    let jumbo = Packets {
        here: Some("9014".parse().unwrap()),
        peer: Some("9014".parse().unwrap()),
        hops: Some(Vec::new()),
        ..Packets::default()
    };
    let notes = |plan: &Plan| plan.notes.join("\n");
    let old = settings(&["003/sysctl.conf", "003/loader.conf", "003/rc.conf"], "freebsd-4.8");
    let plan = planned("freebsd-4.8", ("1G", "1ms"), &jumbo, &old);
    // What the file switches on is a limiter itself, by the name that 4.8 has.
    assert!(changes(&plan).contains(&"net.inet.tcp.inflight_enable=0".to_owned()), "{:?}", changes(&plan));
    assert!(!notes(&plan).contains("inflight.enable"), "{}", notes(&plan));
    // No jumbo clusters: a packet of 9,000 B takes five of 2,048.
    assert!(notes(&plan).contains("take 5 clusters of 2,048 B each"), "{}", notes(&plan));
    let nothing = settings(&["003/loader.conf", "003/rc.conf"], "freebsd-5.2");
    // On by default, and judged as where a file says so.
    let plan = planned("freebsd-5.2", ("1G", "1ms"), &jumbo, &nothing);
    assert!(changes(&plan).contains(&"net.inet.tcp.inflight_enable=0".to_owned()), "{:?}", changes(&plan));
    let plan = planned("freebsd-5.2", ("1G", "20ms"), &jumbo, &nothing);
    assert!(notes(&plan).contains("it is on by default"), "{}", notes(&plan));
    // 6.1 and later switch it off themselves on such a path.
    let plan = planned("freebsd-6.2", ("1G", "1ms"), &jumbo, &nothing);
    assert!(notes(&plan).contains("inflight.enable is on by default and switches itself off"), "{}", notes(&plan));
    let plan = planned("freebsd-14.1", ("1G", "1ms"), &jumbo, &nothing);
    assert!(notes(&plan).contains("kern.ipc.nmbjumbo9 bounds them"), "{}", notes(&plan));
}
