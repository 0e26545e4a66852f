//! The Ansible collection, `bindings/ansible`: Ansible's own sanity tests, and five hosts with real sshd that are tuned and
//! put back. What they need is in `target/tools/ansible`, where `cargo xtask test` puts it. And the files of `plan --write` for systemd
//! and TuneD, read by these.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    env,
    fs::{self, File, Permissions},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Sanity tests that need what is not here: a container for other interpreters, Haskell, a fragment for every change.
const LEFT_OUT: [&str; 4] = ["pylint", "pslint", "shellcheck", "changelog"];

/// Where Ansible is; `None`, said by name, where it or something else is missing.
fn tools(test: &str) -> Option<PathBuf> {
    let own = env::current_exe().unwrap();
    let folder = own.ancestors().nth(3).unwrap().join("tools/ansible");
    if !folder.join("ready").exists() {
        eprintln!("skipped: {test}: target/tools/ansible is not here; `cargo xtask setup` makes it");
        return None;
    }
    Some(folder)
}

/// A copy of the collection below `ansible_collections`, where Ansible looks for it.
fn collection(folder: &Path) -> PathBuf {
    let network = folder.join("ansible_collections/fullpipe/network");
    fs::create_dir_all(network.parent().unwrap()).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/ansible");
    assert!(Command::new("cp").arg("-r").args([&source, &network]).status().unwrap().success());
    network
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [&done.stdout, &done.stderr].map(|said| String::from_utf8_lossy(said)).concat();
    assert!(done.status.success(), "{command:?}: {}\n{said}", done.status);
    said
}

#[test]
fn ansibles_sanity_tests_find_nothing_in_the_collection() {
    let Some(tools) = tools("ansibles_sanity_tests_find_nothing_in_the_collection") else { return };
    let folder = tempfile::tempdir().unwrap();
    let network = collection(folder.path());
    let python = tools.join("bin/python");
    let version = "import sys; print('%d.%d' % sys.version_info[:2])";
    let version = run(Command::new(&python).args(["-c", version]));
    let said = run(Command::new("timeout")
        .arg("1800")
        .arg(&python)
        .arg(tools.join("bin/ansible-test"))
        // Their environments are there; with this they are used.
        .args(["sanity", "--requirements", "--color", "no", "--python", version.trim()])
        .args(LEFT_OUT.iter().flat_map(|test| ["--skip-test", test]))
        .current_dir(&network)
        .env("HOME", tools.join("home"))
        .env("LC_ALL", "C.UTF-8"));
    assert!(said.contains("Running sanity test \"validate-modules\""), "{said}");
}

#[test]
fn five_hosts_are_tuned_by_ansible_and_put_back() {
    let test = "five_hosts_are_tuned_by_ansible_and_put_back";
    let Some(tools) = tools(test) else { return };
    for program in ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/nsenter"] {
        if !Path::new(program).exists() {
            return eprintln!("skipped: {test}: {program} is not installed");
        }
    }
    let namespaces = ["--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--net"];
    if !Command::new("unshare").args(namespaces).arg("true").stderr(Stdio::null()).status().unwrap().success() {
        return eprintln!("skipped: {test}: it takes root to make hosts with an /etc of their own");
    }
    let folder = tempfile::tempdir().unwrap();
    let network = collection(folder.path());
    // What is installed hands over to the program, which lies where each host sees it: 50 MB of it, copied to five hosts over SSH and
    // through buffers as small as theirs, took from one minute to half an hour.
    let program = folder.path().join("fullpipe");
    fs::write(&program, format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_fullpipe"))).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let hosts = folder.path().join("hosts");
    fs::create_dir(&hosts).unwrap();
    let log = folder.path().join("log");
    // A group of its own, which a terminal's Ctrl-C doesn't reach: what it starts ends with it.
    let done = Command::new("timeout")
        .args(["--kill-after=10", "900", "unshare"])
        .args(namespaces)
        .arg(tools.join("bin/python"))
        .arg(network.join("tests/namespaces/five_hosts.py"))
        .args([&program, folder.path(), &hosts])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(File::create(&log).unwrap())
        .stderr(File::options().append(true).open(&log).unwrap())
        .process_group(0)
        .status()
        .unwrap();
    let said = fs::read_to_string(&log).unwrap();
    assert!(done.success(), "{done}\n{said}");
    assert!(said.ends_with("five hosts were tuned, proved and put back\n"), "{said}");
    // A process of the last run would hold the folder.
    folder.close().unwrap();
}

/// In namespaces of its own, with buffers of others: TuneD with what it keeps in /etc and /run, and as if started once by hand.
const SYSTEMD: &str = "/lib/systemd/systemd-sysctl \"$1/90-fullpipe.conf\"";
const TUNED: &str = "sed 's/^daemon *=.*/daemon = 0/' /etc/tuned/tuned-main.conf > \"$1/main\"
mount -t tmpfs none /etc/tuned && mkdir /etc/tuned/fullpipe && cp \"$1/tuned.conf\" /etc/tuned/fullpipe && cp \"$1/main\" /etc/tuned/tuned-main.conf
mount -t tmpfs none /run && mkdir /run/tuned && : > /etc/tuned/bootcmdline
timeout 60 tuned --no-dbus --profile fullpipe --log=/run/tuned/log --pid=/run/tuned/pid";

#[test]
fn systemd_and_tuned_put_in_force_what_is_written_for_them() {
    let test = "systemd_and_tuned_put_in_force_what_is_written_for_them";
    let namespaces = ["--net", "--mount"];
    if !Command::new("unshare").args(namespaces).arg("true").stderr(Stdio::null()).status().unwrap().success() {
        return eprintln!("skipped: {test}: it takes root to make a network with settings of its own");
    }
    for (program, script) in [("/lib/systemd/systemd-sysctl", SYSTEMD), ("/usr/sbin/tuned", TUNED)] {
        if !Path::new(program).exists() {
            // Its package starts a service that sets what it likes: nothing to install unasked.
            // Set-up leaves TuneD out: its package starts a service that changes settings.
            eprintln!("skipped: {test}: this machine has no {program} (Debian: systemd, tuned)");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let plan = ["plan", "--platform", "linux-6.12", "--rate", "1G", "--rtt", "80ms", "--write"];
        run(Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(plan).arg(folder.path()).arg("--force"));
        let small = "sysctl -qw net.ipv4.tcp_rmem='4096 131072 262144' net.ipv4.tcp_wmem='4096 16384 262144'";
        let script = format!("{small}\n{script}\ncat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem");
        let said = run(Command::new("unshare").args(namespaces).args(["sh", "-ec", &script, "sh"]).arg(folder.path()));
        let lines: Vec<String> = said.lines().map(|line| line.replace('\t', " ")).collect();
        let conf = fs::read_to_string(folder.path().join("90-fullpipe.conf")).unwrap();
        let wanted: Vec<&str> = conf.lines().filter_map(|line| Some(line.split_once(" = ")?.1)).collect();
        assert_eq!(wanted.len(), 2, "{conf}");
        assert!(
            lines.ends_with(&wanted.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()),
            "{program}: {said}"
        );
    }
}
