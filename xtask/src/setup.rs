//! What tests need besides this workspace: real peers to compare with, and compilers and a Windows to run on.
//!
//! Everything is looked for first, and what is here is left alone. What can't be had is named with the reason; the tests
//! that need it then skip by name. Nothing here ends a test run.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

/// A program that tests call, and the Debian packages that hold it.
struct Peer {
    program: &'static str,
    packages: &'static [&'static str],
    used_for: &'static str,
}

const PEERS: &[Peer] = &[
    Peer { program: "iperf3", packages: &["iperf3"], used_for: "the measuring protocol, both roles" },
    Peer { program: "iperf", packages: &["iperf"], used_for: "iperf 2's test over TCP, both roles" },
    Peer { program: "ethtool", packages: &["ethtool"], used_for: "offloads and rings as another program reads them" },
    Peer { program: "ip", packages: &["iproute2"], used_for: "routes and links as another program reads them" },
    Peer { program: "promtool", packages: &["prometheus"], used_for: "alert rules" },
    Peer { program: "prometheus", packages: &["prometheus"], used_for: "metrics as they are scraped" },
    Peer { program: "tmux", packages: &["tmux"], used_for: "the full screen in a real terminal" },
    Peer { program: "bpftool", packages: &["bpftool"], used_for: "BPF programs as another program lists them" },
    Peer { program: "ping", packages: &["iputils-ping"], used_for: "echoes as another program sends them" },
    Peer { program: "chromium", packages: &["chromium"], used_for: "pages in a real browser" },
    Peer { program: "script", packages: &["bsdutils"], used_for: "a terminal that goes away" },
    Peer { program: "faketime", packages: &["faketime"], used_for: "a clock that is set back" },
    Peer { program: "sysctl", packages: &["procps"], used_for: "sysctl files as the system loads them" },
    Peer { program: "tcptrace", packages: &["tcptrace"], used_for: "graphs as another program draws them" },
];

/// What the Ansible collection manages hosts by.
const FLEET: &[Peer] = &[
    Peer { program: "sshd", packages: &["openssh-server"], used_for: "the Ansible collection" },
    Peer { program: "ssh", packages: &["openssh-client"], used_for: "the Ansible collection" },
    Peer { program: "nsenter", packages: &["util-linux"], used_for: "the Ansible collection" },
];

/// Whose transfers the corpus captures, and tests watch.
const PROGRAMS: &[Peer] = &[
    Peer { program: "nginx", packages: &["nginx-light"], used_for: "transfers by others" },
    Peer { program: "curl", packages: &["curl"], used_for: "transfers by others" },
    Peer { program: "wget", packages: &["wget"], used_for: "transfers by others" },
    Peer { program: "iperf3", packages: &["iperf3"], used_for: "transfers by others" },
    Peer { program: "rsync", packages: &["rsync"], used_for: "transfers by others" },
    Peer { program: "scp", packages: &["openssh-client"], used_for: "transfers by others" },
    Peer { program: "sshd", packages: &["openssh-server"], used_for: "transfers by others" },
    Peer { program: "socat", packages: &["socat"], used_for: "transfers by others" },
    Peer { program: "redis-server", packages: &["redis-server"], used_for: "transfers by others" },
    Peer { program: "redis-cli", packages: &["redis-tools"], used_for: "transfers by others" },
    // The server's own programs are where no shell looks; this one comes with it.
    Peer { program: "pg_ctlcluster", packages: &["postgresql"], used_for: "transfers by others, and a store of runs" },
    Peer { program: "psql", packages: &["postgresql-client"], used_for: "transfers by others" },
    Peer { program: "redis-benchmark", packages: &["redis-tools"], used_for: "transfers by others" },
];

/// A Windows to run on and its C compiler: about 210 MB to fetch, 1.3 GB on the disk.
const WINDOWS: &[Peer] = &[
    Peer { program: "wine", packages: &["wine", "wine64"], used_for: "fullpipe.exe and the registry" },
    Peer { program: "wineboot", packages: &["wine"], used_for: "fullpipe.exe and the registry" },
    Peer {
        program: "x86_64-w64-mingw32-gcc",
        packages: &["gcc-mingw-w64-x86-64"],
        used_for: "fullpipe.exe and the registry",
    },
];

/// What packages are made with.
const PACKAGING: &[Peer] = &[
    Peer { program: "zip", packages: &["zip"], used_for: "packages" },
    Peer { program: "aarch64-linux-gnu-objcopy", packages: &["binutils-aarch64-linux-gnu"], used_for: "packages" },
    Peer { program: "x86_64-w64-mingw32-gcc", packages: &["gcc-mingw-w64-x86-64"], used_for: "packages" },
];

/// What packages are tried with.
const PACKAGE_TESTING: &[Peer] = &[
    Peer { program: "lintian", packages: &["lintian"], used_for: "packages" },
    Peer { program: "debootstrap", packages: &["debootstrap"], used_for: "packages" },
    Peer { program: "systemd-nspawn", packages: &["systemd-container"], used_for: "services" },
];

/// What compresses what is built into pages: 5 % smaller than gzip makes it, for any browser.
const PAGE_MAKING: &[Peer] =
    &[Peer { program: "zopfli", packages: &["zopfli"], used_for: "smaller pages (gzip makes them else)" }];

/// What tests build for besides Linux: other systems, and a microcontroller.
const TARGETS: &[&str] =
    &["x86_64-pc-windows-gnu", "x86_64-unknown-freebsd", "aarch64-apple-darwin", "thumbv7em-none-eabihf"];

/// All that a whole test run needs.
pub(crate) fn all(shell: &Shell) {
    peers(shell);
    programs(shell);
    pages(shell);
    python(shell);
    fleet(shell);
    other_systems(shell);
}

/// Installs the peers that are missing, where this user may; names those that stay missing.
pub(crate) fn peers(shell: &Shell) {
    packages(shell, "peers", PEERS);
}

/// Fetches the packages of `web/`, as its lock file names them, where Node.js is here.
pub(crate) fn pages(shell: &Shell) {
    let _web = shell.push_dir("web");
    if shell.path_exists("node_modules/uplot") && shell.path_exists("node_modules/@grafana/schema") {
        return eprintln!("pages: all here");
    }
    let fetched = if is_here(shell, "npm") {
        cmd!(shell, "npm ci --ignore-scripts --no-audit --no-fund --silent").quiet().ignore_stdout().run()
    } else {
        return skipped(
            "pages",
            "npm",
            "Debian: npm",
            "it is large and is not installed unasked",
            "pages in a real browser",
        );
    };
    if let Err(error) = fetched {
        skipped("pages", "the packages of web/", "npm ci", &error.to_string(), "pages in a real browser");
    }
}

/// The same for what makes the files that are built into pages.
pub(crate) fn page_making(shell: &Shell) {
    pages(shell);
    packages(shell, "making pages", PAGE_MAKING);
}

/// The same for the programs whose transfers the corpus captures and tests watch; those of one that stays missing are not made.
pub(crate) fn programs(shell: &Shell) {
    packages(shell, "programs", PROGRAMS);
}

/// The same for all that building and running for other systems takes. Programs that it keeps below `target` itself are
/// found by whatever this process starts from then on.
pub(crate) fn other_systems(shell: &Shell) {
    packages(shell, "windows", WINDOWS);
    targets(shell);
    zig(shell);
}

/// The same for what links for other systems; `extra` are targets of rustup.
pub(crate) fn linking(shell: &Shell, extra: &[&str]) -> Result<()> {
    packages(shell, "packaging", PACKAGING);
    cmd!(shell, "rustup --quiet target add {extra...}").quiet().run()?;
    zig(shell);
    Ok(())
}

/// As [`linking`], and what packages are made with: cargo-deb and cargo-generate-rpm are built from their sources.
pub(crate) fn packaging(shell: &Shell, extra: &[&str]) -> Result<()> {
    linking(shell, extra)?;
    let folder = shell.current_dir().join("target/tools/packaging");
    find_below(shell, &[folder.join("bin")]);
    for program in ["cargo-deb", "cargo-generate-rpm"] {
        if !is_here(shell, program) {
            eprintln!("packaging: building {program} into {}", folder.display());
            cmd!(shell, "cargo install --quiet --locked --root {folder} {program}").run()?;
        }
    }
    Ok(())
}

/// The same for what packages are tried with.
pub(crate) fn package_testing(shell: &Shell) {
    packages(shell, "package testing", PACKAGE_TESTING);
}

/// Adds components of the toolchain; with another toolchain manager than rustup they must be there already.
pub(crate) fn components(shell: &Shell, names: &[&str]) -> Result<()> {
    if is_here(shell, "rustup") {
        cmd!(shell, "rustup --quiet component add {names...}")
            .quiet()
            .ignore_stdout()
            .run()
            .context("rustup component add")?;
    }
    Ok(())
}

/// This system, as the compiler calls it.
pub(crate) fn host(shell: &Shell) -> Result<String> {
    Ok(cmd!(shell, "rustc --print host-tuple").quiet().read()?)
}

/// What makes profiles for this compiler: another version's may not read what programs have counted.
pub(crate) fn profdata(shell: &Shell) -> Result<PathBuf> {
    components(shell, &["llvm-tools"])?;
    let libraries = cmd!(shell, "rustc --print target-libdir").quiet().read()?;
    let program = Path::new(&libraries).with_file_name("bin/llvm-profdata");
    ensure!(program.exists(), "{} is not here (rustup component add llvm-tools)", program.display());
    Ok(program)
}

fn packages(shell: &Shell, what: &str, wanted: &[Peer]) {
    let missing: Vec<&Peer> = wanted.iter().filter(|peer| !is_here(shell, peer.program)).collect();
    if missing.is_empty() {
        eprintln!("{what}: all here");
        return;
    }
    let mut names: Vec<&str> = missing.iter().flat_map(|peer| peer.packages).copied().collect();
    names.dedup();
    let reason = match () {
        () if !is_here(shell, "apt-get") => "there is no apt-get".to_owned(),
        () if !rustix::process::geteuid().is_root() => "installing it takes root".to_owned(),
        () => match install(shell, what, &names) {
            Ok(()) => "its packages do not hold it".to_owned(),
            Err(error) => error.to_string(),
        },
    };
    for peer in missing.iter().filter(|peer| !is_here(shell, peer.program)) {
        skipped(what, peer.program, &format!("Debian: {}", peer.packages.join(" ")), &reason, peer.used_for);
    }
}

fn install(shell: &Shell, what: &str, names: &[&str]) -> xshell::Result<()> {
    eprintln!("{what}: installing {}", names.join(", "));
    let _env = shell.push_env("DEBIAN_FRONTEND", "noninteractive");
    // Old package lists are the usual reason for a failure: fetch them first, and go on without if that fails.
    let fetched = cmd!(shell, "apt-get update --quiet=2").quiet().ignore_stdout().run();
    cmd!(shell, "apt-get install --quiet=2 --yes --no-install-recommends {names...}")
        .quiet()
        .ignore_stdout()
        .run()
        .and(fetched)
}

/// Rust's standard library for the other systems: about 400 MB on the disk.
fn targets(shell: &Shell) {
    let missing: Vec<&str> = TARGETS.iter().copied().filter(|target| !has_library(shell, target)).collect();
    if missing.is_empty() {
        eprintln!("targets: all here");
        return;
    }
    let reason = if is_here(shell, "rustup") {
        eprintln!("targets: adding {}", missing.join(", "));
        let names = &missing;
        let added = cmd!(shell, "rustup --quiet target add {names...}").quiet().ignore_stdout().run();
        added.err().map_or_else(|| "rustup did not say why".to_owned(), |error| error.to_string())
    } else {
        "there is no rustup".to_owned()
    };
    for target in missing.iter().filter(|target| !has_library(shell, target)) {
        skipped("targets", target, "rustup target add", &reason, "building for it");
    }
}

fn has_library(shell: &Shell, target: &str) -> bool {
    let folder = cmd!(shell, "rustc --print target-libdir --target {target}").quiet().ignore_stderr().read();
    folder.is_ok_and(|folder| Path::new(&folder).is_dir())
}

/// Whatever this shell starts finds what [`zig`] installs, once it is there; answers its folder. A build script runs anew
/// where PATH changed (pyo3's), so that compiling begins with the PATH that it will have.
pub(crate) fn find_tools(shell: &Shell) -> PathBuf {
    let folder = shell.current_dir().join("target/tools/zig");
    find_below(shell, &[folder.join("bin"), folder.join("ziglang")]);
    folder
}

/// A C compiler and linker for FreeBSD and macOS, in a folder of its own: about 400 MB.
fn zig(shell: &Shell) {
    const PROGRAM: &str = "cargo-zigbuild";
    let folder = find_tools(shell);
    if is_here(shell, PROGRAM) {
        eprintln!("zig: here");
        return;
    }
    let reason = if cmd!(shell, "python3 -m pip --version").quiet().ignore_stdout().ignore_stderr().run().is_ok() {
        eprintln!("zig: installing {PROGRAM} and ziglang into {}", folder.display());
        let installed = cmd!(
            shell,
            "python3 -m pip install --quiet --disable-pip-version-check --target {folder} {PROGRAM} ziglang"
        );
        installed.quiet().run().err().map_or_else(|| "pip did not say why".to_owned(), |error| error.to_string())
    } else {
        "there is no pip for python3".to_owned()
    };
    if !is_here(shell, PROGRAM) {
        skipped("zig", PROGRAM, "pip: cargo-zigbuild ziglang", &reason, "building for FreeBSD and macOS");
    }
}

/// What builds the Python package, checks its types, and reads with it.
const PYTHON: [&str; 10] =
    ["maturin", "pyarrow", "polars", "pandas", "duckdb", "pytest", "ray[client]", "moto[server]", "fsspec", "mypy"];

/// A Python with maturin, the libraries that read the tables of the Python package, and what works on archives; and OpenTelemetry's
/// messages: about 900 MB.
pub(crate) fn python(shell: &Shell) {
    let tools = shell.current_dir().join("target/tools");
    let folder = tools.join("python");
    let program = folder.join("bin/python");
    let options = ["--quiet", "--disable-pip-version-check"];
    let has = |modules: &str| {
        let script = format!("import {modules}");
        cmd!(shell, "{program} -c {script}").quiet().ignore_stdout().ignore_stderr().run().is_ok()
    };
    if has("duckdb, flask, fsspec, grpc, maturin, moto.server, mypy.api, pandas, polars, pyarrow, pytest, ray") {
        eprintln!("python: all here");
    } else {
        eprintln!("python: installing maturin, readers of Arrow and Ray into {}", folder.display());
        let made = cmd!(shell, "python3 -m venv {folder}").quiet().ignore_stdout().ignore_stderr().run();
        let made = made.and_then(|()| install_python(shell, &folder, &options));
        if let Err(error) = made {
            let from = format!("python3 -m venv, pip: {}", PYTHON.join(" "));
            return skipped("python", "the Python packages", &from, &error.to_string(), "the Python package");
        }
    }
    // In a folder of its own: where Ray finds a part of OpenTelemetry, it wants all of it.
    let messages = tools.join("opentelemetry");
    let _path = shell.push_env("PYTHONPATH", &messages);
    if has("opentelemetry.proto, google.protobuf") {
        return eprintln!("opentelemetry: here");
    }
    eprintln!("opentelemetry: installing its messages into {}", messages.display());
    let package = "opentelemetry-proto";
    if let Err(error) = cmd!(shell, "{program} -m pip install {options...} --target {messages} {package}").quiet().run()
    {
        skipped("opentelemetry", package, "pip", &error.to_string(), "OTLP");
    }
}

/// Has uv install them, in a tenth of the time that pip takes; it doesn't know pip's settings, and where it gets nothing, pip does it.
fn install_python(shell: &Shell, folder: &Path, options: &[&str]) -> xshell::Result<()> {
    let [program, uv] = ["bin/python", "bin/uv"].map(|name| folder.join(name));
    let by_uv = cmd!(shell, "{program} -m pip install {options...} uv").quiet().ignore_stderr().run().and_then(|()| {
        cmd!(shell, "{uv} pip install --quiet --no-cache --python {program} {PYTHON...}").quiet().ignore_stderr().run()
    });
    by_uv.or_else(|_| cmd!(shell, "{program} -m pip install {options...} {PYTHON...}").quiet().run())
}

/// Ansible's sanity tests that have an environment of their own.
const SANITY: [&str; 6] = ["ansible-doc", "import", "pep8", "runtime-metadata", "validate-modules", "yamllint"];

/// Ansible, and the environments of its sanity tests: about 250 MB.
pub(crate) fn fleet(shell: &Shell) {
    packages(shell, "fleet", FLEET);
    let folder = shell.current_dir().join("target/tools/ansible");
    let [program, pip, home] = ["bin/ansible-playbook", "bin/python", "home"].map(|name| folder.join(name));
    let is_ready = folder.join("ready");
    if shell.path_exists(&is_ready) && cmd!(shell, "{program} --version").quiet().ignore_stdout().run().is_ok() {
        return eprintln!("ansible: here");
    }
    eprintln!("ansible: installing ansible-core into {}", folder.display());
    let made = (|| -> Result<()> {
        cmd!(shell, "python3 -m venv {folder}").quiet().ignore_stdout().ignore_stderr().run()?;
        cmd!(shell, "{pip} -m pip install --quiet --disable-pip-version-check ansible-core~=2.19.0").quiet().run()?;
        // ansible-test would fetch a pip for its environments from a server of its own; Python has one.
        let bootstrap = "import ensurepip\nensurepip.bootstrap(default_pip=True)\n";
        shell.write_file(home.join(".ansible/test/cache/get_pip_24_2.py"), bootstrap)?;
        // Not below `target`, whose files Git ignores, and ansible-test with it.
        let outside = shell.create_temp_dir()?;
        let collection = outside.path().join("ansible_collections/fullpipe/network");
        shell.create_dir(collection.parent().expect("a collection lies in a folder"))?;
        cmd!(shell, "cp -r bindings/ansible {collection}").quiet().run()?;
        let _within = shell.push_dir(&collection);
        let _home = shell.push_env("HOME", &home);
        let _locale = shell.push_env("LC_ALL", "C.UTF-8");
        let script = "import sys; print('%d.%d' % sys.version_info[:2])";
        let version = cmd!(shell, "{pip} -c {script}").quiet().read()?;
        let tester = folder.join("bin/ansible-test");
        // What they find is for the test to say: here they fetch their environments.
        let options = ["--requirements", "--python", &version];
        let tests = SANITY.iter().flat_map(|test| ["--test", test]);
        cmd!(shell, "{pip} {tester} sanity {options...} {tests...}").quiet().ignore_stdout().ignore_status().run()?;
        Ok(shell.write_file(&is_ready, "")?)
    })();
    if let Err(error) = made {
        skipped(
            "ansible",
            "ansible-core",
            "python3 -m venv, pip: ansible-core",
            &error.to_string(),
            "the Ansible collection",
        );
    }
}

/// Whatever this shell starts looks into `folders` too, after everything else.
fn find_below(shell: &Shell, folders: &[PathBuf]) {
    let path = shell.var_os("PATH").unwrap_or_default();
    let searched: Vec<PathBuf> = env::split_paths(&path).collect();
    let more = folders.iter().filter(|folder| !searched.contains(folder));
    // A folder whose name has the separator in it can't be searched; its programs then count as missing.
    if let Ok(path) = env::join_paths(searched.iter().chain(more)) {
        shell.set_var("PATH", path);
    }
}

fn skipped(what: &str, wanted: &str, from: &str, reason: &str, used_for: &str) {
    eprintln!("{what}: {wanted} is not here ({from}): {reason}; tests of {used_for} will be skipped by name");
}

pub(crate) fn is_here(shell: &Shell, program: &str) -> bool {
    let script = format!("command -v {program}");
    cmd!(shell, "sh -c {script}").quiet().ignore_stdout().ignore_stderr().run().is_ok()
}
