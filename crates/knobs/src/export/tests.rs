//! Exports of the reference experiments, read back by this crate's own readers; and hostile plans.

use proptest::prelude::*;

use super::*;
use crate::{
    PlatformRequest, TakesEffect, plan_platform,
    recipe::{self, Action, Kind},
    sysctl_conf,
};

const PARAMETERS: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";

fn plan(platform: &str, rate: &str, rtt: &str) -> Plan {
    plan_platform(&PlatformRequest::new(platform.parse().unwrap(), rate.parse().unwrap(), rtt.parse().unwrap()))
}

fn change(knob: &str, to: Option<&str>) -> Change {
    change_at(knob.parse().unwrap(), to, "because the test says so")
}

fn change_at(knob: Address, to: Option<&str>, reason: &str) -> Change {
    Change {
        host: "h".to_owned(),
        knob,
        from: None,
        to: to.map(str::to_owned),
        reason: reason.to_owned(),
        arithmetic: String::new(),
        memory_worst_case: None,
        takes_effect: TakesEffect::Live,
        undo: "by hand".to_owned(),
        source: "a test".to_owned(),
    }
}

fn plan_of(changes: Vec<Change>) -> Plan {
    Plan { changes, notes: Vec::new() }
}

fn exported(platform: &str, plan: &Plan, settings: Option<&Settings>) -> Export {
    export(plan, &platform.parse().unwrap(), settings).unwrap()
}

fn file<'a>(export: &'a Export, name: &str) -> &'a ExportFile {
    export.files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn names_in(export: &Export) -> Vec<&str> {
    export.files.iter().map(|file| file.name).collect()
}

/// All files as one text; those named appear by name only.
fn shown(export: &Export, but: &[&str]) -> String {
    let all = export.files.iter().map(|file| {
        let text = if but.contains(&file.name) { "(see its own test)\n".to_owned() } else { file.text() };
        format!("======== {}\n{}", file.name, text.replace("\r\n", "\n"))
    });
    all.collect()
}

fn settings(values: &[(&str, Option<&str>)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        let address = Address::Registry { key: PARAMETERS.to_owned(), value: (*name).to_owned() };
        settings.values.insert(address, value.map(str::to_owned));
    }
    settings
}

#[test]
fn hsdpa_on_xp_without_the_earlier_values_says_so() {
    let export = exported("windows-xp", &plan("windows-xp", "1.8M", "230ms"), None);
    assert!(file(&export, "fullpipe-remove.reg").text().contains("NOT AN EXACT UNDO"));
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn hsdpa_on_xp_with_a_window_that_was_there_is_undone_to_it() {
    let before =
        settings(&[("GlobalMaxTcpWindowSize", None), ("TcpWindowSize", Some("17520")), ("Tcp1323Opts", Some("0"))]);
    let changes = [("Tcp1323Opts", "1"), ("GlobalMaxTcpWindowSize", "128480"), ("TcpWindowSize", "128480")];
    let changes = changes.map(|(name, to)| change(&format!("registry {PARAMETERS}\\{name}"), Some(to)));
    let export = exported("windows-xp", &plan_of(changes.to_vec()), Some(&before));
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn a_setting_of_one_adapter_goes_below_its_guid_and_needs_one() {
    let key = format!(r"registry {PARAMETERS}\Interfaces\{{0A1B2C3D-0000-1111-2222-333344445555}}\TcpAckFrequency");
    let any = format!(r"registry {PARAMETERS}\Interfaces\{{GUID}}\TcpAckFrequency");
    let plan = plan_of(vec![change(&key, Some("1")), change(&any, Some("1"))]);
    for (platform, name) in [("windows-xp", "fullpipe.reg"), ("windows-10", "fullpipe.ps1")] {
        let export = exported(platform, &plan, None);
        assert!(
            file(&export, name).text().contains(r"\Interfaces\{0A1B2C3D-0000-1111-2222-333344445555}"),
            "{platform}"
        );
        assert!(export.left_out[0].why.contains("which: put the adapter's GUID"), "{:?}", export.left_out);
    }
}

#[test]
fn values_of_other_types_are_put_back_as_they_were() {
    let names = [("A", "some \"text\""), ("B", "hex(7):61,00,00,00"), ("C", "hex:01,02")];
    let before = settings(&names.map(|(name, value)| (name, Some(value))));
    let changes = names.map(|(name, _)| change(&format!("registry {PARAMETERS}\\{name}"), Some("1")));
    let export = exported("windows-xp", &plan_of(changes.to_vec()), Some(&before));
    let undo = file(&export, "fullpipe-undo.reg").text();
    for line in ["\"A\"=\"some \\\"text\\\"\"\r\n", "\"B\"=hex(7):61,00,00,00\r\n", "\"C\"=hex:01,02\r\n"] {
        assert!(undo.contains(line), "{undo}");
    }
    // A .inf file can't write them all, so there is none that would undo a part.
    assert!(!names_in(&export).contains(&"fullpipe-undo.inf"));
}

#[test]
fn registry_files_are_utf16_but_on_nt4() {
    let plan = plan_of(vec![change(&format!("registry {PARAMETERS}\\TcpWindowSize"), Some("64240"))]);
    let new = exported("windows-2003", &plan, None);
    assert_eq!(file(&new, "fullpipe.reg").contents[..2], [0xff, 0xfe]);
    let old = exported("windows-nt4", &plan, None);
    assert!(file(&old, "fullpipe.reg").contents.starts_with(b"REGEDIT4\r\n"));
}

#[test]
fn server_2012_gets_a_script_a_batch_file_and_the_custom_template() {
    let export = exported("windows-2012", &plan("windows-2012", "100M", "80ms"), None);
    insta::assert_snapshot!(shown(&export, &["fullpipe.ps1"]));
}

#[test]
fn windows_11_gets_a_script_and_a_batch_file() {
    let export = exported("windows-11", &plan("windows-11", "100M", "80ms"), None);
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn an_offload_of_one_adapter_is_set_by_the_drivers_keyword() {
    let export = exported("windows-2019", &plan_of(vec![change("link Ethernet 2 *RscIPv4", Some("1"))]), None);
    let row = "Kind = 'Adapter'; Interface = 'Ethernet 2'; Keyword = '*RscIPv4'; To = '1'";
    assert!(file(&export, "fullpipe.ps1").text().contains(row));
    assert!(export.left_out.is_empty(), "{:?}", export.left_out);
}

#[test]
fn vista_has_no_cmdlets_and_gets_the_batch_file_alone() {
    let export = exported("windows-vista", &plan("windows-vista", "100M", "80ms"), None);
    assert_eq!(names_in(&export), ["README.txt", "fullpipe-netsh.cmd", "fullpipe-netsh-undo.cmd"]);
}

#[test]
fn read_only_parameters_of_windows_10_are_explained_and_not_written() {
    let changes = vec![
        change("tcpsetting Internet InitialCongestionWindowMss", Some("10")),
        change("netsh tcp global autotuninglevel", Some("normal")),
    ];
    let export = exported("windows-10", &plan_of(changes), None);
    assert!(export.left_out[0].why.starts_with("read-only there"), "{:?}", export.left_out);
    assert!(!file(&export, "fullpipe.ps1").text().contains("Congestion"));
    assert!(file(&export, "README.txt").text().contains("tcpsetting Internet InitialCongestionWindowMss: read-only"));
}

#[test]
fn freebsd_gets_fragments_and_scripts() {
    let mut plan = plan("freebsd-14.1", "1G", "80ms");
    let mut clusters = change("kern.ipc.nmbclusters", Some("262144"));
    clusters.takes_effect = TakesEffect::Restart;
    let mtu = change("link em0 mtu", Some("9014"));
    for mut change in [clusters, mtu] {
        change.host.clone_from(&plan.changes[0].host);
        plan.changes.insert(0, change);
    }
    let export = exported("freebsd-14.1", &plan, None);
    assert_eq!(
        names_in(&export),
        ["README.txt", "sysctl.conf.local", "loader.conf.local", "rc.conf.local", "apply.sh", "undo.sh"]
    );
    let sets = |name: &str, kind| recipe::read(kind, &file(&export, name).text()).0.len();
    assert_eq!(
        (
            sets("sysctl.conf.local", Kind::Sysctl),
            sets("loader.conf.local", Kind::Shell),
            sets("rc.conf.local", Kind::Shell)
        ),
        (3, 1, 1)
    );
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn freebsd_13_gets_the_window_and_then_the_mtu() {
    let sizes = |text: &str| Some(text.parse().unwrap());
    let packets = crate::Packets {
        device: Some("ix0".to_owned()),
        here: sizes("16110"),
        peer: sizes("1514,4088,9014"),
        hops: Some(vec!["9216".parse().unwrap()]),
        ..crate::Packets::default()
    };
    let plan = plan_platform(&PlatformRequest {
        packets: &packets,
        ..PlatformRequest::new("freebsd-13".parse().unwrap(), "10G".parse().unwrap(), "2ms".parse().unwrap())
    });
    let export = exported("freebsd-13", &plan, None);
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn linux_gets_a_drop_in_scripts_and_what_keeps_an_mtu() {
    let mut plan = plan("linux-5.15", "1G", "80ms");
    for mut change in [change("route 10.80.0.0/24 window", None), change("link eth0 mtu", Some("9000"))] {
        change.host.clone_from(&plan.changes[0].host);
        plan.changes.push(change);
    }
    let export = exported("linux-5.15", &plan, None);
    let (lines, problems) = sysctl_conf::parse(&file(&export, "90-fullpipe.conf").text());
    assert_eq!((lines.len(), problems.len()), (2, 0));
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn macos_is_told_that_a_restart_forgets() {
    let export = exported("macos", &plan("macos", "1G", "80ms"), None);
    assert_eq!(names_in(&export), ["README.txt", "apply.sh", "undo.sh"]);
    assert!(file(&export, "README.txt").text().contains("forgets these values at a restart"));
}

#[test]
fn netburner_gets_calls_and_the_same_sizes_for_lwip() {
    let export = exported("netburner", &plan("netburner", "25M", "9ms"), None);
    insta::assert_snapshot!(shown(&export, &[]));
}

#[test]
fn a_plan_for_two_hosts_or_no_platform_of_ours_is_refused() {
    let mut two = plan_of(vec![change("net.ipv4.tcp_sack", Some("1")), change("net.ipv4.tcp_sack", Some("1"))]);
    two.changes[1].host = "other".to_owned();
    let linux: Platform = "linux-6.18".parse().unwrap();
    assert!(matches!(export(&two, &linux, None), Err(ExportError::SeveralHosts { .. })));
    let beos = Platform::default();
    assert!(matches!(export(&plan_of(Vec::new()), &beos, None), Err(ExportError::NoForm)));
}

#[test]
fn a_value_that_a_file_cannot_hold_fails_the_whole_export() {
    let linux: Platform = "linux-6.18".parse().unwrap();
    for value in ["1\nkernel.panic = 1", "1; reboot", "$(reboot)", ""] {
        let plan = plan_of(vec![change("net.ipv4.tcp_sack", Some(value))]);
        let error = export(&plan, &linux, None).unwrap_err();
        assert!(matches!(error, ExportError::Unfit { .. }), "{value}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn a_registry_value_without_a_name_is_refused() {
    let mut plan = plan_of(vec![change("net.ipv4.tcp_sack", Some("1"))]);
    plan.changes[0].knob = Address::Registry { key: PARAMETERS.to_owned(), value: String::new() };
    let error = export(&plan, &"windows-2000".parse().unwrap(), None).unwrap_err();
    assert!(matches!(error, ExportError::Unfit { .. }), "{error}");
}

#[test]
fn nothing_to_set_is_a_readme_that_says_so() {
    let export = exported("linux-6.18", &plan("linux-6.18", "100M", "40ms"), None);
    assert_eq!(names_in(&export), ["README.txt"]);
    assert!(file(&export, "README.txt").text().contains("Nothing is to be set"));
}

fn parsed(script: &str) -> tree_sitter::Tree {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_powershell::LANGUAGE.into()).unwrap();
    parser.parse(script.trim_start_matches('\u{feff}'), None).unwrap()
}

/// How often each kind of node of the grammar stands in a tree; an error is a kind, too.
fn kinds(tree: &tree_sitter::Tree) -> std::collections::BTreeMap<String, usize> {
    let mut found = std::collections::BTreeMap::new();
    let mut open = vec![tree.root_node()];
    while let Some(node) = open.pop() {
        let kind = if node.is_missing() { "missing" } else { node.kind() };
        *found.entry(kind.to_owned()).or_insert(0) += 1;
        open.extend((0..node.child_count()).filter_map(|at| node.child(at)));
    }
    found
}

#[test]
fn the_scripts_are_powershell_by_its_grammar() {
    for platform in ["windows-2012", "windows-10", "windows-2025"] {
        let export = exported(platform, &plan(platform, "100M", "80ms"), None);
        for script in export.files.iter().filter(|file| file.name.ends_with(".ps1")) {
            let kinds = kinds(&parsed(&script.text()));
            assert_eq!((kinds.get("ERROR"), kinds.get("missing")), (None, None), "{platform}: {}", script.name);
            assert!(kinds.get("command").is_some_and(|commands| *commands > 20));
        }
    }
}

#[test]
fn the_way_back_of_the_reset_is_powershell_by_its_grammar() {
    let export = reset_procedure(Some(&Plan::default()), &"windows-11".parse().unwrap(), None).unwrap();
    let script = file(&export, "back.ps1").text();
    let found = kinds(&parsed(&script));
    assert!(!found.contains_key("ERROR") && !found.contains_key("missing"), "{found:?}");
    assert!(found.contains_key("foreach_statement"), "{found:?}");
}

fn hostile() -> impl Strategy<Value = String> {
    "([ -~]|['\"`$%^&|<>!\\\\;*/#\\n\\r\\t\u{2018}\u{2019}\u{2028}\u{feff}ä€]|\\*/|\\$\\(reboot\\)|\\r\\n\\[HK|'; reboot #){0,24}"
}

fn some_address() -> impl Strategy<Value = Address> {
    prop_oneof![
        hostile().prop_map(Address::Sysctl),
        hostile().prop_map(Address::Socket),
        (hostile(), hostile()).prop_map(|(key, value)| Address::Registry { key: format!("HKLM\\{key}"), value }),
        hostile().prop_map(|value| Address::Registry { key: PARAMETERS.to_owned(), value }),
        (hostile(), "window|mtu|x y").prop_map(|(destination, attribute)| Address::Route { destination, attribute }),
        (hostile(), "mtu|qdisc").prop_map(|(device, property)| Address::Link { device, property }),
        ("tcp global|winsock|tcp heuristics", hostile())
            .prop_map(|(context, parameter)| Address::Netsh { context, parameter }),
        (hostile(), hostile()).prop_map(|(template, parameter)| Address::TcpSetting { template, parameter }),
        ("netoffload|transportfilter|call|build", hostile()).prop_map(|(kind, name)| Address::Named { kind, name }),
    ]
}

fn some_platform() -> impl Strategy<Value = Platform> {
    let all =
        ["windows-xp", "windows-7", "windows-2012", "windows-11", "linux-6.18", "freebsd-14.1", "macos", "netburner"];
    proptest::sample::select(all.map(|name| name.parse().unwrap()).to_vec())
}

proptest! {
    #[test]
    fn any_plan_is_exported_or_refused_and_no_name_of_a_file_comes_from_it(
        platform in some_platform(),
        knob in some_address(),
        to in prop_oneof![hostile().prop_map(Some), Just(None), "[0-9]{1,5}".prop_map(Some)],
        before in prop_oneof![hostile().prop_map(Some), Just(None)],
        reason in hostile(),
    ) {
        let mut settings = Settings::default();
        settings.values.insert(knob.clone(), before);
        let plan = plan_of(vec![change_at(knob, to.as_deref(), &reason)]);
        if let Ok(export) = export(&plan, &platform, Some(&settings)) {
            prop_assert_eq!(export.files[0].name, "README.txt");
            for file in &export.files {
                prop_assert!(file.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)));
            }
        }
    }

    #[test]
    fn a_drop_in_reads_back_as_the_plan(
        wanted in proptest::collection::btree_map("net(\\.[a-z][a-z0-9_]{0,8}){1,3}", "[0-9]{1,9}( [0-9]{1,9}){0,2}", 1..5),
        reason in hostile(),
        freebsd: bool,
    ) {
        let changes = wanted.iter().map(|(name, to)| change_at(Address::sysctl(name), Some(to), &reason)).collect();
        let (platform, name) = if freebsd { ("freebsd-14.1", "sysctl.conf.local") } else { ("linux-6.18", "90-fullpipe.conf") };
        let export = exported(platform, &plan_of(changes), None);
        let (lines, problems) = sysctl_conf::parse(&file(&export, name).text());
        prop_assert_eq!(problems, []);
        let read: std::collections::BTreeMap<_, _> = lines.into_iter().map(|line| (line.name, line.value.unwrap_or_default())).collect();
        prop_assert_eq!(&read, &wanted);
        if !freebsd {
            let (steps, problems) = recipe::read(Kind::TuneD, &file(&export, "tuned.conf").text());
            prop_assert_eq!(problems, []);
            let read: Vec<Action> = steps.into_iter().map(|step| step.action).collect();
            let set: Vec<Action> = wanted.iter().map(|(name, to)| Action::Set(Address::sysctl(name), to.clone())).collect();
            prop_assert_eq!(read, set);
        }
    }

    #[test]
    fn a_registry_file_reads_back_as_the_plan_and_its_undo_as_what_was_there(
        wanted in proptest::collection::btree_map("[ -~ä€]{1,12}", (any::<u32>(), prop_oneof![Just(None), any::<u32>().prop_map(Some)]), 1..5),
        reason in hostile(),
    ) {
        let at = |value: &String| Address::Registry { key: PARAMETERS.to_owned(), value: value.clone() };
        let mut before = Settings::default();
        let mut changes = Vec::new();
        for (name, (to, from)) in &wanted {
            before.values.insert(at(name), from.map(|from| from.to_string()));
            changes.push(change_at(at(name), Some(&to.to_string()), &reason));
        }
        let export = exported("windows-xp", &plan_of(changes), Some(&before));
        let read = |name: &str| {
            let (steps, problems) = recipe::read(Kind::Registry, &file(&export, name).text());
            assert_eq!(problems, []);
            steps.into_iter().map(|step| step.action).collect::<Vec<_>>()
        };
        // What the catalogue knows to do nothing is not written.
        prop_assume!(export.left_out.is_empty());
        let set: Vec<Action> = wanted.iter().map(|(name, (to, _))| Action::Set(at(name), to.to_string())).collect();
        prop_assert_eq!(read("fullpipe.reg"), set);
        let undone: Vec<Action> = wanted.iter().rev().map(|(name, (_, from))| {
            from.map_or_else(|| Action::Delete(at(name)), |from| Action::Set(at(name), from.to_string()))
        }).collect();
        prop_assert_eq!(read("fullpipe-undo.reg"), undone);
    }

    #[test]
    fn hostile_text_adds_nothing_to_a_powershell_script_but_text(
        name in "[ -~\u{2018}\u{2019}ä]{1,16}",
        device in "[ -~\u{2018}\u{2019}ä]{1,16}",
        reason in hostile(),
        before in "[ -~\u{2018}\u{2019}]{1,16}",
    ) {
        let script = |name: &str, device: &str, reason: &str, before: &str| {
            let registry = Address::Registry { key: PARAMETERS.to_owned(), value: name.to_owned() };
            let link = Address::Link { device: device.to_owned(), property: "mtu".to_owned() };
            let mut settings = Settings::default();
            settings.values.insert(registry.clone(), Some(before.to_owned()));
            let changes = vec![change_at(registry, Some("1"), reason), change_at(link, Some("1500"), reason)];
            let export = export(&plan_of(changes), &"windows-11".parse().unwrap(), Some(&settings)).unwrap();
            file(&export, "fullpipe.ps1").text()
        };
        let tame = kinds(&parsed(&script("Plain", "eth", "why", "1")));
        let wild = kinds(&parsed(&script(&name, &device, &reason, &before)));
        prop_assert_eq!(wild.get("ERROR"), None);
        prop_assert_eq!(tame, wild);
    }

    #[test]
    fn hostile_text_adds_no_command_to_a_batch_file(value in "[a-z]{1,8}", device in "[ -~]{1,16}", reason in hostile()) {
        let level = Address::netsh("tcp global", "autotuninglevel");
        let link = Address::Link { device, property: "mtu".to_owned() };
        let mut settings = Settings::default();
        settings.values.insert(level.clone(), Some("normal".to_owned()));
        settings.values.insert(link.clone(), Some("1500".to_owned()));
        let changes = vec![change_at(level.clone(), Some(&value), &reason), change_at(link, Some("9000"), &reason)];
        let Ok(export) = export(&plan_of(changes), &"windows-7".parse().unwrap(), Some(&settings)) else { return Ok(()) };
        let text = file(&export, "fullpipe-netsh.cmd").text();
        let (steps, problems) = recipe::read(Kind::Batch, &text);
        prop_assert_eq!(problems, []);
        let mtu = |action: &Action| matches!(action, Action::Set(Address::Link { property, .. }, to) if property == "mtu" && to == "9000");
        let (mtus, others): (Vec<_>, Vec<_>) = steps.into_iter().map(|step| step.action).partition(mtu);
        prop_assert_eq!(others, [Action::Set(level, value)]);
        prop_assert!(mtus.len() <= 1);
        let lines = text.lines().filter(|line| !line.starts_with("rem "));
        for line in lines.filter(|line| line.contains("subinterface")) {
            // Outside of quotation marks nothing acts.
            let outside: String = line.split('"').step_by(2).collect();
            prop_assert!(!outside.contains(['&', '|', '<', '>', '^', '%', '!']), "{line}");
        }
    }
}
