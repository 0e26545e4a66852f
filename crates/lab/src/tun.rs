//! A TUN device: whole IP packets with an offload header, read and written without blocking.
//!
//! One end of a pair of sockets behaves alike, which is how an emulated path ends at a stack in user space.

use std::{
    fs,
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType, socketpair,
        sockopt::{set_socket_send_buffer_size, set_socket_send_buffer_size_force},
    },
};

use crate::{LabError, sys, vnet::VNET_LEN};

/// Where the driver is.
pub(crate) const TUN_NODE: &str = "/dev/net/tun";

/// Bytes that a pair of sockets holds each way: some 40 super-packets, or 100 ms of 100 Mbit/s in small ones.
const PAIR_BUFFER: usize = 4 << 20;

/// A TUN device. It goes away with the last clone.
#[derive(Clone, Debug)]
pub struct Tun {
    descriptor: Arc<OwnedFd>,
}

/// What the kernel agreed to hand over as super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offload {
    /// TCP over IPv4 and IPv6, with ECN.
    TcpWithEcn,
    /// TCP over IPv4 and IPv6; a flow that uses ECN is segmented in software.
    Tcp,
    /// Nothing: each packet has wire size and a complete checksum. High rates will be out of reach.
    Off,
}

impl Tun {
    /// Makes the device `name` in the network namespace of the calling thread.
    pub(crate) fn create(name: &str) -> io::Result<Self> {
        Self::create_kind(name, sys::IFF_TUN)
    }

    /// Makes the device `name` as an Ethernet device (TAP).
    pub(crate) fn create_ethernet(name: &str) -> io::Result<Self> {
        Self::create_kind(name, sys::IFF_TAP)
    }

    fn create_kind(name: &str, kind: i16) -> io::Result<Self> {
        let descriptor = rustix::fs::open(TUN_NODE, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        sys::tun_set_iff(descriptor.as_fd(), name, kind | sys::IFF_NO_PI | sys::IFF_VNET_HDR)?;
        sys::tun_set_vnet_header_size(descriptor.as_fd(), VNET_LEN as _)?;
        Ok(Self { descriptor: Arc::new(descriptor) })
    }

    /// Two ends without a device: what one writes, the other reads.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn pair() -> io::Result<[Self; 2]> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&one, &other] {
            // The first takes CAP_NET_ADMIN and no bound, the second is cut off at net.core.wmem_max.
            if set_socket_send_buffer_size_force(end, PAIR_BUFFER).is_err() {
                set_socket_send_buffer_size(end, PAIR_BUFFER)?;
            }
        }
        Ok([one, other].map(|end| Self { descriptor: Arc::new(end) }))
    }

    /// Asks for super-packets, and falls back to what the kernel knows.
    pub(crate) fn enable_offload(&self) -> Offload {
        let tcp = sys::TUN_F_CSUM | sys::TUN_F_TSO4 | sys::TUN_F_TSO6;
        let fd = self.descriptor.as_fd();
        if sys::tun_set_offload(fd, tcp | sys::TUN_F_TSO_ECN).is_ok() {
            Offload::TcpWithEcn
        } else if sys::tun_set_offload(fd, tcp).is_ok() {
            Offload::Tcp
        } else {
            Offload::Off
        }
    }

    /// Reads one packet with its header; `None` where none waits.
    ///
    /// # Errors
    /// What the kernel says: the device is gone, for example.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&*self.descriptor, buffer) {
            Ok(read) => Ok(Some(read)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes one packet with its header.
    ///
    /// # Errors
    /// What the kernel says; `WouldBlock` where the other end of a pair does not read fast enough.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(&*self.descriptor, parts)?;
        Ok(())
    }

    /// Writes one packet that is complete, checksums and all.
    pub(crate) fn write_packet(&self, packet: &[u8]) -> io::Result<()> {
        self.write(&[IoSlice::new(&[0; VNET_LEN]), IoSlice::new(packet)])
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Whether this user may use the TUN driver.
pub(crate) fn check_access() -> Result<(), LabError> {
    use std::os::unix::fs::MetadataExt;

    match rustix::fs::open(TUN_NODE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => Ok(()),
        Err(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Err(LabError::TunMissing),
        Err(Errno::ACCESS | Errno::PERM) => match fs::metadata(TUN_NODE) {
            Ok(node) => Err(LabError::TunDenied { mode: node.mode() & 0o7777, owner: node.uid() }),
            Err(error) => Err(LabError::system("look at /dev/net/tun", error)),
        },
        Err(error) => Err(LabError::system("open /dev/net/tun", error)),
    }
}
