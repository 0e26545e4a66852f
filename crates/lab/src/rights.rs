//! May this process make a lab, and how does an ordinary user get there.

use std::{fs, io};

use rustix::thread::{CapabilitySet, capabilities};

use crate::{LabError, sys, tun};

/// Whether this user can make a lab, as root or after [`enter_user_namespace`]. Changes nothing.
///
/// # Errors
/// What is needed, as one line.
pub fn preflight() -> Result<(), LabError> {
    if !is_privileged() {
        sys::try_user_namespace_in_child().map_err(|error| user_namespace_refused(&error))?;
    }
    tun::check_access()
}

/// Makes this process root of a user namespace of its own, where it isn't root already, so that it can make a lab.
///
/// Outside the namespace it keeps the rights that it had: its files stay its user's. Call it first in `main`: the
/// kernel wants a process with one thread.
///
/// # Errors
/// What is needed, as one line. The process is as before then.
pub fn enter_user_namespace() -> Result<(), LabError> {
    if is_privileged() {
        return Ok(());
    }
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(LabError::TooManyThreads { threads });
    }
    // First everything that can be refused, in a child: what comes now can't be taken back.
    preflight()?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare_user().map_err(|error| user_namespace_refused(&error))?;
    // user_namespaces(7): an unprivileged gid_map needs setgroups denied before.
    for (file, content) in
        [("setgroups", "deny".to_owned()), ("uid_map", format!("0 {user} 1")), ("gid_map", format!("0 {group} 1"))]
    {
        fs::write(format!("/proc/self/{file}"), content).map_err(|error| user_namespace_refused(&error))?;
    }
    Ok(())
}

/// Whether this thread may make network namespaces and devices in them.
pub(crate) fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Finds out which of the known switches stands behind a refusal.
fn user_namespace_refused(error: &io::Error) -> LabError {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let off = |switch: &str, remedy| LabError::UserNamespacesOff { switch: switch.to_owned(), remedy };
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return off("user.max_user_namespaces=0", "user.max_user_namespaces=10000");
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return off("kernel.unprivileged_userns_clone=0", "kernel.unprivileged_userns_clone=1");
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return LabError::AppArmor;
    }
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL) => off("the kernel was built without CONFIG_USER_NS", "up another kernel"),
        Some(libc::ENOSPC) => off("as many exist as are allowed", "a higher user.max_user_namespaces"),
        _ => off(
            "the kernel refuses them, perhaps for a container's seccomp profile",
            "the container to --cap-add SYS_ADMIN --cap-add NET_ADMIN, or its seccomp profile to unconfined",
        ),
    }
}
