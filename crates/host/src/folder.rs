//! A host that is a folder: for tests, and for machines known only by their files.
//!
//! ```text
//! platform                        linux 6.18.44
//! memory, page                    bytes
//! proc/sys/net/ipv4/tcp_rmem      a sysctl; no file means that the system lacks it, a read-only file a read-only one
//! routes/10.0.0.0_24/device       a route; `gateway` where it has one, and one file per attribute that is set
//! links/eth0/mtu                  a link; `speed_bps`, `qdisc`, ..., `offload/tso`, `ring/rx`
//! etc/sysctl.d/...                files read at boot; of a FreeBSD `etc/sysctl.conf`, `etc/rc.conf`, `boot/loader.conf`
//! ```
//!
//! It keeps the contract of [`Host`] on any operating system. What is *not* here: the ranges that a kernel checks.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{Address, Change, Family, Link, MachineFacts, Platform, Route, Settings};
use fullpipe_units::Bytes;

use crate::{
    BootFile, Host, HostError, Identity, Lasting, Overridden, ROUTE_ATTRIBUTES, boot_files, freebsd,
    persist::{self, write_atomically},
    sysctl,
    value::canonical,
};

/// A host whose settings are files in a folder. See the module's documentation for its layout.
#[derive(Clone, Debug)]
pub struct FolderHost {
    root: PathBuf,
}

impl FolderHost {
    /// The host that this folder describes.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn sysctls(&self) -> PathBuf {
        self.root.join("proc/sys")
    }

    /// The file at an address, and the file that shows whether its route or link is there at all.
    fn place(&self, address: &Address) -> Result<(PathBuf, Option<PathBuf>), HostError> {
        let unknown = |why: &str| HostError::UnknownAddress { address: address.clone(), why: why.to_owned() };
        match address {
            Address::Sysctl(name) => Ok((sysctl::file(&self.sysctls(), address, name)?, None)),
            Address::Route { destination, attribute } => {
                if !ROUTE_ATTRIBUTES.contains(&attribute.as_str()) {
                    return Err(unknown("a route has no such attribute"));
                }
                let folder = self
                    .root
                    .join("routes")
                    .join(plain(&destination.replace('/', "_")).ok_or_else(|| unknown("no destination"))?);
                Ok((folder.join(attribute), Some(folder)))
            }
            Address::Link { device, property } => {
                let folder = self.root.join("links").join(plain(device).ok_or_else(|| unknown("no device"))?);
                let below: Option<PathBuf> = property.split(' ').map(plain).collect();
                Ok((folder.join(below.ok_or_else(|| unknown("a link has no such property"))?), Some(folder)))
            }
            _ => Err(unknown("a folder holds sysctls, routes and links")),
        }
    }

    /// The place, where what carries it is there.
    fn present(&self, operation: &'static str, address: &Address) -> Result<PathBuf, HostError> {
        let (file, carrier) = self.place(address)?;
        match carrier {
            Some(folder) if !folder.is_dir() => Err(HostError::ObjectGone {
                operation,
                address: address.clone(),
                why: format!("there is no folder {}", folder.display()),
            }),
            _ => Ok(file),
        }
    }

    fn text(&self, file: &Path) -> Result<Option<String>, HostError> {
        match fs::read_to_string(file) {
            Ok(content) => Ok(Some(sysctl::shown(&content))),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(file_error("read", file, source)),
        }
    }

    fn number(&self, file: &str) -> Result<Option<u64>, HostError> {
        Ok(self.text(&self.root.join(file))?.and_then(|text| text.parse().ok()))
    }

    fn platform(&self) -> Result<Platform, HostError> {
        let text = self.text(&self.root.join("platform"))?.unwrap_or_else(|| "linux unknown".to_owned());
        let (family, version) = text.split_once(' ').unwrap_or((&text, "unknown"));
        Ok(Platform { family: Family::named(family), version: version.to_owned() })
    }

    fn is_freebsd(&self) -> bool {
        self.platform().is_ok_and(|platform| platform.family == Family::FreeBsd)
    }

    fn read_routes(&self, settings: &mut Settings) -> Result<(), HostError> {
        for name in names(&self.root.join("routes"))? {
            let destination = name.replace('_', "/");
            let folder = self.root.join("routes").join(&name);
            settings.routes.push(Route {
                destination: destination.clone(),
                device: self.text(&folder.join("device"))?.unwrap_or_default(),
                gateway: self.text(&folder.join("gateway"))?,
                copy: None,
            });
            for attribute in ROUTE_ATTRIBUTES {
                let address = Address::Route { destination: destination.clone(), attribute: attribute.to_owned() };
                let value = self.read(&address)?;
                settings.values.insert(address, value);
            }
        }
        Ok(())
    }

    fn read_links(&self, settings: &mut Settings) -> Result<(), HostError> {
        for device in names(&self.root.join("links"))? {
            let folder = self.root.join("links").join(&device);
            let mut link = Link { device: device.clone(), ..Link::default() };
            for file in files_below(&folder)? {
                let Some(parts) = file.strip_prefix(&folder).ok().and_then(Path::to_str) else { continue };
                let Some(text) = self.text(&file)? else { continue };
                match parts {
                    "speed_bps" => link.speed_bps = text.parse().ok(),
                    _ => {
                        if parts == "mtu" {
                            link.mtu = text.parse().ok();
                        }
                        let property = parts.replace(std::path::MAIN_SEPARATOR, " ");
                        settings.values.insert(Address::Link { device: device.clone(), property }, Some(text));
                    }
                }
            }
            settings.links.push(link);
        }
        Ok(())
    }

    fn read(&self, address: &Address) -> Result<Option<String>, HostError> {
        self.text(&self.present("read", address)?)
    }
}

impl Host for FolderHost {
    fn settings(&mut self) -> Result<Settings, HostError> {
        let mut settings = Settings { platform: self.platform()?, ..Settings::default() };
        let mut files = files_below(&self.sysctls().join("net"))?;
        files.extend(files_below(&self.sysctls().join("kern/ipc"))?);
        for file in files {
            let Some(name) = sysctl::name(&self.sysctls(), &file).filter(|name| !sysctl::is_secret(name)) else {
                continue;
            };
            let value = self.text(&file)?;
            settings.values.insert(Address::Sysctl(name), value);
        }
        self.read_routes(&mut settings)?;
        self.read_links(&mut settings)?;
        settings.machine =
            MachineFacts { memory: self.number("memory")?.map(Bytes::new), page: self.number("page")?.map(Bytes::new) };
        boot_files::note(&self.root, &mut settings)?;
        Ok(settings)
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        Self::read(self, address)
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        let value = match value {
            Some(value) => canonical(address, value)?,
            None => None,
        };
        let file = self.present("write", address)?;
        let Some(value) = value else {
            if !matches!(address, Address::Route { .. }) {
                return Err(HostError::NeverAbsent { address: address.clone() });
            }
            return match fs::remove_file(&file) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => Err(file_error("remove", &file, source)),
                _ => Ok(()),
            };
        };
        self.writable(address)?;
        write_atomically(&file, format!("{value}\n").as_bytes(), None)
            .map_err(|source| file_error("write", &file, source))
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        let file = self.present("write", address)?;
        match fs::metadata(&file) {
            Ok(metadata) if metadata.permissions().readonly() => {
                Err(HostError::ReadOnly { address: address.clone(), why: "in this folder" })
            }
            Err(_) if !matches!(address, Address::Route { .. }) => {
                let platform = self.platform()?;
                Err(HostError::Missing {
                    operation: "write",
                    address: address.clone(),
                    platform: format!("{} {}", platform.family, platform.version),
                })
            }
            _ => Ok(()),
        }
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        let folder = self.root.canonicalize().map_err(|source| file_error("open", &self.root, source))?;
        Ok(Identity {
            boot: self.text(&self.root.join("proc/sys/kernel/random/boot_id"))?,
            namespace: Some(folder.display().to_string()),
        })
    }

    fn lasting(&self, change: &Change) -> Lasting {
        if self.is_freebsd() { freebsd::boot::lasting(change) } else { persist::in_drop_in(change) }
    }

    fn boot_files(&mut self, folder: &Path, changes: &[&Change]) -> Result<Vec<BootFile>, HostError> {
        if !self.is_freebsd() {
            return persist::drop_in(folder, changes);
        }
        let kept: Vec<_> = changes.iter().map(|change| (*change, freebsd::boot::Keeper::from_change(change))).collect();
        freebsd::boot::files(&self.root, &kept)
    }

    fn overridden(&mut self, folder: &Path, changes: &[&Change]) -> Result<Vec<Overridden>, HostError> {
        if self.is_freebsd() { Ok(Vec::new()) } else { boot_files::overridden(&self.root, folder, changes) }
    }

    /// The folder of a drop-in is whatever was given with the machine.
    fn keeps_boot_file(&self, path: &Path) -> bool {
        path.ends_with(persist::file_name()) || freebsd::boot::is_ours(&self.root, path)
    }
}

/// A name that stays in its folder.
fn plain(name: &str) -> Option<&str> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name => Some(name),
        _ => None,
    }
}

/// What a folder holds, sorted; nothing where there is no such folder.
fn names(folder: &Path) -> Result<Vec<String>, HostError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(file_error("list", folder, source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| file_error("list", folder, source))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// All files below a folder, sorted.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, HostError> {
    let mut files = Vec::new();
    for name in names(folder)? {
        let path = folder.join(name);
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn file_error(operation: &'static str, file: &Path, source: io::Error) -> HostError {
    HostError::File { operation, path: file.display().to_string(), source }
}
