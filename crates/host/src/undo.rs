//! Taking changes back, newest first, exactly.
//!
//! An entry is written back only where the host still has what we put there: what somebody changed since is theirs.
//! What is *not* here: the journal's storage.

use std::{collections::BTreeMap, io, path::Path};

use fullpipe_knobs::Address;
use serde::Serialize;
use tracing::debug;

use crate::{
    Entry, EntryKind, EntryState, FarRun, Host, HostError, Identity, Journal, JournalError, RunId, RunRecord, RunState,
    persist, plain_file, same_value,
};

/// What to take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// The newest run that is open; kept runs stay.
    Latest,
    /// This run, kept or not.
    Run(RunId),
    /// These runs, kept or not, the newest first whatever their order here.
    Runs(&'a [RunId]),
    /// Every run of which something is in force, kept ones too.
    All,
}

/// How changes are taken back.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndoOptions {
    /// Write the old value back even where somebody changed the setting since.
    pub force: bool,
    /// Leave what somebody changed since to whoever did, for good: no later undo looks at it again.
    pub leave_changed: bool,
    /// Change nothing, neither on the host nor in the journal: report what would become of each entry.
    pub dry_run: bool,
}

/// What became of an undo.
#[derive(Debug, Default, Serialize)]
pub struct UndoReport {
    /// What was looked at, in that order.
    pub entries: Vec<UndoneEntry>,
    /// Nothing was changed: it says what would become of them.
    pub dry_run: bool,
    /// The journal could not be marked; the host is as the entries say, and another undo finds it so.
    #[serde(serialize_with = "shown")]
    pub unmarked: Option<JournalError>,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UndoneEntry {
    /// Its run.
    pub run: Option<RunId>,
    /// What kind of place it is.
    pub kind: EntryKind,
    /// The address of a setting, or the path of a file.
    pub place: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
#[non_exhaustive]
pub enum Outcome {
    /// The old value was written and read back; `None` means that it is absent again.
    Restored {
        /// What was there until then.
        was: Option<String>,
        /// What is there now.
        now: Option<String>,
    },
    /// The old value was there already.
    AlreadyBack,
    /// Somebody changed it since; it was left alone. `force` writes the old value all the same.
    ChangedSince {
        /// What is there now.
        now: Option<String>,
        /// What we had put there.
        ours: Option<String>,
        /// What was there before us.
        before: Option<String>,
        /// The later run of ours that changed it, which is to be undone first.
        by: Option<RunId>,
    },
    /// Somebody changed it since, and it is theirs from now on: it was left alone, and the journal keeps it no longer.
    Left {
        /// What is there now.
        now: Option<String>,
        /// What we had put there.
        ours: Option<String>,
        /// What was there before us.
        before: Option<String>,
    },
    /// It went by itself.
    Gone {
        /// How.
        why: String,
    },
    /// It belongs to another network namespace or folder; it was left alone and stays in the journal.
    Elsewhere {
        /// Which one.
        namespace: String,
    },
    /// It is in force on another machine, whose server takes it back for holders of its key; it stays in the journal.
    AtFarEnd {
        /// That server, with its port.
        server: String,
    },
    /// It could not be read or written; it stays in the journal.
    Failed {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// True where what was there before is there now.
    pub fn is_restored(&self) -> bool {
        matches!(self, Self::Restored { .. } | Self::AlreadyBack)
    }

    fn state(&self) -> Option<EntryState> {
        match self {
            Self::Restored { .. } | Self::AlreadyBack => Some(EntryState::Undone),
            Self::Gone { .. } => Some(EntryState::Gone),
            Self::Left { .. } => Some(EntryState::Left),
            Self::ChangedSince { .. } | Self::Elsewhere { .. } | Self::AtFarEnd { .. } | Self::Failed { .. } => None,
        }
    }
}

impl UndoReport {
    /// True where nothing is left to take back of what was asked for.
    pub fn is_complete(&self) -> bool {
        self.entries.iter().all(|entry| entry.outcome.state().is_some())
    }
}

/// Takes back what the journal says, newest first. Goes on past an entry that fails, and reports it; what is done
/// already is not done again. Nothing to do is an empty report.
pub fn undo<H: Host + ?Sized>(
    host: &mut H,
    journal: &mut Journal,
    which: Which<'_>,
    options: UndoOptions,
) -> Result<UndoReport, JournalError> {
    let here = host.identity().map_err(|source| JournalError::Host { source: Box::new(source) })?;
    let mut site = Site { host, would_be: BTreeMap::new(), options };
    let mut report = UndoReport { dry_run: options.dry_run, ..UndoReport::default() };
    // The newest entries of ours by place that stay in force: they explain why an older one is not ours any more.
    let mut later: BTreeMap<String, RunId> = BTreeMap::new();
    let outstanding = journal.outstanding()?;
    let chosen: Vec<RunId> = match which {
        Which::Latest => {
            outstanding.iter().filter(|run| run.state != RunState::Kept).map(|run| run.id).take(1).collect()
        }
        Which::Run(run) => vec![journal.run(run)?.id],
        Which::Runs(runs) => runs.iter().map(|run| Ok(journal.run(*run)?.id)).collect::<Result<_, JournalError>>()?,
        Which::All => outstanding.iter().map(|run| run.id).collect(),
    };
    for run in outstanding {
        let mut entries: Vec<_> = run.entries.iter().rev().filter(|entry| entry.state.is_outstanding()).collect();
        // A process that goes on would do again what is taken back.
        entries.sort_by_key(|entry| entry.kind != EntryKind::Program);
        let is_chosen = chosen.contains(&run.id);
        let mut is_over = is_chosen;
        for entry in entries {
            let mut stays = true;
            if is_chosen {
                let by = later.get(&entry.place).copied();
                let outcome = undo_entry(&mut site, &here, &run, entry, by);
                debug!(place = entry.place, run = run.id.0, ?outcome, "undo");
                if let Some(state) = outcome.state() {
                    stays = false;
                    if let Some(error) = unless(options.dry_run, || journal.mark(entry.id, state)) {
                        report.unmarked.get_or_insert(error);
                    }
                }
                is_over &= !stays;
                let place = entry.place.clone();
                report.entries.push(UndoneEntry { run: Some(run.id), kind: entry.kind, place, outcome });
            }
            if stays {
                later.entry(entry.place.clone()).or_insert(run.id);
            }
        }
        // A trial of which nothing is left is over, also for whoever might still confirm it. What could not be marked is looked
        // at again by its guardian, which looks for trials.
        if is_over
            && run.trial.is_some()
            && report.unmarked.is_none()
            && let Some(error) = unless(options.dry_run, || journal.end_trial(run.id))
        {
            report.unmarked = Some(error);
        }
    }
    Ok(report)
}

/// The error of what is done, unless it is not to be done.
fn unless(not: bool, done: impl FnOnce() -> Result<(), JournalError>) -> Option<JournalError> {
    if not { None } else { done().err() }
}

/// A host on which an undo is going on. In a dry run, what would have been written by now stands beside it, so that older
/// entries of the same place are held against that.
struct Site<'a, H: Host + ?Sized> {
    host: &'a mut H,
    would_be: BTreeMap<String, Option<Vec<u8>>>,
    options: UndoOptions,
}

impl<H: Host + ?Sized> Site<'_, H> {
    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        match self.would_be.get(&address.to_string()) {
            Some(value) => Ok(Entry::text(value.as_ref())),
            None => self.host.read(address),
        }
    }

    fn read_file(&self, place: &str) -> io::Result<Option<Vec<u8>>> {
        match self.would_be.get(place) {
            Some(content) => Ok(content.clone()),
            None => plain_file::read(Path::new(place)),
        }
    }

    /// What becomes of an entry that somebody changed, where it isn't to be overwritten.
    fn changed(&self, now: Option<String>, ours: Option<String>, before: Option<String>, by: Option<RunId>) -> Outcome {
        // What a later run of ours changed is nobody else's.
        if self.options.leave_changed && by.is_none() {
            Outcome::Left { now, ours, before }
        } else {
            Outcome::ChangedSince { now, ours, before, by }
        }
    }
}

fn undo_entry<H: Host + ?Sized>(
    site: &mut Site<'_, H>,
    here: &Identity,
    run: &RunRecord,
    entry: &Entry,
    by: Option<RunId>,
) -> Outcome {
    match entry.kind {
        EntryKind::Setting => setting(site, here, run, entry, by),
        EntryKind::File => file(site, entry, by),
        EntryKind::FarRun => match entry.place.parse::<FarRun>() {
            Ok(far) => Outcome::AtFarEnd { server: far.server },
            Err(place) => Outcome::Failed { why: format!("the journal's entry can't be read: {place}") },
        },
        EntryKind::Program | EntryKind::Socket if differ(&here.boot, &run.identity.boot) => restarted(),
        #[cfg(target_os = "linux")]
        EntryKind::Program => crate::linux::held::undo_program(&entry.place, site.options),
        #[cfg(target_os = "linux")]
        EntryKind::Socket => match crate::linux::held::undo_socket(entry, site.options) {
            Outcome::ChangedSince { now, ours, before, by } => site.changed(now, ours, before, by),
            outcome => outcome,
        },
        #[cfg(not(target_os = "linux"))]
        EntryKind::Program | EntryKind::Socket => {
            Outcome::Failed { why: "only Linux has such programs and sockets".to_owned() }
        }
    }
}

fn setting<H: Host + ?Sized>(
    site: &mut Site<'_, H>,
    here: &Identity,
    run: &RunRecord,
    entry: &Entry,
    by: Option<RunId>,
) -> Outcome {
    let restarted = differ(&here.boot, &run.identity.boot);
    if restarted && !entry.persisted {
        return self::restarted();
    }
    // A restart numbers the namespaces anew, and what lasts beyond it is set in the first one.
    if !restarted && differ(&here.namespace, &run.identity.namespace) {
        return Outcome::Elsewhere { namespace: run.identity.namespace.clone().unwrap_or_default() };
    }
    let address: Address = match entry.place.parse() {
        Ok(address) => address,
        Err(error) => return Outcome::Failed { why: format!("the journal's entry can't be read: {error}") },
    };
    let now = match site.read(&address) {
        Ok(now) => now,
        Err(error) if error.object_is_gone() => return Outcome::Gone { why: error.to_string() },
        Err(error) => return Outcome::Failed { why: error.to_string() },
    };
    let before = Entry::text(entry.before.as_ref());
    if same_value(&address, now.as_deref(), before.as_deref()) {
        return Outcome::AlreadyBack;
    }
    let ours = Entry::text(entry.ours());
    let force = site.options.force;
    if !force && !same_value(&address, now.as_deref(), ours.as_deref()) {
        return site.changed(now, ours, before, by);
    }
    if site.options.dry_run {
        if let Err(error) = site.host.writable(&address) {
            return Outcome::Failed { why: error.to_string() };
        }
        site.would_be.insert(address.to_string(), entry.before.clone());
        return Outcome::Restored { was: now, now: before };
    }
    match restore_setting(site.host, &address, before.as_deref(), (!force).then_some(&ours)) {
        Outcome::ChangedSince { now, ours, before, by } => site.changed(now, ours, before, by),
        outcome => outcome,
    }
}

fn file<H: Host + ?Sized>(site: &mut Site<'_, H>, entry: &Entry, by: Option<RunId>) -> Outcome {
    let path = Path::new(&entry.place);
    if !site.host.keeps_boot_file(path) {
        let hint = "if it is a drop-in of yours, set FULLPIPE_SYSCTL_DIR as it was set then";
        return Outcome::Failed { why: format!("{} is no file that fullpipe writes here; {hint}", entry.place) };
    }
    let now = match site.read_file(&entry.place) {
        Ok(content) => content,
        Err(error) => return Outcome::Failed { why: format!("can't read {}: {error}", entry.place) },
    };
    if !site.options.dry_run {
        persist::clear_leftover(path);
    }
    if now == entry.before {
        return Outcome::AlreadyBack;
    }
    let text = Entry::text;
    if !site.options.force && now.as_ref() != entry.ours() {
        return site.changed(text(now.as_ref()), text(entry.ours()), text(entry.before.as_ref()), by);
    }
    if site.options.dry_run {
        site.would_be.insert(entry.place.clone(), entry.before.clone());
        return Outcome::Restored { was: text(now.as_ref()), now: text(entry.before.as_ref()) };
    }
    restore_file(path, entry.before.as_deref(), entry.mode)
}

impl Entry {
    /// What we put there. After a run that ended between the write and its mark, what it meant to put there.
    fn ours(&self) -> Option<&Vec<u8>> {
        match self.state {
            EntryState::Intended => self.intended.as_ref(),
            _ => self.read_back.as_ref(),
        }
    }
}

/// Writes the old value back and makes sure that it is in force. Where `ours` is given, only over that.
pub(crate) fn restore_setting<H: Host + ?Sized>(
    host: &mut H,
    address: &Address,
    before: Option<&str>,
    ours: Option<&Option<String>>,
) -> Outcome {
    let mut restored = || -> Result<Outcome, HostError> {
        let now = host.read(address)?;
        // A write that the system refused has changed nothing, and what can't be written then need not be.
        if same_value(address, now.as_deref(), before) {
            return Ok(Outcome::AlreadyBack);
        }
        if let Some(ours) = ours.filter(|ours| !same_value(address, now.as_deref(), ours.as_deref())) {
            return Ok(Outcome::ChangedSince { now, ours: ours.clone(), before: before.map(str::to_owned), by: None });
        }
        let was = now;
        host.write(address, before)?;
        let now = host.read(address)?;
        if same_value(address, now.as_deref(), before) {
            return Ok(Outcome::Restored { was, now });
        }
        let (now, before) = (now.as_deref().unwrap_or("absent"), before.unwrap_or("absent"));
        Ok(Outcome::Failed { why: format!("{address} is {now} after writing {before} back") })
    };
    match restored() {
        Ok(outcome) => outcome,
        Err(error) if error.object_is_gone() => Outcome::Gone { why: error.to_string() },
        Err(error) => Outcome::Failed { why: error.to_string() },
    }
}

/// Puts a file's old content back, or takes the file away where there was none.
pub(crate) fn restore_file(path: &Path, before: Option<&[u8]>, mode: Option<u32>) -> Outcome {
    // A write that failed has changed nothing, and where it failed for good there is no way to write it back.
    let was = plain_file::read(path).ok();
    if was.as_ref().is_some_and(|now| now.as_deref() == before) && (before.is_none() || mode == persist::mode(path)) {
        return Outcome::AlreadyBack;
    }
    let put = match before {
        Some(content) => persist::write_atomically(path, content, mode),
        None => persist::remove(path),
    };
    match put {
        Ok(()) => {
            let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
            Outcome::Restored { was: was.flatten().as_deref().map(text), now: before.map(text) }
        }
        Err(error) => Outcome::Failed { why: format!("can't put {} back: {error}", path.display()) },
    }
}

fn restarted() -> Outcome {
    Outcome::Gone { why: "the machine was started again since".to_owned() }
}

/// True where both are known and not the same.
pub(crate) fn differ(a: &Option<String>, b: &Option<String>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn shown<S: serde::Serializer>(error: &Option<JournalError>, serializer: S) -> Result<S::Ok, S::Error> {
    error.as_ref().map(ToString::to_string).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FolderHost,
        journal::{Intent, Start},
    };

    #[test]
    fn a_journal_has_no_file_written_but_those_that_are_written_here() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(root.path().join("platform"), "linux 6.18.44\n").expect("written");
        let mut host = FolderHost::new(root.path());
        for (name, is_ours) in [("crontab", false), ("90-fullpipe.conf", true)] {
            let file = root.path().join(name);
            std::fs::write(&file, "ours").expect("written");
            let mut journal = Journal::in_memory().expect("a journal");
            let identity = host.identity().expect("known");
            let run = journal.start_run(Start::default(), &identity).expect("begun");
            let intent = Intent {
                kind: EntryKind::File,
                place: &file.to_string_lossy(),
                before: Some(b"* * * * * root evil"),
                intended: Some(b"ours"),
                mode: Some(0o644),
                persisted: true,
            };
            let entry = journal.intend(run, &intent).expect("recorded");
            journal.written(entry, Some(b"ours")).expect("recorded");
            for force in [false, true] {
                let report = undo(&mut host, &mut journal, Which::All, UndoOptions { force, ..UndoOptions::default() })
                    .expect("ended");
                assert_eq!(report.is_complete(), is_ours, "{report:?}");
                let is_written = std::fs::read(&file).expect("there") != b"ours";
                assert_eq!(is_written, is_ours, "{name}");
            }
        }
    }
}
