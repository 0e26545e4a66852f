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
fn many_connections_are_summed_up() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture/tests/data/strangers/short-downloads-b.pcap");
    let read = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
        command.args(["read", capture]).args(words).stdin(Stdio::null()).output().unwrap()
    };
    let said = |words: &[&str]| String::from_utf8(read(words).stdout).unwrap();
    let few = said(&["--top", "3"]);
    assert!(few.contains("  together    1,612,880 B of payload in 2.82 s: 4.57 Mbit/s\n"), "{few}");
    assert!(few.contains("  limited by  path (saturated): 38 connections, 1,532,236 B\n"), "{few}");
    let all = said(&["--top", "43"]);
    assert!(all.contains("  together    ") && !all.contains("  limited by  "), "each of them is shown: {all}");
    let document: Value = serde_json::from_slice(&read(&["--json"]).stdout).unwrap();
    let sum =
        |key| document["limits"].as_array().unwrap().iter().map(|limit| limit[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("connections"), sum("bytes")), (43, 1_612_880));
    let limits = &document["limits"];
    assert_eq!((&limits[0]["limiter"], &limits[0]["detail"]), (&"path".into(), &"saturated".into()));
    assert!((2.8..2.85).contains(&document["files"][0]["seconds"].as_f64().unwrap()));
}

#[test]
fn columns_are_written_beside_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("connections.parquet");
    let output = read(&["--parquet", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("receive window") && said.contains("send buffer"), "{output:?}");
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
    // Through a folder that is not there, within this test's own.
    let output = read_here(&["--parquet", "x/../slow.pcap"]);
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

#[test]
fn two_ends_are_judged_apart_and_named_and_a_capture_that_is_cut_ends_with_a_code() {
    let data = |name: &str| format!("{}/../capture/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let read = |files: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args([&["read", "--json"], files].concat())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document["problems"].to_string())
    };
    let ends = ["20m-150ms-bbr-send-buffer-a.pcap", "20m-150ms-bbr-send-buffer-b.pcap"].map(data);
    assert_eq!(read(&[&ends[0], &ends[1]]), (Some(0), "[]".to_owned()));
    let document = |files: &[&str]| {
        let words = [&["read", "--json"], files].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(words).stdin(Stdio::null()).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let both = document(&[&ends[1], &ends[0]]);
    let connections = both["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2, "{connections:#?}");
    let near = connections.iter().find(|connection| connection["number"] == connection["vantages"]["near"]).unwrap();
    assert!(near["file"].as_str().unwrap().ends_with("-a.pcap"), "{near:#}");
    assert_eq!((&both["connection_count"], &both["seen_twice"]), (&Value::from(2), &Value::from(1)));
    assert!(near["loaded_rtt_us"].as_u64() >= near["rtt_us"].as_u64(), "{near:#}");
    let text =
        Command::new(env!("CARGO_BIN_EXE_fullpipe")).arg("read").args(&ends).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("1 connection, seen at two vantage points, in ") && text.contains(" loaded\n"), "{text}");
    // Each says what its capture says alone.
    for connection in connections {
        let alone = document(&[connection["file"].as_str().unwrap()]);
        let alone = &alone["connections"][0];
        for key in ["rate_bps", "rtt_us", "packets", "retransmissions"] {
            assert_eq!(connection[key], alone[key], "{key}");
        }
        assert_eq!(connection["diagnosis"]["limiter"], alone["diagnosis"]["limiter"]);
    }
    assert_eq!(read(&[&ends[0]]), (Some(0), "[]".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.pcap");
    let whole = std::fs::read(&ends[0]).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 7]).unwrap();
    let (code, problems) = read(&[cut.to_str().unwrap()]);
    assert!(code == Some(24) && problems.contains("in the middle of a packet"), "{code:?} {problems}");
}

#[test]
fn syn_packets_that_are_named_are_not_said_to_be_unseen() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture/tests/data");
    let mut named = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pcap") {
            continue;
        }
        let words = ["read", path.to_str().unwrap(), "--conn", "1", "--json"];
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(words).stdin(Stdio::null()).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let connection = &document["connections"][0];
        if connection["handshake"]["packets"].as_array().is_some_and(|packets| packets.len() >= 2) {
            named += 1;
            assert!(!connection.to_string().contains("SYN packets were not seen"), "{path:?}: {connection}");
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn of_several_captures_the_story_names_the_file_and_what_shows_it_in_wireshark() {
    let output = read(&["--conn", "2"]);
    let story = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    // Numbers begin anew in each file, as Wireshark counts.
    assert!(story.contains(&format!("packets 1, 2, 3 of {}", CAPTURES[1])), "{story}");
    let document: Value = serde_json::from_slice(&read(&["--json"]).stdout).unwrap();
    let connections = document["connections"].as_array().unwrap();
    let second = connections.iter().find(|connection| connection["number"] == 2).unwrap();
    let filter = second["display_filter"].as_str().unwrap();
    assert!(filter.starts_with("ip.addr eq ") && story.contains(filter), "{filter}: {story}");
}

/// What xplot would draw of a file: colour, and both ends of each line.
fn lines(graph: &str) -> std::collections::BTreeSet<String> {
    let mut colour = "";
    let mut lines = std::collections::BTreeSet::new();
    for line in graph.lines() {
        match line {
            // What tcptrace colours as the first and the last of a connection are segments as others are.
            "white" | "orange" | "blue" | "red" => colour = "segment",
            "green" | "yellow" => colour = line,
            _ if line.starts_with("line ") && colour != "purple" => drop(lines.insert(format!("{colour} {line}"))),
            "purple" => colour = line,
            _ => {}
        }
    }
    lines
}

#[test]
fn a_graph_for_xplot_has_the_lines_of_tcptraces() {
    let folder = tempfile::tempdir().unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture/tests/data");
    for (name, peers) in [
        ("50m-40ms-cubic-tail-loss-a.pcap", "a2b_tsg.xpl"),
        ("wan-80ms-cubic-window-a.pcap", "a2b_tsg.xpl"),
        ("2m-230ms-cubic-policed-a.pcap", "a2b_tsg.xpl"),
        ("20m-150ms-cubic-idle-a.pcap", "b2a_tsg.xpl"),
    ] {
        let capture = format!("{data}/{name}");
        let ours = folder.path().join("ours.xpl");
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(["read", &capture, "--quiet", "--xplot", ours.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let ours = std::fs::read_to_string(ours).unwrap();
        assert!(ours.starts_with("timeval double\ntitle\n") && ours.ends_with("go\n"));
        let Ok(peer) = Command::new("tcptrace").args(["-S", "-n", &capture]).current_dir(folder.path()).output() else {
            return println!("skipped a_graph_for_xplot_has_the_lines_of_tcptraces: there is no tcptrace");
        };
        assert!(peer.status.success(), "{peer:?}");
        let theirs = std::fs::read_to_string(folder.path().join(peers)).unwrap();
        let (ours, theirs) = (lines(&ours), lines(&theirs));
        assert!(theirs.len() > 100, "{name}");
        assert_eq!(ours.symmetric_difference(&theirs).collect::<Vec<_>>(), Vec::<&String>::new(), "{name}");
    }
}
