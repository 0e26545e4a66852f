//! Buffers of connections to one destination as settings: a program in the kernel sets them before each handshake
//! (`fullpipe-bpf`). It is pinned, so that it stays as a route does: until it is taken away, or the machine restarts.

use std::{
    fs, io,
    mem::size_of,
    num::NonZeroU32,
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
};

use fullpipe_bpf::{BpfError, Buffers, Destinations, Place};
use fullpipe_knobs::{
    Address, Settings, parse_destination,
    planner::destination::{BUFFER_OPTIONS, BufferOption},
};
use rustix::{
    fs::{Mode, OFlags, openat},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};

use super::unknown;
use crate::HostError;

/// Where the BPF file system is mounted, if it is not where systemd mounts it.
const BPF_DIR: &str = "FULLPIPE_BPF_DIR";
const USUAL_BPF_DIR: &str = "/sys/fs/bpf";
/// The folder in it.
const FOLDER: &str = "fullpipe";
/// `SO_NETNS_COOKIE` of asm-generic/socket.h (Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// One of the two buffers of a place.
struct Slot {
    place: Place,
    option: &'static BufferOption,
}

impl Slot {
    fn parse(address: &Address, destination: &str, option: &str) -> Result<Self, HostError> {
        let network = parse_destination(destination).map_err(|error| unknown(address, &format!("{error}")))?;
        let option = BUFFER_OPTIONS.iter().find(|known| known.name == option).ok_or_else(|| {
            let names = BUFFER_OPTIONS.map(|known| known.name);
            unknown(address, &format!("a destination's options are {}", names.join(", ")))
        })?;
        let namespace = namespace().map_err(|source| HostError::Inaccessible {
            operation: "find the namespace of",
            address: address.clone(),
            source,
        })?;
        Ok(Self { place: Place { namespace, network }, option })
    }

    fn size<'b>(&self, buffers: &'b mut Buffers) -> &'b mut Option<NonZeroU32> {
        if self.option.name == "SO_SNDBUF" { &mut buffers.send } else { &mut buffers.receive }
    }
}

/// Those of this network namespace. Who may not look finds none.
pub(super) fn collect(settings: &mut Settings) -> Result<(), HostError> {
    let Ok(namespace) = namespace() else { return Ok(()) };
    let found = match destinations().all(namespace) {
        Ok(found) => found,
        Err(BpfError::Denied { .. }) => return Ok(()),
        Err(error) => {
            let address = Address::Destination { destination: String::new(), option: String::new() };
            return Err(failed("read", &address, error));
        }
    };
    for (place, buffers) in found {
        for (option, size) in BUFFER_OPTIONS.iter().zip([buffers.receive, buffers.send]) {
            let address =
                Address::Destination { destination: place.network.to_string(), option: option.name.to_owned() };
            settings.values.extend(size.map(|size| (address, Some(size.to_string()))));
        }
    }
    Ok(())
}

pub(super) fn read(address: &Address, destination: &str, option: &str) -> Result<Option<String>, HostError> {
    let slot = Slot::parse(address, destination, option)?;
    let mut buffers = destinations().read(&slot.place).map_err(|error| failed("read", address, error))?;
    Ok(slot.size(&mut buffers).map(|size| size.to_string()))
}

pub(super) fn writable(address: &Address, destination: &str, option: &str) -> Result<(), HostError> {
    read(address, destination, option).map(drop)
}

/// The value is canonical.
pub(super) fn write(address: &Address, destination: &str, option: &str, value: Option<&str>) -> Result<(), HostError> {
    let slot = Slot::parse(address, destination, option)?;
    let size = value.and_then(|value| value.parse().ok());
    if let Some(size) = size {
        within_bound(address, &slot, size)?;
    }
    let failed = |error| failed("write", address, error);
    let mut buffers = destinations().read(&slot.place).map_err(failed)?;
    *slot.size(&mut buffers) = size;
    destinations().write(&slot.place, buffers, root_of_groups).map_err(failed)
}

/// What the kernel would cut without a word.
fn within_bound(address: &Address, slot: &Slot, size: NonZeroU32) -> Result<(), HostError> {
    let file = format!("/proc/sys/{}", slot.option.bound.replace('.', "/"));
    // Where it can't be read (a namespace before Linux 6.17), what a connection gets tells.
    let bound: Option<u32> = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    match bound.filter(|bound| size.get() > *bound) {
        None => Ok(()),
        Some(bound) => Err(HostError::InvalidValue {
            address: address.clone(),
            value: size.to_string(),
            expected: format!("at most {bound}, which {} allows", slot.option.bound),
        }),
    }
}

fn destinations() -> Destinations {
    let mounted = std::env::var_os(BPF_DIR).filter(|folder| !folder.is_empty());
    Destinations::new(mounted.map_or_else(|| PathBuf::from(USUAL_BPF_DIR), PathBuf::from).join(FOLDER))
}

/// The root of control groups, whether or not it is mounted anywhere.
fn root_of_groups() -> io::Result<OwnedFd> {
    let kind = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&kind)?;
    let root = fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok(openat(&root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The cookie of the calling thread's network namespace.
#[expect(unsafe_code, reason = "rustix does not have this option")]
fn namespace() -> io::Result<u64> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
        .or_else(|_| rustix::net::socket(rustix::net::AddressFamily::INET6, rustix::net::SocketType::DGRAM, None))?;
    let mut cookie = 0u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `size` bytes to `cookie`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, (&raw mut cookie).cast(), &raw mut size)
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

fn failed(operation: &'static str, address: &Address, error: BpfError) -> HostError {
    let address = address.clone();
    match error {
        BpfError::Denied { .. } => HostError::NoPermission {
            operation,
            address,
            source: io::Error::new(io::ErrorKind::PermissionDenied, error),
        },
        error => HostError::Inaccessible { operation, address, source: io::Error::other(error) },
    }
}
