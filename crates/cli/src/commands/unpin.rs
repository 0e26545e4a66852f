//! `fullpipe unpin`.

use std::{
    collections::BTreeSet,
    fs::File,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use fullpipe_bpf::{Swallow, Whose};
use fullpipe_report::{Unpinned, UnpinnedSocket, json, text};
use fullpipe_units::Rate;
use fullpipe_watch::{
    Filter, Frame, Sort, Watcher,
    unpin::{Freed, Target, free},
};

use super::{Ended, printed};
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
    let target = Target::of(&args.target);
    let processes = target.processes();
    if processes.is_empty() && !matches!(target, Target::Name(_)) {
        return Err(Failure::new(
            Exit::InputInvalid,
            &format!("there is no such process or control group: {}", args.target),
        ));
    }
    let stop = interrupt::cancel_flag()?;
    let swallow = if args.open_only { None } else { Some(swallow(&target)?) };
    let question = format!(
        "{} processes of {}: take their fixed buffers back until {}?",
        processes.len(),
        args.target,
        args.duration.map_or_else(|| "Ctrl-C".to_owned(), |time| format!("{time:?} are over"))
    );
    confirm(output, args.yes, &question)?;

    let mut watcher = Watcher::new(INTERVAL, filter(&target)?, Sort::Rate, MOST)?;
    // Programs are at work since they are attached, but follow nobody yet.
    let is_over = || stop.load(Ordering::Relaxed);
    let mut before = Vec::new();
    while before.len() < BEFORE {
        match watcher.next_frame(&is_over)? {
            Some(frame) => before.push(rate(&frame)),
            None => return Ok(Exit::Interrupted),
        }
    }
    let mut during = During { target, swallow, freed: Vec::new(), after: Vec::new() };
    let end = args.duration.map(|time| Instant::now() + time);
    let worked = during.work(&mut watcher, &|| is_over() || end.is_some_and(|end| Instant::now() >= end), output);
    let put_back = during.freed.iter().filter(|freed| freed.put_back().unwrap_or(false)).count();
    worked?;
    let unpinned = Unpinned {
        target: args.target.clone(),
        swallowed: during
            .swallow
            .as_ref()
            .map(Swallow::swallowed)
            .transpose()?
            .map(|counted| [counted.send, counted.receive]),
        before: mean(&before),
        after: during.after.get(BETWEEN..).and_then(|after| mean(after.rchunks(AFTER).next()?)),
        put_back,
        sockets: during.freed.iter().map(socket).collect(),
    };
    // What was attached ends here, before it is told that it did.
    drop(during.swallow);
    printed(output.result(|| json::unpinned(&unpinned), |look| text::unpinned(&unpinned, look)))
}

fn swallow(target: &Target) -> Result<Swallow, Failure> {
    let folder = target.group().ok_or_else(|| {
        let text = "control groups of version 2 are not mounted here, so calls for new sockets can't be swallowed; mount them, or \
                    give --open-only";
        Failure::new(Exit::Unsupported, text)
    })?;
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

/// What goes on until the end.
struct During {
    target: Target,
    swallow: Option<Swallow>,
    freed: Vec<Freed>,
    after: Vec<Rate>,
}

impl During {
    fn work(&mut self, watcher: &mut Watcher, is_over: &dyn Fn() -> bool, output: Output) -> Result<(), Failure> {
        let mut told = false;
        loop {
            let processes: BTreeSet<u32> = self.target.processes();
            if let Some(swallow) = &mut self.swallow {
                swallow.follow(&processes)?;
            }
            let freed = free(&processes)
                .map_err(|error| Failure::system("taking a descriptor of the process (CAP_SYS_PTRACE)", &error))?;
            // An application may set the same one again.
            let is_new = |new: &Freed, known: &[Freed]| !known.iter().any(|known| known.is_same(new));
            for one in freed {
                if is_new(&one, &self.freed) {
                    self.freed.push(one);
                }
            }
            if !told {
                told = true;
                let what = if self.swallow.is_some() { ", and new ones stay automatic" } else { "" };
                let text = format!(
                    "{} open sockets are sized automatically now{what}; Ctrl-C puts everything back",
                    self.freed.len()
                );
                output.event("unpin", &text);
            }
            match watcher.next_frame(is_over)? {
                Some(frame) => self.after.push(rate(&frame)),
                None => return Ok(()),
            }
        }
    }
}

fn socket(freed: &Freed) -> UnpinnedSocket {
    UnpinnedSocket {
        process: freed.owner.process.clone(),
        pid: freed.owner.pid,
        fd: freed.owner.fd,
        send_buffer: Some(freed.send_buffer).filter(|_| freed.fixed.send),
        receive_buffer: Some(freed.receive_buffer).filter(|_| freed.fixed.receive),
        largest_window: freed.largest_window(),
    }
}

/// Of all connections together.
fn rate(frame: &Frame) -> Rate {
    Rate::from_bps(frame.rows.iter().map(|row| row.rate().bps()).fold(0, u64::saturating_add))
}

fn mean(rates: &[Rate]) -> Option<Rate> {
    let count = u64::try_from(rates.len()).ok().filter(|&count| count > 0)?;
    Some(Rate::from_bps(rates.iter().map(|rate| rate.bps()).fold(0, u64::saturating_add) / count))
}
