//! `fullpipe unpin`.

use std::{
    collections::BTreeSet,
    fs::File,
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use fullpipe_bpf::{Swallow, Whose};
use fullpipe_host::{
    FixedBuffers, HeldSocket, Host, Journal, JournalError, Outcome, Program, RunId, SystemHost, UndoOptions, Which,
    linux, undo,
};
use fullpipe_report::{PutBack, Unpinned, UnpinnedSocket, json, text};
use fullpipe_units::{Bytes, Rate};
use fullpipe_watch::{
    Filter, Frame, Row, Sort, Watcher,
    unpin::{Pinned, Target, find},
};

use super::{Ended, journal, printed};
use crate::{args::UnpinArgs, confirm::confirm, exit::Exit, failure::Failure, interrupt, output::Output};

/// How often it is looked, at rates and for new processes.
const INTERVAL: Duration = Duration::from_secs(1);
/// So many intervals are the rate before.
const BEFORE: usize = 3;
/// A window takes some round trips to grow: so many intervals belong neither to before nor to after.
const BETWEEN: usize = 3;
/// The rate after is that of the last intervals, so many of them at the most.
const AFTER: usize = 30;
/// Connections that are added up.
const MOST: usize = 1_000;

pub(super) fn run(args: &UnpinArgs, output: Output) -> Ended {
    let target = Target::new(&args.target);
    let processes = target.processes();
    if processes.is_empty() && !matches!(target, Target::Name(_)) {
        return Err(Failure::new(
            Exit::InputInvalid,
            &format!("there is no such process or control group: {}", args.target),
        ));
    }
    let stop = interrupt::cancel_flag()?;
    if !args.open_only {
        group(&target)?;
    }
    let question = format!(
        "{} processes of {}: return their fixed buffers to automatic sizing {}?",
        processes.len(),
        args.target,
        args.duration.map_or_else(|| "until Ctrl-C".to_owned(), |time| format!("for {time:?}"))
    );
    confirm(output, args.yes, &question)?;

    let mut watcher = Watcher::new(INTERVAL, filter(&target)?, Sort::Rate, MOST)?;
    let is_over = || stop.load(Ordering::Relaxed);
    let mut before = Vec::new();
    while before.len() < BEFORE {
        match watcher.next_frame(&is_over)? {
            Some(frame) => before.push(rate(&frame)),
            None => return Ok(Exit::Interrupted),
        }
    }
    let held = Held::begin(&target, args)?;
    let mut during = During { target, held, freed: Vec::new(), after: Vec::new() };
    let end = args.duration.map(|time| Instant::now() + time);
    let worked = during.work(&mut watcher, &|| is_over() || end.is_some_and(|end| Instant::now() >= end), output);
    // Detached and put back whatever went wrong.
    let swallowed = during.held.swallow.as_ref().map(Swallow::swallowed).transpose();
    let run = during.held.run;
    let put_back = during.held.end(output)?;
    worked?;
    let unpinned = Unpinned {
        run: run.0,
        target: args.target.clone(),
        swallowed: swallowed?.map(|counted| [counted.send, counted.receive]),
        before: mean(&before),
        after: during.after.get(BETWEEN..).and_then(|after| mean(after.rchunks(AFTER).next()?)),
        put_back,
        sockets: during.freed.iter().map(socket).collect(),
    };
    printed(output.result(|| json::unpinned(&unpinned), |look| text::unpinned(&unpinned, look)))
}

/// The control group in which calls are swallowed.
fn group(target: &Target) -> Result<PathBuf, Failure> {
    target.group().ok_or_else(|| {
        let text = "control groups of version 2 are not mounted here, so calls for new sockets can't be swallowed; mount them, or \
                    give --open-only";
        Failure::new(Exit::Unsupported, text)
    })
}

fn swallow(target: &Target) -> Result<Swallow, Failure> {
    let folder = group(target)?;
    let group = File::open(&folder).map_err(|error| Failure::system("opening the control group", &error))?;
    let whose = match target {
        Target::Group(_) => Whose::Everyone,
        Target::Name(name) => Whose::Named(name.clone()),
        Target::Process(_) => Whose::Followed,
    };
    Ok(Swallow::begin(group, &whose)?)
}

/// Only the target's connections.
fn filter(target: &Target) -> Result<Filter, Failure> {
    let terms = match target {
        Target::Name(name) => format!("process {name}"),
        Target::Process(pid) => format!("pid {pid}"),
        Target::Group(group) => format!("cgroup {group}"),
    };
    terms.parse().map_err(|error| Failure::new(Exit::Usage, &format!("{error}")))
}

/// What is in force, and in the journal.
struct Held {
    run: RunId,
    swallow: Option<Swallow>,
}

impl Held {
    /// In the journal first.
    fn begin(target: &Target, args: &UnpinArgs) -> Result<Self, Failure> {
        let pid = std::process::id();
        let start = linux::held::started(pid).unwrap_or(0);
        let what = if args.open_only { "open sockets given back" } else { "calls that fix buffers swallowed" };
        let program = Program { what: format!("{what} for {}", args.target), pid, start };
        let command = format!("unpin {}{}", args.target, if args.open_only { " --open-only" } else { "" });
        let identity = SystemHost::new().identity()?;
        let run = journal::open()?.hold(&command, &program, &identity)?;
        let swallow = if args.open_only { Ok(None) } else { swallow(target).map(Some) };
        match swallow {
            Ok(swallow) => Ok(Self { run, swallow }),
            Err(failure) => {
                put_back(&mut journal::open()?, run)?;
                Err(failure)
            }
        }
    }

    /// Gives these back to automatic sizing, each in the journal first.
    fn free(&self, pinned: Vec<Pinned>) -> Result<Vec<Pinned>, Failure> {
        if pinned.is_empty() {
            return Ok(pinned);
        }
        let mut journal = match journal::open_now() {
            Ok(journal) => journal,
            // Somebody changes settings: they are looked at again in a second.
            Err(JournalError::JournalLocked { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let size = |size: Bytes| u32::try_from(size.get()).unwrap_or(u32::MAX);
        let mut freed = Vec::new();
        for one in pinned {
            let socket = HeldSocket { inode: one.inode, pid: one.owner.pid, fd: one.fd };
            let before = FixedBuffers {
                send: one.fixed.send.then(|| size(one.send_buffer)),
                receive: one.fixed.receive.then(|| size(one.receive_buffer)),
            };
            // One that is closed by now needs nothing.
            if journal.hold_socket(self.run, &socket, &before, || one.free())?.is_ok() {
                freed.push(one);
            }
        }
        Ok(freed)
    }

    /// Detaches, and puts open sockets back; `None` where another run has the journal.
    fn end(self, output: Output) -> Result<Option<PutBack>, Failure> {
        // The kernel detaches with it.
        drop(self.swallow);
        match journal::open_now() {
            Ok(mut journal) => put_back(&mut journal, self.run).map(Some),
            // Whoever has the journal may be the undo that has this command end.
            Err(JournalError::JournalLocked { .. }) => {
                let run = self.run;
                output.warning(&format!(
                    "another run has the journal, so that open sockets are not put back from here: `fullpipe undo {run}` does
"
                ));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What became of the open sockets.
fn put_back(journal: &mut Journal, run: RunId) -> Result<PutBack, Failure> {
    let report = undo(&mut SystemHost::new(), journal, Which::Run(run), UndoOptions::default())?;
    let mut back = PutBack::default();
    for entry in report.entries.iter().filter(|entry| entry.place.parse::<HeldSocket>().is_ok()) {
        back.restored += usize::from(entry.outcome.is_restored());
        back.set_again += usize::from(matches!(entry.outcome, Outcome::ChangedSince { .. }));
    }
    Ok(back)
}

/// What goes on until the end.
struct During {
    target: Target,
    held: Held,
    freed: Vec<Pinned>,
    after: Vec<Rate>,
}

impl During {
    fn work(&mut self, watcher: &mut Watcher, is_over: &dyn Fn() -> bool, output: Output) -> Result<(), Failure> {
        let mut is_announced = false;
        loop {
            let processes: BTreeSet<u32> = self.target.processes();
            if let Some(swallow) = &mut self.held.swallow {
                swallow.follow(&processes)?;
            }
            let pinned = find(&processes)
                .map_err(|error| Failure::system("taking a descriptor of the process (CAP_SYS_PTRACE)", &error))?;
            for one in self.held.free(pinned)? {
                // An application may set the same one again.
                if !self.freed.iter().any(|known| known.is_same(&one)) {
                    self.freed.push(one);
                }
            }
            if !is_announced {
                is_announced = true;
                let what = if self.held.swallow.is_some() { ", and new ones stay automatic" } else { "" };
                let text = format!(
                    "{} open sockets are sized automatically now{what}; Ctrl-C puts everything back",
                    self.freed.len()
                );
                output.event(&json::Event {
                    command: "unpin",
                    level: "info",
                    kind: "sized_automatically",
                    text: &text,
                    peer: None,
                    target: None,
                    fields: &serde_json::Map::new(),
                });
            }
            match watcher.next_frame(is_over)? {
                Some(frame) => self.after.push(rate(&frame)),
                None => return Ok(()),
            }
        }
    }
}

fn socket(freed: &Pinned) -> UnpinnedSocket {
    UnpinnedSocket {
        process: freed.owner.process.clone(),
        pid: freed.owner.pid,
        fd: freed.fd,
        send_buffer: Some(freed.send_buffer).filter(|_| freed.fixed.send),
        receive_buffer: Some(freed.receive_buffer).filter(|_| freed.fixed.receive),
        largest_window: freed.largest_window(),
    }
}

/// Of all connections together.
fn rate(frame: &Frame) -> Rate {
    Rate::from_bps(frame.rows.iter().filter_map(Row::rate).map(Rate::bps).fold(0, u64::saturating_add))
}

fn mean(rates: &[Rate]) -> Option<Rate> {
    let count = u64::try_from(rates.len()).ok().filter(|&count| count > 0)?;
    Some(Rate::from_bps(rates.iter().map(|rate| rate.bps()).fold(0, u64::saturating_add) / count))
}
