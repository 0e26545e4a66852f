//! Which machine this is: kernel, memory, boot and network namespace.

use std::fs;

use fullpipe_knobs::{Family, MachineFacts, Platform};
use fullpipe_units::Bytes;

use crate::Identity;

/// `linux` and the kernel's release without the distribution's suffix: `6.18.44`.
pub(super) fn platform() -> Platform {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let version: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    Platform { family: Family::Linux, version: version.trim_end_matches('.').to_owned() }
}

pub(super) fn facts() -> MachineFacts {
    let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    MachineFacts { memory, page: u64::try_from(rustix::param::page_size()).ok().map(Bytes::new) }
}

/// `MemTotal` of /proc/meminfo, which is in kibibytes (proc_meminfo(5)).
fn total_memory(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024).map(Bytes::new)
}

/// The boot, and the network namespace of the calling thread.
pub(super) fn identity() -> Identity {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let namespace = fs::read_link("/proc/thread-self/ns/net").ok();
    Identity {
        boot: boot.map(|id| id.trim().to_owned()),
        namespace: namespace.map(|link| link.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(total_memory("MemTotal:        8040456 kB\nMemFree: 1 kB\n"), Some(Bytes::new(8_040_456 * 1024)));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn the_platform_is_a_bare_version() {
        let platform = platform();
        assert_eq!(platform.family, Family::Linux);
        assert!(platform.version.split('.').all(|part| part.parse::<u32>().is_ok()), "{}", platform.version);
    }
}
