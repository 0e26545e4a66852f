//! Two processes on two real hosts of the lab: `serve` on one, `check`, `tune` and `undo` on the other.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use fullpipe_lab::Lab;
use fullpipe_path::{Scenario, Side};
use serde_json::Value;

/// A lab measures time: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");

const WMEM: &str = "net.ipv4.tcp_wmem";
/// What the scenario gives host b as a sender.
const SMALL_WMEM: &str = "4096\t16384\t77824";

/// Only what b sends, by a congestion control that every kernel has, in tests that are long enough for 80 ms.
const TEST: [&str; 8] = ["--direction", "down", "--congestion", "cubic", "--seconds", "2", "--omit", "1.2"];

/// Two hosts 80 ms apart, b with a small send buffer, with a folder for their files.
struct Pair {
    lab: Lab,
    dir: tempfile::TempDir,
}

impl Pair {
    /// `None`, said by name, where this machine can make no lab.
    fn start(test: &str) -> Option<Self> {
        if let Err(missing) = fullpipe_lab::preflight() {
            eprintln!("skipped: {test}: {missing}");
            return None;
        }
        let lab = Lab::start(&Scenario::named("wan-80ms-sender").unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("key"), "a key of more than sixteen bytes\n").unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(dir.path().join("key"), private).unwrap();
        Some(Self { lab, dir })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program on one of the hosts, with a state folder of its own there.
    fn fullpipe(&self, side: Side, arguments: &[&str]) -> Command {
        self.command(side, FULLPIPE, arguments)
    }

    fn command(&self, side: Side, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.lab.host(side).command(program);
        command
            .args(arguments)
            .env("FULLPIPE_STATE_DIR", self.path(&format!("state-{side}")))
            .env("FULLPIPE_SYSCTL_DIR", self.path("sysctl.d"))
            .stdin(Stdio::null());
        command
    }

    fn serve(&self, arguments: &[&str]) -> Running {
        self.serve_under(&[], arguments)
    }

    /// A server whose process alone is killed by a line on standard input: the lab ends all that a command started with
    /// the command, and a real kill does not.
    fn serve_to_be_killed(&self, arguments: &[&str]) -> Running {
        let script = "\"$@\" & server=$!; read -r line; kill -9 $server; while :; do sleep 1; done";
        self.serve_under(&["sh", "-c", script, "sh"], arguments)
    }

    fn serve_under(&self, shell: &[&str], arguments: &[&str]) -> Running {
        let log = self.path("serve.log");
        // Ten times the path's rate: the kernel paces, without which the small buffer does not hold (wan-80ms-sender).
        let serve = [FULLPIPE, "serve", "10.80.0.2:5201", "--max-rate", "1G", "--share-settings"];
        let all = [shell, &serve, arguments].concat();
        let child = self
            .command(Side::B, all[0], &all[1..])
            .stdin(if shell.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(File::create(&log).unwrap())
            .stderr(File::create(self.path("serve.err")).unwrap())
            .spawn()
            .unwrap();
        let running = Running(child);
        self.wait_until("the server listens", || {
            self.lab
                .host(Side::A)
                .run(|| {
                    std::net::TcpStream::connect_timeout(&"10.80.0.2:5201".parse().unwrap(), Duration::from_secs(1))
                        .is_ok()
                })
                .unwrap()
        });
        running
    }

    fn wmem_of_b(&self) -> String {
        self.lab
            .host(Side::B)
            .run(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap())
            .unwrap()
            .trim()
            .to_owned()
    }

    /// Waits for something that must come; the bound is only there so that a failure ends.
    fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute; {}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        format!("{}{}", read("serve.log"), read("serve.err"))
    }
}

/// A child that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already is as good.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn json(command: &mut Command) -> (Value, Option<i32>) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (value, output.status.code())
}

fn key_arguments(key: &Path) -> [&str; 2] {
    ["--key-file", key.to_str().unwrap()]
}

#[test]
fn check_names_the_far_send_buffer_and_changes_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(pair) = Pair::start("check_names_the_far_send_buffer_and_changes_nothing") else { return };
    let _server = pair.serve(&[]);
    let (value, code) = json(&mut pair.fullpipe(Side::A, &[&["check", "10.80.0.2", "--json"], &TEST[..]].concat()));
    assert_eq!(value["schema"], "fullpipe/2", "{value:#}");
    assert_eq!(value["transfers"][0]["diagnosis"]["limiter"], "send_buffer", "{value:#}");
    assert_eq!(value["plan"]["changes"][0]["knob"], WMEM, "{value:#}");
    assert_eq!(value["plan"]["changes"][0]["host"], "10.80.0.2", "{value:#}");
    assert_eq!(code, Some(0), "{value:#}");
    assert_eq!(pair.wmem_of_b(), SMALL_WMEM);
}

#[test]
fn tune_changes_the_far_host_with_the_key_and_undo_there_restores_it() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(pair) = Pair::start("tune_changes_the_far_host_with_the_key_and_undo_there_restores_it") else { return };
    let key = pair.path("key");
    let [flag, file] = key_arguments(&key);
    // An administrator of b has a line that is read after ours.
    let admin = pair.path("sysctl.d/99-admin.conf");
    fs::create_dir(pair.path("sysctl.d")).unwrap();
    fs::write(&admin, format!("{WMEM} = {SMALL_WMEM}\n")).unwrap();
    let _server = pair.serve(&["--allow-tune", flag, file]);
    let tune = [&["tune", "10.80.0.2", "--yes", "--persist", "--json", flag, file], &TEST[..]].concat();
    let (value, code) = json(&mut pair.fullpipe(Side::A, &tune));
    assert_eq!(value["proof"]["kept"], true, "{value:#}\n{}", pair.logs());
    let kept = &value["kept"][0];
    assert_eq!((&kept["host"], &kept["lasts"], code), (&Value::from("10.80.0.2"), &Value::from(false), Some(27)));
    assert!(kept["boot_files"][0].as_str().unwrap().ends_with("sysctl.d/90-fullpipe.conf"), "{kept}");
    assert!(kept["until_reboot"][0].as_str().unwrap().contains("99-admin.conf:1 says"), "{kept}");
    assert!(!value["notes"].to_string().contains("lasts beyond"), "{value:#}");
    assert_ne!(pair.wmem_of_b(), SMALL_WMEM, "{value:#}");
    let notes = value["notes"].to_string();
    assert!(notes.contains("from here `fullpipe undo 1 --key-file FILE`"), "{value:#}");
    // What was tried in turn is no list of runs there.
    let history = pair.fullpipe(Side::B, &["history"]).output().unwrap();
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    let runs = history.lines().filter(|line| line.starts_with("run ")).count();
    assert!(history.contains("trials of a tune") && runs < 3, "{history}");
    let history = pair.fullpipe(Side::B, &["history", "--verbose"]).output().unwrap();
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    let runs = history.lines().filter(|line| line.starts_with("run ")).count();
    assert!(!history.contains("trials of a tune") && runs >= 3, "{history}");

    // The server runs on: between two orders the journal is free.
    let (value, code) = json(&mut pair.fullpipe(Side::B, &["undo", "--all", "--yes", "--json"]));
    assert_eq!(code, Some(0), "{value:#}");
    assert_eq!(pair.wmem_of_b(), SMALL_WMEM, "{value:#}");

    // The host that ordered it knows it, and asks there before it forgets it.
    let (value, _) = json(&mut pair.fullpipe(Side::A, &["status", "--json"]));
    assert_eq!(value["runs"][0]["entries"][0]["kind"], "far_run", "{value:#}");
    let place = value["runs"][0]["entries"][0]["far_run"].as_str().unwrap().to_owned();
    assert!(place.starts_with("10.80.0.2") && place.contains(" run "), "{place}");
    let (value, code) = json(&mut pair.fullpipe(Side::A, &["undo", "--all", "--yes", "--json"]));
    assert_eq!((&value["undone"][0]["outcome"], code), (&Value::from("at_far_end"), Some(1)), "{value:#}");
    let (value, code) = json(&mut pair.fullpipe(Side::A, &["undo", "--all", "--yes", "--json", flag, file]));
    assert_eq!((&value["undone"][0]["outcome"], code), (&Value::from("already_back"), Some(0)), "{value:#}");
    let (value, _) = json(&mut pair.fullpipe(Side::A, &["status", "--json"]));
    assert_eq!(value["runs"].as_array().map(Vec::len), Some(0), "{value:#}");
}

#[test]
fn what_tune_leaves_on_trial_outlives_the_server_and_waits_for_the_confirmation_there() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let name = "what_tune_leaves_on_trial_outlives_the_server_and_waits_for_the_confirmation_there";
    let Some(pair) = Pair::start(name) else { return };
    let key = pair.path("key");
    let [flag, file] = key_arguments(&key);
    let mut server = pair.serve_to_be_killed(&["--allow-tune", flag, file]);
    let tune = [&["tune", "10.80.0.2", "--yes", "--json", "--confirm-within", "600s", flag, file], &TEST[..]].concat();
    let (value, _) = json(&mut pair.fullpipe(Side::A, &tune));
    let notes = value["notes"].to_string();
    assert!(notes.contains("10.80.0.2: on trial as run") && notes.contains("taken back in 600 s"), "{value:#}");
    std::io::Write::write_all(server.0.stdin.as_mut().unwrap(), b"kill\n").unwrap();
    let (value, _) = json(&mut pair.fullpipe(Side::B, &["status", "--json"]));
    assert_eq!(value["runs"][0]["state"], "on_trial", "{value:#}");
    assert_ne!(pair.wmem_of_b(), SMALL_WMEM);
    let (value, code) = json(&mut pair.fullpipe(Side::B, &["confirm", "--json"]));
    assert_eq!(code, Some(0), "{value:#}");
    let (value, _) = json(&mut pair.fullpipe(Side::B, &["status", "--json"]));
    assert_eq!(value["runs"][0]["state"], "kept", "{value:#}");
    let (value, code) = json(&mut pair.fullpipe(Side::B, &["undo", "--last", "--yes", "--json"]));
    assert_eq!((code, pair.wmem_of_b().as_str()), (Some(0), SMALL_WMEM), "{value:#}");
}

#[test]
fn a_wrong_key_changes_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(pair) = Pair::start("a_wrong_key_changes_nothing") else { return };
    let key = pair.path("key");
    let [flag, file] = key_arguments(&key);
    let _server = pair.serve(&["--allow-tune", flag, file]);
    let wrong = pair.path("wrong");
    fs::write(&wrong, "another key of more than sixteen bytes").unwrap();
    fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let [flag, file] = key_arguments(&wrong);
    let tune = [&["tune", "10.80.0.2", "--yes", "--json", flag, file], &TEST[..]].concat();
    let (value, code) = json(&mut pair.fullpipe(Side::A, &tune));
    assert!(value["error"]["message"].as_str().is_some_and(|message| message.contains("key")), "{value:#}");
    assert_eq!(value["transfers"], Value::Null, "it is known before anything is measured");
    assert!(code.is_some_and(|code| code != 0));
    assert_eq!(pair.wmem_of_b(), SMALL_WMEM);
}

#[test]
fn what_the_administrator_there_takes_back_in_the_middle_is_not_put_in_force_again() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let name = "what_the_administrator_there_takes_back_in_the_middle_is_not_put_in_force_again";
    let Some(pair) = Pair::start(name) else { return };
    let key = pair.path("key");
    let [flag, file] = key_arguments(&key);
    let _server = pair.serve(&["--allow-tune", flag, file]);
    let tune = [&["tune", "10.80.0.2", "--yes", "--json", flag, file], &TEST[..]].concat();
    let said = pair.path("said.json");
    let mut client = pair.fullpipe(Side::A, &tune).stdout(File::create(&said).unwrap()).spawn().unwrap();
    pair.wait_until("the change is on trial", || pair.wmem_of_b() != SMALL_WMEM);
    let (value, code) = json(&mut pair.fullpipe(Side::B, &["undo", "--all", "--yes", "--json"]));
    assert_eq!(code, Some(0), "{value:#}");
    let code = client.wait().unwrap().code();
    let value: Value = serde_json::from_slice(&fs::read(said).unwrap()).unwrap();
    let message = value["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("taken back there meanwhile"), "{value:#}");
    assert_eq!((code, pair.wmem_of_b().as_str()), (Some(13), SMALL_WMEM), "{value:#}");
}

#[test]
fn a_client_that_is_killed_leaves_the_far_host_as_it_was() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(pair) = Pair::start("a_client_that_is_killed_leaves_the_far_host_as_it_was") else { return };
    let key = pair.path("key");
    let [flag, file] = key_arguments(&key);
    let _server = pair.serve(&["--allow-tune", flag, file]);
    let tune = [&["tune", "10.80.0.2", "--yes", "--json", flag, file], &TEST[..]].concat();
    let mut client = pair.fullpipe(Side::A, &tune).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    pair.wait_until("the change is on trial", || pair.wmem_of_b() != SMALL_WMEM);
    client.kill().unwrap();
    client.wait().unwrap();
    pair.wait_until("the server undoes it", || pair.wmem_of_b() == SMALL_WMEM);
}

#[test]
fn a_server_that_is_killed_leaves_its_host_as_it_was() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(pair) = Pair::start("a_server_that_is_killed_leaves_its_host_as_it_was") else { return };
    let key = pair.path("key");
    let [flag, file] = key_arguments(&key);
    let mut server = pair.serve_to_be_killed(&["--allow-tune", flag, file]);
    let tune = [&["tune", "10.80.0.2", "--yes", "--json", flag, file], &TEST[..]].concat();
    let client = Running(pair.fullpipe(Side::A, &tune).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    pair.wait_until("the change is on trial", || pair.wmem_of_b() != SMALL_WMEM);
    // SIGKILL: only its guardian is left.
    std::io::Write::write_all(server.0.stdin.as_mut().unwrap(), b"kill\n").unwrap();
    pair.wait_until("the guardian undoes it", || pair.wmem_of_b() == SMALL_WMEM);
    drop(client);
}
