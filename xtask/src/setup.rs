//! The real peers that tests compare with. A peer that can't be had is named, and its tests skip by name.

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

/// A program that tests call, and the Debian package that holds it.
struct Peer {
    program: &'static str,
    package: &'static str,
    used_for: &'static str,
}

const PEERS: &[Peer] = &[
    Peer { program: "iperf3", package: "iperf3", used_for: "the measuring protocol, both roles" },
    Peer { program: "ethtool", package: "ethtool", used_for: "offloads and rings as another program reads them" },
    Peer { program: "ip", package: "iproute2", used_for: "routes and links as another program reads them" },
    Peer { program: "sysctl", package: "procps", used_for: "sysctl files as the system loads them" },
];

/// Installs the peers that are missing, where this user may; names those that stay missing.
pub(crate) fn peers(shell: &Shell) -> Result<()> {
    let missing: Vec<&Peer> = PEERS.iter().filter(|peer| !is_here(shell, peer.program)).collect();
    if missing.is_empty() {
        eprintln!("peers: all here");
        return Ok(());
    }
    if rustix::process::geteuid().is_root() && is_here(shell, "apt-get") {
        let packages: Vec<&str> = missing.iter().map(|peer| peer.package).collect();
        eprintln!("peers: installing {}", packages.join(", "));
        let _env = shell.push_env("DEBIAN_FRONTEND", "noninteractive");
        // Old package lists are the usual reason for a failure: fetch them first, and go on without if that fails.
        let fetched = cmd!(shell, "apt-get update --quiet=2").quiet().ignore_stdout().run();
        let installed = cmd!(shell, "apt-get install --quiet=2 --yes --no-install-recommends {packages...}")
            .quiet()
            .ignore_stdout()
            .run();
        if let Err(error) = fetched.and(installed) {
            eprintln!("peers: {error}");
        }
    }
    for peer in missing.iter().filter(|peer| !is_here(shell, peer.program)) {
        eprintln!(
            "peers: {} is not here (Debian package {}): tests of {} will be skipped by name",
            peer.program, peer.package, peer.used_for
        );
    }
    Ok(())
}

/// Adds the rustup components that the checks need; with another toolchain manager they must be there already.
pub(crate) fn components(shell: &Shell) -> Result<()> {
    if is_here(shell, "rustup") {
        cmd!(shell, "rustup --quiet component add clippy rustfmt")
            .quiet()
            .ignore_stdout()
            .run()
            .context("rustup component add")?;
    }
    Ok(())
}

fn is_here(shell: &Shell, program: &str) -> bool {
    let script = format!("command -v {program}");
    cmd!(shell, "sh -c {script}").quiet().ignore_stdout().ignore_stderr().run().is_ok()
}
