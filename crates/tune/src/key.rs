//! The shared key that lets one machine change settings on another: its file, and what both ends make of it. What is done with
//! it is [`channel`](crate::channel)'s.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::Path,
};

use sha2::{Digest, Sha256};

/// The shortest key that is accepted, in bytes: shorter ones can be guessed.
pub const SHORTEST_KEY: usize = 16;

/// A shared key. Never shown.
#[derive(Clone)]
pub struct Key([u8; 32]);

/// Why a key can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file could not be read.
    #[error("read the key file {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// It could not be made.
    #[error("make the key file {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Others can read it.
    #[error(
        "the key file {file} {why}; a key is known to its owner alone: {way}, or make another with `fullpipe key FILE`"
    )]
    Open {
        /// The file.
        file: String,
        /// Who can.
        why: String,
        /// What to type.
        way: String,
    },
    /// Too short.
    #[error("the key in {file} has {length} bytes; use at least {SHORTEST_KEY}, as `fullpipe key FILE` makes them")]
    TooShort {
        /// The file.
        file: String,
        /// How long it is.
        length: usize,
    },
}

impl Key {
    /// Makes a file with a new key of 256 random bits, for its owner alone.
    ///
    /// # Errors
    ///
    /// Where it is there already or can't be written, or the system has no random numbers.
    pub fn create(file: &Path) -> Result<(), KeyError> {
        let failed = |source| KeyError::Write { file: file.display().to_string(), source };
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| failed(io::Error::other(error)))?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut open = options.open(file).map_err(failed)?;
        writeln!(open, "{}", hex(&bytes)).and_then(|()| open.sync_all()).map_err(failed)
    }

    /// Reads the key from a file; white space at both ends does not count.
    pub fn read(file: &Path) -> Result<Self, KeyError> {
        let name = file.display().to_string();
        let failed = |source| KeyError::Read { file: name.clone(), source };
        let mut open = fs::File::open(file).map_err(failed)?;
        // Of what was opened, not of the name: a link to a key is as good as the key.
        if let Some((why, way)) = is_open(&open.metadata().map_err(failed)?) {
            return Err(KeyError::Open { why, way: format!("`{way} {name}`"), file: name });
        }
        let mut text = Vec::new();
        open.read_to_end(&mut text).map_err(failed)?;
        let key = text.trim_ascii();
        if key.len() < SHORTEST_KEY {
            return Err(KeyError::TooShort { file: name, length: key.len() });
        }
        Ok(Self::from_bytes(key))
    }

    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    /// The 256 bits that both ends mix into a handshake, of a key of any length.
    pub(crate) fn shared(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::new().chain_update("fullpipe order key 3\0").chain_update(bytes).finalize().into())
    }
}

/// Who besides its owner has a key file, or whose it is.
#[cfg(unix)]
fn is_open(file: &fs::Metadata) -> Option<(String, String)> {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    if file.uid() != me && file.uid() != 0 {
        let why = format!("belongs to user {}, and neither to you nor to root", file.uid());
        return Some((why, format!("chown {me}")));
    }
    // sshd looks at the same bits of a private key.
    let bits = file.mode() & 0o777;
    let why = || format!("can be read or written by others (mode {bits:o})");
    (file.is_file() && bits & 0o077 != 0).then(|| (why(), "chmod 600".to_owned()))
}

#[cfg(not(unix))]
fn is_open(_: &fs::Metadata) -> Option<(String, String)> {
    None
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_is_another_secret_and_white_space_around_it_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        fs::write(&file, " a long enough key\r\n").unwrap();
        for_owner_only(&file);
        assert_eq!(Key::read(&file).unwrap().shared(), Key::from_text("a long enough key").shared());
        assert_ne!(Key::from_text("a long enough kez").shared(), Key::from_text("a long enough key").shared());
    }

    #[test]
    fn a_key_that_was_made_is_good_and_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        Key::create(&file).unwrap();
        let made = fs::read(&file).unwrap();
        assert_eq!(made.trim_ascii().len(), 64);
        Key::read(&file).unwrap();
        assert!(matches!(Key::create(&file), Err(KeyError::Write { .. })));
        assert_eq!(fs::read(&file).unwrap(), made);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        fs::write(&file, "0123456789abcdef\n").unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o644, false), (0o602, false)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let read = Key::read(&file);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            assert!(good || matches!(read, Err(KeyError::Open { .. })), "{mode:o}");
        }
        if std::os::unix::fs::chown(&file, Some(1), None).is_ok() {
            let refused = Key::read(&file).unwrap_err().to_string();
            assert!(refused.contains("belongs to user 1") && refused.contains("`chown 0 "), "{refused}");
        } else {
            eprintln!("skipped: a_key_that_others_can_read_is_refused: changing an owner takes root");
        }
    }

    #[test]
    fn a_short_key_is_refused_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        fs::write(&file, "short\n").unwrap();
        for_owner_only(&file);
        assert!(matches!(Key::read(&file), Err(KeyError::TooShort { length: 5, .. })));
        fs::write(&file, "0123456789abcdef\n").unwrap();
        assert_eq!(format!("{:?}", Key::read(&file).unwrap()), "Key(..)");
        assert!(matches!(Key::read(&dir.path().join("none")), Err(KeyError::Read { .. })));
    }

    fn for_owner_only(file: &Path) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        #[cfg(not(unix))]
        {
            _ = file;
        }
    }
}
