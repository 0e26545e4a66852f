//! Read, plan, export, import, read: what is read then is the plan; and after the undo it is what was there, be it absent.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::collections::BTreeMap;

use fullpipe_knobs::{
    Address, Family, Plan, Platform, PlatformRequest, Settings,
    export::{Export, export},
    plan_platform, reading,
    recipe::{self, Action, Kind},
};
use proptest::prelude::*;

const KEY: &str = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
const NAMES: [&str; 4] = ["GlobalMaxTcpWindowSize", "TcpWindowSize", "Tcp1323Opts", "SackOpts"];

/// A key of a registry: its values as a `.reg` file has them.
type Key = BTreeMap<String, String>;

/// The key as regedit exports it, whole.
fn exported(key: &Key) -> Vec<u8> {
    let mut text =
        format!("Windows Registry Editor Version 5.00\r\n\r\n[{KEY}]\r\n\"DataBasePath\"=hex(2):25,00,00,00\r\n");
    for (name, data) in key {
        text += &format!("\"{name}\"={data}\r\n");
    }
    text += "\r\n";
    [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

/// What regedit does with a file.
fn import(key: &mut Key, export: &Export, name: &str) {
    let file = export.files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("no {name}"));
    let mut below = false;
    for line in file.text().lines() {
        if line.starts_with('[') {
            below = line == format!("[{KEY}]");
        } else if let Some((value, data)) = line.split_once('=').filter(|_| line.starts_with('"')) {
            assert!(below, "{line}");
            let value = value.trim_matches('"').to_owned();
            if data == "-" {
                key.remove(&value)
            } else {
                key.insert(value, data.to_owned())
            };
        }
    }
}

fn read(name: &str, bytes: &[u8], platform: &Platform) -> Settings {
    reading::merge(&[reading::read(name, bytes).unwrap()], Some(platform)).unwrap().settings
}

fn planned(platform: &Platform, rate: u64, settings: &Settings) -> Plan {
    plan_platform(&PlatformRequest {
        settings: Some(settings),
        ..PlatformRequest::new(platform.clone(), fullpipe_units::Rate::from_bps(rate), "80ms".parse().unwrap())
    })
}

/// The values that a plan asks for, as settings tell them.
fn asked(plan: &Plan) -> BTreeMap<&Address, Option<&str>> {
    plan.changes.iter().map(|change| (&change.knob, change.to.as_deref())).collect()
}

fn found<'a>(plan: &'a Plan, settings: &'a Settings) -> BTreeMap<&'a Address, Option<&'a str>> {
    plan.changes.iter().map(|change| (&change.knob, settings.values[&change.knob].as_deref())).collect()
}

fn some_data() -> impl Strategy<Value = String> {
    prop_oneof![
        (0_u32..200_000).prop_map(|number| format!("dword:{number:08x}")),
        "[0-9]{1,5}".prop_map(|digits| format!("\"{digits}\"")),
        Just("hex(b):01,00,00,00,00,00,00,00".to_owned()),
    ]
}

proptest! {
    #[test]
    fn a_registry_comes_back_whatever_its_values_were(
        before in proptest::collection::btree_map(proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned), some_data(), 0..4),
        rate in 1_000_000_u64..1_000_000_000,
    ) {
        let platform: Platform = "windows-xp".parse().unwrap();
        let mut key = before.clone();
        let settings = read("before.reg", &exported(&key), &platform);
        let plan = planned(&platform, rate, &settings);
        prop_assume!(!plan.changes.is_empty());
        let export = export(&plan, &platform, Some(&settings)).unwrap();
        import(&mut key, &export, "fullpipe.reg");
        let after = read("after.reg", &exported(&key), &platform);
        prop_assert_eq!(found(&plan, &after), asked(&plan));
        // Planning again finds nothing to do.
        prop_assert_eq!(planned(&platform, rate, &after).changes, []);
        import(&mut key, &export, "fullpipe-undo.reg");
        prop_assert_eq!(key, before);
    }

    #[test]
    fn files_of_sysctls_read_back_as_the_plan(
        platform in proptest::sample::select(vec!["freebsd-6.2", "freebsd-14.1", "linux-5.15"]),
        buffer in 4096_u64..200_000,
        rate in 10_000_000_u64..10_000_000_000,
    ) {
        let platform: Platform = platform.parse().unwrap();
        let before = match platform.family {
            Family::Linux => format!(
                "net.ipv4.tcp_rmem = 4096\t{buffer}\t{buffer}\nnet.ipv4.tcp_wmem = 4096\t{buffer}\t{buffer}\nnet.ipv4.tcp_window_scaling = 0\n"
            ),
            _ => format!(
                "kern.ipc.maxsockbuf: {buffer}\nnet.inet.tcp.recvspace: {buffer}\nnet.inet.tcp.sendspace: {buffer}\nnet.inet.tcp.recvbuf_max: {buffer}\nnet.inet.tcp.sendbuf_max: {buffer}\nnet.inet.tcp.rfc1323: 0\n"
            ),
        };
        let settings = read("sysctl.txt", before.as_bytes(), &platform);
        let plan = planned(&platform, rate, &settings);
        let export = export(&plan, &platform, Some(&settings)).unwrap();
        let name = if platform.family == Family::Linux { "90-fullpipe.conf" } else { "sysctl.conf.local" };
        let file = export.files.iter().find(|file| file.name == name).unwrap();
        let after = read(name, &file.contents, &platform);
        prop_assert_eq!(found(&plan, &after), asked(&plan));
        let mut together = settings;
        together.values.extend(after.values);
        let again = planned(&platform, rate, &together);
        prop_assert_eq!(again.changes, []);
        // The exact undo is in the script: what was there, and not what a platform has by default.
        let undo = export.files.iter().find(|file| file.name == "undo.sh").unwrap().text();
        for change in &plan.changes {
            let from = change.from.as_deref().unwrap().replace('\t', " ");
            let line = undo.lines().find(|line| line.starts_with(&format!("restore_sysctl '{}' ", change.knob))).unwrap();
            prop_assert!(line.ends_with(&format!(" '{from}'")), "{line}");
        }
        let (steps, problems) = recipe::read(Kind::Sysctl, &file.text());
        prop_assert_eq!(problems, []);
        prop_assert!(steps.iter().all(|step| matches!(step.action, Action::Set(..))));
    }
}
