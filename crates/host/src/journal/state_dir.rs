//! Where the journal lives.

use std::{env, path::PathBuf};

use super::JournalError;

/// The state folder: `FULLPIPE_STATE_DIR`, else `/var/lib/fullpipe` for root, else below `XDG_STATE_HOME` or
/// `~/.local/state` (XDG Base Directory Specification).
pub fn state_dir() -> Result<PathBuf, JournalError> {
    choose(is_root(), |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn choose(root: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, JournalError> {
    if let Some(folder) = variable("FULLPIPE_STATE_DIR") {
        return Ok(folder);
    }
    if root {
        return Ok("/var/lib/fullpipe".into());
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
