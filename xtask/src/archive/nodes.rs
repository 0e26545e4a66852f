//! A Ray cluster of two nodes on this machine, started as a user starts it: `ray start`.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Where the head listens, in a namespace of its own.
pub(super) const ADDRESS: &str = "127.0.0.1:6379";
/// Processors that each node offers: with four workers, each has two.
const PROCESSORS: &str = "--num-cpus=2";
/// How long a cluster may take to be there.
const PATIENCE: Duration = Duration::from_secs(120);

/// Both nodes; they end with it.
pub(super) struct Nodes {
    head: Child,
    other: Child,
    /// Sockets lie below it, whose names may have 107 bytes.
    folder: PathBuf,
}

impl Nodes {
    /// Starts them, and waits until both are there.
    pub(super) fn start(python: &Path) -> Result<Self> {
        let ray = python.with_file_name("ray");
        let folder = std::env::temp_dir().join(format!("fp-ray-{}", std::process::id()));
        let begin = |words: &[&str]| {
            environment(
                Command::new(&ray).args(["start", "--block", "--node-ip-address=127.0.0.1", PROCESSORS]).args(words),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start {}", ray.display()))
        };
        let temporary = format!("--temp-dir={}", folder.display());
        let head = begin(&["--head", "--port=6379", "--include-dashboard=false", &temporary])?;
        await_count(python, 1)?;
        let nodes = Self { head, other: begin(&[&format!("--address={ADDRESS}")])?, folder };
        await_count(python, 2)?;
        Ok(nodes)
    }

    /// The second node is gone from one moment to the next, with all that works on it: its raylet is killed, and `ray start` ends the
    /// rest. Asked to end (SIGTERM), it would finish its tasks first.
    pub(super) fn stop_one(&mut self) -> Result<()> {
        let node = self.other.id();
        let children = std::fs::read_to_string(format!("/proc/{node}/task/{node}/children"))?;
        let is_raylet =
            |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "raylet");
        let raylet = children.split_whitespace().find(is_raylet).context("the node has no raylet")?;
        kill_process(Pid::from_raw(raylet.parse()?).context("no process")?, Signal::KILL)?;
        self.other.wait()?;
        Ok(())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in [&mut self.other, &mut self.head] {
            drop(end(node));
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn end(node: &mut Child) -> Result<()> {
    if node.try_wait()?.is_none() {
        kill_process(Pid::from_child(node), Signal::TERM)?;
        node.wait()?;
    }
    Ok(())
}

/// Without a token, because nobody else is in the namespace.
pub(super) fn environment(command: &mut Command) -> &mut Command {
    command.env("RAY_AUTH_MODE", "disabled").env("RAY_USAGE_STATS_ENABLED", "0").env_remove("RAY_ADDRESS")
}

fn await_count(python: &Path, count: usize) -> Result<()> {
    let script = format!(
        "import ray; ray.init(address='{ADDRESS}', log_to_driver=False, logging_level='CRITICAL'); \
         raise SystemExit(sum(node['Alive'] for node in ray.nodes()) < {count})"
    );
    let started = Instant::now();
    loop {
        let mut command = Command::new(python);
        let status = environment(command.args(["-c", &script])).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if status?.success() {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "the Ray cluster did not have {count} nodes within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(500));
    }
}
