//! One end of a connection as something that can be read and changed: this host, a host of the lab, or a far host.

use fullpipe_host::{ApplyOptions, Host, Journal, RunId, UndoOptions, Which, apply, persist, undo};
use fullpipe_knobs::{Change, Settings};
use serde::{Deserialize, Serialize};

use crate::error::TuneError;

/// A host at one end of the path. What `apply` puts in force is on trial until `keep`.
pub(crate) trait End: Send {
    /// Its name, as the directions of a measurement have it.
    fn name(&self) -> &str;
    /// What is set there now.
    fn settings(&mut self) -> Result<Settings, TuneError>;
    /// Why nothing can be changed there; `None` where it can.
    fn closed(&self) -> Option<String>;
    /// Puts changes in force, all or none, journalled.
    fn apply(&mut self, changes: &[Change], stay: Stay) -> Result<Trial, TuneError>;
    /// Takes a trial back; returns how many settings were written.
    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError>;
    /// Makes a trial stay.
    fn keep(&mut self, trial: &Trial) -> Result<(), TuneError>;
}

/// Changes in force that are not yet to stay.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// The journal's number of the run; `None` where everything was in force already.
    pub(crate) run: Option<RunId>,
    /// What each change reads now, in their order.
    pub(crate) read_back: Vec<Option<String>>,
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
    journal: Option<Journal>,
    options: ApplyOptions,
}

impl<H: Host + Send> LocalEnd<H> {
    /// An end that is only read.
    pub(crate) fn read_only(name: &str, host: H) -> Self {
        Self { name: name.to_owned(), host, journal: None, options: ApplyOptions::default() }
    }

    /// An end that can be changed, with the journal that is to hold what was there before.
    pub(crate) fn with_journal(name: &str, host: H, journal: Journal, command: &str) -> Self {
        let options =
            ApplyOptions { command: command.to_owned(), host: Some(name.to_owned()), ..ApplyOptions::default() };
        Self { name: name.to_owned(), host, journal: Some(journal), options }
    }

    fn journal(&mut self) -> Result<(&mut H, &mut Journal, &ApplyOptions), TuneError> {
        let Self { name, host, journal, options } = self;
        let journal = journal.as_mut().ok_or_else(|| TuneError::Remote {
            operation: "change settings",
            host: name.clone(),
            reason: "this run only reads".to_owned(),
        })?;
        Ok((host, journal, options))
    }
}

impl<H: Host + Send> End for LocalEnd<H> {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&mut self) -> Result<Settings, TuneError> {
        Ok(self.host.settings()?)
    }

    fn closed(&self) -> Option<String> {
        self.journal.is_none().then(|| "this run only reads".to_owned())
    }

    fn apply(&mut self, changes: &[Change], stay: Stay) -> Result<Trial, TuneError> {
        let (host, journal, options) = self.journal()?;
        let persist = (stay == Stay::BeyondRestart).then(persist::sysctl_dir);
        let run = apply(host, journal, changes, &ApplyOptions { persist, ..options.clone() })?;
        let read_back = run.applied.iter().map(|applied| applied.now.clone()).collect();
        Ok(Trial { run: run.id, read_back })
    }

    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError> {
        let (host, journal, _) = self.journal()?;
        let Some(run) = trial.run else { return Ok(0) };
        let report = undo(host, journal, Which::Run(run), UndoOptions::default())?;
        let remaining = report.entries.iter().filter(|entry| !entry.outcome.is_restored()).count();
        if remaining > 0 {
            return Err(TuneError::NotUndone { host: self.name.clone(), remaining });
        }
        Ok(report.entries.len())
    }

    fn keep(&mut self, trial: &Trial) -> Result<(), TuneError> {
        let (_, journal, _) = self.journal()?;
        Ok(trial.run.map_or(Ok(()), |run| journal.keep(run))?)
    }
}
