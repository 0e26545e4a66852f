//! Linux: `sock_diag` for the sockets, `/proc` for their owners and for what settings allow, BPF for what ends between two looks.

use std::fs;

use fullpipe_bpf::{Ends, How};
use fullpipe_socket::Fixed;

use crate::{
    diag::Diag,
    limits::Limits,
    meter::End,
    owner::Owner,
    processes::{Processes, fixed},
    source::{Each, Ended, HostCounts, Source},
    table::Owners,
    watcher::WatchError,
    wire::SocketId,
};

/// The network namespace that it was made in.
pub(crate) struct Linux {
    diag: Diag,
    processes: Processes,
    ends: Option<Ends>,
}

impl Linux {
    pub(crate) fn open() -> Result<Self, WatchError> {
        Ok(Self { diag: Diag::open()?, processes: Processes::default(), ends: None })
    }
}

/// A handle is an inode here, of which the kernel tells 32 bits.
fn inode(handle: u64) -> u32 {
    u32::try_from(handle).unwrap_or(0)
}

impl Owners for Linux {
    fn find(&mut self, handles: &mut dyn Iterator<Item = u64>) {
        self.processes.find(handles.map(inode));
    }

    fn owner(&self, handle: u64) -> Option<&Owner> {
        self.processes.owner(inode(handle))
    }

    fn fixed(&mut self, handle: u64) -> Option<Fixed> {
        fixed(self.processes.owner(inode(handle))?, inode(handle))
    }
}

impl Source for Linux {
    fn all(&mut self, each: Each<'_>) -> Result<(), WatchError> {
        self.diag.all(&mut |reading| each(reading))
    }

    fn these(&mut self, ids: &[SocketId], each: Each<'_>) -> Result<Vec<u64>, WatchError> {
        let mut gone = Vec::new();
        for id in ids {
            if !self.diag.one(id, &mut |reading| each(reading))? {
                gone.push(id.cookie);
            }
        }
        Ok(gone)
    }

    fn limits(&self) -> Limits {
        Limits::read(|name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok())
    }

    fn counts(&self) -> HostCounts {
        // Of this network namespace.
        let netstat = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
        HostCounts {
            overflows: count("ListenOverflows", &netstat),
            closed_windows: count("TCPToZeroWindowAdv", &netstat),
        }
    }

    fn queue_setting(&self) -> &'static str {
        "net.core.somaxconn"
    }

    fn keep(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.processes.keep(|inode| is_there(inode.into()));
    }

    fn hides_owners(&self) -> bool {
        self.processes.is_denied
    }

    fn missing(&self) -> Vec<String> {
        let text = "processes of other users, and which buffers they set: run as root, or with CAP_SYS_PTRACE and \
                    CAP_DAC_READ_SEARCH";
        self.processes.is_denied.then(|| text.to_owned()).into_iter().collect()
    }

    fn follow_ends(&mut self) -> Result<(), String> {
        self.ends = Some(Ends::begin().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn ended(&mut self) -> Vec<Ended> {
        let mut all = Vec::new();
        if let Some(ends) = &mut self.ends {
            ends.drain(|one| all.push(ended(one)));
        }
        all
    }

    fn lost_ends(&self) -> Option<u64> {
        self.ends.as_ref().and_then(|ends| ends.lost().ok())
    }
}

fn ended(ended: fullpipe_bpf::Ended) -> Ended {
    let fullpipe_bpf::Ended { cookie, peer, process, moved, segments, rtt_us, how } = ended;
    let end = match how {
        How::Closed => End::Closed,
        How::ResetByPeer => End::Aborted("reset_by_peer"),
        How::ResetHere => End::Aborted("reset_here"),
        How::Refused => End::Aborted("refused"),
        How::TimedOut => End::Aborted("timed_out"),
        How::Failed => End::Aborted("failed"),
    };
    Ended { cookie, peer, process, moved, segments, rtt_us, end }
}

/// A counter of `TcpExt:`, whose first line has the names and whose second has the figures.
fn count(name: &str, netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let at = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows Last\nTcpExt: 1 22 3\nIpExt: A\nIpExt: 9\n";
        assert_eq!(count("ListenOverflows", text), Some(22));
        assert_eq!(count("Absent", text), None);
        assert_eq!(count("ListenOverflows", ""), None);
    }
}
