//! `fullpipe lab shell`: other programs on both ends of an emulated path, and what it says of the path afterwards.
#![cfg(target_os = "linux")]

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Labs disturb each other's timing. `None`, and the reason printed, where there can be none.
fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    match fullpipe_lab::preflight() {
        Ok(()) => Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(error) => {
            println!("skipped {test}: {error}");
            None
        }
    }
}

fn shell(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.args(["lab", "shell", "--host", "a"]).args(words);
    command
}

/// What a program does on the other end that is measured to.
const SERVE: &str = "fullpipe serve --one-off >/dev/null";
/// Once that listens.
const MEASURE: &str = "sleep 1; fullpipe measure 10.80.0.2 -t 3 --json";

#[test]
fn a_rate_and_a_round_trip_time_are_a_path() {
    let Some(_turn) = turn("a_rate_and_a_round_trip_time_are_a_path") else { return };
    let words = ["--rate", "20M", "--rtt", "20ms", "--other", SERVE, "--", "sh", "-c", MEASURE];
    let Output { status, stdout, stderr } = shell(&words).output().unwrap();
    let remarks = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{remarks}");
    let document: Value = serde_json::from_slice(&stdout).unwrap();
    let bps = document["directions"][0]["rate_bps"].as_f64().unwrap_or_else(|| panic!("{document}"));
    // No more than the link has of payload; a busy machine may lack some of it.
    assert!((8e6..19.5e6).contains(&bps), "{bps}");
    assert!(
        remarks.starts_with("20.0 Mbit/s over 20.0 ms: this is host a, 10.80.0.1; host b is 10.80.0.2\n"),
        "{remarks}"
    );
    let arrived = |way: &str| {
        let line = remarks.lines().find_map(|line| line.strip_prefix(way));
        line.and_then(|line| line.split(' ').next()?.parse::<u64>().ok()).unwrap_or_else(|| panic!("{remarks}"))
    };
    assert!(arrived("a->b: ") > 2_000 && arrived("b->a: ") > 500, "{remarks}");
    // Which of the two is up to the machine.
    assert!(remarks.contains("emulated path: release error p50") != remarks.contains("\nwarning: "), "{remarks}");
}

#[test]
fn a_path_that_stood_still_is_told_and_the_exit_code_is_the_commands() {
    let Some(_turn) = turn("a_path_that_stood_still_is_told_and_the_exit_code_is_the_commands") else { return };
    let measure = format!("echo here; {MEASURE} >/dev/null; exit 7");
    let words = ["--rate", "20M", "--rtt", "20ms", "--other", SERVE, "--", "sh", "-c", &measure];
    let mut child = shell(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    // In the middle of the transfer, whose programs go on.
    thread::sleep(Duration::from_millis(2_500));
    let own = Pid::from_child(&child);
    kill_process(own, Signal::STOP).unwrap();
    thread::sleep(Duration::from_millis(400));
    kill_process(own, Signal::CONT).unwrap();
    let mut remarks = String::new();
    child.stderr.take().unwrap().read_to_string(&mut remarks).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7), "{remarks}");
    assert!(remarks.contains("\nwarning: the path emulator was descheduled for "), "{remarks}");
}

#[test]
fn a_path_is_a_scenario_or_a_rate_and_a_round_trip_time() {
    for (words, said) in [
        (&["--rate", "10M"][..], "--rtt <TIME>"),
        (&["--rtt", "5ms"], "--rate <RATE>"),
        (&["wan-80ms", "--rate", "10M", "--rtt", "5ms"], "cannot be used with"),
        (&["wan-80ms", "--loss", "1%"], "cannot be used with"),
        (&["--rate", "10", "--rtt", "5ms"], "a rate is from 1 kbit/s to 100 Gbit/s"),
        (&["--rate", "10M", "--rtt", "11s"], "a round trip is 10 s at most"),
        (&["--rate", "10M", "--rtt", "5ms", "--queue", "much"], "expected 1bdp, 100p, 64k or 20ms"),
    ] {
        let output = shell(words).args(["--", "true"]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        assert!(message.contains(said), "{words:?}: {message}");
    }
}
