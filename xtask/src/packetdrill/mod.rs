//! Runs other people's packetdrill scripts against the engine and counts. Neither packetdrill nor the scripts are part
//! of this repository: both are given (`docs/packetdrill.md` says where they come from).

mod script;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use script::{How, Prepared};
use xshell::{Shell, cmd};

/// What to run, with what.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The program, as packetdrill's own makefile builds it.
    #[arg(long, value_name = "FILE", default_value = "packetdrill")]
    packetdrill: PathBuf,
    /// A folder of scripts; folders in it are looked into too.
    #[arg(long, value_name = "FOLDER")]
    scripts: PathBuf,
    /// Only scripts whose path contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Write each script that fails, strict or relaxed, and why, into this file.
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
}

/// How a packetdrill comes to the plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loads {
    /// google/packetdrill: `--so_filename`.
    ByName,
    /// nplab's has no such option: the plugin stands in for the C library.
    Before,
}

/// The packetdrill to run.
struct Program<'a> {
    path: &'a Path,
    loads: Loads,
}

impl<'a> Program<'a> {
    fn new(path: &'a Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let option = b"so_filename";
        let knows_plugins = bytes.windows(option.len()).any(|window| window == option);
        Ok(Self { path, loads: if knows_plugins { Loads::ByName } else { Loads::Before } })
    }
}

/// A script's fate.
struct Outcome {
    name: String,
    /// Why it failed, strict and relaxed; `None` where it passed.
    failures: [Option<String>; 2],
}

/// How long a script may take; time in it is virtual.
const LIMIT: Duration = Duration::from_secs(20);
const MODES: [How; 2] = [How::Strict, How::Relaxed];

/// The words that google/packetdrill's own harness and Linux's define for scripts.
const DEFINITIONS: [&str; 5] = [
    "TFO_COOKIE=3021b9d889017eeb",
    "TFO_COOKIE_ZERO=b7c12350a90dc8f5",
    "CODE=host_unreachable",
    "CMSG_LEVEL_IP=SOL_IP",
    "CMSG_TYPE_RECVERR=IP_RECVERR",
];

/// Builds the plugin, runs the scripts, prints the table.
pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    cmd!(shell, "cargo build --quiet --locked --package fullpipe-packetdrill").quiet().run()?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let plugin = fs::canonicalize(Path::new(&target).join("debug/libfullpipe_packetdrill.so"))?;
    let mut scripts = Vec::new();
    find(&arguments.scripts, &mut scripts)
        .with_context(|| format!("looking for scripts in {}", arguments.scripts.display()))?;
    scripts.retain(|path| path.to_string_lossy().contains(&arguments.only));
    scripts.sort();
    if scripts.is_empty() {
        bail!("no script (*.pkt) in {}", arguments.scripts.display());
    }
    let folder = std::env::temp_dir().join(format!("fullpipe-packetdrill-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let program = Program::new(&arguments.packetdrill)?;
    let outcomes = run_all(arguments, &program, &plugin, &folder, &scripts);
    fs::remove_dir_all(&folder)?;
    let outcomes = outcomes?;
    print(&outcomes);
    if let Some(path) = &arguments.failures {
        fs::write(path, table(&outcomes)).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    Ok(())
}

fn run_all(
    arguments: &Arguments,
    program: &Program<'_>,
    plugin: &Path,
    folder: &Path,
    scripts: &[PathBuf],
) -> Result<Vec<Outcome>> {
    let next = Mutex::new(0..scripts.len());
    let outcomes = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let at = next.lock().ok().and_then(|mut next| next.next());
            let Some(at) = at else { return Ok(()) };
            let text = fs::read_to_string(&scripts[at]).unwrap_or_default();
            // The engine does IPv6, but packetdrill's addresses are one family's.
            if text.contains("--ip_version=ipv6") || text.contains("--ip_version=ipv4-mapped-ipv6") {
                continue;
            }
            let name = scripts[at].strip_prefix(&arguments.scripts).unwrap_or(&scripts[at]).display().to_string();
            let mut failures = [None, None];
            for (failure, how) in failures.iter_mut().zip(MODES) {
                let file = folder.join(format!("{at}.pkt"));
                let prepared = script::prepare(&text, how, program.loads);
                fs::write(&file, &prepared.text)?;
                *failure = run_one(program, plugin, &file, &prepared)?;
                // Who passes the strict way passes the relaxed one.
                if failure.is_none() {
                    break;
                }
            }
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push(Outcome { name, failures });
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    let mut outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.sort_by(|a: &Outcome, b| a.name.cmp(&b.name));
    Ok(outcomes)
}

/// Why a script fails; `None` where it passes.
fn run_one(program: &Program<'_>, plugin: &Path, script: &Path, prepared: &Prepared) -> Result<Option<String>> {
    let output = script.with_extension("out");
    let file = fs::File::create(&output)?;
    let mut command = Command::new(program.path);
    match program.loads {
        Loads::ByName => {
            command.arg(format!("--so_filename={}", plugin.display()));
            command.arg(format!("--so_flags={}", prepared.flags));
        }
        Loads::Before => {
            command.env("FULLPIPE_PACKETDRILL", &prepared.flags);
        }
    }
    let mut child = command
        .arg(format!("--local_ip={}", prepared.local))
        .args(["--code_command=/usr/bin/env python3"])
        .args(DEFINITIONS.iter().map(|definition| format!("--define={definition}")))
        .arg(script)
        .env("LD_PRELOAD", plugin)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("starting {}", program.path.display()))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(Some("takes too long".to_owned()));
        }
        thread::sleep(Duration::from_millis(5));
    };
    if status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&fs::read(&output)?).into_owned();
    let name = script.display().to_string();
    Ok(Some(text.replace(&format!("{name}:"), "line ").trim().replace('\n', " | ")))
}

/// The folder of a script. Linux's own are all in one; the first word of a name stands for it there.
fn folder_of(name: &str) -> &str {
    match name.split_once('/') {
        Some((folder, _)) => folder,
        None => name.strip_prefix("tcp_").unwrap_or(name).split(['_', '-', '.']).next().unwrap_or_default(),
    }
}

fn suite_of(outcomes: &[Outcome]) -> BTreeMap<&str, [usize; 3]> {
    let mut folders: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for outcome in outcomes {
        let counts = folders.entry(folder_of(&outcome.name)).or_default();
        counts[0] += 1;
        for (count, failure) in counts[1..].iter_mut().zip(&outcome.failures) {
            *count += usize::from(failure.is_none());
        }
    }
    folders
}

fn print(outcomes: &[Outcome]) {
    println!("{:<28}{:>8}{:>8}{:>9}", "folder", "scripts", "strict", "relaxed");
    let folders = suite_of(outcomes);
    let mut sum = [0; 3];
    for (folder, counts) in &folders {
        println!("{folder:<28}{:>8}{:>8}{:>9}", counts[0], counts[1], counts[2]);
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("{:<28}{:>8}{:>8}{:>9}", "together", sum[0], sum[1], sum[2]);
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let [strict, relaxed] = &outcome.failures;
        for (mode, failure) in [("strict", strict), ("relaxed", relaxed)] {
            if let Some(failure) = failure {
                text.push_str(&format!("{mode}\t{}\t{failure}\n", outcome.name));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_folder() {
        assert_eq!(folder_of("fastopen/client/poll.pkt"), "fastopen");
        assert_eq!(folder_of("tcp_ooo-before-and-after-accept.pkt"), "ooo");
        assert_eq!(folder_of("tcp_tcp_info_tcp-info-rwnd-limited.pkt"), "tcp");
    }
}
