//! RSA keys, and what is encrypted with them.

use rsa::{
    Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey,
    pkcs1::DecodeRsaPrivateKey,
    pkcs8::{DecodePrivateKey, DecodePublicKey},
    rand_core::UnwrapErr,
};
use sha1::Sha1;

use super::{NoKey, Padding};

/// A server's public key.
#[derive(Clone, PartialEq)]
pub(super) struct PublicKey(RsaPublicKey);

impl PublicKey {
    pub(super) fn from_pem(text: &str) -> Result<Self, NoKey> {
        RsaPublicKey::from_public_key_pem(text).map(Self).map_err(|_| NoKey::NotInPem)
    }

    /// `None` where the key is too small for it.
    pub(super) fn encrypt(&self, padding: Padding, plain: &[u8]) -> Option<Vec<u8>> {
        let mut random = UnwrapErr(getrandom::SysRng);
        let encrypted = match padding {
            Padding::Oaep => self.0.encrypt(&mut random, Oaep::<Sha1>::new(), plain),
            Padding::Pkcs1 => self.0.encrypt(&mut random, Pkcs1v15Encrypt, plain),
        };
        encrypted.ok()
    }
}

/// A server's private key.
pub(super) struct PrivateKey(RsaPrivateKey);

impl PrivateKey {
    /// From PKCS #8 or PKCS #1.
    pub(super) fn from_pem(text: &str) -> Result<Self, NoKey> {
        let key = RsaPrivateKey::from_pkcs8_pem(text).ok().or_else(|| RsaPrivateKey::from_pkcs1_pem(text).ok());
        key.map(Self).ok_or(NoKey::NotInPem)
    }

    /// `None` where it was not encrypted so for this key.
    pub(super) fn decrypt(&self, padding: Padding, encrypted: &[u8]) -> Option<Vec<u8>> {
        let mut random = UnwrapErr(getrandom::SysRng);
        let plain = match padding {
            Padding::Oaep => self.0.decrypt_blinded(&mut random, Oaep::<Sha1>::new(), encrypted),
            Padding::Pkcs1 => self.0.decrypt_blinded(&mut random, Pkcs1v15Encrypt, encrypted),
        };
        plain.ok()
    }
}
