//! The tables that FreeBSD and macOS give through sysctl(3): who is asked, and numbers at offsets of their bytes.
//!
//! Any bytes may come: what lies beyond their end is absent, never a panic.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use fullpipe_socket::{Bytes, Info};

use crate::{owner::Owner, watcher::WatchError};

/// A process whose name could not be found so often has none that may be known.
const ATTEMPTS: u8 = 3;

/// What is asked of the system; tests answer in its place.
pub(crate) trait Tables: Send {
    /// The bytes of a sysctl.
    fn table(&self, name: &str) -> io::Result<Vec<u8>>;
    /// The name of a process.
    fn program(&self, pid: u32) -> Option<String>;
}

#[cfg(any(target_os = "freebsd", target_os = "macos"))]
impl Tables for fullpipe_host::freebsd::SystemKernel {
    fn table(&self, name: &str) -> io::Result<Vec<u8>> {
        Self::table(self, name)
    }

    fn program(&self, pid: u32) -> Option<String> {
        Self::program(self, pid)
    }
}

/// A table, or why it can't be had.
pub(crate) fn asked(tables: &impl Tables, name: &'static str) -> Result<Vec<u8>, WatchError> {
    tables.table(name).map_err(|source| WatchError::System { operation: name, source })
}

/// The states of BSD's TCP (netinet/tcp_fsm.h) that matter here.
pub(crate) mod state {
    pub(crate) const LISTEN: i32 = 1;
    pub(crate) const SYN_SENT: i32 = 2;
    pub(crate) const ESTABLISHED: i32 = 4;
    pub(crate) const FIN_WAIT_2: i32 = 9;

    /// Those that Linux is asked for: all in which payload may be on its way, and listeners.
    pub(crate) fn is_asked(state: i32) -> bool {
        matches!(state, LISTEN | SYN_SENT | ESTABLISHED..=FIN_WAIT_2)
    }
}

/// Whether both ends sent the option (`t_flags` of netinet/tcp_var.h, the same in both systems).
pub(crate) fn options(info: &mut Info, flags: u32) {
    const REQUESTED_SCALE: u32 = 0x20;
    const RECEIVED_SCALE: u32 = 0x40;
    const REQUESTED_STAMP: u32 = 0x80;
    const RECEIVED_STAMP: u32 = 0x100;
    const SACK: u32 = 0x200;
    let both = |bits: u32| Some(flags & bits == bits);
    info.scaling = both(REQUESTED_SCALE | RECEIVED_SCALE);
    info.timestamps = both(REQUESTED_STAMP | RECEIVED_STAMP);
    info.sack = both(SACK);
}

/// The threshold, unless it is where it starts: `TCP_MAXWIN << TCP_MAX_WINSHIFT`.
pub(crate) fn ssthresh(bytes: u32) -> Option<Bytes> {
    const INFINITE: u32 = 65_535 << 14;
    Some(bytes).filter(|&bytes| bytes > 0 && bytes < INFINITE).map(|bytes| Bytes::new(bytes.into()))
}

/// Numbers at offsets, in the machine's order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(crate) fn u16(self, at: usize) -> Option<u16> {
        self.chunk(at).map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(self, at: usize) -> Option<u32> {
        self.chunk(at).map(u32::from_ne_bytes)
    }

    pub(crate) fn i32(self, at: usize) -> Option<i32> {
        self.chunk(at).map(i32::from_ne_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> Option<u64> {
        self.chunk(at).map(u64::from_ne_bytes)
    }

    /// A number of bytes in four bytes.
    pub(crate) fn bytes(self, at: usize) -> Option<Bytes> {
        self.u32(at).map(|bytes| Bytes::new(bytes.into()))
    }

    /// Text of so many bytes, up to a zero.
    pub(crate) fn text(self, at: usize, length: usize) -> Option<String> {
        let text = self.0.get(at..at + length)?.split(|byte| *byte == 0).next().filter(|text| !text.is_empty())?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// An address of 16 bytes, of which IPv4 takes the last four, with a port in network byte order.
    pub(crate) fn end(self, address: usize, port: usize, is_v4: bool) -> Option<SocketAddr> {
        let ip = if is_v4 {
            IpAddr::from(Ipv4Addr::from(self.chunk::<4>(address + 12)?))
        } else {
            Ipv6Addr::from(self.chunk::<16>(address)?).to_canonical()
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(self.chunk(port)?)))
    }

    fn chunk<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    /// Cuts off the first `length` bytes; `None` where there are fewer, or none are asked for.
    pub(crate) fn split(&mut self, length: usize) -> Option<Self> {
        let (first, rest) = self.0.split_at_checked(length).filter(|_| length > 0)?;
        self.0 = rest;
        Some(Self(first))
    }
}

/// Owners that were found, by handle.
#[derive(Debug, Default)]
pub(crate) struct Found {
    owners: HashMap<u64, Owner>,
    missed: HashMap<u64, u8>,
}

impl Found {
    pub(crate) fn owner(&self, handle: u64) -> Option<&Owner> {
        self.owners.get(&handle)
    }

    /// Those of `handles` that are worth looking for.
    pub(crate) fn unknown(&self, handles: &mut dyn Iterator<Item = u64>) -> BTreeSet<u64> {
        handles
            .filter(|handle| *handle != 0 && !self.owners.contains_key(handle))
            .filter(|handle| self.missed.get(handle).is_none_or(|&times| times < ATTEMPTS))
            .collect()
    }

    pub(crate) fn add(&mut self, handle: u64, owner: Owner) {
        self.owners.insert(handle, owner);
    }

    pub(crate) fn miss(&mut self, handle: u64) {
        *self.missed.entry(handle).or_default() += 1;
    }

    /// Whether something was not found.
    pub(crate) fn hides(&self) -> bool {
        !self.missed.is_empty()
    }

    pub(crate) fn keep(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.owners.retain(|handle, _| is_there(*handle));
        self.missed.retain(|handle, _| is_there(*handle));
    }
}
