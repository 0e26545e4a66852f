//! One run of `python -m fullpipe.archive`: its time, processor time and memory, and what is done to it on the way.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::nodes::{ADDRESS, Nodes, environment};

/// How often processes are looked at: a look at all of a machine's takes some milliseconds.
const LOOK: Duration = Duration::from_millis(500);
/// Of /proc/PID/stat, on every Linux that users have (`getconf CLK_TCK`).
const TICKS: f64 = 100.0;

/// What runs it, and on what.
pub(super) struct Reader {
    pub(super) python: PathBuf,
    pub(super) captures: PathBuf,
}

/// Who works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Team {
    pub(super) engine: &'static str,
    pub(super) workers: usize,
    /// All of the machine's, unless one is named.
    pub(super) processors: Option<&'static str>,
}

/// What is done to a run, so many seconds after its start.
pub(super) struct Harm<'a> {
    pub(super) kill_after_s: f64,
    pub(super) stop_after_s: f64,
    pub(super) nodes: &'a mut Nodes,
}

/// What it took, and what it said.
pub(super) struct Done {
    pub(super) seconds: f64,
    /// Of the command and its processes; nodes of Ray are not in it.
    pub(super) processor_s: f64,
    pub(super) worker_mb: f64,
    pub(super) command_mb: f64,
    pub(super) document: Value,
}

impl Reader {
    /// Reads all captures into a new archive at `out`.
    pub(super) fn read(&self, team: Team, out: &Path, more: &[&str], mut harm: Option<Harm<'_>>) -> Result<Done> {
        if out.exists() {
            fs::remove_dir_all(out)?;
        }
        let said = out.with_extension("json");
        let mut command = match team.processors {
            Some(processors) => pinned(processors, &self.python),
            None => Command::new(&self.python),
        };
        command.args(["-m", "fullpipe.archive"]).arg(&self.captures).arg("--out").arg(out);
        command.args(["--json", "--quiet", "--engine", team.engine, "--workers", &team.workers.to_string()]).args(more);
        if team.engine == "ray" {
            command.args(["--address", ADDRESS]);
        }
        let spent = children_s()?;
        let started = Instant::now();
        let mut child = environment(&mut command).stdout(File::create(&said)?).spawn().context("start Python")?;
        let (mut worker_kb, mut command_kb) = (0, 0);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let workers = self.workers(&child);
            command_kb = command_kb.max(most_kb(child.id()));
            worker_kb = workers.iter().map(|pid| most_kb(*pid)).fold(worker_kb, u64::max);
            if let Some(harm) = &mut harm {
                harm.inflict(started.elapsed().as_secs_f64(), &workers)?;
            }
            thread::sleep(LOOK);
        };
        let text = fs::read_to_string(&said)?;
        ensure!(status.success(), "{team:?}: {status}\n{text}");
        let document: Value = serde_json::from_str(&text)?;
        let seconds = document["seconds"].as_f64().context("no seconds in the document")?;
        let processor_s = children_s()? - spent;
        Ok(Done {
            seconds,
            processor_s,
            worker_mb: worker_kb as f64 / 1000.0,
            command_mb: command_kb as f64 / 1000.0,
            document,
        })
    }

    /// What a command about an archive answers.
    pub(super) fn ask(&self, words: &[&str], archive: &Path) -> Result<Value> {
        let mut command = Command::new(&self.python);
        let output = command.args(["-m", "fullpipe.archive"]).args(words).arg(archive).arg("--json").output()?;
        ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Processes that have a capture open, apart from the command's own.
    fn workers(&self, command: &Child) -> Vec<u32> {
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| *pid != command.id() && self.is_reading(*pid)).collect()
    }

    fn is_reading(&self, pid: u32) -> bool {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|file| file.starts_with(&self.captures)))
    }
}

impl Harm<'_> {
    fn inflict(&mut self, elapsed_s: f64, workers: &[u32]) -> Result<()> {
        if elapsed_s > self.stop_after_s {
            self.stop_after_s = f64::INFINITY;
            self.nodes.stop_one()?;
            eprintln!("archive: one of two nodes stopped after {elapsed_s:.0} s");
        } else if elapsed_s > self.kill_after_s
            && let Some(worker) = workers.first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?))
        {
            self.kill_after_s = f64::INFINITY;
            kill_process(worker, Signal::KILL)?;
            eprintln!("archive: a worker killed after {elapsed_s:.0} s");
        }
        Ok(())
    }
}

fn pinned(processors: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", processors]).arg(program);
    command
}

/// The most memory that a process had, in kB.
fn most_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Processor time of all processes that ended and were waited for, with theirs: fields 16 and 17 of /proc/self/stat.
pub(crate) fn children_s() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").context("/proc/self/stat is not as proc(5) says")?;
    let ticks: Vec<f64> = fields.split(' ').skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / TICKS)
}
