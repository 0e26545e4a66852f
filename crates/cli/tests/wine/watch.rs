//! `watch` of fullpipe.exe: a transfer between two programs in Wine, whose table has the connections and which has no statistics of
//! them, and the stand-in with statistics (`iphlpapi_stand_in.c`), which `connections.rs` puts in place.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{Server, toolchain::text};

/// One look, in `folder`.
pub(crate) fn once(program: &dyn Fn() -> Command, folder: &Path) -> Value {
    let output = program().args(["watch", "--once", "--json"]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

/// Whether a list of the document has a line with these words.
fn says(document: &Value, list: &str, words: &str) -> bool {
    document[list].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains(words))
}

pub(crate) fn shows_a_transfer_and_what_is_missing(
    folder: &Path,
    linux: &dyn Fn() -> Command,
    program: &dyn Fn() -> Command,
) {
    let server = Server::start(&mut program());
    let mut measuring = program();
    measuring.args(["measure", &server.address, "--time", "60", "--quiet"]).stdin(Stdio::null()).stdout(Stdio::null());
    let _measuring = Ended(measuring.spawn().unwrap());
    // The control connection and that of the data: until both are there.
    let port = server.address.rsplit(':').next().unwrap();
    let document = (0..60)
        .map(|_| once(program, folder))
        .find(|document| rows(document).iter().filter(|row| row["local"] == server.address.as_str()).count() >= 2)
        .expect("the transfer is listed");
    for row in rows(&document).iter().filter(|row| row["local"] == server.address.as_str()) {
        // The other end is in Wine, too.
        let other = rows(&document).iter().find(|other| other["local"] == row["peer"] && other["peer"] == row["local"]);
        let other = other.unwrap_or_else(|| panic!("{document}"));
        for end in [row, other] {
            // Wine finds the owner of a socket only where the program's own process holds a descriptor of it, which it need not.
            assert!(end["owner"].is_null() || end["owner"]["process"] == "fullpipe.exe", "{end}");
            for unknown in ["sent_bps", "received_bps", "rtt_us", "peer_window", "uid", "diagnosis"] {
                assert!(end[unknown].is_null(), "{unknown}: {end}");
            }
        }
    }
    assert!(rows(&document).iter().any(|row| row["owner"]["process"] == "fullpipe.exe"), "{document}");
    assert!(says(&document, "missing", "no statistics of TCP connections (ESTATS)"), "{document}");
    assert!(says(&document, "remarks", "untested on Windows"), "{document}");

    let shown = program().args(["watch", "--once", "--filter", &format!("sport {port}")]).output().unwrap();
    let shown = text(&shown);
    assert!(
        shown.contains("not seen") && shown.contains("untested on Windows") && shown.contains("127.0.0.1:"),
        "{shown}"
    );

    let recording = folder.join("wine.jsonl");
    let filter = format!("port {port} process fullpipe.exe");
    let recorded = program()
        .args(["watch", "--for", "3s", "--interval", "500ms", "--filter", &filter, "--record", "wine.jsonl"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded));
    let read = linux().args(["read", "--json"]).arg(&recording).output().unwrap();
    let read: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert!(!rows(&read).is_empty() && rows(&read).iter().all(|row| row["sent_bps"].is_null()), "{read}");
}

/// Of the stand-in's connections.
pub(crate) fn has_statistics(document: &Value, log: &str) {
    let row =
        rows(document).iter().find(|row| row["local"] == "192.0.2.1:5201").unwrap_or_else(|| panic!("{document}"));
    assert_eq!((&row["peer"], &row["rtt_us"]), (&"198.51.100.7:49152".into(), &1_000.into()), "{row}");
    assert_eq!((&row["cwnd"], &row["peer_window"]), (&2_000_000.into(), &3_000_000.into()), "{row}");
    assert_eq!(row["sent_bps"], 0, "{row}");
    assert!(row["received_bps"].as_u64().unwrap() > 0 && !row["diagnosis"].is_null(), "{row}");
    assert!(row["owner"]["pid"] == 4_711 && row["owner"]["fd"].is_null(), "{row}");
    assert!(says(document, "remarks", "statistics (ESTATS) of 2 connections were off"), "{document}");
    let (on, off): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| line.ends_with("on"));
    assert_eq!((on.len(), off.len()), (12, 12), "six groups of two connections, on and off again: {log}");
}

/// As above, by who is no administrator.
pub(crate) fn has_none_without_rights(document: &Value) {
    assert!(rows(document).len() == 2 && rows(document).iter().all(|row| row["received_bps"].is_null()), "{document}");
    assert!(says(document, "missing", "of 2 connections: switching their statistics (ESTATS) on takes"), "{document}");
    assert!(!says(document, "remarks", "were off"), "nothing was switched on: {document}");
}

/// A program that is ended.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It keeps nothing that has to be put back.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
