//! `fullpipe read`: what it writes where, whatever the number of threads.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::process::{Command, Output, Stdio};

use serde_json::Value;

const CAPTURES: [&str; 2] = ["wan-80ms-cubic-window-b.pcap", "wan-80ms-cubic-buffer-a.pcap"];

fn read(words: &[&str]) -> Output {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture/tests/data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.current_dir(folder).arg("read").args(CAPTURES).args(words).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_document_is_the_same_with_any_number_of_threads() {
    let one = read(&["--json", "--threads", "1"]);
    assert!(one.status.success(), "{one:?}");
    let document: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(document["connections"].as_array().unwrap().len(), 2);
    for threads in ["2", "3", "6", "40"] {
        let more = read(&["--json", "--threads", threads]);
        assert!(more.stdout == one.stdout, "{threads} threads");
    }
    assert_eq!(read(&["--threads", "0"]).status.code(), Some(2));
}

#[test]
fn columns_are_written_beside_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("connections.parquet");
    let output = read(&["--parquet", file.to_str().unwrap(), "--top", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("receive window"), "{output:?}");
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let nowhere = folder.path().join("none/connections.parquet");
    let output = read(&["--json", "--parquet", nowhere.to_str().unwrap()]);
    assert_ne!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["error"]["message"].as_str().unwrap().contains("connections.parquet"), "{document}");
}

#[test]
fn a_capture_is_not_written_over_and_a_file_is_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("slow.pcap");
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture/tests/data/wan-80ms-cubic-window-b.pcap");
    std::fs::copy(data, &capture).unwrap();
    let read_here = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
        command
            .current_dir(folder.path())
            .args(["read", "slow.pcap"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let output = read_here(&["--parquet", "../x/../slow.pcap"]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    let output = read_here(&["--parquet", "./slow.pcap"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is one of the captures"), "{output:?}");
    assert!(std::fs::read(&capture).unwrap() == std::fs::read(data).unwrap());
    std::fs::write(folder.path().join("slow.parquet"), "earlier").unwrap();
    assert!(read_here(&["--parquet", "slow.parquet"]).status.success());
    assert!(std::fs::read(folder.path().join("slow.parquet")).unwrap().starts_with(b"PAR1"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
