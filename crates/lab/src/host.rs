//! One end of the path: a Linux host in a network namespace of this process.

use std::{
    collections::BTreeMap,
    error::Error,
    ffi::OsStr,
    fs,
    fs::File,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::FileExt,
    process::Command,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use fullpipe_host::{
    Host,
    linux::{
        LinuxHost,
        net::{NetError, Netlink},
    },
};
use fullpipe_knobs::Address;
use fullpipe_path::{DEVICE, IpVersions, PathSpec, Side};
use tracing::debug;

use crate::{
    LabError,
    netns::Namespace,
    steer::{Split, Steering},
    sys,
    tun::{Offload, Tun},
};

/// What the device holds for the lab to read, in packets of up to 64 KB: more than any window is in flight, so that the
/// emulated path's queue is the one that fills, and a drop here means that the lab did not read in time.
const QUEUE_PACKETS: u32 = 10_000;

/// One end of the path.
#[derive(Debug)]
pub struct LabHost {
    name: Side,
    namespace: Namespace,
    // Ends before its device.
    steering: Option<Steering>,
    tun: Tun,
    offload: Offload,
    ip: IpVersions,
    /// `/proc/net/dev` of the namespace: a descriptor shows it from whatever namespace it is read.
    counters: File,
    /// Whether its threads come before all normal ones.
    first: AtomicBool,
}

impl LabHost {
    /// Which end it is.
    pub fn name(&self) -> Side {
        self.name
    }

    /// Its address on the path that a test uses first: IPv4 where the path has it, else IPv6.
    pub fn address(&self) -> IpAddr {
        if self.ip.has_v4() { self.name.ipv4().into() } else { self.name.ipv6().into() }
    }

    /// Its IPv4 address, where the path has IPv4.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.ip.has_v4().then(|| self.name.ipv4())
    }

    /// Its IPv6 address, where the path has IPv6.
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.ip.has_v6().then(|| self.name.ipv6())
    }

    /// What its kernel hands over as super-packets.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// Runs `work` on a fresh thread inside this host and hands its result back. Threads that `work` starts, and
    /// sockets that it opens, belong to this host for good; threads that existed before don't.
    ///
    /// # Errors
    /// [`LabError::Host`] where the kernel gives no thread or doesn't let it in.
    ///
    /// # Panics
    /// Where `work` panics.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        self.inside(work).map_err(|source| self.error("run a thread inside the namespace", source))
    }

    /// Starts `work` on a thread of this name inside this host: a server, for example. The thread is not stopped with
    /// the lab; it keeps the namespace, without its path, until it ends.
    ///
    /// # Errors
    /// [`LabError::Host`] where the kernel gives no thread or doesn't let it in.
    pub fn spawn<R: Send + 'static>(
        &self,
        thread_name: &str,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<thread::JoinHandle<R>, LabError> {
        // Started from inside, the thread is born there, and there is nothing that could fail on it.
        self.inside(|| thread::Builder::new().name(thread_name.to_owned()).spawn(work))
            .and_then(|spawned| spawned)
            .map_err(|source| self.error("start a thread inside the namespace", source))
    }

    /// A command that will run inside this host: a shell, or anybody's tool. It sees this host's interfaces under
    /// `/sys`, and of processes only those that it starts itself.
    ///
    /// The child, and all that it ever starts, gets SIGKILL when the *thread* that spawns it ends, and so also when this
    /// process is killed: spawn it from a thread that lives as long as the child shall. A child that a signal ended has
    /// the exit code 128 + signal, as in a shell.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        sys::start_inside(&mut command, self.namespace.descriptor().clone());
        command
    }

    /// Puts settings in force on this host: address (`net.ipv4.tcp_rmem`, `route 10.80.0.0/24 window`) to value.
    ///
    /// # Errors
    /// [`LabError::Setting`] for the first that is unknown or that the kernel refuses; those before it stay in force.
    pub fn apply(&self, settings: &BTreeMap<String, String>) -> Result<(), LabError> {
        let apply = |name: &str, value: &str| -> Result<(), Box<dyn Error + Send + Sync>> {
            LinuxHost::new().write(&name.parse::<Address>()?, Some(value))?;
            Ok(())
        };
        self.run(|| {
            settings.iter().try_for_each(|(name, value)| {
                let failed = |source| LabError::Setting { setting: name.clone(), host: self.name, source };
                apply(name, value).map_err(failed)
            })
        })?
    }

    /// From now on threads inside, and those that they start, come before all normal ones where this user may do so: an
    /// end that waits for a processor is slower than its path.
    pub(crate) fn put_first(&self) {
        self.first.store(true, Relaxed);
    }

    fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        self.namespace.run(|| {
            if self.first.load(Relaxed) {
                // Without the right to (CAP_SYS_NICE, RLIMIT_RTPRIO) it takes its turn like everybody else.
                sys::set_realtime(sys::RealTime::End).ok();
            }
            work()
        })
    }

    /// Whether what it receives is left to other processors than the path's.
    pub(crate) fn is_steered(&self) -> bool {
        self.steering.is_some()
    }

    pub(crate) fn tun(&self) -> &Tun {
        &self.tun
    }

    /// Packets that the device dropped, in either direction, since it was made.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        let mut text = vec![0; 4_096];
        let mut len = 0;
        loop {
            let read = self.counters.read_at(&mut text[len..], len as u64)?;
            if read == 0 {
                break;
            }
            len += read;
            text.resize(text.len().max(len + 2_048), 0);
        }
        dropped_in(&String::from_utf8_lossy(&text[..len]))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {DEVICE} in /proc/net/dev")))
    }

    pub(crate) fn error(&self, operation: &str, source: impl Into<io::Error>) -> LabError {
        host_error(self.name, operation, source)
    }

    /// Makes a host with its end of the path, ready for use but for what reads the device.
    pub(crate) fn create(name: Side, path: &PathSpec, offload: bool, split: Option<&Split>) -> Result<Self, LabError> {
        let namespace = Namespace::create().map_err(|source| host_error(name, "make a network namespace", source))?;
        namespace
            .clone()
            .run(|| Self::configure(name, namespace, path, offload, split))
            .map_err(|source| host_error(name, "enter its network namespace", source))?
    }

    /// On a thread inside the namespace.
    fn configure(
        name: Side,
        namespace: Namespace,
        path: &PathSpec,
        offload: bool,
        split: Option<&Split>,
    ) -> Result<Self, LabError> {
        let failed = |operation: &'static str| move |source: io::Error| host_error(name, operation, source);
        let kernel_has_ipv6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
        if path.ip.has_v6() && !kernel_has_ipv6 {
            return Err(LabError::NoIpv6);
        }
        for (sysctl, value) in SYSCTLS.iter().chain(if kernel_has_ipv6 { SYSCTLS_IPV6 } else { &[] }) {
            let file = format!("/proc/sys/{}", sysctl.replace('.', "/"));
            fs::write(&file, value).map_err(|source| host_error(name, &format!("set {sysctl}"), source))?;
        }
        let tun = Tun::create(DEVICE).map_err(failed("make the TUN device"))?;
        let offload = if offload { tun.enable_offload() } else { Offload::Off };
        connect(name, path).map_err(|source| LabError::Net { host: name, source })?;
        let counters = File::open("/proc/thread-self/net/dev").map_err(failed("open /proc/net/dev"))?;
        let steering = split.map(|split| Steering::start(DEVICE, split)).transpose();
        let steering = steering.inspect_err(|error| debug!(%error, "received packets are not steered")).ok().flatten();
        let first = AtomicBool::new(false);
        Ok(Self { name, namespace, steering, tun, offload, ip: path.ip, counters, first })
    }
}

/// What each host starts with. A scenario's own settings come after these.
const SYSCTLS: &[(&str, &str)] = &[
    // Else the kernel remembers ssthresh, RTT and reordering of each peer, and one run decides the next one's start.
    ("net.ipv4.tcp_no_metrics_save", "1"),
    // Where a user adds routes by hand, no packet shall vanish for the way that it came.
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
];

/// So that addresses are usable at once and nothing is on the wire but what a test puts there.
const SYSCTLS_IPV6: &[(&str, &str)] = &[
    ("net.ipv6.conf.all.disable_ipv6", "0"),
    ("net.ipv6.conf.default.disable_ipv6", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.default.dad_transmits", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    // No link-local address of its own making (IN6_ADDR_GEN_MODE_NONE).
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
];

/// Takes the interfaces up and gives the device its addresses. The route to the network of the path, which carries a
/// scenario's route metrics, comes with the address.
fn connect(name: Side, path: &PathSpec) -> Result<(), NetError> {
    let mut netlink = Netlink::open()?;
    netlink.set_up("lo")?;
    netlink.set_mtu(DEVICE, path.mtu)?;
    netlink.set_txqueuelen(DEVICE, QUEUE_PACKETS)?;
    netlink.set_up(DEVICE)?;
    let link = netlink.link(DEVICE)?.number;
    if path.ip.has_v4() {
        netlink.add_address(link, name.ipv4().into(), 24)?;
    }
    if path.ip.has_v6() {
        netlink.add_address(link, name.ipv6().into(), 64)?;
    }
    Ok(())
}

fn host_error(name: Side, operation: &str, source: impl Into<io::Error>) -> LabError {
    let source = source.into();
    if source.kind() == io::ErrorKind::PermissionDenied && !crate::rights::is_privileged() {
        return LabError::NeedsNamespaceRights;
    }
    LabError::Host { operation: operation.to_owned(), host: name, source }
}

/// The drop columns of the device's line: 8 figures for receiving and 8 for sending, the fourth of each is `drop`.
fn dropped_in(proc_net_dev: &str) -> Option<u64> {
    let line = proc_net_dev.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    let mut figures = line.split_ascii_whitespace().map(|figure| figure.parse::<u64>().ok());
    let received = figures.nth(3)??;
    let sent = figures.nth(7)??;
    Some(received + sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_drops_of_the_device() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                    lo:     100       1    0    9    0     0          0         0      100       1    0    9    0     0       0          0\n \
                    path0:  2000      20    1    3    0     0          0         0     3000      30    2    4    0     0       0          0\n";
        assert_eq!(dropped_in(text), Some(7));
        assert_eq!(dropped_in("lo: 1 2 3"), None);
    }
}
