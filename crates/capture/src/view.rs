//! A part of a packet: the bytes that were captured, and how many there were when it was sent. What is *not* here: what
//! any of them mean.

use crate::problem::ProblemKind;

/// What a walk through headers ends with.
pub(crate) type Walked = Result<(), ProblemKind>;

/// The rest of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// What was captured of it.
    pub(crate) bytes: &'a [u8],
    /// How long it was as sent; never less than what was captured.
    pub(crate) len: u32,
}

impl<'a> View<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], len: u32) -> Self {
        Self { bytes, len: len.max(bytes.len() as u32) }
    }

    /// What comes after `count` bytes.
    #[inline]
    pub(crate) fn skip(self, count: usize) -> Result<Self, ProblemKind> {
        let bytes = self.bytes.get(count..).ok_or(ProblemKind::HeadersCut)?;
        Ok(Self { bytes, len: self.len - count as u32 })
    }

    /// No more than the first `len` bytes.
    #[inline]
    pub(crate) fn first(self, len: u32) -> Self {
        let captured = self.bytes.len().min(len as usize);
        Self { bytes: &self.bytes[..captured], len: self.len.min(len) }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(self, at: usize) -> Result<[u8; N], ProblemKind> {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(ProblemKind::HeadersCut)
    }

    #[inline]
    pub(crate) fn u8(self, at: usize) -> Result<u8, ProblemKind> {
        self.bytes.get(at).copied().ok_or(ProblemKind::HeadersCut)
    }

    /// Two bytes in network byte order.
    #[inline]
    pub(crate) fn u16(self, at: usize) -> Result<u16, ProblemKind> {
        self.array(at).map(u16::from_be_bytes)
    }

    /// Four bytes in network byte order.
    #[inline]
    pub(crate) fn u32(self, at: usize) -> Result<u32, ProblemKind> {
        self.array(at).map(u32::from_be_bytes)
    }
}
