//! A small disk for one test.
#![expect(unsafe_code, reason = "unshare(2) has no safe form in rustix")]

use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    thread::{UnshareFlags, unshare_unsafe},
};

/// Mounts a disk of 256 KB at `folder`, seen by the calling thread alone and gone with it.
pub(crate) fn mount_small_disk(folder: &std::path::Path) -> rustix::io::Result<()> {
    // SAFETY: descriptors stay shared; the mounts and the working folder become this thread's own.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("fullpipe-test", folder, "tmpfs", MountFlags::empty(), Some(c"size=256k"))
}
