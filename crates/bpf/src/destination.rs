//! Buffers for connections to one destination.

use std::{
    fs, io,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::{Path, PathBuf},
};

use aya::{
    EbpfLoader,
    maps::{LpmTrie, Map, MapData, lpm_trie::Key},
    programs::{CgroupAttachMode, SockOps, links::FdLink},
};

use fullpipe_units::Network;

use crate::{BpfError, LOADING, lacks, program, refused};

/// The object of `destination.bpf.c`, placed as ELF wants it.
static OBJECT: &[u8] = aya::include_bytes_aligned!("destination.bpf.o");
/// The map and the program in the object.
const MAP: &str = "DESTINATIONS";
const PROGRAM: &str = "destination";
/// What they are pinned as.
const PINNED_MAP: &str = "destinations";
const PINNED_LINK: &str = "link";

const PINNING: &str = "pinning a BPF program";

/// The longest prefix: all bits of an address of IPv6, or of one of IPv4 mapped into it.
const ADDRESS_BITS: u32 = 128;
const COOKIE_BITS: u32 = 64;
const BYTES: usize = 24;
type Words = [u8; BYTES];
type Table = LpmTrie<MapData, Words, [u32; 2]>;

/// Connections of one network namespace to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The namespace's cookie (`SO_NETNS_COOKIE`).
    pub namespace: u64,
    /// Where the other ends are.
    pub network: Network,
}

/// The buffers of each of these connections, as `setsockopt` takes them: the kernel counts double. `None` leaves a buffer alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// `SO_RCVBUF`, bytes.
    pub receive: Option<NonZeroU32>,
    /// `SO_SNDBUF`, bytes.
    pub send: Option<NonZeroU32>,
}

impl Buffers {
    const fn is_empty(self) -> bool {
        self.receive.is_none() && self.send.is_none()
    }
}

/// All destinations of this machine that have buffers of their own. They are in the kernel, so that this holds nothing but where
/// they are pinned.
#[derive(Clone, Debug)]
pub struct Destinations {
    folder: PathBuf,
}

impl Destinations {
    /// Those that are pinned in this folder of a BPF file system; it is made when the first one is written.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What connections to this place, and to no larger network around it, are given.
    ///
    /// # Errors
    ///
    /// Without rights.
    pub fn read(&self, place: &Place) -> Result<Buffers, BpfError> {
        let Some(table) = self.open()? else { return Ok(Buffers::default()) };
        Ok(all(&table)?.into_iter().find(|(at, _)| at == place).map(|(_, buffers)| buffers).unwrap_or_default())
    }

    /// All of one network namespace.
    ///
    /// # Errors
    ///
    /// Without rights.
    pub fn all(&self, namespace: u64) -> Result<Vec<(Place, Buffers)>, BpfError> {
        let Some(table) = self.open()? else { return Ok(Vec::new()) };
        let mut found = all(&table)?;
        found.retain(|(place, _)| place.namespace == namespace);
        Ok(found)
    }

    /// Gives new connections to this place these buffers. The first one of all attaches the program to `group`, the folder of a
    /// control group (version 2), and the last one that is taken away detaches it.
    ///
    /// # Errors
    ///
    /// Without rights, where the kernel can't (links of control groups are of Linux 5.7, the cookie of a namespace is of 5.15), and
    /// where no BPF file system is mounted. Nothing is attached or pinned then.
    pub fn write(
        &self,
        place: &Place,
        buffers: Buffers,
        group: impl FnOnce() -> io::Result<OwnedFd>,
    ) -> Result<(), BpfError> {
        let key = key(place);
        let Some(mut table) = self.open()? else {
            if buffers.is_empty() {
                return Ok(());
            }
            let group = group().map_err(|error| refused("opening the root of control groups", &error))?;
            return insert(&mut self.attach(group)?, &key, buffers);
        };
        if !buffers.is_empty() {
            return insert(&mut table, &key, buffers);
        }
        // It may be gone already.
        drop(table.remove(&key));
        if all(&table)?.is_empty() { self.detach() } else { Ok(()) }
    }

    /// `None` where none has buffers of its own.
    fn open(&self) -> Result<Option<Table>, BpfError> {
        // Without its link the program does nothing, whatever the map has.
        match fs::metadata(self.folder.join(PINNED_LINK)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused("looking for a pinned BPF program", &error)),
        }
        table(MapData::from_pin(self.folder.join(PINNED_MAP)).map_err(|error| refused("opening a BPF map", &error))?)
            .map(Some)
    }

    fn attach(&self, group: impl AsFd) -> Result<Table, BpfError> {
        let parent = self.folder.parent().unwrap_or_else(|| Path::new("/"));
        if !is_bpf(parent) {
            return Err(BpfError::Refused {
                operation: PINNING,
                reason: format!("no BPF file system is mounted at {0} (mount -t bpf bpf {0})", parent.display()),
            });
        }
        let mut ebpf = EbpfLoader::new().load(OBJECT).map_err(|error| refused(LOADING, &error))?;
        let program: &mut SockOps = program(&mut ebpf, PROGRAM)?;
        program.load().map_err(|error| refused(LOADING, &error))?;
        let attaching = "attaching a BPF program to the root of control groups";
        // A link has no flags here and always lets others of its kind go on (`cgroup_bpf_link_attach`).
        let link = program.attach(group, CgroupAttachMode::Single).map_err(|error| refused(attaching, &error))?;
        let link = program.take_link(link).map_err(|error| refused(attaching, &error))?;
        let link = FdLink::try_from(link).map_err(|error| refused(attaching, &error))?;
        let Some(Map::LpmTrie(map)) = ebpf.take_map(MAP) else { return Err(lacks(MAP)) };
        // What a kill in the middle left.
        self.detach()?;
        if let Err(error) = self.pin(&map, link) {
            // The first error is the one to tell.
            self.detach().unwrap_or_default();
            return Err(error);
        }
        table(map)
    }

    fn pin(&self, map: &MapData, link: FdLink) -> Result<(), BpfError> {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| refused("making a folder for a BPF program", &error))?;
        // The link last: what is open is found by it.
        map.pin(self.folder.join(PINNED_MAP)).map_err(|error| refused(PINNING, &error))?;
        link.pin(self.folder.join(PINNED_LINK)).map_err(|error| refused(PINNING, &error))?;
        Ok(())
    }

    fn detach(&self) -> Result<(), BpfError> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(refused("removing a pinned BPF program", &error))
            }
            _ => Ok(()),
        };
        gone(fs::remove_file(self.folder.join(PINNED_LINK)))?;
        gone(fs::remove_file(self.folder.join(PINNED_MAP)))?;
        gone(fs::remove_dir(&self.folder))
    }
}

/// Whether a folder is of a BPF file system.
fn is_bpf(folder: &Path) -> bool {
    const BPF_FS_MAGIC: i128 = 0xcafe_4a11; // linux/magic.h
    rustix::fs::statfs(folder).is_ok_and(|found| i128::from(found.f_type) == BPF_FS_MAGIC)
}

fn table(map: MapData) -> Result<Table, BpfError> {
    LpmTrie::try_from(Map::LpmTrie(map)).map_err(|error| refused("opening a BPF map", &error))
}

fn insert(table: &mut Table, key: &Key<Words>, buffers: Buffers) -> Result<(), BpfError> {
    let word = |size: Option<NonZeroU32>| size.map_or(0, NonZeroU32::get);
    table
        .insert(key, [word(buffers.receive), word(buffers.send)], 0)
        .map_err(|error| refused("writing to a BPF map", &error))
}

fn all(table: &Table) -> Result<Vec<(Place, Buffers)>, BpfError> {
    let rows = table.iter().collect::<Result<Vec<_>, _>>().map_err(|error| refused("reading a BPF map", &error))?;
    let size = NonZeroU32::new;
    Ok(rows
        .into_iter()
        .filter_map(|(key, [receive, send])| Some((place(&key)?, Buffers { receive: size(receive), send: size(send) })))
        .collect())
}

/// IPv4 is mapped into IPv6 (RFC 4291, section 2.5.5.2), so that its prefixes are longer by 96 bits.
fn key(place: &Place) -> Key<Words> {
    let length = u32::from(place.network.length());
    let (address, length) = match place.network.address() {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped(), length + ADDRESS_BITS - u32::BITS),
        IpAddr::V6(v6) => (v6, length),
    };
    let mut words = [0; BYTES];
    let (cookie, rest) = words.split_at_mut(size_of::<u64>());
    cookie.copy_from_slice(&place.namespace.to_ne_bytes());
    rest.copy_from_slice(&address.octets());
    Key::new(COOKIE_BITS + length, words)
}

/// `None` for a key that was not made by [`key`].
fn place(key: &Key<Words>) -> Option<Place> {
    let words = key.data();
    let (cookie, address) = words.split_at(size_of::<u64>());
    let namespace = u64::from_ne_bytes(cookie.try_into().ok()?);
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?);
    let bits = key.prefix_len().checked_sub(COOKIE_BITS)?;
    let (address, length) = match address.to_ipv4_mapped() {
        Some(v4) if bits >= ADDRESS_BITS - u32::BITS => (IpAddr::V4(v4), bits + u32::BITS - ADDRESS_BITS),
        _ => (IpAddr::V6(address), bits),
    };
    Some(Place { namespace, network: Network::new(address, u8::try_from(length).ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_from_its_key() {
        for network in ["10.7.0.0/16", "10.7.0.1", "2001:db8::/32", "2001:db8::1", "8000::/1"] {
            let there = Place { namespace: 0x0102_0304_0506_0708, network: network.parse().unwrap() };
            assert_eq!(place(&key(&there)), Some(there));
        }
    }
}
