//! Why a lab could not be made or a result can't be used.

use std::io;

use fullpipe_path::Side;

use crate::stats::PathError;

/// Why a lab could not be made. Each message is one line that says what is needed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The process may not make network namespaces, and no user namespace was entered.
    #[error(
        "making a network namespace needs root or a user namespace: run as root, or call enter_user_namespace() at the start"
    )]
    NeedsNamespaceRights,
    /// The kernel or its administrator switched unprivileged user namespaces off.
    #[error("user namespaces are switched off here ({switch}): run as root, or have an administrator set {remedy}")]
    UserNamespacesOff {
        /// The setting that says so, with its value.
        switch: String,
        /// What would allow it.
        remedy: &'static str,
    },
    /// AppArmor takes the capabilities away inside a user namespace (Ubuntu 23.10 and later).
    #[error(
        "AppArmor forbids this program to use user namespaces: run as root, or have an administrator set kernel.apparmor_restrict_unprivileged_userns=0 (or give this program a profile with `userns,`)"
    )]
    AppArmor,
    /// A user namespace is entered by a process with one thread only, and this one has more.
    #[error(
        "entering a user namespace needs a process with one thread, and this one has {threads}: do it first in main"
    )]
    TooManyThreads {
        /// How many threads there are.
        threads: usize,
    },
    /// There is no TUN driver.
    #[error(
        "/dev/net/tun is missing: load the driver with `modprobe tun`, or in a container pass --device /dev/net/tun"
    )]
    TunMissing,
    /// The TUN device node is there and this user may not open it.
    #[error(
        "/dev/net/tun can't be opened by this user (mode {mode:04o}, owner {owner}): run as root, or have an administrator `chmod 0666 /dev/net/tun`, the usual mode"
    )]
    TunDenied {
        /// The permission bits of the node.
        mode: u32,
        /// The numeric owner of the node.
        owner: u32,
    },
    /// This user may open the TUN driver and not make a device.
    #[error(
        "making the TUN device {device} needs CAP_NET_ADMIN: run as root, or have an administrator make it for you with `ip tuntap add dev {device} mode tun vnet_hdr user NAME` and give it an address"
    )]
    TunRights {
        /// The device.
        device: String,
    },
    /// A TUN device of this machine's own kernel could not be set up.
    #[error("cannot set up the device {device}: {source}")]
    Device {
        /// The device.
        device: String,
        /// What the kernel said.
        source: fullpipe_host::linux::net::NetError,
    },
    /// The path has IPv6 and this kernel hasn't.
    #[error("this kernel has no IPv6 (built without, or booted with ipv6.disable=1): take a path with `ip = \"v4\"`")]
    NoIpv6,
    /// A call to the kernel failed.
    #[error("cannot {operation} for host {host}: {source}")]
    Host {
        /// What was tried.
        operation: String,
        /// The host.
        host: Side,
        /// What the kernel said.
        source: io::Error,
    },
    /// A network interface, address or route could not be set up.
    #[error("cannot set up the network of host {host}: {source}")]
    Net {
        /// The host.
        host: Side,
        /// What the kernel said.
        source: fullpipe_host::linux::net::NetError,
    },
    /// A setting could not be put in force on a host.
    #[error("cannot set `{setting}` on host {host}: {source}")]
    Setting {
        /// The setting, as it was given.
        setting: String,
        /// The host.
        host: Side,
        /// It is no setting, or what the kernel said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something that belongs to no host failed.
    #[error("cannot {operation}: {source}")]
    System {
        /// What was tried.
        operation: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl LabError {
    pub(crate) fn system(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { operation: operation.into(), source: source.into() }
    }
}

/// The lab released packets so late, or lost so many, that what was measured over it is not the path's doing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CouldNotKeepUp {
    /// Packets were released too late.
    #[error(
        "the lab could not keep up: {share} of 100 packets left within {late_us} us of their planned time, the limit is {limit_us} us; close what else loads this machine or take a slower path"
    )]
    Late {
        /// The part of the packets that is compared, in percent.
        share: u32,
        /// So late were they at most, in microseconds.
        late_us: u64,
        /// The largest lateness that is accepted, in microseconds.
        limit_us: u64,
    },
    /// The lab stood still for so long that the connections' timers may have fired because of it.
    #[error("the path emulator was descheduled for {} us, the limit is {limit_us} us; close what else loads this machine and repeat", error.max_us)]
    Stalled {
        /// What was seen.
        error: PathError,
        /// The largest error of one packet that is accepted.
        limit_us: u64,
    },
    /// Packets were lost outside the emulated path.
    #[error(
        "the lab lost {packets} packets outside the emulated path ({place}); close what else loads this machine and repeat"
    )]
    Lost {
        /// How many.
        packets: u64,
        /// Where: the device's queue, the lab's memory, or the kernel's refusal.
        place: &'static str,
    },
}
