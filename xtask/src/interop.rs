//! The tests against real peers, run against versions of iperf3 that are built from source below `target/tools`.
//!
//! Nothing of what is fetched is part of this repository.

use std::{collections::BTreeMap, env, path::PathBuf};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

/// The oldest that is still met, without much of what came later; that of Debian 12, which speaks for the many that are
/// installed; and the newest release, which has threads, stricter JSON and other errors.
const VERSIONS: &[&str] = &["3.1.7", "3.12", "3.21"];

/// The tests with a real peer: parts of their names.
const TESTS: [&str; 4] = ["interop", "options", "auth", "transcript"];

/// How tests mark a line of the table: role, options, outcome, figures.
const MARK: &str = "interop| ";

/// Builds each version that is not there yet, from `source`, runs every test with a real peer against it, and prints
/// what became of each option.
pub(crate) fn run(shell: &Shell, source: &str) -> Result<()> {
    let mut table = Table::default();
    let mut failed = Vec::new();
    for version in VERSIONS {
        let folder = build(shell, source, version).with_context(|| format!("build iperf3 {version} from {source}"))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let _path = shell.push_env("PATH", env::join_paths([folder].into_iter().chain(env::split_paths(&path)))?);
        eprintln!("interop: {}", cmd!(shell, "iperf3 --version").quiet().read()?.lines().next().unwrap_or_default());
        // Few at a time: each test starts programs of its own.
        let output =
            cmd!(shell, "cargo test --locked --package fullpipe-measure --test it -- --test-threads=2 --nocapture")
                .args(TESTS)
                .ignore_status()
                .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            eprintln!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
            failed.push(*version);
        }
        table.take(version, &text);
    }
    print!("{}", table.text());
    ensure!(failed.is_empty(), "tests failed against iperf3 {}; their output is above", failed.join(" and "));
    Ok(())
}

/// What became of each option with each version, in the order in which they were first met.
#[derive(Default)]
struct Table(Vec<Row>);

struct Row {
    role: String,
    options: String,
    outcomes: BTreeMap<&'static str, String>,
}

impl Table {
    fn take(&mut self, version: &'static str, output: &str) {
        // With several tests at a time a line of one may stand behind the name of another.
        for line in output.lines().filter_map(|line| Some(line.split_once(MARK)?.1)) {
            let mut cells = line.split(" | ");
            let (Some(role), Some(options), Some(outcome)) = (cells.next(), cells.next(), cells.next()) else {
                continue;
            };
            let known = self.0.iter().position(|row| row.role == role && row.options == options);
            let index = known.unwrap_or_else(|| {
                let (role, options) = (role.to_owned(), options.to_owned());
                self.0.push(Row { role, options, outcomes: BTreeMap::new() });
                self.0.len() - 1
            });
            self.0[index].outcomes.insert(version, outcome.to_owned());
        }
        self.0.sort_by(|a, b| a.role.cmp(&b.role));
    }

    fn text(&self) -> String {
        let columns = |cell: &dyn Fn(&'static str) -> String| -> String {
            VERSIONS.iter().map(|version| format!("{:>8}", cell(version))).collect()
        };
        let mut text = format!("{:<12} {:<36}{}\n", "", "options", columns(&|version| version.to_owned()));
        for Row { role, options, outcomes } in &self.0 {
            let outcomes = columns(&|version| outcomes.get(version).cloned().unwrap_or_else(|| "?".to_owned()));
            text += &format!("{role:<12} {options:<36}{outcomes}\n");
        }
        text + "-: that version does not have it; ?: not run\n"
    }
}

/// The folder with the program in it.
fn build(shell: &Shell, source: &str, version: &str) -> Result<PathBuf> {
    let folder = shell.current_dir().join(format!("target/tools/iperf3-{version}"));
    let programs = folder.join("src");
    if shell.path_exists(programs.join("iperf3")) {
        return Ok(programs);
    }
    shell.remove_path(&folder)?;
    cmd!(shell, "git -c advice.detachedHead=false clone --quiet --depth 1 --branch {version} {source} {folder}")
        .run()?;
    let _there = shell.push_dir(&folder);
    cmd!(shell, "./configure --quiet --disable-shared").quiet().ignore_stdout().ignore_stderr().run()?;
    cmd!(shell, "make --silent --directory src iperf3").quiet().ignore_stdout().ignore_stderr().run()?;
    Ok(programs)
}
