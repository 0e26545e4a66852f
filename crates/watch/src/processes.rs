//! Whose sockets these are, by `/proc/PID/fd`: looked for only where a socket is new and shown, in the processes that have
//! sockets first. A process that is gone before it is read is no error.
//!
//! Where processes hold tens of thousands of descriptors, reading all of them for each new connection would cost more than the
//! connections themselves: they are read in rounds, each of which goes on where the last question was answered, remembers what it saw
//! on the way, and takes a bounded part of each interval.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

use fullpipe_socket::Fixed;

use crate::owner::{Owner, cgroup, container};

/// A socket that was not found in so many rounds belongs to nobody that can be read.
const ATTEMPTS: u64 = 3;

/// How many descriptors and processes are read at the most for one question, once all of them were read: some 10 ms.
const MOST_READ: usize = 5000;

/// What is known of sockets' owners, by inode.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    owners: HashMap<u32, Owner>,
    /// Where sockets were that nobody has asked for yet.
    seen: HashMap<u32, Place>,
    /// Since which round a socket has been looked for.
    missed: HashMap<u32, u64>,
    /// How often all processes were read.
    rounds: u64,
    round: Option<Round>,
    /// Those that had sockets.
    likely: Vec<u32>,
    /// Whether a process could not be looked into.
    pub(crate) is_denied: bool,
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug)]
struct Place {
    pid: u32,
    fd: u32,
}

impl Place {
    /// Whether it is this socket now.
    fn holds(self, inode: u32) -> bool {
        let link = fs::read_link(format!("/proc/{}/fd/{}", self.pid, self.fd));
        link.ok().as_deref().and_then(socket_inode) == Some(inode)
    }

    /// Its process; `about` has those that were asked for already.
    fn owner(self, about: &mut HashMap<u32, Owner>) -> Owner {
        let about = about.entry(self.pid).or_insert_with(|| describe(self.pid));
        Owner { fd: Some(self.fd), ..about.clone() }
    }
}

/// All processes, one after the other.
#[derive(Debug)]
struct Round {
    left: VecDeque<u32>,
    /// Those that came first, until the others are listed.
    first: Option<HashSet<u32>>,
    open: Option<(u32, fs::ReadDir)>,
    /// Those that had a socket that was asked for.
    likely: Vec<u32>,
}

impl Round {
    /// Those of `likely` come first.
    fn begin(likely: Vec<u32>) -> Self {
        let first = likely.iter().copied().collect();
        Self { left: likely.into(), first: Some(first), open: None, likely: Vec::new() }
    }

    /// The next process; `None` at the end.
    fn next(&mut self) -> Option<u32> {
        if self.left.is_empty()
            && let Some(first) = self.first.take()
        {
            self.left = others(&first).into();
        }
        self.left.pop_front()
    }
}

/// All but `first`: those of this network namespace, then those of others, because whoever passes a socket on may be elsewhere.
fn others(first: &HashSet<u32>) -> Vec<u32> {
    let network = |pid: &dyn std::fmt::Display| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let here: Option<PathBuf> = network(&"thread-self");
    let (mut near, far): (Vec<u32>, Vec<u32>) =
        pids().filter(|pid| !first.contains(pid)).partition(|pid| network(pid) == here);
    near.extend(far);
    near
}

impl Processes {
    /// The owner of a socket, where it has been found.
    pub(crate) fn owner(&self, inode: u32) -> Option<&Owner> {
        self.owners.get(&inode)
    }

    /// Looks for those of `inodes` that are not known yet.
    pub(crate) fn find(&mut self, inodes: impl Iterator<Item = u32>) {
        let mut wanted: HashSet<u32> = inodes
            .filter(|inode| *inode != 0 && !self.owners.contains_key(inode))
            .filter(|inode| self.missed.get(inode).is_none_or(|since| self.rounds < since + ATTEMPTS))
            .collect();
        let mut about: HashMap<u32, Owner> = HashMap::new();
        self.take_seen(&mut wanted, &mut about);
        wanted.iter().for_each(|inode| {
            self.missed.entry(*inode).or_insert(self.rounds);
        });
        // What is left of the round that is under way, and one whole round.
        let last = self.rounds + if self.round.is_some() { 2 } else { 1 };
        let mut may_read = if self.rounds == 0 { usize::MAX } else { MOST_READ };
        while !wanted.is_empty() && self.rounds < last && may_read > 0 {
            may_read -= 1;
            self.read_one(&mut wanted, &mut about);
        }
    }

    /// Forgets all sockets but these.
    pub(crate) fn keep(&mut self, is_there: impl Fn(u32) -> bool) {
        self.owners.retain(|inode, _| is_there(*inode));
        self.missed.retain(|inode, _| is_there(*inode));
        self.seen.retain(|inode, _| is_there(*inode));
    }

    /// Those of `wanted` that were seen while others were looked for.
    fn take_seen(&mut self, wanted: &mut HashSet<u32>, about: &mut HashMap<u32, Owner>) {
        wanted.retain(|inode| {
            let Some(place) = self.seen.remove(inode).filter(|place| place.holds(*inode)) else { return true };
            self.owners.insert(*inode, place.owner(about));
            false
        });
    }

    /// Reads the next descriptor, or goes on to the next process.
    fn read_one(&mut self, wanted: &mut HashSet<u32>, about: &mut HashMap<u32, Owner>) {
        let round = self.round.get_or_insert_with(|| Round::begin(std::mem::take(&mut self.likely)));
        let Some((pid, entries)) = &mut round.open else {
            let Some(pid) = round.next() else {
                self.likely = std::mem::take(&mut round.likely);
                self.rounds += 1;
                self.round = None;
                return;
            };
            match fs::read_dir(format!("/proc/{pid}/fd")) {
                Ok(entries) => round.open = Some((pid, entries)),
                Err(error) => self.is_denied |= error.kind() == io::ErrorKind::PermissionDenied,
            }
            return;
        };
        let pid = *pid;
        // A process that ends while it is read has no more of them.
        let Some(Ok(entry)) = entries.next() else {
            round.open = None;
            return;
        };
        let Some((fd, inode)) = socket(&entry) else { return };
        let place = Place { pid, fd };
        if wanted.remove(&inode) {
            self.owners.insert(inode, place.owner(about));
            self.missed.remove(&inode);
            if round.likely.last() != Some(&pid) {
                round.likely.push(pid);
            }
        } else if !self.owners.contains_key(&inode) {
            self.seen.insert(inode, place);
        }
    }
}

/// Which of a socket's buffers its application has set. A descriptor for the very same socket is taken from the process,
/// asked, and closed again; `None` without the right to (`PTRACE_MODE_ATTACH`), or before Linux 5.15.
pub(crate) fn fixed(owner: &Owner, inode: u32) -> Option<Fixed> {
    Fixed::read(&fullpipe_socket::processes::take(owner.pid, owner.fd?, inode).ok()??)
}

/// The descriptors of a process that are sockets, each with its inode; none where it is gone or can't be looked into.
pub(crate) fn sockets(pid: u32) -> impl Iterator<Item = (u32, u32)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| socket(&entry))
}

/// The descriptor that an entry of `/proc/PID/fd` stands for, and the inode of its socket; `None` where it is none.
fn socket(entry: &fs::DirEntry) -> Option<(u32, u32)> {
    let inode = fs::read_link(entry.path()).ok().as_deref().and_then(socket_inode)?;
    Some((entry.file_name().to_str()?.parse().ok()?, inode))
}

/// The numbers of all processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name that a process chose.
pub(crate) fn name(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned()
}

/// What there is to know of a process.
pub(crate) fn describe(pid: u32) -> Owner {
    let file = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let cgroup = cgroup(&String::from_utf8_lossy(&file));
    Owner { process: name(pid), pid, fd: None, container: cgroup.as_deref().and_then(container), cgroup }
}

/// The number in `socket:[4711]`.
fn socket_inode(link: &Path) -> Option<u32> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::fd::AsRawFd};

    use super::*;

    #[test]
    fn a_socket_is_found_with_its_process_and_descriptor() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = u32::try_from(rustix::fs::fstat(&listener).unwrap().st_ino).unwrap();
        let mut processes = Processes::default();
        processes.find([inode, 0].into_iter());
        let owner = processes.owner(inode).unwrap().clone();
        assert_eq!((owner.pid, owner.fd), (std::process::id(), Some(listener.as_raw_fd().cast_unsigned())));
        assert!(!owner.process.is_empty());
        processes.keep(|_| false);
        assert_eq!(processes.owner(inode), None);
    }

    #[test]
    fn a_socket_that_was_seen_beside_another_is_known_until_it_is_closed() {
        let sockets = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let inodes = sockets.each_ref().map(|socket| u32::try_from(rustix::fs::fstat(socket).unwrap().st_ino).unwrap());
        let mut processes = Processes::default();
        processes.find([inodes[0], u32::MAX].into_iter());
        let place = processes.seen[&inodes[1]];
        assert_eq!((place.pid, place.fd), (std::process::id(), sockets[1].as_raw_fd().cast_unsigned()));
        processes.find([inodes[1]].into_iter());
        assert_eq!(processes.owner(inodes[1]).unwrap().fd, Some(place.fd));
        assert!(!processes.seen.contains_key(&inodes[1]));
        processes.owners.clear();
        processes.seen.insert(inodes[1], place);
        drop(sockets);
        processes.find([inodes[1]].into_iter());
        assert_eq!(
            (processes.owner(inodes[1]), processes.missed[&inodes[1]]),
            (None, 1),
            "the descriptor is free by now"
        );
    }

    #[test]
    fn a_round_goes_on_where_the_last_question_was_answered() {
        let sockets = [0; 40].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let inodes = sockets.each_ref().map(|socket| u32::try_from(rustix::fs::fstat(socket).unwrap().st_ino).unwrap());
        let mut processes = Processes { rounds: 1, ..Processes::default() };
        // More than one question reads; the answer comes all the same.
        for _ in 0..10_000 {
            processes.find(inodes.into_iter());
            if inodes.iter().all(|inode| processes.owner(*inode).is_some()) {
                break;
            }
        }
        assert!(inodes.iter().all(|inode| processes.owner(*inode).is_some()));
        assert!(processes.rounds <= 2, "{}", processes.rounds);
        let (rounds, before) = (processes.rounds, processes.seen.len());
        processes.find(inodes.into_iter());
        assert_eq!((processes.rounds, processes.seen.len()), (rounds, before), "nothing is read for what is known");
    }

    #[test]
    fn a_buffer_that_was_set_is_told_from_one_that_was_left_alone() {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_send_buffer_size(65_536).unwrap();
        let inode = u32::try_from(rustix::fs::fstat(&socket).unwrap().st_ino).unwrap();
        let mut processes = Processes::default();
        processes.find([inode].into_iter());
        let owner = processes.owner(inode).unwrap();
        match fixed(owner, inode) {
            Some(fixed) => assert_eq!((fixed.send, fixed.receive), (true, false)),
            None => println!("skipped: a kernel before 5.15, or no right to take a descriptor"),
        }
        assert_eq!(fixed(owner, inode.wrapping_add(1)), None, "the descriptor is another socket's by now");
    }

    #[test]
    fn a_process_that_is_gone_and_a_socket_of_nobody_are_no_error() {
        let mut processes = Processes::default();
        let until_nothing_is_read = (0..10_000).find(|_| {
            let before = processes.rounds;
            processes.find([u32::MAX].into_iter());
            processes.rounds == before && processes.round.is_none()
        });
        assert!(until_nothing_is_read.is_some_and(|times| times >= 1));
        assert_eq!(processes.rounds, ATTEMPTS);
        assert_eq!(fixed(&Owner { pid: 0x3fff_ffff, fd: Some(1), ..Owner::default() }, 1), None);
    }
}
