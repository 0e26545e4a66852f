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

/// The commands below one, and it before them, as its help lists them.
fn with_subcommands(command: &str) -> Vec<String> {
    let words: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
    let help = fullpipe(&words);
    let list = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        name.split_whitespace().next().filter(|name| *name != "help")
    });
    let below = names.flat_map(|name| with_subcommands(format!("{command} {name}").trim()));
    std::iter::once(command.to_owned()).chain(below.collect::<Vec<_>>()).collect()
}

#[test]
fn the_help_of_every_command_is_as_recorded() {
    let mut text = String::new();
    // What is asked for by `help exit-codes` is in no list.
    for command in with_subcommands("").into_iter().chain(["exit-codes".to_owned()]) {
        let mut words: Vec<_> = command.split_whitespace().collect();
        words.push("--help");
        text += &format!("==== fullpipe {}\n{}\n", words.join(" "), fullpipe(&words));
    }
    assert!(text.contains("==== fullpipe measure --help") && text.contains("==== fullpipe lab run --help"));
    hold("crates/cli/tests/help.txt", &text);
}
