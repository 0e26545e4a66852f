//! Ends that nobody plans: killed at any moment, no room for the journal, a second run at the same time.
#![cfg(target_os = "linux")]

mod common;
#[path = "namespace/disk.rs"]
mod disk;
mod namespace;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use common::{address, change, machine, options, tree};
use fullpipe_host::{
    ApplyFault, ApplyOptions, FolderHost, Host, HostError, Identity, Journal, JournalError, Outcome, UndoOptions,
    Which, apply, linux::LinuxHost, undo,
};
use fullpipe_knobs::{Address, Settings};
use namespace::in_fresh_namespace;

/// Where a child of these tests finds its task.
const TASK: &str = "FULLPIPE_TEST_CHILD";

/// Starts this very program as a child that does `task` with `folder`, in the calling thread's namespaces.
fn child(task: &str, folder: &Path) -> Child {
    command(task, folder).spawn().expect("started")
}

fn command(task: &str, folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", "the_child_does_its_task", "--nocapture"])
        .env(TASK, format!("{task} {}", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// What a child does. In a run of the tests by themselves there is no task, and this is nothing.
#[test]
fn the_child_does_its_task() {
    let Ok(task) = env::var(TASK) else { return };
    let (task, folder) = task.split_once(' ').expect("a task and a folder");
    let folder = PathBuf::from(folder);
    match task.split_once(':').unwrap_or((task, "")) {
        ("folder", _) => tune_forever(&mut FolderHost::new(folder.join("machine")), &folder),
        ("linux", _) => tune_forever(&mut LinuxHost, &folder),
        ("step", step) => {
            let host = FolderHost::new(folder.join("machine"));
            let mut host = KilledAt { host, steps: step.parse().expect("a number") };
            let mut journal = Journal::open(&folder.join("state")).expect("the journal");
            let changes: Vec<_> = PLACES.iter().map(|(place, to)| change(&mut host, place, *to)).collect();
            let lasting = ApplyOptions { persist: Some(folder.join("boot")), ..options() };
            apply(&mut host, &mut journal, &changes, &lasting).expect("applied");
        }
        ("short", _) => {
            let limit = rustix::process::Rlimit { current: Some(8 << 10), maximum: Some(8 << 10) };
            rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).expect("limited");
            tune_forever(&mut FolderHost::new(folder.join("machine")), &folder);
        }
        ("unprivileged", _) => {
            let settings = LinuxHost.settings().expect("anybody may read");
            let rmem = settings.sysctl("net.ipv4.tcp_rmem").expect("there");
            for (place, value) in [("net.ipv4.tcp_rmem", rmem), ("link lo mtu", "65536")] {
                let error = LinuxHost.write(&address(place), Some(value)).expect_err("no right");
                let text = error.to_string();
                assert!(text.contains("needs root or CAP_NET_ADMIN") || text.contains("needs root, or"), "{text}");
            }
        }
        other => panic!("no such task: {other:?}"),
    }
}

const PLACES: [(&str, Option<&str>); 4] = [
    ("net.ipv4.tcp_rmem", Some("4096 131072 33554432")),
    ("net.ipv4.tcp_wmem", Some("4096 16384 33554432")),
    ("route default initcwnd", Some("40")),
    ("link eth0 mtu", Some("9000")),
];

/// Applies and undoes until it is killed.
fn tune_forever(host: &mut impl Host, folder: &Path) {
    let mut journal = Journal::open(&folder.join("state")).expect("the journal");
    let sysctls = PLACES.iter().filter(|(place, _)| place.starts_with("net."));
    loop {
        let changes: Vec<_> = sysctls.clone().map(|(place, to)| change(host, place, *to)).collect();
        apply(host, &mut journal, &changes, &options()).expect("applied");
        undo(host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
    }
}

/// A machine whose user is killed for good (SIGKILL) just before or just after one of its writes.
struct KilledAt {
    host: FolderHost,
    steps: u32,
}

impl KilledAt {
    fn step(&mut self) {
        if self.steps == 0 {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("killed");
            thread::park();
        }
        self.steps -= 1;
    }
}

impl Host for KilledAt {
    fn settings(&mut self) -> Result<Settings, HostError> {
        self.host.settings()
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        Host::read(&mut self.host, address)
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        self.step();
        self.host.write(address, value)?;
        self.step();
        Ok(())
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        self.host.writable(address)
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        self.host.identity()
    }
}

fn was_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

#[test]
fn killed_before_or_after_any_write_the_machine_is_undone_exactly() {
    for step in 0..8usize {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("machine");
        let mut host = machine(&root);
        fs::create_dir(folder.path().join("boot")).expect("made");
        let before = tree(&root);
        let status = child(&format!("step:{step}"), folder.path()).wait().expect("ended");
        assert!(was_killed(status), "step {step}: {status}");
        let mut journal = Journal::open(&folder.path().join("state")).expect("free again");
        let report = undo(&mut host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
        assert!(report.is_complete(), "step {step}: {report:?}");
        let restored = report.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Restored { .. })).count();
        assert_eq!(restored, step.div_ceil(2), "step {step}: exactly what had been written");
        assert_eq!(tree(&root), before, "step {step}");
        assert!(tree(&folder.path().join("boot")).is_empty());
    }
}

/// Kills a child that tunes for ever, at moments spread over its work, and undoes what it left.
fn kill_at_many_moments(task: &str, host: &mut impl Host, folder: &Path, same_as_before: impl Fn(&str)) {
    let state = folder.join("state");
    let (mut undone, mut round) = (0, 0u64);
    // Until enough of the kills hit a run that was under way; how long the child takes to start doesn't matter then.
    while undone < 8 && round < 200 {
        let mut child = child(task, folder);
        while !matches!(Journal::look(&state), Ok(Some(journal)) if journal.history().is_ok_and(|runs| !runs.is_empty()))
        {
            assert!(child.try_wait().expect("asked").is_none(), "the child ended by itself");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(round * 1_777 % 23_000));
        child.kill().expect("killed");
        assert!(was_killed(child.wait().expect("ended")));
        let mut journal = Journal::open(&state).expect("free again");
        let report = undo(host, &mut journal, Which::All, UndoOptions::default()).expect("undone");
        assert!(report.is_complete(), "round {round}: {report:?}");
        undone += usize::from(!report.entries.is_empty());
        same_as_before(&format!("round {round}"));
        round += 1;
    }
    assert!(undone > 0, "no kill hit a run that was under way");
    println!("{round} kills, of which {undone} left something to undo");
}

#[test]
fn killed_at_any_moment_a_folder_is_undone_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("machine");
    let mut host = machine(&root);
    let before = tree(&root);
    kill_at_many_moments("folder", &mut host, folder.path(), |round| {
        // A kill between writing a temporary file and its rename leaves that file; it is no setting.
        let mut now = tree(&root);
        now.retain(|path, _| path.extension().is_none_or(|extension| extension != "tmp"));
        assert_eq!(now, before, "{round}");
    });
}

#[test]
fn killed_at_any_moment_the_real_kernel_is_undone_exactly() {
    in_fresh_namespace("killed_at_any_moment_the_real_kernel_is_undone_exactly", || {
        let folder = tempfile::tempdir().expect("a folder");
        let sysctls = || LinuxHost.settings().expect("read").values;
        let before = sysctls();
        kill_at_many_moments("linux", &mut LinuxHost, folder.path(), |round| assert_eq!(sysctls(), before, "{round}"));
    });
}

#[test]
fn a_second_run_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    machine(&folder.path().join("machine"));
    let state = folder.path().join("state");
    let mut child = child("folder", folder.path());
    while !matches!(Journal::look(&state), Ok(Some(journal)) if journal.history().is_ok_and(|runs| !runs.is_empty())) {
        thread::sleep(Duration::from_millis(1));
    }
    let Err(error) = Journal::open(&state) else { panic!("the child holds the lock") };
    assert!(matches!(error, JournalError::JournalLocked { pid: Some(pid), .. } if pid == child.id()), "{error}");
    child.kill().expect("killed");
    child.wait().expect("ended");
    Journal::open(&state).expect("the lock went with its holder");
}

#[test]
fn a_limit_on_the_size_of_files_stops_a_run_before_it_changes_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("machine");
    machine(&root);
    let before = tree(&root);
    let status = child("short", folder.path()).wait().expect("ended");
    assert!(!status.success(), "a journal needs more than 8 KB");
    assert_eq!(tree(&root), before);
    assert!(Journal::open(&folder.path().join("state")).expect("usable").history().expect("read").is_empty());
}

#[test]
fn without_the_right_nothing_is_written_and_the_way_out_is_named() {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let name = "without_the_right_nothing_is_written_and_the_way_out_is_named";
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = command("unprivileged", folder.path());
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.stderr(Stdio::piped()).spawn().and_then(Child::wait_with_output) {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped {name}: can't start this program as nobody: {error}"),
    }
}

#[test]
fn on_a_full_disk_nothing_is_changed() {
    in_fresh_namespace("on_a_full_disk_nothing_is_changed", || {
        let root = tempfile::tempdir().expect("a folder");
        let mut host = machine(root.path());
        let before = tree(root.path());
        let small = tempfile::tempdir().expect("a folder");
        if let Err(error) = disk::mount_small_disk(small.path()) {
            println!("skipped on_a_full_disk_nothing_is_changed: can't mount a small disk: {error}");
            return;
        }
        let mut journal = Journal::open(&small.path().join("state")).expect("room for an empty one");
        fs::write(small.path().join("filler"), vec![0; 1 << 20]).expect_err("more than there is room for");
        let changes: Vec<_> = PLACES.iter().map(|(place, to)| change(&mut host, place, *to)).collect();
        let error = apply(&mut host, &mut journal, &changes, &options()).expect_err("no room");
        assert!(matches!(*error.fault, ApplyFault::Journal(JournalError::DiskFull { .. })), "{error:?}");
        assert!(error.to_string().contains("the disk is full"), "{error}");
        assert_eq!(tree(root.path()), before);
        fs::remove_file(small.path().join("filler")).expect("removed");
        apply(&mut host, &mut journal, &changes, &options()).expect("there is room again");
        assert_eq!(Host::read(&mut host, &address("link eth0 mtu")).expect("read").as_deref(), Some("9000"));
    });
}
