//! Predictions by the real binary: from documents of other commands, from files of settings, for plans and for a pool.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Runs the binary with `input` on its standard input: exit code and document.
fn fullpipe(words: &[&str], input: &[u8]) -> (Option<i32>, Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(words)
        .arg("--json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Who does not read standard input may be gone already.
    child.stdin.take().unwrap().write_all(input).ok();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_measured_transfer_is_simulated_as_it_was_seen_and_with_settings() {
    let (_, measured) = fullpipe(&["sim", "wan-80ms"], b"");
    let text = serde_json::to_vec(&measured).unwrap();
    let set = "receiver.shift=7,receiver.window=2M,sender.buffer=2M";
    let (code, found) = fullpipe(&["what-if", "-", "--rate", "100M", "--set", set], &text);
    assert_eq!(code, Some(0), "{found}");
    let rows = found["predictions"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "two directions, as they are and with the settings: {found}");
    for pair in rows.chunks(2) {
        let (seen, after) = (&pair[0], &pair[1]);
        let off = number(&seen["rate_bps"]) / number(&seen["measured_bps"]) - 1.0;
        assert!(off.abs() < 0.15, "{off}: {seen}");
        assert!(number(&after["rate_bps"]) > 80e6, "{after}");
        assert_eq!(after["measured_bps"], Value::Null);
    }
    assert_eq!(rows[0]["limiter"], "receive_window");
    assert_eq!(rows[2]["limiter"], "send_buffer");
    let (code, error) = fullpipe(&["what-if", "-", "--sweep", "receiver.window=16k..64k"], &text);
    assert_eq!(code, Some(2), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("--direction"), "{error}");
}

/// One connection that a window holds hides what the path carries; the lab measures it with several, a simulated one knows it.
#[test]
fn a_simulated_lab_knows_what_its_path_carries() {
    let (_, found) = fullpipe(&["sim", "wan-80ms"], b"");
    let transfer = &found["transfers"][0];
    assert_eq!(transfer["diagnosis"]["limiter"], "receive_window");
    // 1,448 of each 1,500 B at 100 Mbit/s.
    assert!((96.4e6..96.7e6).contains(&number(&transfer["seen"]["path_bps"])), "{transfer}");
}

#[test]
fn a_captured_connection_is_simulated_and_what_it_does_not_tell_is_said() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../capture/tests/data/wan-80ms-cubic-window-b.pcap");
    let (_, read) = fullpipe(&["read", file.to_str().unwrap()], b"");
    let text = serde_json::to_vec(&read).unwrap();
    let (code, found) = fullpipe(&["what-if", "-", "--conn", "1"], &text);
    assert_eq!(code, Some(0), "{found}");
    let row = &found["predictions"][0];
    assert_eq!(row["limiter"], "receive_window", "{found}");
    assert!((number(&row["rate_bps"]) / number(&row["measured_bps"]) - 1.0).abs() < 0.2, "{found}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("queue was not seen") && notes.contains("--rate"), "{notes}");
    let (code, error) = fullpipe(&["what-if", "-", "--conn", "7"], &text);
    assert_ne!(code, Some(0));
    assert!(error["error"]["message"].as_str().unwrap().contains("no connection 7"), "{error}");
}

#[test]
fn files_of_settings_are_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sysctl.conf");
    std::fs::write(&file, "net.ipv4.tcp_rmem = 4096 87380 129024\nnet.core.somaxconn = 5\n").unwrap();
    let words = ["what-if", "--rate", "100M", "--rtt", "80ms", "--to", "linux-6.18", "--to-settings"];
    let (code, found) = fullpipe(&[&words[..], &[file.to_str().unwrap()]].concat(), b"");
    assert_eq!(code, Some(0), "{found}");
    let row = &found["predictions"][0];
    // 129,024 B x 58 % / 80 ms = 7.48 Mbit/s.
    assert_eq!(row["limiter"], "receive_window", "{found}");
    assert!((number(&row["rate_bps"]) / 7.48e6 - 1.0).abs() < 0.1, "{found}");
    assert!(found["notes"].to_string().contains("net.ipv4.tcp_rmem = 4096 87380 129024"), "{found}");
}

#[test]
fn every_change_of_a_simulated_plan_has_a_prediction_or_says_why_not() {
    let words = ["plan", "--platform", "windows-xp", "--rate", "1.8M", "--rtt", "230ms", "--simulate"];
    let (code, plan) = fullpipe(&words, b"");
    assert_eq!(code, Some(0), "{plan}");
    let changes = plan["changes"].as_array().unwrap();
    for change in changes {
        let prediction = &change["prediction"];
        let some = !prediction["directions"].as_array().unwrap().is_empty();
        assert!(some != prediction["not_predicted"].is_string(), "{change}");
    }
    let all = &plan["prediction"]["directions"][0];
    // 17,520 B / 230 ms are 609 kbit/s.
    assert!((number(&all["before_bps"]) / 609e3 - 1.0).abs() < 0.1, "{all}");
    assert!(number(&all["after_bps"]) > 1.6e6, "{all}");
    let (_, plain) = fullpipe(&words[..7], b"");
    assert_eq!(plain["prediction"], Value::Null);
}

#[test]
fn a_pool_is_shared_within_its_bounds_and_a_wrong_word_is_named() {
    let (code, found) = fullpipe(&["share", "--buffers", "256", "--sockets", "4x bulk 25M 15ms, 2x interactive"], b"");
    assert_eq!(code, Some(0), "{found}");
    let rows = found["shares"].as_array().unwrap();
    let sum: f64 = rows.iter().map(|row| number(&row["count"]) * number(&row["buffers"])).sum();
    assert!(sum <= 256.0 - number(&found["pool"]["reserve"]), "{found}");
    assert!((sum - number(&found["pool"]["shared"])).abs() < 0.5, "{found}");
    assert!(rows.iter().all(|row| row["calls"].as_array().unwrap().len() == 4), "{found}");
    let (code, error) = fullpipe(&["share", "--sockets", "4x bulk 25Q 15ms"], b"");
    assert_eq!(code, Some(2));
    assert!(error["error"]["message"].as_str().unwrap().contains("column 9"), "{error}");
}

#[test]
fn the_calls_that_share_prints_are_those_that_lint_accepts() {
    for sockets in [
        "4x bulk 25M 9.4ms",
        "2x bulk 1M 600ms loss 1% receives, 4x interactive message 512B",
        "bulk 25M 80ms, interactive",
    ] {
        let (code, found) = fullpipe(&["share", "--sockets", sockets], b"");
        assert_eq!(code, Some(0), "{sockets}: {found}");
        let rows = found["shares"].as_array().unwrap();
        let of_row = |row: &Value| {
            let calls = row["calls"].as_array().unwrap().iter();
            calls.map(|call| call["call"].as_str().unwrap().replace("fd", "own")).collect::<Vec<_>>().join("\n")
        };
        let source: Vec<String> = rows.iter().map(|row| format!("void f(int own) {{\n{}\n}}\n", of_row(row))).collect();
        for source in source {
            let (code, judged) = fullpipe(&["lint", "-", "--platform", "netburner"], source.as_bytes());
            let warned = |finding: &&Value| !matches!(finding["level"].as_str(), Some("ok" | "note"));
            let warnings: Vec<_> = judged["findings"].as_array().unwrap().iter().filter(warned).collect();
            assert!(code == Some(0) && warnings.is_empty(), "{sockets}: {source}{warnings:?}");
        }
    }
}

/// The file that docs/scenarios.md shows.
#[test]
fn the_documented_scenario_comes_out_as_it_expects_and_nothing_is_attainable_beyond_its_framing() {
    let page = include_str!("../../../docs/scenarios.md");
    let file = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, file).unwrap();
    let (code, found) = fullpipe(&["sim", path.to_str().unwrap()], b"");
    assert_eq!((code, &found["as_expected"]), (Some(0), &Value::from(true)), "{found:#}");
    let up = &found["transfers"][0];
    assert_eq!(up["diagnosis"]["limiter"], "path");
    // 1,448 of 1,500 + 26 B on a link of 2 Mbit/s.
    let most = 2e6 * 1_448.0 / 1_526.0;
    assert!(number(&up["diagnosis"]["attainable_bps"]) <= most * 1.005, "{up:#}");
}
