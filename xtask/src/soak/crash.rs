//! What is left of a machine where a command of fullpipe is killed, or refused something by the system, at every point
//! at which that can make a difference.
//!
//! Each command runs under strace, which kills it as it enters its n-th call of one kind, has that call fail (EIO), or
//! has it and all later ones of the kind fail as a full disk has them (ENOSPC). The points are the calls that can change
//! something outside of the process: what is on disk and in the kernel is the same before and after any other. Then two
//! things must hold. A command that says that all went well has done all of it; and `undo` brings back every value and
//! every byte, or ends with an error. Anything else is silent, and fails the run. What is *not* here: power that fails
//! (`power`).

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use xshell::Shell;

use super::{
    draw::Draw,
    power,
    stage::{Moment, Stage, World},
    tally::{End, Tally},
};

/// Calls that can change what is outside of the process.
const CHANGING: &[&str] = &[
    "write",
    "pwrite64",
    "writev",
    "fsync",
    "fdatasync",
    "rename",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "ftruncate",
    "fallocate",
    "fchmod",
    "fchown",
    "fsetxattr",
    "sendto",
    "sendmsg",
];

/// Calls for locks, which a kill gives back.
const LOCKING: &[&str] = &["flock", "fcntl"];

/// What a full disk refuses.
const NEED_ROOM: &[&str] = &["openat", "write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "mkdir"];

/// What happens to a call.
#[derive(Clone, Copy)]
enum Fault {
    Kill,
    Fail,
    Full,
    /// A guardian would wait for room for minutes.
    FullAWhile,
}

impl Fault {
    fn inject(self, call: &str, at: usize) -> String {
        match self {
            Self::Kill => format!("inject={call}:signal=KILL:when={at}"),
            Self::Fail => format!("inject={call}:error=EIO:when={at}"),
            Self::Full => format!("inject={call}:error=ENOSPC:when={at}+"),
            Self::FullAWhile => format!("inject={call}:error=ENOSPC:when={at}..{}", at + 20),
        }
    }
}

/// A command, and what was done before it.
pub(super) struct Case {
    pub(super) name: &'static str,
    before: Option<&'static [&'static str]>,
    command: &'static [&'static str],
}

const PLAIN: &[&str] = &["apply", "plan.json", "--yes"];
const LASTING: &[&str] = &["apply", "plan.json", "--yes", "--persist"];
const TRIAL: &[&str] = &["apply", "plan.json", "--yes", "--confirm-within", "24h"];
const LASTING_TRIAL: &[&str] = &["apply", "plan.json", "--yes", "--persist", "--confirm-within", "24h"];
const UNDO: &[&str] = &["undo", "--all", "--yes"];
const CONFIRM: &[&str] = &["confirm"];
/// Its parent is gone, so it takes the trial back.
const GUARD: &[&str] = &["guard", "--with-parent", "--state-dir", "state", "--owner", OWNER];
const OWNER: &str = "OWNER";

const CASES: &[Case] = &[
    Case { name: "apply", before: None, command: PLAIN },
    Case { name: "apply --persist", before: None, command: LASTING },
    Case { name: "apply --confirm-within", before: None, command: TRIAL },
    Case { name: "apply --persist --confirm-within", before: None, command: LASTING_TRIAL },
    Case { name: "undo", before: Some(PLAIN), command: UNDO },
    Case { name: "undo of --persist", before: Some(LASTING), command: UNDO },
    Case { name: "reset", before: None, command: &["reset", "--yes"] },
    Case { name: "confirm", before: Some(TRIAL), command: CONFIRM },
    Case { name: "confirm of --persist", before: Some(LASTING_TRIAL), command: CONFIRM },
    Case { name: "guardian", before: Some(TRIAL), command: GUARD },
    Case { name: "guardian of --persist", before: Some(LASTING_TRIAL), command: GUARD },
];

/// Runs the whole matrix; with `all`, kills at every system call, and flips a bit in every byte of the journal.
/// `cases` names those to run by how their names begin; none: every one. In `seconds`, where they are given, as many
/// points as they are enough for, each part its share, drawn at random.
pub(crate) fn run(shell: &Shell, all: bool, seconds: Option<u64>, cases: &[String]) -> Result<()> {
    let Some(stage) = Stage::inside()? else {
        let mut arguments = vec!["soak".to_owned(), "crash".to_owned()];
        arguments.extend(all.then(|| "--all".to_owned()));
        arguments.extend(seconds.map(|seconds| format!("--seconds={seconds}")));
        arguments.extend_from_slice(cases);
        return Stage::start(shell, &arguments);
    };
    let mut draw = match seconds {
        Some(seconds) => {
            let parts = CASES.iter().filter(|case| begins(case.name, cases)).count() + CASES.len() + 1;
            let draw = Draw::new(Duration::from_secs(seconds), parts)?;
            println!("points drawn by seed {:#x}", draw.seed());
            Some(draw)
        }
        None => None,
    };
    let is_wanted = |name: &str| begins(name, cases);
    stage.begin()?;
    let original = stage.world()?;
    let mut whole = Tally::default();
    for case in CASES.iter().filter(|case| is_wanted(case.name)) {
        let tally = matrix(&stage, case, &original, all, draw.as_mut()).with_context(|| case.name.to_owned())?;
        tally.print(case.name);
        whole.add(tally);
    }
    if is_wanted("bits") {
        let flips = flips(&stage, &original, all, draw.as_mut())?;
        flips.print("bits of the journal flipped, then undo");
        whole.add(flips);
    }
    if is_wanted("power") {
        for case in CASES {
            let tally = power::matrix(&stage, case, &original, if all { 8 } else { 2 }, draw.as_mut())
                .with_context(|| format!("power failure, {}", case.name))?;
            tally.print(&format!("power fails: {}", case.name));
            whole.add(tally);
        }
    }
    whole.print("in all");
    ensure!(whole.stopped > 0, "strace stopped no command anywhere");
    ensure!(whole.silent.is_empty(), "something was lost in silence");
    Ok(())
}

fn begins(name: &str, cases: &[String]) -> bool {
    cases.is_empty() || cases.iter().any(|case| name.starts_with(case.as_str()))
}

impl Case {
    /// Does what comes before the command; gives the command and the moment before it.
    pub(super) fn prepare(&self, stage: &Stage) -> Result<(Vec<String>, Moment)> {
        stage.begin()?;
        if let Some(before) = self.before {
            let output = stage.fullpipe(before)?;
            ensure!(output.status.success(), "{before:?}: {output:?}");
        }
        let owner = stage.kill_guardians()?;
        let word = |word: &&str| if *word == OWNER { owner.clone() } else { (*word).to_owned() };
        Ok((self.command.iter().map(word).collect(), stage.moment()?))
    }
}

/// Every fault at every point of one command.
fn matrix(stage: &Stage, case: &Case, original: &World, all: bool, draw: Option<&mut Draw>) -> Result<Tally> {
    let share = draw.as_ref().map(|draw| draw.share(Instant::now()));
    let (command, start) = case.prepare(stage)?;
    // Once without a fault: which calls there are, and what the command does.
    let output = stage.traced(&command, &[])?;
    ensure!(output.status.success(), "without a fault: {output:?}");
    let (done, calls) = ((stage.world()?, states(stage)?), calls(&stage.trace()?, all));
    stage.kill_guardians()?;
    let mut points = Vec::new();
    for (call, places) in &calls {
        for fault in faults(call, case) {
            points.extend(places.iter().map(|at| (call, fault, *at)));
        }
    }
    let mut tally = Tally::default();
    for (call, fault, at) in Draw::order(points, draw) {
        if share.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        let inject = fault.inject(call, at);
        let trace = format!("trace={call}");
        let mut options = vec!["-e", &trace, "-e", &inject];
        // Five times as fast, but it follows children, and gives no signals.
        if !matches!(fault, Fault::Kill) && !case.command.contains(&"--confirm-within") {
            options.extend(["-f", "--seccomp-bpf"]);
        }
        stage.go_back(&start)?;
        let output = stage.traced(&command, &options)?;
        tally.stopped += u32::from(!output.status.success());
        let point = || format!("{}: {inject}", case.name);
        if output.status.success() && (stage.world()?, states(stage)?) != done {
            tally.count(End::Silent, || format!("{}: it says that all went well", point()));
        } else {
            tally.count(recover(stage, original)?, point);
        }
        stage.kill_guardians()?;
    }
    Ok(tally)
}

/// Takes everything back, without a fault this time.
pub(super) fn recover(stage: &Stage, original: &World) -> Result<End> {
    let undone = stage.fullpipe(UNDO)?.status.success();
    Ok(match (stage.world()? == *original, undone) {
        (true, _) => End::Restored,
        (false, false) => End::Named,
        (false, true) => End::Silent,
    })
}

/// What the journal says became of each run.
fn states(stage: &Stage) -> Result<Vec<String>> {
    let history = stage.fullpipe(&["history", "--json"])?;
    let history: serde_json::Value = serde_json::from_slice(&history.stdout)?;
    let runs = history["runs"].as_array().into_iter().flatten();
    Ok(runs.map(|run| run["state"].to_string()).collect())
}

/// The calls of a trace that can make a difference, by name: the how-manieth of their name they are, from 1.
fn calls(trace: &[String], all: bool) -> BTreeMap<String, Vec<usize>> {
    let mut calls: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in trace {
        let Some((name, arguments)) = line.split_once('(') else { continue };
        let count = counts.entry(name).or_default();
        *count += 1;
        let makes =
            name == "openat" && ["O_CREAT", "O_TRUNC", "O_WRONLY", "O_RDWR"].iter().any(|f| arguments.contains(f));
        if name != "execve"
            && (all || makes || name == "exit_group" || CHANGING.contains(&name) || LOCKING.contains(&name))
        {
            calls.entry(name.to_owned()).or_default().push(*count);
        }
    }
    calls
}

fn faults(call: &str, case: &Case) -> Vec<Fault> {
    let full = if case.command == GUARD { Fault::FullAWhile } else { Fault::Full };
    let is_lock = LOCKING.contains(&call);
    let can_fail = call == "openat" || is_lock || CHANGING.contains(&call);
    let faults = [(!is_lock, Fault::Kill), (can_fail, Fault::Fail), (NEED_ROOM.contains(&call), full)];
    faults.into_iter().filter(|(applies, _)| *applies).map(|(_, fault)| fault).collect()
}

/// A flipped bit in the bytes of a journal of one run: those that are not zero, and one of 16 of those that are.
fn flips(stage: &Stage, original: &World, all: bool, draw: Option<&mut Draw>) -> Result<Tally> {
    let share = draw.as_ref().map(|draw| draw.share(Instant::now()));
    stage.begin()?;
    let output = stage.fullpipe(LASTING)?;
    ensure!(output.status.success(), "{output:?}");
    let start: Moment = stage.moment()?;
    let journal = stage.path("state/journal.sqlite");
    let whole = fs::read(&journal)?;
    let mut tally = Tally::default();
    let places: Vec<usize> = (0..whole.len()).filter(|at| all || whole[*at] != 0 || at % 16 == 0).collect();
    for at in Draw::order(places, draw) {
        if share.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        stage.go_back(&start)?;
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&journal, bytes)?;
        tally.stopped += 1;
        tally.count(recover(stage, original)?, || format!("bit {} of byte {at}", at % 8));
    }
    Ok(tally)
}
