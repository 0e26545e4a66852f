//! FreeBSD, and macOS to look at: sysctls by their number in the kernel's tree, interfaces through ifconfig(8), and the
//! boot-time files.
//!
//! The adapter stands on one small trait, [`Kernel`], and is the same code everywhere; the running system's own is behind
//! `cfg(target_os)`. It was built for both systems and **not run on either**; its logic runs in tests on a kernel in
//! memory and on files in a folder. On macOS nothing is written: what lasts there is a launch daemon's business, and a
//! plan can be exported.
//!
//! Only sysctls that the catalogue has are touched: a plan comes from a file, and the rest of the kernel is not ours to
//! offer. What is *not* here: routes.

pub(crate) mod boot;
mod conf_file;
mod ifconfig;
mod oid;
#[cfg(any(target_os = "freebsd", target_os = "macos"))]
mod system;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{Address, Catalogue, Change, Family, MachineFacts, Platform, Settings, catalogue::Honoured};
use fullpipe_units::Bytes;

pub use oid::Oid;
#[cfg(any(target_os = "freebsd", target_os = "macos"))]
pub use system::SystemKernel;

use self::boot::Keeper;
use crate::{BootFile, Host, HostError, Identity, Lasting, Output, value::canonical};

/// Which of the two systems it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bsd {
    /// FreeBSD.
    FreeBsd,
    /// macOS, which is only read.
    MacOs,
}

impl Bsd {
    /// As the catalogue has it.
    pub const fn family(self) -> Family {
        match self {
            Self::FreeBsd => Family::FreeBsd,
            Self::MacOs => Family::MacOs,
        }
    }

    fn catalogue(self) -> Option<&'static Catalogue> {
        Catalogue::for_family(self.family())
    }
}

/// What the adapter needs of the system.
pub trait Kernel {
    /// A sysctl; `None` where this system has none of that name.
    fn sysctl(&self, name: &str) -> io::Result<Option<Oid>>;
    /// Sets a sysctl to the bytes of [`Oid::encode`].
    fn set_sysctl(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Runs ifconfig(8).
    fn ifconfig(&mut self, arguments: &[&str]) -> io::Result<Output>;
}

/// A FreeBSD or a macOS.
#[derive(Clone, Debug)]
pub struct BsdHost<K> {
    system: Bsd,
    kernel: K,
    root: PathBuf,
}

#[cfg(any(target_os = "freebsd", target_os = "macos"))]
impl BsdHost<SystemKernel> {
    /// The system that this program runs on.
    pub fn new() -> Self {
        let system = if cfg!(target_os = "freebsd") { Bsd::FreeBsd } else { Bsd::MacOs };
        Self::with(system, SystemKernel, "/")
    }
}

#[cfg(any(target_os = "freebsd", target_os = "macos"))]
impl Default for BsdHost<SystemKernel> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Kernel> BsdHost<K> {
    /// A host over a kernel, with its boot-time files below `root`.
    pub fn with(system: Bsd, kernel: K, root: impl Into<PathBuf>) -> Self {
        Self { system, kernel, root: root.into() }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.kernel.sysctl(name).ok().flatten()?.text()
    }

    fn size(&self, names: &[&str]) -> Option<Bytes> {
        let found = names.iter().find_map(|name| self.kernel.sysctl(name).ok().flatten());
        found.and_then(|oid| oid.unsigned()).map(Bytes::new)
    }

    /// `freebsd` and `14.1` of `14.1-RELEASE-p5`; `macos` and the version of the product.
    fn platform(&self) -> Platform {
        let version = match self.system {
            Bsd::FreeBsd => self.text("kern.osrelease"),
            Bsd::MacOs => self.text("kern.osproductversion"),
        };
        let number: String =
            version.unwrap_or_default().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        Platform { family: self.system.family(), version: number }
    }

    /// Refuses what the catalogue doesn't have.
    fn known(&self, address: &Address) -> Result<(), HostError> {
        let found = self.system.catalogue().and_then(|catalogue| catalogue.find(address)).is_some();
        let here = matches!(address, Address::Sysctl(_) | Address::Link { .. });
        if found && here {
            return Ok(());
        }
        let why = format!("only sysctls and MTUs of the catalogue are read and written on {}", self.system.family());
        Err(HostError::UnknownAddress { address: address.clone(), why })
    }

    fn oid(&self, operation: &'static str, address: &Address, name: &str) -> Result<Oid, HostError> {
        let missing = || {
            let platform = self.platform();
            let platform = format!("{} {}", platform.family, platform.version);
            HostError::Missing { operation, address: address.clone(), platform }
        };
        self.kernel.sysctl(name).map_err(|source| failed(operation, address, source))?.ok_or_else(missing)
    }

    fn links(&mut self, operation: &'static str, address: &Address) -> Result<Vec<fullpipe_knobs::Link>, HostError> {
        let output = self.run(operation, address, &["-a"])?;
        Ok(ifconfig::links(&String::from_utf8_lossy(&output.stdout)))
    }

    fn mtu(&mut self, operation: &'static str, address: &Address, device: &str) -> Result<Option<u32>, HostError> {
        let link = self.links(operation, address)?.into_iter().find(|link| link.device == device);
        let link = link.ok_or_else(|| HostError::ObjectGone {
            operation,
            address: address.clone(),
            why: format!("there is no interface {device}; `ifconfig -l` lists those that there are"),
        })?;
        Ok(link.mtu)
    }

    fn run(&mut self, operation: &'static str, address: &Address, arguments: &[&str]) -> Result<Output, HostError> {
        let failed = |why| HostError::Program { operation, address: address.clone(), program: "ifconfig", why };
        let output =
            self.kernel.ifconfig(arguments).map_err(|error| failed(format!("it could not be run: {error}")))?;
        if output.success { Ok(output) } else { Err(failed(output.complaint())) }
    }

    fn write_sysctl(&mut self, address: &Address, name: &str, value: &str) -> Result<(), HostError> {
        let oid = self.oid("write", address, name)?;
        let bytes = oid.encode(value).map_err(|expected| HostError::InvalidValue {
            address: address.clone(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        })?;
        self.kernel.set_sysctl(name, &bytes).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => {
                HostError::Refused { address: address.clone(), value: value.to_owned(), source }
            }
            _ => failed("write", address, source),
        })
    }

    fn collect_links(&mut self, settings: &mut Settings) {
        // Without ifconfig the sysctls are still worth knowing.
        let all = Address::Link { device: "all".to_owned(), property: "mtu".to_owned() };
        for link in self.links("read", &all).unwrap_or_default() {
            let address = Address::Link { device: link.device.clone(), property: "mtu".to_owned() };
            settings.values.insert(address, link.mtu.map(|mtu| mtu.to_string()));
            settings.links.push(link);
        }
    }
}

impl<K: Kernel> Host for BsdHost<K> {
    fn settings(&mut self) -> Result<Settings, HostError> {
        let mut settings = Settings {
            platform: self.platform(),
            machine: MachineFacts {
                memory: self.size(&["hw.memsize", "hw.physmem"]),
                page: self.size(&["hw.pagesize"]),
            },
            ..Settings::default()
        };
        for knob in self.system.catalogue().iter().flat_map(|catalogue| &catalogue.knobs) {
            let Address::Sysctl(name) = &knob.address else { continue };
            let oid = self.kernel.sysctl(name).map_err(|source| failed("read", &knob.address, source))?;
            settings.values.insert(knob.address.clone(), oid.and_then(|oid| oid.text()));
        }
        self.collect_links(&mut settings);
        boot::note_origins(&self.root, &mut settings)?;
        Ok(settings)
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        self.known(address)?;
        match address {
            Address::Sysctl(name) => {
                let oid = self.kernel.sysctl(name).map_err(|source| failed("read", address, source))?;
                Ok(oid.and_then(|oid| oid.text()))
            }
            Address::Link { device, .. } => Ok(self.mtu("read", address, device)?.map(|mtu| mtu.to_string())),
            _ => Ok(None),
        }
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        self.writable(address)?;
        let Some(value) = value.map(|value| canonical(address, value)).transpose()?.flatten() else {
            return Err(HostError::NeverAbsent { address: address.clone() });
        };
        match address {
            Address::Sysctl(name) => self.write_sysctl(address, name, &value),
            Address::Link { device, .. } => self.run("write", address, &[device, "mtu", &value]).map(drop),
            _ => Ok(()),
        }
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        self.known(address)?;
        let read_only = |why| Err(HostError::ReadOnly { address: address.clone(), why });
        if self.system == Bsd::MacOs {
            return read_only("on macOS for this program; `fullpipe plan --write` exports the commands");
        }
        let refusal = self.system.catalogue().and_then(|all| all.refusal(address, &self.platform().version));
        if refusal.is_some_and(|refusal| refusal.confirmed && refusal.honoured == Honoured::ReadOnly) {
            return read_only("on this version of FreeBSD");
        }
        match address {
            Address::Sysctl(name) => match self.oid("write", address, name)? {
                oid if oid.is_writable() => Ok(()),
                oid if oid.is_tunable() => read_only(
                    "while the system runs: the loader sets it; with --persist the line is written into \
                     /boot/loader.conf, then restart",
                ),
                _ => read_only("because it only informs"),
            },
            Address::Link { device, .. } => self.mtu("write", address, device).map(drop),
            _ => Ok(()),
        }
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        // No boot: kern.boottime moves when the clock is set, and an undo must not take that for a restart. After a real
        // one it finds each value back already, or changed by somebody.
        Ok(Identity { boot: None, namespace: self.text("kern.hostuuid").or_else(|| self.text("kern.uuid")) })
    }

    fn is_taken_at_start(&mut self, address: &Address) -> Result<bool, HostError> {
        self.known(address)?;
        let Address::Sysctl(name) = address else { return Ok(false) };
        let oid = self.oid("write", address, name)?;
        if self.system != Bsd::FreeBsd {
            return Ok(false);
        }
        let version = self.platform().version;
        let only_shown = self.system.catalogue().is_some_and(|all| all.is_only_at_start(address, &version));
        Ok(only_shown || (oid.is_tunable() && !oid.is_writable()))
    }

    fn lasting(&self, change: &Change) -> Lasting {
        boot::lasting(change)
    }

    fn boot_files(&mut self, _: &Path, changes: &[&Change]) -> Result<Vec<BootFile>, HostError> {
        let mut kept = Vec::new();
        for change in changes {
            let at_start = self.is_taken_at_start(&change.knob)?;
            kept.push((*change, if at_start { Keeper::Loader } else { Keeper::from_change(change) }));
        }
        boot::files(&self.root, &kept)
    }

    fn keeps_boot_file(&self, path: &Path) -> bool {
        boot::is_ours(&self.root, path)
    }
}

fn failed(operation: &'static str, address: &Address, source: io::Error) -> HostError {
    let address = address.clone();
    match source.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission { operation, address, source },
        _ => HostError::Inaccessible { operation, address, source },
    }
}
