//! Where the journal lives.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::JournalError;

/// The state folder: `FULLPIPE_STATE_DIR`, else `/var/lib/fullpipe` for root, else below `XDG_STATE_HOME` or
/// `~/.local/state` (XDG Base Directory Specification).
pub fn state_dir() -> Result<PathBuf, JournalError> {
    choose(is_root(), |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

/// Root's state folder, where another user's command finds runs that it can't see: root has changed something on this
/// machine, and this user has a folder of his own.
pub fn roots_state_dir() -> Option<&'static Path> {
    let is_other = !is_root() && cfg!(unix) && env::var_os("FULLPIPE_STATE_DIR").is_none_or(|folder| folder.is_empty());
    Some(Path::new(ROOTS)).filter(|folder| is_other && folder.is_dir())
}

/// Where root's journal is.
const ROOTS: &str = "/var/lib/fullpipe";

fn choose(root: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, JournalError> {
    if let Some(folder) = variable("FULLPIPE_STATE_DIR") {
        return Ok(folder);
    }
    if root {
        return Ok(ROOTS.into());
    }
    variable("XDG_STATE_HOME")
        // The specification has relative paths ignored.
        .filter(|folder| folder.is_absolute())
        .or_else(|| variable("HOME").or_else(|| variable("LOCALAPPDATA")).map(|home| home.join(".local/state")))
        .map(|folder| folder.join("fullpipe"))
        .ok_or(JournalError::NoStateDir)
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(root: bool, set: &[(&str, &str)]) -> Option<PathBuf> {
        choose(root, |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())).ok()
    }

    #[test]
    fn the_state_folder_follows_the_documented_order() {
        let home = ("HOME", "/home/u");
        assert_eq!(with(true, &[("FULLPIPE_STATE_DIR", "/s"), home]), Some("/s".into()));
        assert_eq!(with(true, &[home]), Some("/var/lib/fullpipe".into()));
        assert_eq!(with(false, &[("XDG_STATE_HOME", "/x"), home]), Some("/x/fullpipe".into()));
        assert_eq!(with(false, &[("XDG_STATE_HOME", "x"), home]), Some("/home/u/.local/state/fullpipe".into()));
        assert_eq!(with(false, &[]), None);
    }
}
