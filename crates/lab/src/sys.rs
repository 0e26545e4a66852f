//! The system calls that have no safe wrapper: TUN control, real-time scheduling, and what a child does before `exec`.
#![expect(unsafe_code, reason = "ioctl on TUN, sched_setscheduler, unshare and pre_exec have no safe form")]

use std::{
    ffi::{c_int, c_ulong},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::Arc,
};

use rustix::{
    process::{Signal, set_parent_process_death_signal},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space},
};

use crate::init;

// linux/if_tun.h; libc has the flags, and not every target has the requests.
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::Ioctl = 0x4004_54d8;

pub(crate) const IFF_TUN: i16 = 0x0001;
pub(crate) const IFF_TAP: i16 = 0x0002;
pub(crate) const IFF_NO_PI: i16 = 0x1000;
pub(crate) const IFF_VNET_HDR: i16 = 0x4000;

pub(crate) const TUN_F_CSUM: u32 = 0x01;
pub(crate) const TUN_F_TSO4: u32 = 0x02;
pub(crate) const TUN_F_TSO6: u32 = 0x04;
pub(crate) const TUN_F_TSO_ECN: u32 = 0x08;

/// Makes the TUN device `name` behind `fd`.
pub(crate) fn tun_set_iff(fd: BorrowedFd<'_>, name: &str, flags: i16) -> io::Result<()> {
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF, &raw mut request) })
}

/// Tells the kernel which offloads this reader understands (`TUN_F_*`).
pub(crate) fn tun_set_offload(fd: BorrowedFd<'_>, offloads: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETOFFLOAD, c_ulong::from(offloads)) })
}

/// How many bytes were written to a connection and not yet acknowledged (tcp(7), SIOCOUTQ).
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: SIOCOUTQ, which has the number of TIOCOUTQ, writes one `int`, which lives until the call returns.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    u32::try_from(bytes).map_err(|_| io::Error::other("the kernel counts less than nothing"))
}

/// Sets the size of the virtio-net header in front of each packet.
pub(crate) fn tun_set_vnet_header_size(fd: BorrowedFd<'_>, size: c_int) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one `int`, which lives until the call returns.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETVNETHDRSZ, &raw const size) })
}

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface name too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

/// How a thread comes before all normal ones.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RealTime {
    /// SCHED_FIFO, above the ends: for what keeps time. What the thread starts is normal again.
    Clock,
    /// SCHED_RR at the lowest priority, in turn with the other end; what the thread starts is so, too.
    End,
}

/// Gives the calling thread a real-time policy. A nice value would not do: it counts within a session alone (autogroup).
pub(crate) fn set_realtime(how: RealTime) -> io::Result<()> {
    let (policy, priority) = match how {
        RealTime::Clock => (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 2),
        RealTime::End => (libc::SCHED_RR, 1),
    };
    // SAFETY: `sched_param` is plain data for which all zeroes is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: reads one `sched_param`, which lives until the call returns; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}

/// Puts the calling thread under SCHED_IDLE: it runs only where nobody else wants to.
pub(crate) fn set_idle_priority() -> io::Result<()> {
    // SAFETY: `sched_param` is plain data for which all zeroes is a value.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: reads one `sched_param`, which lives until the call returns; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) })
}

/// Sets the nice value of the calling thread.
pub(crate) fn set_nice(nice: c_int) -> io::Result<()> {
    // SAFETY: takes its arguments by value; 0 is the calling thread (on Linux a nice value belongs to a thread).
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })
}

/// Gives the calling thread a network namespace of its own.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: NEWNET leaves files, memory and file system of the thread as they are.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Gives the process, which has one thread, a user namespace of its own.
pub(crate) fn unshare_user() -> io::Result<()> {
    // SAFETY: NEWUSER changes credentials only, and the kernel refuses it to a process with more threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    Ok(())
}

/// Makes `command` start its child inside the network namespace, and the child and all that it starts die with the
/// thread that spawns it.
pub(crate) fn start_inside(command: &mut Command, namespace: Arc<OwnedFd>) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Where the parent died before the line above, no signal will come.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        init::enter_process_namespace()
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(prepare) };
}

/// Whether a child of this process could enter a user namespace and use a network namespace in it. Nothing changes in
/// this process.
pub(crate) fn try_user_namespace_in_child() -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    // SAFETY: between fork and exec only system calls are made. It always fails, so that nothing is ever executed.
    unsafe {
        command.pre_exec(|| {
            unshare_user()?;
            unshare_network()?;
            Err(io::Error::from_raw_os_error(libc::ECANCELED))
        });
    }
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::other("the probe went on after its end")),
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
