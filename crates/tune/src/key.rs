//! The shared key that lets one machine change settings on another.
//!
//! A request to change something carries an HMAC-SHA256 (RFC 2104, FIPS 198-1) over a nonce that the server gave for
//! this one request and the request's own bytes, so that it can be neither forged nor replayed. What it does *not* do:
//! hide anything. Settings and figures cross the network as readable text.

use std::{fmt, fs, io, path::Path};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The shortest key that is accepted, in bytes: shorter ones can be guessed.
pub const SHORTEST_KEY: usize = 16;

/// A shared key. Never shown.
#[derive(Clone)]
pub struct Key(Vec<u8>);

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
    /// Too short.
    #[error(
        "the key in {file} has {length} bytes; use at least {SHORTEST_KEY}, for example from `openssl rand -hex 32`"
    )]
    TooShort {
        /// The file.
        file: String,
        /// How long it is.
        length: usize,
    },
}

impl Key {
    /// Reads the key from a file; white space at both ends does not count.
    pub fn read(file: &Path) -> Result<Self, KeyError> {
        let name = file.display().to_string();
        let text = fs::read(file).map_err(|source| KeyError::Read { file: name.clone(), source })?;
        let key = text.trim_ascii().to_vec();
        if key.len() < SHORTEST_KEY {
            return Err(KeyError::TooShort { file: name, length: key.len() });
        }
        Ok(Self(key))
    }

    /// The seal of `body` under this key and `nonce`, in hexadecimal digits.
    pub(crate) fn seal(&self, nonce: &str, body: &str) -> String {
        hex(&self.mac(nonce, body).finalize().into_bytes())
    }

    /// Whether `seal` is that of `body` under this key and `nonce`; compares in constant time.
    pub(crate) fn opens(&self, nonce: &str, body: &str, seal: &str) -> bool {
        unhex(seal).is_some_and(|bytes| self.mac(nonce, body).verify_slice(&bytes).is_ok())
    }

    fn mac(&self, nonce: &str, body: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        // The nonce has a fixed length, so the border between the two is unambiguous.
        mac.update(nonce.as_bytes());
        mac.update(body.as_bytes());
        mac
    }
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

    #[test]
    fn a_seal_opens_with_the_same_key_nonce_and_body_only() {
        let seal = key("a long enough key").seal("00", "{}");
        assert!(key("a long enough key").opens("00", "{}", &seal));
        assert!(!key("another long key!").opens("00", "{}", &seal));
        assert!(!key("a long enough key").opens("01", "{}", &seal));
        assert!(!key("a long enough key").opens("00", "{ }", &seal));
        for wrong in ["", "0", "zz", &seal[2..]] {
            assert!(!key("a long enough key").opens("00", "{}", wrong), "{wrong}");
        }
    }

    #[test]
    fn the_seal_is_the_published_hmac() {
        // RFC 4231, test case 2: key "Jefe", data "what do ya want for nothing?".
        assert_eq!(
            key("Jefe").seal("what do ya want ", "for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_short_key_is_refused_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        fs::write(&file, "short\n").unwrap();
        assert!(matches!(Key::read(&file), Err(KeyError::TooShort { length: 5, .. })));
        fs::write(&file, "0123456789abcdef\n").unwrap();
        assert_eq!(format!("{:?}", Key::read(&file).unwrap()), "Key(..)");
        assert!(matches!(Key::read(&dir.path().join("none")), Err(KeyError::Read { .. })));
    }
}
