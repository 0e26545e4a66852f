//! The tests against real peers, run against versions of iperf3 that are built from source below `target/tools`.
//!
//! Nothing of what is fetched is part of this repository.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

/// The version of Debian 12, and the newest release. The first speaks for the many that are installed; the second has
/// threads, stricter JSON and other errors.
const VERSIONS: &[&str] = &["3.12", "3.21"];

/// Builds each version that is not there yet, from `source`, and runs every test with a real peer against it.
pub(crate) fn run(shell: &Shell, source: &str) -> Result<()> {
    for version in VERSIONS {
        let folder = build(shell, source, version).with_context(|| format!("build iperf3 {version} from {source}"))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let _path = shell.push_env("PATH", env::join_paths([folder].into_iter().chain(env::split_paths(&path)))?);
        eprintln!("interop: {}", cmd!(shell, "iperf3 --version").quiet().read()?.lines().next().unwrap_or_default());
        // One at a time: each test starts programs of its own.
        cmd!(shell, "cargo test --locked --package fullpipe-measure --test it -- --test-threads=2 interop transcript")
            .run()
            .with_context(|| format!("tests against iperf3 {version}"))?;
    }
    Ok(())
}

/// The folder with the program in it.
fn build(shell: &Shell, source: &str, version: &str) -> Result<PathBuf> {
    let folder = shell.current_dir().join(format!("target/tools/iperf3-{version}"));
    let programs = folder.join("src");
    if shell.path_exists(programs.join("iperf3")) {
        return Ok(programs);
    }
    shell.remove_path(&folder)?;
    cmd!(shell, "git -c advice.detachedHead=false clone --quiet --depth 1 --branch {version} {source} {folder}")
        .run()?;
    let _there = shell.push_dir(&folder);
    cmd!(shell, "./configure --quiet --disable-shared").quiet().ignore_stdout().ignore_stderr().run()?;
    cmd!(shell, "make --silent --directory src iperf3").quiet().ignore_stdout().ignore_stderr().run()?;
    Ok(programs)
}
