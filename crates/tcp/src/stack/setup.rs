//! What a stack is made of and how it is set up: memory, device, addresses, policy.

use core::net::IpAddr;

use super::Entry;
use crate::{
    hash::SecretKey,
    pool::{Pool, PoolMemory},
    profile::Profile,
};

/// The memory of a stack: packet buffers and socket entries.
pub trait Storage {
    /// The pool and the entries. Each call gives the same memory.
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]);

    /// The entries alone.
    fn entries(&mut self) -> &mut [Entry] {
        self.parts().1
    }
}

/// Memory for `SOCKETS` sockets and a pool of `BUFFERS` buffers of `SIZE` bytes.
#[derive(Debug)]
pub struct StackMemory<const SOCKETS: usize, const BUFFERS: usize = 256, const SIZE: usize = 1548> {
    pool: PoolMemory<BUFFERS, SIZE>,
    entries: [Entry; SOCKETS],
}

impl<const SOCKETS: usize, const BUFFERS: usize, const SIZE: usize> StackMemory<SOCKETS, BUFFERS, SIZE> {
    /// Memory with nothing in it.
    pub const fn new() -> Self {
        Self { pool: PoolMemory::new(), entries: [Entry::FREE; SOCKETS] }
    }
}

impl<const SOCKETS: usize, const BUFFERS: usize, const SIZE: usize> Default for StackMemory<SOCKETS, BUFFERS, SIZE> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SOCKETS: usize, const BUFFERS: usize, const SIZE: usize> Storage for StackMemory<SOCKETS, BUFFERS, SIZE> {
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]) {
        (self.pool.pool(), &mut self.entries)
    }

    fn entries(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}

impl<S: Storage> Storage for &mut S {
    fn parts(&mut self) -> (Pool<'_>, &mut [Entry]) {
        (**self).parts()
    }
}

/// What the device does for the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The largest IP packet, in bytes.
    pub mtu: u16,
    /// The device completes TCP checksums: the stack leaves the pseudo-header's sum in the field.
    pub checksum_offload: bool,
    /// Data bytes that the device splits into segments by itself (TSO); zero where it does not.
    pub burst: u32,
}

impl Device {
    /// A device of this MTU that does nothing for the stack.
    pub const fn plain(mtu: u16) -> Self {
        Self { mtu, checksum_offload: false, burst: 0 }
    }
}

/// How a stack is set up.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// The device.
    pub device: Device,
    /// The policy.
    pub profile: Profile,
    /// This host's addresses.
    pub addresses: [Option<IpAddr>; 4],
    /// Whether a full backlog is defended by SYN cookies; such connections lack all options but the segment size.
    pub syn_cookies: bool,
    /// Whether every SYN is answered by a cookie, not only where a backlog is full (FreeBSD's `syncookies_only`, Linux's
    /// `tcp_syncookies=2`).
    pub syn_cookies_only: bool,
    /// A secret drawn at random, for this start of the stack only.
    pub key: SecretKey,
    /// This host's UDP port for TCP in UDP datagrams, by which such segments come and go (FreeBSD's
    /// `net.inet.tcp.udp_tunneling_port`).
    #[cfg(feature = "platforms")]
    pub udp_port: Option<core::num::NonZeroU16>,
    /// The key of fast-open cookies (RFC 7413, section 4.1.2), where servers share one; else the secret above.
    #[cfg(feature = "fast-open")]
    pub fast_open_key: SecretKey,
}

impl Config {
    /// A host with one address.
    pub const fn new(address: IpAddr, device: Device, key: SecretKey) -> Self {
        let addresses = [Some(address), None, None, None];
        Self {
            profile: Profile::DEFAULT,
            addresses,
            device,
            key,
            syn_cookies: true,
            syn_cookies_only: false,
            #[cfg(feature = "platforms")]
            udp_port: None,
            #[cfg(feature = "fast-open")]
            fast_open_key: key,
        }
    }
}
