//! Pages that the kernel sends as they are, and the pipe through which they get into a connection (vmsplice, splice).
#![expect(
    unsafe_code,
    reason = "mmap, munmap and vmsplice, whose safety is about memory that the kernel goes on reading"
)]

use std::{io, net::TcpStream, os::fd::OwnedFd, ptr, slice};

use rustix::{
    mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap},
    pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice},
};

/// What one huge page has on most systems: within it neighbouring pieces of a segment merge.
const HUGE: usize = 2 << 20;

/// The largest pipe that everybody may have (`/proc/sys/fs/pipe-max-size`): 256 pages.
const PIPE: usize = 1 << 20;

/// A huge page full of noise that nobody can write to any more.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Of the mapping, which is twice as long, so that a huge page lies within it wherever it starts.
    mapping: usize,
    /// Of the huge page.
    start: usize,
}

impl Pages {
    /// Repeats `noise`.
    pub(crate) fn filled_with(noise: &[u8]) -> io::Result<Self> {
        let (read, all) = (ProtFlags::READ, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let mapping = unsafe { mmap_anonymous(ptr::null_mut(), 2 * HUGE, all, MapFlags::PRIVATE)? } as usize;
        let pages = Self { mapping, start: mapping.next_multiple_of(HUGE) };
        let start = pages.start as *mut u8;
        // SAFETY: HUGE bytes from the first multiple of HUGE on lie within the mapping of twice that; this changes how they
        // are backed and not what is in them. Where it is refused, small pages do.
        unsafe { madvise(start.cast(), HUGE, Advice::LinuxHugepage) }.unwrap_or_default();
        // SAFETY: as above; the mapping is writable and nobody else knows of it yet.
        let bytes = unsafe { slice::from_raw_parts_mut(start, HUGE) };
        for (byte, noise) in bytes.iter_mut().zip(noise.iter().cycle()) {
            *byte = *noise;
        }
        // SAFETY: the slice above is used no more; from here on the bytes are only read.
        unsafe { mprotect(start.cast(), HUGE, MprotectFlags::from_bits_retain(read.bits()))? };
        Ok(pages)
    }

    /// The first `len` bytes; at most a huge page.
    pub(crate) fn first(&self, len: usize) -> &[u8] {
        // SAFETY: the bytes are mapped and can't be written as long as `self` lives.
        unsafe { slice::from_raw_parts(self.start as *const u8, len.min(HUGE)) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no slice of it outlives `self`. What the kernel still has to send it holds by
        // the pages themselves, not by our mapping of them.
        unsafe { munmap(self.mapping as *mut _, 2 * HUGE) }.unwrap_or_default();
    }
}

/// A pipe whose pages go on into a connection.
#[derive(Debug)]
pub(crate) struct Splicer {
    out: OwnedFd,
    into: OwnedFd,
    /// In the pipe, not yet in the connection.
    waiting: usize,
}

impl Splicer {
    pub(crate) fn new() -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setpipe_size(&into, PIPE)?;
        Ok(Self { out, into, waiting: 0 })
    }

    /// Hands over a message of `len` bytes, or the rest of the last one.
    pub(crate) fn send(&mut self, stream: &TcpStream, pages: &Pages, len: usize) -> io::Result<usize> {
        if self.waiting == 0 {
            let message = [IoSliceRaw::from_slice(pages.first(len.min(PIPE)))];
            // SAFETY: the pipe's writing end is given, so that the pages are only read, and they are never written again,
            // however long the kernel keeps them.
            self.waiting = unsafe { vmsplice(&self.into, &message, SpliceFlags::empty())? };
        }
        let count = splice(&self.out, None, stream, None, self.waiting, SpliceFlags::MOVE)?;
        self.waiting -= count;
        Ok(count)
    }
}
