//! `fullpipe stack` of the real binary: bad input, dead peers, Ctrl-C, and this machine's kernel at the other end of a TUN
//! device, in network namespaces that go with the test.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::Read,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");
/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The one object on standard output, whatever the exit code.
fn document(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    assert_eq!(document["schema"], "fullpipe/2");
    document
}

/// The error of a command that must end with this code.
fn error(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let document = document(output);
    assert!(document["error"]["message"].is_string(), "{document}");
    document["error"].clone()
}

/// The error of `fullpipe stack LINE --json`, which needs no namespace because it makes nothing.
fn refused(line: &str, code: i32) -> Value {
    let words: Vec<_> = ["stack"].into_iter().chain(line.split_whitespace()).chain(["--json"]).collect();
    error(&Command::new(FULLPIPE).args(words).stdin(Stdio::null()).output().unwrap(), code)
}

/// A command line in a network namespace of its own; `None` where this machine allows none.
fn in_namespace(test: &str, words: &[&str]) -> Option<Command> {
    let possible = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) || !Path::new("/dev/net/tun").exists() {
        println!("skipped {test}: `unshare -n` or /dev/net/tun is not possible here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.arg("-n").args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// `fullpipe stack ... --json` in such a namespace.
fn stack(test: &str, words: &[&str]) -> Option<Command> {
    in_namespace(test, &[&[FULLPIPE, "stack"], words, &["--json"]].concat())
}

/// Waits until the process has brought up the device.
fn until_device_is_up(child: &Child, device: &str) {
    let end = Instant::now() + LIMIT;
    // The engine's process is in the namespace: its view of the devices is the namespace's.
    let file = format!("/proc/{}/net/fib_trie", child.id());
    let devices = format!("/proc/{}/net/dev", child.id());
    while Instant::now() < end {
        let has = |file: &str, text: &str| std::fs::read_to_string(file).is_ok_and(|all| all.contains(text));
        if has(&devices, &format!("{device}:")) && has(&file, "10.82.0.1") {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{device} did not come up");
}

fn interrupt(child: &Child) {
    let done = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// A shell line beside a process, in its namespace.
fn beside(child: &Child, line: &str) -> Output {
    Command::new("nsenter").args(["-t", &child.id().to_string(), "-n", "bash", "-c", line]).output().unwrap()
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    for (line, says) in [
        ("connect --profile windows", "windows"),
        ("connect --preset fast", "fast"),
        ("connect --buffers rx=5,zz=9", "unknown budget `zz`"),
        ("connect --buffers many", "not a number of buffers"),
        ("connect --pool 3", "from 4 to 65534"),
        ("connect --user-timeout 0", "1ms to 24 days"),
        ("serve --keepalive 0s", "1s to"),
        ("serve --keepalive 5s,1s,300", "not a number of probes"),
        ("connect --mtu 576", "1280"),
        ("connect --time 0", "0"),
        ("connect --bytes lots", "lots"),
        ("connect --device a/b", "1 to 15 bytes"),
        ("connect --device thisnameistoolong", "1 to 15 bytes"),
        ("connect nowhere", "nowhere"),
        ("connect --through wan-80ms --device fp1", "--device"),
        ("serve --port 0", "0"),
        ("serve --connections 0", "0"),
        ("echo --address 1.2.3", "1.2.3"),
        ("table", "no device to make a table of"),
        ("table --rate 10M", "--rtt"),
        ("table --rate 10M --rtt 9s", "2us to 5s"),
        ("table --rate 10M --rtt 9ms --loss 50%", "0% to 20%"),
        ("table netburner-lan --rate 10M --rtt 9ms", "--rate"),
        ("table netburner-lan --loss 1%", "--rate"),
        ("presets --message 1", "from 2 to 512"),
        ("presets --messages 0", "0"),
        ("presets --pieces 0", "0"),
        ("presets --gap 10us", "100us to 1s"),
        ("presets --bulk 0", "1 B to 100 MB"),
        ("presets --bulk 1GB", "1 B to 100 MB"),
        ("presets --profile vista", "vista"),
    ] {
        let error = refused(line, 2);
        assert_eq!(error["kind"], "usage", "{line}");
        assert!(error["message"].as_str().unwrap().contains(says), "{line}: {error}");
    }
}

#[test]
fn a_scenario_that_is_unknown_or_has_no_device_is_named() {
    for (line, says) in [
        ("connect --through wan-81ms", "wan-81ms"),
        ("serve --through ./none.toml", "./none.toml"),
        ("table wan-81ms", "wan-81ms"),
        ("table wan-80ms", "has no device"),
        ("presets wan-81ms", "wan-81ms"),
    ] {
        let error = refused(line, 17);
        assert_eq!(error["kind"], "scenario_invalid", "{line}");
        assert!(error["message"].as_str().unwrap().contains(says), "{line}: {error}");
    }
}

#[test]
fn budgets_out_of_range_are_refused_with_their_range() {
    const TEST: &str = "budgets_out_of_range_are_refused_with_their_range";
    for (words, says) in [
        (["--buffers", "0"].as_slice(), "1 to 256"),
        // Without window scaling 45 segments of 1460 bytes are a full window.
        (&["--buffers", "rx=46", "--profile", "netburner"], "1 to 45"),
        (&["--buffers", "rx=9", "--pool", "8"], "1 to 8"),
    ] {
        let Some(mut command) = stack(TEST, &[&["connect"], words].concat()) else { return };
        let error = error(&command.output().unwrap(), 2);
        assert!(error["message"].as_str().unwrap().contains(says), "{words:?}: {error}");
    }
}

#[test]
fn one_address_is_not_given_to_both_ends() {
    const TEST: &str = "one_address_is_not_given_to_both_ends";
    let Some(mut command) = stack(TEST, &["connect", "--address", "10.82.0.1"]) else { return };
    let error = error(&command.output().unwrap(), 2);
    assert!(error["message"].as_str().unwrap().contains("10.82.0.1"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--address"), "{error}");
}

#[test]
fn a_peer_that_refuses_and_one_that_is_dead_are_told_apart() {
    const TEST: &str = "a_peer_that_refuses_and_one_that_is_dead_are_told_apart";
    let Some(mut command) = stack(TEST, &["connect"]) else { return };
    let refused = error(&command.output().unwrap(), 5);
    assert_eq!(refused["kind"], "refused");
    assert!(refused["message"].as_str().unwrap().contains("10.82.0.1:5001"), "{refused}");
    let Some(mut command) = stack(TEST, &["connect", "10.82.0.77:9", "--time", "1"]) else { return };
    let dead = error(&command.output().unwrap(), 4);
    assert_eq!(dead["kind"], "unreachable");
    let message = dead["message"].as_str().unwrap();
    assert!(message.contains("10.82.0.77:9") && message.contains("1.0 s"), "{dead}");
}

#[test]
fn a_device_of_ones_own_gets_counts_with_their_memory() {
    const TEST: &str = "a_device_of_ones_own_gets_counts_with_their_memory";
    let Some(mut command) = stack(TEST, &["table", "--rate", "8M", "--rtt", "20ms", "--connections", "2"]) else {
        return;
    };
    let document = document(&command.output().unwrap());
    if document["error"]["kind"] == "path_not_kept" {
        println!("skipped {TEST}: this machine is too busy for the path");
        return;
    }
    let rows = document["rows"].as_array().unwrap();
    for role in ["sends", "receives"] {
        let counts: Vec<u64> =
            rows.iter().filter(|row| row["role"] == role).map(|row| row["buffers"].as_u64().unwrap()).collect();
        assert_eq!(counts, [5, 10, 15, 20, 25, 30, 35, 40, 43]);
    }
    assert!(rows.iter().all(|row| row["memory_bytes"].as_u64().unwrap() == row["held"].as_u64().unwrap() * 1_548));
    // Two connections leave a quarter of 256 buffers with 30 in each list, and not with 35. The one that waits for each
    // set gains until then; the one that reads has the path's 14 packets in flight, and what an ACK's delay adds.
    let advised = |role: &str| document["advice"][role].as_u64().unwrap();
    assert_eq!(advised("sends"), 30, "{document}");
    assert!((15..=20).contains(&advised("receives")), "{document}");
}

/// From here on nothing of the kernel's reaches the engine.
const VANISH: &str = "ip route add blackhole 10.82.0.2/32";

#[test]
fn a_peer_that_vanished_is_given_up_after_the_time_that_was_set() {
    const TEST: &str = "a_peer_that_vanished_is_given_up_after_the_time_that_was_set";
    // A silent peer is probed; one that owes an acknowledgement has the user timeout.
    for (words, client, operation) in [
        (["--keepalive", "1s,1s,2"].as_slice(), "exec 3<>/dev/tcp/10.82.0.2/5001", "reading from 10.82.0.1"),
        (
            &["--user-timeout", "2s", "--send", "1GB", "--buffers", "20"],
            "exec 3</dev/tcp/10.82.0.2/5001; head -c 1000 <&3 >/dev/null",
            "writing to 10.82.0.1",
        ),
    ] {
        let Some(mut server) = stack(TEST, &[&["serve", "--connections", "1", "--time", "300"], words].concat()) else {
            return;
        };
        let server = server.spawn().unwrap();
        until_device_is_up(&server, "fp0");
        let line =
            format!("for i in $(seq 100); do ({client}; {VANISH}) 2>/dev/null && exit 0; sleep 0.1; done; exit 1");
        let vanished = beside(&server, &line);
        assert!(vanished.status.success(), "{vanished:?}");
        let output = server.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let document = document(&output);
        let failure = document["connections"][0]["failure"].as_str().unwrap();
        assert!(failure.contains(operation), "{failure}");
        assert_eq!(document["pool"]["free"], document["pool"]["buffers"], "{document}");
    }
}

#[test]
fn a_device_in_use_or_of_another_kind_is_named_with_the_way_out() {
    const TEST: &str = "a_device_in_use_or_of_another_kind_is_named_with_the_way_out";
    let Some(mut first) = stack(TEST, &["serve"]) else { return };
    let first = first.spawn().unwrap();
    until_device_is_up(&first, "fp0");
    for (device, says) in [("fp0", "in use"), ("lo", "no TUN device")] {
        let second = beside(&first, &format!("exec '{FULLPIPE}' stack serve --device {device} --json"));
        let error = error(&second, 23);
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("--device"), "{error}");
    }
    interrupt(&first);
    first.wait_with_output().unwrap();
}

#[test]
fn without_rights_the_right_is_named() {
    const TEST: &str = "without_rights_the_right_is_named";
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all"];
    for words in [["serve", "--time", "1"].as_slice(), &["connect"], &["echo"]] {
        let Some(mut command) =
            in_namespace(TEST, &[&nobody, [FULLPIPE, "stack"].as_slice(), words, &["--json"]].concat())
        else {
            return;
        };
        let output = command.output().unwrap();
        if output.stdout.is_empty() {
            println!("skipped {TEST}: nobody can't be played here");
            return;
        }
        let error = error(&output, 3);
        assert_eq!(error["kind"], "no_permission", "{error}");
        assert!(error.to_string().contains("root"), "{error}");
    }
}

#[test]
fn a_service_serves_this_kernel_and_ends_with_ctrl_c() {
    const TEST: &str = "a_service_serves_this_kernel_and_ends_with_ctrl_c";
    let Some(mut command) = stack(TEST, &["serve", "--send", "100000"]) else { return };
    let child = command.spawn().unwrap();
    until_device_is_up(&child, "fp0");
    let got = beside(&child, "exec 3<>/dev/tcp/10.82.0.2/5001; wc -c <&3");
    assert_eq!(String::from_utf8_lossy(&got.stdout).trim(), "100000", "{got:?}");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document = document(&output);
    assert_eq!(document["connections"][0]["sent"], 100_000);
    assert_eq!(document["connections"][0]["failure"], Value::Null, "{document}");
    assert_eq!(document["pool"]["free"], document["pool"]["buffers"], "{document}");
}

#[test]
fn an_echo_gives_back_what_this_kernel_sends() {
    const TEST: &str = "an_echo_gives_back_what_this_kernel_sends";
    let Some(mut command) = stack(TEST, &["echo", "--connections", "1"]) else { return };
    let child = command.spawn().unwrap();
    until_device_is_up(&child, "fp0");
    let got = beside(&child, "exec 3<>/dev/tcp/10.82.0.2/7; echo through both >&3; head -n 1 <&3");
    assert_eq!(String::from_utf8_lossy(&got.stdout), "through both\n", "{got:?}");
    let output = child.wait_with_output().unwrap();
    let document = document(&output);
    assert_eq!(document["connections"][0]["received"], "through both\n".len(), "{document}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_line_tells_a_script_that_the_service_listens() {
    const TEST: &str = "a_line_tells_a_script_that_the_service_listens";
    let Some(mut command) = in_namespace(TEST, &[FULLPIPE, "stack", "serve", "--port", "5055"]) else { return };
    let mut child = command.spawn().unwrap();
    let mut line = [0; 27];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(String::from_utf8_lossy(&line), "listening on 10.82.0.2:5055");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    // Nobody came, and that is no fault of a service that was stopped.
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_connection_to_a_dead_peer_is_given_up_with_ctrl_c() {
    const TEST: &str = "a_connection_to_a_dead_peer_is_given_up_with_ctrl_c";
    let Some(mut command) = stack(TEST, &["connect", "10.82.0.77:9", "--time", "600"]) else { return };
    let child = command.spawn().unwrap();
    until_device_is_up(&child, "fp0");
    // The handler stands before the device is asked for a connection; give the SYN its time.
    thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    let error = error(&child.wait_with_output().unwrap(), 130);
    assert_eq!(error["kind"], "interrupted", "{error}");
}

#[test]
fn a_transfer_over_an_emulated_path_that_is_interrupted_says_how_far_it_came() {
    const TEST: &str = "a_transfer_over_an_emulated_path_that_is_interrupted_says_how_far_it_came";
    // Some minutes, were it not interrupted.
    let Some(mut command) = stack(TEST, &["connect", "--through", "hsdpa", "--bytes", "100MB", "--time", "600"]) else {
        return;
    };
    let child = command.spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let document = document(&output);
    if let Some(connection) = document["connections"].get(0) {
        assert!(connection["failure"].as_str().unwrap().contains("stopped"), "{document}");
        assert!(connection["sent"].as_u64().unwrap() < 100_000_000, "{document}");
    } else {
        assert_eq!(document["error"]["kind"], "interrupted", "{document}");
    }
}

#[test]
fn a_table_is_interrupted_with_one_document() {
    const TEST: &str = "a_table_is_interrupted_with_one_document";
    for words in [["table", "lossy-devices"].as_slice(), &["presets", "--gap", "1s"]] {
        let Some(mut command) = stack(TEST, words) else { return };
        let child = command.spawn().unwrap();
        thread::sleep(Duration::from_secs(2));
        interrupt(&child);
        let error = error(&child.wait_with_output().unwrap(), 130);
        assert_eq!(error["kind"], "interrupted", "{error}");
    }
}

#[test]
fn the_presets_are_told_apart_and_advised() {
    const TEST: &str = "the_presets_are_told_apart_and_advised";
    let words = ["presets", "--messages", "8", "--gap", "3ms", "--pieces", "60", "--bulk", "10kB"];
    let Some(mut command) = stack(TEST, &words) else { return };
    let output = command.output().unwrap();
    // On a machine that is too busy the path is not kept, and that is said.
    assert!([Some(0), Some(18)].contains(&output.status.code()), "{output:?}");
    let document = document(&output);
    let row = |work: &str, preset: &str| {
        let rows = document["rows"].as_array().unwrap();
        rows.iter().find(|row| row["work"] == work && row["preset"] == preset).unwrap().clone()
    };
    assert_eq!(document["rows"].as_array().unwrap().len(), 12);
    // One each, but for those that a busy machine wrote together.
    assert!(row("messages", "low_latency")["data_segments"].as_u64().unwrap() >= 6, "{document}");
    assert_eq!(row("requests", "low_latency")["data_segments"], 16);
    assert_eq!(row("requests", "bulk")["data_segments"], 8);
    assert_eq!(row("pieces", "bulk")["data_segments"], 6_000_u64.div_ceil(1_460));
    assert_eq!(row("bulk", "bulk")["data_segments"], 10_000_u64.div_ceil(1_460));
    let p50 = |preset| row("requests", preset)["latency_us"]["p50"].as_u64().unwrap();
    assert!(p50("low_latency") < p50("default") && p50("default") < p50("bulk"), "{document}");
    let advised: Vec<_> = document["advice"].as_array().unwrap().iter().map(|a| a["preset"].clone()).collect();
    assert_eq!(advised, ["low_latency", "bulk", "default"]);
}
