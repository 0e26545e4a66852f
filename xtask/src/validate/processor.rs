//! Whether the hosts of the lab had the processor when they needed it: the simulator's take no time.
//!
//! The kernel tells of each thread how long it ran and how long it was ready and waited for a processor
//! (`/proc/PID/task/TID/schedstat`). All that both hosts and the path do happens in threads of the lab's own process.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The threads that are the two hosts and the path: the application's ends, with all that the kernel does for them, and the
/// carrier of packets. The others keep the processor awake, take samples and talk.
const HOSTS: [&str; 3] = ["measure-send", "measure-receive", "lab-path"];
/// How often the threads are looked at: what one did after the last look is missing.
const EVERY: Duration = Duration::from_millis(100);
/// Of the time, the part for which the threads together waited for a processor, from which on a run says nothing about the
/// kernel. What is queued meanwhile leaves in one burst, and gaps of 2 ms between acknowledgements end the trains by which
/// CUBIC leaves slow start.
const MOST_WAITING: f64 = 0.01;
/// Of the time, the part for which one thread ran, from which on the host is the limit: a simulated one takes no time.
const MOST_RUNNING: f64 = 0.8;

/// What the hosts' threads in one run of the lab got of the processors.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Share {
    /// Of the time, the part for which threads waited, added up.
    pub(super) waiting: f64,
    /// ... and for which the busiest one ran.
    pub(super) running: f64,
}

impl Share {
    /// Whether the hosts had the processor whenever they needed it, and time to spare.
    pub(super) fn is_ample(self) -> bool {
        self.waiting <= MOST_WAITING && self.running <= MOST_RUNNING
    }
}

/// Nanoseconds that a thread ran and that it waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    running: u64,
    waiting: u64,
}

/// Runs a command, and gives what it printed and what its threads got of the processors.
pub(super) fn watched(command: &mut Command) -> Result<(String, Share)> {
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut out = child.stdout.take().context("the output of a command is gone")?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut threads = BTreeMap::new();
    while child.try_wait()?.is_none() {
        look(child.id(), &mut threads);
        thread::sleep(EVERY);
    }
    let text = reader.join().map_err(|_| anyhow::anyhow!("the reader of a command's output panicked"))??;
    Ok((text, share(&threads, begun.elapsed())))
}

fn look(process: u32, threads: &mut BTreeMap<String, Spent>) {
    for task in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let read = |name| fs::read_to_string(task.path().join(name)).ok();
        if !read("comm").is_some_and(|name| HOSTS.iter().any(|host| name.trim_end().starts_with(host))) {
            continue;
        }
        if let Some(spent) = read("schedstat").and_then(|text| parse(&text)) {
            threads.insert(task.file_name().to_string_lossy().into_owned(), spent);
        }
    }
}

fn parse(schedstat: &str) -> Option<Spent> {
    let mut words = schedstat.split_whitespace().map(str::parse);
    Some(Spent { running: words.next()?.ok()?, waiting: words.next()?.ok()? })
}

fn share(threads: &BTreeMap<String, Spent>, span: Duration) -> Share {
    let span = span.as_nanos().max(1) as f64;
    let waiting: u64 = threads.values().map(|spent| spent.waiting).sum();
    let running = threads.values().map(|spent| spent.running).max().unwrap_or(0);
    Share { waiting: waiting as f64 / span, running: running as f64 / span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_waited_or_had_nothing_to_spare_is_told_apart() {
        let threads = |waiting, running| {
            let parts = [("1", Spent { running, waiting }), ("2", Spent { running: 1, waiting })];
            share(&parts.map(|(name, spent)| (name.to_owned(), spent)).into(), Duration::from_secs(10))
        };
        assert!(threads(40_000_000, 7_000_000_000).is_ample());
        assert!(!threads(60_000_000, 7_000_000_000).is_ample());
        assert!(!threads(0, 9_000_000_000).is_ample());
    }

    #[test]
    fn the_kernels_figures_are_read() {
        assert_eq!(parse("1234 56 7\n"), Some(Spent { running: 1_234, waiting: 56 }));
        assert_eq!(parse("1234\n"), None);
    }

    #[test]
    fn a_command_is_watched_to_its_end() {
        let (text, share) = watched(Command::new("sh").args(["-c", "sleep 0.3; echo done"])).unwrap();
        assert_eq!(text, "done\n");
        assert!((0.0..=0.5).contains(&share.running), "{share:?}");
    }
}
