//! A process of its own that takes back what nobody confirmed in time.
//!
//! Whoever puts something on trial starts a guardian first, a program in a session of its own, so that it outlives the
//! terminal, the connection and its parent. The trial's terms are in the journal; the guardian looks there, and takes back
//! what is due: at the deadline, by a clock that nobody can set, and for a parent that stays (a server) when it ends. A
//! lock on a file says that it lives: what is on trial without a living guardian was left behind by a kill or a power
//! failure, and the next command finds it by [`abandoned`]. RFC 6241 has the same for its confirmed commits (8.4.1).
//!
//! Where systemd runs the machine, the guardian is a transient service of it (`systemd-run`): it does not belong to the
//! login session, which may end with all its processes (`KillUserProcesses=` in logind.conf(5)), nor to the unit that
//! started it, and systemd starts it again when it is killed. What is *not* here: the undo itself.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tracing::{debug, error, info, warn};

use crate::{Host, Journal, JournalError, RunId, RunRecord, Trial, UndoOptions, Which, plain_file, trusted, undo};

/// How often the journal is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often an undo that failed is tried before the run is left to `fullpipe undo`.
const TRIES: u32 = 50;

/// How often in all a journal that can't be used is tried: ten minutes long.
const MOST_ERRORS: u32 = 3000;

/// How long a guardian has to say that it is there.
const START: Duration = Duration::from_secs(20);

/// What the end of the parent means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// Nothing: the trial goes on until its deadline.
    Deadline,
    /// What is on trial is taken back.
    Parent,
}

/// A guardian that runs. It keeps running when this is dropped, as long as there is something to guard.
#[derive(Debug)]
pub struct Guardian {
    program: PathBuf,
    owner: String,
    bond: Bond,
    child: Child,
    /// Closed by the system when this process ends, however it ends.
    stdin: Option<ChildStdin>,
}

impl Guardian {
    /// Starts `program` as a guardian: `program guard --state-dir DIR --owner NAME [--with-parent]`. It is there when this
    /// returns.
    ///
    /// # Errors
    ///
    /// Where it can't be started, or does not say that it is there.
    pub fn start(program: &Path, state_dir: &Path, bond: Bond) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if crate::systemd::is_ours() {
            let owner = new_owner();
            let mut service = crate::systemd::transient_service(&format!("fullpipe-guardian-{owner}"));
            service.arg(program);
            // Where systemd refuses, a process of our own is still better than none.
            if let Ok(guardian) = Self::start_by(service, program, state_dir, owner, bond) {
                return Ok(guardian);
            }
        }
        Self::start_by(Command::new(program), program, state_dir, new_owner(), bond)
    }

    /// Starts `program` by `command`, which lacks the arguments.
    fn start_by(mut command: Command, program: &Path, state_dir: &Path, owner: String, bond: Bond) -> io::Result<Self> {
        command.args(["guard", "--owner", &owner, "--state-dir"]).arg(state_dir);
        if bond == Bond::Parent {
            command.arg("--with-parent");
        }
        // Nobody who waits for the end of our output shall wait for the guardian.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take();
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut line = String::new();
                let read = BufReader::new(stdout).read_line(&mut line);
                // Whoever waits no longer does not want to know.
                ready.send(read.is_ok_and(|_| line.trim() == "ready")).unwrap_or_default();
            });
        }
        if is_ready.recv_timeout(START) == Ok(true) {
            return Ok(Self { program: program.to_owned(), owner, bond, child, stdin });
        }
        child.kill()?;
        child.wait()?;
        Err(io::Error::other(format!("{} did not say that it guards", program.display())))
    }

    /// The terms of a trial that this guardian watches over.
    pub fn trial(&self, within: Option<Duration>) -> Trial {
        let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let deadline_ms = within.map(|within| now_ms().saturating_add(milliseconds(within)));
        Trial { owner: self.owner.clone(), deadline_ms }
    }

    /// Has another take the place of a guardian that was killed, before something more is put on trial. One that systemd runs
    /// is started again by systemd.
    ///
    /// # Errors
    ///
    /// Where that one can't be started.
    pub fn renew(&mut self, state_dir: &Path) -> io::Result<()> {
        if self.child.try_wait()?.is_some() {
            warn!(owner = self.owner, "the guardian is gone; starting another");
            *self = Self::start(&self.program, state_dir, self.bond)?;
        }
        Ok(())
    }

    /// Hands a run over to a guardian of its own, which takes it back after `within` whatever becomes of this process.
    ///
    /// # Errors
    ///
    /// Where that guardian can't be started, or the run is not on trial (any more): it is on the old terms then.
    pub fn hand_over(
        &self,
        journal: &mut Journal,
        state_dir: &Path,
        run: RunId,
        within: Duration,
    ) -> Result<(), JournalError> {
        let failed = |source| JournalError::StateDir { path: state_dir.to_owned(), source };
        let heir = Self::start(&self.program, state_dir, Bond::Deadline).map_err(failed)?;
        // It looks for runs of its own until `heir` is dropped, so that it can't miss this one.
        journal.put_on_terms(run, &heir.trial(Some(within)))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // One that ends with us has something to take back at the most, and then goes; the other stays for its trial.
        if self.bond == Bond::Parent {
            self.child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// Guards what `owner` puts on trial, until nothing of it is left and the parent, known by `parent`, has nothing more to
/// add. `stop` has it take everything back at once.
///
/// # Errors
///
/// Where its lock can't be had. A journal that can't be read for a while is tried again.
pub fn watch<H: Host>(
    host: &mut H,
    state_dir: &Path,
    owner: &str,
    bond: Bond,
    parent: impl Read + Send + 'static,
    ready: impl FnOnce(),
    stop: &AtomicBool,
) -> Result<(), JournalError> {
    let state = |source| JournalError::StateDir { path: state_dir.to_owned(), source };
    let file = lock_file(state_dir, owner);
    let lock = open_lock(&file, true).map_err(state)?;
    lock.try_lock().map_err(|error| state(error.into()))?;
    detach();
    let is_alone = Arc::new(AtomicBool::new(false));
    {
        let (mut parent, is_alone) = (parent, Arc::clone(&is_alone));
        thread::spawn(move || {
            // Ends when the parent does.
            io::copy(&mut parent, &mut io::sink()).map(drop).unwrap_or_default();
            is_alone.store(true, Relaxed);
        });
    }
    ready();
    debug!(owner, ?bond, "guarding");
    let (mut tries, mut errors) = (0, 0);
    loop {
        let alone = is_alone.load(Relaxed);
        let at_once = stop.load(Relaxed) || (alone && bond == Bond::Parent);
        // Looked at before the journal is: what the parent put on trial before it ended is there by then.
        let patience = Patience { with_undo: tries < TRIES, with_journal: errors < TRIES };
        match undo_due(host, state_dir, owner, at_once, patience) {
            Ok(0) if alone || stop.load(Relaxed) => break,
            Ok(_) => {}
            // Full, locked or damaged: as long as there is hope.
            Err(error) if errors >= MOST_ERRORS => {
                error!(owner, %error, "gave up");
                break;
            }
            Err(error) => {
                warn!(owner, errors, %error, "the journal can't be used; trying again");
                errors += 1;
            }
        }
        if at_once {
            tries += 1;
        }
        thread::sleep(LOOK);
    }
    // Whoever looks for it finds none, or one that nobody holds.
    fs::remove_file(&file).unwrap_or_default();
    Ok(())
}

/// What is tried again before it counts as failed.
#[derive(Clone, Copy)]
struct Patience {
    /// An undo that could not put everything back.
    with_undo: bool,
    /// Rows that can't be read: an error of the disk may pass, and what a trial left out is never looked at again.
    with_journal: bool,
}

impl Patience {
    fn sound(self, journal: Journal) -> Result<Journal, JournalError> {
        if self.with_journal { journal.require_sound() } else { Ok(journal) }
    }
}

/// Takes back what is due; gives how many trials are left.
fn undo_due<H: Host>(
    host: &mut H,
    state_dir: &Path,
    owner: &str,
    at_once: bool,
    patience: Patience,
) -> Result<usize, JournalError> {
    let Some(journal) = Journal::look(state_dir)? else { return Ok(0) };
    let journal = patience.sound(journal)?;
    let is_ours = |run: &RunRecord| run.trial.as_ref().is_some_and(|trial| trial.owner == owner);
    let ours: Vec<RunRecord> = journal.on_trial()?.into_iter().filter(is_ours).collect();
    drop(journal);
    let now = now_ms();
    let overdue =
        |run: &RunRecord| run.trial.as_ref().and_then(|trial| trial.deadline_ms).map(|deadline| now - deadline);
    let is_due = |run: &&RunRecord| at_once || overdue(run).is_some_and(|ms| ms >= 0);
    let mut left = ours.len();
    for run in ours.iter().filter(is_due) {
        let mut journal = patience.sound(Journal::open_damaged(state_dir)?)?;
        // Under the lock it may have been confirmed, taken back or handed over.
        if !journal.run(run.id).is_ok_and(|run| run.state == crate::RunState::OnTrial && is_ours(&run)) {
            continue;
        }
        info!(run = run.id.0, at_once, "taking back what nobody confirmed");
        let report = undo(host, &mut journal, Which::Run(run.id), UndoOptions::default())?;
        let is_theirs = |outcome: &crate::Outcome| matches!(outcome, crate::Outcome::ChangedSince { .. });
        let most = LOOK * TRIES;
        let too_late = overdue(run).is_some_and(|ms| u128::try_from(ms).is_ok_and(|ms| ms > most.as_millis()));
        // What is back and could not be marked so is looked at again: a journal that names a trial which is over misleads.
        if report.is_complete() && report.unmarked.is_none() {
            left -= 1;
        } else if report.entries.iter().any(|entry| is_theirs(&entry.outcome)) || !patience.with_undo || too_late {
            // What somebody else set since is theirs; `status` names what is left, and nobody waits for it.
            journal.end_trial(run.id)?;
            left -= 1;
        }
    }
    Ok(left)
}

/// The runs that are on trial and that no guardian watches over: what a kill or a power failure left behind.
///
/// # Errors
///
/// Where the journal can't be read.
pub fn abandoned(state_dir: &Path, journal: &Journal) -> Result<Vec<RunRecord>, JournalError> {
    let mut runs = journal.on_trial()?;
    runs.retain(|run| run.trial.as_ref().is_some_and(|trial| !is_guarded(state_dir, &trial.owner)));
    Ok(runs)
}

/// A name that no other guardian has: two of one process may start in the same millisecond.
fn new_owner() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}-{}", std::process::id(), now_ms(), COUNT.fetch_add(1, Relaxed))
}

/// Removes the lock files of guardians that are gone. One that just starts has not locked its own yet: it is left alone for a
/// minute.
pub fn sweep(state_dir: &Path) {
    let Ok(files) = fs::read_dir(state_dir) else { return };
    for file in files.flatten().map(|file| file.path()) {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_lock = name.starts_with("guard-") && name.ends_with(".lock");
        let is_old = || {
            let age = fs::symlink_metadata(&file).and_then(|file| file.modified()).ok()?.elapsed().ok()?;
            Some(age > Duration::from_secs(60))
        };
        // Locked while it is removed: nobody starts to use it meanwhile.
        if is_lock
            && is_old() == Some(true)
            && let Ok(lock) = open_lock(&file, false)
            && lock.try_lock().is_ok()
        {
            fs::remove_file(&file).unwrap_or_default();
        }
    }
}

fn is_guarded(state_dir: &Path, owner: &str) -> bool {
    let Ok(lock) = open_lock(&lock_file(state_dir, owner), false) else { return false };
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

fn lock_file(state_dir: &Path, owner: &str) -> PathBuf {
    // The name comes from a command line or a journal.
    let name: String = owner.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64).collect();
    state_dir.join(format!("guard-{name}.lock"))
}

fn open_lock(file: &Path, create: bool) -> io::Result<File> {
    trusted::file(file)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false);
    trusted::without_links(&mut options);
    trusted::for_owner_only(&mut options);
    let mut open = options.open(file)?;
    if create {
        writeln!(open, "{}", std::process::id())?;
        file.parent().map_or(Ok(()), plain_file::sync_folder)?;
    }
    Ok(open)
}

/// Milliseconds since the start of the machine, sleep included: nobody can set that clock.
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "macos"))]
fn now_ms() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let now = Duration::try_from(clock_gettime(CLOCK));
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "macos")))]
fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// Whether a deadline is over.
pub(crate) fn is_over(deadline_ms: i64) -> bool {
    now_ms() >= deadline_ms
}

/// Leaves the session of the terminal, whose end would end this program too.
fn detach() {
    #[cfg(unix)]
    {
        // Refused to the leader of a process group, which has none to leave.
        rustix::process::setsid().map(drop).unwrap_or_default();
    }
}
