//! Sysctls under `/proc/sys`, which shows the `net` part of the calling thread's network namespace.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use fullpipe_knobs::{Address, Catalogue, Family};
use rustix::fs::{Access, access};

use super::machine;
use crate::{HostError, sysctl};

const ROOT: &str = "/proc/sys";

/// The sysctls of the catalogue, absent ones as absent, and all others of TCP and of the sockets beneath it that are
/// here: a kernel newer than the catalogue shows its settings too.
pub(super) fn all() -> Result<BTreeMap<Address, Option<String>>, HostError> {
    let mut values = BTreeMap::new();
    for address in
        Catalogue::for_family(Family::Linux).iter().flat_map(|catalogue| &catalogue.knobs).map(|knob| &knob.address)
    {
        if let Address::Sysctl(name) = address {
            note(&mut values, address, name)?;
        }
    }
    for (folder, wanted) in [("net/ipv4", is_wanted as fn(&str) -> bool), ("net/core", |_| true)] {
        let path = Path::new(ROOT).join(folder);
        let list = |source| HostError::File { operation: "list", path: path.display().to_string(), source };
        for entry in fs::read_dir(&path).map_err(list)? {
            let entry = entry.map_err(list)?;
            let Ok(file) = entry.file_name().into_string() else { continue };
            if !wanted(&file) || !entry.path().is_file() {
                continue;
            }
            let Some(name) = sysctl::name(Path::new(ROOT), &entry.path()) else { continue };
            note(&mut values, &Address::Sysctl(name.clone()), &name)?;
        }
    }
    Ok(values)
}

fn note(values: &mut BTreeMap<Address, Option<String>>, address: &Address, name: &str) -> Result<(), HostError> {
    match read(address, name) {
        Ok(value) => values.insert(address.clone(), value),
        // A few hold keys, and only root may read them: not readable is not a fact about the network.
        Err(HostError::NoPermission { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(())
}

fn is_wanted(file: &str) -> bool {
    (file.starts_with("tcp_") && !sysctl::is_secret(file))
        || ["ip_no_pmtu_disc", "ip_local_port_range", "ip_forward_use_pmtu"].contains(&file)
}

pub(super) fn read(address: &Address, name: &str) -> Result<Option<String>, HostError> {
    let file = sysctl::file(Path::new(ROOT), address, name)?;
    match fs::read(&file) {
        Ok(content) => Ok(Some(sysctl::shown(&String::from_utf8_lossy(&content)))),
        Err(source) if is_absent(&source) => Ok(None),
        Err(source) => Err(failed("read", address, &file, source)),
    }
}

/// Writes in one system call, as the kernel wants it, and puts the old value back where the kernel took half of it:
/// of a vector it stores each number before it looks at the next one.
pub(super) fn write(address: &Address, name: &str, value: &str) -> Result<(), HostError> {
    let file = sysctl::file(Path::new(ROOT), address, name)?;
    writable(address, name)?;
    let before = read(address, name)?;
    let Err(source) = put(&file, value) else { return Ok(()) };
    if let Some(before) = before
        && read(address, name)?.as_deref() != Some(before.as_str())
    {
        put(&file, &before).map_err(|source| failed("write", address, &file, source))?;
    }
    match source.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotFound | io::ErrorKind::InvalidData => {
            Err(HostError::Refused { address: address.clone(), value: value.to_owned(), source })
        }
        _ if source.raw_os_error() == Some(libc::ERANGE) => {
            Err(HostError::Refused { address: address.clone(), value: value.to_owned(), source })
        }
        _ => Err(failed("write", address, &file, source)),
    }
}

fn put(file: &Path, value: &str) -> io::Result<()> {
    let mut open = fs::OpenOptions::new().write(true).open(file)?;
    let line = format!("{value}\n");
    let written = open.write(line.as_bytes())?;
    if written == line.len() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

pub(super) fn writable(address: &Address, name: &str) -> Result<(), HostError> {
    let file = sysctl::file(Path::new(ROOT), address, name)?;
    let metadata = match fs::metadata(&file) {
        Ok(metadata) => metadata,
        Err(source) if is_absent(&source) => {
            let platform = machine::platform();
            return Err(HostError::Missing {
                operation: "write",
                address: address.clone(),
                platform: format!("Linux {}", platform.version),
            });
        }
        Err(source) => return Err(failed("write", address, &file, source)),
    };
    if metadata.permissions().mode() & 0o222 == 0 {
        let why =
            "in this network namespace; it belongs to the whole machine and is written outside, or it only informs";
        return Err(HostError::ReadOnly { address: address.clone(), why });
    }
    match access(&file, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::ROFS) => Err(HostError::ReadOnly {
            address: address.clone(),
            why: "because /proc/sys is mounted read-only, as containers do; run outside of the container",
        }),
        Err(errno) => {
            Err(HostError::NoPermission { operation: "write", address: address.clone(), source: errno.into() })
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn failed(operation: &'static str, address: &Address, file: &Path, source: io::Error) -> HostError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission { operation, address: address.clone(), source },
        io::ErrorKind::ReadOnlyFilesystem => HostError::ReadOnly {
            address: address.clone(),
            why: "because /proc/sys is mounted read-only, as containers do; run outside of the container",
        },
        _ => HostError::File { operation, path: file.display().to_string(), source },
    }
}
