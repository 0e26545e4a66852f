//! Whose socket it is.

use serde::{Deserialize, Serialize};

/// The process that has a socket, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its name, as the process itself chose it: any text. Clean it before it reaches a terminal.
    pub process: String,
    /// Its number.
    pub pid: u32,
    /// The file descriptor, where the system tells it.
    #[serde(default)]
    pub fd: Option<u32>,
    /// Its control group, where it has one beside the root.
    pub cgroup: Option<String>,
    /// The container that the control group names: the first twelve digits of its number.
    pub container: Option<String>,
}

/// The control group in `/proc/PID/cgroup`: version 2's line, else systemd's.
pub(crate) fn cgroup(file: &str) -> Option<String> {
    let of = |prefix: &str| file.lines().find_map(|line| line.split_once(prefix).map(|(_, path)| path));
    let path = of("0::").or_else(|| of(":name=systemd:"))?;
    (path != "/" && !path.is_empty()).then(|| path.to_owned())
}

/// The container that a control group's path names: the last part with 64 hexadecimal digits (Docker, containerd, Podman,
/// CRI-O).
pub(crate) fn container(cgroup: &str) -> Option<String> {
    let is_number = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = cgroup.rsplit(['/', '-', '.', ':']).find(is_number)?;
    number.get(..12).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_its_control_group() {
        let number = "4f".repeat(32);
        for path in [
            format!("/system.slice/docker-{number}.scope"),
            format!("/kubepods.slice/kubepods-besteffort.slice/cri-containerd-{number}.scope"),
            format!("/docker/{number}"),
            format!("/machine.slice/libpod-{number}.scope/container"),
        ] {
            assert_eq!(container(&path).as_deref(), Some("4f4f4f4f4f4f"), "{path}");
        }
        assert_eq!(container("/system.slice/nginx.service"), None);
    }

    #[test]
    fn the_root_group_is_none() {
        assert_eq!(cgroup("0::/\n"), None);
        assert_eq!(cgroup("0::/system.slice/nginx.service\n").as_deref(), Some("/system.slice/nginx.service"));
        assert_eq!(cgroup("12:cpu:/a\n1:name=systemd:/user.slice\n").as_deref(), Some("/user.slice"));
        assert_eq!(cgroup("garbage"), None);
    }
}
