//! What `plan`, `apply` and `reset` show beside a plan.

use std::time::Duration;

use fullpipe_host::{BootFile, Run};
use fullpipe_knobs::{Change, Plan, PlatformRequest, Settings, export::Export};

use crate::PlanForecast;

/// What `plan` answers.
#[derive(Clone, Debug)]
pub struct PlatformPlan<'a> {
    /// What was asked.
    pub request: &'a PlatformRequest<'a>,
    /// The plan.
    pub plan: &'a Plan,
    /// The files of the export and the folder that they were written into.
    pub written: Option<(&'a Export, &'a str)>,
    /// What it is predicted to do, where that was asked for.
    pub forecast: Option<&'a PlanForecast>,
    /// Whether there is a path to plan for; a procedure needs none.
    pub has_path: bool,
}

impl PlatformPlan<'_> {
    /// Whether the settings that were given tell what is there, be it "absent", under this name or another.
    pub fn knows_before(&self, change: &Change) -> bool {
        let is_known = |settings: &Settings| change.from.is_some() || settings.values.contains_key(&change.knob);
        self.request.settings.is_some_and(is_known)
    }
}

/// What `apply` and `reset` did.
#[derive(Clone, Debug)]
pub struct AppliedPlan<'a> {
    /// The changes that were asked for.
    pub plan: &'a Plan,
    /// What became of them.
    pub run: &'a Run,
    /// They are taken back after this time unless somebody confirms them.
    pub confirm_within: Option<Duration>,
}

impl AppliedPlan<'_> {
    /// Whether something of it takes effect only after a reboot.
    pub fn needs_restart(&self) -> bool {
        self.run.applied.iter().any(fullpipe_host::Applied::needs_restart)
    }
}

/// The lines that a boot-time file loses and gains, in its order; the others stay.
pub(crate) fn file_diff(file: &BootFile) -> Vec<(char, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (before, after) = (text(file.before.as_deref().unwrap_or_default()), text(&file.content));
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| ('-', (*line).to_owned()));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| ('+', (*line).to_owned()));
    gone.chain(new).collect()
}
