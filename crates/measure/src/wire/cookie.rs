//! The 37 bytes that open every connection: 36 characters and a NUL.

use std::fmt;

use crate::error::Foreign;

pub(crate) const COOKIE_LEN: usize = 37;

/// iperf3's alphabet since 3.2.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What tells the connections of one test from those of another. Opaque: older clients fill it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cookie([u8; COOKIE_LEN]);

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.iter().take_while(|byte| **byte != 0).map(|&byte| char::from(byte)).collect();
        f.write_str(&text)
    }
}

impl Cookie {
    /// A new one from the system's random source.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0u8; COOKIE_LEN];
        getrandom::fill(&mut bytes)?;
        let mut cookie = bytes.map(|byte| ALPHABET[usize::from(byte % 32)]);
        cookie[COOKIE_LEN - 1] = 0;
        Ok(Self(cookie))
    }

    /// What a client sent, or what it seems to be instead of one: a cookie is printable text, padded with NULs.
    pub(crate) fn received(bytes: [u8; COOKIE_LEN]) -> Result<Self, Foreign> {
        let text = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let printable = bytes[..text].iter().all(|byte| (b' '..=b'~').contains(byte));
        if text > 0 && text < COOKIE_LEN && printable { Ok(Self(bytes)) } else { Err(Foreign::named_by(&bytes)) }
    }

    pub(crate) fn as_bytes(&self) -> &[u8; COOKIE_LEN] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_differ_and_are_accepted() {
        let (a, b) = (Cookie::random().unwrap(), Cookie::random().unwrap());
        assert_ne!(a, b);
        assert_eq!(Cookie::received(*a.as_bytes()), Ok(a));
    }

    #[test]
    fn an_old_cookie_of_host_time_and_hex_is_accepted() {
        let mut bytes = [0u8; COOKIE_LEN];
        bytes[..31].copy_from_slice(b"host.1400000000.123456.6b8b4567");
        assert!(Cookie::received(bytes).is_ok());
    }

    #[test]
    fn a_browser_and_an_iperf2_client_are_not_cookies() {
        let mut web = [b'x'; COOKIE_LEN];
        web[..16].copy_from_slice(b"GET / HTTP/1.1\r\n");
        assert_eq!(Cookie::received(web), Err(Foreign::Http));
        let mut iperf2 = [0u8; COOKIE_LEN];
        (iperf2[7], iperf2[11]) = (1, 137);
        iperf2[24..34].copy_from_slice(b"4567890123");
        assert_eq!(Cookie::received(iperf2), Err(Foreign::Iperf2));
        assert!(Cookie::received([b'0'; COOKIE_LEN]).is_err());
    }
}
