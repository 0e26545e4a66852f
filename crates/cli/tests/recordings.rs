//! `fullpipe read` of a recording that `fullpipe watch` made.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

fn read(words: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe")).arg("read").args(words).arg(file).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Two intervals of two connections, as `--record` writes them.
fn recording() -> String {
    let row = |port: u16, at_s: f64, sent_bps: u64| {
        json!({
            "local": "192.0.2.1:443", "peer": format!("198.51.100.7:{port}"), "owner": null, "uid": 33, "seen_s": at_s,
            "is_older": false, "sent_bps": sent_bps, "received_bps": 0, "rtt_us": 40_000, "min_rtt_us": null,
            "peer_window": 65_535, "own_window": null, "cwnd": null, "in_flight": null, "unread": 0, "waiting": 0,
            "send_buffer": null, "receive_buffer": null, "mss": null, "congestion_control": null,
            "retransmissions": 1, "now": null, "seconds": { "path": at_s }, "diagnosis": null, "notes": [],
        })
    };
    let line = |at_s: f64, rate: u64| {
        let frame = json!({
            "schema": "fullpipe/2", "command": "watch", "time": format!("2026-11-23T14:00:0{at_s}Z"), "at_s": at_s,
            "interval_s": 1.0, "connections": 2, "active": 1, "matching": 2,
            "rows": [row(1, at_s, rate), row(2, at_s, 0)], "listeners": [], "missing": [],
        });
        frame.to_string() + "\n"
    };
    line(1.0, 10_000_000) + &line(2.0, 30_000_000)
}

#[test]
fn a_recording_is_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched.jsonl");
    fs::write(&file, recording()).unwrap();
    let page = text(&read(&[], &file));
    for part in ["recording of 2 intervals in 2 s", "2 TCP connections, 1 active", "198.51.100.7:1", "20.0M"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let document: Value = serde_json::from_str(&text(&read(&["--json"], &file))).unwrap();
    assert_eq!((&document["command"], &document["interval_s"]), (&json!("read"), &json!(2.0)));
    assert_eq!(document["rows"][0]["sent_bps"], 20_000_000);
    assert_eq!(document["rows"][0]["retransmissions"], 2);
    let story = text(&read(&["--conn", "1"], &file));
    assert!(story.contains("192.0.2.1:443 -> 198.51.100.7:1") && !story.contains("198.51.100.7:2"), "{story}");
    assert_eq!(text(&read(&["--top", "1"], &file)).matches("198.51.100.7:").count(), 1);
}

#[test]
fn what_only_packets_have_and_what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched.jsonl");
    fs::write(&file, recording()).unwrap();
    for words in [&["--csv"][..], &["--filter", "port 1"], &["--conn", "3"]] {
        let refused = read(words, &file);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {refused:?}");
    }
    let refused = read(&["--csv"], &file);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.split_whitespace().collect::<Vec<_>>().join(" ").contains("--filter TERMS"), "{error}");
    for broken in ["{", "{}", "{\"command\":\"watch\"}"] {
        fs::write(&file, broken).unwrap();
        let refused = read(&[], &file);
        assert!(!refused.status.success() && !refused.stderr.is_empty(), "{broken}: {refused:?}");
    }
}
