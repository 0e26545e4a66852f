//! Whatever way a lab ends, nothing stays behind.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fullpipe_lab::Side;
use fullpipe_path::{HopSpec, IpVersions};
use rustix::process::{Pid, Signal, kill_process};

use super::{eventually, lab, path, turn};

fn own_namespace() -> PathBuf {
    fs::read_link("/proc/thread-self/ns/net").unwrap()
}

/// Holds a lab with a child in each host, until it is killed: see below.
#[test]
#[ignore = "a part of other tests"]
fn hold_a_lab() {
    let lab = lab(&path(HopSpec::default(), IpVersions::Both));
    // The shell's child runs in the background, where nobody waits for it.
    let mut children =
        Side::ALL.map(|side| lab.host(side).command("sh").args(["-c", "sleep 300 & sleep 301"]).spawn().unwrap());
    let namespaces = Side::ALL.map(|side| lab.host(side).run(own_namespace).unwrap());
    let mut out = std::io::stdout();
    for (child, namespace) in children.iter().zip(&namespaces) {
        writeln!(out, "held {} {}", child.id(), namespace.display()).unwrap();
    }
    out.flush().unwrap();
    children[0].wait().unwrap();
}

/// Starts the above in a process of its own; what it holds are pids and namespaces.
fn hold() -> (Child, Vec<(Pid, PathBuf)>) {
    let mut holder = Command::new("/proc/self/exe")
        .args(["--ignored", "--exact", "--nocapture", "lifetime::hold_a_lab"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
    let held = lines.filter_map(|line| {
        let (_, rest) = line.split_once("held ")?;
        let (pid, namespace) = rest.split_once(' ')?;
        Some((Pid::from_raw(pid.parse().ok()?)?, PathBuf::from(namespace)))
    });
    let held = held.take(2).collect();
    (holder, held)
}

/// Whether any process is in this namespace or holds it by a descriptor.
fn is_in_use(namespace: &Path) -> bool {
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    entries("/proc".into()).flat_map(|process| entries(process.join("task"))).any(|task| {
        let links = entries(task.join("fd")).chain([task.join("ns/net")]);
        links.into_iter().any(|link| fs::read_link(link).is_ok_and(|target| target == namespace))
    })
}

fn is_running(pid: Pid) -> bool {
    // A zombie that nobody has waited for runs no more.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn nothing_stays_behind(test: &str, signal: Signal) {
    let Some(_turn) = turn(test) else { return };
    let (mut holder, held) = hold();
    assert_eq!(held.len(), 2, "the holder made no lab");
    for (child, namespace) in &held {
        assert!(is_running(*child) && is_in_use(namespace), "{child:?} {namespace:?}");
    }
    kill_process(Pid::from_child(&holder), signal).unwrap();
    holder.wait().unwrap();
    for (child, namespace) in &held {
        assert!(eventually(|| !is_running(*child)), "{child:?} outlived the lab");
        assert!(eventually(|| !is_in_use(namespace)), "{namespace:?} outlived the lab");
    }
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains(fullpipe_lab::DEVICE), "a device of the lab is here: {devices}");
}

#[test]
fn kill_9_leaves_no_namespace_no_device_and_no_process() {
    nothing_stays_behind("kill_9_leaves_no_namespace_no_device_and_no_process", Signal::KILL);
}

#[test]
fn an_interrupt_leaves_no_namespace_no_device_and_no_process() {
    nothing_stays_behind("an_interrupt_leaves_no_namespace_no_device_and_no_process", Signal::INT);
}

#[test]
fn a_dropped_lab_is_gone_and_this_process_is_where_it_was() {
    let Some(_turn) = turn("a_dropped_lab_is_gone_and_this_process_is_where_it_was") else { return };
    let before = own_namespace();
    let lab = lab(&path(HopSpec::default(), IpVersions::V4));
    let namespaces = Side::ALL.map(|side| lab.host(side).run(own_namespace).unwrap());
    assert!(namespaces[0] != namespaces[1] && namespaces.iter().all(|namespace| *namespace != before));
    assert_eq!(own_namespace(), before);
    drop(lab);
    for namespace in &namespaces {
        assert!(eventually(|| !is_in_use(namespace)), "{namespace:?} outlived the lab");
    }
}

#[test]
fn a_command_runs_inside_its_host() {
    let Some(_turn) = turn("a_command_runs_inside_its_host") else { return };
    let lab = lab(&path(HopSpec::default(), IpVersions::V4));
    for side in Side::ALL {
        let inside = lab.host(side).run(own_namespace).unwrap();
        let output = lab.host(side).command("readlink").arg("/proc/self/ns/net").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), inside.to_str().unwrap());
        let status = lab.host(side).command("sh").args(["-c", "exit 7"]).status().unwrap();
        assert_eq!(status.code(), Some(7));
        let status = lab.host(side).command("sh").args(["-c", "kill -TERM $$"]).status().unwrap();
        assert_eq!(status.code(), Some(128 + 15));
    }
    let missing = lab.host(Side::A).command("/there/is/no/such/program").spawn();
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn what_a_command_left_running_ends_with_it() {
    let Some(_turn) = turn("what_a_command_left_running_ends_with_it") else { return };
    let lab = lab(&path(HopSpec::default(), IpVersions::V4));
    let script = "sleep 300 >/dev/null 2>&1 </dev/null & cat /sys/class/net/path0/mtu";
    let output = lab.host(Side::A).command("sh").args(["-c", script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1500");
    let namespace = lab.host(Side::A).run(own_namespace).unwrap();
    drop(lab);
    assert!(eventually(|| !is_in_use(&namespace)), "the background process outlived its command");
}
