//! Linux: sysctls under `/proc/sys`, routes and links through netlink, offloads and rings through ethtool's netlink.
//!
//! Everything here acts in the network namespace of the *calling thread*, so that one process can hold both ends of a
//! emulated path. What is *not* here: making namespaces and devices' far ends (`lab`).

mod destination;
mod ethtool;
pub(crate) mod fresh;
pub mod held;
mod link;
mod machine;
pub mod net;
mod route;
mod sysctls;

use std::path::Path;

use fullpipe_knobs::{Address, Change, Settings};
use net::NetError;

use crate::{Host, HostError, Identity, Lifeline, Overridden, boot_files, lifeline, value::canonical};

/// The running Linux system, as the calling thread's network namespace shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxHost;

impl LinuxHost {
    /// The system that this program runs on.
    pub fn new() -> Self {
        Self
    }
}

impl Host for LinuxHost {
    fn settings(&mut self) -> Result<Settings, HostError> {
        let mut settings = Settings {
            platform: machine::platform(),
            machine: machine::facts(),
            values: sysctls::all()?,
            ..Settings::default()
        };
        route::collect(&mut settings)?;
        link::collect(&mut settings)?;
        destination::collect(&mut settings)?;
        boot_files::note(Path::new("/"), &mut settings)?;
        Ok(settings)
    }

    fn lifelines(&mut self) -> Vec<Lifeline> {
        lifeline::present()
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        match address {
            Address::Sysctl(name) => sysctls::read(address, name),
            Address::Route { destination, attribute } => route::read(address, destination, attribute),
            Address::Link { device, property } => link::read(address, device, property),
            Address::Destination { destination, option } => destination::read(address, destination, option),
            _ => Err(unknown(address, HAS)),
        }
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        let value = match value {
            Some(value) => canonical(address, value)?,
            None => None,
        };
        match (address, value) {
            (Address::Sysctl(name), Some(value)) => sysctls::write(address, name, &value),
            (Address::Route { destination, attribute }, value) => {
                route::write(address, destination, attribute, value.as_deref())
            }
            (Address::Destination { destination, option }, value) => {
                destination::write(address, destination, option, value.as_deref())
            }
            (Address::Link { device, property }, Some(value)) => link::write(address, device, property, &value),
            (Address::Sysctl(_) | Address::Link { .. }, None) => {
                Err(HostError::NeverAbsent { address: address.clone() })
            }
            _ => Err(unknown(address, HAS)),
        }
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        match address {
            Address::Sysctl(name) => sysctls::writable(address, name),
            Address::Route { destination, attribute } => route::writable(address, destination, attribute),
            Address::Destination { destination, option } => destination::writable(address, destination, option),
            _ => self.read(address).map(drop),
        }
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        Ok(machine::identity())
    }

    fn overridden(&mut self, folder: &Path, changes: &[&Change]) -> Result<Vec<Overridden>, HostError> {
        boot_files::overridden(Path::new("/"), folder, changes)
    }
}

/// What an address must be of.
const HAS: &str = "Linux has sysctls, routes, links, and buffers for destinations";

fn unknown(address: &Address, why: &str) -> HostError {
    HostError::UnknownAddress { address: address.clone(), why: why.to_owned() }
}

/// An error of the network tables, said of one setting.
fn network(operation: &'static str, address: &Address, source: NetError) -> HostError {
    let address = address.clone();
    match source {
        NetError::NoSuchLink { .. } | NetError::NoSuchRoute { .. } => {
            HostError::ObjectGone { operation, address, why: source.to_string() }
        }
        source => HostError::Network { operation, address, source: Box::new(source) },
    }
}
