//! Services that systemd runs for us (systemd-run(1)).

use std::{env, ffi::OsString, fs, os::unix::fs::MetadataExt, path::Path, process::Command};

/// Whether systemd runs this machine, starts what we ask for, and starts it where we are: with our network, files and
/// processes. In a network namespace of our own a service would look at the settings of another one.
pub(crate) fn is_ours() -> bool {
    // sd_booted(3).
    let is_booted = Path::new("/run/systemd/system").is_dir();
    let is_root = || rustix::process::geteuid().is_root();
    is_booted && is_root() && is_same_root() && ["net", "mnt", "pid", "user"].iter().all(|kind| is_same_namespace(kind))
}

fn is_same_namespace(kind: &str) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    of("self").is_some_and(|ours| of("1") == Some(ours))
}

fn is_same_root() -> bool {
    let of = |root: &str| fs::metadata(root).ok().map(|root| (root.dev(), root.ino()));
    of("/").is_some_and(|ours| of("/proc/1/root/") == Some(ours))
}

/// `systemd-run` for a service named `name`, whose program and arguments are still to be added. Its standard input and output
/// are those of this command. It is started again when it is killed, and leaves nothing in systemd's tables when it ends.
pub(crate) fn transient_service(name: &str) -> Command {
    let mut command = Command::new("systemd-run");
    command.args(["--quiet", "--collect", "--pipe", "--no-ask-password", "--service-type=exec"]);
    command.arg(format!("--unit={name}"));
    command.arg("--description=fullpipe: takes back what nobody confirms in time");
    command.args(["--property=Restart=on-failure", "--property=RestartSec=200ms"]);
    for (name, value) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("FULLPIPE_")) {
            let mut option = OsString::from("--setenv=");
            option.push(&name);
            option.push("=");
            option.push(&value);
            command.arg(option);
        }
    }
    command.arg("--");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_restarted_and_keeps_its_standard_streams() {
        let command = transient_service("fullpipe-guardian-1-2");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        for word in ["--pipe", "--collect", "--unit=fullpipe-guardian-1-2", "--property=Restart=on-failure"] {
            assert!(words.iter().any(|had| had == word), "{word}: {words:?}");
        }
        assert_eq!(words.last().map(String::as_str), Some("--"));
    }

    #[test]
    fn a_namespace_is_compared_by_what_it_is() {
        assert!(!is_same_namespace("no-such-kind"));
    }
}
