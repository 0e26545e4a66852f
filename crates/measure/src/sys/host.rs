//! What this machine calls itself and which congestion control it has.

use std::fs;

/// What this machine calls itself, as `uname -n`.
#[cfg(unix)]
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What this machine calls itself, as `hostname` of Windows says.
#[cfg(not(unix))]
pub fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this host".to_owned())
}

/// This system in one line, as `uname -a` has it.
#[cfg(unix)]
pub fn system() -> String {
    let uname = rustix::system::uname();
    let parts = [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

/// This system in one line.
#[cfg(not(unix))]
pub fn system() -> String {
    format!("{} {} {}", std::env::consts::OS, name(), std::env::consts::ARCH)
}

/// The platform: the family alone, as this room does not ask for the version.
#[cfg(not(unix))]
pub(crate) fn platform() -> String {
    std::env::consts::OS.to_owned()
}

/// The platform in catalogue spelling: `linux-6.18`.
#[cfg(unix)]
pub(crate) fn platform() -> String {
    let uname = rustix::system::uname();
    let family = uname.sysname().to_string_lossy().to_lowercase();
    let release = uname.release().to_string_lossy().into_owned();
    let version: Vec<&str> = release.split(['.', '-']).take(2).collect();
    format!("{family}-{}", version.join("."))
}

/// The processor that this thread runs on.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "other systems are not asked")]
pub(crate) fn processor() -> Option<u32> {
    Some(rustix::thread::sched_getcpu() as u32)
}

/// Not asked here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn processor() -> Option<u32> {
    None
}

/// Sees to it that this process may open so many more files, as far as the administrator lets it: the usual limit, 1,024,
/// is one for programs that use `select`.
#[cfg(unix)]
pub(crate) fn allow_files(more: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// What a process of ours has open beside its connections, with as much for other tests at the same time.
    const OTHERS: u64 = 512;
    let limit = getrlimit(Resource::Nofile);
    let wanted = more.saturating_add(OTHERS).min(limit.maximum.unwrap_or(u64::MAX));
    if limit.current.is_some_and(|current| current < wanted) {
        // Where it is refused, opening the first connection too many says so.
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).unwrap_or_default();
    }
}

/// Has this thread run after those of the usual priority.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    // Of this thread alone on Linux (setpriority(2)); where it is refused, the test lasts longer than it should.
    let now = rustix::process::getpriority_process(None).unwrap_or(0);
    rustix::process::setpriority_process(None, (now + 10).min(19)).unwrap_or_default();
}

/// Elsewhere a priority is that of a whole process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}

/// There is no such limit.
#[cfg(not(unix))]
pub(crate) fn allow_files(_: u64) {}

/// The congestion control that a new socket gets.
pub(crate) fn congestion_control() -> Option<String> {
    sysctl("net/ipv4/tcp_congestion_control")
}

/// The congestion controls that the kernel has loaded.
pub(crate) fn available_congestion_controls() -> Vec<String> {
    let words = sysctl("net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    words.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Whether this host's SYNs carry the window-scale option.
pub(crate) fn offers_window_scaling() -> Option<bool> {
    sysctl("net/ipv4/tcp_window_scaling").map(|value| value != "0")
}

fn sysctl(path: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/{path}")).ok().map(|text| text.trim().to_owned())
}
