//! `fullpipe tune --destination` over a real path: a route of its own for one host, or buffers of its connections, proved, named,
//! and gone after an undo or a kill.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use fullpipe_host::{Host, linux::LinuxHost};
use fullpipe_knobs::{Change, Plan};
use fullpipe_lab::{DEVICE, Lab, LabOptions, Side, preflight};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_units::{Micros, Rate};
use rustix::{
    mount::{MountFlags, UnmountFlags, mount, unmount},
    net::sockopt,
};
use serde_json::{Value, json};

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");

/// What holds every window of host A down, whoever it talks to.
const CLAMP: &str = "65536";

const TEST: [&str; 9] =
    ["tune", "10.80.0.2", "--direction", "down", "--congestion", "cubic", "--seconds", "2", "--omit=1.5"];

/// A lab measures time: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A path of 40 Mbit/s to host B, a server there, and one setting on host A that holds it down.
struct World {
    lab: Lab,
    state: tempfile::TempDir,
    server: Child,
    bpf: Option<Bpf>,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    /// 60 ms, with a clamp on the route of host A's link. `None`, said by name, where this machine can make no lab.
    fn start(test: &str) -> Option<Self> {
        Self::with(test, Micros::from_millis(30), "route 10.80.0.0/24 window", CLAMP)
    }

    fn with(test: &str, delay: Micros, setting: &str, value: &str) -> Option<Self> {
        if let Err(missing) = preflight() {
            println!("skipped {test}: {missing}");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            println!("skipped {test}: routes are changed as root only");
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = path(delay);
        lab.host(Side::A).apply(&BTreeMap::from([(setting.to_owned(), value.to_owned())])).unwrap();
        let state = tempfile::tempdir().unwrap();
        let server = serve(&lab, &state.path().join("b"));
        let world = Self { lab, state, server, bpf: None, _turn: turn };
        world.wait_for("10.80.0.2:5201");
        Some(world)
    }

    /// Where the receive buffer of host A, of this size at the most, holds it down, and programs can be loaded; and the folder that
    /// they are pinned in.
    fn with_buffer(test: &str, delay: Micros, largest: u32) -> Option<(Self, PathBuf)> {
        let mut world = Self::with(test, delay, "net.ipv4.tcp_rmem", &format!("4096 131072 {largest}"))?;
        let bpf = Bpf::mount(test, &world)?;
        let pinned = bpf.folder.path().join("fullpipe");
        world.bpf = Some(bpf);
        Some((world, pinned))
    }

    /// Until a server at this address takes connections from host A.
    fn wait_for(&self, server: &str) {
        let far = server.parse().unwrap();
        wait_until("the server listens", || {
            let connect = || TcpStream::connect_timeout(&far, Duration::from_secs(1)).is_ok();
            self.lab.host(Side::A).run(connect).unwrap()
        });
    }

    /// The program on host A, by way of `shell`.
    fn fullpipe(&self, shell: &[&str], words: &[&str]) -> Command {
        let all = [shell, &[FULLPIPE], words].concat();
        let mut command = match &self.bpf {
            None => self.lab.host(Side::A).command(all[0]),
            Some(bpf) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/proc/{}/ns/net", bpf.inside.id())).arg(all[0]);
                command.env("FULLPIPE_BPF_DIR", bpf.folder.path());
                command
            }
        };
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

/// 40 Mbit/s in both directions, and a queue of one bandwidth-delay product.
fn path(delay: Micros) -> Lab {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, ..QueueSpec::default() };
    let rate = Some(Rate::from_bps(40_000_000));
    let hop = HopSpec { rate, delay, queue, ..HopSpec::default() };
    let path =
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
    Lab::join(&path, 1, LabOptions::default()).unwrap()
}

/// A server on host B, at all its addresses.
fn serve(lab: &Lab, state: &Path) -> Child {
    let mut server = lab.host(Side::B).command(FULLPIPE);
    server.args(["serve", "0.0.0.0:5201", "--share-settings"]).env("FULLPIPE_STATE_DIR", state);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A BPF file system of the test's own, and a process that names host A's network namespace: programs are loaded by root of the whole
/// machine, which the lab's own commands are not.
struct Bpf {
    folder: tempfile::TempDir,
    inside: Child,
}

impl Bpf {
    /// `None`, said by name, without the right to mount one.
    fn mount(test: &str, world: &World) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        match mount("bpf", folder.path(), "bpf", MountFlags::empty(), None) {
            Ok(()) => Some(Self { folder, inside: sleep(&world.lab) }),
            Err(error) => {
                println!("skipped {test}: no BPF file system can be mounted: {error}");
                None
            }
        }
    }
}

/// A process in host A's network namespace that does nothing, and ends by itself.
fn sleep(lab: &Lab) -> Child {
    let sleep = || Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
    lab.host(Side::A).run(sleep).unwrap()
}

impl Drop for Bpf {
    fn drop(&mut self) {
        drop(self.inside.kill());
        drop(self.inside.wait());
        let unmounted = unmount(self.folder.path(), UnmountFlags::DETACH);
        unmounted.unwrap_or_else(|error| eprintln!("{}: {error}", self.folder.path().display()));
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

/// One more peer for host A, 1 ms away behind a router of its own.
struct Near {
    lab: Lab,
    server: Child,
    router: Child,
}

const NEAR: &str = "10.90.0.2";

impl Near {
    fn start(world: &World) -> Self {
        let lab = path(Micros::new(500));
        let router = sleep(&lab);
        let server = serve(&lab, &world.state.path().join("near"));
        let near = Self { lab, server, router };
        let ip = |lab: &Lab, side: Side, words: &str| {
            let run = || Command::new("ip").args(words.split(' ')).output().unwrap();
            let output = lab.host(side).run(run).unwrap();
            assert!(output.status.success(), "ip {words}: {output:?}");
        };
        let link = format!("link add near0 type veth peer name far0 netns {}", near.router.id());
        ip(&world.lab, Side::A, &link);
        ip(&world.lab, Side::A, "addr add 10.91.0.1/30 dev near0");
        ip(&world.lab, Side::A, "link set near0 up");
        ip(&near.lab, Side::A, "addr add 10.91.0.2/30 dev far0");
        ip(&near.lab, Side::A, "link set far0 up");
        near.lab.host(Side::A).apply(&BTreeMap::from([("net.ipv4.ip_forward".to_owned(), "1".to_owned())])).unwrap();
        ip(&near.lab, Side::A, &format!("route add 10.90.0.0/24 dev {DEVICE}"));
        ip(&near.lab, Side::B, &format!("addr add {NEAR}/24 dev {DEVICE}"));
        ip(&near.lab, Side::B, "route add default via 10.80.0.1");
        ip(&world.lab, Side::A, "route add 10.90.0.0/24 via 10.91.0.2");
        world.wait_for(&format!("{NEAR}:5201"));
        near
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.router] {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// One connection under load.
#[derive(Debug)]
struct Loaded {
    /// Of what the path carries, after the beginning.
    share: f64,
    /// Bytes, as the kernel counts.
    receive_buffer: u64,
}

/// What 40 Mbit/s carry of payload, in packets of 1,500 B with timestamps.
const FULL: f64 = 40e6 * 1_448.0 / 1_500.0;

/// Both peers send to host A at once: the far one and the near one.
fn both(world: &World) -> [Loaded; 2] {
    let servers = ["10.80.0.2", NEAR];
    let running = servers.map(|server| {
        let words = ["measure", server, "-R", "--congestion", "cubic", "-t", "10", "-O", "4", "--json"];
        world.fullpipe(&[], &words).stdout(Stdio::piped()).spawn().unwrap()
    });
    thread::sleep(Duration::from_secs(10));
    let sockets = world.lab.host(Side::A).command("ss").args(["-Htmn", "state", "established"]).output().unwrap();
    let sockets = String::from_utf8(sockets.stdout).unwrap();
    let documents = running.map(|child| {
        let output = child.wait_with_output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    });
    let [far, near] = [0, 1].map(|at| {
        let lines = sockets.split("\n0 ").filter(|lines| lines.contains(&format!(" {}:5201", servers[at])));
        let buffers = lines.filter_map(|lines| lines.split(",rb").nth(1)?.split(',').next()?.parse::<u64>().ok());
        let share = documents[at]["directions"][0]["steady_bps"].as_f64().unwrap() / FULL;
        Loaded { share, receive_buffer: buffers.max().unwrap_or_default() }
    });
    println!("far: {far:?}; near: {near:?}");
    [far, near]
}

#[test]
fn a_near_and_a_far_peer_fill_their_paths_at_once_with_buffers_for_the_far_one_alone() {
    let test = "a_near_and_a_far_peer_fill_their_paths_at_once";
    let Some((world, pinned)) = World::with_buffer(test, Micros::from_millis(75), 262_144) else { return };
    let near = Near::start(&world);
    let [far_before, _] = both(&world);
    assert!(far_before.share < 0.3, "{far_before:?}: the window does not hold it down");
    let sysctls = world.sysctls();

    let words = [
        "tune",
        "10.80.0.2",
        "--direction",
        "down",
        "--congestion",
        "cubic",
        "--seconds",
        "3",
        "--omit=4",
        "--destination",
        "--yes",
    ];
    let tuned = world.printed(&words);
    let proof = &tuned["proofs"][0];
    println!("proof: {proof}");
    let knob = "destination 10.80.0.2 SO_RCVBUF";
    assert_eq!((&proof["kept"], &proof["knobs"]), (&json!(true), &json!([knob])), "{tuned:#}");
    let [far, near_after] = both(&world);
    // Beside other work a little less; what holds either down would leave a quarter.
    assert!(far.share > 0.8 && near_after.share > 0.8, "{far:?} {near_after:?}");
    // Two bandwidth-delay products of window (a full pipe and a round of recovery); half of a buffer is payload, or more.
    let needed = 2.0 * 2.0 * FULL / 8.0 * 0.15;
    assert!((far.receive_buffer as f64) < 1.25 * needed, "{far:?}");
    assert!(near_after.receive_buffer <= 262_144, "{near_after:?}: it needs no more than it had");
    assert!(world.sysctls() == sysctls, "a sysctl was touched");

    // Whoever connects from there is given them too, before the first payload.
    let listener = world.lab.host(Side::A).run(|| TcpListener::bind("10.80.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted_buffer = || {
        let client = world.lab.host(Side::B).run(|| TcpStream::connect(address).unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        drop(client);
        sockopt::socket_recv_buffer_size(&accepted).unwrap()
    };
    assert_eq!(accepted_buffer() as u64, far.receive_buffer);

    let status = world.printed(&["status"]);
    assert_eq!(status["runs"][0]["entries"][0]["knob"], knob, "{status:#}");
    assert!(pinned.join("link").exists(), "it stays without a process");
    let undone = world.printed(&["undo", "--yes"]);
    assert_eq!(undone["complete"], true, "{undone:#}");
    assert!(!pinned.exists(), "nothing is attached any more");
    assert_eq!(accepted_buffer(), 131_072);
    drop(near);
}

#[test]
fn a_kill_leaves_no_buffers_for_a_destination() {
    let test = "a_kill_leaves_no_buffers_for_a_destination";
    let Some((world, pinned)) = World::with_buffer(test, Micros::from_millis(30), 131_072) else { return };
    let pinned = pinned.join("link");
    let words = [&TEST[..], &["--destination", "10.80.0.0/24", "--yes"]].concat();
    let mut killed = world.fullpipe(&[], &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the buffers are tried", || pinned.exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until("its guardian takes them back", || !pinned.exists());
    wait_until("nothing is outstanding", || world.printed(&["status"])["runs"] == json!([]));
}

#[test]
fn a_plan_file_sets_both_buffers_as_far_as_the_system_allows() {
    let test = "a_plan_file_sets_both_buffers_as_far_as_the_system_allows";
    let Some((world, pinned)) = World::with_buffer(test, Micros::from_millis(1), 262_144) else { return };
    let file = world.state.path().join("plan.json");
    let file = file.to_str().unwrap();
    let plan = |sizes: &[(&str, &str)]| {
        let change = |(option, size): &(&str, &str)| {
            let knob = format!("destination 10.80.0.0/24 {option}").parse().unwrap();
            Change::unexplained("here".to_owned(), knob, None, Some((*size).to_owned()))
        };
        let plan = Plan { changes: sizes.iter().map(change).collect(), notes: Vec::new() };
        fs::write(file, json!({ "schema": "fullpipe/2", "command": "plan", "plan": plan }).to_string()).unwrap();
    };
    let apply = |sizes: &[(&str, &str)]| {
        plan(sizes);
        world.printed(&["apply", file, "--host", "here", "--yes"])
    };
    let applied = apply(&[("SO_RCVBUF", "300000"), ("SO_SNDBUF", "200000")]);
    assert_eq!(applied["error"], Value::Null, "{applied:#}");
    let stream = world.lab.host(Side::A).run(|| TcpStream::connect("10.80.0.2:5201").unwrap()).unwrap();
    let sizes =
        || (sockopt::socket_recv_buffer_size(&stream).unwrap(), sockopt::socket_send_buffer_size(&stream).unwrap());
    assert_eq!(sizes(), (600_000, 400_000));
    world.printed(&["undo", "--yes"]);
    assert!(!pinned.exists(), "nothing is attached any more");
    // Not what was asked for, said before anything is written.
    let refused = apply(&[("SO_RCVBUF", "1073741823")]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("net.core.rmem_max allows"), "{refused:#}");
    let refused = apply(&[("SO_LINGER", "1")]);
    assert!(refused["error"]["message"].as_str().unwrap().contains("SO_RCVBUF"), "{refused:#}");
    assert!(!pinned.exists(), "nothing was attached");
    // A folder of another file system keeps no program.
    plan(&[("SO_RCVBUF", "300000")]);
    let plain = tempfile::tempdir().unwrap();
    let mut command = world.fullpipe(&[], &["apply", file, "--host", "here", "--yes", "--json"]);
    let output = command.env("FULLPIPE_BPF_DIR", plain.path()).output().unwrap();
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("no BPF file system is mounted"), "{refused:#}");
    assert_eq!(fs::read_dir(plain.path()).unwrap().count(), 0);
}
