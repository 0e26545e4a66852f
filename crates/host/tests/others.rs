//! Another administrator sets what a run sets, at every moment of it: what they set stays, or is reported.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::Path};

use fullpipe_host::{
    ApplyOptions, FolderHost, Host, HostError, Identity, Journal, Outcome, UndoOptions, Which, apply, undo,
};
use fullpipe_knobs::{Address, Change, Settings};

const THEIRS: &str = "1 2 3";

/// A call of a host, before which somebody else may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Other,
}

/// A host that another administrator shares.
struct Shared<'a> {
    host: FolderHost,
    root: &'a Path,
    /// Of the setting that both want, and the how-manieth call the other is quicker at.
    at: Option<usize>,
    calls: Vec<Call>,
}

impl Shared<'_> {
    fn tick(&mut self, call: Call, address: Option<&Address>) {
        if address.is_some_and(|address| *address != rmem()) {
            return;
        }
        self.calls.push(call);
        if self.at == Some(self.calls.len()) {
            set(self.root, THEIRS);
        }
    }
}

impl Host for Shared<'_> {
    fn settings(&mut self) -> Result<Settings, HostError> {
        self.host.settings()
    }
    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        self.tick(Call::Read, Some(address));
        Host::read(&mut self.host, address)
    }
    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        self.tick(Call::Write, Some(address));
        self.host.write(address, value)
    }
    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        self.tick(Call::Other, Some(address));
        self.host.writable(address)
    }
    fn identity(&mut self) -> Result<Identity, HostError> {
        self.tick(Call::Other, None);
        self.host.identity()
    }
}

fn rmem() -> Address {
    Address::sysctl("net.ipv4.tcp_rmem")
}

fn set(root: &Path, value: &str) {
    fs::write(root.join("proc/sys/net/ipv4/tcp_rmem"), value).unwrap();
}

fn value(root: &Path) -> String {
    fs::read_to_string(root.join("proc/sys/net/ipv4/tcp_rmem")).unwrap().trim().to_owned()
}

fn machine(root: &Path) {
    fs::create_dir_all(root.join("proc/sys/net/ipv4")).unwrap();
    fs::write(root.join("platform"), "linux 6.18.44\n").unwrap();
    fs::write(root.join("proc/sys/net/ipv4/tcp_sack"), "0").unwrap();
    set(root, "4096 131072 6291456");
}

fn change(knob: Address, from: &str, to: &str) -> Change {
    Change::unexplained("a".into(), knob, Some(from.into()), Some(to.into()))
}

/// A run and its undo, during which somebody else is quicker at the `at`th call. Whether that was reported, and the calls.
fn history(root: &Path, at: Option<usize>) -> (bool, Vec<Call>) {
    machine(root);
    let mut host = Shared { host: FolderHost::new(root), root, at, calls: Vec::new() };
    let mut journal = Journal::in_memory().unwrap();
    let changes = [
        change(Address::sysctl("net.ipv4.tcp_sack"), "0", "1"),
        change(rmem(), "4096 131072 6291456", "4096 131072 9000000"),
    ];
    let is_reported = match apply(&mut host, &mut journal, &changes, &ApplyOptions::default()) {
        Ok(run) => run.applied.iter().any(fullpipe_host::Applied::clamped),
        Err(_) => true,
    };
    let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).unwrap();
    let is_theirs = |outcome: &Outcome| matches!(outcome, Outcome::ChangedSince { .. } | Outcome::Failed { .. });
    let is_reported = is_reported || report.entries.iter().any(|entry| is_theirs(&entry.outcome));
    // What nobody else set is as it was, whatever became of the other.
    assert_eq!(fs::read_to_string(root.join("proc/sys/net/ipv4/tcp_sack")).unwrap().trim(), "0", "{at:?}");
    (is_reported, host.calls)
}

#[test]
fn what_another_administrator_sets_at_any_moment_is_kept_or_reported() {
    let root = tempfile::tempdir().unwrap();
    let (is_reported, calls) = history(root.path(), None);
    assert!(!is_reported && value(root.path()) == "4096 131072 6291456");
    assert_eq!(calls.iter().filter(|call| **call == Call::Write).count(), 2, "set and put back: {calls:?}");
    for at in 1..=calls.len() {
        let (is_reported, _) = history(root.path(), Some(at));
        let is_kept = value(root.path()) == THEIRS;
        // No system sets a value only where it is what one believes: what comes between the last look and the write is lost,
        // and there is nothing in between but that.
        if calls[at - 1] == Call::Write {
            assert_eq!(calls[at - 2], Call::Read, "{calls:?}");
            continue;
        }
        assert!(is_kept || is_reported, "call {at}, {:?}: {}", calls[at - 1], value(root.path()));
    }
}
