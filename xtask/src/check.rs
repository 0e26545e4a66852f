//! Formatting, lints and tests.

mod advisories;
mod again;
mod skipped;

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use xshell::{Shell, cmd};

use self::skipped::{SHOW, Skipped};
use crate::setup;

/// The packages whose tests build and run for other systems.
const OTHER_SYSTEMS: &[&str] = &["fullpipe", "fullpipe-host"];

/// A part of the names of tests that build for other systems. They keep a processor busy for minutes where the others
/// wait for packets, so that they run beside them, at a low priority.
const BUILDS: &str = "the_crate_builds_for";

/// A part of the names of tests that run what was built. They measure too, and a second of measuring must not be one
/// without a processor: they run when the others are over.
const RUNS: &str = "under_wine";

/// Runs every check, or the tests of some packages.
pub(crate) fn test(shell: &Shell, packages: &[String]) -> Result<()> {
    if packages.is_empty() { whole(shell) } else { some(shell, packages) }
}

fn some(shell: &Shell, packages: &[String]) -> Result<()> {
    setup::peers(shell);
    setup::programs(shell);
    setup::pages(shell);
    let packages: Vec<String> = packages.iter().map(|name| package_name(name)).collect();
    let has = |name: &str| packages.iter().any(|package| package == name);
    if has("fullpipe-python") {
        setup::python(shell);
    }
    if has("fullpipe") {
        setup::fleet(shell);
    }
    // They are large: only where their tests are run.
    if OTHER_SYSTEMS.iter().any(|name| has(name)) {
        setup::other_systems(shell);
    }
    let selected = packages.iter().flat_map(|name| ["--package", name]);
    cmd!(shell, "cargo test --locked {selected...}").run()?;
    Ok(())
}

/// What takes no more than the toolchain: formatting, lints, and building the tests.
fn compile(shell: &Shell) -> Result<()> {
    cmd!(shell, "cargo fmt --all --check").run()?;
    cmd!(shell, "cargo fmt --manifest-path fuzz/Cargo.toml --check").run()?;
    // What only `replay` would find, half an hour later.
    cmd!(shell, "cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml").ignore_stdout().run()?;
    cmd!(shell, "cargo clippy --locked --workspace --all-targets --quiet -- -D warnings").run()?;
    // What nothing in the workspace leaves out.
    cmd!(shell, "cargo clippy --locked --package fullpipe-measure --no-default-features --quiet -- -D warnings")
        .run()?;
    cmd!(shell, "cargo test --locked --workspace --no-run").run()?;
    Ok(())
}

fn whole(shell: &Shell) -> Result<()> {
    setup::components(shell)?;
    // Set-up waits for servers, the compiler for the processor: a new machine does both at once.
    let root = shell.current_dir();
    thread::scope(|scope| {
        let compiled = scope.spawn(|| {
            let compiler = Shell::new()?;
            compiler.change_dir(root);
            compile(&compiler)
        });
        setup::all(shell);
        compiled.join().map_err(|_| anyhow!("compiling ended by a panic"))?
    })?;
    let mut skipped = Skipped::default();
    if let Some(reason) = advisories::look(shell)? {
        skipped.note(reason);
    }
    let beside = Beside::start(shell)?;
    let most = ["--locked", "--workspace", "--no-fail-fast", "--", SHOW, "--skip", BUILDS, "--skip", RUNS];
    let others = again::together(shell, &most, &mut skipped);
    skipped.add(beside.finish()?);
    let others = others.and_then(|failed| again::alone(shell, &failed));
    let wine = ["--locked", "--workspace", "--test", "wine", "--no-fail-fast", "--", SHOW, RUNS];
    let runs = again::together(shell, &wine, &mut skipped).and_then(|failed| again::alone(shell, &failed));
    let replayed = replay(shell);
    // Named in any case: whoever mends the failures wants to know what comes next.
    let lacking = skipped.tell();
    others.and(runs).and(replayed).and(lacking)
}

/// The builds for other systems, running beside the rest.
struct Beside {
    tests: Child,
    /// What they print, kept apart so that two outputs don't mix.
    log: PathBuf,
}

impl Beside {
    fn start(shell: &Shell) -> Result<Self> {
        let target = cargo_metadata::MetadataCommand::new().no_deps().exec()?.target_directory;
        let log = target.join("other-systems.log").into_std_path_buf();
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        // By the shell: it knows where set-up put what was missing.
        let builds =
            cmd!(shell, "nice -n 10 cargo test --locked --workspace --tests --no-fail-fast -- {SHOW} {BUILDS}");
        let tests = Command::from(builds)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("start the builds for other systems")?;
        Ok(Self { tests, log })
    }

    /// Waits for the rest of them, tells their results, and answers what was skipped.
    fn finish(mut self) -> Result<Skipped> {
        let status = self.tests.wait().context("wait for the builds for other systems")?;
        let said = fs::read_to_string(&self.log).with_context(|| format!("read {}", self.log.display()))?;
        if !status.success() {
            print!("{said}");
            bail!("a test that builds for another system failed");
        }
        let mut skipped = Skipped::default();
        let is_result = |line: &&str| skipped.shows(line) && line.starts_with("test ") && line.ends_with("ok");
        let results: Vec<&str> = said.lines().filter(is_result).collect();
        ensure!(!results.is_empty(), "no test was found by the name {BUILDS}");
        println!("builds for other systems, beside the rest:\n{}", results.join("\n"));
        Ok(skipped)
    }
}

/// The fuzzer's crate is no member of the workspace, because only a nightly toolchain fuzzes; its corpora are replayed
/// with the workspace's toolchain, and beside its compiled dependencies.
fn replay(shell: &Shell) -> Result<()> {
    let target = cargo_metadata::MetadataCommand::new().no_deps().exec()?.target_directory;
    cmd!(shell, "cargo test --locked --manifest-path fuzz/Cargo.toml --target-dir {target}").run()?;
    Ok(())
}

/// Writes the generated files anew; `row` is the only one of the articles to measure.
pub(crate) fn generate(shell: &Shell, measure: bool, row: Option<u8>) -> Result<()> {
    let what = match (measure, row) {
        (true, Some(row)) => format!("measure {row}"),
        (true, None) => "measure".to_owned(),
        (false, _) => "1".to_owned(),
    };
    let _env = shell.push_env("FULLPIPE_GENERATE", what);
    cmd!(shell, "cargo test --locked --package fullpipe --test generated --test articles").run()?;
    cmd!(shell, "cargo test --locked --package fullpipe-knobs --lib the_pages_under_docs").run()?;
    Ok(())
}

/// Writes what is built into the pages anew, with all that it takes: script and style first, because the reader of captures has them
/// in its own page.
pub(crate) fn generate_pages(shell: &Shell) -> Result<()> {
    setup::pages(shell);
    cmd!(shell, "rustup --quiet target add wasm32-unknown-unknown").run()?;
    let _web = shell.push_dir("web");
    cmd!(shell, "npm run build").run()?;
    cmd!(shell, "npm run simulator").run()?;
    Ok(())
}

/// `lab` is the package `fullpipe-lab`; `cli` is `fullpipe` itself.
fn package_name(room: &str) -> String {
    match room {
        "cli" => "fullpipe".to_owned(),
        "xtask" => room.to_owned(),
        _ if room.starts_with("fullpipe") => room.to_owned(),
        _ => format!("fullpipe-{room}"),
    }
}
