//! The fast-open option (RFC 7413, section 4.1.1), and its form before it had a number of its own.

/// A fast-open cookie, or a request for one, which is a cookie of no bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; Self::MOST],
    len: u8,
}

impl Cookie {
    /// The least length (RFC 7413, section 4.1.1).
    const LEAST: usize = 4;
    /// The greatest.
    const MOST: usize = 16;
    /// No cookie: as an option, a request.
    pub const NONE: Self = Self { bytes: [0; Self::MOST], len: 0 };

    /// The cookie of these bytes; `None` where their number is odd or out of bounds: such an option MUST be ignored.
    /// No bytes make a request.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let is_right = bytes.len().is_multiple_of(2) && (Self::LEAST..=Self::MOST).contains(&bytes.len());
        if !is_right && !bytes.is_empty() {
            return None;
        }
        let mut cookie = Self { len: bytes.len() as u8, ..Self::NONE };
        cookie.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(cookie)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Whether this is a request.
    pub const fn is_none(&self) -> bool {
        self.len == 0
    }
}

impl core::fmt::Debug for Cookie {
    /// A cookie opens a server to whoever forges its owner's address: it is not for logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Cookie({} bytes)", self.len)
    }
}

/// How the option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Kind 34.
    Standard,
    /// Kind 254 with the drafts' number (RFC 6994), which old servers know.
    Experimental,
}

/// The option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpen {
    /// The cookie.
    pub cookie: Cookie,
    /// Its form.
    pub format: Format,
}

/// Its kind.
pub(super) const KIND: u8 = 34;
/// The kind of shared experiments.
pub(super) const EXPERIMENT: u8 = 254;
/// The number of this one.
const EXPERIMENT_ID: [u8; 2] = [0xf9, 0x89];

impl FastOpen {
    /// Reads an option, kind and length included. What is not right is no option.
    pub(super) fn parse(option: &[u8]) -> Option<Self> {
        let (format, bytes) = match *option {
            [KIND, _, ref bytes @ ..] => (Format::Standard, bytes),
            [EXPERIMENT, _, a, b, ref bytes @ ..] if [a, b] == EXPERIMENT_ID => (Format::Experimental, bytes),
            _ => return None,
        };
        Some(Self { cookie: Cookie::new(bytes)?, format })
    }

    /// Writes the option.
    pub(super) fn write(&self, w: &mut super::Writer<'_>) {
        let cookie = self.cookie.as_slice();
        match self.format {
            Format::Standard => w.put(&[KIND, 2 + cookie.len() as u8]),
            Format::Experimental => {
                w.put(&[EXPERIMENT, 4 + cookie.len() as u8]);
                w.put(&EXPERIMENT_ID);
            }
        }
        w.put(cookie);
    }
}
