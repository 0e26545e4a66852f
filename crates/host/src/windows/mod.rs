//! Windows: registry values, TCP templates and global offloads through PowerShell's cmdlets, and netsh where nothing else
//! reaches.
//!
//! The adapter stands on two small traits, [`Registry`] and [`Runner`], and is the same code everywhere; the running
//! system's own are behind `cfg(windows)`. The registry part was run on Wine's registry. What PowerShell and netsh answer
//! follows Microsoft's documents and was **not run on a real Windows**; every write is read back by
//! [`apply`](crate::apply()), so that an answer which differs ends in an error and not in a wrong belief.
//!
//! Only settings that the catalogue has are touched: a plan comes from a file, and the rest of the registry is not ours
//! to offer. No key is made: where a key is missing, so is what it belongs to, and an undo would leave an empty one. A
//! template's transport filters are the prefixes whose peers get it; filters that also go by port are left alone. What is
//! *not* here: `netsh` through a language pack.

mod cmdlets;
pub mod connections;
mod data;
mod netsh;
mod powershell;
#[cfg(windows)]
mod registry;
mod run;
#[cfg(test)]
mod tests;
mod version;

use std::io;

use fullpipe_knobs::{Address, Catalogue, Family, MachineFacts, Platform, Settings, catalogue::Honoured};

pub(crate) use data::EXPECTED;
pub use data::{ParseDataError, REG_BINARY, REG_DWORD, REG_SZ, RegistryData};
#[cfg(windows)]
pub use registry::SystemRegistry;
#[cfg(windows)]
pub use run::SystemRunner;
pub use run::{Program, Runner};

use crate::{Host, HostError, Identity, value::canonical};

/// The interfaces' own TCP values, one key with a GUID for each.
const INTERFACES: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces";
/// Where Group Policy's "inbound TCP throughput level" is stored (advanced QoS settings of a policy).
const POLICY: (&str, &str) = (r"HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS", "Tcp Autotuning Level");
/// Made when Windows is installed.
const MACHINE: (&str, &str) = (r"HKLM\SOFTWARE\Microsoft\Cryptography", "MachineGuid");

/// The registry. Keys begin with `HKLM\`; names don't tell upper case from lower case.
pub trait Registry {
    /// Whether there is such a key.
    fn has_key(&self, key: &str) -> io::Result<bool>;
    /// The names of the keys below a key; none where there is no such key.
    fn subkeys(&self, key: &str) -> io::Result<Vec<String>>;
    /// A value; `None` where it or its key is absent.
    fn value(&self, key: &str, name: &str) -> io::Result<Option<RegistryData>>;
    /// Sets a value of a key that is there; `None` removes it.
    fn set_value(&mut self, key: &str, name: &str, data: Option<&RegistryData>) -> io::Result<()>;
    /// Says why values of this key can't be set.
    fn may_write(&self, key: &str) -> io::Result<()>;
}

/// A Windows. Its settings last beyond a restart by themselves; those of the registry act only after one, as each
/// change's `takes_effect` says.
#[derive(Clone, Debug)]
pub struct WindowsHost<R, P> {
    registry: R,
    programs: P,
}

#[cfg(windows)]
impl WindowsHost<SystemRegistry, SystemRunner> {
    /// The system that this program runs on.
    pub fn new() -> Self {
        Self::with(SystemRegistry, SystemRunner)
    }
}

#[cfg(windows)]
impl Default for WindowsHost<SystemRegistry, SystemRunner> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Registry, P: Runner> WindowsHost<R, P> {
    /// A host over these.
    pub fn with(registry: R, programs: P) -> Self {
        Self { registry, programs }
    }

    /// The automatic tuning level that connections have: Group Policy's where it has one, else what `settings` say. One
    /// that is no word of the catalogue is passed on as it is.
    pub fn tuning_level(&mut self, settings: &Settings) -> Option<String> {
        let level = Address::netsh("tcp global", "autotuninglevel");
        match self.writable(&level) {
            Err(HostError::Policy { value, .. }) => Some(value),
            _ => settings.values.get(&level).cloned().flatten(),
        }
    }

    fn version(&self) -> String {
        version::version(&self.registry)
    }

    /// Whether this version is `bound` or newer; false where it is unknown.
    fn is_at_least(&self, bound: &str) -> bool {
        catalogue().is_some_and(|catalogue| catalogue.is_at_least(&self.version(), bound) == Some(true))
    }

    fn read_value(&self, address: &Address, key: &str, name: &str) -> Result<Option<String>, HostError> {
        let read = |source| failed("read", address, source);
        if is_interface(key) && !self.registry.has_key(key).map_err(read)? {
            return Err(gone("read", address, key));
        }
        Ok(self.registry.value(key, name).map_err(read)?.map(|data| data.to_string()))
    }

    fn write_value(&mut self, address: &Address, key: &str, name: &str, value: Option<&str>) -> Result<(), HostError> {
        self.may_write_value(address, key)?;
        let data = match value {
            Some(value) => Some(value.parse::<RegistryData>().map_err(|_| invalid(address, value, EXPECTED))?),
            None => None,
        };
        self.registry.set_value(key, name, data.as_ref()).map_err(|source| failed("write", address, source))
    }

    fn may_write_value(&self, address: &Address, key: &str) -> Result<(), HostError> {
        match self.registry.may_write(key) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(gone("write", address, key)),
            Err(source) => Err(failed("write", address, source)),
            Ok(()) => Ok(()),
        }
    }

    /// The registry's values of the catalogue, those of interfaces for each interface.
    fn collect_values(&self, settings: &mut Settings) -> Result<(), HostError> {
        let interfaces = self.registry.subkeys(INTERFACES).map_err(|source| HostError::File {
            operation: "list",
            path: INTERFACES.to_owned(),
            source,
        })?;
        for knob in catalogue().iter().flat_map(|catalogue| &catalogue.knobs) {
            let Address::Registry { key, value } = &knob.address else { continue };
            let keys: Vec<String> = match key.strip_suffix("{GUID}") {
                Some(parent) => interfaces.iter().map(|guid| format!("{parent}{guid}")).collect(),
                None => vec![key.clone()],
            };
            for key in keys {
                let address = Address::Registry { key: key.clone(), value: value.clone() };
                let found = self.read_value(&address, &key, value)?;
                settings.values.insert(address, found);
            }
        }
        Ok(())
    }

    /// The level that Group Policy sets in the registry.
    fn policy_level(&self, address: &Address) -> Result<Option<String>, HostError> {
        let (key, name) = POLICY;
        let found = self.registry.value(key, name).map_err(|source| failed("read", address, source))?;
        Ok(found.map(|data| data.plain_text().unwrap_or_else(|| data.to_string())))
    }
}

impl<R: Registry, P: Runner> Host for WindowsHost<R, P> {
    fn settings(&mut self) -> Result<Settings, HostError> {
        let mut settings = Settings {
            platform: Platform { family: Family::Windows, version: self.version() },
            machine: MachineFacts::default(),
            ..Settings::default()
        };
        self.collect_values(&mut settings)?;
        self.collect_from_programs(&mut settings);
        Ok(settings)
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        known(address)?;
        match address {
            Address::Registry { key, value } => self.read_value(address, key, value),
            _ => self.read_from_program(address),
        }
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        known(address)?;
        let value = match value {
            Some(value) => canonical(address, value)?,
            None => None,
        };
        if let Address::Registry { key, value: name } = address {
            return self.write_value(address, key, name, value.as_deref());
        }
        if let (true, Address::Named { name, .. }) = (cmdlets::is_filter(address), address) {
            return self.write_filters(address, name, value.as_deref());
        }
        match value {
            Some(value) => self.write_by_program(address, &value),
            None => Err(HostError::NeverAbsent { address: address.clone() }),
        }
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        known(address)?;
        if is_level(address)
            && let Some(level) = self.policy_level(address)?
        {
            return Err(policy(address, level));
        }
        let refusal = catalogue().and_then(|catalogue| catalogue.refusal(address, &self.version()));
        if refusal.is_some_and(|refusal| refusal.confirmed && refusal.honoured == Honoured::ReadOnly) {
            return Err(HostError::ReadOnly {
                address: address.clone(),
                why: "on this version of Windows; `fullpipe settings` says what can be set in its place",
            });
        }
        match address {
            Address::Registry { key, .. } => self.may_write_value(address, key),
            _ => self.may_write_by_program(address),
        }
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        let (key, name) = MACHINE;
        let machine = self.registry.value(key, name).ok().flatten().and_then(|data| data.plain_text());
        // No boot: what is set here outlives a restart, and its undo must too.
        Ok(Identity { boot: None, namespace: machine })
    }

    fn lasting(&self, _: &fullpipe_knobs::Change) -> crate::Lasting {
        crate::Lasting::ByItself
    }
}

fn catalogue() -> Option<&'static Catalogue> {
    Catalogue::for_family(Family::Windows)
}

/// Refuses what the catalogue doesn't have.
fn known(address: &Address) -> Result<(), HostError> {
    let found = catalogue().and_then(|catalogue| catalogue.find(address)).is_some();
    if found { Ok(()) } else { Err(unknown(address, "only settings of the catalogue are read and written on Windows")) }
}

fn is_interface(key: &str) -> bool {
    key.get(..INTERFACES.len()).is_some_and(|start| start.eq_ignore_ascii_case(INTERFACES))
}

/// Whether Group Policy can take the decision on a setting.
fn is_level(address: &Address) -> bool {
    match address {
        Address::Netsh { context, parameter } => {
            context.eq_ignore_ascii_case("tcp global") && parameter.eq_ignore_ascii_case("autotuninglevel")
        }
        Address::TcpSetting { parameter, .. } => parameter.eq_ignore_ascii_case("AutoTuningLevelLocal"),
        _ => false,
    }
}

fn unknown(address: &Address, why: &str) -> HostError {
    HostError::UnknownAddress { address: address.clone(), why: why.to_owned() }
}

fn invalid(address: &Address, value: &str, expected: &str) -> HostError {
    HostError::InvalidValue { address: address.clone(), value: value.to_owned(), expected: expected.to_owned() }
}

fn policy(address: &Address, level: String) -> HostError {
    HostError::Policy { address: address.clone(), policy: "inbound TCP throughput level", value: level }
}

fn gone(operation: &'static str, address: &Address, key: &str) -> HostError {
    let why = if is_interface(key) {
        "there is no such interface; `fullpipe settings` lists those that there are".to_owned()
    } else {
        format!("there is no key {key}: what it belongs to is not installed")
    };
    HostError::ObjectGone { operation, address: address.clone(), why }
}

fn failed(operation: &'static str, address: &Address, source: io::Error) -> HostError {
    let address = address.clone();
    match source.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission { operation, address, source },
        _ => HostError::Inaccessible { operation, address, source },
    }
}
