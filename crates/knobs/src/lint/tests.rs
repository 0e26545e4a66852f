//! Published recipes, line by line.

use proptest::prelude::*;

use super::*;

pub(super) fn judged(kind: Kind, text: &str, platform: &str, path: Option<(&str, &str)>) -> Vec<(u32, Level, String)> {
    let request = LintRequest {
        platform: Some(platform.parse().unwrap()),
        path: path.map(|(rate, rtt)| (rate.parse().unwrap(), rtt.parse().unwrap())),
        ..LintRequest::default()
    };
    lint(kind, text, &request).into_iter().map(|finding| (finding.line, finding.level, finding.rule)).collect()
}

pub(super) fn checked(kind: Kind, line: &str, platform: &str) -> (Level, String) {
    let found = judged(kind, line, platform, None);
    let (_, level, rule) = found.into_iter().next().unwrap();
    (level, rule)
}

#[test]
fn what_is_dead_or_gone_on_linux_is_told_by_the_version() {
    use Level::{Error, Ok, Warning};
    for (line, platform, level, rule) in [
        ("net.ipv4.tcp_adv_win_scale = 2", "linux-5.15", Ok, "fine"),
        ("net.ipv4.tcp_adv_win_scale = 2", "linux-6.18", Warning, "does-nothing"),
        ("net.ipv4.tcp_fack = 1", "linux-6.18", Warning, "does-nothing"),
        ("net.ipv4.tcp_low_latency = 1", "linux-6.18", Warning, "does-nothing"),
        ("net.ipv4.tcp_tw_recycle = 1", "linux-4.9", Error, "harmful"),
        ("net.ipv4.tcp_tw_recycle = 1", "linux-6.18", Warning, "not-there"),
        ("net.ipv4.tcp_collapse_max_bytes = 6291456", "linux-6.18", Warning, "not-there"),
        ("net.ipv4.tcp_sack = 0", "linux-6.18", Error, "harmful"),
        ("net.ipv4.tcp_timestamps = 0", "linux-6.18", Warning, "harmful"),
        ("net.ipv4.tcp_window_scaling = 0", "linux-6.18", Error, "harmful"),
        ("net.ipv4.tcp_window_scaling = 1", "linux-6.18", Ok, "fine"),
        ("net.ipv4.tcp_rmem = 4096 131072 6291456", "linux-6.18", Ok, "fine"),
        ("net.ipv4.tcp_rmem = 10000000 10000000 10000000", "linux-6.18", Warning, "large-initial"),
        ("net.ipv4.tcp_rmem = 4096 6291456 131072", "linux-6.18", Error, "not-ascending"),
        ("net.ipv4.tcp_rmem = 16M", "linux-6.18", Error, "malformed"),
        ("net.ipv4.tcp_available_congestion_control = bbr", "linux-6.18", Error, "read-only"),
    ] {
        assert_eq!(checked(Kind::Sysctl, line, platform), (level, rule.to_owned()), "{line} on {platform}");
    }
}

#[test]
fn tcp_mem_in_bytes_is_noticed() {
    for (value, rule) in [
        ("10000000 10000000 10000000", "wrong-unit"),
        ("4096 87380 33554432", "wrong-unit"),
        ("8388608 8388608 8388608", "wrong-unit"),
        ("93642 124857 187284", "machine-wide"),
        ("287901 383869 575802", "machine-wide"),
    ] {
        let line = format!("net.ipv4.tcp_mem = {value}");
        assert_eq!(checked(Kind::Sysctl, &line, "linux-6.18").1, rule, "{value}");
    }
}

#[test]
fn a_buffer_is_judged_by_the_path() {
    let line = "net.ipv4.tcp_rmem = 4096 131072 1048576";
    let rules = |rate, rtt| judged(Kind::Sysctl, line, "linux-6.18", Some((rate, rtt))).remove(0).2;
    assert_eq!(rules("100M", "80ms"), "too-small");
    assert_eq!(rules("10M", "20ms"), "fine");
}

#[test]
fn a_value_that_no_system_takes_is_found() {
    for line in ["net.core.rmem_max = banana", "net.ipv4.tcp_window_scaling = yes", "net.core.somaxconn = 1.5"] {
        assert_eq!(checked(Kind::Sysctl, line, "linux-6.18"), (Level::Error, "out-of-range".to_owned()), "{line}");
    }
    let line = "netsh int tcp set global rss=banana";
    assert_eq!(checked(Kind::Batch, line, "windows-10"), (Level::Error, "out-of-range".to_owned()));
}

#[test]
fn lines_that_fight_are_told_apart_from_repeated_ones() {
    let text = "net.ipv4.tcp_sack = 1\nnet.ipv4.tcp_sack = 1\nnet.ipv4.tcp_sack = 0\n";
    let found = judged(Kind::Sysctl, text, "linux-6.18", None);
    assert!(found.contains(&(2, Level::Note, "set-twice".to_owned())));
    assert!(found.contains(&(3, Level::Warning, "conflicts-with".to_owned())));
}

#[test]
fn windows_advice_is_told_by_the_version() {
    use Level::{Error, Note, Ok, Warning};
    for (line, platform, level, rule) in [
        ("netsh int tcp set global autotuninglevel=disabled", "windows-10", Error, "harmful"),
        ("netsh int tcp set global autotuninglevel=restricted", "windows-2012", Error, "harmful"),
        ("netsh int tcp set global autotuninglevel=normal", "windows-10", Ok, "fine"),
        ("netsh int tcp set global chimney=enabled", "windows-2019", Warning, "does-nothing"),
        ("netsh int tcp set global rss=disabled", "windows-10", Error, "harmful"),
        ("netsh int tcp set global rsc=disabled", "windows-2019", Warning, "harmful"),
        ("netsh int tcp set globl rss=disabled", "windows-2019", Warning, "misspelt"),
        ("netsh int tcp set supplemental internt congestionprovider=cubic", "windows-2019", Error, "misspelt"),
        ("netsh int tcp set supplemental web congestionprovider=cubic", "windows-2019", Error, "no-template"),
        ("netsh int tcp set supplemental internet congestionprovider=bbr", "windows-2019", Error, "no-provider"),
        ("netsh int tcp set supplemental internet congestionprovider=bbr2", "windows-2019", Error, "no-provider"),
        ("netsh int tcp set supplemental internet congestionprovider=bbr2", "windows-11", Warning, "harmful"),
        ("netsh int tcp set supplemental custom congestionprovider=cubic", "windows-2012", Error, "no-provider"),
        ("netsh int tcp set supplemental internet congestionprovider=cubic", "windows-2019", Ok, "fine"),
        ("netsh int tcp set heuristics disabled", "windows-10", Warning, "does-nothing"),
        ("netsh int tcp set heuristics disabled", "windows-7", Ok, "fine"),
        ("netsh int tcp set supplemental internet congestionprovider=dctcp", "windows-2019", Error, "harmful"),
        ("netsh int tcp set supplemental internet congestionprovider=ctcp", "windows-2019", Warning, "outdated"),
        ("netsh int tcp set supplemental internet congestionprovider=ctcp", "windows-10", Error, "read-only"),
        ("netsh int tcp set supplemental internet icw=10", "windows-2012", Error, "read-only"),
        ("netsh int tcp set supplemental custom icw=10", "windows-2012", Note, "needs-filter"),
        ("netsh int tcp set supplemental internet icw=5", "windows-2019", Error, "out-of-range"),
        ("netsh int ip reset", "windows-10", Warning, "reset-is-no-undo"),
        ("netsh int tcp set global dca=enabled", "windows-11", Warning, "does-nothing"),
        ("netsh int tcp set global netdma=enabled", "windows-8", Warning, "does-nothing"),
        ("netsh int tcp set global netdma=enabled", "windows-2008-r2", Ok, "fine"),
        ("netsh int tcp set global netdma=enabled chimney=enabled", "windows-7", Warning, "conflicts-with"),
        ("netsh int tcp set global netdma=enabled", "windows-xp", Warning, "not-there"),
        ("netsh int ip set global taskoffload=disabled", "windows-10", Warning, "harmful"),
    ] {
        assert_eq!(checked(Kind::Batch, line, platform), (level, rule.to_owned()), "{line} on {platform}");
    }
}

#[test]
fn registry_values_of_tweak_collections_are_told_by_their_version_and_place() {
    use Level::{Note, Ok, Warning};
    const TCP: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
    let adapter = format!(r"{TCP}\Interfaces\{{8F6B1C1A-1111-4000-8000-00AA00389B71}}");
    let shaper = r"HKLM\SOFTWARE\Policies\Microsoft\Windows\Psched";
    for (key, value, platform, level, rule) in [
        (TCP, "EnableTCPA", "windows-10", Warning, "does-nothing"),
        (TCP, "EnableTCPA", "windows-2008", Ok, "fine"),
        (TCP, "EnableTCPChimney", "windows-2003", Ok, "fine"),
        (TCP, "EnableRSS", "windows-7", Note, "not-documented"),
        (TCP, "EnableRSS", "windows-xp", Warning, "not-there"),
        (TCP, "DisableTaskOffload", "windows-11", Warning, "harmful"),
        (shaper, "NonBestEffortLimit", "windows-11", Note, "does-nothing"),
        (TCP, "TcpAckFrequency", "windows-11", Warning, "wrong-place"),
        (&adapter, "TcpAckFrequency", "windows-11", Note, "copied-advice"),
        (&adapter, "KeepAliveTime", "windows-11", Warning, "wrong-place"),
        (TCP, "SomethingElse", "windows-11", Note, "unknown-setting"),
        (r"HKLM\SOFTWARE\Vendor", "MTU", "windows-11", Note, "unknown-setting"),
    ] {
        let line = format!("reg add \"{key}\" /v {value} /t REG_DWORD /d 1 /f");
        assert_eq!(checked(Kind::Batch, &line, platform), (level, rule.to_owned()), "{line} on {platform}");
    }
}

#[test]
fn the_published_registry_file_does_nothing_on_server_2012_and_needs_care_on_xp() {
    let text = "Windows Registry Editor Version 5.00\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\n\"TcpWindowSize\"=dword:0001f5e0\n\"GlobalMaxTcpWindowSize\"=dword:0001f5e0\n";
    let on = |platform: &str| -> Vec<String> {
        judged(Kind::Registry, text, platform, None).into_iter().map(|(.., rule)| rule).collect()
    };
    assert_eq!(on("windows-2012"), ["does-nothing", "does-nothing"]);
    // 128,480 = 88 x 1460 is above 65,535 B, and the file leaves Tcp1323Opts out.
    assert_eq!(on("windows-xp"), ["needs-scaling", "needs-scaling"]);
}

#[test]
fn frames_and_mtus_are_told_apart() {
    let jumbo = "Set-NetAdapterAdvancedProperty -Name Ethernet -RegistryKeyword *JumboPacket -RegistryValue";
    for (line, rule) in [
        (format!("{jumbo} 9014"), "all-must-agree"),
        (format!("{jumbo} 9000"), "frame-for-mtu"),
        (format!("{jumbo} 1514"), "fine"),
        ("Set-NetIPInterface -InterfaceAlias Ethernet -NlMtuBytes 9014".to_owned(), "frame-for-mtu"),
        ("Set-NetIPInterface -InterfaceAlias Ethernet -NlMtuBytes 9000".to_owned(), "all-must-agree"),
        ("Set-NetIPInterface -InterfaceAlias Ethernet -NlMtuBytes 1500".to_owned(), "fine"),
    ] {
        assert_eq!(checked(Kind::PowerShell, &line, "windows-2025").1, rule, "{line}");
    }
}

#[test]
fn what_harms_is_told_although_nobody_says_whether_it_acts() {
    let line = "Set-NetTCPSetting -SettingName Internet -CongestionProvider DCTCP";
    let rules: Vec<String> =
        judged(Kind::PowerShell, line, "windows-11", None).into_iter().map(|(.., rule)| rule).collect();
    assert_eq!(rules, ["harmful", "not-documented"]);
}

#[test]
fn a_text_where_windows_reads_a_number_does_nothing() {
    let key = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
    for (line, rule) in [
        // Without /t, reg.exe makes a text.
        (format!("reg add {key} /v TcpWindowSize /d 64240 /f"), "wrong-type"),
        (format!("reg add {key} /v TcpWindowSize /t REG_SZ /d 64240 /f"), "wrong-type"),
        (format!("reg add {key} /v TcpWindowSize /t REG_DWORD /d 64240 /f"), "fine"),
        (format!("reg add {key} /v TcpWindowSize /t REG_DWORD /d 0xfaf0 /f"), "fine"),
    ] {
        assert_eq!(checked(Kind::Batch, &line, "windows-xp").1, rule, "{line}");
    }
    let text = format!("REGEDIT4\n[{key}]\n\"Tcp1323Opts\"=\"1\"\n");
    assert_eq!(judged(Kind::Registry, &text, "windows-xp", None)[0].2, "wrong-type");
}

#[test]
fn packets_that_routers_must_cut_harm_on_freebsd() {
    let finding = checked(Kind::Sysctl, "net.inet.tcp.path_mtu_discovery=0", "freebsd-14.1");
    assert_eq!(finding, (Level::Error, "harmful".to_owned()));
}

#[test]
fn freebsd_spaces_above_the_ceiling_are_an_error() {
    let text = "kern.ipc.maxsockbuf=262144\nnet.inet.tcp.recvspace=262144\nnet.inet.tcp.inflight.enable=0\n";
    let found = judged(Kind::Sysctl, text, "freebsd-14.1", None);
    assert!(found.contains(&(2, Level::Error, "conflicts-with".to_owned())), "{found:?}");
    // Which release took it out nobody could confirm: a note and no warning.
    assert!(found.contains(&(3, Level::Note, "not-there".to_owned())), "{found:?}");
    let text = "kern.ipc.maxsockbuf=1048576\nnet.inet.tcp.recvspace=262144\n";
    assert!(judged(Kind::Sysctl, text, "freebsd-14.1", None).iter().all(|(_, level, _)| *level == Level::Ok));
}

#[test]
fn without_a_platform_the_newest_of_the_files_own_family_counts() {
    let findings = lint(Kind::Sysctl, "net.inet.tcp.sack.enable=0\n", &LintRequest::default());
    let rules: Vec<&str> = findings.iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(rules, ["platform-assumed", "harmful"]);
    assert!(findings[0].message.starts_with("checked against the newest FreeBSD;"));
}

#[test]
fn a_line_that_cannot_be_read_is_an_error_with_its_place() {
    let found = lint(Kind::Sysctl, "\nnet.ipv4.tcp_sack 0\n", &LintRequest::default());
    assert_eq!((found[0].line, found[0].level, found[0].rule.as_str()), (2, Level::Error, "syntax"));
}

#[test]
fn a_copied_sysctl_recipe_is_judged_line_by_line() {
    let text = "\
net.core.rmem_max = 16777216
net.ipv4.tcp_rmem = 4096 87380 16777216
net.ipv4.tcp_wmem = 4096 65536 16777216
net.core.netdev_max_backlog = 250000
net.ipv4.tcp_no_metrics_save = 1
net.ipv4.tcp_timestamps = 0
net.ipv4.tcp_mem = 4096 87380 33554432
net.ipv4.tcp_tw_recycle = 1
net.ipv4.tcp_congestion_control = cubic
";
    let request = LintRequest { platform: Some("linux-6.18".parse().unwrap()), path: None, ..LintRequest::default() };
    insta::assert_json_snapshot!(lint(Kind::Sysctl, text, &request));
}

proptest! {
    #[test]
    fn each_line_that_sets_something_gets_a_finding_and_none_a_control_character(
        lines in proptest::collection::vec("(net\\.ipv4\\.tcp_(rmem|wmem|mem|sack|fack|x)|net\\.core\\.rmem_max) ?= ?[0-9 a\u{1b}]{0,20}", 0..8),
    ) {
        let text = lines.join("\n");
        let findings = lint(Kind::Sysctl, &text, &LintRequest::default());
        for number in 1..=u32::try_from(lines.len()).unwrap() {
            prop_assert!(findings.iter().any(|finding| finding.line == number));
        }
        prop_assert!(findings.iter().all(|finding| !finding.message.contains(char::is_control)));
    }
}

#[test]
fn clusters_of_a_page_are_a_setting_of_freebsd() {
    for platform in ["freebsd-9.3", "freebsd-14.1"] {
        assert_eq!(checked(Kind::Sysctl, "kern.ipc.nmbjumbop=262144", platform), (Level::Ok, "fine".to_owned()));
    }
}

#[test]
fn settings_of_freebsd_are_there_from_their_release_on() {
    for (line, before, since) in [
        ("net.inet.tcp.tso=1", ["freebsd-4.8", "freebsd-6.2"], "freebsd-7.0"),
        ("net.inet.tcp.cc.algorithm=newreno", ["freebsd-4.8", "freebsd-8.2"], "freebsd-8.3"),
        ("net.inet.tcp.functions_default=rack", ["freebsd-6.2", "freebsd-10.4"], "freebsd-13.0"),
        ("net.inet.tcp.initcwnd_segments=10", ["freebsd-4.8", "freebsd-10.4"], "freebsd-13.0"),
        ("net.inet.tcp.rfc3390=1", ["freebsd-4.8", "freebsd-5.0"], "freebsd-5.3"),
        ("net.inet.tcp.hostcache.expire=3600", ["freebsd-4.8", "freebsd-5.1"], "freebsd-5.2"),
        ("net.inet.tcp.pmtud_blackhole_detection=1", ["freebsd-6.2", "freebsd-9.3"], "freebsd-10.4"),
        ("net.inet.tcp.abc_l_var=2", ["freebsd-4.8", "freebsd-6.2"], "freebsd-8.1"),
    ] {
        for platform in before {
            assert_eq!(checked(Kind::Sysctl, line, platform), (Level::Warning, "not-there".to_owned()), "{line}");
        }
        assert_eq!(checked(Kind::Sysctl, line, since).0, Level::Ok, "{line}");
    }
    let gone = checked(Kind::Sysctl, "net.inet.ip.check_interface = 0", "freebsd-14.1");
    assert_eq!(gone, (Level::Warning, "not-there".to_owned()));
}

#[test]
fn where_freebsd_sizes_buffers_by_itself_a_space_is_only_their_beginning() {
    let path = Some(("10G", "20ms"));
    let of = |text: &str, platform: &str| {
        let found = judged(Kind::Sysctl, text, platform, path);
        found.into_iter().any(|(line, _, rule)| line == 1 && rule == "too-small")
    };
    for name in ["net.inet.tcp.sendspace", "net.inet.tcp.recvspace"] {
        let line = format!("{name}=131072\n");
        assert!(!of(&line, "freebsd-14.1") && of(&line, "freebsd-6.2"), "{name}");
        let switch = name.replace("space", "buf_auto");
        assert!(of(&format!("{line}{switch}=0\n"), "freebsd-14.1"), "{switch}");
    }
}

#[test]
fn a_line_of_loader_conf_does_something_only_for_tunables() {
    let judged = |line: &str, platform: &str| checked(Kind::Shell, line, platform).1;
    for name in ["net.inet.tcp.recvspace", "net.inet.tcp.sendbuf_max", "kern.ipc.maxsockbuf"] {
        assert_eq!(judged(&format!("{name}=\"262144\""), "freebsd-10.4"), "no-tunable", "{name}");
        assert_ne!(judged(&format!("{name}=\"262144\""), "freebsd-14.1"), "no-tunable", "{name}");
        assert_ne!(checked(Kind::Sysctl, &format!("{name}=262144"), "freebsd-10.4").1, "no-tunable", "{name}");
    }
    for (line, platform, rule) in [
        ("kern.ipc.nmbclusters=\"65536\"", "freebsd-4.8", "fine"),
        ("kern.ipc.nmbjumbop=\"65536\"", "freebsd-9.1", "no-tunable"),
        ("kern.ipc.nmbjumbop=\"65536\"", "freebsd-9.3", "fine"),
        ("net.inet.tcp.sack.enable=\"1\"", "freebsd-10.4", "fine"),
        ("kern.ipc.nmbclusters=\"65536\"", "freebsd-14.1", "fine"),
        // rc.conf's own name for net.inet.tcp.rfc1323.
        ("tcp_extensions=\"YES\"", "freebsd-4.8", "fine"),
    ] {
        assert_eq!(judged(line, platform), rule, "{line} {platform}");
    }
    // The other way round: before 7.0 a write comes too late for a pool.
    for (platform, rule) in
        [("freebsd-4.8", "only-at-start"), ("freebsd-6.2", "only-at-start"), ("freebsd-8.1", "fine")]
    {
        assert_eq!(checked(Kind::Sysctl, "kern.ipc.nmbclusters=65536", platform).1, rule, "{platform}");
    }
}

#[test]
fn blanks_around_an_equals_sign_are_judged_as_the_version_reads_them() {
    use Level::{Error, Ok};
    for (line, platform, level, rule) in [
        ("net.inet.tcp.recvspace = 65536", "freebsd-4.8", Error, "blanks"),
        ("net.inet.tcp.recvspace= 65536", "freebsd-6.2", Error, "blanks"),
        ("net.inet.tcp.recvspace =65536", "freebsd-9.3", Error, "blanks"),
        ("net.inet.ip.forwarding = 1", "freebsd-6.2", Error, "blanks"),
        ("net.inet.tcp.recvspace=65536 # x = y", "freebsd-6.2", Ok, "fine"),
        ("net.inet.tcp.recvspace=\"65536\"", "freebsd-6.2", Error, "blanks"),
        ("net.inet.tcp.recvspace=\"65536\"", "freebsd-14.1", Ok, "fine"),
        ("net.inet.tcp.recvspace = 65536", "freebsd-10.4", Ok, "fine"),
        ("net.inet.tcp.recvspace = 65536", "freebsd-14.1", Ok, "fine"),
        ("net.ipv4.tcp_sack = 1", "linux-6.18", Ok, "fine"),
    ] {
        assert_eq!(checked(Kind::Sysctl, line, platform), (level, rule.to_owned()), "{line} {platform}");
    }
    // A file that a script writes is read in the same way.
    let script = "cat > /etc/sysctl.conf <<E\nnet.inet.tcp.recvspace = 65536\nE\n";
    assert_eq!(checked(Kind::Script, script, "freebsd-6.2").1, "blanks");
    for (line, platform, level, rule) in [
        ("kern.ipc.nmbclusters = \"40000\"", "freebsd-6.2", Ok, "fine"),
        ("kern.ipc.nmbclusters = \"40000\"", "freebsd-14.1", Ok, "fine"),
        ("kern.ipc.nmbclusters='40000'", "freebsd-14.1", Error, "syntax"),
        ("ifconfig_em0 = \"mtu 9000\"", "freebsd-14.1", Error, "syntax"),
    ] {
        assert_eq!(checked(Kind::Shell, line, platform), (level, rule.to_owned()), "{line} {platform}");
    }
}

#[test]
fn the_limiter_of_data_in_flight_is_judged_as_the_planner_does() {
    use crate::{PlatformRequest, Settings, plan_platform};
    let knob = "net.inet.tcp.inflight_enable";
    for (platform, rtt) in
        [("freebsd-4.8", "20ms"), ("freebsd-4.8", "1ms"), ("freebsd-5.2", "20ms"), ("freebsd-5.2", "1ms")]
    {
        let path = ("1G".parse().unwrap(), rtt.parse().unwrap());
        let request =
            LintRequest { platform: Some(platform.parse().unwrap()), path: Some(path), ..LintRequest::default() };
        let found = lint(Kind::Sysctl, &format!("{knob}=1\n"), &request);
        let mut settings = Settings { platform: platform.parse().unwrap(), ..Settings::default() };
        settings.values.insert(Address::sysctl(knob), Some("1".to_owned()));
        let plan = plan_platform(&PlatformRequest {
            settings: Some(&settings),
            ..PlatformRequest::new(platform.parse().unwrap(), path.0, path.1)
        });
        let turned_off = plan.changes.iter().any(|change| change.knob == Address::sysctl(knob));
        assert_eq!(found[0].level == Level::Warning, turned_off, "{platform} {rtt}");
        assert_eq!(turned_off, rtt == "1ms", "{platform}");
    }
    // Without a path nobody knows.
    assert_eq!(checked(Kind::Sysctl, &format!("{knob}=1"), "freebsd-4.8").0, Level::Note);
}

#[test]
fn the_window_of_a_route_clamps() {
    let path = Some(("100M", "80ms"));
    let judged = |value: &str, path| {
        judged(Kind::Script, &format!("ip route change default via 10.0.0.1 window {value}"), "linux-6.18", path)
    };
    let is = |value: &str, path, level, rule: &str| {
        let found = judged(value, path);
        assert!(found.iter().any(|(_, l, r)| (*l, r.as_str()) == (level, rule)), "{value}: {found:?}");
    };
    is("65535", None, Level::Warning, "harmful");
    is("65535", path, Level::Warning, "too-small");
    is("4194304", path, Level::Note, "clamps-window");
    // As large as the path needs, and no need of scaling.
    is("65535", Some(("1M", "80ms")), Level::Note, "clamps-window");
    is("0", path, Level::Ok, "fine");
}

fn device(text: &str) -> Vec<(u32, Level, String)> {
    let found = judged(Kind::Device, text, "netburner", None);
    found.into_iter().filter(|(_, level, _)| *level >= Level::Warning).collect()
}

#[test]
fn a_misspelt_call_of_a_device_gets_the_name_that_was_meant() {
    let text = "#include <tcp.h>\nvoid f(int fd) {\n  SetSocketUnackBufers(fd, 20);\n  // SetSocketRxBufers(fd, 1);\n  MySetSocket(fd);\n}\n";
    assert_eq!(Kind::from_file("main.cpp", text), Some(Kind::Device));
    let request = LintRequest { platform: Some("netburner".parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(Kind::Device, text, &request);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].line, found[0].level), (3, Level::Error));
    assert!(found[0].message.contains("did you mean SetSocketUnackBuffers?"), "{}", found[0].message);
}

#[test]
fn buffers_of_sockets_in_a_loop_are_counted_against_the_pool() {
    let rule = |text: &str| device(text).into_iter().map(|(line, _, rule)| (line, rule)).collect::<Vec<_>>();
    let dry = |line: u32| vec![(line, "pool-runs-dry".to_owned())];
    let body =
        "{\n  int fd = connect(a, 0, 80, 100);\n  SetSocketRxBuffers(fd, 20);\n  SetSocketTxBuffers(fd, 5);\n}\n";
    // 20 + 5 + 5 + 5 = 35 of 256 for each.
    assert_eq!(rule(&format!("#define PEERS 8\nfor (int i = 0; i < PEERS; i++) {body}")), dry(4));
    assert_eq!(rule(&format!("for (int i = 0; i < 5; i++) {body}")), []);
    assert_eq!(rule(&format!("while (1)\n{body}")), dry(4));
    assert_eq!(rule(body), []);
    assert_eq!(rule("for (;;) // forever\n  wait();\nSetSocketRxBuffers(fd, 20);\n"), []);
    assert_eq!(rule("/* while (1) { */\nSetSocketRxBuffers(fd, 20);\n"), []);
    let request = LintRequest { platform: Some("netburner".parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(Kind::Device, &format!("while (1)\n{body}"), &request);
    assert!(found.iter().any(|finding| finding.message.contains("so 8 of them run it dry")), "{found:?}");
}

/// Four sockets: 3 x (20 + 20 + 20 + 5) + (40 + 40 + 40 + 5).
pub(crate) const FOUR_SOCKETS: &str = "SetSocketRxBuffers(a, 20); SetSocketTxBuffers(a, 20); SetSocketUnackBuffers(a, 20);\nSetSocketRxBuffers(b, 20); SetSocketTxBuffers(b, 20); SetSocketUnackBuffers(b, 20);\nSetSocketRxBuffers(c, 20); SetSocketTxBuffers(c, 20); SetSocketUnackBuffers(c, 20);\nSetSocketRxBuffers(d, 40); SetSocketTxBuffers(d, 40); SetSocketUnackBuffers(d, 40);\n";

#[test]
fn the_sockets_of_a_source_are_counted_together_against_the_pool() {
    let dry = (4, Level::Warning, "pool-runs-dry".to_owned());
    assert_eq!(device(FOUR_SOCKETS), [dry]);
    let words = messages(Kind::Device, FOUR_SOCKETS, "netburner").concat();
    assert!(words.contains("the 4 sockets of this source can take 320 buffers together"), "{words}");
    assert_eq!(device(&format!("#define BUFFER_POOL_SIZE 427\n{FOUR_SOCKETS}")), []);
    // One socket that several branches set up is one.
    assert_eq!(
        device(
            &["(a,", "(b,", "(c,", "(d,"]
                .iter()
                .fold(FOUR_SOCKETS.to_owned(), |text, socket| text.replace(socket, "(fd,"))
        )
        .len(),
        0
    );
}

#[test]
fn calls_of_a_device_that_work_against_each_other_are_found() {
    let rules = |text: &str| device(text).into_iter().map(|(line, _, rule)| (line, rule)).collect::<Vec<_>>();
    let one = |line: u32, rule: &str| vec![(line, rule.to_owned())];
    assert_eq!(rules("setsockoption(fd, SO_NONAGLE);\nsetsockoption(fd, SO_NOPUSH);\n"), one(2, "conflicts-with"));
    assert_eq!(rules("setsockoption(fd, SO_NONAGLE);\nclrsockoption(fd, SO_NOPUSH);\n"), []);
    assert_eq!(rules("SetSocketTxBuffers(fd, 40);\nSetSocketUnackBuffers(fd, 20);\n"), one(1, "above-unacknowledged"));
    assert_eq!(rules("SetSocketTxBuffers(fd, 20);\nSetSocketUnackBuffers(fd, 20);\n"), []);
    // One socket for the whole file, as the plan counts it; a name of its own in each function is another one.
    let in_two = |before: &str| {
        rules(&format!(
            "{before}\nvoid one() {{ SetSocketTxBuffers(fd, 20); SetSocketRxBuffers(fd, 20); }}\nvoid two() {{ SetSocketUnackBuffers(fd, 20); SetSocketRxBuffers(fd, 20); }}\n"
        ))
    };
    assert_eq!(in_two("static int fd;"), []);
    assert_eq!(in_two("void two();"), one(2, "above-unacknowledged"));
    assert_eq!(rules("SetSocketRxBuffers(fd, 3);\n"), one(1, "too-small"));
    assert_eq!(rules("SetSocketUnackBuffers(fd, 50);\n"), one(1, "no-gain"));
}

#[test]
fn a_finding_is_not_said_twice_of_one_line() {
    let line = "netsh int tcp set global rss=disabled rss=disabled";
    let found = judged(Kind::Batch, line, "windows-10", None);
    assert_eq!(found.iter().filter(|(_, _, rule)| rule == "harmful").count(), 1, "{found:?}");
}

/// What a script sets, line by line, and what is said not to be known.
fn read_as(name: &str, text: &str) -> Vec<String> {
    let (steps, problems) = recipe::read(Kind::from_file(name, text).unwrap(), text);
    assert_eq!(problems, []);
    let words = |step: Step| match step.action {
        Action::Set(knob, value) => format!("{} {knob}={value}", step.line),
        Action::Unclear(why) => format!("{} ? {why}", step.line),
        other => format!("{} {other:?}", step.line),
    };
    steps.into_iter().map(words).collect()
}

#[test]
fn loops_of_a_shell_script_are_written_out_or_said_to_be_unknown() {
    let text = "#!/bin/sh\nfor i in tcp_sack tcp_timestamps; do sysctl -w net.ipv4.$i=0; done\nfor m in {rmem,wmem}\ndo\n  for k in max default; do\n    echo 65536 > /proc/sys/net/core/${m}_$k\n  done\ndone\nsysctl -w net.ipv4.tcp_fack=1\nfor f in $LIST; do sysctl -w net.ipv4.$f=0; done\n";
    assert_eq!(
        read_as("a.sh", text),
        [
            "2 net.ipv4.tcp_sack=0",
            "2 net.ipv4.tcp_timestamps=0",
            "6 net.core.rmem_max=65536",
            "6 net.core.rmem_default=65536",
            "6 net.core.wmem_max=65536",
            "6 net.core.wmem_default=65536",
            "9 net.ipv4.tcp_fack=1",
            "10 ? `net.ipv4.$f` is known only when the script runs",
        ]
    );
}

#[test]
fn loops_of_a_batch_file_are_written_out_or_said_to_be_unknown() {
    let text = "@echo off\nfor %%i in (rss rsc) do netsh int tcp set global %%i=disabled\nfor %%t in (internet, datacenter) do (\n  netsh int tcp set supplemental %%t congestionprovider=ctcp\n)\nfor /f %%x in ('type list.txt') do netsh int tcp set global %%x=disabled\nif exist x (\n  netsh int tcp set global ecncapability=enabled\n)\n";
    assert_eq!(
        read_as("a.cmd", text),
        [
            "2 netsh tcp global rss=disabled",
            "2 netsh tcp global rsc=disabled",
            "4 tcpsetting internet CongestionProvider=ctcp",
            "4 tcpsetting datacenter CongestionProvider=ctcp",
            "6 ? `%%x` is known only when the script runs",
            "8 netsh tcp global ecncapability=enabled",
        ]
    );
}

#[test]
fn calls_of_iperf_and_psping_are_not_passed_over() {
    let found = read_as("a.sh", "iperf -c windows_host -w 1M\niperf -s -w64K\niperf3 -c h\npsping -l 64k h:5000\n");
    assert_eq!(found[..2], ["1 socket SO_SNDBUF=1048576", "2 socket SO_RCVBUF=65536"]);
    assert!(found[2].starts_with("3 ? iperf measures") && found[3].starts_with("4 ? psping measures"), "{found:?}");
    assert_eq!(read_as("paste", "psping64 -l 64k h:5000\n").len(), 1);
    // A pinned buffer is judged by the path, as in a program.
    let found = judged(Kind::Script, "iperf -c h -w 64K\n", "windows-2012", Some(("100M", "80ms")));
    assert!(found.iter().any(|(_, _, rule)| rule == "too-small"), "{found:?}");
}

proptest! {
    #[test]
    fn loops_of_any_kind_are_read_without_a_panic(text in "(for|i|in|do|done|;|\\(|\\)|\\{1\\.\\.9\\}|\\{a,b\\}|%%i|\\$i|sysctl -w a\\.\\$i=1|netsh|iperf|-w|-w1M| |\n){0,40}") {
        recipe::read(Kind::Script, &text);
        recipe::read(Kind::Batch, &text);
    }
}

fn messages(kind: Kind, text: &str, platform: &str) -> Vec<String> {
    let request = LintRequest { platform: Some(platform.parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(kind, text, &request);
    found.into_iter().map(|finding| format!("{} {}", finding.message, finding.fix.unwrap_or_default())).collect()
}

#[test]
fn the_window_that_is_advised_is_one_that_is_accepted() {
    let parameters = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
    let file = |key: &str, window: u32| format!("REGEDIT4\n[{key}]\n\"TcpWindowSize\"=dword:{window:08x}\n");
    let adapter = format!(r"{parameters}\Interfaces\{{0A1B2C3D-0000-1111-2222-333344445555}}");
    let request = LintRequest {
        platform: Some("windows-xp".parse().unwrap()),
        path: Some(("1.8M".parse().unwrap(), "230ms".parse().unwrap())),
        ..LintRequest::default()
    };
    for key in [&adapter, parameters] {
        let found = lint(Kind::Registry, &file(key, 17_520), &request);
        let too_small = found.iter().find(|finding| finding.rule == "too-small").unwrap();
        // The plan's, too: 51,750 B are in flight, and 44 x 1,460 fill that without scaling.
        assert_eq!(too_small.fix.as_deref(), Some("64240"), "{key}");
        let again = lint(Kind::Registry, &file(key, 64_240), &request);
        assert!(again.iter().all(|finding| finding.level == Level::Ok), "{again:?}");
    }
    // A longer path takes more than one adapter is given on XP.
    let far = LintRequest { path: Some(("10M".parse().unwrap(), "230ms".parse().unwrap())), ..request };
    let found = lint(Kind::Registry, &file(&adapter, 17_520), &far);
    let fix = found.iter().find(|finding| finding.rule == "too-small").unwrap().fix.as_deref().unwrap();
    assert!(fix.starts_with("delete the line") && fix.ends_with("Tcp1323Opts = 1"), "{fix}");
}

#[test]
fn offloads_of_one_adapter_are_not_taken_for_those_of_all() {
    let text = "Disable-NetAdapterRsc -Name \"Ethernet\"\nSet-NetAdapterLso -Name Ethernet -V2IPv4Enabled $false\nSet-NetOffloadGlobalSetting -ReceiveSegmentCoalescing Disabled\n";
    let rules = |path| judged(Kind::PowerShell, text, "windows-2019", path);
    let fast = rules(Some(("10G", "1ms")));
    assert!(fast.iter().all(|(_, level, rule)| (*level, rule.as_str()) == (Level::Warning, "harmful")), "{fast:?}");
    assert_eq!(fast.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(rules(Some(("100M", "1ms"))).iter().all(|(_, level, _)| *level == Level::Note));
    let all = "Disable-NetAdapterRss -Name *";
    assert_eq!(checked(Kind::PowerShell, all, "windows-2019"), (Level::Error, "harmful".to_owned()));
}

#[test]
fn a_template_in_a_loop_is_the_one_that_is_judged() {
    let line = "foreach ($n in \"Custom\") { Set-NetTCPSetting -SettingName $n -InitialCongestionWindowMss 10 }";
    assert_eq!(checked(Kind::PowerShell, line, "windows-2012"), (Level::Note, "needs-filter".to_owned()));
    let line = line.replace("Custom", "Internet");
    assert_eq!(checked(Kind::PowerShell, &line, "windows-2012"), (Level::Error, "read-only".to_owned()));
    let text = "Set-NetTCPSetting -SettingName Intrnet -AutoTuningLevelLocal Normal\nNew-NetTransportFilter -SettingName Custm -DestinationPrefix 10.0.0.0/8\nSet-NetTCPSeting -SettingName Internet\n";
    let found = messages(Kind::PowerShell, text, "windows-2019");
    assert!(found[0].starts_with("there is no template Intrnet; did you mean Internet?"), "{found:?}");
    assert!(found[1].starts_with("there is no template Custm; did you mean Custom?"), "{found:?}");
    assert!(found[2].starts_with("Set-NetTCPSeting does not exist; did you mean Set-NetTCPSetting?"), "{found:?}");
}

#[test]
fn what_a_version_lacks_is_not_named_as_a_way() {
    let line = "Set-NetTCPSetting -SettingName Custom -InitialCongestionWindowMss 10";
    assert!(!messages(Kind::PowerShell, line, "windows-2012")[0].contains("AutomaticUseCustom"));
    let line = line.replace("Custom", "InternetCustom");
    assert!(messages(Kind::PowerShell, &line, "windows-2019")[0].contains("(or AutomaticUseCustom)"));
}

#[test]
fn variables_of_a_shell_script_are_put_in_or_not_judged() {
    let text = "#!/bin/bash\nW=16777216\nexport L=\"rmem_max wmem_max\"\nfor k in $L; do sysctl -w net.core.$k=$W; done\nM=$((16*1024*1024)); sysctl -w net.ipv4.tcp_rmem=\"4096 131072 ${M}\"\nsysctl -w net.core.somaxconn=$GIVEN\nX=$(cat x)\nsysctl -w net.ipv4.tcp_fack=$X\ncat <<EOF > /etc/sysctl.d/9.conf\nnet.core.rmem_default = $W\nEOF\nsysctl -w net.ipv4.tcp_sack=${S:-1}\n";
    assert_eq!(
        read_as("a.sh", text),
        [
            "4 net.core.rmem_max=16777216",
            "4 net.core.wmem_max=16777216",
            "5 net.ipv4.tcp_rmem=4096 131072 16777216",
            "6 ? the value of net.core.somaxconn, `$GIVEN`, is known only when the script runs",
            "8 ? the value of net.ipv4.tcp_fack, `$X`, is known only when the script runs",
            "10 net.core.rmem_default=16777216",
            "12 net.ipv4.tcp_sack=1",
        ]
    );
}

#[test]
fn a_script_that_grows_without_end_is_cut() {
    let doubled = format!("A=ab\n{}sysctl -w a.b=$A\n", "A=$A$A\n".repeat(60));
    assert!(recipe::read(Kind::Script, &doubled).0.len() <= 1);
    let deep = "for a in {1..99}; do ".repeat(300) + "sysctl -w a.b=1";
    assert!(recipe::read(Kind::Script, &deep).0.len() <= 4096);
    let batch = format!("set A=ab\n{}reg add HKLM\\X /v B /d %A%\n", "set A=%A%%A%\n".repeat(60));
    assert!(recipe::read(Kind::Batch, &batch).0.len() <= 1);
}

#[test]
fn a_space_above_the_ceiling_that_a_release_starts_with_is_an_error() {
    let text = "net.inet.tcp.recvspace=262144\nnet.inet.tcp.sendspace=233016\n";
    let found = judged(Kind::Sysctl, text, "freebsd-6.2", None);
    // 262,144 x 8/9 = 233,016.
    assert_eq!(found, [(1, Level::Error, "conflicts-with".to_owned()), (2, Level::Ok, "fine".to_owned())]);
    assert!(messages(Kind::Sysctl, text, "freebsd-6.2")[0].contains("this version's default"));
}

#[test]
fn the_limiter_of_data_in_flight_is_judged_by_its_version_and_the_path() {
    let on = |name: &str, platform: &str, rtt: &str| {
        let line = format!("net.inet.tcp.{name}=1");
        judged(Kind::Sysctl, &line, platform, Some(("1G", rtt))).remove(0).2
    };
    assert_eq!(on("inflight_enable", "freebsd-4.8", "1ms"), "harmful");
    assert_eq!(on("inflight_enable", "freebsd-4.8", "80ms"), "estimated-window");
    assert_eq!(on("inflight_enable", "freebsd-6.2", "1ms"), "not-there");
    assert_eq!(on("inflight.enable", "freebsd-6.0", "1ms"), "harmful");
    assert_eq!(on("inflight.enable", "freebsd-6.2", "1ms"), "fine");
    assert_eq!(on("inflight.enable", "freebsd-6.2", "80ms"), "estimated-window");
}

#[test]
fn a_call_is_judged_with_its_own_sockets_calls() {
    let text = "#define RXB 43\nfor (int i = 0; i < 6; i++) {\n  SetSocketRxBuffers(fd, RXB);\n  SetSocketTxBuffers(fd, 50);\n  SetSocketUnackBuffers(fd, 10);\n  SetOutOfOrderBuffers(fd, 43);\n  setsockoption(fd, SO_NONAGLE);\n  setsockoption(fd, SO_NOPUSH);\n}\n\n\n\n\n\nSetSocketRxBuffers(other, 2);\nsetsockoption(other, SO_NONAGLE | SO_NOPUSH);\n";
    let found = judged(Kind::Device, text, "netburner", None);
    for expected in [
        (3, Level::Warning, "pool-runs-dry"),
        (4, Level::Warning, "no-gain"),
        (4, Level::Warning, "above-unacknowledged"),
        (6, Level::Note, "more-than-received"),
        (8, Level::Warning, "conflicts-with"),
        (15, Level::Warning, "too-small"),
        (16, Level::Warning, "conflicts-with"),
    ] {
        assert!(found.contains(&(expected.0, expected.1, expected.2.to_owned())), "{expected:?}: {found:?}");
    }
    let words = messages(Kind::Device, text, "netburner").concat();
    assert!(words.contains("not below SetSocketRxBuffers = 43"), "{words}");
    // 43 + 50 + 10 + 43 of each of the six.
    assert!(words.contains("each socket can take 146 of the pool"), "{words}");
    // Held back for a while and let go is what SO_NOPUSH is for.
    assert_eq!(
        device(
            "setsockoption(fd, SO_NONAGLE);\nsetsockoption(fd, SO_NOPUSH);\nsend();\nclrsockoption(fd, SO_NOPUSH);\n"
        ),
        []
    );
}

#[test]
fn buffers_that_programs_pin_are_told_as_the_platform_has_it() {
    let found = read_as("a.sh", "iperf -c h -w 64K\niperf3 -c h -w 64K\n");
    assert_eq!(found, ["1 socket SO_SNDBUF=65536", "2 socket SO_SNDBUF=65536", "2 socket SO_RCVBUF=65536"]);
    let text = "iperf -c h -w 64K\niperf3 -c h -w 64K\niperf -s\n";
    let rules: Vec<String> = judged(Kind::Batch, text, "windows-xp", None).into_iter().map(|(.., rule)| rule).collect();
    assert!(!rules.contains(&"set-twice".to_owned()), "{rules:?}");
    assert!(!messages(Kind::Batch, text, "windows-xp").concat().contains("automatic"));
    assert!(messages(Kind::Batch, text, "windows-10").concat().contains("turns automatic sizing off"));
    let source = "int s = 65536;\nsetsockopt(a, SOL_SOCKET, SO_RCVBUFF, &s, sizeof s);\n";
    let found = messages(Kind::Source, source, "linux-6.18");
    assert!(found[0].contains("SO_RCVBUFF is not a Linux setting; did you mean SO_RCVBUF?"), "{found:?}");
}

#[test]
fn what_recipes_of_strangers_showed() {
    use Level::{Error, Note, Ok, Warning};
    const KEY: &str = "reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters";
    let no_delay = format!("{KEY} /v TCPNoDelay /t REG_DWORD /d 1 /f");
    for (line, kind, platform, level, rule) in [
        ("net.ipv4.tcp_rmem = 1024 4096 16777216", Kind::Sysctl, "linux-6.18", Warning, "small-initial"),
        ("net.ipv4.tcp_wmem = 1024 4096 16777216", Kind::Sysctl, "linux-6.18", Ok, "fine"),
        ("net.ipv4.tcp_mem = 78643200 104857600 125829120", Kind::Sysctl, "linux-6.18", Error, "wrong-unit"),
        // The kernel's own on a machine of six terabytes.
        ("net.ipv4.tcp_mem = 70778880 94371840 141557760", Kind::Sysctl, "linux-6.18", Note, "machine-wide"),
        ("net.inet.tcp.autorcvbufmax=33554432", Kind::Sysctl, "macos", Error, "out-of-range"),
        ("net.inet.tcp.autorcvbufmax=8388608", Kind::Sysctl, "macos", Ok, "fine"),
        ("net.inet.tcp.delayed_ack=0", Kind::Sysctl, "freebsd-14.1", Note, "no-gain"),
        ("netsh int tsp set global rss=enabled", Kind::Batch, "windows-11", Warning, "misspelt"),
        ("netsh int tcp set global chimney=enabled", Kind::Batch, "windows-7", Note, "outdated"),
        (no_delay.as_str(), Kind::Batch, "windows-11", Warning, "wrong-place"),
    ] {
        assert_eq!(checked(kind, line, platform), (level, rule.to_owned()), "{line} {platform}");
    }
    let request = LintRequest { platform: Some("windows-11".parse().unwrap()), ..LintRequest::default() };
    assert_eq!(lint(Kind::Batch, &no_delay, &request)[0].fix.as_deref(), Some("delete the line"));
    // What is advised is in ascending order.
    let found = lint(Kind::Sysctl, "net.ipv4.tcp_rmem = 536870912 1073741824 1073741824", &LintRequest::default());
    assert!(found.iter().any(|finding| finding.rule == "large-least"), "{found:?}");
    assert!(
        found.iter().filter_map(|finding| finding.fix.as_deref()).all(|fix| fix.contains("= 4096 131072 ")),
        "{found:?}"
    );
}

#[test]
fn a_value_that_is_nearly_one_gets_the_one_that_was_meant() {
    let of = |line: &str, kind: Kind| {
        let request = LintRequest { platform: Some("windows-11".parse().unwrap()), ..LintRequest::default() };
        lint(kind, line, &request).remove(0)
    };
    for (written, meant) in [("Nromal", "normal"), ("norml", "normal"), ("disabeld", "disabled"), ("xyz", "")] {
        let netsh = of(&format!("netsh int tcp set global autotuninglevel={written}"), Kind::Batch);
        let shell = format!("Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal {written}");
        for found in [netsh, of(&shell, Kind::PowerShell)] {
            assert_eq!((found.level, found.rule.as_str()), (Level::Error, "malformed"), "{found:?}");
            assert_eq!(found.message.contains("did you mean"), !meant.is_empty(), "{found:?}");
            assert!(found.fix.as_deref().unwrap_or_default().ends_with(meant), "{found:?}");
        }
    }
    let found = of("netsh int tcp set global ecncapability=enabeld", Kind::Batch);
    assert!(found.level == Level::Error && found.message.contains("did you mean enabled?"), "{found:?}");
}

#[test]
fn names_that_exist_are_no_slips_of_others_and_parameters_that_do_not_are_refused() {
    for (text, kind, platform, expected) in [
        ("net.ipv4.tcp_retries1 = 3", Kind::Sysctl, "linux-6.18", (Level::Note, "unknown-setting")),
        ("net.ipv4.tcp_thin_linear_timeouts = 1", Kind::Sysctl, "linux-6.18", (Level::Note, "unknown-setting")),
        ("net.inet.udp.recvspace=4194304", Kind::Sysctl, "freebsd-14.1", (Level::Note, "unknown-setting")),
        ("net.ipv4.tcp_retries2 = 2", Kind::Sysctl, "linux-6.18", (Level::Warning, "harmful")),
        ("net.ipv4.tcp_syn_retries = 1", Kind::Sysctl, "linux-6.18", (Level::Note, "no-gain")),
        ("net.inet.tcp.abc_l_var=44", Kind::Sysctl, "freebsd-14.1", (Level::Warning, "harmful")),
        ("net.inet.tcp.initcwnd_segments=44", Kind::Sysctl, "freebsd-14.1", (Level::Note, "above-usual")),
        ("net.inet.tcp.tso=0", Kind::Sysctl, "freebsd-14.1", (Level::Warning, "harmful")),
        ("net.inet.tcp.cc.algorithm=htcp", Kind::Sysctl, "freebsd-14.1", (Level::Note, "needs-module")),
        ("net.inet.tcp.cc.algorithm=newreno", Kind::Sysctl, "freebsd-14.1", (Level::Ok, "fine")),
        ("netsh int tcp set heuristics enabled", Kind::Batch, "windows-7", (Level::Warning, "harmful")),
        ("net.core.rmem_default = 65536", Kind::Sysctl, "linux-6.18", (Level::Note, "not-tcp")),
        ("netsh int tcp set global initialrto=300", Kind::Batch, "windows-11", (Level::Note, "no-gain")),
        ("netsh int tcp set global hystart=disabled", Kind::Batch, "windows-11", (Level::Warning, "harmful")),
        (
            "reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters /v GlobalMaxTcpWindowSize /t REG_DWORD /d 0",
            Kind::Batch,
            "windows-xp",
            (Level::Warning, "no-gain"),
        ),
        (
            "Set-NetAdapterAdvancedProperty -Name a -DisplayName \"Jumbo Packet\" -DisplayValue \"Disabled\"",
            Kind::PowerShell,
            "windows-10",
            (Level::Ok, "fine"),
        ),
        ("netsh int tcp set supplemental internet rack=enabled", Kind::Batch, "windows-11", (Level::Ok, "fine")),
        (
            "netsh int tcp set supplemental internet taillossprobe=disabled",
            Kind::Batch,
            "windows-11",
            (Level::Warning, "harmful"),
        ),
        ("netsh int tcp set supplemental intrnet rack=enabled", Kind::Batch, "windows-11", (Level::Error, "misspelt")),
        (
            "netsh int tcp set supplemental internet minrtoo=300",
            Kind::Batch,
            "windows-11",
            (Level::Warning, "misspelt"),
        ),
        (
            "Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocl Normal",
            Kind::PowerShell,
            "windows-11",
            (Level::Error, "misspelt"),
        ),
        // A beginning that stands for one parameter alone is taken.
        (
            "Set-NetTCPSetting -SettingName Internet -AutoTun Normal",
            Kind::PowerShell,
            "windows-2019",
            (Level::Ok, "fine"),
        ),
        ("netsh int tcp set global autotuninglevl=normal", Kind::Batch, "windows-11", (Level::Error, "misspelt")),
        ("netsh int tcp set global autotuning=normal", Kind::Batch, "windows-11", (Level::Warning, "misspelt")),
        ("SetSocketTxBuffers(fd, 20);", Kind::Device, "netburner", (Level::Warning, "above-unacknowledged")),
        ("netsh int tcp set global hystart=enabled", Kind::Batch, "windows-7", (Level::Warning, "not-there")),
        ("netsh int tcp set global prr=enabled", Kind::Batch, "windows-2012", (Level::Warning, "not-there")),
        ("netsh int tcp set global prr=enabled", Kind::Batch, "windows-11", (Level::Ok, "fine")),
        (
            "Set-NetTCPSetting -SettingName InternetCustom -CwndRestart True",
            Kind::PowerShell,
            "windows-2019",
            (Level::Note, "slower-after-idle"),
        ),
        (
            "Set-NetTCPSetting -SettingName InternetCustom -InitialRtoMs 300",
            Kind::PowerShell,
            "windows-2019",
            (Level::Note, "no-gain"),
        ),
        (
            "Set-NetTCPSetting -SettingName DatacenterCustom -CongestionProvider DCTCP",
            Kind::PowerShell,
            "windows-2019",
            (Level::Note, "needs-marks"),
        ),
        ("netsh int ip set global taskoffload=disabled", Kind::Batch, "windows-7", (Level::Warning, "harmful")),
        ("netsh int tcp set global TcpWindowSize=65535", Kind::Batch, "windows-10", (Level::Error, "no-parameter")),
        (
            "Set-NetTCPSetting -SettingName InternetCustom -NagleAlgorithm 0",
            Kind::PowerShell,
            "windows-2019",
            (Level::Error, "no-parameter"),
        ),
        (
            "Set-NetTCPSetting -SettingName InternetCustom -CwndRestart True",
            Kind::PowerShell,
            "windows-2012",
            (Level::Error, "no-template"),
        ),
        (
            "Set-NetTCPSetting -SettingName Internet -InitialCongestionWindowMss 64",
            Kind::PowerShell,
            "windows-2019",
            (Level::Note, "above-usual"),
        ),
    ] {
        let (level, rule) = checked(kind, text, platform);
        assert_eq!((level, rule.as_str()), expected, "{text} on {platform}");
    }
    // A congestion control whose module the recipe loads, and a template that a line gives to connections.
    let both = "cc_htcp_load=\"YES\"\nnet.inet.tcp.cc.algorithm=htcp\n";
    let request = LintRequest { platform: Some("freebsd-14.1".parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(Kind::Sysctl, both, &request);
    assert!(found.iter().all(|finding| finding.rule != "needs-module"), "{found:?}");
    // Or that another file of the machine loads.
    let mut request = LintRequest { beside: BTreeMap::new(), ..request };
    let alone = "net.inet.tcp.cc.algorithm=htcp\n";
    assert!(lint(Kind::Sysctl, alone, &request).iter().any(|finding| finding.rule == "needs-module"));
    request.add_beside(&recipe::read(Kind::Shell, "cc_htcp_load=\"YES\"\n").0);
    assert!(lint(Kind::Sysctl, alone, &request).iter().all(|finding| finding.rule != "needs-module"));
    let both = "Set-NetTCPSetting -SettingName InternetCustom -CwndRestart True\nNew-NetTransportFilter -SettingName InternetCustom -DestinationPrefix 192.0.2.0/24\n";
    let request = LintRequest { platform: Some("windows-2019".parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(Kind::PowerShell, both, &request);
    assert!(found.iter().all(|finding| finding.rule != "needs-filter"), "{found:?}");
}

#[test]
fn the_mtus_of_ipv4_and_ipv6_are_two_settings() {
    let both = |four: &str, six: &str| {
        let found = lint(Kind::Batch, &format!("{four}\n{six}\n"), &LintRequest::default());
        found.iter().any(|finding| ["conflicts-with", "set-twice"].contains(&finding.rule.as_str()))
    };
    let of = |version: &str, mtu: u32| format!("netsh interface {version} set subinterface \"Ethernet\" mtu={mtu}");
    assert!(!both(&of("ipv4", 1500), &of("ipv6", 1480)));
    assert!(both(&of("ipv4", 1500), &of("ipv4", 1480)));
    let cmdlet =
        |family: &str| format!("Set-NetIPInterface -InterfaceAlias a -AddressFamily {family} -NlMtuBytes 1500");
    let text = [cmdlet("IPv4"), cmdlet("IPv6")].join("\n");
    let rules: Vec<String> =
        judged(Kind::PowerShell, &text, "windows-2019", None).into_iter().map(|(.., rule)| rule).collect();
    assert_eq!(rules, ["fine", "fine"]);
}

#[test]
fn a_path_counts_where_a_rule_speaks_of_rates_and_round_trips() {
    let path = Some(("1G".parse().unwrap(), "40ms".parse().unwrap()));
    let words = |text: &str, kind: Kind, platform: &str| {
        let request = LintRequest { platform: Some(platform.parse().unwrap()), path, ..LintRequest::default() };
        let found = lint(kind, text, &request);
        (found[0].level, found[0].message.clone())
    };
    let (level, message) = words("net.ipv4.tcp_window_scaling = 0", Kind::Sysctl, "linux-6.18");
    assert!(level == Level::Error && message.contains("13.1 Mbit/s at 40.0 ms"), "{message}");
    let short = "Set-NetTCPSetting -SettingName Internet -MinRtoMs 20";
    let (level, message) = words(short, Kind::PowerShell, "windows-2019");
    assert!(level == Level::Warning && message.contains("20 ms on a path of 40.0 ms"), "{message}");
}

#[test]
fn what_clrsockoption_does_is_not_what_setsockoption_does() {
    let request = LintRequest { platform: Some("netburner".parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(Kind::Device, "clrsockoption(fd, SO_NONAGLE | SO_NOPUSH);\n", &request);
    let words: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
    assert!(words.iter().any(|words| words.contains("Nagle's algorithm on again")), "{words:?}");
    assert!(words.iter().any(|words| words.contains("lets go")), "{words:?}");
}

/// What a finding of a rule says of the line that has it.
fn says(kind: Kind, text: &str, platform: &str, path: Option<(&str, &str)>, rule: &str) -> Option<(Level, String)> {
    let request = LintRequest {
        platform: Some(platform.parse().unwrap()),
        path: path.map(|(rate, rtt)| (rate.parse().unwrap(), rtt.parse().unwrap())),
        ..LintRequest::default()
    };
    let found = lint(kind, text, &request).into_iter().find(|finding| finding.rule == rule)?;
    Some((found.level, found.message))
}

#[test]
fn a_ceiling_of_freebsd_alone_fills_no_path() {
    let path = Some(("10G", "20ms"));
    let of = |text: &str, platform: &str| says(Kind::Sysctl, text, platform, path, "not-automatic");
    let (level, words) = of("kern.ipc.maxsockbuf=614400000\n", "freebsd-13.2").unwrap();
    assert!(level == Level::Note && words.contains("recvbuf_max and net.inet.tcp.sendbuf_max"), "{words}");
    let raised = "kern.ipc.maxsockbuf=614400000\nnet.inet.tcp.recvbuf_max=67108864\n";
    let (_, words) = of(raised, "freebsd-13.2").unwrap();
    assert!(words.contains("sendbuf_max") && !words.contains("recvbuf_max"), "{words}");
    let both = format!("{raised}net.inet.tcp.sendbuf_max=67108864\n");
    assert_eq!(of(&both, "freebsd-13.2"), None);
    // Before 7.0 nothing is automatic, and a slow path needs no more than the defaults.
    assert_eq!(of("kern.ipc.maxsockbuf=614400000\n", "freebsd-6.2"), None);
    let slow = Some(("10M", "20ms"));
    assert_eq!(says(Kind::Sysctl, "kern.ipc.maxsockbuf=614400000\n", "freebsd-13.2", slow, "not-automatic"), None);
}

#[test]
fn a_space_of_megabytes_is_no_way_to_fill_a_path_where_buffers_grow() {
    let text = "kern.ipc.maxsockbuf=16777216\nnet.inet.tcp.sendspace=12582912\nnet.inet.tcp.recvspace=12582912\n";
    let path = Some(("1G", "100ms"));
    let found = judged(Kind::Sysctl, text, "freebsd-13.2", path);
    let large = |line| (line, Level::Warning, "large-initial".to_owned());
    assert_eq!(found, [(1, Level::Ok, "fine".to_owned()), large(2), large(3)]);
    // Without automatic sizing it is the only way.
    let fixed = format!("{text}net.inet.tcp.recvbuf_auto=0\n");
    assert!(!judged(Kind::Sysctl, &fixed, "freebsd-13.2", path).contains(&large(3)));
    assert!(!judged(Kind::Sysctl, text, "freebsd-6.2", path).contains(&large(2)));
}

#[test]
fn maxima_above_what_counts_are_an_error_only_where_the_path_loses_by_it() {
    let text = "kern.ipc.maxsockbuf=16777216\nnet.inet.tcp.recvbuf_max=16777216\nnet.inet.tcp.sendbuf_max=16777216\n";
    let levels = |path: Option<(&str, &str)>| {
        let found = judged(Kind::Sysctl, text, "freebsd-13.2", path);
        let conflicts = found.into_iter().filter(|(_, _, rule)| rule == "conflicts-with");
        conflicts.map(|(line, level, _)| (line, level)).collect::<Vec<_>>()
    };
    // By halves 65,536 B come to 12.76 MB, the next step is above 14.9.
    assert_eq!(levels(Some(("1G", "100ms"))), [(2, Level::Note), (3, Level::Note)]);
    assert_eq!(levels(Some(("1.1G", "100ms"))), [(2, Level::Error), (3, Level::Note)]);
    assert_eq!(levels(Some(("1.3G", "100ms"))), [(2, Level::Error), (3, Level::Error)]);
    assert_eq!(levels(None), [(2, Level::Note), (3, Level::Note)]);
    let far_above = "kern.ipc.maxsockbuf=4194304\nnet.inet.tcp.recvbuf_max=16777216\n";
    let (level, _) = says(Kind::Sysctl, far_above, "freebsd-13.2", None, "conflicts-with").unwrap();
    assert_eq!(level, Level::Error);
}

#[test]
fn a_systems_own_maximum_is_no_fault_but_may_be_too_small() {
    let line = "net.inet.tcp.recvbuf_max=2097152\n";
    assert_eq!(checked(Kind::Sysctl, line, "freebsd-13.2"), (Level::Ok, "fine".to_owned()));
    let (level, words) = says(Kind::Sysctl, line, "freebsd-13.2", Some(("10G", "20ms")), "too-small").unwrap();
    assert!(level == Level::Warning && words.contains("25"), "{words}");
    let found = judged(Kind::Sysctl, line, "freebsd-13.2", Some(("100M", "20ms")));
    assert_eq!(found, [(1, Level::Ok, "fine".to_owned())]);
    // Another line's ceiling is another thing.
    let below = "kern.ipc.maxsockbuf=1048576\nnet.inet.tcp.recvbuf_max=2097152\n";
    let (level, _) = says(Kind::Sysctl, below, "freebsd-13.2", None, "conflicts-with").unwrap();
    assert_eq!(level, Level::Error);
}

#[test]
fn words_behind_a_number_are_refused_and_set_nothing() {
    let text =
        "net.inet.tcp.keepidle=65000\nnet.inet.tcp.keepidle=10000 (default 65000)\nnet.inet.tcp.nobody=1 (default 2)\n";
    let found = judged(Kind::Sysctl, text, "freebsd-13.2", None);
    let of =
        |wanted: u32| found.iter().filter(move |one| one.0 == wanted).map(|(_, level, rule)| (*level, rule.as_str()));
    assert_eq!(of(2).collect::<Vec<_>>(), [(Level::Error, "malformed")], "{found:?}");
    assert_eq!(of(3).collect::<Vec<_>>(), [(Level::Error, "malformed")], "{found:?}");
    // No other line is judged by such a value.
    let text = "kern.ipc.maxsockbuf=16777216 (default 2097152)\nnet.inet.tcp.recvspace=4194304\n";
    let (level, _) = says(Kind::Sysctl, text, "freebsd-13.2", None, "conflicts-with").unwrap();
    assert_eq!(level, Level::Error);
    // Before 10.1 the first word of a line is all that sysctl(8) gets.
    assert!(judged(Kind::Sysctl, text, "freebsd-9.3", None).iter().all(|(_, _, rule)| rule != "malformed"));
}

#[test]
fn connecting_gives_up_after_the_time_that_is_set() {
    for (text, platform, seconds) in [
        ("net.ipv4.tcp_syn_retries = 3\n", "linux-6.1", 15),
        ("net.ipv4.tcp_syn_retries = 6\n", "linux-6.1", 127),
        ("net.ipv4.tcp_syn_retries = 8\n", "linux-6.1", 367),
        ("net.ipv4.tcp_syn_retries = 3\n", "linux-6.18", 19),
        ("net.ipv4.tcp_syn_retries = 6\n", "linux-6.18", 131),
        ("net.ipv4.tcp_syn_retries = 3\nnet.ipv4.tcp_syn_linear_timeouts = 0\n", "linux-6.18", 15),
        ("net.ipv4.tcp_syn_retries = 3\nnet.ipv4.tcp_syn_linear_timeouts = 9\n", "linux-6.1", 15),
    ] {
        let (level, words) = says(Kind::Sysctl, text, platform, None, "fine").unwrap();
        assert!(level == Level::Ok && words.contains(&format!("after {seconds} s")), "{text} {platform}: {words}");
    }
    let (_, words) = says(Kind::Sysctl, "net.ipv4.tcp_syn_retries = 1\n", "linux-6.1", None, "no-gain").unwrap();
    assert!(words.contains("after about 3 s instead of 127 s"), "{words}");
}

#[test]
fn few_retransmissions_harm_on_windows_too() {
    let of = |times: u32| {
        let line = format!(
            "reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters /v TcpMaxDataRetransmissions /t REG_DWORD /d {times}"
        );
        checked(Kind::Batch, &line, "windows-11")
    };
    for times in [0, 1, 3, 4] {
        assert_eq!(of(times), (Level::Warning, "harmful".to_owned()), "{times}");
    }
    assert_eq!(of(5).0, Level::Ok);
    assert_eq!(of(7).0, Level::Ok);
}

#[test]
fn a_first_timeout_above_the_versions_own_harms() {
    let netsh = "netsh int tcp set global initialrto=3000";
    let shell = "Set-NetTCPSetting -SettingName InternetCustom -InitialRtoMs 3000";
    assert_eq!(checked(Kind::Batch, netsh, "windows-11"), (Level::Warning, "harmful".to_owned()));
    let found = judged(Kind::PowerShell, shell, "windows-11", None);
    assert!(found.contains(&(1, Level::Warning, "harmful".to_owned())), "{found:?}");
    assert_eq!(checked(Kind::Batch, netsh, "windows-8.1").0, Level::Ok);
    assert_eq!(checked(Kind::Batch, &netsh.replace("3000", "1000"), "windows-11").0, Level::Ok);
}

#[test]
fn scaling_heuristics_get_one_answer_by_either_command() {
    for platform in ["windows-8.1", "windows-10", "windows-2019", "windows-2022", "windows-11"] {
        for value in ["disabled", "enabled"] {
            let netsh = checked(Kind::Batch, &format!("netsh int tcp set heuristics {value}"), platform);
            let shell = format!("Set-NetTCPSetting -SettingName InternetCustom -ScalingHeuristics {value}");
            assert_eq!(checked(Kind::PowerShell, &shell, platform), netsh, "{platform} {value}");
            assert_eq!(netsh, (Level::Warning, "does-nothing".to_owned()));
        }
    }
}

#[test]
fn sequence_numbers_wrap_at_the_rate_of_the_path() {
    let line = "net.ipv4.tcp_timestamps = 0\n";
    for (path, words) in [
        (None, "wrap in 34 s at 1 Gbit/s"),
        (Some(("10G", "20ms")), "wrap in 3.4 s at 10.0 Gbit/s"),
        (Some(("100M", "20ms")), "wrap in 344 s at 100 Mbit/s"),
    ] {
        let (_, said) = says(Kind::Sysctl, line, "linux-6.18", path, "harmful").unwrap();
        assert!(said.ends_with(words), "{said}");
    }
}
