//! One end of a connection as something that can be read and changed: this host, a host of the lab, or a far host.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use fullpipe_host::{
    ApplyOptions, Entry, EntryKind, Host, Journal, JournalError, Run, RunId, RunState, UndoOptions, Which, apply,
    confirm, guardian::Guardian, persist, undo,
};
use fullpipe_knobs::{
    Change, Plan, Settings,
    planner::destination::{Aim, for_destination},
};
use fullpipe_units::Network;
use serde::{Deserialize, Serialize};

use crate::error::TuneError;

/// A host at one end of the path. What `apply` puts in force is on trial until `keep`.
pub(crate) trait End: Send {
    /// Its name, as the directions of a measurement have it.
    fn name(&self) -> &str;
    /// What is set there now.
    fn settings(&mut self) -> Result<Settings, TuneError>;
    /// Hears where the other end of what is measured is, before anything is; an error where that is not what this end is to
    /// be changed for.
    fn meets(&mut self, peer: IpAddr) -> Result<(), TuneError> {
        let _ = peer;
        Ok(())
    }
    /// What is left of a plan for this end, which has these settings.
    fn narrowed(&self, plan: Plan, settings: &Settings) -> Plan {
        let _ = settings;
        plan
    }
    /// Why nothing can be changed there; `None` where it can.
    fn closed(&self) -> Option<String>;
    /// Puts changes in force, all or none, journalled; `within` is how long the trial may take.
    fn apply(&mut self, changes: &[Change], stay: Stay, within: Duration) -> Result<Trial, TuneError>;
    /// Takes a trial back, also one that was kept; returns how many settings were written, none where it had been taken back
    /// already. It may be called again until it succeeds.
    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError>;
    /// Leaves a trial in force for `within`, and after that only if somebody confirms it on that host; gives the time.
    fn hold(&mut self, trial: &Trial, within: Duration) -> Result<Duration, TuneError>;
    /// Makes a trial stay, and writes what shall last beyond a restart.
    fn keep(&mut self, trial: &Trial) -> Result<Kept, TuneError>;
}

/// Changes in force that are not yet to stay.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// The journal's number of the run; `None` where everything was in force already.
    pub(crate) run: Option<RunId>,
    /// What each change reads now, in their order.
    pub(crate) read_back: Vec<Option<String>>,
}

/// What became of a trial that stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// All of it lasts beyond a restart.
    pub(crate) lasts: bool,
    /// The boot-time files that were written.
    pub(crate) boot_files: Vec<String>,
    /// What lasts only until the next reboot although more was asked for: a sentence for each, with the way out.
    pub(crate) until_reboot: Vec<String>,
    /// What else is to be said.
    pub(crate) notes: Vec<String>,
}

impl Kept {
    /// What a confirmation wrote, or a run that was kept as it is; `entries` are those of the run.
    fn new(run: &Run, entries: &[Entry]) -> Self {
        let settings =
            || entries.iter().filter(|entry| entry.kind == EntryKind::Setting && entry.state.is_outstanding());
        let own_folder = run.overridden.iter().filter(|overridden| !overridden.is_by_another());
        Self {
            lasts: run.not_persisted.is_empty() && run.overridden.is_empty() && settings().all(|entry| entry.persisted),
            boot_files: run.boot_files.iter().map(|file| file.display().to_string()).collect(),
            until_reboot: run.until_reboot(),
            notes: own_folder.map(ToString::to_string).collect(),
        }
    }
}

/// For how long changes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stay {
    /// Until they are undone or the machine starts again.
    Running,
    /// Beyond a restart too, as far as the host's own files can hold them.
    BeyondRestart,
}

/// A host that this process can change itself.
pub(crate) struct LocalEnd<H> {
    name: String,
    host: H,
    store: Store,
    options: ApplyOptions,
    /// Only connections there are to be changed.
    destination: Option<Destination>,
}

/// One destination, instead of the whole host.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// Where the other ends are; the one that is measured to, where absent.
    pub prefix: Option<Network>,
    /// Attributes that its route is to have, or with `None` not to have, besides what the plan says.
    pub metrics: Vec<(String, Option<String>)>,
}

/// Where the journal of an end is.
enum Store {
    /// Nowhere: nothing is changed.
    Nowhere,
    /// Here, and gone with this process, as its host is.
    Here(Journal),
    /// In a folder that others use too: it is opened, and so locked, for each change alone. What is on trial has a
    /// guardian.
    Folder(PathBuf, Option<Guardian>),
}

/// What the journal is reached by while something is changed.
enum Opened<'a> {
    Here(&'a mut Journal),
    Folder(Journal),
}

impl Opened<'_> {
    fn journal(&mut self) -> &mut Journal {
        match self {
            Self::Here(journal) => journal,
            Self::Folder(journal) => journal,
        }
    }
}

impl<H: Host + Send> LocalEnd<H> {
    /// An end that is only read.
    pub(crate) fn read_only(name: &str, host: H) -> Self {
        Self { name: name.to_owned(), host, store: Store::Nowhere, options: ApplyOptions::default(), destination: None }
    }

    /// An end that can be changed, with the journal that is to hold what was there before.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only the lab, which is Linux's, makes hosts"))]
    pub(crate) fn with_journal(name: &str, host: H, journal: Journal, command: &str) -> Self {
        Self { store: Store::Here(journal), ..Self::in_folder(name, host, PathBuf::new(), command, None) }
    }

    /// An end that can be changed, with its journal in a state folder, and with the guardian of what is on trial.
    pub(crate) fn in_folder(name: &str, host: H, state: PathBuf, command: &str, guardian: Option<Guardian>) -> Self {
        let options =
            ApplyOptions { command: command.to_owned(), host: Some(name.to_owned()), ..ApplyOptions::default() };
        Self { name: name.to_owned(), host, store: Store::Folder(state, guardian), options, destination: None }
    }

    /// As it is, but changed for connections to one destination alone.
    pub(crate) fn for_destination(self, destination: Option<Destination>) -> Self {
        Self { destination, ..self }
    }

    fn open(&mut self) -> Result<(&mut H, Opened<'_>, &ApplyOptions), TuneError> {
        let Self { name, host, store, options, .. } = self;
        let opened = match store {
            Store::Here(journal) => Opened::Here(journal),
            Store::Folder(folder, _) => Opened::Folder(Journal::open(folder)?),
            Store::Nowhere => {
                return Err(TuneError::Remote {
                    operation: "change settings",
                    host: name.clone(),
                    reason: "this run only reads".to_owned(),
                });
            }
        };
        Ok((host, opened, options))
    }
}

impl<H: Host + Send> LocalEnd<H> {
    /// Undoes a run that this end's command kept earlier; gives how many settings were written back, none where nothing of
    /// it is in force any more, and `None` where there is no such run of this command, or it is on trial.
    pub(crate) fn undo_kept(&mut self, run: RunId) -> Result<Option<usize>, TuneError> {
        let (_, mut opened, options) = self.open()?;
        let found = match opened.journal().run(run) {
            Ok(found) if found.command == options.command => found.state,
            Ok(_) | Err(JournalError::NoSuchRun { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The journal's lock.
        drop(opened);
        match found {
            RunState::Kept => self.undo(&Trial { run: Some(run), read_back: Vec::new() }).map(Some),
            RunState::Undone => Ok(Some(0)),
            RunState::Open | RunState::OnTrial => Ok(None),
        }
    }
}

impl<H: Host + Send> End for LocalEnd<H> {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&mut self) -> Result<Settings, TuneError> {
        Ok(self.host.settings()?)
    }

    fn meets(&mut self, peer: IpAddr) -> Result<(), TuneError> {
        let Some(destination) = &mut self.destination else { return Ok(()) };
        let peer = peer.to_canonical();
        match *destination.prefix.get_or_insert_with(|| Network::host(peer)) {
            prefix if prefix.contains(peer) => Ok(()),
            prefix => Err(TuneError::OtherDestination { peer, prefix }),
        }
    }

    fn narrowed(&self, plan: Plan, settings: &Settings) -> Plan {
        match &self.destination {
            Some(Destination { prefix: Some(prefix), metrics }) => {
                for_destination(plan, &Aim { host: &self.name, settings, prefix: *prefix, metrics })
            }
            _ => plan,
        }
    }

    fn closed(&self) -> Option<String> {
        matches!(self.store, Store::Nowhere).then(|| "this run only reads".to_owned())
    }

    fn apply(&mut self, changes: &[Change], stay: Stay, within: Duration) -> Result<Trial, TuneError> {
        let trial = match &mut self.store {
            Store::Folder(folder, Some(guardian)) => {
                guardian.renew(folder).map_err(|source| TuneError::Guardian { source })?;
                Some(guardian.trial(Some(within)))
            }
            _ => None,
        };
        let (host, mut opened, options) = self.open()?;
        let persist = (stay == Stay::BeyondRestart).then(persist::sysctl_dir);
        let run = apply(host, opened.journal(), changes, &ApplyOptions { persist, trial, ..options.clone() })?;
        let read_back = run.applied.iter().map(|applied| applied.now.clone()).collect();
        Ok(Trial { run: run.id, read_back })
    }

    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError> {
        let Some(run) = trial.run else { return Ok(0) };
        let name = self.name.clone();
        let (host, mut opened, _) = self.open()?;
        let report = undo(host, opened.journal(), Which::Run(run), UndoOptions::default())?;
        let remaining = report.entries.iter().filter(|entry| !entry.outcome.is_restored()).count();
        if remaining > 0 {
            return Err(TuneError::NotUndone { host: name, remaining });
        }
        Ok(report.entries.len())
    }

    fn hold(&mut self, trial: &Trial, within: Duration) -> Result<Duration, TuneError> {
        let Some(run) = trial.run else { return Ok(within) };
        let Store::Folder(folder, Some(guardian)) = &self.store else {
            return Err(TuneError::Remote {
                operation: "leave changes on trial",
                host: self.name.clone(),
                reason: "no process watches over them".to_owned(),
            });
        };
        guardian.hand_over(&mut Journal::open(folder)?, folder, run, within)?;
        Ok(within)
    }

    fn keep(&mut self, trial: &Trial) -> Result<Kept, TuneError> {
        let Some(run) = trial.run else { return Ok(Kept::default()) };
        let (host, mut opened, _) = self.open()?;
        let journal = opened.journal();
        let kept = match journal.run(run)?.state {
            RunState::OnTrial => confirm(host, journal, run)?,
            RunState::Open => {
                journal.keep(run)?;
                Run::default()
            }
            RunState::Kept => Run::default(),
            // Its time was over, or somebody undid it: whoever believes it in force is notified.
            RunState::Undone => return Err(JournalError::NotOnTrial { run }.into()),
        };
        Ok(Kept::new(&kept, &journal.run(run)?.entries))
    }
}
