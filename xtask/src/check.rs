//! Formatting, lints and tests.

mod advisories;
mod again;
mod run;
mod skipped;

use std::{collections::BTreeSet, thread, time::Instant};

use anyhow::{Context as _, Result, anyhow};
use cargo_metadata::{Metadata, MetadataCommand, TargetKind};
use xshell::{Shell, cmd};

use self::{
    again::Failed,
    run::{Ended, Priority, Run, Show},
    skipped::Skipped,
};
use crate::setup;

/// The packages whose tests build and run for other systems.
const OTHER_SYSTEMS: &[&str] = &["fullpipe", "fullpipe-host"];

/// A part of the names of tests that build for other systems. They keep a processor busy for minutes where the others
/// wait for packets, so that they run beside them, at a low priority.
const BUILDS: &str = "builds_for";

/// A part of the names of tests that run what was built: they come after it.
const RUNS: &str = "under_wine";

/// The same of those that measure: a second of measuring must not be one without a processor, and they run when the others are over.
const MEASURES: &str = "measures_under_wine";

/// Test programs that wait for packets of slow paths, or for far hosts, for minutes, one test at a time: they run beside the
/// others, ...
const WAITING: [&str; 5] = ["far", "fleet", "scenarios", "trial", "unpin"];

/// ... and when what is built for other systems is built.
const WAITING_LATER: [&str; 1] = ["destination"];

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
    cmd!(shell, "cargo clippy --locked --workspace --all-targets --quiet -- -D warnings").run()?;
    // What nothing in the workspace leaves out.
    cmd!(shell, "cargo clippy --locked --package fullpipe-measure --no-default-features --quiet -- -D warnings")
        .run()?;
    cmd!(shell, "cargo test --locked --workspace --no-run").run()?;
    Ok(())
}

fn whole(shell: &Shell) -> Result<()> {
    let began = Instant::now();
    setup::components(shell, &["clippy", "rustfmt"])?;
    // Set-up waits for servers, the compiler for the processor: a new machine does both at once.
    setup::find_tools(shell);
    let (root, path) = (shell.current_dir(), shell.var_os("PATH").unwrap_or_default());
    thread::scope(|scope| {
        let compiled = scope.spawn(|| {
            let compiler = Shell::new()?;
            compiler.change_dir(root);
            compiler.set_var("PATH", path);
            compile(&compiler)
        });
        setup::all(shell);
        compiled.join().map_err(|_| anyhow!("compiling ended by a panic"))?
    })?;
    println!("{:.0} s: set-up, lints, and building the tests", began.elapsed().as_secs_f64());
    let mut skipped = Skipped::default();
    if let Some(reason) = advisories::look(shell)? {
        skipped.note(reason);
    }
    let (others, failed) = side_by_side(shell, &mut skipped)?;
    let again = again::alone(shell, &failed);
    let others = others.and(again);
    let wine =
        Run::new(shell, Priority::Normal, &words("--workspace --test wine"), &[MEASURES]).finish(Show::AsItComes)?;
    let runs = again::disturbed(&wine).and_then(|failed| again::alone(shell, &failed));
    skipped.add(wine.skipped);
    // Named in any case: whoever mends the failures wants to know what comes next.
    let lacking = skipped.tell();
    println!("{:.0} s: all", began.elapsed().as_secs_f64());
    others.and(runs).and(lacking)
}

/// All tests but those that measure with what was built for another system, in three lanes side by side. Answers how they ended;
/// what failed and may have been disturbed by the others is named apart.
fn side_by_side(shell: &Shell, skipped: &mut Skipped) -> Result<(Result<()>, Vec<Failed>)> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let mut others: BTreeSet<String> = test_programs(&metadata).collect();
    let mut taken = |names: &[&str]| -> Result<BTreeSet<String>> {
        names
            .iter()
            .map(|name| others.take(*name).with_context(|| format!("there is no test program {name}")))
            .collect()
    };
    let (waiting, later) = (taken(&WAITING)?, taken(&WAITING_LATER)?);
    let programs = |kinds: &str, programs: BTreeSet<String>| -> Vec<String> {
        words(kinds).into_iter().chain(programs.into_iter().flat_map(|name| ["--test".to_owned(), name])).collect()
    };
    let others = programs("--workspace --lib --bins", others);
    let main = [Run::new(shell, Priority::Normal, &others, &["--skip", BUILDS, "--skip", RUNS])];
    let beside = [Run::new(shell, Priority::Normal, &programs("--workspace", waiting), &["--skip", BUILDS])];
    let yielding = [
        Run::new(shell, Priority::Low, &words("--workspace --tests"), &[BUILDS]),
        Run::new(shell, Priority::Normal, &words("--workspace --test wine"), &[RUNS, "--skip", MEASURES]),
        Run::new(shell, Priority::Normal, &programs("--workspace", later), &["--skip", BUILDS]),
        Run::new(shell, Priority::Low, &words("--workspace --doc"), &[]),
    ];
    let in_turn = |runs: Vec<Run>, show| runs.into_iter().map(|run| run.finish(show)).collect::<Result<Vec<_>>>();
    let ended = thread::scope(|scope| -> Result<Vec<Ended>> {
        let beside = scope.spawn(|| in_turn(beside.into(), Show::AtItsEnd));
        let yielding = scope.spawn(|| in_turn(yielding.into(), Show::AtItsEnd));
        let mut ended = in_turn(main.into(), Show::AsItComes);
        for lane in [beside, yielding] {
            let lane = lane.join().map_err(|_| anyhow!("a lane of tests ended by a panic"))?;
            ended = ended.and_then(|ended| Ok([ended, lane?].into_iter().flatten().collect()));
        }
        ended
    })?;
    again::print_slowest(ended.iter().map(|run| run.said.as_str()));
    let (mut outcome, mut disturbed) = (Ok(()), Vec::new());
    for run in ended {
        match again::disturbed(&run) {
            Ok(failed) => disturbed.extend(failed),
            Err(error) => outcome = outcome.and(Err(error)),
        }
        skipped.add(run.skipped);
    }
    Ok((outcome, disturbed))
}

/// The names of all integration tests; packages may share one.
fn test_programs(metadata: &Metadata) -> impl Iterator<Item = String> {
    let targets = metadata.packages.iter().flat_map(|package| &package.targets);
    targets.filter(|target| target.kind.contains(&TargetKind::Test)).map(|target| target.name.clone())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
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
    setup::page_making(shell);
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
