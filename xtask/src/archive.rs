//! Archives at the size that they are for: a thousand captures are made, read by processes and by a Ray cluster of two nodes on this
//! machine, and what the archive then says is held against what was put in.

mod captures;
mod nodes;
mod prove;
mod reading;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use xshell::{Shell, cmd};

pub(crate) use self::reading::children_s;
use crate::{corpus, setup};

/// Set for the copy of this program that runs in a namespace of its own: Ray listens on every address of a machine.
const INSIDE: &str = "FULLPIPE_ARCHIVE_INSIDE";

/// How many captures, where, and what is done with them.
#[derive(Args)]
pub(crate) struct Archive {
    /// Folder for captures and archives, with room for both; captures that are there are not made again.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Captures to make, of copied transfers of the simulator and the lab: four sites, eight days, two thirds of them in rotated
    /// series of four.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    captures: usize,
    /// Size of a capture in kB.
    #[arg(long, value_name = "KB", default_value_t = 5000)]
    size: usize,
    /// Also so many connections of 28 packets, 50,000 in a capture: read by themselves, once.
    #[arg(long, value_name = "N", default_value_t = 0)]
    short: usize,
    /// Read them: 1, 2 and 4 workers, by processes and by Ray; one worker killed and one node stopped; hashes and counts compared.
    #[arg(long)]
    prove: bool,
    /// `--prove`: how often each number of workers is tried, in alternation.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Make captures with this `fullpipe` instead of building one for release.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// `--prove`: install this wheel, for these runs only, instead of building one for release.
    #[arg(long, value_name = "FILE", conflicts_with = "python")]
    wheel: Option<PathBuf>,
    /// `--prove`: a Python that has the wheel with its extra `archive` [default: that of `cargo xtask setup`].
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
}

/// Makes captures and, if asked, proves what is read from them.
pub(crate) fn run(shell: &Shell, arguments: &Archive) -> Result<()> {
    fs::create_dir_all(&arguments.out)?;
    let out = fs::canonicalize(&arguments.out)?;
    if env::var_os(INSIDE).is_none() {
        let binary = match &arguments.binary {
            Some(binary) => fs::canonicalize(binary).with_context(|| format!("find {}", binary.display()))?,
            None => corpus::build(shell)?,
        };
        captures::make(shell, &binary, &out, arguments)?;
        if arguments.prove {
            inside(&package(shell, arguments, &out)?)?;
        }
        return Ok(());
    }
    prove::prove(&out, arguments)
}

/// Captures for a bench, and a Python that reads them.
pub(crate) fn for_bench(
    shell: &Shell,
    binary: &Path,
    wheel: Option<PathBuf>,
    captures: usize,
) -> Result<(Vec<PathBuf>, Package)> {
    let out = shell.current_dir().join("target/bench-python");
    let arguments = Archive {
        out: out.clone(),
        captures,
        size: 5000,
        short: 0,
        prove: false,
        rounds: 0,
        binary: None,
        wheel,
        python: None,
    };
    fs::create_dir_all(&out)?;
    Ok((captures::make(shell, binary, &out, &arguments)?, package(shell, &arguments, &out)?))
}

/// The Python, and where the package is for it.
fn package(shell: &Shell, arguments: &Archive, out: &Path) -> Result<Package> {
    if let Some(python) = &arguments.python {
        return Ok(Package { python: std::path::absolute(python)?, folder: None });
    }
    setup::python(shell);
    let tools = shell.current_dir().join("target/tools/python/bin");
    let python = tools.join("python");
    ensure!(python.exists(), "{} is not here: `cargo xtask setup` makes it, or give --python", python.display());
    let folder = out.join("package");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let wheel = match &arguments.wheel {
        Some(wheel) => fs::canonicalize(wheel)?,
        None => wheel(shell, &tools, &out.join("wheel"))?,
    };
    let options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target"];
    cmd!(shell, "{python} -m pip install {options...} {folder} {wheel}").run()?;
    Ok(Package { python, folder: Some(folder) })
}

/// A wheel for this machine, made for release.
fn wheel(shell: &Shell, tools: &Path, dist: &Path) -> Result<PathBuf> {
    if dist.exists() {
        fs::remove_dir_all(dist)?;
    }
    let (maturin, python) = (tools.join("maturin"), tools.join("python"));
    let _in_package = shell.push_dir("bindings/python");
    cmd!(shell, "{maturin} build --quiet --locked --release --interpreter {python} --out {dist}").run()?;
    let made = shell.read_dir(dist)?;
    made.into_iter().next().context("maturin made no wheel")
}

/// What runs `python -m fullpipe.archive`.
pub(crate) struct Package {
    pub(crate) python: PathBuf,
    pub(crate) folder: Option<PathBuf>,
}

/// Starts this program again with the same arguments, where nothing but its own loopback is.
fn inside(package: &Package) -> Result<()> {
    let works = |options: &&&str| {
        let status = Command::new("unshare").args([**options, "true"]).stderr(std::process::Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let options = ["-nm", "-rnm"].iter().find(works).context("`unshare -n` is not possible here")?;
    let mut command = Command::new("unshare");
    command.arg(options).args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command.arg(env::current_exe()?).args(env::args_os().skip(1)).env(INSIDE, &package.python);
    if let Some(folder) = &package.folder {
        command.env("PYTHONPATH", folder);
    }
    let status = command.status().context("run unshare")?;
    ensure!(status.success(), "the proof failed: {status}");
    Ok(())
}
