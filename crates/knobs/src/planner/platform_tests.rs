//! Plans for platforms that are not here, on the reference experiments.

use fullpipe_units::Bytes;
use proptest::prelude::*;

use super::{Goal, PlatformRequest, plan_platform, platform::number};
use crate::{Address, Catalogue, Packets, Plan, Settings, TakesEffect};

fn request<'a>(platform: &str, rate: &str, rtt: &str) -> PlatformRequest<'a> {
    PlatformRequest::new(platform.parse().unwrap(), rate.parse().unwrap(), rtt.parse().unwrap())
}

fn short(plan: &Plan) -> Vec<String> {
    let last = |knob: &Address| knob.to_string().rsplit(['\\', ' ']).next().unwrap_or_default().to_owned();
    plan.changes
        .iter()
        .map(|change| format!("{}={}", last(&change.knob), change.to.as_deref().unwrap_or_default()))
        .collect()
}

fn says(plan: &Plan, words: &str) -> bool {
    plan.notes.iter().any(|note| note.contains(words))
}

#[test]
fn xp_on_hsdpa_gets_44_segments_and_no_scaling() {
    let plan = plan_platform(&request("windows-xp", "1.8M", "230ms"));
    assert_eq!(short(&plan), ["GlobalMaxTcpWindowSize=64240", "TcpWindowSize=64240"]);
    assert!(plan.changes[0].arithmetic.contains("= 51,750 B; 44 x 1460 = 64,240 B"), "{}", plan.changes[0].arithmetic);
    insta::assert_json_snapshot!(plan);
}

#[test]
fn xp_on_a_long_fat_path_needs_scaling_first() {
    let plan = plan_platform(&request("windows-xp", "100M", "80ms"));
    // 2,000,000 B of window, up to whole segments of 1,460 B.
    assert_eq!(short(&plan), ["Tcp1323Opts=1", "GlobalMaxTcpWindowSize=2000200", "TcpWindowSize=2000200"]);
    assert!(says(&plan, "read the value back"));
}

fn xp(values: &[(&str, &str)]) -> Settings {
    const KEY: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
    let mut settings = Settings { platform: "windows-xp".parse().unwrap(), ..Settings::default() };
    for (name, value) in values {
        let key = if *name == "MTU" { format!(r"{KEY}\Interfaces\{{1}}") } else { KEY.to_owned() };
        let knob = Address::Registry { key, value: (*name).to_owned() };
        settings.values.insert(knob, Some((*value).to_owned()));
    }
    settings
}

#[test]
fn windows_of_xp_are_whole_segments_of_the_adapters_mtu() {
    let hsdpa = ("1.8M", "230ms");
    let of = |mtu: &str| {
        let settings = xp(&[("MTU", mtu)]);
        let mut asked = request("windows-xp", hsdpa.0, hsdpa.1);
        asked.settings = Some(&settings);
        short(&plan_platform(&asked))[1].clone()
    };
    assert_eq!(of("1492"), "TcpWindowSize=65340"); // 45 x 1452
    assert_eq!(of("576"), "TcpWindowSize=65392"); // 122 x 536
    assert_eq!(of("1500"), "TcpWindowSize=64240");
}

#[test]
fn a_larger_window_of_xp_that_stays_is_not_bounded_by_the_maximum() {
    let plan = |values: &[(&str, &str)]| {
        let settings = xp(values);
        let mut asked = request("windows-xp", "1.8M", "230ms");
        asked.settings = Some(&settings);
        short(&plan_platform(&asked))
    };
    let large = [("TcpWindowSize", "256960"), ("Tcp1323Opts", "1"), ("GlobalMaxTcpWindowSize", "64240")];
    assert_eq!(plan(&large[..2]), [] as [&str; 0]);
    assert_eq!(plan(&large), ["GlobalMaxTcpWindowSize=256960"]);
    // Without scaling it comes down.
    assert_eq!(plan(&large[..1]), ["GlobalMaxTcpWindowSize=64240", "TcpWindowSize=64240"]);
}

#[test]
fn a_window_of_xp_that_fills_the_queue_of_a_slow_path_for_seconds_is_taken_away() {
    let plan = |values: &[(&str, &str)], rate: &str, rtt: &str| {
        let settings = xp(values);
        let mut asked = request("windows-xp", rate, rtt);
        asked.settings = Some(&settings);
        plan_platform(&asked)
    };
    let published = [("TcpWindowSize", "128480"), ("Tcp1323Opts", "1"), ("GlobalMaxTcpWindowSize", "128480")];
    let slow = plan(&published, "50k", "600ms");
    assert_eq!(short(&slow), ["GlobalMaxTcpWindowSize=", "TcpWindowSize="]);
    assert!(slow.changes[1].reason.contains("20.0 s"), "{:?}", slow.changes[1].reason);
    // A little more than the path takes stays, and so does what Windows takes by itself.
    assert_eq!(short(&plan(&published, "1.8M", "230ms")), [] as [&str; 0]);
    assert_eq!(short(&plan(&[("TcpWindowSize", "17520")], "9600", "1s")), [] as [&str; 0]);
    // Where the default does not fill the path, the window comes down to what does.
    assert_eq!(
        short(&plan(&[("TcpWindowSize", "1051200"), ("Tcp1323Opts", "1")], "1M", "150ms")),
        ["GlobalMaxTcpWindowSize=37960", "TcpWindowSize=37960"]
    );
}

#[test]
fn what_helps_on_every_path_is_planned_back_on() {
    let settings = xp(&[("SackOpts", "0"), ("EnablePMTUDiscovery", "0")]);
    let mut asked = request("windows-xp", "10M", "1ms");
    asked.settings = Some(&settings);
    assert_eq!(short(&plan_platform(&asked)), ["SackOpts=1", "EnablePMTUDiscovery=1"]);
    let mut settings = Settings { platform: "freebsd-14".parse().unwrap(), ..Settings::default() };
    for name in ["net.inet.tcp.sack.enable", "net.inet.tcp.path_mtu_discovery"] {
        settings.values.insert(Address::sysctl(name), Some("0".to_owned()));
    }
    let mut asked = request("freebsd-14", "10M", "1ms");
    asked.settings = Some(&settings);
    assert_eq!(short(&plan_platform(&asked)), ["net.inet.tcp.sack.enable=1", "net.inet.tcp.path_mtu_discovery=1"]);
}

#[test]
fn a_switch_that_is_off_is_told_in_the_same_words_by_a_plan_and_by_lint() {
    use crate::{lint, recipe::Kind};
    const TCPIP: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
    for (platform, knob, line, kind) in [
        ("linux-6.18", "net.ipv4.tcp_sack".to_owned(), "net.ipv4.tcp_sack = 0".to_owned(), Kind::Sysctl),
        ("freebsd-14.1", "net.inet.tcp.sack.enable".to_owned(), "net.inet.tcp.sack.enable=0".to_owned(), Kind::Sysctl),
        (
            "freebsd-14.1",
            "net.inet.tcp.recvbuf_auto".to_owned(),
            "net.inet.tcp.recvbuf_auto=0".to_owned(),
            Kind::Sysctl,
        ),
        ("macos", "net.inet.tcp.sack".to_owned(), "net.inet.tcp.sack=0".to_owned(), Kind::Sysctl),
        (
            "windows-xp",
            format!(r"registry {TCPIP}\SackOpts"),
            format!("reg add {TCPIP} /v SackOpts /t REG_DWORD /d 0 /f"),
            Kind::Batch,
        ),
        (
            "windows-xp",
            format!(r"registry {TCPIP}\EnablePMTUDiscovery"),
            format!("reg add {TCPIP} /v EnablePMTUDiscovery /t REG_DWORD /d 0 /f"),
            Kind::Batch,
        ),
    ] {
        let knob: Address = knob.parse().unwrap();
        let mut settings = Settings { platform: platform.parse().unwrap(), ..Settings::default() };
        settings.values.insert(knob.clone(), Some("0".to_owned()));
        let asked = PlatformRequest { settings: Some(&settings), ..request(platform, "10M", "20ms") };
        let plan = plan_platform(&asked);
        let change = plan.changes.iter().find(|change| change.knob == knob).expect(platform);
        assert_eq!(change.to.as_deref(), Some("1"), "{knob}");
        let judged = lint::LintRequest { platform: Some(platform.parse().unwrap()), ..lint::LintRequest::default() };
        let found = lint::lint(kind, &line, &judged);
        assert_eq!(found[0].message, change.reason, "{knob}");
        let row = Catalogue::for_family(asked.platform.family).unwrap().find(&knob).unwrap();
        assert_eq!(row.off.as_deref(), Some(change.reason.as_str()), "{knob}");
    }
}

#[test]
fn nothing_is_advised_that_a_version_does_not_have() {
    let mut settings = Settings { platform: "windows-2012".parse().unwrap(), ..Settings::default() };
    // What Get-NetTCPSetting tells on Server 2019.
    for (parameter, value) in [("DelayedAckFrequency", "16"), ("DelayedAckTimeoutMs", "200"), ("MinRtoMs", "20")] {
        settings.values.insert(Address::tcp_setting("Internet", parameter), Some(value.to_owned()));
    }
    let mut asked = request("windows-2012", "1G", "40ms");
    asked.settings = Some(&settings);
    let notes = plan_platform(&asked).notes.join("\n");
    assert!(!notes.contains("DelayedAckFrequency: acknowledges"), "{notes}");
    assert!(notes.contains("windows-2012 does not have (DelayedAckFrequency)"), "{notes}");
    // What it has is still advised, though only Custom can be changed.
    assert!(notes.contains("MinRtoMs: a least retransmission timeout of 20 ms"), "{notes}");
}

#[test]
fn server_2012_gets_the_level_and_is_told_what_the_registry_does_not_do() {
    let plan = plan_platform(&request("windows-2012", "100M", "80ms"));
    assert_eq!(short(&plan), ["autotuninglevel=normal", "SO_RCVBUF=2000000", "SO_SNDBUF=2000000"]);
    for words in ["TcpWindowSize", "New-NetTransportFilter -SettingName Custom", "SO_RCVBUF"] {
        assert!(says(&plan, words), "{words}");
    }
    insta::assert_json_snapshot!(plan);
}

fn templates(values: &[(&str, &str, &str)]) -> Settings {
    let mut settings = Settings::default();
    for (template, parameter, value) in values {
        let knob = Address::tcp_setting(template, parameter);
        settings.values.insert(knob, Some((*value).to_owned()));
    }
    settings
}

fn planned_on(platform: &str, path: (&str, &str), settings: &Settings) -> Plan {
    let mut asked = request(platform, path.0, path.1);
    (asked.settings, asked.peer) = (Some(settings), Some("192.0.2.0/24"));
    plan_platform(&asked)
}

#[test]
fn windows_nt_4_gets_the_largest_window_without_the_scaling_that_it_lacks() {
    let plan = plan_platform(&request("windows-nt4", "100M", "80ms"));
    assert_eq!(short(&plan), ["GlobalMaxTcpWindowSize=64240", "TcpWindowSize=64240"]);
    assert!(says(&plan, "does not support the window-scale option"), "{:?}", plan.notes);
    let plan = plan_platform(&request("windows-2000", "100M", "80ms"));
    assert_eq!(short(&plan)[0], "Tcp1323Opts=1");
}

#[test]
fn where_the_level_reads_normal_the_plan_looks_first_and_then_goes_on_to_the_template_and_the_socket() {
    let settings = templates(&[("Internet", "AutoTuningLevelLocal", "Normal"), ("Custom", "MinRtoMs", "300")]);
    let plan = planned_on("windows-2012", ("100M", "80ms"), &settings);
    assert_eq!(
        short(&plan),
        [
            "CongestionProvider=CTCP",
            "CwndRestart=False",
            "AutoTuningLevelLocal=Normal",
            "InitialCongestionWindowMss=10",
            "Custom=192.0.2.0/24",
            "SO_RCVBUF=2000000",
            "SO_SNDBUF=2000000"
        ]
    );
    for words in ["look first", "AutoTuningLevel*", "AppliedSetting", "scale 0"] {
        assert!(says(&plan, words), "{words}: {:?}", plan.notes);
    }
    assert!(plan.changes.iter().all(|change| change.reason.contains("step") && !change.undo.contains("<template>")));
    assert!(plan.changes.iter().skip(4).all(|change| change.reason.contains("it ends when")));
    // Where the level follows automatic sizing and the window is within an unscaled one, nothing of it is needed.
    assert_eq!(short(&planned_on("windows-2012", ("1M", "80ms"), &settings)), [] as [&str; 0]);
}

#[test]
fn steps_are_counted_from_one_and_each_has_its_command() {
    let steps = |plan: &Plan| -> Vec<String> {
        let number = |reason: &str| reason.strip_prefix("step ").and_then(|rest| rest.chars().next());
        plan.changes.iter().filter_map(|change| number(&change.reason)).map(String::from).collect()
    };
    let level = |value: &str| templates(&[("Internet", "AutoTuningLevelLocal", value)]);
    let normal = planned_on("windows-2012", ("100M", "80ms"), &level("Normal"));
    assert_eq!(steps(&normal).join(""), "11111122", "{:?}", short(&normal));
    let restricted = planned_on("windows-2012", ("100M", "80ms"), &level("HighlyRestricted"));
    assert!(steps(&restricted).join("").starts_with("122") && steps(&restricted).join("").ends_with("33"));
    // Without a peer there is no template, and the sockets follow the level.
    let mut asked = request("windows-2012", "100M", "80ms");
    asked.settings = None;
    assert_eq!(steps(&plan_platform(&asked)).join(""), "122");
    for change in &normal.changes {
        assert!(change.command().is_some(), "{}", change.knob);
    }
    let last = normal.changes.last().unwrap().command().unwrap();
    assert_eq!(last, "int size = 2000000; setsockopt(fd, SOL_SOCKET, SO_SNDBUF, (char *)&size, sizeof size);");
}

#[test]
fn a_peer_that_makes_no_difference_is_said_to_make_none() {
    let settings = templates(&[("Internet", "AutoTuningLevelLocal", "Normal")]);
    for platform in ["windows-2012-r2", "windows-2019", "windows-11"] {
        let plan = planned_on(platform, ("100M", "80ms"), &settings);
        assert!(says(&plan, "--peer 192.0.2.0/24 is not used"), "{platform}: {:?}", plan.notes);
        assert!(says(&plan, "New-NetTransportFilter -SettingName InternetCustom -DestinationPrefix 192.0.2.0/24"));
    }
    assert!(!says(&planned_on("windows-2012", ("100M", "80ms"), &settings), "is not used"));
}

#[test]
fn settings_of_another_version_are_named() {
    let newer = templates(&[
        ("Internet", "AutoTuningLevelLocal", "Normal"),
        ("Internet", "DelayedAckFrequency", "2"),
        ("Internet", "ForceWS", "Enabled"),
    ]);
    let plan = planned_on("windows-2012", ("100M", "80ms"), &newer);
    assert!(says(&plan, "windows-2012 does not have (DelayedAckFrequency, ForceWS)"), "{:?}", plan.notes);
    assert!(!says(&planned_on("windows-11", ("100M", "80ms"), &newer), "does not have"));
}

#[test]
fn a_memory_bound_that_two_buffers_share_is_explained() {
    let mut asked = request("freebsd-13.2", "1G", "80ms");
    asked.memory_bound = Some(Bytes::new(20_000_000));
    let plan = plan_platform(&asked);
    assert!(says(&plan, "is for both buffers of all connections: 10,000,000 B for receiving"), "{:?}", plan.notes);
}

#[test]
fn the_level_that_a_file_tells_is_what_a_plan_starts_from() {
    let settings = templates(&[("Internet", "AutoTuningLevelLocal", "Restricted")]);
    let plan = planned_on("windows-2022", ("1G", "80ms"), &settings);
    assert_eq!(plan.changes[0].from.as_deref(), Some("restricted"));
    assert!(plan.changes[0].undo.ends_with("autotuninglevel=restricted"), "{}", plan.changes[0].undo);
}

#[test]
fn a_level_of_group_policy_wins_and_no_local_one_is_planned_against_it() {
    let policy = [
        ("Internet", "AutoTuningLevelLocal", "Normal"),
        ("Internet", "AutoTuningLevelGroupPolicy", "Restricted"),
        ("Internet", "AutoTuningLevelEffective", "GroupPolicy"),
    ];
    for platform in ["windows-2012", "windows-2022", "windows-11"] {
        let plan = planned_on(platform, ("1G", "80ms"), &templates(&policy));
        // The policy first, then what a socket can do while it stands.
        let all = ["AutoTuningLevelGroupPolicy=NotConfigured", "SO_RCVBUF=20000000", "SO_SNDBUF=20000000"];
        assert_eq!(short(&plan), all, "{platform}");
        let [lifted, socket, _] = plan.changes.as_slice() else { panic!("{plan:?}") };
        assert_eq!((lifted.from.as_deref(), lifted.command()), (Some("Restricted"), None));
        assert_eq!(lifted.undo, "have the policy configured again, at Restricted");
        assert!(lifted.reason.contains("step 1") && lifted.reason.contains("gpresult"), "{}", lifted.reason);
        assert!(socket.reason.contains("step 2, while the policy stands"), "{}", socket.reason);
        assert!(plan.changes.iter().all(|change| change.reason.contains("it ends when")), "{plan:?}");
        assert!(says(&plan, "Group Policy sets the automatic tuning level to Restricted"), "{:?}", plan.notes);
        let export = crate::export::export(&plan, &platform.parse().unwrap(), None).unwrap();
        assert_eq!(export.left_out.len(), 3, "{:?}", export.left_out);
    }
    // A policy that is enough for the path stays, and one that the files don't tell is named.
    assert_eq!(short(&planned_on("windows-2022", ("10M", "80ms"), &templates(&policy))), [] as [&str; 0]);
    let untold = planned_on("windows-2022", ("1G", "80ms"), &templates(&policy[2..]));
    assert_eq!(short(&untold), [] as [&str; 0]);
    assert!(says(&untold, "a level that the files don't tell") && says(&untold, "gpresult"), "{:?}", untold.notes);
    let not_effective = [policy[0], policy[1], ("Internet", "AutoTuningLevelEffective", "Local")];
    let plan = planned_on("windows-2022", ("1G", "80ms"), &templates(&not_effective));
    assert!(!says(&plan, "gpresult") && says(&plan, "look first"), "{:?}", plan.notes);
}

#[test]
fn normal_is_said_to_be_too_little_only_where_the_path_holds_more() {
    let normal = templates(&[("Internet", "AutoTuningLevelLocal", "Normal")]);
    for (rate, too_little) in [("1G", false), ("1.6G", false), ("1.8G", true), ("10G", true)] {
        let plan = planned_on("windows-2022", (rate, "80ms"), &normal);
        assert_eq!(says(&plan, "use several connections"), too_little, "{rate}: {:?}", plan.notes);
    }
}

#[test]
fn no_level_is_said_to_keep_the_memory_bound_that_it_exceeds() {
    let mut asked = request("windows-2025", "10G", "1ms");
    asked.connections = Some(100);
    for (bound, words) in [
        (1_000_000, "no level keeps them below: even `disabled` gives 65,535 B x 100 = 6,553,500 B"),
        (30_000_000, "`highlyrestricted` keeps them below (262,140 B x 100 = 26,214,000 B)"),
        (120_000_000, "`restricted` keeps them below (1,048,560 B x 100 = 104,856,000 B)"),
    ] {
        asked.memory_bound = Some(Bytes::new(bound));
        let plan = plan_platform(&asked);
        assert!(plan.changes.is_empty() && says(&plan, words), "{words}: {:?}", plan.notes);
    }
}

#[test]
fn acknowledgements_that_were_tuned_away_are_planned_back_where_the_version_lets_them() {
    let settings = templates(&[
        ("Internet", "AutoTuningLevelLocal", "Normal"),
        ("Internet", "DelayedAckFrequency", "16"),
        ("Internet", "DelayedAckTimeoutMs", "200"),
        ("Internet", "InitialCongestionWindowMss", "4"),
        ("Internet", "CongestionProvider", "DCTCP"),
        ("Internet", "MinRtoMs", "20"),
    ]);
    let wan = ("1G", "40ms");
    let all = [
        "CongestionProvider=CUBIC",
        "DelayedAckFrequency=2",
        "DelayedAckTimeoutMs=40",
        "InitialCongestionWindowMss=10",
    ];
    let of = |platform: &str| short(&planned_on(platform, wan, &settings));
    for platform in ["windows-2019", "windows-2022", "windows-2025", "windows-11"] {
        assert_eq!(of(platform)[..4], all, "{platform}");
    }
    // Windows 10 lets only the frequency be changed; the rest is said, with the reset as the way out.
    assert_eq!(of("windows-10"), ["DelayedAckFrequency=2"]);
    let plan = planned_on("windows-10", wan, &settings);
    assert!(says(&plan, "DelayedAckTimeoutMs: a last or single segment") && says(&plan, "netsh interface tcp reset"));
    // A machine with its defaults needs nothing.
    let defaults = templates(&[
        ("Internet", "AutoTuningLevelLocal", "Normal"),
        ("Internet", "DelayedAckFrequency", "2"),
        ("Internet", "DelayedAckTimeoutMs", "40"),
        ("Datacenter", "DelayedAckTimeoutMs", "10"),
        ("Internet", "MinRtoMs", "300"),
        ("Datacenter", "MinRtoMs", "20"),
    ]);
    assert_eq!(short(&planned_on("windows-2019", wan, &defaults)), [] as [&str; 0]);
}

#[test]
fn offloads_that_are_off_are_planned_on_where_the_rate_needs_them() {
    let mut settings = templates(&[("Internet", "AutoTuningLevelLocal", "Normal")]);
    let rss = Address::Named { kind: "netoffload".to_owned(), name: "ReceiveSideScaling".to_owned() };
    settings.values.insert(rss, Some("Disabled".to_owned()));
    assert_eq!(short(&planned_on("windows-2019", ("10G", "1ms"), &settings)), ["ReceiveSideScaling=Enabled"]);
    assert_eq!(short(&planned_on("windows-2019", ("100M", "1ms"), &settings)), [] as [&str; 0]);
}

#[test]
fn offloads_of_one_adapter_are_judged_by_the_rate() {
    let mut settings = templates(&[("Internet", "AutoTuningLevelLocal", "Normal")]);
    for (property, value) in [("*RSS", "0"), ("*RscIPv4", "0"), ("*RscIPv6", "1"), ("*LsoV2IPv4", "0")] {
        let knob = Address::Link { device: "Ethernet 2".to_owned(), property: property.to_owned() };
        settings.values.insert(knob, Some(value.to_owned()));
    }
    for platform in ["windows-10", "windows-11", "windows-2019", "windows-2022", "windows-2025"] {
        let plan = planned_on(platform, ("10G", "1ms"), &settings);
        assert_eq!(short(&plan), ["*LsoV2IPv4=1", "*RSS=1", "*RscIPv4=1"], "{platform}");
        let undo = "Set-NetAdapterAdvancedProperty -Name \"Ethernet 2\" -RegistryKeyword \"*RSS\" -RegistryValue 0";
        assert_eq!(plan.changes[1].undo, undo);
    }
    let slow = planned_on("windows-2019", ("100M", "1ms"), &settings);
    assert_eq!(short(&slow), [] as [&str; 0]);
    assert!(says(&slow, "link Ethernet 2 *RSS is off"), "{:?}", slow.notes);
}

#[test]
fn what_an_older_template_left_is_planned_to_the_versions_own() {
    let settings = templates(&[
        ("Internet", "AutoTuningLevelLocal", "Normal"),
        ("Internet", "CongestionProvider", "CTCP"),
        ("Internet", "MemoryPressureProtection", "Disabled"),
        ("Datacenter", "CongestionProvider", "DCTCP"),
        ("Datacenter", "EcnCapability", "Disabled"),
    ]);
    let wan = ("1G", "40ms");
    let all = ["CongestionProvider=CUBIC", "CongestionProvider=CUBIC", "MemoryPressureProtection=Enabled"];
    for platform in ["windows-2019", "windows-2022", "windows-2025"] {
        assert_eq!(short(&planned_on(platform, wan, &settings)), all, "{platform}");
    }
    // No memory pressure protection is known to be a client's default; Windows 10 lets no provider be set.
    assert_eq!(short(&planned_on("windows-11", wan, &settings)), all[..2]);
    let client = planned_on("windows-10", wan, &settings);
    assert_eq!(short(&client), [] as [&str; 0]);
    assert!(says(&client, "CongestionProvider: the default of an older Windows"), "{:?}", client.notes);
    // CTCP is Server 2016's own.
    assert!(!short(&planned_on("windows-2016", wan, &settings)).contains(&all[0].to_owned()));
}

#[test]
fn a_level_of_the_datacenter_template_is_judged_by_the_paths_that_get_it() {
    let settings = templates(&[
        ("Internet", "AutoTuningLevelLocal", "Normal"),
        ("Datacenter", "AutoTuningLevelLocal", "Restricted"),
    ]);
    assert_eq!(short(&planned_on("windows-2019", ("10G", "1ms"), &settings)), ["AutoTuningLevelLocal=Normal"]);
    let enough = planned_on("windows-2019", ("1G", "1ms"), &settings);
    assert_eq!(short(&enough), [] as [&str; 0]);
    assert!(says(&enough, "Restricted: windows up to 1,048,560 B, enough for this path"), "{:?}", enough.notes);
    let long = planned_on("windows-2019", ("1G", "40ms"), &settings);
    assert_eq!(short(&long), [] as [&str; 0]);
    assert!(says(&long, "connections over this path get another template"), "{:?}", long.notes);
    // Where the memory does not allow for the window, no level is raised behind the bound's back.
    let mut asked = request("windows-2019", "10G", "1ms");
    (asked.settings, asked.memory_bound) = (Some(&settings), Some(Bytes::new(1_000_000)));
    assert_eq!(short(&plan_platform(&asked)), [] as [&str; 0]);
}

#[test]
fn a_window_of_one_adapter_is_raised_too_or_taken_away_where_it_would_be_ignored() {
    let mut settings = Settings::default();
    let key = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{0A1B}".to_owned();
    let adapter = Address::Registry { key, value: "TcpWindowSize".to_owned() };
    for (rate, now, to) in [
        ("1.8M", "17520", Some(Some("64240"))),
        ("1.8M", "128480", Some(Some("64240"))),
        ("1.8M", "64240", None),
        ("100M", "17520", Some(None)),
    ] {
        settings.values.insert(adapter.clone(), Some(now.to_owned()));
        let plan = planned_on("windows-xp", (rate, "230ms"), &settings);
        let change = plan.changes.iter().find(|change| change.knob == adapter);
        assert_eq!(change.map(|change| change.to.as_deref()), to, "{rate} {now}");
        assert!(change.is_none_or(|change| change.from.as_deref() == Some(now)));
    }
}

#[test]
fn a_window_that_needs_scaling_is_planned_down_where_scaling_is_off_and_the_path_needs_none() {
    let parameter = |value: &str| Address::Registry {
        key: r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters".to_owned(),
        value: value.to_owned(),
    };
    for (options, planned) in [(None, true), (Some("0"), true), (Some("1"), false), (Some("3"), false)] {
        let mut settings = Settings::default();
        settings.values.insert(parameter("TcpWindowSize"), Some("128480".to_owned()));
        settings.values.insert(parameter("Tcp1323Opts"), options.map(str::to_owned));
        let plan = planned_on("windows-xp", ("1.8M", "230ms"), &settings);
        let change = plan.changes.iter().find(|change| change.knob == parameter("TcpWindowSize"));
        assert_eq!(change.is_some(), planned, "{options:?}");
        assert!(change.is_none_or(|change| change.to.as_deref() == Some("64240")));
    }
}

#[test]
fn a_restricted_level_is_lifted_only_where_it_is_too_small() {
    let level: Address = "netsh tcp global autotuninglevel".parse().unwrap();
    let mut settings = Settings::default();
    settings.values.insert(level, Some("restricted".to_owned()));
    for (rate, changes) in [("10M", 0), ("200M", 1)] {
        let mut asked = request("windows-10", rate, "80ms");
        asked.settings = Some(&settings);
        let plan = plan_platform(&asked);
        assert_eq!(plan.changes.len(), changes, "{rate}");
        assert!(says(&plan, "read-only"));
    }
}

#[test]
fn freebsd_raises_maxsockbuf_before_the_buffers() {
    let plan = plan_platform(&request("freebsd-14.1", "1G", "80ms"));
    // 20,000,000 B for each buffer; 9/8 of it for the ceiling.
    assert_eq!(
        short(&plan),
        ["kern.ipc.maxsockbuf=22503424", "net.inet.tcp.recvbuf_max=20000768", "net.inet.tcp.sendbuf_max=20000768"]
    );
    assert!(says(&plan, "nmbclusters"));
}

#[test]
fn freebsd_4_8_has_fixed_spaces_and_wants_them_set() {
    let plan = plan_platform(&request("freebsd-4.8", "1G", "1ms"));
    assert_eq!(
        short(&plan),
        ["kern.ipc.maxsockbuf=286720", "net.inet.tcp.recvspace=253952", "net.inet.tcp.sendspace=253952"]
    );
    // Off by default before 5.2.
    assert!(!says(&plan, "inflight"));
}

/// What `netstat -m` tells: clusters in use and the most that there may be.
fn mbufs(in_use: u64, max: u64) -> Settings {
    let mbufs =
        crate::Mbufs { clusters_in_use: Some(in_use), clusters_max: Some(max), denied: Some(3), ..Default::default() };
    let mut settings = Settings { mbufs: Some(mbufs), ..Settings::default() };
    settings.values.insert(Address::sysctl("kern.ipc.nmbclusters"), Some(max.to_string()));
    settings
}

#[test]
fn freebsd_gets_the_clusters_that_its_buffers_need_before_the_buffers() {
    let mut asked = request("freebsd-6.2", "1G", "10ms");
    let few = mbufs(516, 30_720);
    asked.settings = Some(&few);
    let plan = plan_platform(&asked);
    // 2 x 2,502,656 B x 16 / 2,048 B = 39,104 clusters, and 516 in use.
    assert_eq!(short(&plan)[..2], ["kern.ipc.nmbclusters=39936", "kern.ipc.maxsockbuf=2818048"]);
    assert_eq!(plan.changes[0].takes_effect, TakesEffect::Restart);
    assert_eq!(plan.changes[0].from.as_deref(), Some("30720"));
    let words =
        "3 requests for buffers were denied since the machine started: clusters or the memory for them ran out (516 of";
    assert!(says(&plan, words), "{:?}", plan.notes);
    let full = mbufs(30_000, 30_720);
    asked.settings = Some(&full);
    assert!(says(&plan_platform(&asked), "were denied since the machine started: clusters have run out"));
    let many = mbufs(516, 40_000);
    asked.settings = Some(&many);
    let plan = plan_platform(&asked);
    assert!(!short(&plan).iter().any(|change| change.contains("nmbclusters")) && says(&plan, "= 40000 has them"));
}

#[test]
fn freebsd_gets_clusters_of_a_page_where_what_is_sent_lies_in_them() {
    let with = |platform: &str, clusters: u64, pages: u64| {
        let mut settings = mbufs(1_000, clusters);
        let known = settings.mbufs.as_mut().unwrap();
        (known.pages_max, known.pages_in_use, known.pages_denied) = (Some(pages), Some(100), Some(1042));
        let mut asked = request(platform, "10G", "20ms");
        asked.settings = Some(&settings);
        plan_platform(&asked)
    };
    let pools = |plan: &Plan| {
        let all = short(plan).into_iter().filter(|change| change.contains(".nmb"));
        all.collect::<Vec<_>>()
    };
    // 50,003,968 B x 16 / 4,096 B = 195,328 clusters of a page, and 100 are in use.
    let plan = with("freebsd-14.1", 4_000_000, 4_000);
    assert_eq!(pools(&plan), ["kern.ipc.nmbjumbop=195584"]);
    assert_eq!(plan.changes[0].takes_effect, TakesEffect::Restart);
    assert!(says(&plan, "kern.ipc.nmbclusters = 4000000 has them") && says(&plan, "1042 requests"), "{:?}", plan.notes);
    assert_eq!(pools(&with("freebsd-9.3", 4_000_000, 200_000)), [] as [&str; 0]);
    // Both in clusters of 2,048 B: 2 x 50,003,968 x 16 / 2,048 = 781,312, and 1,000 in use.
    assert_eq!(
        pools(&with("freebsd-14.1", 30_000, 4_000)),
        ["kern.ipc.nmbclusters=782336", "kern.ipc.nmbjumbop=195584"]
    );
    // 9.1 makes one half of the other at each start, and reads no line for it.
    assert_eq!(pools(&with("freebsd-9.1", 30_000, 15_000)), ["kern.ipc.nmbclusters=782336"]);
    let raised = with("freebsd-9.1", 1_000_000, 12_800);
    assert_eq!(pools(&raised), [] as [&str; 0]);
    assert!(says(&raised, "sysctl kern.ipc.nmbjumbop=195428"), "{:?}", raised.notes);
    // Before 7.0 everything lies in the small ones.
    assert_eq!(pools(&with("freebsd-6.2", 30_000, 1)), ["kern.ipc.nmbclusters=782336"]);
}

#[test]
fn freebsd_buffers_stay_within_the_clusters_that_the_memory_holds() {
    let mut settings = mbufs(0, 30_720);
    settings.machine.memory = Some(Bytes::new(64 << 20));
    let mut asked = request("freebsd-6.2", "1G", "10ms");
    asked.settings = Some(&settings);
    let plan = plan_platform(&asked);
    // Half of the memory holds 14,563 clusters with their mbufs: 932,032 B for each of 32 buffers, in whole pages.
    assert!(short(&plan).contains(&"net.inet.tcp.recvspace=929792".to_owned()), "{:?}", short(&plan));
    assert!(!short(&plan).iter().any(|change| change.contains("nmbclusters")));
    assert!(says(&plan, "half of the memory holds 14563"), "{:?}", plan.notes);
}

#[test]
fn the_interface_of_rc_conf_is_the_one_whose_mtu_is_planned() {
    let packets = packets(None, "16110", "1514,4088,9014", &["9216"]);
    let mtu = |value: &str| {
        let mut settings = Settings::default();
        settings.values.insert("link em0 mtu".parse().unwrap(), Some(value.to_owned()));
        let mut asked = request("freebsd-6.2", "1G", "1ms");
        (asked.packets, asked.settings) = (&packets, Some(&settings));
        plan_platform(&asked)
    };
    // 9014 is what drivers list, with the Ethernet header: one that sets it as the MTU sends 14 B too much.
    let plan = mtu("9014");
    let change = plan.changes.last().unwrap();
    assert_eq!((change.knob.to_string().as_str(), change.to.as_deref()), ("link em0 mtu", Some("9000")));
    assert_eq!(change.from.as_deref(), Some("9014"));
    assert!(change.arithmetic.contains("MSS 9000 - 40 = 8960 instead of 8974"), "{}", change.arithmetic);
    assert!(change.reason.contains("more than the path takes"), "{}", change.reason);
    assert!(says(&mtu("9000"), "link em0 mtu is 9000 already"));
}

#[test]
fn freebsd_with_room_for_the_path_is_left_alone() {
    let plan = plan_platform(&request("freebsd-14.1", "10M", "40ms"));
    assert_eq!(short(&plan), [] as [&str; 0]);
}

#[test]
fn macos_stops_at_its_own_ceiling() {
    let plan = plan_platform(&request("macos", "1G", "80ms"));
    assert_eq!(short(&plan), ["net.inet.tcp.autorcvbufmax=8388608", "net.inet.tcp.autosndbufmax=8388608"]);
    assert!(says(&plan, "several connections"));
}

#[test]
fn netburner_gets_the_counts_of_the_models_plateau_and_never_more_than_43() {
    let counts = |count: u32| ["Rx", "Tx", "Unack"].map(|list| format!("SetSocket{list}Buffers={count}"));
    for (rate, rtt, count) in [("100M", "500us", 20), ("25M", "9400us", 40), ("25M", "80ms", 43)] {
        let plan = plan_platform(&request("netburner", rate, rtt));
        assert_eq!(short(&plan), counts(count), "{rate} {rtt}");
        assert!(says(&plan, "of 256 buffers"), "{:?}", plan.notes);
    }
    assert!(says(&plan_platform(&request("netburner", "25M", "80ms")), "a window ends at 65,535 B"));
}

#[test]
fn netburner_sockets_together_leave_a_quarter_of_the_pool() {
    let mut asked = request("netburner", "25M", "80ms");
    for (connections, count) in [(1, Some(43)), (4, Some(14)), (8, Some(6)), (9, Some(5)), (12, None), (40, None)] {
        asked.connections = Some(connections);
        let plan = plan_platform(&asked);
        let found = plan.changes.first().map(|change| change.to.as_deref().unwrap().parse().unwrap());
        assert_eq!(found, count, "{connections}");
        assert!((3 * found.unwrap_or(0) + 5) * u64::from(connections) <= 192 || found.is_none());
    }
}

#[test]
fn what_a_netburners_pool_cannot_give_is_said_and_not_planned_below_the_range() {
    let mut asked = request("netburner", "25M", "80ms");
    asked.connections = Some(12);
    let plan = plan_platform(&asked);
    assert!(says(&plan, "12 connections with the least of 5 buffers in each list"), "{:?}", plan.notes);
    assert!(says(&plan, "20 x 12 = 240 of 256, 48 more than leave a quarter of them free"), "{:?}", plan.notes);
    assert!(says(&plan, "plan for 9 connections at most, or build with BUFFER_POOL_SIZE 320"), "{:?}", plan.notes);
    asked.connections = Some(40);
    assert!(says(&plan_platform(&asked), "544 more than there are: the pool can run dry"));
    // Whatever is planned, the lint has nothing against it.
    for connections in 1..=60 {
        asked.connections = Some(connections);
        let plan = plan_platform(&asked);
        let calls: Vec<String> = plan.changes.iter().filter_map(crate::Change::command).collect();
        let request = crate::lint::LintRequest {
            platform: Some("netburner".parse().unwrap()),
            path: None,
            ..crate::lint::LintRequest::default()
        };
        let found = crate::lint::lint(crate::recipe::Kind::Device, &calls.join("\n"), &request);
        assert!(found.iter().all(|finding| finding.level < crate::lint::Level::Warning), "{connections}: {found:?}");
    }
}

#[test]
fn the_buffers_for_packets_out_of_order_that_a_file_sets_count_in_a_netburners_pool() {
    let call = |name: &str| Address::Named { kind: "call".to_owned(), name: name.to_owned() };
    let out_of_order = call("SetOutOfOrderBuffers");
    for (connections, kept) in (1..=12).flat_map(|connections| [3, 8, 19, 42, 100].map(|kept| (connections, kept))) {
        let mut settings = Settings::default();
        settings.values.insert(out_of_order.clone(), Some(kept.to_string()));
        let mut asked = request("netburner", "25M", "9400us");
        (asked.settings, asked.connections) = (Some(&settings), Some(connections));
        let plan = plan_platform(&asked);
        let to = |knob: &Address| {
            let change = plan.changes.iter().find(|change| change.knob == *knob)?;
            change.to.as_deref().map(|to| to.parse::<u64>().unwrap())
        };
        let Some(packets) = to(&call("SetSocketRxBuffers")) else {
            assert!(connections > 9, "{connections} {kept}: {plan:?}");
            continue;
        };
        let late = to(&out_of_order).unwrap_or(kept);
        assert!((3 * packets + late) * u64::from(connections) <= 192, "{connections} x ({packets}, {late})");
        assert!(says(&plan, &format!("with {late} for packets out of order each")), "{:?}", plan.notes);
    }
    // The article's counts for five sockets: 3 x 11 + 19 of each would be 260 of 256.
    let mut settings = Settings::default();
    for (name, count) in [("SetSocketRxBuffers", "9"), ("SetOutOfOrderBuffers", "19")] {
        settings.values.insert(call(name), Some(count.to_owned()));
    }
    let mut asked = request("netburner", "25M", "9400us");
    (asked.settings, asked.connections) = (Some(&settings), Some(5));
    let plan = plan_platform(&asked);
    // What is there already is no change.
    assert_eq!(short(&plan), ["SetSocketTxBuffers=9", "SetSocketUnackBuffers=9", "SetOutOfOrderBuffers=8"]);
    assert!(says(&plan, "at most 175 of 256 buffers with 8"), "{:?}", plan.notes);
    // Without a file, what is advised for lossy networks fits, too.
    asked.settings = None;
    assert!(says(&plan_platform(&asked), "SetOutOfOrderBuffers(fd, 5): one less than the receive buffers would be 10"));
}

#[test]
fn a_netburner_is_planned_for_the_sockets_of_its_source() {
    let path = ("10M", "40ms");
    let read = |text: &str| {
        let reading = crate::reading::read("main.cpp", text.as_bytes()).unwrap();
        let settings = crate::reading::merge(&[reading], None).unwrap().settings;
        let mut asked = request("netburner", path.0, path.1);
        asked.settings = Some(&settings);
        plan_platform(&asked)
    };
    let plan = read(crate::lint::tests::FOUR_SOCKETS);
    // 4 x (3 x 14 + 5) = 188 of the 192 that three quarters of the pool are.
    assert_eq!(short(&plan), ["SetSocketRxBuffers=14", "SetSocketTxBuffers=14", "SetSocketUnackBuffers=14"]);
    assert!(says(&plan, "4 connections take at most 188 of 256 buffers"), "{:?}", plan.notes);
    // The last socket has what is planned, and the others don't.
    let last = read(&crate::lint::tests::FOUR_SOCKETS.replace("40", "14"));
    assert_eq!(short(&last), short(&plan));
    assert!(short(&read(&crate::lint::tests::FOUR_SOCKETS.replace("40", "14").replace("20", "14"))).is_empty());
}

#[test]
fn linux_is_planned_from_its_versions_defaults() {
    let old = plan_platform(&request("linux-5.15", "1G", "80ms"));
    assert_eq!(short(&old), ["net.ipv4.tcp_rmem=4096 131072 40042496", "net.ipv4.tcp_wmem=4096 16384 40042496"]);
    let why = "a maximum of 6,291,456 B limits the receive window to less than the bandwidth-delay product";
    assert_eq!(old.changes[0].reason, why);
    let fine = plan_platform(&request("linux-6.18", "100M", "40ms"));
    assert_eq!(short(&fine), [] as [&str; 0]);
    assert!(says(&fine, "nothing to set"));
}

#[test]
fn what_recovers_losses_is_turned_on_and_a_burst_is_bounded() {
    let settings = |platform: &str, values: &[(&str, &str)]| Settings {
        platform: platform.parse().unwrap(),
        values: values.iter().map(|(name, value)| (Address::sysctl(name), Some((*value).to_owned()))).collect(),
        ..Settings::default()
    };
    let plan = |settings: &Settings, rate: &str| {
        let asked = request(&settings.platform.to_string(), rate, "40ms");
        plan_platform(&PlatformRequest { settings: Some(settings), ..asked })
    };
    let ample = "4096 131072 134217728";
    let off = [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_rmem", ample),
        ("net.ipv4.tcp_wmem", ample),
    ];
    let linux = settings("linux-6.18", &off);
    assert_eq!(short(&plan(&linux, "100M")), ["net.ipv4.tcp_sack=1"]);
    assert_eq!(short(&plan(&linux, "1G")), ["net.ipv4.tcp_sack=1", "net.ipv4.tcp_timestamps=1"]);
    // Pages that were meant as bytes are no bound of this program's, and said to be one of the kernel's.
    let bytes = ("net.ipv4.tcp_mem", "4096 87380 67108864");
    let small = [bytes, ("net.ipv4.tcp_rmem", "4096 131072 262144"), ("net.ipv4.tcp_wmem", ample)];
    let small = plan(&settings("linux-6.18", &small), "1G");
    assert!(says(&small, "above its second value, 357,908,480 B for all sockets together"), "{:?}", small.notes);
    assert!(small.changes.iter().any(|change| change.knob == Address::sysctl("net.ipv4.tcp_rmem")), "{small:?}");
    let freebsd = settings("freebsd-14.1", &[("net.inet.tcp.abc_l_var", "44")]);
    assert!(short(&plan(&freebsd, "100M")).contains(&"net.inet.tcp.abc_l_var=2".to_owned()));
}

#[test]
fn buffers_that_are_not_known_are_not_said_to_be_large_enough() {
    let (rmem, wmem) = (Address::sysctl("net.ipv4.tcp_rmem"), Address::sysctl("net.ipv4.tcp_wmem"));
    let asked = request("linux-6.18", "100M", "80ms");
    let mut settings = Settings { platform: asked.platform.clone(), ..Settings::default() };
    settings.values.insert(rmem, Some("131072".into()));
    settings.values.insert(wmem, Some("4096 16384 4194304".into()));
    let plan = plan_platform(&PlatformRequest { settings: Some(&settings), ..asked });
    assert_eq!(short(&plan), [] as [&str; 0]);
    assert!(!says(&plan, "at least the bandwidth-delay product"), "{:?}", plan.notes);
    assert!(says(&plan, "net.ipv4.tcp_rmem could not be read"), "{:?}", plan.notes);
}

fn packets(device: Option<&str>, here: &str, peer: &str, hops: &[&str]) -> Packets {
    Packets {
        device: device.map(str::to_owned),
        here: Some(here.parse().unwrap()),
        peer: Some(peer.parse().unwrap()),
        hops: Some(hops.iter().map(|hop| hop.parse().unwrap()).collect()),
        ..Packets::default()
    }
}

#[test]
fn gigabit_jumbo_gets_the_window_first_and_then_the_common_mtu() {
    // The pair of the published test: one adapter's driver lists 4088 and 9014 only.
    let packets = packets(Some("em0"), "16110", "1514,4088,9014", &["9216"]);
    let mut asked = request("freebsd-6.2", "1G", "1ms");
    asked.packets = &packets;
    let plan = plan_platform(&asked);
    assert_eq!(
        short(&plan),
        ["kern.ipc.maxsockbuf=286720", "net.inet.tcp.recvspace=253952", "net.inet.tcp.sendspace=253952", "mtu=9000"]
    );
    for words in ["the window comes first", "kern.ipc.nmbjumbo9", "and not 16110", "ping -D -s 8972"] {
        assert!(says(&plan, words), "{words}: {:?}", plan.notes);
    }
    let mtu = plan.changes.last().unwrap();
    assert!(mtu.arithmetic.contains("9000 - 40 = 8960"), "{}", mtu.arithmetic);
    assert!(mtu.arithmetic.contains("72.3 us") && mtu.arithmetic.contains("12.3 us"), "{}", mtu.arithmetic);
    assert!(mtu.undo.starts_with("ifconfig em0 mtu"), "{}", mtu.undo);
}

#[test]
fn without_an_agreement_the_mtu_stays_and_the_plan_says_who_disagrees() {
    let silent = Packets { here: Some("9014".parse().unwrap()), ..Packets::default() };
    let no_hops = Packets { hops: None, ..packets(Some("em0"), "9014", "9014", &[]) };
    for (packets, words) in [
        (packets(Some("em0"), "9014", "9014", &["9216", "1500"]), "hop 2 takes no more than 1500 B"),
        (packets(Some("em0"), "9014", "1500", &["1518"]), "the other end and hop 1 takes no more"),
        (packets(Some("em0"), "1514,4088", "1514,9014", &[]), "no size above 1500 B is common"),
        (silent, "--peer-mtu"),
        (no_hops, "--hop-mtu"),
    ] {
        let mut asked = request("freebsd-14.1", "10M", "40ms");
        asked.packets = &packets;
        let plan = plan_platform(&asked);
        assert_eq!(short(&plan), [] as [&str; 0]);
        assert!(says(&plan, words), "{words}: {:?}", plan.notes);
    }
}

#[test]
fn windows_needs_the_driver_first_and_xp_the_device_manager() {
    let packets = packets(Some("Ethernet 2"), "1514,4088,9014", "9000", &["9216"]);
    let mut asked = request("windows-2025", "1G", "1ms");
    asked.packets = &packets;
    let plan = plan_platform(&asked);
    let mtu: Vec<String> = plan.changes.iter().skip(1).map(|change| change.knob.to_string()).collect();
    assert_eq!(mtu, ["link Ethernet 2 *JumboPacket", "link Ethernet 2 mtu"]);
    assert_eq!(short(&plan)[1..], ["*JumboPacket=9014", "mtu=9000"]);
    asked.platform = "windows-xp".parse().unwrap();
    let plan = plan_platform(&asked);
    assert!(short(&plan).contains(&"MTU=9000".to_owned()) && says(&plan, "Device Manager"), "{:?}", plan.notes);
    // Windows in whole segments of the larger size: 2 x 125,000 B is 28 of them.
    assert!(short(&plan).contains(&"TcpWindowSize=250880".to_owned()), "{:?}", short(&plan));
}

#[test]
fn an_interface_that_nobody_names_is_taken_from_the_settings_or_asked_for() {
    let packets = packets(None, "9000", "9000", &[]);
    let link = |device: &str| crate::Link { device: device.to_owned(), ..crate::Link::default() };
    let mut settings = Settings { platform: "linux-6.18".parse().unwrap(), ..Settings::default() };
    settings.links = vec![link("lo"), link("eth0")];
    let mut asked = request("linux-6.18", "1M", "1ms");
    (asked.packets, asked.settings) = (&packets, Some(&settings));
    assert_eq!(plan_platform(&asked).changes[0].knob.to_string(), "link eth0 mtu");
    let two = Settings { links: vec![link("eth0"), link("eth1")], ..settings.clone() };
    asked.settings = Some(&two);
    let plan = plan_platform(&asked);
    assert!(plan.changes.is_empty() && says(&plan, "--device"), "{plan:?}");
    let mut there = settings.clone();
    there.values.insert("link eth0 mtu".parse().unwrap(), Some("9000".to_owned()));
    asked.settings = Some(&there);
    let plan = plan_platform(&asked);
    assert!(plan.changes.is_empty() && says(&plan, "is 9000 already"), "{plan:?}");
}

#[test]
fn a_tunnel_costs_payload_and_makes_segments_smaller() {
    let packets = Packets { ipsec: Some(crate::Ipsec::AesCbcSha1), ..Packets::default() };
    let mut asked = request("windows-xp", "1.8M", "230ms");
    asked.packets = &packets;
    let plan = plan_platform(&asked);
    // 46 x 1398 is the most below 65,535 B.
    assert_eq!(short(&plan), ["GlobalMaxTcpWindowSize=64308", "TcpWindowSize=64308"]);
    for words in ["packets of up to 1438 B pass, an MSS of 1398", "--set-mss 1398", "4.2 %"] {
        assert!(says(&plan, words), "{words}: {:?}", plan.notes);
    }
    let packets = Packets { device: Some("ipsec0".to_owned()), overhead: 8, ..packets };
    let mut asked = request("linux-6.18", "1M", "1ms");
    asked.packets = &packets;
    let plan = plan_platform(&asked);
    assert_eq!(
        (plan.changes[0].knob.to_string(), short(&plan)),
        ("link ipsec0 mtu".to_owned(), vec!["mtu=1422".to_owned()])
    );
}

fn some_platform() -> impl Strategy<Value = String> {
    let all = Catalogue::all().flat_map(|catalogue| {
        let versions = if catalogue.order.is_empty() {
            vec!["4.8".to_owned(), "14.1".to_owned()]
        } else {
            catalogue.order.clone()
        };
        versions.into_iter().map(|version| format!("{}-{version}", catalogue.family))
    });
    proptest::sample::select(all.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn no_plan_for_a_platform_exceeds_its_memory_bound(
        platform in some_platform(),
        rate in 1_000_u64..100_000_000_000,
        rtt in 1_u64..2_000_000,
        bound in 0_u64..1 << 32,
        connections in 1_u32..100,
        bulk: bool,
    ) {
        let mut asked = request(&platform, "1M", "1ms");
        asked.rate = fullpipe_units::Rate::from_bps(rate);
        asked.rtt = fullpipe_units::Micros::new(rtt);
        asked.memory_bound = Some(Bytes::new(bound));
        asked.connections = Some(connections);
        asked.goal = if bulk { Goal::Bulk } else { Goal::Interactive };
        let plan = plan_platform(&asked);
        let cost: u64 = plan.changes.iter().filter_map(|change| change.memory_worst_case).map(Bytes::get).sum();
        prop_assert!(cost <= bound, "{cost} > {bound}: {:?}", short(&plan));
        prop_assert!(!(plan.changes.is_empty() && plan.notes.is_empty()), "a plan says something");
        for change in &plan.changes {
            prop_assert!(!change.reason.is_empty() && !change.source.is_empty());
            prop_assert!(!change.undo.contains("{from}"), "{}", change.undo);
        }
    }

    #[test]
    fn numbers_are_read_as_the_platforms_write_them(value: u32) {
        prop_assert_eq!(number(&value.to_string()), Some(u64::from(value)));
        prop_assert_eq!(number(&format!("{value:#x}")), Some(u64::from(value)));
        prop_assert_eq!(number(&format!("dword:{value:08x}")), Some(u64::from(value)));
    }
}

#[test]
fn scaling_heuristics_that_overrode_the_level_are_stopped_first() {
    let text = "TCP Global Parameters\n-----\nReceive Window Auto-Tuning Level    : highlyrestricted\n** The above autotuninglevel setting is the result of Windows Scaling heuristics\noverriding any local/policy configuration on at least one profile.\n";
    let read = crate::reading::read("show-global.txt", text.as_bytes()).unwrap();
    let settings = crate::reading::merge(&[read], Some(&"windows-7".parse().unwrap())).unwrap().settings;
    let planned = |platform: &str| short(&planned_on(platform, ("1G", "40ms"), &settings));
    assert_eq!(planned("windows-7")[..2], ["wsh=disabled", "autotuninglevel=normal"]);
    // They have no effect any more.
    assert_eq!(planned("windows-10")[0], "autotuninglevel=normal");
}

#[test]
fn offloads_that_the_registry_takes_away_are_given_back_where_the_path_is_fast() {
    let settings = xp(&[("DisableTaskOffload", "1")]);
    let planned = |rate: &str| short(&planned_on("windows-2019", (rate, "10ms"), &settings));
    assert!(planned("10G").contains(&"DisableTaskOffload=0".to_owned()), "{:?}", planned("10G"));
    assert!(!planned("10M").contains(&"DisableTaskOffload=0".to_owned()));
}
