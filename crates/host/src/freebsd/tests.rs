//! The adapter over a kernel in memory and boot-time files in a folder.

use std::{collections::BTreeMap, fs, io, path::Path};

use fullpipe_knobs::{Address, Change, TakesEffect};

use super::{Bsd, BsdHost, Kernel, Oid};
use crate::{ApplyFault, ApplyOptions, Host, HostError, Journal, Output, UndoOptions, Which, apply, undo};

const INT: u32 = 2;
const ULONG: u32 = 8;
const TEXT: u32 = 3;
const READ_WRITE: u32 = 0xc000_0000;
const LOADER_ONLY: u32 = 0x8008_0000;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Memory {
    sysctls: BTreeMap<String, Oid>,
    mtu: u32,
}

impl Kernel for Memory {
    fn sysctl(&self, name: &str) -> io::Result<Option<Oid>> {
        Ok(self.sysctls.get(name).cloned())
    }

    fn set_sysctl(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let oid = self.sysctls.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        if !oid.is_writable() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        oid.bytes = bytes.to_vec();
        Ok(())
    }

    fn ifconfig(&mut self, arguments: &[&str]) -> io::Result<Output> {
        let answer =
            |success, stdout: String, stderr: &str| Output { success, stdout: stdout.into(), stderr: stderr.into() };
        Ok(match arguments {
            ["-a"] => answer(
                true,
                format!("em0: flags=8843<UP> metric 0 mtu {}\n\tmedia: Ethernet autoselect (1000baseT)\n", self.mtu),
                "",
            ),
            ["em0", "mtu", "9000"] => {
                self.mtu = 9000;
                answer(true, String::new(), "")
            }
            ["em0", "mtu", "1500"] => {
                self.mtu = 1500;
                answer(true, String::new(), "")
            }
            _ => answer(false, String::new(), "ifconfig: ioctl SIOCSIFMTU (set mtu): Invalid argument\n"),
        })
    }
}

fn machine(root: &Path, system: Bsd) -> BsdHost<Memory> {
    for (file, content) in [
        ("etc/sysctl.conf", "# Ann's\nkern.ipc.maxsockbuf=2097152  # the NAS\n"),
        ("etc/rc.conf", "hostname=\"box\"\nifconfig_em0=\"DHCP\"  # office\nsshd_enable=\"YES\"\n"),
        ("boot/loader.conf", "zfs_load=\"YES\"\n"),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    let text = |text: &str| text.as_bytes().to_vec();
    let sysctls = [
        ("kern.osrelease", TEXT, text("14.1-RELEASE-p5\0")),
        ("kern.osproductversion", TEXT, text("14.5\0")),
        ("hw.physmem", ULONG, 8_589_934_592u64.to_ne_bytes().to_vec()),
        ("kern.ipc.maxsockbuf", READ_WRITE | ULONG, 2_097_152u64.to_ne_bytes().to_vec()),
        ("net.inet.tcp.recvbuf_max", READ_WRITE | INT, 2_097_152i32.to_ne_bytes().to_vec()),
        ("net.inet.tcp.cc.algorithm", READ_WRITE | TEXT, text("newreno\0")),
        ("kern.ipc.nmbclusters", LOADER_ONLY | INT, 26_584i32.to_ne_bytes().to_vec()),
    ];
    let sysctls = sysctls.into_iter().map(|(name, kind, bytes)| (name.to_owned(), Oid { kind, bytes })).collect();
    BsdHost::with(system, Memory { sysctls, mtu: 1500 }, root)
}

fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

fn change(host: &mut impl Host, place: &str, to: &str, takes_effect: TakesEffect) -> Change {
    let knob = address(place);
    Change {
        host: "a".into(),
        from: host.read(&knob).expect("readable"),
        knob,
        to: Some(to.to_owned()),
        reason: String::new(),
        arithmetic: String::new(),
        memory_worst_case: None,
        takes_effect,
        undo: String::new(),
        source: String::new(),
    }
}

fn content(root: &Path, file: &str) -> String {
    fs::read_to_string(root.join(file)).expect("read")
}

#[test]
fn settings_are_read_with_those_that_are_absent() {
    let root = tempfile::tempdir().expect("a folder");
    let settings = machine(root.path(), Bsd::FreeBsd).settings().expect("read");
    assert_eq!((settings.platform.family.name(), settings.platform.version.as_str()), ("freebsd", "14.1"));
    assert_eq!(settings.sysctl("kern.ipc.maxsockbuf"), Some("2097152"));
    assert_eq!(settings.values.get(&address("net.inet.tcp.recvbuf_inc")), Some(&None), "looked, and absent");
    assert_eq!(settings.values.get(&address("link em0 mtu")), Some(&Some("1500".into())));
    assert_eq!(settings.machine.memory.map(|memory| memory.get()), Some(8_589_934_592));
    let origin = settings.origins.get(&address("kern.ipc.maxsockbuf")).and_then(|lines| lines.first());
    let origin = origin.map(|origin| (origin.file.as_str(), origin.line, origin.value.as_str()));
    assert_eq!(origin, Some(("/etc/sysctl.conf", 2, "2097152")));
}

#[test]
fn changes_last_by_edits_that_keep_the_files_and_the_undo_restores_every_byte() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::FreeBsd);
    let start = host.kernel.clone();
    let files = ["etc/sysctl.conf", "etc/rc.conf", "boot/loader.conf"];
    let before = files.map(|file| content(root.path(), file));
    let changes = [
        change(&mut host, "kern.ipc.maxsockbuf", "16777216", TakesEffect::NewConnections),
        change(&mut host, "net.inet.tcp.cc.algorithm", "cubic", TakesEffect::NewConnections),
        change(&mut host, "link em0 mtu", "9000", TakesEffect::Live),
        change(&mut host, "net.inet.tcp.recvbuf_max", "8388608", TakesEffect::Restart),
    ];
    let mut journal = Journal::in_memory().expect("a journal");
    let lasting = ApplyOptions { persist: Some("/nowhere".into()), ..ApplyOptions::default() };
    let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
    assert_eq!((run.boot_files.len(), run.not_persisted.len()), (3, 0));
    assert_eq!(host.read(&address("net.inet.tcp.cc.algorithm")).expect("read").as_deref(), Some("cubic"));
    let sysctl = content(root.path(), "etc/sysctl.conf");
    assert!(sysctl.starts_with("# Ann's\nkern.ipc.maxsockbuf=16777216  # the NAS\n\n#"), "{sysctl}");
    assert!(sysctl.ends_with("\nnet.inet.tcp.cc.algorithm=cubic\n"), "{sysctl}");
    assert_eq!(content(root.path(), "etc/rc.conf"), before[1].replace("\"DHCP\"", "\"DHCP mtu 9000\""));
    let loader = content(root.path(), "boot/loader.conf");
    assert!(loader.starts_with(&before[2]) && loader.ends_with("net.inet.tcp.recvbuf_max=\"8388608\"\n"), "{loader}");

    let report = undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(files.map(|file| content(root.path(), file)), before);
    assert_eq!(host.read(&address("kern.ipc.maxsockbuf")).expect("read").as_deref(), Some("2097152"));
    assert_eq!(host.kernel.mtu, start.mtu);
}

#[test]
fn what_only_the_loader_sets_is_written_for_it_and_waits_for_the_restart() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::FreeBsd);
    // Whatever the plan says of the time, the kernel knows better.
    for takes_effect in [TakesEffect::Restart, TakesEffect::NewConnections] {
        let clusters = change(&mut host, "kern.ipc.nmbclusters", "262144", takes_effect);
        let mut journal = Journal::in_memory().expect("a journal");
        let lasting = ApplyOptions { persist: Some("/nowhere".into()), ..ApplyOptions::default() };
        let run = apply(&mut host, &mut journal, &[clusters], &lasting).expect("applied");
        let applied = &run.applied[0];
        assert!(applied.needs_restart() && !applied.clamped() && !applied.unchanged(), "{applied:?}");
        assert_eq!(applied.now.as_deref(), Some("26584"), "the running system keeps its own");
        assert_eq!(run.boot_files, [root.path().join("boot/loader.conf")]);
        let loader = content(root.path(), "boot/loader.conf");
        assert!(loader.ends_with("kern.ipc.nmbclusters=\"262144\"\n"), "{loader}");
        undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
        assert_eq!(content(root.path(), "boot/loader.conf"), "zfs_load=\"YES\"\n");
    }
}

#[test]
fn buffers_wait_until_the_system_was_started_with_their_clusters() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::FreeBsd);
    let changes = [
        change(&mut host, "kern.ipc.maxsockbuf", "16777216", TakesEffect::NewConnections),
        change(&mut host, "kern.ipc.nmbclusters", "262144", TakesEffect::Restart),
    ];
    let mut journal = Journal::in_memory().expect("a journal");
    let lasting = ApplyOptions { persist: Some("/nowhere".into()), ..ApplyOptions::default() };
    let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
    assert_eq!((run.applied.len(), run.waiting.as_slice()), (1, [address("kern.ipc.maxsockbuf")].as_slice()));
    assert_eq!(run.boot_files, [root.path().join("boot/loader.conf")]);
    assert_eq!(host.read(&address("kern.ipc.maxsockbuf")).expect("read").as_deref(), Some("2097152"));
    // The start, which rounds the pool up; then the same plan sets the rest.
    host.kernel.sysctls.get_mut("kern.ipc.nmbclusters").expect("there").bytes = 262_200i32.to_ne_bytes().to_vec();
    let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
    assert!(run.waiting.is_empty() && run.applied.iter().all(|applied| !applied.needs_restart()), "{run:?}");
    assert_eq!(host.read(&address("kern.ipc.maxsockbuf")).expect("read").as_deref(), Some("16777216"));
}

#[test]
fn before_7_0_a_write_of_the_pools_size_is_none() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::FreeBsd);
    let clusters = address("kern.ipc.nmbclusters");
    for (release, waits) in [("6.2-RELEASE\0", true), ("8.1-RELEASE\0", false)] {
        host.kernel.sysctls.get_mut("kern.osrelease").expect("there").bytes = release.as_bytes().to_vec();
        host.kernel.sysctls.get_mut("kern.ipc.nmbclusters").expect("there").kind = READ_WRITE | INT;
        assert_eq!(host.is_taken_at_start(&clusters).expect("known"), waits, "{release}");
    }
}

#[test]
fn a_name_in_the_local_file_is_edited_there() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::FreeBsd);
    fs::write(root.path().join("etc/sysctl.conf.local"), "kern.ipc.maxsockbuf=4194304\n").expect("written");
    let change = change(&mut host, "kern.ipc.maxsockbuf", "16777216", TakesEffect::NewConnections);
    let files = host.boot_files(Path::new("/nowhere"), &[&change]).expect("edited");
    assert_eq!(
        files.iter().map(|file| file.path.clone()).collect::<Vec<_>>(),
        [root.path().join("etc/sysctl.conf.local")]
    );
    assert_eq!(files[0].content, b"kern.ipc.maxsockbuf=16777216\n");
}

#[test]
fn a_file_that_cannot_be_edited_takes_the_run_back() {
    for (file, text, word) in [
        ("etc/rc.conf", "ifconfig_em0=\"$address mtu 1500\"\n", "line 1"),
        ("etc/rc.conf.local", "ifconfig_DEFAULT=\"DHCP\"\n", "ifconfig_DEFAULT"),
    ] {
        let root = tempfile::tempdir().expect("a folder");
        let mut host = machine(root.path(), Bsd::FreeBsd);
        fs::write(root.path().join("etc/rc.conf"), "").expect("written");
        fs::write(root.path().join(file), text).expect("written");
        let changes = [change(&mut host, "link em0 mtu", "9000", TakesEffect::Live)];
        let lasting = ApplyOptions { persist: Some("/nowhere".into()), ..ApplyOptions::default() };
        let error =
            apply(&mut host, &mut Journal::in_memory().expect("a journal"), &changes, &lasting).expect_err(word);
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!((host.kernel.mtu, content(root.path(), file).as_str()), (1500, text));
    }
}

#[test]
fn what_the_running_system_does_not_take_is_refused_beforehand() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::FreeBsd);
    let clusters = change(&mut host, "kern.ipc.nmbclusters", "262144", TakesEffect::Restart);
    let mut journal = Journal::in_memory().expect("a journal");
    let error = apply(&mut host, &mut journal, &[clusters], &ApplyOptions::default()).expect_err("the loader's");
    assert!(matches!(*error.fault, ApplyFault::Host(HostError::ReadOnly { .. })), "{error}");
    assert!(error.to_string().contains("--persist"), "{error}");
    for (place, value) in [("kern.ipc.maxsockbuf", "-1"), ("net.inet.tcp.recvbuf_max", "many")] {
        assert!(matches!(host.write(&address(place), Some(value)), Err(HostError::InvalidValue { .. })), "{place}");
    }
    assert!(matches!(host.write(&address("kern.securelevel"), Some("3")), Err(HostError::UnknownAddress { .. })));
    assert!(matches!(host.write(&address("net.inet.tcp.sendbuf_max"), Some("3")), Err(HostError::Missing { .. })));
    let error = host.write(&address("link em0 mtu"), Some("64000")).expect_err("refused");
    assert!(error.to_string().contains("Invalid argument"), "{error}");
}

#[test]
fn macos_is_read_and_not_written() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path(), Bsd::MacOs);
    let settings = host.settings().expect("read");
    assert_eq!((settings.platform.family.name(), settings.platform.version.as_str()), ("macos", "14.5"));
    assert_eq!(settings.sysctl("kern.ipc.maxsockbuf"), Some("2097152"));
    let error = host.write(&address("kern.ipc.maxsockbuf"), Some("4194304")).expect_err("read only");
    assert!(matches!(error, HostError::ReadOnly { .. }), "{error}");
}
