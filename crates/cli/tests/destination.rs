//! `fullpipe tune --destination` over a real path: a route of its own for one host, proved, named, and gone after an undo or a kill.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use fullpipe_host::{Host, linux::LinuxHost};
use fullpipe_lab::{DEVICE, Lab, LabOptions, Side, preflight};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_units::{Micros, Rate};
use serde_json::{Value, json};

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");

/// What holds every window of host A down, whoever it talks to.
const CLAMP: &str = "65536";

const TEST: [&str; 9] =
    ["tune", "10.80.0.2", "--direction", "down", "--congestion", "cubic", "--seconds", "2", "--omit=1.5"];

/// A lab measures time: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// 40 Mbit/s and 60 ms, and host A with a clamp on the route of its link.
struct World {
    lab: Lab,
    state: tempfile::TempDir,
    server: Child,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    /// `None`, said by name, where this machine can make no lab.
    fn start(test: &str) -> Option<Self> {
        if let Err(missing) = preflight() {
            println!("skipped {test}: {missing}");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            println!("skipped {test}: routes are changed as root only");
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, ..QueueSpec::default() };
        let rate = Some(Rate::from_bps(40_000_000));
        let hop = HopSpec { rate, delay: Micros::from_millis(30), queue, ..HopSpec::default() };
        let path =
            PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
        let lab = Lab::join(&path, 1, LabOptions::default()).unwrap();
        let clamp = BTreeMap::from([("route 10.80.0.0/24 window".to_owned(), CLAMP.to_owned())]);
        lab.host(Side::A).apply(&clamp).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut server = lab.host(Side::B).command(FULLPIPE);
        server.args(["serve", "10.80.0.2:5201", "--share-settings"]).env("FULLPIPE_STATE_DIR", state.path().join("b"));
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let world = Self { lab, state, server, _turn: turn };
        let far = "10.80.0.2:5201".parse().unwrap();
        wait_until("the server listens", || {
            let connect = || std::net::TcpStream::connect_timeout(&far, Duration::from_secs(1)).is_ok();
            world.lab.host(Side::A).run(connect).unwrap()
        });
        Some(world)
    }

    /// The program on host A, by way of `shell`.
    fn fullpipe(&self, shell: &[&str], words: &[&str]) -> Command {
        let all = [shell, &[FULLPIPE], words].concat();
        let mut command = self.lab.host(Side::A).command(all[0]);
        command.args(&all[1..]).env("FULLPIPE_STATE_DIR", self.state.path().join("a")).stdin(Stdio::null());
        command
    }

    fn printed(&self, words: &[&str]) -> Value {
        let output = self.fullpipe(&[], words).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// What host A has at an address.
    fn read(&self, place: &str) -> Option<String> {
        self.lab.host(Side::A).run(|| LinuxHost::new().read(&place.parse().unwrap()).unwrap()).unwrap()
    }

    fn made(&self) -> Option<String> {
        self.read("route 10.80.0.2 made")
    }

    /// Every sysctl of TCP and of sockets on host A, byte for byte.
    fn sysctls(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let all = || ["/proc/sys/net/ipv4", "/proc/sys/net/core"].iter().flat_map(|folder| files(Path::new(folder)));
        self.lab.host(Side::A).run(|| all().collect()).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// Those that can be read.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), fs::read(entry.path()).ok()?))).collect()
}

/// Waits for something that must come; the bound is only there so that a failure ends.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(90), "{what}: not in time");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_clamp_is_lifted_for_one_host_alone_and_an_undo_takes_its_route_away() {
    let Some(world) = World::start("a_clamp_is_lifted_for_one_host_alone") else { return };
    let before = world.sysctls();
    assert!(before.len() > 100, "{} sysctls", before.len());
    let words = [&TEST[..], &["--destination", "--route", "initcwnd=20", "--yes"]].concat();
    let tuned = world.printed(&words);
    let proof = &tuned["proofs"][0];
    assert_eq!((&proof["kept"], &proof["knobs"]), (&json!(true), &json!(["route 10.80.0.2 made"])), "{tuned:#}");
    println!("proof: {proof}");
    let line = format!("dev {DEVICE} src 10.80.0.1 initcwnd 20");
    assert_eq!(world.made().as_ref(), Some(&line), "{proof:#}");
    assert_eq!(world.read("route 10.80.0.0/24 window").as_deref(), Some(CLAMP), "others are held as they were");
    assert!(world.sysctls() == before, "a sysctl was touched");

    let status = world.printed(&["status"]);
    let run = &status["runs"][0];
    assert_eq!(run["command"], "tune 10.80.0.2:5201 --destination --route initcwnd=20");
    assert_eq!(run["entries"][0]["knob"], "route 10.80.0.2 made", "{run:#}");
    let text = world.fullpipe(&[], &["history"]).output().unwrap();
    // Lines are as long as a terminal is wide.
    let text = String::from_utf8_lossy(&text.stdout);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("route 10.80.0.2 made (absent) -> {line}")), "{text}");

    let undone = world.printed(&["undo", "--yes"]);
    assert_eq!(undone["complete"], true, "{undone:#}");
    assert_eq!(world.made(), None);
    assert!(world.sysctls() == before, "a sysctl was touched");
}

#[test]
fn a_kill_leaves_no_route_nor_does_one_of_its_guardian_after_the_next_command() {
    let Some(world) = World::start("a_kill_leaves_no_route") else { return };
    let words = [&TEST[..], &["--destination", "10.80.0.2/32", "--yes"]].concat();
    // The lab ends all that a command started with the command, and a real kill does not.
    let script = "\"$@\" & pid=$!; read -r line; kill -9 $pid; while :; do sleep 1; done";
    let spawn = |shell: &[&str]| {
        let mut command = world.fullpipe(shell, &words);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut killed = spawn(&["sh", "-c", script, "sh"]);
    wait_until("the route is tried", || world.made().is_some());
    killed.stdin.take().unwrap().write_all(b"\n").unwrap();
    wait_until("its guardian takes it back", || world.made().is_none());
    // It marks the journal after that, and ends with this command.
    wait_until("nothing is outstanding", || world.printed(&["status"])["runs"] == json!([]));
    killed.kill().unwrap();
    killed.wait().unwrap();

    let mut killed = spawn(&[]);
    wait_until("the route is tried", || world.made().is_some());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(world.made().is_some(), "nobody was left to take it back");
    let named = world.printed(&["status"]);
    assert_eq!(named["runs"][0]["entries"][0]["knob"], "route 10.80.0.2 made", "{named:#}");
    world.printed(&["undo", "--yes"]);
    assert_eq!(world.made(), None);
    assert_eq!(world.printed(&["status"])["runs"], json!([]));
}

#[test]
fn another_destination_than_what_is_measured_is_refused_before_anything_is() {
    let Some(world) = World::start("another_destination_than_what_is_measured_is_refused") else { return };
    for (prefix, says) in [
        ("10.80.1.0/24", "10.80.0.2 is not in 10.80.1.0/24"),
        ("0.0.0.0/0", "every destination"),
        ("10.80.0.2/24", "10.80.0.0/24 is the network"),
        ("far.example", "is no prefix"),
    ] {
        let output = world.fullpipe(&[], &[&TEST[..], &["--destination", prefix, "--yes"]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{prefix}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(says), "{prefix}: {text}");
    }
    assert_eq!(world.made(), None);
}
