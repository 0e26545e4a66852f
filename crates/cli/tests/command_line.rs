//! The real binary: what it prints where, and how it ends.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::Read,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn fullpipe(words: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(words)
        .env("FULLPIPE_STATE_DIR", state.path())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The one object on standard output, with the schema key.
fn document(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    assert_eq!(document["schema"], "fullpipe/2");
    document
}

#[test]
fn a_wrong_command_line_ends_with_2_and_says_so_on_standard_error() {
    let output = fullpipe(&["check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("<HOST>"), "{output:?}");
}

#[test]
fn a_wrong_command_line_is_a_document_under_json() {
    let output = fullpipe(&["check", "--json", "h", "--direction", "sideways"]);
    assert_eq!(output.status.code(), Some(2));
    let document = document(&output);
    assert_eq!(document["error"]["kind"], "usage");
    assert!(document["error"]["message"].as_str().unwrap().contains("sideways"));
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn no_command_shows_the_help() {
    let output = fullpipe(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Commands:"));
}

#[test]
fn the_version_is_printed() {
    let output = fullpipe(&["--version"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).starts_with("fullpipe "));
}

#[test]
fn the_exit_codes_are_a_help_topic() {
    let output = fullpipe(&["help", "exit-codes"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("130  interrupted"), "{output:?}");
}

#[test]
fn completions_and_manual_pages_are_made_for_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fullpipe(&["completions", shell]);
        assert!(script.status.success() && text(&script.stdout).contains("fullpipe"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    let output = fullpipe(&["man", "--dir", dir.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for page in ["fullpipe.1", "fullpipe-check.1", "fullpipe-lab-run.1", "fullpipe-undo.1"] {
        let page = std::fs::read_to_string(dir.path().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
        assert!(page.contains(".TH"));
    }
    assert!(text(&fullpipe(&["man"]).stdout).contains("EXIT STATUS"));
}

#[test]
fn a_page_is_a_document_under_json() {
    let document = document(&fullpipe(&["completions", "bash", "--json"]));
    assert_eq!(document["command"], "completions");
    assert!(document["text"].as_str().unwrap().contains("fullpipe"));
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(errors, "");
}

#[test]
fn settings_are_chosen_by_name_and_by_what_differs() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let named = document(&fullpipe(&["settings", "RMEM", "--json"]));
    let rows = named["settings"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["knob"].as_str().unwrap().contains("rmem")), "{named}");
    assert!(rows.iter().any(|row| row["knob"] == "net.ipv4.tcp_rmem"), "{named}");
    let changed = document(&fullpipe(&["settings", "--changed", "--json"]));
    assert!(changed["settings"].as_array().unwrap().iter().all(|row| row["is_default"] == false), "{changed}");
    assert_eq!(fullpipe(&["settings", "no-such-thing"]).status.code(), Some(2));
}

#[test]
fn columns_set_the_width_of_what_is_printed() {
    let widest = |columns: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(["plan", "--platform", "windows-11", "--rate", "100M", "--rtt", "80ms"])
            .env("COLUMNS", columns)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        // Commands are not wrapped, so that they can be copied.
        let paragraph = |line: &&str| line.contains("note") || line.starts_with("              ");
        text(&output.stdout).lines().filter(paragraph).map(|line| line.chars().count()).max().unwrap()
    };
    assert!((50..=60).contains(&widest("60")), "{}", widest("60"));
    assert!((90..=110).contains(&widest("110")), "{}", widest("110"));
}

#[test]
fn a_table_of_a_device_says_both_ways_to_name_one() {
    let output = fullpipe(&["stack", "table"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said.contains("netburner-lan") && said.contains("--rate") && said.contains("--rtt"), "{said}");
}

#[test]
fn nothing_is_wider_than_columns() {
    for (words, columns) in [
        (&["what-if", "--set", "help"][..], 60),
        (&["what-if", "--set", "help"], 80),
        (&["sim", "--all"], 60),
        (&["check", "h", "--fail-on", "nonsense"], 60),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
        let output = command.args(words).env("COLUMNS", columns.to_string()).output().unwrap();
        for line in text(&output.stdout).lines().chain(text(&output.stderr).lines()) {
            // A word that is longer stays whole, so that it can be copied.
            assert!(line.chars().count() <= columns || !line.trim().contains(' '), "{words:?}: {line}");
        }
    }
}

#[test]
fn a_letter_of_iperf3_that_is_not_taken_comes_with_what_is() {
    let output = fullpipe(&["measure", "far.example", "-f", "m"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("iperf3's -f") && text(&output.stderr).contains("--csv"), "{output:?}");
    let error = document(&fullpipe(&["serve", "-D", "--json"]));
    assert!(error["error"]["message"].as_str().unwrap().contains("iperf3's -D"), "{error}");
}
