//! TLS to a PostgreSQL server, by the two parameters of a URL that `psql` has for it: `sslmode` and `sslrootcert` (PostgreSQL 18, 32.19
//! "SSL Support").

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use postgres::config::SslMode;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{self, CryptoProvider},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The certificates that this machine trusts, by the name that libpq has for them.
const SYSTEM: &str = "system";

/// What the URL asks for, and the URL without it.
pub(super) struct Asked {
    /// What is left for the client library.
    pub(super) url: String,
    /// Whether the connection is encrypted.
    pub(super) mode: SslMode,
    /// How the server's certificate is checked.
    pub(super) connector: MakeRustlsConnect,
}

/// What is asked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Nothing: whoever listens can't read along, and somebody in the middle can.
    Nothing,
    /// That an authority vouches for it.
    Authority,
    /// And that it is this host's.
    Host,
}

/// Takes the parameters out of `url`.
///
/// # Errors
/// A sentence where one has no meaning here, or the certificates can't be read.
pub(super) fn asked(url: &str) -> Result<Asked, String> {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut named, mut roots) = ("prefer".to_owned(), None);
    let mut rest = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => named = decoded(value),
            Some(("sslrootcert", value)) => roots = Some(decoded(value)),
            _ => rest.push(parameter),
        }
    }
    let (mode, check) = match (named.as_str(), &roots) {
        ("disable", _) => (SslMode::Disable, Check::Nothing),
        ("prefer", _) => (SslMode::Prefer, Check::Nothing),
        // As libpq has it: whoever names authorities wants them asked, and all of the world's vouch for a name only.
        ("require", None) => (SslMode::Require, Check::Nothing),
        ("require" | "verify-ca", Some(place)) if place != SYSTEM => (SslMode::Require, Check::Authority),
        ("require" | "verify-ca" | "verify-full", _) => (SslMode::Require, Check::Host),
        _ => {
            return Err(format!(
                "sslmode={named} is none of disable, prefer, require, verify-ca and verify-full (allow is not supported)"
            ));
        }
    };
    let provider = Arc::new(crypto::ring::default_provider());
    let authorities = match check {
        Check::Nothing => None,
        Check::Authority | Check::Host => Some(verifier(roots.as_deref().unwrap_or(SYSTEM), &provider)?),
    };
    let checks = Arc::new(Checks { authorities, is_host_checked: check == Check::Host, provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(checks)
        .with_no_client_auth();
    let url = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
    Ok(Asked { url, mode, connector: MakeRustlsConnect::new(config) })
}

/// Those that a file names, or this machine trusts.
fn verifier(place: &str, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut roots = RootCertStore::empty();
    if place == SYSTEM {
        // One that can't be read is no reason to trust none.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        let wrong = |problem: &dyn ToString| format!("sslrootcert={place}: {}", problem.to_string());
        for certificate in CertificateDer::pem_file_iter(place).map_err(|error| wrong(&error))? {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
    }
    if roots.is_empty() {
        return Err(match place {
            SYSTEM => {
                "this machine has no certificates of authorities; name a file of them (sslrootcert=FILE)".to_owned()
            }
            _ => format!("sslrootcert={place}: there is no certificate in it (PEM)"),
        });
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| error.to_string())
}

/// `%2F` is `/`.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Checks as much of a certificate as was asked for; who holds it has to prove that in any case.
#[derive(Debug)]
struct Checks {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    is_host_checked: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Checks {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        match authorities.verify_server_cert(certificate, between, name, status, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_host_checked => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_gets_the_url_without_what_it_does_not_know() {
        let asked = |url| asked(url).map(|asked| (asked.url, asked.mode));
        assert_eq!(asked("postgres://u@h/d"), Ok(("postgres://u@h/d".to_owned(), SslMode::Prefer)));
        assert_eq!(
            asked("postgres://u@h/d?connect_timeout=3&sslmode=require&keepalives=1"),
            Ok(("postgres://u@h/d?connect_timeout=3&keepalives=1".to_owned(), SslMode::Require))
        );
        assert_eq!(asked("postgres://u@h/d?sslmode=disable"), Ok(("postgres://u@h/d".to_owned(), SslMode::Disable)));
        let wrong = asked("postgres://u@h/d?sslmode=verify-all").unwrap_err();
        assert!(wrong.contains("verify-all") && wrong.contains("verify-full"), "{wrong}");
    }

    #[test]
    fn authorities_that_cannot_be_read_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a b.crt");
        let url = format!("postgres://u@h/d?sslmode=verify-full&sslrootcert={}", place.display()).replace(' ', "%20");
        let wrong = asked(&url).err().unwrap();
        assert!(wrong.contains("a b.crt"), "{wrong}");
        std::fs::write(&place, "no certificate").unwrap();
        let wrong = asked(&url).err().unwrap();
        assert!(wrong.contains("no certificate in it"), "{wrong}");
    }
}
