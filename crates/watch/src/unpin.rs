//! Sockets of other processes whose buffers an application set, given back to automatic sizing. What puts them back is the
//! journal's undo (`fullpipe-host`).
//!
//! A copy of the descriptor is taken (`pidfd_getfd`), `SO_BUF_LOCK` is changed (Linux 5.15), and the copy is closed at once: as long
//! as it were held, an application could not close its connection.

use std::{
    collections::{BTreeSet, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use fullpipe_socket::{Bytes, Fixed};
use rustix::net::{self, sockopt};

use crate::{owner::Owner, processes};

/// Whose sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Processes of this name.
    Name(String),
    /// This process.
    Process(u32),
    /// All processes in this control group and those below it: a path from the root of control groups.
    Group(String),
}

/// A socket whose buffers an application set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Whose it is.
    pub owner: Owner,
    /// Its descriptor there.
    pub fd: u32,
    /// Which buffers the application had set.
    pub fixed: Fixed,
    /// The send buffer's size before, as the kernel counts.
    pub send_buffer: Bytes,
    /// The receive buffer's size before, as the kernel counts.
    pub receive_buffer: Bytes,
    /// The shift of its window scale, where it is connected and has one.
    pub own_shift: Option<u8>,
    /// Its inode.
    pub inode: u32,
}

impl Target {
    /// `/system.slice/nginx.service`, `4711`, `nginx`.
    pub fn new(text: &str) -> Self {
        match text.parse() {
            _ if text.starts_with('/') => Self::Group(text.to_owned()),
            Ok(pid) => Self::Process(pid),
            Err(_) => Self::Name(text.to_owned()),
        }
    }

    /// The processes that there are now.
    pub fn processes(&self) -> BTreeSet<u32> {
        match self {
            Self::Process(pid) => {
                Some(*pid).filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).into_iter().collect()
            }
            Self::Name(name) => processes::pids().filter(|pid| processes::name(*pid) == *name).collect(),
            Self::Group(group) => {
                let mut found = BTreeSet::new();
                if let Some(folder) = group_folder(group) {
                    below(&folder, &mut found);
                }
                found
            }
        }
    }

    /// The folder of the control group in which new sockets are to be looked after: the target's own, else the one that all its
    /// processes are in, else the root of all.
    pub fn group(&self) -> Option<PathBuf> {
        let own = |pid| processes::describe(pid).cgroup.unwrap_or_else(|| "/".to_owned());
        match self {
            Self::Group(group) => group_folder(group),
            Self::Process(pid) => group_folder(&own(*pid)),
            // Processes of this name may start anywhere.
            Self::Name(_) => group_folder("/"),
        }
    }
}

/// Where control groups of version 2 are mounted, and this one there.
fn group_folder(group: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let at = words.next()?;
        (words.next()? == "cgroup2").then(|| at.to_owned())
    })?;
    // No way out of it.
    let is_plain = !group.split('/').any(|part| part == "..");
    Some(Path::new(&root).join(group.trim_start_matches('/'))).filter(|folder| is_plain && folder.is_dir())
}

fn below(folder: &Path, found: &mut BTreeSet<u32>) {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    found.extend(processes.lines().filter_map(|line| line.parse::<u32>().ok()));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .for_each(|entry| below(&entry.path(), found));
}

/// Every TCP socket of these processes whose buffers were set; nothing is changed. A process that vanishes meanwhile is no error.
///
/// # Errors
///
/// Without the right to take descriptors of one of them.
pub fn find(processes: &BTreeSet<u32>) -> io::Result<Vec<Pinned>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for &pid in processes {
        let mut about = None;
        for (fd, inode) in processes::sockets(pid) {
            // A child has its parent's descriptors.
            if !seen.insert(inode) {
                continue;
            }
            let about = about.get_or_insert_with(|| processes::describe(pid));
            let owner = Owner { fd: Some(fd), ..about.clone() };
            match look(owner, inode) {
                Ok(one) => found.extend(one),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                // Closed by now.
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

fn look(owner: Owner, inode: u32) -> io::Result<Option<Pinned>> {
    let Some(fd) = owner.fd else { return Ok(None) };
    let Some(socket) = fullpipe_socket::processes::take(owner.pid, fd, inode)? else { return Ok(None) };
    if sockopt::socket_protocol(&socket)? != Some(net::ipproto::TCP) {
        return Ok(None);
    }
    let Some(fixed) = Fixed::read(&socket).filter(|fixed| fixed.send || fixed.receive) else { return Ok(None) };
    let size = |size: usize| Bytes::new(size as u64);
    Ok(Some(Pinned {
        owner,
        fd,
        fixed,
        send_buffer: size(sockopt::socket_send_buffer_size(&socket)?),
        receive_buffer: size(sockopt::socket_recv_buffer_size(&socket)?),
        own_shift: fullpipe_socket::Info::read(&socket).ok().and_then(|info| info.own_shift),
        inode,
    }))
}

impl Pinned {
    /// The largest window that the connection's window scale allows, where the application set the receive buffer before it
    /// was made, so that the scale was chosen for it (RFC 7323, section 2.3).
    pub fn largest_window(&self) -> Option<Bytes> {
        let shift = self.own_shift.filter(|shift| self.fixed.receive && *shift < SHIFT_THAT_GROWS)?;
        Some(Bytes::new(65_535 << shift))
    }

    /// Whether both are the same socket.
    pub fn is_same(&self, other: &Self) -> bool {
        self.inode == other.inode
    }

    /// Gives it back to automatic sizing.
    ///
    /// # Errors
    ///
    /// Where it is gone, or the kernel refuses.
    pub fn free(&self) -> io::Result<()> {
        let socket =
            fullpipe_socket::processes::take(self.owner.pid, self.fd, self.inode)?.ok_or(io::ErrorKind::NotFound)?;
        Fixed::default().put(&socket)
    }
}

/// Below this shift no window is larger than 256 KB.
const SHIFT_THAT_GROWS: u8 = 3;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_is_meant_is_told_by_how_it_is_written() {
        assert_eq!(Target::new("nginx"), Target::Name("nginx".to_owned()));
        assert_eq!(Target::new("4711"), Target::Process(4711));
        assert_eq!(Target::new("/system.slice"), Target::Group("/system.slice".to_owned()));
        assert_eq!(Target::Group("/../../etc".to_owned()).group(), None);
        assert!(Target::Process(u32::MAX).processes().is_empty());
        assert!(Target::Name("no such process".to_owned()).processes().is_empty());
    }

    #[test]
    fn this_process_is_found_by_number_name_and_group() {
        let own = std::process::id();
        assert!(Target::Process(own).processes().contains(&own));
        assert!(Target::Name(processes::name(own)).processes().contains(&own));
        match group_folder("/") {
            Some(_) => assert!(Target::Group("/".to_owned()).processes().contains(&own)),
            None => println!("skipped this_process_is_found_by_group: cgroup2 is not mounted"),
        }
    }

    #[test]
    fn a_socket_is_found_and_given_back() {
        let test = "a_socket_is_found_and_given_back";
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let before = sockopt::socket_recv_buffer_size(&stream).unwrap();
        sockopt::set_socket_send_buffer_size(&stream, 50_000).unwrap();
        let inode = u32::try_from(rustix::fs::fstat(&stream).unwrap().st_ino).unwrap();
        let own = BTreeSet::from([std::process::id()]);
        let found = match find(&own) {
            Ok(found) => found,
            Err(error) => return println!("skipped {test}: {error}"),
        };
        let Some(found) = found.into_iter().find(|found| found.inode == inode) else {
            assert_eq!(Fixed::read(&stream), None, "where the kernel tells, it is found");
            return println!("skipped {test}: a kernel before 5.15");
        };
        let fixed = Fixed { send: true, receive: false };
        assert_eq!((found.fixed, found.send_buffer), (fixed, Bytes::new(100_000)));
        assert_eq!(Fixed::read(&stream), Some(fixed), "looking changes nothing");
        found.free().unwrap();
        assert_eq!(Fixed::read(&stream), Some(Fixed::default()));
        assert_eq!(sockopt::socket_recv_buffer_size(&stream).unwrap(), before);
        drop(stream);
        assert!(found.free().is_err(), "it is gone");
    }
}
