//! What people install: static Linux programs with their man pages and completions, as archives and packages, and a program
//! for Windows; symbols apart, checksums beside.

mod systemd;
mod wheels;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use crate::{profile::Build, setup};

/// Which packages.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only for this target; can be given several times [default: all].
    #[arg(long, value_name = "TARGET", value_parser = TARGETS.map(|target| target.triple))]
    only: Vec<String>,
    /// Then install, upgrade and purge the Debian package in a fresh Debian below target (debootstrap, as root), run its
    /// services there under systemd, and let lintian look at it.
    #[arg(long = "try")]
    try_out: bool,
    /// Instead of all that: the wheels of the Python package, for Linux, Windows and macOS.
    #[arg(long, conflicts_with_all = ["only", "try_out"])]
    wheels: bool,
}

/// A system that packages are made for.
struct Target {
    triple: &'static str,
    /// The program that takes symbols out of its programs.
    objcopy: &'static str,
    is_windows: bool,
}

const TARGETS: [Target; 3] = [
    Target { triple: "x86_64-unknown-linux-musl", objcopy: "objcopy", is_windows: false },
    Target { triple: "aarch64-unknown-linux-musl", objcopy: "aarch64-linux-gnu-objcopy", is_windows: false },
    Target { triple: "x86_64-pc-windows-gnu", objcopy: "x86_64-w64-mingw32-objcopy", is_windows: true },
];

/// What is built into a packaged program. PostgreSQL's client for `mesh --store postgres://...` is not: 0.4 MB, which would make it too
/// large, for one in a team, who has it by `cargo install`.
const PACKAGES: [&str; 7] =
    ["--package", "fullpipe", "--package", "fullpipe-sim", "--no-default-features", "--features", "fullpipe/otlp"];

/// No program may be larger.
const LARGEST: u64 = 15_000_000;

pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let root = shell.current_dir();
    let dist = root.join("target/packages");
    if arguments.wheels {
        return wheels::make(shell, &dist).and_then(|()| sums(shell, &dist));
    }
    let wanted: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| arguments.only.is_empty() || arguments.only.iter().any(|only| only == target.triple))
        .collect();
    let triples: Vec<&str> = wanted.iter().map(|target| target.triple).collect();
    setup::packaging(shell, &triples)?;
    shell.remove_path(&dist)?;
    shell.create_dir(&dist)?;
    // Archives of the same commit are the same, whenever they are made.
    let time = cmd!(shell, "git log -1 --format=%ct").read()?;
    let _time = shell.push_env("SOURCE_DATE_EPOCH", &time);
    assets(shell, &dist.join("assets"))?;
    let version = env!("CARGO_PKG_VERSION");
    for target in wanted {
        let built = build(shell, target)?;
        let name = format!("fullpipe-{version}-{}", target.triple);
        symbols_apart(shell, target, &built, &dist.join(format!("{name}.debug")))?;
        let size = fs::metadata(&built).with_context(|| format!("look at {}", built.display()))?.len();
        ensure!(size < LARGEST, "{} has {size} B, and {LARGEST} is the most", built.display());
        archive(shell, target, &built, &dist, (&name, &time))?;
        if !target.is_windows {
            packages(shell, target, &dist)?;
        }
    }
    shell.remove_path(dist.join("assets"))?;
    if arguments.try_out {
        try_out(shell, &dist)?;
    }
    sums(shell, &dist)
}

/// Checksums of all that is there, beside it.
fn sums(shell: &Shell, dist: &Path) -> Result<()> {
    let _in_dist = shell.push_dir(dist);
    let mut files: Vec<String> = fs::read_dir(dist)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    files.retain(|file| file != "SHA256SUMS");
    files.sort_unstable();
    let sums = cmd!(shell, "sha256sum {files...}").read()?;
    shell.write_file("SHA256SUMS", format!("{sums}\n"))?;
    println!("{sums}\nin {}", dist.display());
    Ok(())
}

/// Manual pages, completions and the changelog, as the program itself prints them.
fn assets(shell: &Shell, folder: &Path) -> Result<()> {
    let man = folder.join("man");
    shell.create_dir(&man)?;
    cmd!(shell, "cargo run --quiet --locked --package fullpipe -- man --dir {man}").ignore_stdout().run()?;
    for (kind, name) in [("bash", "fullpipe.bash"), ("zsh", "_fullpipe"), ("fish", "fullpipe.fish")] {
        let script = cmd!(shell, "cargo run --quiet --locked --package fullpipe -- completions {kind}").read()?;
        shell.write_file(folder.join(name), script + "\n")?;
    }
    // Debian's own form (Debian Policy, 4.4); what changed is in the upstream changelog.
    let date = cmd!(shell, "git log -1 --format=%cD").read()?;
    let version = env!("CARGO_PKG_VERSION");
    let entry = format!(
        "fullpipe ({version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n -- The fullpipe \
         maintainers <maintainers@fullpipe.example>  {date}\n"
    );
    shell.write_file(folder.join("changelog"), entry)?;
    Ok(())
}

fn build(shell: &Shell, target: &Target) -> Result<PathBuf> {
    let Target { triple, is_windows, .. } = target;
    let (command, name) = if *is_windows { ("build", "fullpipe.exe") } else { ("zigbuild", "fullpipe") };
    Build { command, triple, packages: &PACKAGES, program: ["--bin", "fullpipe"] }.run(shell)?;
    Ok(PathBuf::from(format!("target/{triple}/dist")).join(name))
}

/// Debuggers find the symbols by the name that is left in the program.
fn symbols_apart(shell: &Shell, target: &Target, built: &Path, symbols: &Path) -> Result<()> {
    let objcopy = target.objcopy;
    cmd!(shell, "{objcopy} --only-keep-debug {built} {symbols}").run()?;
    cmd!(shell, "{objcopy} --strip-all --add-gnu-debuglink={symbols} {built}").run()?;
    Ok(())
}

fn archive(shell: &Shell, target: &Target, built: &Path, dist: &Path, (name, time): (&str, &str)) -> Result<()> {
    let folder = dist.join(name);
    shell.create_dir(&folder)?;
    shell.copy_file(built, &folder)?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "docs/guide.md"] {
        shell.copy_file(file, &folder)?;
    }
    {
        let _in_dist = shell.push_dir(dist);
        if target.is_windows {
            cmd!(shell, "zip --quiet --recurse-paths -X {name}.zip {name}").run()?;
        } else {
            let assets = ["man", "fullpipe.bash", "_fullpipe", "fullpipe.fish"].map(|asset| format!("assets/{asset}"));
            cmd!(shell, "cp -r {assets...} {name}").run()?;
            cmd!(
                shell,
                "tar --sort=name --mtime=@{time} --owner=0 --group=0 --numeric-owner -czf {name}.tar.gz {name}"
            )
            .run()?;
        }
    }
    shell.remove_path(&folder)?;
    Ok(())
}

fn packages(shell: &Shell, target: &Target, dist: &Path) -> Result<()> {
    let triple = target.triple;
    cmd!(
        shell,
        "env cargo-deb deb --quiet --locked --no-build --no-strip --profile dist --package fullpipe --target {triple} --output {dist}"
    )
    .run()?;
    cmd!(
        shell,
        "env cargo-generate-rpm generate-rpm --package crates/cli --profile dist --target {triple} --output {dist}"
    )
    .run()?;
    Ok(())
}

/// The life of the package on a machine that has nothing else.
const LIFE: &str = "
    set -eu
    mount -t proc proc /proc
    dpkg --purge fullpipe 2> /dev/null
    find / -xdev ! -path '/proc/*' ! -path '/var/lib/dpkg/*' ! -path '/var/cache/*' ! -path '/var/log/*' ! -path '/tmp/*' | sort > /tmp/before
    dpkg --install /tmp/fullpipe.deb
    fullpipe --version
    fullpipe sim wan-80ms --quiet > /dev/null
    fullpipe settings --changed > /dev/null
    echo 'SERVE_OPTIONS=\"--max-rate 1G\"' > /etc/default/fullpipe
    dpkg --force-confold --install /tmp/fullpipe.deb
    grep -q max-rate /etc/default/fullpipe
    dpkg --purge fullpipe
    find / -xdev ! -path '/proc/*' ! -path '/var/lib/dpkg/*' ! -path '/var/cache/*' ! -path '/var/log/*' ! -path '/tmp/*' | sort > /tmp/after
    diff /tmp/before /tmp/after";

fn try_out(shell: &Shell, dist: &Path) -> Result<()> {
    setup::package_testing(shell);
    let package = fs::read_dir(dist)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with("_amd64.deb"))
        .context("find the package for amd64")?;
    cmd!(shell, "lintian --fail-on error,warning --allow-root {package}").run()?;
    let root = shell.current_dir().join("target/packages-root");
    if !root.join("usr/lib/systemd/systemd").exists() {
        println!("making a fresh Debian in {}", root.display());
        let extra = "--include=systemd-sysv,dbus,libpam-systemd,iproute2";
        cmd!(shell, "debootstrap --variant=minbase {extra} stable {root}").ignore_stdout().run()?;
    }
    shell.copy_file(&package, root.join("tmp/fullpipe.deb"))?;
    cmd!(shell, "unshare --mount --pid --fork chroot {root} sh -c {LIFE}").run()?;
    println!("installed, upgraded with its settings kept, purged with nothing left");
    systemd::try_out(shell, &root)
}
