//! A TUN or TAP device of this machine's own kernel, for a stack in user space on its other side.

use std::{io, net::IpAddr};

use fullpipe_host::linux::net::{NetError, Netlink};

use crate::{
    LabError,
    tun::{Offload, Tun},
};

/// Makes the device `name` in the network namespace of the calling thread, takes it up and gives the kernel's side
/// these addresses with their prefix lengths. A device that exists already (`ip tuntap add`) is used as it is.
///
/// # Errors
/// What is needed where a right is missing, else what the kernel refused.
pub fn attach(name: &str, mtu: u16, addresses: &[(IpAddr, u8)]) -> Result<(Tun, Offload), LabError> {
    attach_made(name, mtu, addresses, Tun::create)
}

/// As [`attach`], but the device carries Ethernet frames (TAP).
///
/// # Errors
/// As for [`attach`].
pub fn attach_ethernet(name: &str, mtu: u16, addresses: &[(IpAddr, u8)]) -> Result<(Tun, Offload), LabError> {
    attach_made(name, mtu, addresses, Tun::create_ethernet)
}

fn attach_made(
    name: &str,
    mtu: u16,
    addresses: &[(IpAddr, u8)],
    create: fn(&str) -> io::Result<Tun>,
) -> Result<(Tun, Offload), LabError> {
    crate::tun::check_access()?;
    let failed = |source| LabError::Device { device: name.to_owned(), source };
    let mut netlink = Netlink::open().map_err(failed)?;
    let exists = match netlink.link(name) {
        Ok(_) => true,
        Err(NetError::NoSuchLink { .. }) => false,
        Err(error) => return Err(failed(error)),
    };
    let tun = create(name).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => LabError::TunRights { device: name.to_owned() },
        _ => LabError::system(format!("make the TUN device {name}"), source),
    })?;
    let offload = tun.enable_offload();
    if !exists {
        configure(&mut netlink, name, mtu, addresses).map_err(failed)?;
    }
    Ok((tun, offload))
}

fn configure(netlink: &mut Netlink, name: &str, mtu: u16, addresses: &[(IpAddr, u8)]) -> Result<(), NetError> {
    netlink.set_mtu(name, mtu.into())?;
    netlink.set_up(name)?;
    let link = netlink.link(name)?.number;
    addresses.iter().try_for_each(|(address, prefix)| netlink.add_address(link, *address, *prefix))
}
