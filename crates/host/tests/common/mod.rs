//! What the tests of several files share.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use fullpipe_host::{ApplyOptions, FolderHost, Host};
use fullpipe_knobs::{Address, Change, TakesEffect};

pub(crate) fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

/// A change from what is in force at `place`.
pub(crate) fn change(host: &mut impl Host, place: &str, to: Option<&str>) -> Change {
    let knob = address(place);
    let from = host.read(&knob).expect("readable");
    Change {
        host: "a".into(),
        knob,
        from,
        to: to.map(str::to_owned),
        reason: "a test".into(),
        arithmetic: String::new(),
        memory_worst_case: None,
        takes_effect: TakesEffect::NewConnections,
        undo: String::new(),
        source: String::new(),
    }
}

pub(crate) fn options() -> ApplyOptions {
    ApplyOptions { command: "a test".into(), ..ApplyOptions::default() }
}

/// A small machine in a folder: two sysctls, one of them read-only, a route with a gateway, a link.
pub(crate) fn machine(root: &Path) -> FolderHost {
    for (file, content) in [
        ("platform", "linux 6.18.44\n"),
        ("memory", "8233426944\n"),
        ("page", "4096\n"),
        ("proc/sys/kernel/random/boot_id", "first-boot\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
        ("proc/sys/net/core/rmem_max", "212992\n"),
        ("routes/default/device", "eth0\n"),
        ("routes/default/gateway", "10.0.0.1\n"),
        ("routes/10.9.0.0_16/device", "eth0\n"),
        ("routes/10.9.0.0_16/initcwnd", "20\n"),
        ("links/eth0/mtu", "1500\n"),
        ("links/eth0/speed_bps", "1000000000\n"),
        ("links/eth0/offload/tso", "on\n"),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    let read_only = root.join("proc/sys/net/core/rmem_max");
    let mut permissions = fs::metadata(&read_only).expect("there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(read_only, permissions).expect("set");
    FolderHost::new(root)
}

/// Every file below a folder with its content, blanks evened out: what the machine is.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(root).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            let content = fs::read_to_string(&path).expect("read");
            files.insert(path, content.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    files
}
