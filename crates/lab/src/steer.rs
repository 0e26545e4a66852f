//! Which processors handle what the path hands over (receive packet steering, RPS).
//!
//! Else the kernel handles a packet to the end within the write to the TUN device: the path's thread then does the receiver's work,
//! and sends its acknowledgement, too. With many connections, whose packets are not gathered into large ones, that is most of what the
//! thread does. Steered, the write leaves the packet to another processor. Where that one's backlog is full
//! (`net.core.netdev_max_backlog`), the packet counts as dropped by the device, and the lab's results as not valid.
//!
//! Read first: `Documentation/networking/scaling.rst` of the kernel.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use rustix::{
    fs::{Mode, OFlags, openat},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
    thread::{CpuSet, sched_getaffinity},
};

/// One processor for the path's thread, and the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) path: usize,
    others: CpuSet,
}

impl Split {
    /// The labs of a process take turns, beginning with the last processor that it may use. `None` where there is but one.
    pub(crate) fn next() -> io::Result<Option<Self>> {
        static LABS: AtomicUsize = AtomicUsize::new(0);
        Ok(Self::nth(LABS.fetch_add(1, Relaxed), &sched_getaffinity(None)?))
    }

    fn nth(turn: usize, allowed: &CpuSet) -> Option<Self> {
        let count = allowed.count() as usize;
        if count < 2 {
            return None;
        }
        let mut from_the_last = (0..CpuSet::MAX_CPU).rev().filter(|&processor| allowed.is_set(processor));
        let path = from_the_last.nth(turn % count)?;
        let mut others = *allowed;
        others.unset(path);
        Some(Self { path, others })
    }

    /// As `rps_cpus` takes it: hexadecimal numbers of 32 bits, the highest first.
    fn mask(&self) -> String {
        let words = (0..CpuSet::MAX_CPU / 32)
            .map(|word| (0..32).fold(0_u32, |bits, bit| bits | u32::from(self.others.is_set(32 * word + bit)) << bit));
        let words: Vec<_> = words.map(|word| format!("{word:08x}")).collect();
        let used = words.iter().rposition(|word| word.bytes().any(|digit| digit != b'0')).map_or(1, |last| last + 1);
        words[..used].iter().rev().map(String::as_str).collect::<Vec<_>>().join(",")
    }
}

/// A device whose packets are steered until this is dropped.
#[derive(Debug)]
pub(crate) struct Steering {
    processors: File,
}

impl Steering {
    /// Leaves what comes in at `device`, in the network namespace of the calling thread, to all processors but the path's.
    /// # Errors
    /// Where this kernel has no such steering, or this user may not set it: that takes CAP_NET_ADMIN outside of all user namespaces.
    pub(crate) fn start(device: &str, split: &Split) -> io::Result<Self> {
        // `/sys` shows the namespace that it was mounted in. This one is not attached anywhere.
        let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let path = format!("class/net/{device}/queues/rx-0/rps_cpus");
        let mut processors = File::from(openat(&root, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?);
        processors.write_all(split.mask().as_bytes())?;
        Ok(Self { processors })
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        // The kernel counts the devices that are steered, and does not count one down that goes away as it is.
        self.processors.write_all_at(b"0", 0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(processors: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        processors.iter().for_each(|&processor| set.set(processor));
        set
    }

    #[test]
    fn labs_take_turns_and_one_processor_is_not_split() {
        let allowed = set(&[1, 3, 40]);
        let splits = [0, 1, 2, 3].map(|turn| Split::nth(turn, &allowed).unwrap());
        assert_eq!(splits.map(|split| split.path), [40, 3, 1, 40]);
        assert_eq!(
            splits.map(|split| split.mask()),
            ["0000000a", "00000100,00000002", "00000100,00000008", "0000000a"]
        );
        assert!(Split::nth(5, &set(&[7])).is_none());
    }
}
