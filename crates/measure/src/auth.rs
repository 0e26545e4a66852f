//! Who may test, as iperf3 knows it: a name, a password and the moment, encrypted with the server's RSA key. Without the feature
//! `authentication` there is no RSA in the build, and a key file is an error that says so.
//!
//! The token can be used again by whoever overhears it within the allowed difference of the clocks: it keeps strangers
//! out and is no seal of what follows. What changes settings has a seal of its own (`fullpipe-tune`).
//!
//! iperf3 pads by PKCS #1 v1.5 up to 3.16 and by OAEP from 3.17. A server that answers a bad padding sooner than a good
//! one lets a patient client decrypt what it overheard (Bleichenbacher; "Marvin", RUSTSEC-2023-0071). Hence the crate's
//! constant-time line (0.10), decryption with blinding, and a server that gives every answer after the same time.

use std::{
    collections::HashMap,
    fmt, fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};

#[cfg_attr(not(feature = "authentication"), path = "auth/no_keys.rs")]
mod keys;

use self::keys::{PrivateKey, PublicKey};
use crate::error::clean;

/// Every answer to a token comes after this, whatever it took to look at it.
pub(crate) const ANSWER_AFTER: Duration = Duration::from_millis(250);

/// The most names that a file may have.
const MOST_USERS: usize = 10_000;

/// Why names or keys can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A file can't be read.
    #[error("reading {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds no such key.
    #[error("{file} holds no RSA {which} key in PEM; make one with `openssl genrsa` and `openssl rsa -pubout`")]
    Key {
        /// The file.
        file: String,
        /// `public` or `private`.
        which: &'static str,
    },
    /// A line of the file is no name with a digest.
    #[error("{file}, line {line}: expected NAME,SHA256 where the digest is of `{{NAME}}PASSWORD`")]
    Users {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// This build has no RSA.
    #[error("this build has no authentication: build it with the feature `authentication` to use {file}")]
    LeftOut {
        /// The file.
        file: String,
    },
    /// Name and password don't fit into what the key encrypts, or have blanks in them.
    #[error("the name and password have blanks, or are too long for the server's key")]
    Unfit,
}

/// Why a text gives no key.
#[derive(Clone, Copy)]
#[expect(dead_code, reason = "a build makes one of the two")]
enum NoKey {
    NotInPem,
    LeftOut,
}

impl NoKey {
    fn into_error(self, file: &Path, which: &'static str) -> AuthError {
        let file = file.display().to_string();
        match self {
            Self::NotInPem => AuthError::Key { file, which },
            Self::LeftOut => AuthError::LeftOut { file },
        }
    }
}

/// How a token is padded before it is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// iperf3 3.17 and later.
    #[default]
    Oaep,
    /// Up to 3.16.
    Pkcs1,
}

/// What a client shows to a server.
#[derive(Clone, PartialEq)]
pub struct Credentials {
    user: String,
    password: String,
    key: PublicKey,
    padding: Padding,
}

impl fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).field("padding", &self.padding).finish_non_exhaustive()
    }
}

impl Credentials {
    /// `key_file` holds the server's public key.
    ///
    /// # Errors
    /// [`AuthError`].
    pub fn new(user: &str, password: &str, key_file: &Path, padding: Padding) -> Result<Self, AuthError> {
        let text = read(key_file)?;
        let key = PublicKey::from_pem(&text).map_err(|error| error.into_error(key_file, "public"))?;
        let credentials = Self { user: user.to_owned(), password: password.to_owned(), key, padding };
        // The server reads words: a blank would end one.
        let has_blank = |text: &str| text.is_empty() || text.contains(char::is_whitespace);
        if has_blank(user) || has_blank(password) || credentials.token(SystemTime::now()).is_none() {
            return Err(AuthError::Unfit);
        }
        Ok(credentials)
    }

    /// For `authtoken`. `None` where the key is too small for it.
    pub(crate) fn token(&self, now: SystemTime) -> Option<String> {
        let plain = format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, unix(now));
        Some(Base64::encode_string(&self.key.encrypt(self.padding, plain.as_bytes())?))
    }
}

/// Who may test at a server.
pub struct Users {
    key: PrivateKey,
    /// Lower-case hexadecimal digits of SHA-256, by name.
    digests: HashMap<String, String>,
    skew: Duration,
    padding: Padding,
}

impl fmt::Debug for Users {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("count", &self.digests.len()).field("skew", &self.skew).finish_non_exhaustive()
    }
}

impl Users {
    /// `key_file` holds the private key, `users_file` a line per name: `NAME,SHA256` of `{NAME}PASSWORD`, `#` for a
    /// comment. `skew` is how far the clocks of both ends may be apart.
    ///
    /// # Errors
    /// [`AuthError`].
    pub fn read(key_file: &Path, users_file: &Path, skew: Duration) -> Result<Self, AuthError> {
        let text = read(key_file)?;
        let key = PrivateKey::from_pem(&text).map_err(|error| error.into_error(key_file, "private"))?;
        let file = users_file.display().to_string();
        let mut digests = HashMap::new();
        for (number, line) in read(users_file)?.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_digest = |digest: &str| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            let (name, digest) = line
                .split_once(',')
                .map(|(name, digest)| (name.trim(), digest.trim()))
                .filter(|(name, digest)| !name.is_empty() && is_digest(digest) && digests.len() < MOST_USERS)
                .ok_or_else(|| AuthError::Users { file: file.clone(), line: number + 1 })?;
            digests.insert(name.to_owned(), digest.to_ascii_lowercase());
        }
        Ok(Self { key, digests, skew, padding: Padding::Oaep })
    }

    /// With [`Padding::Pkcs1`] clients before 3.17 are let in, too; newer ones are in any case.
    #[must_use]
    pub fn with_padding(self, padding: Padding) -> Self {
        Self { padding, ..self }
    }

    /// The name that the token shows, or why it is not let in.
    pub(crate) fn check(&self, token: Option<&str>, now: SystemTime) -> Result<String, &'static str> {
        let token = token.ok_or("it showed no name and password")?;
        let encrypted = Base64::decode_vec(token).map_err(|_| "its token is no base64")?;
        let plain = match self.padding {
            Padding::Oaep => self.open(&encrypted, Padding::Oaep).ok_or(
                "its token is not for this server's key, or padded as iperf3 does up to 3.16 (let in with \
                     --use-pkcs1-padding)",
            ),
            Padding::Pkcs1 => [Padding::Oaep, Padding::Pkcs1]
                .into_iter()
                .find_map(|padding| self.open(&encrypted, padding))
                .ok_or("its token is not for this server's key"),
        };
        let (user, password, seconds) = plain?;
        if seconds.abs_diff(unix(now)) > self.skew.as_secs() {
            return Err("its clock is too far from this one");
        }
        let digest = Sha256::digest(format!("{{{user}}}{password}").as_bytes());
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if self.digests.get(&user) == Some(&digits) { Ok(clean(&user)) } else { Err("its name or password is wrong") }
    }

    fn open(&self, encrypted: &[u8], padding: Padding) -> Option<(String, String, u64)> {
        let text = String::from_utf8(self.key.decrypt(padding, encrypted)?).ok()?;
        let mut words = text.split_whitespace();
        let mut after = |name: &str| words.next().filter(|word| *word == name).and_then(|_| words.next());
        let (user, password) = (after("user:")?, after("pwd:")?);
        Some((user.to_owned(), password.to_owned(), after("ts:")?.parse().ok()?))
    }
}

fn read(file: &Path) -> Result<String, AuthError> {
    fs::read_to_string(file).map_err(|source| AuthError::Read { file: file.display().to_string(), source })
}

fn unix(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
