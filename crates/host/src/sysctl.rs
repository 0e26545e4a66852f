//! Where a sysctl's file is under a `proc/sys` tree.

use std::path::{Path, PathBuf};

use fullpipe_knobs::Address;

use crate::HostError;

/// The file of a sysctl below `root`. Dots part folders; a slash in the name stands for a dot within one of them, as
/// in `net.ipv4.conf.eth0/100.mtu` (sysctl(8)).
pub(crate) fn file(root: &Path, address: &Address, name: &str) -> Result<PathBuf, HostError> {
    let unknown = |why: &str| HostError::UnknownAddress { address: address.clone(), why: why.to_owned() };
    let mut path = root.to_owned();
    for part in name.split('.') {
        let part = part.replace('/', ".");
        if part.is_empty() || part == "." || part == ".." || part.contains('\0') {
            return Err(unknown("a sysctl is a dotted name such as net.ipv4.tcp_rmem"));
        }
        path.push(part);
    }
    // A plan comes from a file, and what it could do to kernel.* or fs.* as root is not ours to offer.
    // FreeBSD and macOS have the ceilings of socket buffers below kern.ipc; Linux has nothing of that name.
    if !["net.", "kern.ipc."].iter().any(|tree| name.starts_with(tree)) {
        return Err(unknown("only sysctls below net. and kern.ipc. belong to the network"));
    }
    Ok(path)
}

/// The dotted name of a file below `root`.
pub(crate) fn name(root: &Path, file: &Path) -> Option<String> {
    let parts: Option<Vec<_>> =
        file.strip_prefix(root).ok()?.iter().map(|part| Some(part.to_str()?.replace('.', "/"))).collect();
    Some(parts?.join("."))
}

/// Whether a sysctl holds a key, which no list of settings tells, whoever may read it here.
pub(crate) fn is_secret(name: &str) -> bool {
    const SECRETS: [&str; 2] = ["tcp_fastopen_key", "stable_secret"];
    name.rsplit('.').next().is_some_and(|last| SECRETS.contains(&last))
}

/// A value as it is shown: single spaces, no line end.
pub(crate) fn shown(content: &str) -> String {
    content.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Result<PathBuf, HostError> {
        file(Path::new("/proc/sys"), &Address::sysctl(name), name)
    }

    #[test]
    fn names_and_files_correspond() {
        for (dotted, below) in
            [("net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"), ("net.ipv4.conf.eth0/100.mtu", "net/ipv4/conf/eth0.100/mtu")]
        {
            let root = Path::new("/proc/sys");
            let file = path(dotted).expect("a file");
            assert_eq!(file, root.join(below));
            assert_eq!(name(root, &file).as_deref(), Some(dotted));
        }
    }

    #[test]
    fn a_name_never_leads_out_of_the_tree() {
        for escape in ["net.//.//.etc", "net..ipv4", ".net", "net.ipv4.", "net.//", "kernel.core_pattern", "net./.x"] {
            assert!(path(escape).is_err(), "{escape}");
        }
    }
}
