//! The shared key that lets one machine change settings on another.
//!
//! An order carries an HMAC-SHA256 (RFC 2104, FIPS 198-1) over the server's address, a nonce that the server gave for this
//! one order a moment ago, and the order's own bytes, so that it can be neither forged nor replayed, nor be led to another
//! server with the same key. The answer is sealed likewise. What it does *not* do: hide anything. Settings and figures
//! cross the network as readable text.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::Path,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The shortest key that is accepted, in bytes: shorter ones can be guessed.
pub const SHORTEST_KEY: usize = 16;

/// A shared key. Never shown.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// What a seal is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealed<'a> {
    /// An order can't be passed off as an answer.
    pub(crate) what: What,
    /// The server's address and port as the client reached it: an order for one host opens at no other.
    pub(crate) server: &'a str,
    /// Of this one order.
    pub(crate) nonce: &'a str,
    /// The order or the answer.
    pub(crate) body: &'a str,
}

/// Which of the two ends speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The client.
    Order,
    /// The server.
    Answer,
}

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
        "the key file {file} {why}; a key is known to its owner alone: `chmod 600 {file}`, or make another with `fullpipe key FILE`"
    )]
    Open {
        /// The file.
        file: String,
        /// Who can.
        why: String,
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
        if let Some(why) = is_open(&open.metadata().map_err(failed)?) {
            return Err(KeyError::Open { file: name, why });
        }
        let mut text = Vec::new();
        open.read_to_end(&mut text).map_err(failed)?;
        let key = text.trim_ascii().to_vec();
        if key.len() < SHORTEST_KEY {
            return Err(KeyError::TooShort { file: name, length: key.len() });
        }
        Ok(Self(key))
    }

    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }

    /// The seal of `parts` under this key, in hexadecimal digits.
    pub(crate) fn seal(&self, sealed: &Sealed<'_>) -> String {
        hex(&self.mac(sealed).finalize().into_bytes())
    }

    /// Whether `seal` is that of `parts` under this key; compares in constant time.
    pub(crate) fn opens(&self, sealed: &Sealed<'_>, seal: &str) -> bool {
        unhex(seal).is_some_and(|bytes| self.mac(sealed).verify_slice(&bytes).is_ok())
    }

    fn mac(&self, sealed: &Sealed<'_>) -> Hmac<Sha256> {
        let Sealed { what, server, nonce, body } = *sealed;
        let what = match what {
            What::Order => "fullpipe order 2",
            What::Answer => "fullpipe answer 2",
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        // Each part says how long it is, so that no two rows of parts are one text.
        for part in [what, server, nonce, body] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// Who besides its owner has a key file, or whose it is.
#[cfg(unix)]
fn is_open(file: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    if file.uid() != me && file.uid() != 0 {
        return Some(format!("belongs to user {}, and neither to you nor to root", file.uid()));
    }
    // sshd looks at the same bits of a private key.
    let bits = file.mode() & 0o777;
    (file.is_file() && bits & 0o077 != 0).then(|| format!("can be read or written by others (mode {bits:o})"))
}

#[cfg(not(unix))]
fn is_open(_: &fs::Metadata) -> Option<String> {
    None
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A nonce of 128 random bits, in hexadecimal digits.
pub(crate) fn nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key(text.as_bytes().to_vec())
    }

    fn order<'a>(server: &'a str, nonce: &'a str, body: &'a str) -> Sealed<'a> {
        Sealed { what: What::Order, server, nonce, body }
    }

    #[test]
    fn a_seal_opens_with_the_same_key_server_nonce_and_body_only() {
        let key_of = key("a long enough key");
        let sealed = order("192.0.2.1:5201", "00", "{}");
        let seal = key_of.seal(&sealed);
        assert!(key_of.opens(&sealed, &seal));
        assert!(!key("another long key!").opens(&sealed, &seal));
        for other in [
            order("192.0.2.2:5201", "00", "{}"),
            order("192.0.2.1:5201", "01", "{}"),
            order("192.0.2.1:5201", "00", "{ }"),
            order("192.0.2.1:520", "100", "{}"),
            Sealed { what: What::Answer, ..sealed },
        ] {
            assert!(!key_of.opens(&other, &seal), "{other:?}");
        }
        for wrong in ["", "0", "zz", &seal[2..]] {
            assert!(!key_of.opens(&sealed, wrong), "{wrong}");
        }
    }

    #[test]
    fn a_key_that_was_made_is_good_and_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        Key::create(&file).unwrap();
        let made = fs::read(&file).unwrap();
        assert_eq!(Key::read(&file).unwrap().0.len(), 64);
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
