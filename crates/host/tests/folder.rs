//! The contract of a host, and apply and undo, on a machine that is a folder.

mod common;

use std::{fs, path::Path};

use common::{address, change, machine, options, tree};
use fullpipe_host::guardian::{self, Bond};
use fullpipe_host::{
    ApplyFault, ApplyOptions, EntryKind, EntryState, FolderHost, Host, HostError, Identity, Journal, Outcome, RunState,
    Trial, UndoOptions, UndoReport, Which, apply, confirm, undo,
};
use fullpipe_knobs::{Address, Settings};
use proptest::prelude::*;

const BIG: &str = "4096 131072 33554432";

#[test]
fn a_folder_reads_as_the_machine_that_it_describes() {
    let root = tempfile::tempdir().expect("a folder");
    let settings = machine(root.path()).settings().expect("read");
    assert_eq!((settings.platform.family.name(), settings.platform.version.as_str()), ("linux", "6.18.44"));
    assert_eq!(settings.sysctl("net.ipv4.tcp_rmem"), Some("4096 131072 6291456"));
    assert_eq!(settings.values.get(&address("route 10.9.0.0/16 initcwnd")), Some(&Some("20".to_owned())));
    assert_eq!(settings.values.get(&address("route 10.9.0.0/16 window")), Some(&None), "looked, and absent");
    assert_eq!(settings.values.get(&address("link eth0 offload tso")), Some(&Some("on".to_owned())));
    assert_eq!(settings.links.iter().map(|link| link.speed_bps).collect::<Vec<_>>(), [Some(1_000_000_000)]);
    assert_eq!(settings.machine.page.map(|page| page.get()), Some(4096));
}

#[test]
fn what_is_applied_is_in_force_and_undone_exactly() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [
        change(&mut host, "net.ipv4.tcp_rmem", Some(BIG)),
        change(&mut host, "route default initrwnd", Some("40")),
        change(&mut host, "route 10.9.0.0/16 initcwnd", None),
        change(&mut host, "link eth0 mtu", Some("9000")),
        change(&mut host, "net.ipv4.tcp_wmem", Some("4096 16384 4194304")),
    ];
    let run = apply(&mut host, &mut journal, &changes, &options()).expect("applied");
    assert!(run.applied.iter().all(|applied| !applied.clamped()));
    assert!(run.applied.last().is_some_and(|applied| applied.unchanged()));
    assert_eq!(host.read(&address("net.ipv4.tcp_rmem")).expect("read").as_deref(), Some(BIG));
    assert_eq!(host.read(&address("route 10.9.0.0/16 initcwnd")).expect("read"), None);

    let record = journal.run(run.id.expect("a run")).expect("recorded");
    assert_eq!(record.state, RunState::Open);
    assert_eq!(record.entries.len(), 4, "what was so already is not recorded");
    let report = undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert!(report.is_complete());
    let places: Vec<_> = report.entries.iter().map(|entry| entry.place.as_str()).collect();
    assert_eq!(
        places,
        ["link eth0 mtu", "route 10.9.0.0/16 initcwnd", "route default initrwnd", "net.ipv4.tcp_rmem"],
        "in reverse"
    );
    assert_eq!(tree(root.path()), before);
    let again = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("nothing to do");
    assert!(again.entries.is_empty() && journal.outstanding().expect("read").is_empty());
    assert_eq!(journal.history().expect("read").first().map(|run| run.state), Some(RunState::Undone));
}

#[test]
fn what_can_be_known_beforehand_stops_everything() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let good = change(&mut host, "net.ipv4.tcp_rmem", Some(BIG));
    let read_only = change(&mut host, "net.core.rmem_max", Some("4194304"));
    let missing = change(&mut host, "net.ipv4.tcp_new_in_7_0", Some("1"));
    let malformed = change(&mut host, "route default window", Some("wide"));
    let mut stale = change(&mut host, "net.ipv4.tcp_wmem", Some("1 2 3"));
    stale.from = Some("4096 16384 1".into());
    for (bad, expected) in [
        (&read_only, "read-only"),
        (&missing, "linux 6.18.44"),
        (&malformed, "expected a whole number"),
        (&stale, "make the plan again"),
    ] {
        let error = apply(&mut host, &mut journal, &[good.clone(), bad.clone()], &options()).expect_err(expected);
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains(&bad.knob.to_string()), "{text}");
        assert!(text.ends_with("nothing was changed"), "{text}");
    }
    assert!(journal.history().expect("read").is_empty());
    assert_eq!(tree(root.path()), before);
    let accepted = ApplyOptions { accept_stale: true, ..options() };
    apply(&mut host, &mut journal, &[stale], &accepted).expect("accepted");
}

/// A host that misbehaves at one address.
struct Odd {
    host: FolderHost,
    place: Address,
    manner: Manner,
}

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Refuses,
    Ignores,
    ClampsTo(&'static str),
}

impl Host for Odd {
    fn settings(&mut self) -> Result<Settings, HostError> {
        self.host.settings()
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        Host::read(&mut self.host, address)
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        match self.manner {
            _ if *address != self.place => self.host.write(address, value),
            Manner::Refuses => Err(HostError::Refused {
                address: address.clone(),
                value: value.unwrap_or_default().to_owned(),
                source: std::io::ErrorKind::InvalidInput.into(),
            }),
            Manner::Ignores => Ok(()),
            Manner::ClampsTo(limit) if value == Some("9000") => self.host.write(address, Some(limit)),
            Manner::ClampsTo(_) => self.host.write(address, value),
        }
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        self.host.writable(address)
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        self.host.identity()
    }
}

#[test]
fn a_change_that_fails_takes_back_those_before_it() {
    for manner in [Manner::Refuses, Manner::Ignores] {
        let root = tempfile::tempdir().expect("a folder");
        let mut host = Odd { host: machine(root.path()), place: address("link eth0 mtu"), manner };
        let before = tree(root.path());
        let mut journal = Journal::in_memory().expect("a journal");
        let changes = [
            change(&mut host, "net.ipv4.tcp_rmem", Some(BIG)),
            change(&mut host, "route default initrwnd", Some("40")),
            change(&mut host, "link eth0 mtu", Some("9000")),
        ];
        let error = apply(&mut host, &mut journal, &changes, &options()).expect_err("refused");
        let refused = matches!(*error.fault, ApplyFault::Host(HostError::Refused { .. }));
        let ignored = matches!(*error.fault, ApplyFault::NoEffect { .. });
        assert!(if manner == Manner::Refuses { refused } else { ignored }, "{error}");
        assert_eq!(error.rollback.len(), 3);
        assert!(error.rollback.iter().all(|entry| entry.outcome.is_restored()), "{error}");
        assert_eq!(tree(root.path()), before);
        assert!(journal.outstanding().expect("read").is_empty());
    }
}

#[test]
fn a_clamped_value_is_reported_and_still_ours_to_undo() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host =
        Odd { host: machine(root.path()), place: address("link eth0 mtu"), manner: Manner::ClampsTo("1504") };
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "link eth0 mtu", Some("9000"))];
    let run = apply(&mut host, &mut journal, &changes, &options()).expect("applied");
    let [applied] = run.applied.as_slice() else { panic!("one change") };
    assert!(applied.clamped());
    assert_eq!(applied.now.as_deref(), Some("1504"));
    assert!(undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone").is_complete());
    assert_eq!(tree(root.path()), before);
}

#[test]
fn what_somebody_changed_since_is_theirs_unless_forced() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG)), change(&mut host, "link eth0 mtu", Some("9000"))];
    apply(&mut host, &mut journal, &changes, &options()).expect("applied");
    host.write(&address("link eth0 mtu"), Some("4000")).expect("somebody else");
    let report = undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert!(!report.is_complete());
    let outcomes: Vec<_> = report.entries.iter().map(|entry| &entry.outcome).collect();
    assert!(
        matches!(outcomes.as_slice(), [
            Outcome::ChangedSince { now: Some(now), ours: Some(ours), before: Some(_), by: None },
            Outcome::Restored { .. },
        ] if now == "4000" && ours == "9000"),
        "{outcomes:?}"
    );
    assert_eq!(Host::read(&mut host, &address("link eth0 mtu")).expect("read").as_deref(), Some("4000"));
    let forced = undo(&mut host, &mut journal, Which::Latest, UndoOptions { force: true, ..UndoOptions::default() })
        .expect("undone");
    assert!(forced.is_complete() && forced.entries.len() == 1);
    assert_eq!(tree(root.path()), before);
}

/// Two runs, of which the later is kept; then somebody changes one setting, and the drop-in.
fn changed_by_others(root: &Path, boot: &Path) -> (FolderHost, Journal) {
    let mut host = machine(root);
    let mut journal = Journal::in_memory().expect("a journal");
    let lasting = ApplyOptions { persist: Some(boot.to_owned()), ..options() };
    for mtu in ["4000", "9000"] {
        let changes = [change(&mut host, "link eth0 mtu", Some(mtu))];
        let run = apply(&mut host, &mut journal, &changes, &options()).expect("applied").id.expect("a run");
        journal.keep(run).expect("kept");
    }
    let changes =
        [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG)), change(&mut host, "net.ipv4.tcp_wmem", Some(BIG))];
    apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
    host.write(&address("net.ipv4.tcp_rmem"), Some("4096 1 2")).expect("somebody else");
    fs::write(boot.join("90-fullpipe.conf"), "net.ipv4.tcp_sack = 1\n").expect("somebody else");
    (host, journal)
}

#[test]
fn a_dry_run_tells_what_the_undo_does_and_changes_nothing() {
    let both = || (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    for (force, leave_changed) in [(false, false), (true, false), (false, true)] {
        let (root, boot) = both();
        let (mut host, mut journal) = changed_by_others(root.path(), boot.path());
        let (there, of_boot) = (tree(root.path()), tree(boot.path()));
        let (history, options) = (journal.history(), UndoOptions { force, leave_changed, dry_run: true });
        let would = undo(&mut host, &mut journal, Which::All, options).expect("told");
        assert_eq!((tree(root.path()), tree(boot.path())), (there, of_boot), "nothing was changed");
        assert_eq!(journal.history().expect("read"), history.expect("read"), "nor in the journal");
        let done = undo(&mut host, &mut journal, Which::All, UndoOptions { dry_run: false, ..options }).expect("done");
        assert_eq!(would.entries, done.entries);
        assert!(would.dry_run && !done.dry_run && would.is_complete() == done.is_complete());
        // Two runs of the same setting: the older from what the later leaves.
        let mtu = |was: &str, now: &str| Outcome::Restored { was: Some(was.to_owned()), now: Some(now.to_owned()) };
        assert!(done.entries.iter().any(|entry| entry.outcome == mtu("9000", "4000")), "{done:?}");
        assert!(done.entries.iter().any(|entry| entry.outcome == mtu("4000", "1500")), "{done:?}");
    }
}

#[test]
fn what_is_left_to_whoever_changed_it_is_looked_at_no_more() {
    let (root, boot) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (mut host, mut journal) = changed_by_others(root.path(), boot.path());
    let outcomes = |report: &UndoReport| report.entries.iter().map(|entry| entry.outcome.clone()).collect::<Vec<_>>();
    let all = |host: &mut FolderHost, journal: &mut Journal, leave_changed| {
        let options = UndoOptions { leave_changed, ..UndoOptions::default() };
        undo(host, journal, Which::All, options).expect("undone")
    };
    let is_changed = |outcome: &Outcome| matches!(outcome, Outcome::ChangedSince { .. });
    let first = all(&mut host, &mut journal, false);
    assert_eq!(outcomes(&first).iter().filter(|outcome| is_changed(outcome)).count(), 2, "{first:?}");
    assert_eq!(outcomes(&first).iter().filter(|outcome| outcome.is_restored()).count(), 3, "the rest: {first:?}");
    let again = all(&mut host, &mut journal, false);
    assert_eq!((again.entries.len(), again.is_complete()), (2, false), "it stays known: {again:?}");
    let left = all(&mut host, &mut journal, true);
    assert!(
        left.is_complete() && outcomes(&left).iter().all(|outcome| matches!(outcome, Outcome::Left { .. })),
        "{left:?}"
    );
    assert!(all(&mut host, &mut journal, false).entries.is_empty());
    // It is told as theirs until it is as it was before us.
    let drop_in = boot.path().join("90-fullpipe.conf");
    let told = |host: &mut FolderHost, journal: &Journal| -> Vec<(String, Option<String>, bool)> {
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).expect("text"));
        let left = fullpipe_host::left(host, journal).expect("looked");
        left.into_iter()
            .map(|left| (left.entry.place.clone(), text(left.now.clone().expect("read")), left.claims_an_undo()))
            .collect()
    };
    let rmem = ("net.ipv4.tcp_rmem".to_owned(), Some("4096 1 2".to_owned()), false);
    let file = |content: &str, claims| (drop_in.display().to_string(), Some(content.to_owned()), claims);
    let mut both = told(&mut host, &journal);
    both.sort();
    assert_eq!(both, [file("net.ipv4.tcp_sack = 1\n", false), rmem.clone()]);
    let claim = "# Written by fullpipe; `fullpipe undo` takes it back.\nnet.ipv4.tcp_sack = 1\n";
    fs::write(&drop_in, claim).expect("somebody else");
    assert!(told(&mut host, &journal).contains(&file(claim, true)));
    fs::remove_file(&drop_in).expect("removed");
    assert_eq!(told(&mut host, &journal), [rmem], "a file that is gone is as it was before");
    fs::write(&drop_in, "net.ipv4.tcp_sack = 1\n").expect("somebody else");
    assert_eq!(host.read(&address("net.ipv4.tcp_rmem")).expect("read").as_deref(), Some("4096 1 2"));
    assert_eq!(fs::read_to_string(boot.path().join("90-fullpipe.conf")).expect("there"), "net.ipv4.tcp_sack = 1\n");
    // What a later run of ours changed is nobody else's.
    let put = |host: &mut FolderHost, journal: &mut Journal, mtu| {
        let changes = [change(host, "link eth0 mtu", Some(mtu))];
        apply(host, journal, &changes, &options()).expect("applied").id.expect("a run")
    };
    let first = put(&mut host, &mut journal, "4000");
    put(&mut host, &mut journal, "9000");
    let options = UndoOptions { leave_changed: true, ..UndoOptions::default() };
    let report = undo(&mut host, &mut journal, Which::Runs(&[first]), options).expect("looked");
    assert!(outcomes(&report).iter().all(is_changed) && !report.is_complete(), "{report:?}");
}

#[test]
fn a_drop_in_that_somebody_changed_since_is_theirs_unless_forced() {
    let (root, boot) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut host = machine(root.path());
    let file = boot.path().join("90-fullpipe.conf");
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
    let lasting = ApplyOptions { persist: Some(boot.path().to_owned()), ..options() };
    apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
    fs::write(&file, "net.ipv4.tcp_sack = 1\n").expect("somebody else");
    let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
    assert!(matches!(report.entries[0].outcome, Outcome::ChangedSince { .. }), "{report:?}");
    assert_eq!(fs::read_to_string(&file).expect("there"), "net.ipv4.tcp_sack = 1\n");
    let forced = undo(&mut host, &mut journal, Which::All, UndoOptions { force: true, ..UndoOptions::default() })
        .expect("undone");
    assert!(forced.is_complete() && !file.exists(), "{forced:?}");
}

#[test]
fn nothing_is_confirmed_after_its_deadline_a_restart_or_its_undo() {
    for (deadline_ms, ends) in [(0, "by its deadline"), (i64::MAX, "by a restart"), (i64::MAX, "by an undo")] {
        let (root, boot) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mut host = machine(root.path());
        let mut journal = Journal::in_memory().expect("a journal");
        let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
        let trial = Some(Trial { owner: "a test".into(), deadline_ms: Some(deadline_ms) });
        let lasting = ApplyOptions { persist: Some(boot.path().to_owned()), trial, ..options() };
        let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied").id.expect("a run");
        match ends {
            "by a restart" => {
                fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "second-boot\n").expect("restarted");
            }
            "by an undo" => {
                let report = undo(&mut host, &mut journal, Which::Run(run), UndoOptions::default()).expect("undone");
                assert!(report.is_complete(), "{report:?}");
            }
            _ => {}
        }
        let refused = confirm(&mut host, &mut journal, run).expect_err(ends).to_string();
        assert!(refused.contains("not on trial"), "{ends}: {refused}");
        assert_eq!(fs::read_dir(boot.path()).expect("listed").count(), 0, "{ends}: a file was written");
    }
}

#[test]
fn a_confirmation_that_fails_after_its_file_was_written_takes_the_file_back() {
    // The journal refuses what comes after the file: the mark that it is written, or the one that the run stays.
    for refused in ["ON entries WHEN new.kind = 'file' AND new.state = 'written'", "ON runs WHEN new.kept"] {
        let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
        let [root, boot, state] = folders.each_ref().map(tempfile::TempDir::path);
        let mut host = machine(root);
        let began = (tree(root), "# ours\nnet.ipv4.tcp_ecn = 2\n".to_owned());
        let file = boot.join("90-fullpipe.conf");
        fs::write(&file, &began.1).expect("written");
        let mut journal = Journal::open(state).expect("a journal");
        let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
        let trial = Some(Trial { owner: "a test".into(), deadline_ms: Some(i64::MAX) });
        let lasting = ApplyOptions { persist: Some(boot.to_owned()), trial, ..options() };
        let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied").id.expect("a run");
        let other = rusqlite::Connection::open(state.join("journal.sqlite")).expect("open");
        let trigger = format!("CREATE TRIGGER full BEFORE UPDATE {refused} BEGIN SELECT RAISE(ABORT, 'no room'); END");
        other.execute_batch(&trigger).expect("made");

        let error = confirm(&mut host, &mut journal, run).expect_err(refused);
        let text = error.to_string();
        assert!(text.contains("no room") && text.ends_with("what was changed before it (1) was taken back"), "{text}");
        assert_eq!(fs::read_to_string(&file).expect("there"), began.1, "{refused}");
        let record = journal.run(run).expect("recorded");
        assert_eq!(record.state, RunState::OnTrial, "{refused}");
        assert!(record.entries.iter().all(|entry| entry.kind == EntryKind::File || !entry.persisted), "{record:?}");
        assert_eq!(Host::read(&mut host, &address("net.ipv4.tcp_rmem")).expect("read").as_deref(), Some(BIG));

        other.execute_batch("DROP TRIGGER full").expect("gone");
        confirm(&mut host, &mut journal, run).expect("confirmed");
        assert_eq!(journal.run(run).expect("recorded").state, RunState::Kept, "{refused}");
        assert!(fs::read_to_string(&file).expect("there").contains(BIG), "{refused}");
        let undone = undo(&mut host, &mut journal, Which::Run(run), UndoOptions::default()).expect("undone");
        assert!(undone.is_complete(), "{refused}: {undone:?}");
        assert_eq!((tree(root), fs::read_to_string(&file).expect("there")), began, "{refused}");
    }
}

/// A machine that refuses to write for a while.
struct Stubborn {
    host: FolderHost,
    refusals: u32,
}

impl Host for Stubborn {
    fn settings(&mut self) -> Result<Settings, HostError> {
        self.host.settings()
    }
    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        Host::read(&mut self.host, address)
    }
    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        if self.refusals == 0 {
            return self.host.write(address, value);
        }
        self.refusals -= 1;
        Err(HostError::NeverAbsent { address: address.clone() })
    }
    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        self.host.writable(address)
    }
    fn identity(&mut self) -> Result<Identity, HostError> {
        self.host.identity()
    }
}

#[test]
fn a_guardian_tries_an_undo_that_failed_again() {
    let (root, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut host = machine(root.path());
    let before = tree(root.path());
    let mut journal = Journal::open(state.path()).expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
    let trial = Some(Trial { owner: "a-test".into(), deadline_ms: None });
    apply(&mut host, &mut journal, &changes, &ApplyOptions { trial, ..options() }).expect("applied");
    drop(journal);
    let mut host = Stubborn { host, refusals: 3 };
    let stop = std::sync::atomic::AtomicBool::new(false);
    // Its parent has ended.
    let (parent, ready) = (std::io::empty(), || {});
    guardian::watch(&mut host, state.path(), "a-test", Bond::Parent, parent, ready, &stop).expect("ended");
    assert_eq!((host.refusals, tree(root.path())), (0, before));
}

#[test]
fn runs_on_top_of_each_other_come_off_in_reverse() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let put = |host: &mut FolderHost, journal: &mut Journal, mtu| {
        let changes = [change(host, "link eth0 mtu", Some(mtu))];
        apply(host, journal, &changes, &options()).expect("applied").id.expect("a run")
    };
    let first = put(&mut host, &mut journal, "4000");
    let second = put(&mut host, &mut journal, "9000");
    journal.keep(second).expect("kept");
    let report = undo(&mut host, &mut journal, Which::Run(first), UndoOptions::default()).expect("looked");
    assert!(
        matches!(report.entries.as_slice(), [entry] if matches!(entry.outcome, Outcome::ChangedSince { by: Some(by), .. } if by == second)),
        "{report:?}"
    );
    let all = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
    assert!(all.is_complete() && all.entries.len() == 2, "{all:?}");
    assert_eq!(tree(root.path()), before);
}

#[test]
fn after_a_restart_what_ran_is_gone_and_nothing_is_written() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
    let run = apply(&mut host, &mut journal, &changes, &options()).expect("applied").id.expect("a run");
    fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "second-boot\n").expect("restarted");
    let now = tree(root.path());
    let report = undo(&mut host, &mut journal, Which::All, UndoOptions { force: true, ..UndoOptions::default() })
        .expect("looked");
    assert!(report.entries.iter().all(|entry| matches!(entry.outcome, Outcome::Gone { .. })), "{report:?}");
    assert_eq!(tree(root.path()), now);
    let states: Vec<_> = journal.run(run).expect("there").entries.iter().map(|entry| entry.state).collect();
    assert_eq!(states, [EntryState::Gone]);
}

#[test]
fn another_machine_is_left_alone() {
    let (root, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut host = machine(root.path());
    let mut other = machine(elsewhere.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
    apply(&mut host, &mut journal, &changes, &options()).expect("applied");
    other.write(&address("net.ipv4.tcp_rmem"), Some(BIG)).expect("the same value by chance");
    let report = undo(&mut other, &mut journal, Which::All, UndoOptions { force: true, ..UndoOptions::default() })
        .expect("looked");
    assert!(matches!(report.entries.as_slice(), [entry] if matches!(entry.outcome, Outcome::Elsewhere { .. })));
    assert_eq!(Host::read(&mut other, &address("net.ipv4.tcp_rmem")).expect("read").as_deref(), Some(BIG));
    assert!(undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone").is_complete());
}

#[test]
fn a_link_that_went_away_takes_its_settings_with_it() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG)), change(&mut host, "link eth0 mtu", Some("9000"))];
    apply(&mut host, &mut journal, &changes, &options()).expect("applied");
    fs::remove_dir_all(root.path().join("links/eth0")).expect("unplugged");
    let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
    assert!(report.is_complete() && journal.outstanding().expect("read").is_empty(), "{report:?}");
}

#[test]
fn a_drop_in_is_written_and_taken_back_to_what_was_there() {
    for present in [None, Some("# mine\n\nnet.ipv4.tcp_ecn = 1\n")] {
        let root = tempfile::tempdir().expect("a folder");
        let mut host = machine(root.path());
        let boot = tempfile::tempdir().expect("a folder");
        let file = boot.path().join("90-fullpipe.conf");
        if let Some(content) = present {
            fs::write(&file, content).expect("written");
        }
        let (before, files_before) = (tree(root.path()), tree(boot.path()));
        let mut journal = Journal::in_memory().expect("a journal");
        let changes = [
            change(&mut host, "net.ipv4.tcp_rmem", Some(BIG)),
            change(&mut host, "route default initrwnd", Some("40")),
        ];
        let lasting = ApplyOptions { persist: Some(boot.path().to_owned()), ..options() };
        let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
        assert_eq!(run.boot_files, std::slice::from_ref(&file));
        assert_eq!(run.not_persisted, [address("route default initrwnd")]);
        let content = fs::read_to_string(&file).expect("there");
        assert!(content.contains(&format!("net.ipv4.tcp_rmem = {BIG}\n")), "{content}");
        assert_eq!(content.contains("tcp_ecn = 1"), present.is_some());

        // Also after a restart: the drop-in has put the value in force again.
        fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "second-boot\n").expect("restarted");
        fs::remove_file(root.path().join("routes/default/initrwnd")).expect("gone with the restart");
        let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
        assert!(report.is_complete(), "{report:?}");
        fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "first-boot\n").expect("as before");
        assert_eq!((tree(root.path()), tree(boot.path())), (before, files_before));
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), present);
    }
}

#[test]
fn a_folder_that_is_a_freebsd_keeps_its_own_boot_time_files() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    for (file, content) in [
        ("platform", "freebsd 14.1\n"),
        ("proc/sys/kern/ipc/maxsockbuf", "2097152\n"),
        ("etc/sysctl.conf", "# mine\nkern.ipc.maxsockbuf=2097152 # and yours\n"),
        ("etc/rc.conf", "hostname=box\n"),
    ] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    let before = tree(root.path());
    let changes = [
        change(&mut host, "kern.ipc.maxsockbuf", Some("16777216")),
        change(&mut host, "link eth0 mtu", Some("9000")),
        change(&mut host, "route default initrwnd", Some("40")),
    ];
    let mut journal = Journal::in_memory().expect("a journal");
    let lasting = ApplyOptions { persist: Some(root.path().join("no/such/folder")), ..options() };
    let run = apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
    assert_eq!(run.not_persisted, [address("route default initrwnd")]);
    let content = |file: &str| fs::read_to_string(root.path().join(file)).expect("there");
    assert_eq!(content("etc/sysctl.conf"), "# mine\nkern.ipc.maxsockbuf=16777216 # and yours\n");
    assert!(
        content("etc/rc.conf").starts_with("hostname=box\n")
            && content("etc/rc.conf").ends_with("ifconfig_eth0=\"mtu 9000\"\n")
    );
    assert!(undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone").is_complete());
    assert_eq!(tree(root.path()), before);
}

#[test]
fn a_drop_in_that_cannot_be_written_takes_the_run_back() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
    let lasting = ApplyOptions { persist: Some(root.path().join("no/such/folder")), ..options() };
    let error = apply(&mut host, &mut journal, &changes, &lasting).expect_err("no folder");
    assert!(matches!(*error.fault, ApplyFault::Persist { .. }), "{error}");
    assert_eq!(tree(root.path()), before);
    assert!(journal.outstanding().expect("read").is_empty());
}

#[test]
fn a_drop_in_that_can_be_read_and_not_written_is_no_reason_to_say_that_something_is_left() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    let folder = root.path().join("etc/sysctl.d");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("90-fullpipe.conf"), "net.ipv4.tcp_ecn = 1\n").expect("written");
    // Where a new file is to be written first, nothing can be: as in a read-only folder, for root too.
    fs::create_dir(folder.join(".90-fullpipe.conf.tmp")).expect("made");
    let before = tree(root.path());
    let mut journal = Journal::in_memory().expect("a journal");
    let changes = [change(&mut host, "net.ipv4.tcp_rmem", Some(BIG))];
    let lasting = ApplyOptions { persist: Some(folder), ..options() };
    let error = apply(&mut host, &mut journal, &changes, &lasting).expect_err("not writable");
    assert!(matches!(*error.fault, ApplyFault::Persist { .. }), "{error}");
    assert!(error.to_string().ends_with("was taken back"), "{error}");
    assert_eq!(tree(root.path()), before);
    assert!(journal.outstanding().expect("read").is_empty());
}

#[test]
fn a_folder_that_holds_keys_of_a_kernel_tells_none() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    for key in ["net/ipv4/tcp_fastopen_key", "net/ipv6/conf/eth0/stable_secret"] {
        let file = root.path().join("proc/sys").join(key);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, "a-secret").expect("written");
    }
    let shown = format!("{:?}", host.settings().expect("read"));
    assert!(shown.contains("tcp_rmem") && !shown.contains("a-secret"), "{shown}");
}

#[test]
fn an_address_never_leads_out_of_the_folder() {
    let root = tempfile::tempdir().expect("a folder");
    let mut host = machine(root.path());
    for place in [
        Address::Route { destination: "..".into(), attribute: "window".into() },
        Address::Route { destination: "default".into(), attribute: "../../x".into() },
        Address::Link { device: "../eth0".into(), property: "mtu".into() },
        Address::Link { device: "eth0".into(), property: "../../platform".into() },
        Address::Link { device: "eth0".into(), property: ".. ..".into() },
        Address::Sysctl("net.//./x".into()),
    ] {
        let error = host.write(&place, Some("1")).expect_err("refused");
        assert!(matches!(error, HostError::UnknownAddress { .. }), "{error}");
    }
}

fn any_change() -> impl Strategy<Value = (&'static str, Option<String>)> {
    prop_oneof![
        (any::<u16>(), any::<u16>(), any::<u32>())
            .prop_map(|(a, b, c)| ("net.ipv4.tcp_rmem", Some(format!("{a} {b}\t{c}")))),
        any::<u32>().prop_map(|max| ("net.ipv4.tcp_wmem", Some(format!("4096 16384 {max}")))),
        proptest::option::of(0u32..200).prop_map(|n| ("route default initcwnd", n.map(|n| n.to_string()))),
        proptest::option::of(0u32..200).prop_map(|n| ("route 10.9.0.0/16 initcwnd", n.map(|n| format!("lock {n}")))),
        proptest::option::of(0u32..9999).prop_map(|n| ("route default rto_min", n.map(|n| format!("{n}ms")))),
        (576u32..9000).prop_map(|mtu| ("link eth0 mtu", Some(mtu.to_string()))),
        proptest::bool::ANY.prop_map(|on| ("link eth0 offload tso", Some(if on { "on" } else { "off" }.to_owned()))),
        Just(("net.core.rmem_max", Some("1".to_owned()))),
        Just(("net.ipv4.tcp_nowhere", Some("1".to_owned()))),
        Just(("route default congctl", Some("two words".to_owned()))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_runs_undone_restore_the_exact_tree(
        runs in prop::collection::vec((prop::collection::vec(any_change(), 1..6), any::<bool>()), 1..5),
        lasting in any::<bool>(),
    ) {
        let (root, boot) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mut host = machine(root.path());
        let before = tree(root.path());
        let mut journal = Journal::in_memory().expect("a journal");
        let options = ApplyOptions { persist: lasting.then(|| boot.path().to_owned()), ..options() };
        for (changes, undo_at_once) in runs {
            let changes: Vec<_> = changes.iter().map(|(place, to)| change(&mut host, place, to.as_deref())).collect();
            let at_start = tree(root.path());
            match apply(&mut host, &mut journal, &changes, &options) {
                Ok(_) if undo_at_once => {
                    let report = undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
                    prop_assert!(report.is_complete(), "{report:?}");
                }
                Ok(_) => {}
                Err(_) => prop_assert_eq!(tree(root.path()), at_start),
            }
        }
        let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
        prop_assert!(report.is_complete(), "{report:?}");
        prop_assert_eq!(tree(root.path()), before);
        prop_assert!(tree(boot.path()).is_empty());
        prop_assert!(journal.outstanding().expect("read").is_empty());
    }
}
