//! Generated files are fresh: the page about JSON, the page about exit codes, and the help of every command.
//!
//! `cargo xtask generate` (`FULLPIPE_GENERATE=1`) writes them anew.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::PathBuf, process::Command};

fn fullpipe(words: &[&str]) -> String {
    fullpipe_within("100", words)
}

/// What it prints on a terminal of that many columns.
fn fullpipe_within(columns: &str, words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(words).env("COLUMNS", columns).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Compares the file with what it shall contain, or writes it where that is asked for.
fn hold(file: &str, expected: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("FULLPIPE_GENERATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{file} is stale: run `cargo xtask generate` and look at what changed");
}

#[test]
fn the_page_about_json_is_fresh() {
    hold("docs/json.md", &fullpipe_report::schema::markdown());
}

/// The table in the page about the simulator is what the command prints.
#[test]
fn the_table_of_the_published_situations_is_fresh() {
    const MARK: &str = "    $ fullpipe sim --all\n";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let page = fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let (before, after) = page.split_once(MARK).unwrap();
    let table = fullpipe_within("120", &["sim", "--all"]);
    let indented: String =
        table.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect();
    let rest = after.find("\n## ").map_or("", |at| &after[at..]);
    hold("docs/simulator.md", &format!("{before}{MARK}{indented}{rest}"));
}

#[test]
fn the_page_about_exit_codes_is_fresh() {
    hold("docs/exit-codes.md", &fullpipe(&["exit-codes"]));
}

#[test]
fn the_help_of_every_command_is_as_recorded() {
    const COMMANDS: &[&str] = &[
        "",
        "demo",
        "serve",
        "check",
        "tune",
        "mesh",
        "undo",
        "confirm",
        "show",
        "history",
        "status",
        "settings",
        "plan",
        "apply",
        "lint",
        "read",
        "archive",
        "report",
        "watch",
        "agent",
        "unpin",
        "web",
        "reset",
        "lab",
        "lab list",
        "lab run",
        "lab shell",
        "stack",
        "stack serve",
        "stack connect",
        "stack echo",
        "stack table",
        "stack presets",
        "key",
        "sim",
        "what-if",
        "share",
        "completions",
        "man",
        "exit-codes",
    ];
    let mut text = String::new();
    for command in COMMANDS {
        let mut words: Vec<_> = command.split_whitespace().collect();
        words.push("--help");
        text += &format!("==== fullpipe {}\n{}\n", words.join(" "), fullpipe(&words));
    }
    hold("crates/cli/tests/help.txt", &text);
}
