//! Where the commands find the journal.

#[cfg(target_os = "linux")]
use fullpipe_host::JournalError;
use fullpipe_host::{Journal, journal};
use fullpipe_report::text;

use crate::{exit::Exit, failure::Failure, output::Output};

/// The journal, only to look; `None` where nothing was ever changed.
pub(super) fn look() -> Result<Option<Journal>, Failure> {
    Ok(Journal::look(&journal::state_dir()?)?)
}

/// The journal, to change settings: locked against every other run.
pub(super) fn open() -> Result<Journal, Failure> {
    Ok(Journal::open(&journal::state_dir()?)?)
}

/// As [`open`], where a journal that is locked is no failure.
#[cfg(target_os = "linux")]
pub(super) fn open_now() -> Result<Journal, JournalError> {
    Journal::open(&journal::state_dir()?)
}

/// The journal, to undo: of a damaged one, what can be read.
pub(super) fn open_to_undo() -> Result<Journal, Failure> {
    Ok(Journal::open_damaged(&journal::state_dir()?)?)
}

/// Whether this user's journal tells of all that was changed: root has none that only root can read.
pub(super) fn is_all() -> bool {
    journal::roots_state_dir().is_none()
}

/// Says what keeps a look at the journal from being the whole truth; gives the exit code of a command that went well
/// otherwise. `command`: what was asked.
pub(super) fn exit_of_look(command: &str, journal: Option<&Journal>, output: Output) -> Exit {
    let exit = journal.map_or(Exit::Ok, |journal| exit_of(journal, output));
    let Some(folder) = journal::roots_state_dir().filter(|_| exit == Exit::Ok) else { return exit };
    // Whether anything of it is still in force, only root can tell.
    let what = if command == "history" { "it changed" } else { "is in force" };
    let said = format!(
        "root used fullpipe here ({}), and only root can see what {what}: `sudo fullpipe {command}`",
        folder.display()
    );
    output.warning(&text::paragraph(&said, output.look()));
    Exit::NoPermission
}

/// Says what is wrong with the journal; gives the exit code of a command that went well otherwise.
pub(super) fn exit_of(journal: &Journal, output: Output) -> Exit {
    if journal.damage().is_empty() {
        return Exit::Ok;
    }
    output.warning(&format!("the journal is damaged, and this is not all: {}\n", journal.damage().join("; ")));
    Exit::JournalUnusable
}
