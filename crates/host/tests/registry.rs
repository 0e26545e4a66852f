//! The registry adapter on a real registry: that of the Windows, or of the Wine, that runs this test.
//!
//! It changes the machine's TCP settings and takes them back, so it does so only where `FULLPIPE_TEST_REGISTRY` is set;
//! `wine.rs` sets it in a Wine of its own.
#![cfg(windows)]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::{fs, path::Path, process::Command};

use common::{address, change, options};
use fullpipe_host::{
    Host, HostError, Journal, UndoOptions, Which, apply, undo,
    windows::{SystemRegistry, SystemRunner, WindowsHost},
};
use fullpipe_knobs::Family;

const SERVICES: &str = r"HKLM\SYSTEM\CurrentControlSet\Services";
const PARAMETERS: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
const ADAPTER: &str = "{8F6B1C1A-1111-4000-8000-00AA00389B71}";
const VERSION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";

type System = WindowsHost<SystemRegistry, SystemRunner>;

/// A registry file as recipes have it: numbers, a number stored as a text, other types, an interface.
const RECIPE: &str = r#"Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters]
"TcpWindowSize"=dword:0000ffff
"Tcp1323Opts"="3"
"KeepAliveTime"=hex(b):00,94,35,77,00,00,00,00
"DefaultTTL"=hex:40,00
"KeepAliveInterval"=hex(2):25,00,41,00,25,00,00,00
"SackOpts"=hex(7):61,00,00,00,00,00

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{8F6B1C1A-1111-4000-8000-00AA00389B71}]
"TcpAckFrequency"=dword:00000001

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Afd\Parameters]
"DefaultReceiveWindow"=dword:00010000
"#;

/// What the recipe is to be read as.
const READ: [(&str, Option<&str>); 9] = [
    (r"Tcpip\Parameters\TcpWindowSize", Some("65535")),
    (r"Tcpip\Parameters\Tcp1323Opts", Some("\"3\"")),
    (r"Tcpip\Parameters\KeepAliveTime", Some("hex(b):00,94,35,77,00,00,00,00")),
    (r"Tcpip\Parameters\DefaultTTL", Some("hex:40,00")),
    (r"Tcpip\Parameters\KeepAliveInterval", Some("hex(2):25,00,41,00,25,00,00,00")),
    (r"Tcpip\Parameters\SackOpts", Some("hex(7):61,00,00,00,00,00")),
    (r"Tcpip\Parameters\Interfaces\{8F6B1C1A-1111-4000-8000-00AA00389B71}\TcpAckFrequency", Some("1")),
    (r"Afd\Parameters\DefaultReceiveWindow", Some("65536")),
    (r"Tcpip\Parameters\GlobalMaxTcpWindowSize", None),
];

fn place(below: &str) -> String {
    format!(r"registry {SERVICES}\{below}")
}

fn reg(arguments: &[&str]) {
    let status = Command::new("reg").args(arguments).status().unwrap();
    assert!(status.success(), "reg {arguments:?}");
}

/// All of the TCP keys as `reg export` writes them: a witness that is not ours.
fn exported(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for key in [PARAMETERS, r"HKLM\SYSTEM\CurrentControlSet\Services\Afd"] {
        let file = folder.join("export.reg");
        reg(&["export", key, file.to_str().unwrap(), "/y"]);
        all.extend(fs::read(file).unwrap());
    }
    all
}

/// One test, in this order: they share the registry.
#[test]
fn read_apply_read_back_undo_is_the_start_again() {
    if std::env::var_os("FULLPIPE_TEST_REGISTRY").is_none() {
        println!("skipped read_apply_read_back_undo_is_the_start_again: FULLPIPE_TEST_REGISTRY is not set");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let recipe = folder.path().join("recipe.reg");
    let utf16: Vec<u8> =
        format!("\u{feff}{RECIPE}").replace('\n', "\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&recipe, utf16).unwrap();
    reg(&["import", recipe.to_str().unwrap()]);

    let mut host = System::new();
    an_imported_file_is_read(&mut host);
    changes_come_back(&mut host, folder.path());
    policy_and_missing_keys_are_found_beforehand(&mut host);
    programs_that_do_not_answer_are_no_setting(&mut host);
}

fn an_imported_file_is_read(host: &mut System) {
    let settings = host.settings().unwrap();
    assert_eq!(settings.platform.family, Family::Windows);
    assert_ne!(settings.platform.version, "unknown");
    for (below, expected) in READ {
        let knob = address(&place(below));
        assert_eq!(host.read(&knob).unwrap().as_deref(), expected, "{below}");
        assert_eq!(settings.values.get(&knob).map(Option::as_deref), Some(expected), "{below}");
    }
}

/// Every type is replaced (also by a text without its closing zero), removed and made anew, with a journal on disk that is closed in between.
fn changes_come_back(host: &mut System, folder: &Path) {
    let start = exported(folder);
    let state = folder.join("state");
    let mut changes: Vec<_> = READ
        .iter()
        .zip(["131070", "1", "7200000", "\"a text\"", "1000", "hex(1):61,00", "2", "131072", "262144"])
        .map(|((below, _), to)| change(host, &place(below), Some(to)))
        .collect();
    changes.push(change(host, &place(r"Tcpip\Parameters\TcpMaxDupAcks"), Some("2")));
    changes.push({
        let mut last = change(host, &place(r"Tcpip\Parameters\TcpMaxDupAcks"), None);
        last.from = Some("2".to_owned());
        last
    });
    let run = apply(host, &mut Journal::open(&state).unwrap(), &changes, &options()).unwrap();
    assert!(run.applied.iter().all(|applied| !applied.clamped()));
    assert_eq!(host.read(&address(&place(r"Tcpip\Parameters\Tcp1323Opts"))).unwrap().as_deref(), Some("1"));
    let query = Command::new("reg").args(["query", PARAMETERS, "/v", "GlobalMaxTcpWindowSize"]).output().unwrap();
    let answer = String::from_utf8_lossy(&query.stdout).into_owned();
    assert!(answer.contains("REG_DWORD") && answer.contains("0x40000"), "{answer}");

    let removals: Vec<_> = READ.iter().map(|(below, _)| change(host, &place(below), None)).collect();
    apply(host, &mut Journal::open(&state).unwrap(), &removals, &options()).unwrap();
    assert!(READ.iter().all(|(below, _)| host.read(&address(&place(below))).unwrap().is_none()));
    assert_ne!(exported(folder), start);

    let mut journal = Journal::open(&state).unwrap();
    let report = undo(host, &mut journal, Which::All, UndoOptions::default()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(exported(folder), start, "what reg export writes is what it wrote at the start");
}

fn policy_and_missing_keys_are_found_beforehand(host: &mut System) {
    let other = place(&format!(r"Tcpip\Parameters\Interfaces\{}\TcpAckFrequency", ADAPTER.replace('8', "9")));
    assert!(matches!(host.read(&address(&other)), Err(HostError::ObjectGone { .. })));
    assert!(matches!(host.writable(&address(&other)), Err(HostError::ObjectGone { .. })));

    let level = address("netsh tcp global autotuninglevel");
    let policy = r"HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS";
    reg(&["add", policy, "/v", "Tcp Autotuning Level", "/t", "REG_SZ", "/d", "Restricted", "/f"]);
    let error = host.writable(&level).unwrap_err();
    assert!(matches!(&error, HostError::Policy { value, .. } if value == "Restricted"), "{error}");
    reg(&["delete", policy, "/f"]);
}

/// Wine has a PowerShell and a netsh that say nothing: an error, and no value made up.
fn programs_that_do_not_answer_are_no_setting(host: &mut System) {
    if std::env::var_os("WINEPREFIX").is_none() {
        return;
    }
    let level = address("netsh tcp global autotuninglevel");
    assert!(matches!(host.read(&level), Err(HostError::Program { program: "netsh", .. })));
    for (name, kind, value) in [
        ("CurrentMajorVersionNumber", "REG_DWORD", "10"),
        ("CurrentBuildNumber", "REG_SZ", "17763"),
        ("InstallationType", "REG_SZ", "Server"),
    ] {
        reg(&["add", VERSION, "/v", name, "/t", kind, "/d", value, "/f"]);
    }
    let settings = host.settings().unwrap();
    assert_eq!(settings.platform.version, "2019");
    assert!(!settings.values.contains_key(&level));
    let rto = address("tcpsetting Internet MinRtoMs");
    let error = host.read(&rto).unwrap_err();
    assert!(matches!(error, HostError::Program { program: "PowerShell", .. }), "{error}");
    // Which version only shows its templates is known without asking PowerShell.
    reg(&["add", VERSION, "/v", "InstallationType", "/t", "REG_SZ", "/d", "Client", "/f"]);
    assert!(matches!(host.writable(&rto), Err(HostError::ReadOnly { .. })));
}
