//! Applying changes: read, record, write, read back, verify; all or nothing.
//!
//! What is *not* here: choosing the changes (`knobs`), and keeping only those that helped (`tune`).

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{Address, Change, TakesEffect};
use serde::{Deserialize, Serialize};
use tracing::debug;

use crate::{
    BootFile, Entry, EntryKind, EntryState, Host, HostError, Journal, JournalError, Lasting, Lifeline, Overridden,
    RunId, RunState, Trial, guardian,
    journal::{EntryId, Intent, Start},
    persist, trusted,
    undo::{Outcome, UndoneEntry, restore_file, restore_setting},
    value::{canonical, same_value},
};

/// How changes are applied.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// The command, for the history.
    pub command: String,
    /// The name of the end that is changed, where it has one.
    pub host: Option<String>,
    /// Apply although a setting is no longer what the plan found.
    pub accept_stale: bool,
    /// The folder (`/etc/sysctl.d`, see [`persist::sysctl_dir`]) for a drop-in that makes sysctls last beyond a restart;
    /// `None` changes the running system only. A host with boot-time files of other places keeps to those.
    pub persist: Option<PathBuf>,
    /// In force only until these terms end, unless [`confirm`](crate::confirm) comes in time. What is to last beyond a
    /// restart is written with the confirmation.
    pub trial: Option<Trial>,
}

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The run in the journal; `None` where everything was in force already and nothing was written.
    pub id: Option<RunId>,
    /// The changes, in order.
    pub applied: Vec<Applied>,
    /// The boot-time files that were written: on Linux the drop-in.
    pub boot_files: Vec<PathBuf>,
    /// What does not last beyond a restart although that was asked for: on Linux a drop-in holds only sysctls.
    pub not_persisted: Vec<Address>,
    /// What is in those files, and other files set again at the next boot.
    pub overridden: Vec<Overridden>,
    /// What was left alone, because the running system lacks what only its next start sets; the same changes applied again
    /// after it set these, too.
    pub waiting: Vec<Address>,
}

impl Run {
    /// What is in force only until the next reboot although more was asked for: a sentence for each, with the way out.
    pub fn until_reboot(&self) -> Vec<String> {
        let by_another = self.overridden.iter().filter(|overridden| overridden.is_by_another());
        let sentences = self.not_persisted.iter().map(persist::no_survivor);
        sentences.chain(by_another.map(ToString::to_string)).collect()
    }
}

/// One change, as it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which setting.
    pub address: Address,
    /// What it was.
    pub before: Option<String>,
    /// What it was to be.
    pub wanted: Option<String>,
    /// What it is, read back.
    pub now: Option<String>,
    /// When the value acts, as the plan has it from the catalogue: a value that is read back may still wait for a restart.
    pub takes_effect: TakesEffect,
    /// A boot-time file has the value, and the running system shows the old one until it starts again.
    pub at_start: bool,
}

impl Applied {
    /// It was so already, and nothing was written.
    pub fn unchanged(&self) -> bool {
        same_value(&self.address, self.before.as_deref(), self.wanted.as_deref())
    }

    /// The value is there and takes effect only after a reboot.
    pub fn needs_restart(&self) -> bool {
        (self.takes_effect == TakesEffect::Restart || self.at_start) && !self.unchanged()
    }

    /// The system took another value than the one that was asked for: it has limits of its own.
    pub fn clamped(&self) -> bool {
        !self.at_start && !same_value(&self.address, self.wanted.as_deref(), self.now.as_deref())
    }
}

/// Why changes were not applied, and what became of those before the one that failed.
#[derive(Debug)]
pub struct ApplyError {
    /// What went wrong.
    pub fault: Box<ApplyFault>,
    /// The changes that had been made and were taken back, newest first.
    pub rollback: Vec<UndoneEntry>,
}

/// What went wrong while changes were applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyFault {
    /// The host refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal could not record; without it nothing is written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The setting is no longer what it was when the plan was made.
    #[error("{address} is {} now and was {} when the plan was made; make the plan again", quoted(now), quoted(planned))]
    Stale {
        /// The setting.
        address: Address,
        /// What the plan says it was.
        planned: Option<String>,
        /// What it is.
        now: Option<String>,
    },
    /// The system took the value without a complaint, and the old one is still in force.
    #[error("{address} is still {} although the system accepted {}", quoted(now), quoted(wanted))]
    NoEffect {
        /// The setting.
        address: Address,
        /// What was written.
        wanted: Option<String>,
        /// What it is.
        now: Option<String>,
    },
    /// What nobody may lose was lost.
    #[error("{address} was set, and {lost} was gone; {}", if *is_back {
        "it is back with the old value"
    } else {
        "the old value did not bring it back: set that up again"
    })]
    Lifeline {
        /// The setting.
        address: Address,
        /// What was lost.
        lost: String,
        /// Whether it came back with what was there before.
        is_back: bool,
    },
    /// Another run has the setting on trial: its undo would come in between.
    #[error(
        "{address} is on trial by run {run} ({command}, process {pid}); wait until it is confirmed or taken back, or \
         take it back with `fullpipe undo {run}`"
    )]
    OnTrial {
        /// The setting.
        address: Address,
        /// The run that has it.
        run: RunId,
        /// Its command.
        command: String,
        /// Its process.
        pid: u32,
    },
    /// What a trial is to write once it is confirmed can't be recorded or read.
    #[error("can't record what is to last beyond a restart: {source}")]
    Pending {
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A boot-time file could not be written.
    #[error("can't write the boot-time file {}: {source}; without --persist only the running system is changed", path.display())]
    Persist {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

fn quoted(value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| "absent".to_owned(), |value| format!("`{value}`"))
}

impl std::fmt::Display for ApplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stuck = self.rollback.iter().filter(|entry| !entry.outcome.is_restored()).count();
        // The change that failed is among them, and most often there is nothing of it to take back.
        let made = self.rollback.iter().filter(|entry| entry.outcome != Outcome::AlreadyBack).count();
        match (made, stuck) {
            (0, _) => write!(f, "{}; nothing was changed", self.fault),
            (made, 0) => write!(f, "{}; what was changed before it ({made}) was taken back", self.fault),
            (made, stuck) => {
                write!(f, "{}; of {made} changes {stuck} could not be taken back; try `fullpipe undo`", self.fault)
            }
        }
    }
}

impl std::error::Error for ApplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.fault.as_ref())
    }
}

/// Applies `changes` in order, or none of them: where one fails, those before it are taken back in reverse.
///
/// Everything that can be known beforehand (a setting that is missing, read-only or changed since the plan) is found
/// before the first write. What was there before each write is in the journal, on disk, before that write.
///
/// Where some of it can only be set when the system starts, as FreeBSD's pools of clusters, nothing but its boot-time file
/// is written as long as the running system hasn't it: buffers above what these pools hold can stop the network.
pub fn apply<H: Host + ?Sized>(
    host: &mut H,
    journal: &mut Journal,
    changes: &[Change],
    options: &ApplyOptions,
) -> Result<Run, ApplyError> {
    let plain = |fault: ApplyFault| ApplyError { fault: Box::new(fault), rollback: Vec::new() };
    free(journal, changes).and_then(|()| check(host, changes, options)).map_err(plain)?;
    let (changes, waiting) = before_start(host, changes).map_err(plain)?;
    let changes = changes.as_slice();
    let pending = pending(changes, options).map_err(plain)?;
    let lifelines = host.lifelines();
    let mut work = Work { host, journal, options, lifelines, pending, run: None, done: Vec::new() };
    let result = work.all(changes).map(|run| Run { waiting, ..run });
    result.map_err(|mut fault| {
        let rollback = work.roll_back();
        if let ApplyFault::Lifeline { is_back, .. } = &mut fault {
            *is_back = work.host.lost(&work.lifelines).is_none();
        }
        ApplyError { fault: Box::new(fault), rollback }
    })
}

/// One trial for each setting: two that are taken back in the wrong order would leave one of them in force.
fn free(journal: &Journal, changes: &[Change]) -> Result<(), ApplyFault> {
    for run in journal.on_trial()? {
        let held = |change: &&Change| {
            let place = change.knob.to_string();
            run.entries.iter().any(|entry| entry.state.is_outstanding() && entry.place == place)
        };
        if let Some(change) = changes.iter().find(held) {
            return Err(ApplyFault::OnTrial {
                address: change.knob.clone(),
                run: run.id,
                command: run.command,
                pid: run.pid,
            });
        }
    }
    Ok(())
}

/// Finds what can be known before the first write.
fn check<H: Host + ?Sized>(host: &mut H, changes: &[Change], options: &ApplyOptions) -> Result<(), ApplyFault> {
    let mut seen = BTreeSet::new();
    for change in changes {
        if let Some(value) = &change.to {
            canonical(&change.knob, value)?;
        }
        let in_file = options.persist.is_some() && host.lasting(change) == Lasting::InFile;
        if !in_file || !host.is_taken_at_start(&change.knob)? {
            host.writable(&change.knob)?;
        }
        // A later change of the same setting starts from what an earlier one makes of it.
        if !seen.insert(&change.knob) || options.accept_stale {
            continue;
        }
        let now = host.read(&change.knob)?;
        // Its start came between the plan and now.
        let started = host.is_taken_at_start(&change.knob)? && has_it(change, now.as_deref());
        if !started && !same_value(&change.knob, now.as_deref(), change.from.as_deref()) {
            return Err(ApplyFault::Stale { address: change.knob.clone(), planned: change.from.clone(), now });
        }
    }
    Ok(())
}

/// The changes that can be made now, and the settings that wait for the next start.
fn before_start<H: Host + ?Sized>(host: &mut H, changes: &[Change]) -> Result<(Vec<Change>, Vec<Address>), ApplyFault> {
    let mut missing = Vec::new();
    for change in changes {
        if host.is_taken_at_start(&change.knob)? && !has_it(change, host.read(&change.knob)?.as_deref()) {
            missing.push(change.clone());
        }
    }
    if missing.is_empty() {
        return Ok((changes.to_vec(), Vec::new()));
    }
    let mut waiting = Vec::new();
    for change in changes.iter().filter(|change| missing.iter().all(|other| other.knob != change.knob)) {
        let now = host.read(&change.knob)?;
        if !same_value(&change.knob, now.as_deref(), change.to.as_deref()) {
            waiting.push(change.knob.clone());
        }
    }
    Ok((missing, waiting))
}

/// Whether a limit that only a start sets is there: as large, or larger, because systems round it up.
fn has_it(change: &Change, now: Option<&str>) -> bool {
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok());
    match (number(now), number(change.to.as_deref())) {
        (Some(now), Some(to)) => now >= to,
        _ => same_value(&change.knob, now, change.to.as_deref()),
    }
}

/// What a trial writes once it is confirmed.
#[derive(Debug, Serialize, Deserialize)]
struct Pending {
    folder: PathBuf,
    changes: Vec<Change>,
}

fn pending(changes: &[Change], options: &ApplyOptions) -> Result<Option<String>, ApplyFault> {
    let (Some(folder), Some(_)) = (&options.persist, &options.trial) else { return Ok(None) };
    let pending = Pending { folder: folder.clone(), changes: changes.to_vec() };
    serde_json::to_string(&pending).map(Some).map_err(|error| ApplyFault::Pending { source: error })
}

/// Makes a run that is on trial stay, and writes what was asked to last beyond a restart.
///
/// # Errors
///
/// Where the run is not on trial (any more), or a boot-time file or the journal can't be written: the run stays on trial
/// then, and what was written into boot-time files is taken back.
pub fn confirm<H: Host + ?Sized>(host: &mut H, journal: &mut Journal, run: RunId) -> Result<Run, ApplyError> {
    let plain = |fault: ApplyFault| ApplyError { fault: Box::new(fault), rollback: Vec::new() };
    let record = journal.run(run).map_err(|error| plain(error.into()))?;
    // One of which everything is for boot-time files has nothing in force yet.
    if record.state != RunState::OnTrial && record.pending.is_none() {
        return Err(plain(JournalError::NotOnTrial { run }.into()));
    }
    // After a restart nothing of it is in force, and after its deadline its guardian is about to take it back.
    let here = host.identity().map_err(|error| plain(error.into()))?;
    let restarted = matches!((&here.boot, &record.identity.boot), (Some(a), Some(b)) if a != b);
    let late = record.trial.as_ref().and_then(|trial| trial.deadline_ms).is_some_and(guardian::is_over);
    if restarted || late {
        return Err(plain(JournalError::NotOnTrial { run }.into()));
    }
    let mut kept = Run { id: Some(run), ..Run::default() };
    let Some(pending) = &record.pending else {
        journal.keep(run).map_err(|error| plain(error.into()))?;
        return Ok(kept);
    };
    let Pending { folder, changes } =
        serde_json::from_str(pending).map_err(|source| plain(ApplyFault::Pending { source }))?;
    let options = ApplyOptions::default();
    let mut work = Work {
        host,
        journal,
        options: &options,
        lifelines: Vec::new(),
        pending: None,
        run: Some(run),
        done: Vec::new(),
    };
    let in_file: Vec<String> = changes
        .iter()
        .filter(|change| work.host.lasting(change) == Lasting::InFile)
        .map(|change| change.knob.to_string())
        .collect();
    let is_lasting = |entry: &&Entry| {
        entry.kind == EntryKind::Setting && entry.state.is_outstanding() && in_file.contains(&entry.place)
    };
    let lasting: Vec<EntryId> = record.entries.iter().filter(is_lasting).map(|entry| entry.id).collect();
    let keep = |work: &mut Work<'_, H>, kept: &mut Run| -> Result<(), ApplyFault> {
        // Before the file is there: whoever undoes this after a restart looks at what is in force then.
        lasting.iter().try_for_each(|entry| work.journal.lasts(*entry, true))?;
        work.lasting(&folder, &changes, kept)?;
        Ok(work.journal.keep(run)?)
    };
    if let Err(fault) = keep(&mut work, &mut kept) {
        // What is not confirmed does not last beyond a restart: the file goes, too.
        let rollback = work.roll_back();
        // Of a file that is still there, the values last.
        if rollback.iter().all(|entry| entry.outcome.is_restored()) {
            for entry in lasting {
                work.journal.lasts(entry, false).unwrap_or_default();
            }
        }
        return Err(ApplyError { fault: Box::new(fault), rollback });
    }
    Ok(kept)
}

/// A change that was made, and how to take it back.
enum Done {
    /// `ours` is what was read back, where that is known: what else is there then is somebody else's.
    Setting {
        entry: EntryId,
        address: Address,
        before: Option<String>,
        ours: Option<Option<String>>,
    },
    File {
        entry: EntryId,
        path: PathBuf,
        before: Option<Vec<u8>>,
        mode: Option<u32>,
    },
}

struct Work<'a, H: Host + ?Sized> {
    host: &'a mut H,
    journal: &'a mut Journal,
    options: &'a ApplyOptions,
    /// What there was before the first change.
    lifelines: Vec<Lifeline>,
    /// What the journal holds for the confirmation.
    pending: Option<String>,
    run: Option<RunId>,
    done: Vec<Done>,
}

impl<H: Host + ?Sized> Work<'_, H> {
    fn all(&mut self, changes: &[Change]) -> Result<Run, ApplyFault> {
        let one = |change: &Change| {
            let applied = self.one(change)?;
            match self.host.lost(&self.lifelines) {
                Some(lost) => {
                    let lost = lost.to_string();
                    Err(ApplyFault::Lifeline { address: change.knob.clone(), lost, is_back: false })
                }
                None => Ok(applied),
            }
        };
        let applied = changes.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let mut run = Run { applied, ..Run::default() };
        if let Some(folder) = self.options.persist.as_ref().filter(|_| self.options.trial.is_none()) {
            self.lasting(folder, changes, &mut run)?;
        }
        if self.options.persist.is_some() && self.options.trial.is_some() && !changes.is_empty() {
            // What is only in boot-time files has no other mark in the journal yet.
            self.run()?;
        }
        run.id = self.run;
        Ok(run)
    }

    /// Writes what lasts beyond a restart; notes in `run` the files, what can't last, and what other files set again.
    fn lasting(&mut self, folder: &Path, changes: &[Change], run: &mut Run) -> Result<(), ApplyFault> {
        let mut in_files = Vec::new();
        for change in changes {
            match self.host.lasting(change) {
                Lasting::ByItself => {}
                Lasting::InFile => in_files.push(change),
                Lasting::Not => run.not_persisted.push(change.knob.clone()),
            }
        }
        for file in self.host.boot_files(folder, &in_files)? {
            run.boot_files.extend(self.boot_file(file)?);
        }
        if !in_files.is_empty() {
            // What can't be looked at is no reason to take a change back.
            run.overridden = self.host.overridden(folder, &in_files).unwrap_or_default();
        }
        Ok(())
    }

    fn one(&mut self, change: &Change) -> Result<Applied, ApplyFault> {
        let (address, takes_effect) = (&change.knob, change.takes_effect);
        let before = self.host.read(address)?;
        let wanted = match &change.to {
            Some(value) => canonical(address, value)?,
            None => None,
        };
        let at_start = self.host.is_taken_at_start(address)?;
        let wanted = if at_start && has_it(change, before.as_deref()) { before.clone() } else { wanted };
        if at_start || same_value(address, before.as_deref(), wanted.as_deref()) {
            return Ok(Applied {
                address: address.clone(),
                now: before.clone(),
                before,
                wanted,
                takes_effect,
                at_start,
            });
        }
        let run = self.run()?;
        let intent = Intent {
            kind: EntryKind::Setting,
            place: &address.to_string(),
            before: before.as_deref().map(str::as_bytes),
            intended: wanted.as_deref().map(str::as_bytes),
            mode: None,
            persisted: match self.host.lasting(change) {
                Lasting::ByItself => true,
                Lasting::InFile => self.options.persist.is_some() && self.options.trial.is_none(),
                Lasting::Not => false,
            },
        };
        let entry = self.journal.intend(run, &intent)?;
        // The journal took its time on the disk. What somebody else set meanwhile is theirs.
        let still = self.host.read(address)?;
        if !same_value(address, still.as_deref(), before.as_deref()) {
            self.journal.mark(entry, EntryState::Undone)?;
            return Err(ApplyFault::Stale { address: address.clone(), planned: before, now: still });
        }
        // From here on it is to be taken back, also where the write itself fails: half of it may have happened.
        self.done.push(Done::Setting { entry, address: address.clone(), before: before.clone(), ours: None });
        self.host.write(address, wanted.as_deref())?;
        let now = self.host.read(address)?;
        debug!(%address, run = run.0, ?before, ?wanted, ?now, "setting written");
        if let Some(Done::Setting { ours, .. }) = self.done.last_mut() {
            *ours = Some(now.clone());
        }
        self.journal.written(entry, now.as_deref().map(str::as_bytes))?;
        if same_value(address, now.as_deref(), before.as_deref()) {
            return Err(ApplyFault::NoEffect { address: address.clone(), wanted, now });
        }
        Ok(Applied { address: address.clone(), before, wanted, now, takes_effect, at_start })
    }

    /// Writes a boot-time file, if it has anything new to say.
    fn boot_file(&mut self, file: BootFile) -> Result<Option<PathBuf>, ApplyFault> {
        let BootFile { path, before, content } = file;
        if before.as_deref() == Some(content.as_slice()) {
            return Ok(None);
        }
        let failed = |source| ApplyFault::Persist { path: path.clone(), source };
        // Whoever may write the folder decides what the system does at its next boot.
        path.parent().map_or(Ok(()), trusted::folder).map_err(failed)?;
        let run = self.run()?;
        let mode = persist::mode(&path);
        let intent = Intent {
            kind: EntryKind::File,
            place: &path.to_string_lossy(),
            before: before.as_deref(),
            intended: Some(&content),
            mode,
            persisted: true,
        };
        let entry = self.journal.intend(run, &intent)?;
        self.done.push(Done::File { entry, path: path.clone(), before, mode });
        // Readable for all, as sysctl.d files are: systemd-sysctl reads it as root, people as themselves.
        persist::write_atomically(&path, &content, mode.or(Some(0o644))).map_err(failed)?;
        self.journal.written(entry, Some(&content))?;
        Ok(Some(path))
    }

    /// The run in the journal, begun with the first write.
    fn run(&mut self) -> Result<RunId, ApplyFault> {
        if let Some(run) = self.run {
            return Ok(run);
        }
        let identity = self.host.identity()?;
        let start = Start {
            command: &self.options.command,
            host: self.options.host.as_deref(),
            trial: self.options.trial.as_ref(),
            pending: self.pending.as_deref(),
        };
        let run = self.journal.start_run(start, &identity)?;
        self.run = Some(run);
        Ok(run)
    }

    /// Takes back what was done, newest first, from memory: the journal may be what failed.
    fn roll_back(&mut self) -> Vec<UndoneEntry> {
        let Self { host, journal, run, done, .. } = self;
        done.drain(..)
            .rev()
            .map(|done| {
                let (entry, kind, place, outcome) = match done {
                    Done::Setting { entry, address, before, ours } => {
                        let outcome = restore_setting(*host, &address, before.as_deref(), ours.as_ref());
                        (entry, EntryKind::Setting, address.to_string(), outcome)
                    }
                    Done::File { entry, path, before, mode } => {
                        let outcome = restore_file(&path, before.as_deref(), mode);
                        (entry, EntryKind::File, path.display().to_string(), outcome)
                    }
                };
                if outcome.is_restored() {
                    // Left unmarked, the entry is found to be back already by the next undo.
                    journal.mark(entry, EntryState::Undone).unwrap_or_default();
                }
                UndoneEntry { run: *run, kind, place, outcome }
            })
            .collect()
    }
}
