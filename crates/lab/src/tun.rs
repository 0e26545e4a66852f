//! A TUN device: whole IP packets with an offload header, read and written without blocking.

use std::{
    fs,
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::{LabError, sys, vnet::VNET_LEN};

/// Where the driver is.
pub(crate) const TUN_NODE: &str = "/dev/net/tun";

/// A TUN device. It goes away with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Tun {
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
        let descriptor = rustix::fs::open(TUN_NODE, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        sys::tun_set_iff(descriptor.as_fd(), name, sys::IFF_TUN | sys::IFF_NO_PI | sys::IFF_VNET_HDR)?;
        sys::tun_set_vnet_header_size(descriptor.as_fd(), VNET_LEN as _)?;
        Ok(Self { descriptor: Arc::new(descriptor) })
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
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&*self.descriptor, buffer) {
            Ok(read) => Ok(Some(read)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes one packet with its header.
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
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
